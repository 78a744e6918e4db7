/* filter.c - offset and rate from one measurement a bucket.
 *
 * Gating is one-sided: a bound far above what is predicted is a queue and says
 * nothing, a bound on the wrong side of it cannot be a queue and says that the
 * prediction is wrong. */
#include "beam_internal.h"

#include <math.h>
#include <string.h>

#define YOUNG 30 /* buckets of a segment in which nothing tells the queued direction */
#define SLOW_TO_JUDGE 20 /* buckets of a node whose scales are still being learned */
#define SIZE_GAIN 0.05
#define RUN_GAIN 0.1
#define LEAST_NIS 0.005
#define MOST_NIS 1e4
#define GUESS_PART 0.1
#define SMEAR_PART 0.3
#define KNOWN_RATE 5000.0 /* ns/s */
#define SURE_BUCKETS 5
#define ENOUGH_SCALE 5 /* buckets with both directions clear */
#define LEAST_DEVIATION 20.0 /* ns: stamps themselves */

static double square(double v)
{
	return v * v;
}

void beam_filter_init(const struct beam_config *cfg, struct beam_filter *k)
{
	*k = (struct beam_filter){ .p = { 1e18, 0, square(cfg->rate_unknown), 0, 0,
					  square(cfg->drift_unknown) },
				   .nis = 1,
				   .anchor_ns = INT64_MIN };
}

/* x and p over dt: the transition, before any noise. */
static void carry(double dt, double left, const double x[3], const double p[6], double xp[3],
		  double pp[6])
{
	double h = dt * dt / 2;
	/* rows of the transition times p */
	double a0 = p[0] + dt * p[1] + h * p[3], a1 = p[1] + dt * p[2] + h * p[4];
	double a2 = p[3] + dt * p[4] + h * p[5];
	double b1 = p[2] + dt * p[4], b2 = p[4] + dt * p[5];

	xp[0] = x[0] + dt * x[1] + h * x[2];
	xp[1] = x[1] + dt * x[2];
	xp[2] = left * x[2];
	pp[0] = a0 + dt * a1 + h * a2;
	pp[1] = a1 + dt * a2;
	pp[2] = b1 + dt * b2;
	pp[3] = left * a2;
	pp[4] = left * b2;
	pp[5] = left * left * p[5];
}

void beam_predict(const struct beam_config *cfg, const struct beam_filter *k, int64_t at_ns,
		  double xp[3], double pp[6])
{
	double dt = beam_seconds(k->at_ns, at_ns), a = fabs(dt), a2 = a * a, a3 = a2 * a;
	double qs = k->nis * square(cfg->noise_rate), qt = k->nis * square(cfg->noise_theta);
	double qd = k->nis * square(cfg->noise_drift);

	carry(dt, exp(-a / cfg->drift_memory), k->x, k->p, xp, pp);
	pp[0] += qt * a + qs * a3 / 3 + qd * a3 * a2 / 20;
	pp[1] += qs * a2 / 2 + qd * a2 * a2 / 8;
	pp[2] += qs * a + qd * a3 / 3;
	pp[3] += qd * a3 / 6;
	pp[4] += qd * a2 / 2;
	pp[5] += qd * a;
}

static bool first_of_node(const struct beam *b)
{
	return b->n_since_restart == 1 && b->filter.n < SLOW_TO_JUDGE;
}

bool beam_is_sure(const struct beam *b)
{
	return b->started && b->filter.n_sure > SURE_BUCKETS;
}

/* No bound may rest on a filter that knows little, or that has just been proven wrong. */
static bool is_lost(const struct beam *b)
{
	return b->filter.n_bad > 0 || b->floors.n_scale < ENOUGH_SCALE ||
	       b->filter.p[0] > square(b->cfg->sure);
}

static void keep(struct beam *b, const double xp[3], const double pp[6])
{
	struct beam_filter *k = &b->filter;
	const struct beam_envelope *e = &b->envelope;
	struct beam_segment *s = beam_now(b);

	k->n_sure = is_lost(b) ? 0 : k->n_sure + 1;
	*beam_knot(b, b->n_knots) = (struct beam_knot){
		.at_ns = k->at_ns,
		.theta = k->x[0],
		.rate = (float)k->x[1],
		.drift = (float)k->x[2],
		.sd = (float)sqrt(k->p[0]),
		.rate_sd = (float)sqrt(k->p[2]),
		.env_hi = (float)(e->hi - k->x[0]),
		.env_lo = (float)(e->lo - k->x[0]),
		.env_s = (float)beam_seconds(k->at_ns, e->at_ns),
		.n_clear = k->n_clear,
		.sure = beam_is_sure(b),
	};
	if (s->n_knots++ == 0)
		s->first_knot = b->n_knots;
	b->n_knots++;
	if (b->closed) {
		struct beam_closed c = { .at_ns = k->at_ns,
					 .segment = (uint32_t)(b->n_segments - 1),
					 .n_clear = k->n_clear,
					 .lost = k->n_sure == 0,
					 .first = !xp };

		memcpy(c.x, k->x, sizeof c.x);
		memcpy(c.p, k->p, sizeof c.p);
		if (xp) {
			memcpy(c.xp, xp, sizeof c.xp);
			memcpy(c.pp, pp, sizeof c.pp);
		}
		b->closed(b->closed_arg, &c);
	}
}

