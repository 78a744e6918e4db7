/* beam.c - samples in: what cannot be is refused, the rest goes into buckets. */
#include "beam_internal.h"
#include "margin.h"

#include <math.h>
#include <string.h>

#define MAX_NS (INT64_C(1) << 61) /* differences of differences stay in range */
#define START_BUCKETS 3
#define MOST_START_BUCKETS 10
#define LEAST_START 8 /* samples for a first rate */
#define MAX_RATE 500000.0 /* ns/s: a worse clock is not a clock */
#define START_RATE_DEVIATION 5000.0
#define LOOSE_RATE 30000.0
#define LATE_NS 50000000 /* behind the newest sample: a late one, or a clock that ran back */
#define BACK_NS INT64_C(30000000000)	/* further back is another time line */
#define AHEAD_NS INT64_C(600000000000)	/* further ahead, unless the fleet's clock says so too */
#define N_CONFIRM 3
#define MAX_EMPTY 16 /* buckets that may hold a late return only */

const struct beam_config beam_defaults = {
	.bucket_ns = 1000000000,
	.rate_slack = 1000,
	.rate_jump = 200000,
	.rate_drift = 50,
	.noise_rate = 5,
	.noise_drift = 0.5,
	.drift_unknown = 2,
	.drift_memory = 100,
	.noise_theta = 10,
	.least_scale = 50,
	.gate = 4,
	.slack = 1000,
	.rate_unknown = 60000,
	.sure = 5000,
	.asymmetry_share = 0.2,
	.z = 2.8,
};

void beam_init(struct beam *b, const struct beam_config *cfg, struct beam_knot *knots,
	       size_t n_knots, struct beam_segment *segments, size_t n_segments)
{
	memset(b, 0, sizeof *b);
	b->cfg = cfg ? cfg : &beam_defaults;
	b->knots = knots;
	b->n_knots_alloc = n_knots;
	b->segments = segments;
	b->n_segments_alloc = n_segments;
	beam_floors_init(&b->floors);
}

static bool in_range(int64_t ns)
{
	return ns > -MAX_NS && ns < MAX_NS;
}

/* Stamps in order on either side, and the way there and back took time. */
static bool is_sane(const struct beam_sample *s)
{
	return in_range(s->t1_ns) && in_range(s->t4_ns) && in_range(s->f_ns) &&
	       in_range(s->g_ns) && in_range(s->t1_ns + s->f_ns) &&
	       in_range(s->t4_ns + s->g_ns) && s->t4_ns >= s->t1_ns &&
	       s->t4_ns + s->g_ns >= s->t1_ns + s->f_ns && s->f_ns > s->g_ns;
}

/* The segment's bounds so far, from where its samples begin. Returns how many. */
static size_t gather(const struct beam *b, struct margin_point *hi, struct margin_point *lo,
		     int64_t *first_ns, double *excess)
{
	const struct beam_segment *now = beam_now(b);
	double rtt[BEAM_N_RECENT];
	size_t n = 0, k;

	for (uint64_t i = beam_recent_first(b); i < b->n_samples; i++) {
		const struct beam_sample *s = beam_recent(b, i);
		double v = (double)(s->f_ns - s->g_ns);

		if (s->t1_ns < now->begin_ns)
			continue;
		if (n == 0)
			*first_ns = s->t1_ns;
		hi[n] = (struct margin_point){ beam_seconds(b->origin_ns, s->t1_ns),
					       (double)(s->f_ns - now->theta0_ns) };
		lo[n] = (struct margin_point){ beam_seconds(b->origin_ns, s->t4_ns),
					       -(double)(s->g_ns - now->theta0_ns) };
		for (k = n++; k > 0 && rtt[k - 1] > v; k--)
			rtt[k] = rtt[k - 1];
		rtt[k] = v;
	}
	/* A quarter of the round trips are nearer to the least one than this. */
	*excess = n > 0 ? rtt[n / 4] - rtt[0] : 0;
	margin_sort(hi, n);
	margin_sort(lo, n);
	return n;
}

/* The widest margin between the bounds gives a segment's first rate. */
static void start(struct beam *b)
{
	struct margin_point hi[BEAM_N_RECENT], lo[BEAM_N_RECENT];
	struct margin_line line;
	double excess, loose, span;
	int64_t first_ns = 0;
	size_t n = gather(b, hi, lo, &first_ns, &excess);

	b->started = true;
	if (n < LEAST_START)
		return;
	if (!margin_widest(hi, margin_lower_hull(hi, n), lo, margin_lower_hull(lo, n), 2e6, &line) &&
	    line.gap < -b->cfg->slack) {
		beam_change_again(b);
		return;
	}
	if (fabs(line.slope) > MAX_RATE)
		return;
	span = fmax(1, beam_seconds(first_ns, b->last_ns));
	loose = excess / 2 / span;
	/* Wider than the round trip's floor: queues, and so the slope is loose. */
	if (isfinite(b->floors.f))
		loose = fmax(loose, (line.gap - b->floors.f - b->floors.r) / span);
	if (loose > LOOSE_RATE) {
		b->filter.p[2] = b->cfg->rate_unknown * b->cfg->rate_unknown;
		return;
	}
	b->filter.x[1] = line.slope;
	b->filter.p[2] = (START_RATE_DEVIATION + loose) * (START_RATE_DEVIATION + loose);
}

