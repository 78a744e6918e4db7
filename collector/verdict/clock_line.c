/* clock_line.c - one pair of clocks from a sample of their calls: a line, or a step in it.
 *
 * The exits of both lie on a line; its slope is the drift, which a short sample
 * cannot tell from noise. A jump between two neighbours far beyond the usual
 * one, that stays, is a step. Hard bounds are opened by what a clock may drift.
 */
#include "clock_stamps.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define STAMP_NS 1000
#define N_DRIFT 8 /* calls below which nobody speaks of drift */
#define N_SIDE 3  /* calls on either side of a step */
#define LEAST_NS INT64_C(1000000)
#define Z 2.8
#define MAX_RATE (TIES_MAX_RATE_PPM * 1e-6)

struct points {
	double t[TIES_KEEP], d[TIES_KEEP], v[TIES_KEEP];
	const struct tie *of[TIES_KEEP];
	uint32_t n;
	int64_t t0_ns, d0_ns;
};

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double middle(double *v, uint32_t n)
{
	if (n == 0)
		return 0;
	qsort(v, n, sizeof *v, by_size);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static void collect(const struct tie_pair *p, struct points *f)
{
	f->n = 0;
	for (uint32_t i = 0; i < p->n; i++) {
		const struct tie *v = &p->v[i];

		if (f->n == 0) {
			f->t0_ns = v->at_ns;
			f->d0_ns = v->ahead_ns;
		}
		f->t[f->n] = (double)(v->at_ns - f->t0_ns);
		f->d[f->n] = (double)(v->ahead_ns - f->d0_ns);
		f->of[f->n++] = v;
	}
}

static double around(const struct points *f, uint32_t from, uint32_t n)
{
	double v[N_SIDE];

	for (uint32_t i = 0; i < n; i++)
		v[i] = f->d[from + i];
	return middle(v, n);
}

static bool excludes(const struct tie *a, const struct tie *b)
{
	int64_t slack_ns = (int64_t)(fabs((double)(b->at_ns - a->at_ns)) * MAX_RATE);

	return b->lo_ns - slack_ns > a->hi_ns || b->hi_ns + slack_ns < a->lo_ns;
}

static void find_step(const struct tie_pair *p, struct points *f, struct tie_judged *ret)
{
	double most = 0, usual, jump;
	uint32_t at = 0;

	if (f->n < 2 * N_SIDE)
		return;
	for (uint32_t i = 0; i + 1 < f->n; i++) {
		f->v[i] = fabs(f->d[i + 1] - f->d[i]);
		jump = f->v[i] - MAX_RATE * fabs(f->t[i + 1] - f->t[i]);
		if (jump > most && i + 1 >= N_SIDE && i + 1 + N_SIDE <= f->n) {
			most = jump;
			at = i + 1;
		}
	}
	usual = middle(f->v, f->n - 1);
	if (most < (double)LEAST_NS || most < 10 * usual)
		return;
	jump = around(f, at, N_SIDE) - around(f, at - N_SIDE, N_SIDE);
	if (fabs(jump) < most / 2)
		return; /* it came back: one odd call */
	ret->stepped = true;
	ret->step_ns = (int64_t)jump;
	/* The clock may have been set inside a call, which then says little. */
	ret->step_certain = excludes(f->of[at - 1], f->of[at]) ||
			    excludes(f->of[at - 1], f->of[at + 1]) ||
			    excludes(f->of[at - 2], f->of[at]);
	ret->before = p->n_anew == 1 ? p->before : *f->of[at - 1];
	ret->after = p->n_anew == 1 ? p->after : *f->of[at];
}

/* Least squares, without what lies far off. */
static void fit(struct points *f, struct tie_judged *ret)
{
	double mean_t = 0, mean_d = 0, s2 = 0, st = 0, spread, mid;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < f->n; i++)
		f->v[i] = f->d[i];
	mid = middle(f->v, f->n);
	for (uint32_t i = 0; i < f->n; i++)
		f->v[i] = fabs(f->d[i] - mid);
	spread = STAMP_NS + 1.5 * middle(f->v, f->n);
	for (uint32_t i = 0; i < f->n; i++)
		if (fabs(f->d[i] - mid) <= 6 * spread) {
			f->t[kept] = f->t[i];
			f->d[kept] = f->d[i];
			mean_t += f->t[kept];
			mean_d += f->d[kept++];
		}
	mean_t /= kept ? kept : 1;
	mean_d /= kept ? kept : 1;
	for (uint32_t i = 0; i < kept; i++) {
		s2 += (f->t[i] - mean_t) * (f->t[i] - mean_t);
		st += (f->t[i] - mean_t) * (f->d[i] - mean_d);
	}
	ret->drift = s2 > 0 ? st / s2 : 0;
	for (uint32_t i = 0; i < kept; i++)
		f->v[i] = fabs(f->d[i] - mean_d - ret->drift * (f->t[i] - mean_t));
	spread = STAMP_NS + 1.5 * middle(f->v, kept);
	ret->drift_sd = s2 > 0 ? spread / sqrt(s2) : INFINITY;
	ret->drift_known = kept >= N_DRIFT && 3 * ret->drift_sd <= MAX_RATE / 4;
	if (!ret->drift_known)
		ret->drift = 0;
	ret->at_ns = f->t0_ns + (int64_t)mean_t;
	ret->ahead_ns = f->d0_ns + (int64_t)mean_d;
	ret->soft_ns = (int64_t)(Z * (spread / sqrt(kept ? kept : 1) + STAMP_NS));
}

static void bound(const struct tie_pair *p, struct tie_judged *ret)
{
	ret->lo_ns = INT64_MIN;
	ret->hi_ns = INT64_MAX;
	for (uint32_t i = 0; i < p->n; i++) {
		const struct tie *v = &p->v[i];
		int64_t slack_ns = (int64_t)(fabs((double)(v->at_ns - ret->at_ns)) * MAX_RATE);

		if (v->lo_ns - slack_ns > ret->lo_ns)
			ret->lo_ns = v->lo_ns - slack_ns;
		if (v->hi_ns + slack_ns < ret->hi_ns)
			ret->hi_ns = v->hi_ns + slack_ns;
	}
}

int tie_judge(const struct tie_pair *p, struct tie_judged *ret)
{
	struct points *f = calloc(1, sizeof *f);
	uint32_t n = 0;

	*ret = (struct tie_judged){ 0 };
	if (!f)
		return -ENOMEM;
	collect(p, f);
	find_step(p, f, ret);
	fit(f, ret);
	bound(p, ret);
	for (uint32_t i = 0; i < p->n; i++)
		if (p->v[i].seq != p->first.seq || p->v[i].group != p->first.group)
			f->v[n++] = fabs((double)(p->v[i].late_ns - ret->ahead_ns) -
					 ret->drift * (double)(p->v[i].at_ns - ret->at_ns));
	ret->late_ns = (int64_t)middle(f->v, n);
	free(f);
	return 0;
}
