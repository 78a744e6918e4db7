/* floors.c - the least delay of each direction, without knowing the offset.
 *
 * The least round trip needs no clock. Half of it each way is the only place
 * where symmetry is assumed; when a route changes, the direction whose bound
 * moved against the prediction is charged, and the offset stays. */
#include "beam_internal.h"

#include <math.h>

#define BLAME_BUCKETS 30 /* the rest of a drop follows in small pieces */
#define WILD 0.8 /* of the floor: one round trip like this is a step inside it */

void beam_floors_init(struct beam_floors *d)
{
	*d = (struct beam_floors){ .f = INFINITY,
				   .r = INFINITY,
				   .scale = 5000,
				   .variance = 3000.0 * 3000.0,
				   .blame = 0.5,
				   .blame_until_ns = INT64_MIN,
				   .young_least = INFINITY };
}

/* Which direction got shorter, and by how much in all. */
static double attribute(struct beam *b, const struct beam_bucket *u, double *drop)
{
	struct beam_floors *d = &b->floors;
	double xp[2], pp[3], by_f, by_r, w;

	if (b->filter.n <= 20 || *drop <= 2 * b->cfg->slack + 3 * d->scale)
		return 0.5;
	beam_predict(b->cfg, &b->filter, u->at_ns, xp, pp);
	by_f = fmax(0, xp[0] - (u->f - d->f));
	by_r = fmax(0, u->g + d->r - xp[0]);
	if (by_f + by_r <= 0.5 * *drop)
		return 0.5;
	w = by_f / (by_f + by_r);
	*drop = fmax(*drop, fmin(*drop + 4 * d->scale, by_f + by_r));
	d->blame = w;
	d->blame_until_ns = u->at_ns + BLAME_BUCKETS * b->cfg->bucket_ns;
	return w;
}

void beam_floors_lower(struct beam *b, const struct beam_bucket *u)
{
	struct beam_floors *d = &b->floors;
	double r, drop, w;

	if (u->n_rtt == 0)
		return;
	r = u->rtt[0];
	if (!isfinite(d->f)) {
		d->f = d->r = r / 2;
		return;
	}
	if (r < WILD * (d->f + d->r))
		r = u->n_rtt > 1 ? u->rtt[1] : d->f + d->r;
	drop = d->f + d->r - r;
	if (drop <= 0)
		return;
	w = attribute(b, u, &drop);
	if (u->at_ns < d->blame_until_ns)
		w = d->blame;
	d->f -= w * drop;
	d->r -= (1 - w) * drop;
}

void beam_floors_window(struct beam_floors *d, double f, double r, bool clear_f, bool clear_r)
{
	d->window[d->next_window] = (struct beam_excess){ (float)f, (float)r, clear_f, clear_r };
	d->next_window = (d->next_window + 1) % BEAM_N_WINDOW;
	if (d->n_window < BEAM_N_WINDOW)
		d->n_window++;
}

/* Only if the other direction kept the estimate honest. Both stuck: raise both,
 * half of the difference stays as error. */
void beam_floors_raise(struct beam_floors *d, unsigned n)
{
	unsigned n_both = 0, n_f = 0, n_r = 0;
	double least_f = INFINITY, least_r = INFINITY;

	if (d->n_window < n)
		return;
	for (unsigned i = 0; i < d->n_window; i++) {
		const struct beam_excess *e = &d->window[i];

		if (!isfinite(e->f) || !isfinite(e->r))
			continue;
		n_both++;
		n_f += e->clear_f;
		n_r += e->clear_r;
		least_f = fmin(least_f, e->f);
		least_r = fmin(least_r, e->r);
	}
	if (n_both < n)
		return;
	if (n_f == 0 && (n_r == 0 || n_r >= n / 3))
		d->f += least_f;
	if (n_r == 0 && (n_f == 0 || n_f >= n / 3))
		d->r += least_r;
	if ((n_f == 0 && (n_r == 0 || n_r >= n / 3)) || (n_r == 0 && n_f >= n / 3))
		d->n_window = d->next_window = 0;
}
