#include "bracket.h"

#include <math.h>
#include <string.h>

#define SECOND_NS 1000000000
#define NEAR 24	     /* seconds either way that are looked at, and more where nothing is */
#define N_ODD 3	     /* contradictions in a row that are no accident */
#define TIGHT 2	     /* widths of slack: an event that could not be after a step */
#define LEAST_LINE 3 /* seconds with both sides before a line is drawn */
#define N_STEPS 64

const struct bracket_config bracket_defaults = {
	.step_ns = 32,
	.max_rate = 200e-6,
	.rate_slack = 1e-6,
};

void bracket_init(struct bracket *b, const struct bracket_config *cfg)
{
	memset(b, 0, sizeof *b);
	b->cfg = *cfg;
	b->rate_lo = -cfg->max_rate;
	b->rate_hi = cfg->max_rate;
}

static bool sane(int64_t ns)
{
	return ns > -BRACKET_MAX_NS && ns < BRACKET_MAX_NS;
}

static void forget(struct bracket *b)
{
	struct bracket kept = *b;

	bracket_init(b, &kept.cfg);
	b->n_refused = kept.n_refused;
	b->n_contradictions = kept.n_contradictions;
	b->n_restarts = kept.n_restarts + 1;
}

/* k-th newest; 0 is the open one. */
static struct bracket_second *back(const struct bracket *b, uint32_t k)
{
	return (struct bracket_second *)&b->v[(b->next - 1 - k + BRACKET_N) % BRACKET_N];
}

static int64_t number_of(int64_t at_ns)
{
	return at_ns >= 0 ? at_ns / SECOND_NS : -((SECOND_NS - 1 - at_ns) / SECOND_NS);
}

/* ---- the line of a window ---- */

struct window {
	const struct bracket *b;
	uint32_t first, n; /* from the first-th newest back */
	int64_t at_ns;	   /* instants are relative to it */
};

/* The room that a rate leaves between the sides, and its middle. */
static double room(const struct window *w, double rate, double *ret_middle)
{
	double upper = INFINITY, lower = -INFINITY;

	for (uint32_t k = w->first; k < w->first + w->n; k++) {
		const struct bracket_second *s = back(w->b, k);

		if (s->has_upper)
			upper = fmin(upper, (double)s->upper_ns -
						    rate * (double)(s->upper_at_ns - w->at_ns));
		if (s->has_lower)
			lower = fmax(lower, (double)s->lower_ns -
						    rate * (double)(s->lower_at_ns - w->at_ns));
	}
	*ret_middle = (upper + lower) / 2;
	return upper - lower;
}

/* Room is concave in the rate: its top by thirds, its ends by halves. */
static double widest(const struct window *w, double lo, double hi)
{
	double ignored;

	for (int i = 0; i < N_STEPS; i++) {
		double a = lo + (hi - lo) / 3, b = hi - (hi - lo) / 3;

		if (room(w, a, &ignored) < room(w, b, &ignored))
			lo = a;
		else
			hi = b;
	}
	return (lo + hi) / 2;
}

static double end_of_room(const struct window *w, double inside, double outside)
{
	double ignored;

	if (room(w, outside, &ignored) >= 0)
		return outside;
	for (int i = 0; i < N_STEPS; i++) {
		double half = (inside + outside) / 2;

		if (room(w, half, &ignored) >= 0)
			inside = half;
		else
			outside = half;
	}
	return inside;
}

/* A second is over: which rates are possible? Where the rate wandered so far that no
 * line fits a window, the newer half of it is asked. */
