/* place.c - the live map: where an instant lies by what is known now.
 *
 * Behind the newest knot the state is extrapolated, between knots it is a cubic
 * through both. The hard bounds come from the knots' envelopes on either side,
 * opened by the rate that held there. */
#include "beam_internal.h"

#include <math.h>

#define FRESH_NS INT64_C(5000000000)
#define BROKEN_NS INT64_C(2000000000) /* after a contradiction */
#define N_BELIEVE 5		      /* buckets with both directions clear */
#define N_INSANE 16
#define BEND_S 5.0
#define MAX_NS (INT64_C(1) << 61)

/* Knots of a segment that are still in the ring: [*from, *to). */
static bool knots_of(const struct beam *b, const struct beam_segment *s, uint64_t *from,
		     uint64_t *to)
{
	uint64_t oldest = b->n_knots > b->n_knots_alloc ? b->n_knots - b->n_knots_alloc : 0;

	*to = s->first_knot + s->n_knots;
	*from = s->first_knot > oldest ? s->first_knot : oldest;
	return *from < *to;
}

/* The newest segment that begins before t and has something to say. */
static bool find_segment(const struct beam *b, int64_t t_ns, uint64_t *ret, uint64_t *from,
			 uint64_t *to)
{
	uint64_t oldest = b->n_segments > b->n_segments_alloc ? b->n_segments - b->n_segments_alloc
							     : 0;
	bool any = false;

	if (oldest < b->oldest_segment)
		oldest = b->oldest_segment;
	for (uint64_t i = b->n_segments; i-- > oldest;) {
		uint64_t f, e;

		if (!knots_of(b, beam_segment(b, i), &f, &e))
			continue;
		*ret = i;
		*from = f;
		*to = e;
		any = true;
		if (beam_segment(b, i)->begin_ns <= t_ns)
			break;
	}
	return any;
}

/* The last knot at or before t; from when t lies before all. */
static uint64_t find_knot(const struct beam *b, uint64_t from, uint64_t to, int64_t t_ns)
{
	while (to - from > 1) {
		uint64_t m = from + (to - from) / 2;

		if (beam_knot(b, m)->at_ns <= t_ns)
			from = m;
		else
			to = m;
	}
	return from;
}

static void between(const struct beam_knot *a, const struct beam_knot *c, int64_t t_ns,
		    struct beam_point *ret)
{
	double h = beam_seconds(a->at_ns, c->at_ns), u = beam_seconds(a->at_ns, t_ns) / h;
	double v = 1 - u, ra = (double)a->rate, rc = (double)c->rate;

	ret->theta = (1 + 2 * u) * v * v * a->theta + u * v * v * h * ra +
		     u * u * (3 - 2 * u) * c->theta + u * u * (u - 1) * h * rc;
	ret->rate = 6 * u * v * (c->theta - a->theta) / h + v * (1 - 3 * u) * ra + u * (3 * u - 2) * rc;
	ret->soft = fmax((double)a->sd, (double)c->sd);
}

static void beyond(const struct beam_knot *k, int64_t t_ns, struct beam_point *ret)
{
	double dt = beam_seconds(k->at_ns, t_ns);

	/* A curve is not believed for long. */
	double bend = (double)k->drift * fmin(fmax(dt, -BEND_S), BEND_S);

	ret->theta = k->theta + dt * ((double)k->rate + bend / 2);
	ret->rate = (double)k->rate + bend;
	ret->soft = hypot((double)k->sd, dt * (double)k->rate_sd);
}

/* How far the rate may be from the knot's, dt seconds away from its bounds. */
static double width(const struct beam *b, const struct beam_knot *k, double dt)
{
	const struct beam_config *cfg = b->cfg;
	double w = cfg->rate_jump + fabs((double)k->rate);

	return k->sure ? fmin(w, cfg->rate_slack + 3 * (double)k->rate_sd + cfg->rate_drift * dt) : w;
}

/* Seconds from where a knot's bounds hold to t. */
static double since_bounds(const struct beam_knot *k, int64_t t_ns)
{
	return beam_seconds(k->at_ns, t_ns) - (double)k->env_s;
}

static void open_forward(const struct beam *b, const struct beam_knot *k, int64_t t_ns,
			 struct beam_point *ret)
{
	double dt = since_bounds(k, t_ns), w = width(b, k, dt);

	if (dt < 0)
		return;
	ret->rate_bound = w;
	ret->hi = fmin(ret->hi, k->theta + (double)k->env_hi + ((double)k->rate + w) * dt);
	ret->lo = fmax(ret->lo, k->theta + (double)k->env_lo + ((double)k->rate - w) * dt);
}

/* w: of the rate between a and k. */
static void open_backward(const struct beam_knot *k, const struct beam_knot *a, double w,
			  int64_t t_ns, struct beam_point *ret)
{
	double dt = -since_bounds(k, t_ns);

	if (dt < 0)
		return;
	ret->rate_bound = w;
	ret->hi = fmin(ret->hi, k->theta + (double)k->env_hi - ((double)fminf(a->rate, k->rate) - w) * dt);
	ret->lo = fmax(ret->lo, k->theta + (double)k->env_lo - ((double)fmaxf(a->rate, k->rate) + w) * dt);
}

/* In the open bucket, from its newest sample. */
static void open_newest(const struct beam *b, const struct beam_knot *k, int64_t t_ns,
			struct beam_point *ret)
{
	const struct beam_envelope *e = &b->envelope;
	double lo, hi, w, dt = beam_seconds(e->at_ns, t_ns);

