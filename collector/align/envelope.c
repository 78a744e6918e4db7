/* envelope.c - the hard bounds, as they stand at the newest sample.
 *
 * theta is a function whose slope is bounded; the set of such functions under the
 * upper bounds and above the lower ones has extremes in each point, and these two
 * recursions are exactly they. */
#include "beam_internal.h"

#include <math.h>

void beam_envelope_init(struct beam_envelope *e)
{
	*e = (struct beam_envelope){ .at_ns = INT64_MIN,
				     .hi = INFINITY,
				     .lo = -INFINITY,
				     .broken_ns = INT64_MIN };
}

void beam_rate_bounds(const struct beam *b, double dt, double *lo, double *hi)
{
	const struct beam_filter *k = &b->filter;
	double w = b->cfg->rate_jump + fabs(k->x[1]);

	if (beam_is_sure(b))
		w = fmin(w, b->cfg->rate_slack + 3 * sqrt(k->p[2]) + b->cfg->rate_drift * dt);
	*hi = k->x[1] + w;
	*lo = k->x[1] - w;
}

static void advance(struct beam *b, int64_t to_ns)
{
	struct beam_envelope *e = &b->envelope;
	double lo, hi, dt;

	if (e->at_ns == INT64_MIN) {
		e->at_ns = to_ns;
	} else if (to_ns > e->at_ns) {
		dt = beam_seconds(e->at_ns, to_ns);
		beam_rate_bounds(b, dt, &lo, &hi);
		e->hi += hi * dt;
		e->lo += lo * dt;
		e->at_ns = to_ns;
	}
}

/* A bound from a little earlier is carried up to where the envelope stands. */
void beam_envelope_take(struct beam *b, const struct beam_sample *s)
{
	struct beam_envelope *e = &b->envelope;
	int64_t theta0 = beam_now(b)->theta0_ns;
	double lo, hi, f, g;

	advance(b, s->t4_ns);
	beam_rate_bounds(b, beam_seconds(s->t1_ns, e->at_ns), &lo, &hi);
	f = (double)(s->f_ns - theta0) + hi * beam_seconds(s->t1_ns, e->at_ns);
	g = (double)(s->g_ns - theta0) + lo * beam_seconds(s->t4_ns, e->at_ns);
	e->hi = fmin(e->hi, f);
	e->lo = fmax(e->lo, g);
	if (e->hi >= e->lo)
		return;
	/* The new sample against all that was known: neither is believed for a while. */
	b->n_contradictions++;
	e->broken_ns = e->at_ns;
	e->hi = f;
	e->lo = g;
}