static void draw_line(struct bracket *b)
{
	struct window w = { .b = b, .n = b->n < BRACKET_WINDOW ? b->n : BRACKET_WINDOW };
	double rate, middle, max = b->cfg.max_rate;
	uint32_t n_upper = 0, n_lower = 0;

	for (uint32_t k = 0; k < w.n; k++) {
		n_upper += back(b, k)->has_upper;
		n_lower += back(b, k)->has_lower;
	}
	w.at_ns = back(b, 0)->number * SECOND_NS;
	if (n_upper < LEAST_LINE || n_lower < LEAST_LINE) {
		/* What was known is known a little less each second. */
		b->rate_lo = fmax(-max, b->rate_lo - b->cfg.rate_slack / BRACKET_WINDOW);
		b->rate_hi = fmin(max, b->rate_hi + b->cfg.rate_slack / BRACKET_WINDOW);
		return;
	}
	b->rate_lo = -max;
	b->rate_hi = max;
	for (; w.n >= LEAST_LINE; w.n /= 2) {
		rate = widest(&w, -max, max);
		if (room(&w, rate, &middle) < 0 || isinf(middle))
			continue;
		b->rate = rate;
		b->middle_ns = middle;
		b->middle_at_ns = (double)w.at_ns;
		b->has_line = true;
		b->rate_lo = fmax(-max, end_of_room(&w, rate, -max) - b->cfg.rate_slack);
		b->rate_hi = fmin(max, end_of_room(&w, rate, max) + b->cfg.rate_slack);
		return;
	}
}

/* ---- bounds at an instant ---- */

/* What a bound that held at `at` allows at t. rate: the extreme one for this side
 * going forward; back in time the other extreme holds. */
static double carried(int64_t v_ns, int64_t at_ns, int64_t t_ns, double forward, double backward)
{
	double dt = (double)(t_ns - at_ns);

	return (double)v_ns + (dt >= 0 ? forward : backward) * dt;
}

static void bounds(const struct bracket *b, int64_t t_ns, double *ret_lo, double *ret_hi)
{
	int64_t number = number_of(t_ns);
	double rate_lo = b->rate_lo, rate_hi = b->rate_hi;

	*ret_lo = -INFINITY;
	*ret_hi = INFINITY;
	/* The rates that were possible where the instant lies. */
	for (uint32_t k = 0; k < b->n; k++)
		if (back(b, k)->number <= number || k + 1 == b->n) {
			rate_lo = back(b, k)->rate_lo;
			rate_hi = back(b, k)->rate_hi;
			break;
		}
	for (uint32_t k = 0; k < b->n; k++) {
		const struct bracket_second *s = back(b, k);
		double lo = fmin(rate_lo, s->rate_lo), hi = fmax(rate_hi, s->rate_hi);

		bool far = s->number > number + NEAR || s->number < number - NEAR;

		if (s->has_upper && !(far && isfinite(*ret_hi)))
			*ret_hi = fmin(*ret_hi, carried(s->upper_ns, s->upper_at_ns, t_ns, hi, lo));
		if (s->has_lower && !(far && isfinite(*ret_lo)))
			*ret_lo = fmax(*ret_lo, carried(s->lower_ns, s->lower_at_ns, t_ns, lo, hi));
	}
}

/* The second of an instant, made if it is new. NULL when it is too old. */
static struct bracket_second *second_of(struct bracket *b, int64_t t_ns)
{
	int64_t number = number_of(t_ns);

	for (uint32_t k = 0; k < b->n; k++) {
		if (back(b, k)->number == number)
			return back(b, k);
		if (back(b, k)->number < number && k > 0)
			return NULL; /* a gap in the past: what comes late is not needed */
		if (back(b, k)->number < number)
			break;
	}
	if (b->n > 0 && back(b, 0)->number > number)
		return NULL;
	if (b->n > 0)
		draw_line(b);
	b->v[b->next] = (struct bracket_second){ .number = number };
	b->next = (b->next + 1) % BRACKET_N;
	if (b->n < BRACKET_N)
		b->n++;
	back(b, 0)->rate_lo = b->rate_lo;
	back(b, 0)->rate_hi = b->rate_hi;
	/* The second that has just ended is known better now, too. */
	if (b->n > 1 && b->has_line) {
		back(b, 1)->rate_lo = b->rate_lo;
		back(b, 1)->rate_hi = b->rate_hi;
	}
	return back(b, 0);
}

static enum bracket_outcome take(struct bracket *b, int64_t gpu_ns, int64_t theta_ns, bool upper)
{
	struct bracket_second *s;
	double lo, hi, excess;
	int64_t at_ns, v_ns;