static void remember(struct beam_filter *k)
{
	for (int i = 0; i + 1 < BEAM_N_PAST; i++)
		k->past[i] = k->past[i + 1];
	k->past[BEAM_N_PAST - 1] = (struct beam_past){ { k->x[0], k->x[1] }, k->p[0], k->at_ns,
						       k->anchor_ns };
}

/* A queue outlives a step: where one path was queued before it and only one, the
 * other is taken for clear. Returns false when nothing tells. */
static bool guess(const struct beam *b, double width)
{
	const struct beam_filter *k = &b->filter;

	return k->queued_f != k->queued_r && width > 2 * (b->cfg->gate * b->floors.scale + b->cfg->slack);
}

/* The two minima are taken to the middle of the bucket by a rate that may be wrong. */
static double smear(const struct beam *b, double rate_variance)
{
	return SMEAR_PART * (double)b->cfg->bucket_ns * 1e-9 * fmax(0, sqrt(rate_variance) - KNOWN_RATE);
}

static void begin(struct beam *b, const struct beam_bucket *u, double hi, double lo)
{
	struct beam_filter *k = &b->filter;
	double width = fmax(hi - lo, 0);

	k->x[0] = (hi + lo) / 2;
	k->p[0] = square(b->floors.scale + width / 2);
	if (guess(b, width)) {
		k->x[0] = k->queued_f ? lo + b->floors.scale : hi - b->floors.scale;
		k->p[0] = square(b->floors.scale + GUESS_PART * width);
	}
	k->p[0] += square(smear(b, k->p[2]));
	k->at_ns = u->at_ns;
	k->n = 1;
	k->n_clear = 2;
	for (int i = 0; i < BEAM_N_PAST; i++)
		remember(k);
	keep(b, NULL, NULL);
}

/* A young segment's estimate rests on its own few buckets: both directions alike,
 * unless one is known to be queued. */
static void judge_young(struct beam *b, struct beam_gate *g, double width)
{
	struct beam_floors *d = &b->floors;
	unsigned n = b->filter.n;

	if (guess(b, width)) {
		g->clear_f = !b->filter.queued_f;
		g->clear_r = !b->filter.queued_r;
		g->guess = isfinite(width) ? GUESS_PART * width : 0;
		return;
	}
	g->clear_f = g->clear_r = width < 2 * g->lim || n < 5;
	if (n >= 5 && !g->clear_f && width < d->young_least)
		d->young_least = width;
	if (n >= 5 && !g->clear_f)
		d->n_young++;
	if (n == YOUNG - 1 && d->n_young > 18 && isfinite(d->young_least)) { /* a persistent excess: split evenly */
		beam_floors_add(d, d->young_least / 2, d->young_least / 2, b->filter.at_ns);
	}
	if (n == 1 || n == YOUNG - 1) {
		d->n_young = 0;
		d->young_least = INFINITY;
	}
}

/* What the clear directions measure; false when none does. */
static bool measure(struct beam *b, const struct beam_gate *g, int64_t at_ns, double hi, double lo,
		    double *z, double *variance)
{
	struct beam_floors *d = &b->floors;
	double learning = d->n_scale < BEAM_N_LEARN / 2 ? square(beam_noise_gate(d)) : 0;

	if (g->clear_f && g->clear_r) {
		double q = fmax(hi - lo, 0);

		*z = beam_noise_slope(b, at_ns, (hi + lo) / 2, q);
		beam_noise_variance(b, at_ns, *z);
		/* |z - theta| <= q/2 always: a tight bucket is worth more. */
		*variance = d->variance * pow(fmax(0.25, q / (2 * d->scale)), 1.5) +
			    square(LEAST_DEVIATION) + square(fmax(0, q - 4 * d->scale)) / 12;
		beam_noise_scale(b, q);
		if (hi < lo)
			beam_floors_undercut(b, lo - hi);
	} else if (g->clear_f) {
		*z = hi - d->scale;
		*variance = d->variance + square(d->scale) +
			    square(fmax(g->excess_f - 2 * d->scale, 0)) / 4;
	} else if (g->clear_r) {
		*z = lo + d->scale;
		*variance = d->variance + square(d->scale) +
			    square(fmax(g->excess_r - 2 * d->scale, 0)) / 4;
	} else {
		return false;
	}
	*variance = fmax(*variance, learning) + square(g->guess) + square(smear(b, g->pp[2]));
	return true;
}

