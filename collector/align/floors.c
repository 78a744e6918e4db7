/* floors.c - the least delay of each direction, without knowing the offset.
 *
 * The least round trip needs no clock. Half of it each way is the only place
 * where symmetry is assumed; when a route changes, the direction whose bound
 * moved against the prediction is charged, and the offset stays. */
#include "beam_internal.h"

#include <math.h>

#define BLAME_BUCKETS 30 /* the rest of a drop follows in small pieces */
#define DROP_BUCKETS 5   /* drops this close belong together */
#define NEAR_PART 0.33
#define N_NEAR 10 /* of the last BEAM_N_RTTS */
#define DOUBT_BUCKETS 120 /* of what was raised */
#define SETTLED_BUCKETS 30
#define UNDERCUT_PART 0.25
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

static void note_rtt(struct beam_floors *d, double rtt)
{
	d->rtts[d->n_rtts++ % BEAM_N_RTTS] = (float)rtt;
}

/* A floor that was met again and again is one; a record low among scattered round
 * trips is only luck. */
static bool settled(const struct beam *b, double least, double drop)
{
	const struct beam_floors *d = &b->floors;
	double near = fmin(drop * NEAR_PART, 2 * b->cfg->slack + 4 * d->scale);
	unsigned n = d->n_rtts < BEAM_N_RTTS ? d->n_rtts : BEAM_N_RTTS, n_near = 0;

	for (unsigned i = 0; i < n; i++)
		n_near += (double)d->rtts[i] < least + near;
	return d->n_rtts >= BEAM_N_RTTS && n_near >= N_NEAR;
}

static double least_rtt(const struct beam_floors *d)
{
	unsigned n = d->n_rtts < BEAM_N_RTTS ? d->n_rtts : BEAM_N_RTTS;
	double least = INFINITY;

	for (unsigned i = 0; i < n; i++)
		least = fmin(least, (double)d->rtts[i]);
	return least;
}

/* Which direction got shorter, and by how much in all: against the floors and the
 * state before the drop began, as its first bucket may show only a part of it. */
static bool attribute(struct beam *b, const struct beam_bucket *u, double *drop, double *share)
{
	struct beam_floors *d = &b->floors;
	const struct beam_before *o = &d->before;
	double theta, by_f, by_r;

	/* A queue that stood so long that it was taken for a route is over. */
	if (d->raised_f + d->raised_r > 0 &&
	    u->at_ns - d->raised_ns < DOUBT_BUCKETS * b->cfg->bucket_ns)
		return false;
	if (b->filter.n <= 20 || *drop <= 2 * b->cfg->slack + 3 * d->scale ||
	    !settled(b, o->rtt, *drop))
		return false;
	theta = o->x[0] + o->x[1] * beam_seconds(o->at_ns, u->at_ns);
	by_f = fmax(0, theta - (u->f - o->f));
	by_r = fmax(0, u->g + o->r - theta);
	if (by_f + by_r <= 0.5 * *drop)
		return false;
	*share = by_f / (by_f + by_r);
	*drop = fmax(*drop, fmin(*drop + 4 * d->scale, by_f + by_r));
	return true;
}

static void remember(struct beam *b, const struct beam_bucket *u)
{
	struct beam_floors *d = &b->floors;

	if (u->at_ns - d->before.until_ns > DROP_BUCKETS * b->cfg->bucket_ns ||
	    d->before.segment != b->n_segments)
		d->before = (struct beam_before){ .f = d->f,
						  .r = d->r,
						  .rtt = least_rtt(d),
						  .x = { b->filter.x[0], b->filter.x[1] },
						  .at_ns = b->filter.at_ns,
						  .segment = b->n_segments };
	d->before.until_ns = u->at_ns;
}

static void charge(struct beam_floors *d, double w, double drop)
{
	d->f = fmax(0, d->f - w * drop);
	d->r = fmax(0, d->r - (1 - w) * drop);
	d->raised_f = fmax(0, d->raised_f - w * drop);
	d->raised_r = fmax(0, d->raised_r - (1 - w) * drop);
}

/* What was raised last is known least: a queue that stood for a minute, or a new
 * route's first minute. Returns what is left of the drop. */
