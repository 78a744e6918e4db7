/* bounds.c - the hard bounds of a finished segment, carried from both sides.
 *
 * Every function whose slope stays near that of the smoothed curve and that obeys
 * all bounds: its extremes at a point are the least of all upper bounds opened by
 * the rate that was possible in between. Two passes give exactly that. */
#include "hindsight_internal.h"

#include <math.h>
#include <stdlib.h>

static int by_time(const void *pa, const void *pb)
{
	const struct hind_bound *a = pa, *b = pb;

	return (a->at_ns > b->at_ns) - (a->at_ns < b->at_ns);
}

static void add(struct hindsight *h, struct hind_segment *g, int64_t at_ns, double hi, double lo)
{
	if (at_ns < g->s.begin_ns || at_ns >= g->s.end_ns)
		return;
	h->bounds[g->first_bound + g->n_bounds++] = (struct hind_bound){ at_ns, hi, lo };
}

static void carry(struct hind_bound *to, const struct hind_bound *from, double by)
{
	to->hi = fmin(to->hi, from->hi + by);
	to->lo = fmax(to->lo, from->lo - by);
}

void hind_envelope(struct hindsight *h, struct hind_segment *g, const struct beam_sample *v,
		   size_t n, size_t *n_bounds)
{
	const struct hind_knot *k = h->knots + g->s.first_knot;
	struct hind_bound *e = h->bounds + *n_bounds;

	g->first_bound = *n_bounds;
	for (size_t i = 0; i < n; i++) {
		add(h, g, v[i].t1_ns, (double)(v[i].f_ns - g->s.theta0_ns), -INFINITY);
		add(h, g, v[i].t4_ns, INFINITY, (double)(v[i].g_ns - g->s.theta0_ns));
	}
	qsort(e, g->n_bounds, sizeof *e, by_time);
	for (size_t i = 0; i < g->n_bounds; i++) {
		double rate, base = hind_curve(k, g->s.n_knots, e[i].at_ns, &rate);

		e[i].hi -= base;
		e[i].lo -= base;
		if (i > 0)
			carry(&e[i], &e[i - 1], hind_rate_bound(h, g, e[i].at_ns) *
							beam_seconds(e[i - 1].at_ns, e[i].at_ns));
	}
	for (size_t i = g->n_bounds; i-- > 1;)
		carry(&e[i - 1], &e[i], hind_rate_bound(h, g, e[i].at_ns) *
						beam_seconds(e[i - 1].at_ns, e[i].at_ns));
	*n_bounds += g->n_bounds;
}