static bool close_bucket(struct beam *b, int64_t bucket)
{
	struct beam_bucket u;

	beam_bucket_gather(b, bucket, &u);
	if (!isfinite(u.f) && !isfinite(u.g))
		return false;
	beam_floors_lower(b, &u);
	if (beam_update(b, &u) == BEAM_FOLLOWS)
		return false;
	beam_change(b, bucket);
	return true;
}

/* Close what lies before that bucket. */
static bool close_until(struct beam *b, int64_t bucket)
{
	for (int i = 0; i < MAX_EMPTY && b->bucket < bucket; i++) {
		if (close_bucket(b, b->bucket)) /* the new segment wants it again */
			return true;
		b->bucket++;
	}
	b->bucket = bucket;
	return false;
}

/* Far from where the host's clock was, while the fleet's says otherwise. */
static bool is_odd(const struct beam *b, const struct beam_sample *s)
{
	double dt = beam_seconds(b->last_ns, s->t1_ns), off;

	if (b->n_segments == 0)
		return false;
	if (s->t1_ns < b->last_ns - BACK_NS)
		return true;
	if (s->t1_ns >= b->last_ns - LATE_NS && s->t1_ns <= b->last_ns + AHEAD_NS)
		return false;
	/* One that is only late has the offset of its time. */
	off = (double)(s->f_ns - beam_now(b)->theta0_ns) - b->filter.x[0];
	return fabs(off) > fabs(dt) * MAX_RATE + (double)(s->f_ns - s->g_ns) + LATE_NS;
}

/* One such sample is a slip, several that follow each other are a new time line. */
static bool confirm(struct beam *b, const struct beam_sample *s)
{
	if (b->n_odd > 0 && (s->t1_ns < b->odd_ns || s->t1_ns - b->odd_ns > BACK_NS))
		b->n_odd = 0;
	b->odd_ns = s->t1_ns;
	return ++b->n_odd >= N_CONFIRM;
}

static void keep_sample(struct beam *b, const struct beam_sample *s)
{
	b->recent[b->n_samples++ % BEAM_N_RECENT] = *s;
	beam_envelope_take(b, s);
	if (s->t4_ns > b->last_ns)
		b->last_ns = s->t4_ns;
}

/* Three seconds, or longer where exchanges are rare. */
static bool may_start(const struct beam *b, int64_t bucket)
{
	uint64_t n = b->n_samples - b->start_sample;

	return n >= BEAM_N_RECENT || bucket >= b->bucket + MOST_START_BUCKETS ||
	       (bucket >= b->bucket + START_BUCKETS && n >= LEAST_START);
}

static enum beam_outcome take(struct beam *b, const struct beam_sample *s)
{
	bool stepped = false;
	int64_t bucket;

	if (b->n_segments == 0) {
		beam_restart(b, s);
		b->last_ns = s->t4_ns;
	} else if (!is_odd(b, s)) {
		b->n_odd = 0;
	} else if (confirm(b, s)) {
		beam_restart(b, s);
		b->last_ns = s->t4_ns;
		b->n_odd = 0;
		stepped = true;
	} else {
		b->n_refused++;
		return BEAM_REFUSED;
	}
	bucket = beam_bucket_of(b, s->t1_ns);
	if (!b->started && may_start(b, bucket))
		start(b);
	if (b->started && bucket > b->bucket)
		stepped |= close_until(b, bucket);
	b->n_late += bucket < b->bucket;
	keep_sample(b, s);
	return stepped ? BEAM_STEPPED : BEAM_OK;
}

enum beam_outcome beam_take(struct beam *b, const struct beam_sample *s)
{
	int64_t fleet_ns;

	if (!is_sane(s)) {
		b->n_refused++;
		b->n_refused_running++;
		return BEAM_REFUSED;
	}
	/* An old exchange that comes again says nothing of now. */
	fleet_ns = s->t1_ns + s->f_ns;
	if (b->n_segments > 0 && fleet_ns < b->fleet_ns - BACK_NS) {
		b->n_refused++;
		return BEAM_REFUSED;
	}
	b->n_refused_running = 0;
	if (b->n_segments == 0 || fleet_ns > b->fleet_ns)
		b->fleet_ns = fleet_ns;
	return take(b, s);
}

enum beam_outcome beam_exchange(struct beam *b, host_time t1, fleet_time t2, fleet_time t3,
				host_time t4)
{
	struct beam_sample s = { INT64_MAX, 0, 0, 0 }; /* refused */

	if (in_range(t1.ns) && in_range(t2.ns) && in_range(t3.ns) && in_range(t4.ns))
		s = (struct beam_sample){ t1.ns, t4.ns, t2.ns - t1.ns, t3.ns - t4.ns };
	return beam_take(b, &s);
}

void beam_finish(struct beam *b)
{
	if (b->n_segments == 0)
		return;
	do {
		if (!b->started)
			start(b);
		b->started = true;
	} while (close_until(b, beam_bucket_of(b, b->last_ns) + 1));
}
