#include "clock.h"

#include <string.h>

#define BUCKET_SHIFT 27

void clock_init(struct clock *c, bool exact, int64_t offset_ns)
{
	memset(c, 0, sizeof *c);
	c->exact = exact;
	c->offset_ns = offset_ns;
	c->told_ns = INT64_MIN;
}

bool clock_is_aligned(const struct clock *c)
{
	return c->exact || c->n_fine > 0;
}

static int64_t distance_ns(int64_t a, int64_t b)
{
	return a > b ? a - b : b - a;
}

/* Upper bound: offset(t0) <= t1 - t0, lower bound: offset(t3) >= t2 - t3; each
 * moves by the drift with the distance to its own end. The larger distance
 * serves for both. */
int64_t clock_error_ns(const struct clock_sample *s, host_time t)
{
	int64_t d0 = distance_ns(t.ns, s->t0_ns), d3 = distance_ns(t.ns, s->t3_ns);

	if (s->half_ns == CLOCK_UNBOUNDED)
		return CLOCK_UNBOUNDED;
	if (s->half_ns < 0) /* exact */
		return 0;
	return s->half_ns + (d0 > d3 ? d0 : d3) / CLOCK_DRIFT_DIVISOR + 1;
}

static bool in_range(int64_t ns)
{
	return ns > -CLOCK_MAX_NS && ns < CLOCK_MAX_NS;
}

static void forget(struct clock *c)
{
	c->n_fine = c->next_fine = c->n_coarse = c->next_coarse = c->n_best = 0;
	c->has_chosen = false;
}

enum clock_outcome clock_exchange(struct clock *c, host_time t0, fleet_time t1, fleet_time t2,
				  host_time t3)
{
	enum clock_outcome r = CLOCK_OK;
	struct clock_sample s;
	int64_t hi_ns, lo_ns;

	if (c->exact)
		return CLOCK_OK;
	if (!in_range(t0.ns) || !in_range(t1.ns) || !in_range(t2.ns) || !in_range(t3.ns) ||
	    t3.ns < t0.ns || t2.ns < t1.ns || t3.ns - t0.ns < t2.ns - t1.ns) {
		c->n_refused++;
		return CLOCK_REFUSED;
	}
	hi_ns = t1.ns - t0.ns;
	lo_ns = t2.ns - t3.ns;
	s.t0_ns = t0.ns;
	s.t3_ns = t3.ns;
	s.offset_ns = lo_ns + (hi_ns - lo_ns) / 2;
	s.half_ns = (hi_ns - lo_ns + 1) / 2;

	/* Two hard bounds that exclude each other: a clock was set, or the host
	 * slept. What was known no longer holds. */
	if (c->n_fine > 0) {
		host_time mid = { t0.ns + (t3.ns - t0.ns) / 2 };
		struct clock_sample old = clock_choose(c, mid);

		if (distance_ns(old.offset_ns, s.offset_ns) >
		    clock_error_ns(&old, mid) + clock_error_ns(&s, mid)) {
			c->n_contradictions++;
			forget(c);
			r = CLOCK_STEPPED;
		}
	}

	c->fine[c->next_fine] = s;
	c->next_fine = (c->next_fine + 1) % CLOCK_N_FINE;
	if (c->n_fine < CLOCK_N_FINE)
		c->n_fine++;
	if (c->n_best == 0 || s.half_ns < c->best.half_ns)
		c->best = s;
	if (++c->n_best == CLOCK_COARSE) {
		c->coarse[c->next_coarse] = c->best;
		c->next_coarse = (c->next_coarse + 1) % CLOCK_N_COARSE;
		if (c->n_coarse < CLOCK_N_COARSE)
			c->n_coarse++;
		c->n_best = 0;
	}
	c->has_chosen = false;
	return r;
}

static void consider(struct clock_sample *best, int64_t *best_ns, const struct clock_sample *v,
		     size_t n, host_time t)
{
	for (size_t i = 0; i < n; i++) {
		int64_t e = clock_error_ns(&v[i], t);

		if (e < *best_ns) {
			*best_ns = e;
			*best = v[i];
		}
	}
}

struct clock_sample clock_choose(struct clock *c, host_time t)
{
	int64_t bucket = t.ns >> BUCKET_SHIFT, best_ns = INT64_MAX;
	host_time mid = { (int64_t)((uint64_t)bucket << BUCKET_SHIFT) + (1 << (BUCKET_SHIFT - 1)) };

	if (c->exact)
		return (struct clock_sample){ t.ns, t.ns, c->offset_ns, -1 };
	if (c->n_fine == 0)
		return (struct clock_sample){ t.ns, t.ns, c->offset_ns, CLOCK_UNBOUNDED };
	if (c->has_chosen && c->chosen_bucket == bucket)
		return c->chosen;

	consider(&c->chosen, &best_ns, c->fine, c->n_fine, mid);
	consider(&c->chosen, &best_ns, c->coarse, c->n_coarse, mid);
	c->chosen_bucket = bucket;
	c->has_chosen = true;
	return c->chosen;
}

int clock_map(struct clock *c, host_time t, struct fleet_point *ret)
{
	struct clock_sample s = clock_choose(c, t);

	ret->at.ns = t.ns + s.offset_ns;
	ret->err_ns = clock_error_ns(&s, t);
	return s.half_ns == CLOCK_UNBOUNDED;
}