	if (dt >= 0) {
		beam_rate_bounds(b, dt, &lo, &hi);
		ret->rate_bound = (hi - lo) / 2;
		ret->hi = e->hi + hi * dt;
		ret->lo = e->lo + lo * dt;
	} else {
		w = width(b, k, -dt);
		ret->hi = fmin(ret->hi, e->hi + (b->filter.x[1] - w) * dt);
		ret->lo = fmax(ret->lo, e->lo + (b->filter.x[1] + w) * dt);
	}
}

static void hard(const struct beam *b, uint64_t segment, uint64_t from, uint64_t to, uint64_t knot,
		 int64_t t_ns, struct beam_point *ret)
{
	const struct beam_knot *k;
	uint64_t next;

	ret->hi = INFINITY;
	ret->lo = -INFINITY;
	if (since_bounds(beam_knot(b, knot), t_ns) < 0 && knot > from)
		knot--;
	k = beam_knot(b, knot);
	open_forward(b, k, t_ns, ret);
	next = since_bounds(k, t_ns) < 0 ? knot : knot + 1;
	if (next < to) {
		double w = t_ns < beam_knot(b, from)->at_ns
				   ? b->cfg->rate_jump + fabs((double)k->rate)
				   : width(b, k, -since_bounds(beam_knot(b, next), t_ns));

		open_backward(beam_knot(b, next), k, w, t_ns, ret);
	} else if (segment == b->n_segments - 1) {
		open_newest(b, k, t_ns, ret);
	}
}

static bool in_gap(const struct beam *b, uint64_t segment, int64_t t_ns)
{
	const struct beam_envelope *e = &b->envelope;

	for (uint64_t i = segment; i < b->n_segments && i < segment + 4; i++) {
		const struct beam_segment *s = beam_segment(b, i);

		if (s->gap_ns != INT64_MIN && t_ns > s->gap_ns && t_ns < s->begin_ns)
			return true;
	}
	return e->broken_ns != INT64_MIN && segment == b->n_segments - 1 &&
	       t_ns > b->filter.anchor_ns && t_ns - e->broken_ns < BROKEN_NS;
}

static enum fleet_status status_of(const struct beam *b, uint64_t segment, uint64_t knot,
				   int64_t t_ns)
{
	int64_t near_ns = beam_knot(b, knot)->at_ns + FRESH_NS;

	if (b->n_refused_running >= N_INSANE && t_ns > b->last_ns)
		return FLEET_VOID;
	if (in_gap(b, segment, t_ns))
		return FLEET_UNDECIDED;
	if (b->floors.n_scale < N_BELIEVE)
		return FLEET_UNANCHORED;
	for (uint64_t i = knot; near_ns > t_ns; i--) {
		const struct beam_knot *k = beam_knot(b, i);

		if (k->n_clear > 0)
			return k->n_clear == 2 ? FLEET_ANCHORED : FLEET_ONE_SIDED;
		if (i == beam_segment(b, segment)->first_knot || knot - i > 4)
			break;
	}
	return FLEET_COASTING;
}

/* Before the first bucket is closed there are only the bounds. */
static bool place_bounds(const struct beam *b, int64_t t_ns, struct beam_point *ret)
{
	const struct beam_envelope *e = &b->envelope;
	double w = b->cfg->rate_jump * fabs(beam_seconds(e->at_ns, t_ns));

	if (b->n_segments == 0 || e->at_ns == INT64_MIN || b->started)
		return false;
	*ret = (struct beam_point){ .segment = b->n_segments - 1,
				    .theta0_ns = beam_now(b)->theta0_ns,
				    .theta = (e->hi + e->lo) / 2,
				    .hi = e->hi + w,
				    .lo = e->lo - w,
				    .rate_bound = b->cfg->rate_jump,
				    .soft = (e->hi - e->lo) / 2 + w,
				    .status = b->n_since_restart > 1 ? FLEET_UNDECIDED
								     : FLEET_UNANCHORED };
	return true;
}

void beam_place(const struct beam *b, host_time t, struct beam_point *ret)
{
	const struct beam_floors *d = &b->floors;
	uint64_t segment, from, to, knot;

	if (b->n_segments > 0 && !b->started && t.ns >= beam_now(b)->begin_ns && t.ns <= MAX_NS &&
	    t.ns >= -MAX_NS && place_bounds(b, t.ns, ret))
		return;
	if (t.ns > MAX_NS || t.ns < -MAX_NS || !find_segment(b, t.ns, &segment, &from, &to)) {
		*ret = (struct beam_point){ .hi = INFINITY,
					    .lo = -INFINITY,
					    .soft = INFINITY,
					    .status = FLEET_VOID };
		return;
	}
	ret->segment = segment;
	ret->theta0_ns = beam_segment(b, segment)->theta0_ns;
	knot = find_knot(b, from, to, t.ns);
	if (beam_knot(b, knot)->at_ns <= t.ns && knot + 1 < to)
		between(beam_knot(b, knot), beam_knot(b, knot + 1), t.ns, ret);
	else
		beyond(beam_knot(b, knot), t.ns, ret);
	hard(b, segment, from, to, knot, t.ns, ret);
	ret->theta = fmin(fmax(ret->theta, ret->lo), ret->hi);
	ret->soft = b->cfg->z * sqrt(ret->soft * ret->soft + d->variance / 4) +
		    b->cfg->asymmetry_share * (d->f + d->r) / 2;
	ret->status = status_of(b, segment, knot, t.ns);
}