	if (!b->started) {
		b->started = true;
		b->origin_gpu_ns = gpu_ns;
		b->origin_theta_ns = theta_ns;
	}
	at_ns = gpu_ns - b->origin_gpu_ns;
	if (__builtin_sub_overflow(theta_ns, b->origin_theta_ns, &v_ns) || !sane(v_ns)) {
		b->n_refused++;
		return BRACKET_REFUSED;
	}
	bounds(b, at_ns, &lo, &hi);
	excess = upper ? lo - (double)v_ns : (double)v_ns - hi;
	if (excess > 1) {
		b->n_contradictions++;
		if (++b->n_odd[upper] < N_ODD)
			return BRACKET_REFUSED;
		forget(b);
		take(b, gpu_ns, theta_ns, upper);
		return BRACKET_STEPPED;
	}
	s = second_of(b, at_ns);
	if (!s) {
		b->n_refused++;
		return BRACKET_REFUSED;
	}
	if (upper ? !s->has_upper || (double)(v_ns - s->upper_ns) <
					     b->rate * (double)(at_ns - s->upper_at_ns)
		  : !s->has_lower || (double)(v_ns - s->lower_ns) >
					     b->rate * (double)(at_ns - s->lower_at_ns)) {
		*(upper ? &s->upper_ns : &s->lower_ns) = v_ns;
		*(upper ? &s->upper_at_ns : &s->lower_at_ns) = at_ns;
		*(upper ? &s->has_upper : &s->has_lower) = true;
	}
	/* A loose event agrees with everything and vouches for nothing. */
	if (-excess <= (1 + TIGHT) * (hi - lo))
		b->n_odd[upper] = 0;
	return BRACKET_OK;
}

enum bracket_outcome bracket_after(struct bracket *b, int64_t host_ns, int64_t gpu_ns)
{
	if (!sane(host_ns) || !sane(gpu_ns)) {
		b->n_refused++;
		return BRACKET_REFUSED;
	}
	return take(b, gpu_ns, host_ns - gpu_ns - b->cfg.step_ns, false);
}

enum bracket_outcome bracket_before(struct bracket *b, int64_t gpu_ns, int64_t host_ns)
{
	if (!sane(host_ns) || !sane(gpu_ns)) {
		b->n_refused++;
		return BRACKET_REFUSED;
	}
	return take(b, gpu_ns, host_ns - gpu_ns, true);
}

void bracket_map(const struct bracket *b, int64_t gpu_ns, struct bracket_point *ret)
{
	int64_t t_ns;
	bool turned;
	double lo, hi, at;

	*ret = (struct bracket_point){ .lo_ns = -BRACKET_UNBOUNDED,
				       .hi_ns = BRACKET_UNBOUNDED,
				       .soft_ns = BRACKET_UNBOUNDED };
	if (!b->started || !sane(gpu_ns))
		return;
	t_ns = gpu_ns - b->origin_gpu_ns;
	bounds(b, t_ns, &lo, &hi);
	/* A rate that left what was allowed: then the truth lies between, if anywhere. */
	turned = lo > hi;
	if (turned) {
		double was = lo;

		lo = hi;
		hi = was;
	}
	/* What is years away is nothing. */
	if (fabs(lo) > (double)BRACKET_MAX_NS)
		lo = -INFINITY;
	if (fabs(hi) > (double)BRACKET_MAX_NS)
		hi = INFINITY;
	if (!isinf(lo))
		ret->lo_ns = b->origin_theta_ns + (int64_t)floor(lo) - 1;
	if (!isinf(hi))
		ret->hi_ns = b->origin_theta_ns + (int64_t)ceil(hi) + 1;
	if (isinf(lo) || isinf(hi)) {
		ret->status = BRACKET_ONE_SIDED;
		ret->offset_ns = isinf(lo) ? ret->hi_ns : ret->lo_ns;
		return;
	}
	ret->status = turned || b->n_odd[0] || b->n_odd[1] ? BRACKET_UNDECIDED : BRACKET_BOTH;
	at = (lo + hi) / 2;
	ret->offset_ns = b->origin_theta_ns + llround(at);
	ret->soft_ns = (int64_t)ceil((hi - lo) / 2) + 1;
}