static double give_back(struct beam_floors *d, double drop)
{
	double raised = d->raised_f + d->raised_r, part = fmin(drop, raised);

	if (raised > 0)
		charge(d, d->raised_f / raised, part);
	return drop - part;
}

/* They come from different packets, so they hang on the rate within the bucket:
 * believed where that is well known, and then in small pieces. */
void beam_floors_undercut(struct beam *b, double by)
{
	double rate_error = sqrt(b->filter.p[2]) * (double)b->cfg->bucket_ns * 1e-9;

	if ((b->n_since_restart > 1 && b->filter.n < SETTLED_BUCKETS) || b->filter.n_bad > 0 ||
	    2 * rate_error > by)
		return;
	charge(&b->floors, 0.5, give_back(&b->floors, UNDERCUT_PART * by));
}

void beam_floors_lower(struct beam *b, const struct beam_bucket *u)
{
	struct beam_floors *d = &b->floors;
	double r, drop, all, w = 0.5;

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
	if (drop > 0) {
		remember(b, u);
		all = fmax(d->before.f + d->before.r, d->before.rtt) - r;
		if (u->at_ns < d->blame_until_ns) {
			w = d->blame;
		} else if (attribute(b, u, &all, &w)) {
			d->blame = w;
			d->blame_until_ns = u->at_ns + BLAME_BUCKETS * b->cfg->bucket_ns;
			d->f = d->before.f;
			d->r = d->before.r;
			charge(d, w, all);
			/* The new path's least delay shows itself only by and by. */
			d->raised_f = w * fmax(2 * b->cfg->slack, 4 * d->scale);
			d->raised_r = (1 - w) * fmax(2 * b->cfg->slack, 4 * d->scale);
			d->raised_ns = u->at_ns;
			drop = 0;
		} else {
			drop = give_back(d, drop);
		}
		charge(d, w, drop);
	}
	note_rtt(d, r);
}

void beam_floors_window(struct beam_floors *d, double f, double r, bool clear_f, bool clear_r)
{
	d->window[d->next_window] = (struct beam_excess){ (float)f, (float)r, clear_f, clear_r };
	d->next_window = (d->next_window + 1) % BEAM_N_WINDOW;
	if (d->n_window < BEAM_N_WINDOW)
		d->n_window++;
}

double beam_floors_repent(struct beam *b, int64_t at_ns, double excess, bool forward)
{
	struct beam_floors *d = &b->floors;
	double give;

	if (excess >= 0 || at_ns - d->raised_ns > DOUBT_BUCKETS * b->cfg->bucket_ns)
		return 0;
	give = fmin(-excess, forward ? d->raised_f : d->raised_r);
	charge(d, forward ? 1 : 0, give);
	return give;
}

void beam_floors_queued(const struct beam_floors *d, unsigned n, bool *f, bool *r)
{
	unsigned n_f = 0, n_r = 0;

	if (n > d->n_window)
		n = d->n_window;
	for (unsigned i = 1; i <= n; i++) {
		const struct beam_excess *e =
			&d->window[(d->next_window + BEAM_N_WINDOW - i) % BEAM_N_WINDOW];

		n_f += !e->clear_f;
		n_r += !e->clear_r;
	}
	*f = 2 * n_f > n;
	*r = 2 * n_r > n;
}

void beam_floors_add(struct beam_floors *d, double f, double r, int64_t at_ns)
{
	d->f += f;
	d->r += r;
	d->raised_f += fmax(0, f);
	d->raised_r += fmax(0, r);
	d->raised_ns = at_ns;
}

/* Only if the other direction kept the estimate honest. Both stuck: raise both,
 * half of the difference stays as error. */
void beam_floors_raise(struct beam_floors *d, unsigned n, int64_t at_ns)
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
		beam_floors_add(d, least_f, 0, at_ns);
	if (n_r == 0 && (n_f == 0 || n_f >= n / 3))
		beam_floors_add(d, 0, least_r, at_ns);
	if ((n_f == 0 && (n_r == 0 || n_r >= n / 3)) || (n_r == 0 && n_f >= n / 3))
		d->n_window = d->next_window = 0;
}