static void follow(struct beam_filter *k, const struct beam_gate *g, double z, double variance)
{
	double y = z - g->xp[0], s = g->pp[0] + variance;
	double k0 = g->pp[0] / s, k1 = g->pp[1] / s, k2 = g->pp[3] / s;

	k->x[0] = g->xp[0] + k0 * y;
	k->x[1] = g->xp[1] + k1 * y;
	k->x[2] = g->xp[2] + k2 * y;
	k->p[0] = g->pp[0] - k0 * g->pp[0];
	k->p[1] = g->pp[1] - k0 * g->pp[1];
	k->p[2] = g->pp[2] - k1 * g->pp[1];
	k->p[3] = g->pp[3] - k0 * g->pp[3];
	k->p[4] = g->pp[4] - k1 * g->pp[3];
	k->p[5] = g->pp[5] - k2 * g->pp[3];
	/* The process noise follows the innovations: their size, and whether they go on
	 * in one direction, which white noise does not. */
	y /= sqrt(s);
	k->nis *= exp(SIZE_GAIN * (fmin(y * y, 16) - 1) +
		      RUN_GAIN * fmin(fmax(y * k->last_y, -4), 4));
	k->nis = fmin(fmax(k->nis, LEAST_NIS), MOST_NIS);
	k->last_y = y;
}

/* How far below zero an excess delay is: what no queue explains. */
static double contradiction(const struct beam_gate *g)
{
	return fmax(-g->excess_f, -g->excess_r);
}

/* true: the clock is not where it was. */
static bool judge(struct beam *b, struct beam_gate *g, int64_t at_ns)
{
	struct beam_filter *k = &b->filter;
	bool first = first_of_node(b);
	double by = contradiction(g);

	if (by <= g->lim) {
		k->n_bad = 0;
		return false;
	}
	k->n_bad++;
	if (by > (first ? 20 : 3) * g->lim || k->n_bad >= (first ? 4u : 2u))
		return true;
	if (first)
		k->p[0] += square(by);
	k->nis = fmin(k->nis * 4, MOST_NIS);
	beam_predict(b->cfg, k, at_ns, g->xp, g->pp);
	return false;
}

enum beam_verdict beam_update(struct beam *b, const struct beam_bucket *u)
{
	const struct beam_config *cfg = b->cfg;
	struct beam_filter *k = &b->filter;
	struct beam_floors *d = &b->floors;
	double hi = u->f - d->f, lo = u->g + d->r, z, variance;
	struct beam_gate g = { 0 };

	if (k->n == 0) {
		if (isfinite(hi) && isfinite(lo))
			begin(b, u, hi, lo);
		return BEAM_FOLLOWS;
	}
	beam_predict(cfg, k, u->at_ns, g.xp, g.pp);
	g.lim = cfg->gate * sqrt(g.pp[0] + square(beam_noise_gate(d))) + cfg->slack;
	g.excess_f = hi - g.xp[0];
	g.excess_r = g.xp[0] - lo;
	if (contradiction(&g) > g.lim) {
		double f = beam_floors_repent(b, u->at_ns, g.excess_f, true);
		double r = beam_floors_repent(b, u->at_ns, g.excess_r, false);

		g.excess_f += f;
		g.excess_r += r;
		hi += f;
		lo -= r;
	}
	if (judge(b, &g, u->at_ns))
		return BEAM_STEP;

	remember(k);
	g.clear_f = g.excess_f <= g.lim;
	g.clear_r = g.excess_r <= g.lim;
	if (b->n_since_restart > 1 && k->n < YOUNG)
		judge_young(b, &g, hi - lo);
	g.clear_f = g.clear_f && isfinite(hi); /* nothing came that way in this bucket */
	g.clear_r = g.clear_r && isfinite(lo);
	if (g.clear_f && g.clear_r && hi - lo <= 2 * (cfg->gate * d->scale + cfg->slack))
		k->anchor_ns = u->f_ns < u->g_ns ? u->f_ns : u->g_ns;
	if (measure(b, &g, u->at_ns, hi, lo, &z, &variance)) {
		follow(k, &g, z, variance);
	} else {
		memcpy(k->x, g.xp, sizeof k->x);
		memcpy(k->p, g.pp, sizeof k->p);
	}
	k->n_clear = (uint8_t)(g.clear_f + g.clear_r);
	beam_floors_window(d, g.excess_f, g.excess_r, g.clear_f, g.clear_r);
	beam_floors_raise(d, BEAM_N_WINDOW, u->at_ns);
	k->at_ns = u->at_ns;
	k->n++;
	keep(b, g.xp, g.pp);
	return BEAM_FOLLOWS;
}
