#include "pace_why.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_STEPS 8
#define UNEVEN 0.03 /* amounts that differ by less are equal */

/* What a rank said in each step of the window, summed; NaN where nothing was. late: what
 * is said in the step before it, as loaders do that fetch ahead. The last steps have an
 * end too: nothing is said behind them. Returns how many steps have an amount. */
static uint32_t amounts(struct rules *r, uint32_t rank, enum measure what, bool late, double *out)
{
	const struct pace *p = &r->pace;
	uint32_t first = pace_first(p), proc = pace_proc(p, rank), i = 0, n = 0;
	const struct measure_series *s =
		proc == UINT32_MAX ? NULL : measures_of(&r->measures, proc, what);

	for (uint32_t c = first; c < p->n_steps; c++)
		out[c - first] = (double)NAN;
	if (r->by_calls) { /* rounds begin on the device, by when the host is far ahead */
		uint32_t n_more = s ? measure_count(s) - p->n_steps : 0;

		if (!s || late || measure_count(s) < p->n_steps || n_more > 1)
			return 0;
		for (; i < p->n_steps - first; i++)
			out[i] = s->v[measure_slot(s, first + i + n_more)].value;
		return i;
	}
	for (uint32_t c = first; s && c < p->n_steps; c++) {
		const struct pace_cell *x = pace_cell(p, c, rank);
		int64_t end_ns = INT64_MAX;

		if (x->self < 0 || x->proc != proc)
			continue;
		if (c + 1 < p->n_steps && pace_cell(p, c + 1, rank)->self >= 0)
			end_ns = pace_cell(p, c + 1, rank)->loop_ns;
		while (i < measure_count(s) && s->v[measure_slot(s, i)].at_ns < x->loop_ns)
			i++;
		for (; i < measure_count(s) && s->v[measure_slot(s, i)].at_ns < end_ns; i++) {
			uint32_t to = c - first + late;

			if (to >= p->n_steps - first)
				break;
			n += isnan(out[to]) ? 1 : 0;
			out[to] = (isnan(out[to]) ? 0 : out[to]) + s->v[measure_slot(s, i)].value;
		}
	}
	return n;
}

/* What one step tells of it: sums over ranks of the deviations of amounts and self times
 * from the step's mean, relative to it. */
struct regress {
	double xx, xy, yy, lost, uneven, dur, most, mean;
	uint32_t n;
};

static bool regress_step(const struct pace *p, const double *a, uint32_t n_steps, uint32_t i, struct regress *ret)
{
	double sum_a = 0, sum_s = 0, most_s = 0;

	*ret = (struct regress){ .most = 0 };
	for (uint32_t k = 0; k < p->n_ranks; k++) {
		const struct pace_cell *x = pace_cell(p, pace_first(p) + i, k);

		if (x->self < 0 || isnan(a[(size_t)k * n_steps + i]))
			continue;
		sum_a += a[(size_t)k * n_steps + i];
		sum_s += x->self;
		ret->most = fmax(ret->most, a[(size_t)k * n_steps + i]);
		most_s = fmax(most_s, x->self);
		ret->dur += x->dur;
		ret->n++;
	}
	if (ret->n < 2 || sum_a <= 0 || sum_s <= 0)
		return false;
	ret->mean = sum_a / ret->n;
	for (uint32_t k = 0; k < p->n_ranks; k++) {
		const struct pace_cell *x = pace_cell(p, pace_first(p) + i, k);
		double dx = a[(size_t)k * n_steps + i] / ret->mean - 1;
		double dy = x->self / (sum_s / ret->n) - 1;

		if (x->self < 0 || isnan(dx))
			continue;
		ret->xx += dx * dx;
		ret->xy += dx * dy;
		ret->yy += dy * dy;
	}
	ret->lost = (most_s - sum_s / ret->n) * ret->n;
	ret->uneven = ret->most / ret->mean - 1;
	return true;
}

/* How far self times are from being as the amounts. */
static double misfit(const struct regress *v)
{
	return v->xx - 2 * v->xy + v->yy;
}

/* Over all steps but the tenth that fits worst, as those in which somebody saves: what a few steps
 * have besides is no matter of work. most and mean of the amounts by step, NaN where they are not
 * there. tmp: n_steps. */
static void regress(struct rules *r, const double *a, uint32_t n_steps, double *most, double *mean, double *tmp,
		    struct pace_work *w)
{
	const struct pace *p = &r->pace;
	struct regress sum = { 0 }, v;
	uint32_t n = 0;
	double limit;

	for (uint32_t i = 0; i < n_steps; i++) {
		bool known = regress_step(p, a, n_steps, i, &v);

		most[i] = known ? v.most : (double)NAN;
		mean[i] = known ? v.mean : (double)NAN;
		if (known)
			tmp[n++] = misfit(&v);
	}
	w->n = n;
	if (n < LEAST_STEPS)
		return;
	limit = pace_quantile(tmp, n, 0.9);
	n = 0;
	for (uint32_t i = 0; i < n_steps; i++) {
		if (!regress_step(p, a, n_steps, i, &v) || misfit(&v) > limit)
			continue;
		sum.xx += v.xx;
		sum.xy += v.xy;
		sum.yy += v.yy;
		sum.lost += v.lost;
		sum.uneven += v.uneven;
		sum.dur += v.dur;
		n++;
	}
	if (sum.xx <= 0 || sum.yy <= 0)
		return;
	w->uneven = sum.uneven / n;
	w->lost = sum.lost / sum.dur;
	w->r2 = sum.xy > 0 ? sum.xy * sum.xy / (sum.xx * sum.yy) : 0;
	w->known = w->uneven >= UNEVEN;
}

/* Who has more than nine tenths of the most loaded in four of five steps, if that is
 * less than half of the ranks. */
static void find_loaded(const struct pace *p, const double *a, uint32_t n_steps, const double *most,
			const double *mean, struct pace_work *w)
{
	for (uint32_t k = 0; k < p->n_ranks; k++) {
		uint32_t n = 0, n_most = 0;

		for (uint32_t i = 0; i < n_steps; i++) {
			double mine = a[(size_t)k * n_steps + i];

			if (isnan(mine) || isnan(most[i]))
				continue;
			n++;
			n_most += mine >= 0.9 * most[i] && mine > (1 + UNEVEN) * mean[i];
		}
		if (n >= LEAST_STEPS && 5 * n_most >= 4 * n && w->n_ranks < PACE_MAX_RANKS)
			w->ranks[w->n_ranks++] = (int32_t)k;
	}
	if (2 * w->n_ranks > p->n_ranks)
		w->n_ranks = 0;
}

struct pace_work pace_work_of(struct rules *r)
{
	static const enum measure measures[] = { MEASURE_SAMPLES, MEASURE_TOKENS };
	const struct pace *p = &r->pace;
	uint32_t n_steps = p->n_steps - pace_first(p);
	struct pace_work best = { 0 };
	double *a, *most;

	if (p->n_steps < LEAST_STEPS || r->measures.n[MEASURE_SAMPLES] + r->measures.n[MEASURE_TOKENS] == 0)
		return best;
	a = malloc(((size_t)p->n_ranks + 3) * n_steps * sizeof *a);
	for (unsigned k = 0; a && k < 4; k++) {
		struct pace_work w = { .what = measures[k / 2], .first = pace_first(p) };
		uint32_t n_ranks = 0;

		for (uint32_t rank = 0; rank < p->n_ranks; rank++)
			n_ranks += amounts(r, rank, w.what, k % 2, a + (size_t)rank * n_steps) > 0;
		if (2 * n_ranks <= p->n_ranks)
			continue;
		most = a + (size_t)p->n_ranks * n_steps;
		regress(r, a, n_steps, most, most + n_steps, most + 2 * (size_t)n_steps, &w);
		/* Samples that differ are the reason of tokens that do. */
		if (!w.known || (best.known && (w.r2 <= best.r2 || (w.what != best.what && best.r2 >= 0.7))))
			continue;
		find_loaded(p, a, n_steps, most, most + n_steps, &w);
		best = w;
	}
	free(a);
	return best;
}

double pace_work_growth(struct rules *r, const struct pace_change *c)
{
	static const enum measure measures[] = { MEASURE_SAMPLES, MEASURE_TOKENS };
	const struct pace *p = &r->pace;
	uint32_t first = pace_first(p), n_steps = p->n_steps - first;
	double *a = malloc(3 * ((size_t)n_steps + 1) * sizeof *a), most = 0;

	for (unsigned k = 0; a && k < 2; k++) {
		double *then = a + n_steps, *now = then + n_steps;
		uint32_t n_then = 0, n_now = 0;

		amounts(r, 0, measures[k], false, a);
		for (uint32_t i = 0; i < n_steps; i++)
			if (!isnan(a[i]))
				*(first + i < c->onset ? then + n_then++ : now + n_now++) = a[i];
		if (n_then && n_now && pace_quantile(then, n_then, 0.5) > 0)
			most = fmax(most, pace_quantile(now, n_now, 0.5) /
						  pace_quantile(then, n_then, 0.5) - 1);
	}
	free(a);
	return most;
}

/* ---- input ---- */

struct pace_input pace_input_of(struct rules *r, uint32_t from)
{
	struct pace *p = &r->pace;
	uint32_t first = pace_first(p), n_steps = p->n_steps - first;
	struct pace_input in = { .n_all = p->n_ranks };
	double *of_rank = malloc((p->n_ranks + 3 * (size_t)n_steps) * sizeof *of_rank);
	double *load, *v;

	if (!of_rank || p->n_steps - from < LEAST_STEPS) {
		free(of_rank);
		return in;
	}
	load = of_rank + p->n_ranks;
	v = load + n_steps;
	for (uint32_t k = 0; k < p->n_ranks; k++) {
		uint32_t n = 0, n_load = amounts(r, k, MEASURE_LOAD_MS, false, load);
		double dur, waited;

		for (uint32_t c = from; c < p->n_steps; c++) {
			const struct pace_cell *x = pace_cell(p, c, k);
			double ms = load[c - first], host = x->host;

			if (x->self < 0)
				continue;
			/* Named work while the device idles, as long as loading took. */
			if (!isnan(ms))
				host = fmin(host, ms * 1e6);
			v[n] = fmax(x->input, n_load && !isnan(ms) ? host : 0);
			v[n_steps + n++] = x->dur;
		}
		waited = pace_quantile(v, n, 0.5);
		dur = pace_quantile(v + n_steps, n, 0.5);
		of_rank[k] = waited;
		in.measured |= n_load > 0;
		if (waited > in.ns) {
			in.ns = waited;
			in.step_ns = dur;
		}
	}
	for (uint32_t k = 0; k < p->n_ranks; k++)
		if (of_rank[k] > in.ns / 2 && in.n_ranks < PACE_MAX_RANKS)
			in.ranks[in.n_ranks++] = (int32_t)k;
	free(of_rank);
	return in;
}

double pace_load_more_ns(struct rules *r, const struct pace_change *c)
{
	struct pace *p = &r->pace;
	uint32_t first = pace_first(p), n_steps = p->n_steps - first, n_now = 0, n_then = 0;
	double *load = malloc(3 * ((size_t)n_steps + 1) * sizeof *load), *now, *then, more = 0;

	if (!load)
		return 0;
	now = load + n_steps;
	then = now + n_steps;
	amounts(r, c->kind == PACE_ALL ? 0 : (uint32_t)c->ranks[0], MEASURE_LOAD_MS, false, load);
	for (uint32_t i = 0; i < n_steps; i++) {
		if (isnan(load[i]))
			continue;
		if (c->kind == PACE_ALWAYS || first + i >= c->onset)
			now[n_now++] = load[i] * 1e6;
		else
			then[n_then++] = load[i] * 1e6;
	}
	for (uint32_t k = 0; c->kind == PACE_ALWAYS && k < p->n_ranks && n_then == 0; k++) {
		if (pace_holds(c, k) || amounts(r, k, MEASURE_LOAD_MS, false, load) == 0)
			continue;
		for (uint32_t i = 0; i < n_steps; i++)
			if (!isnan(load[i]))
				then[n_then++] = load[i] * 1e6;
	}
	if (n_now > 0)
		more = pace_quantile(now, n_now, 0.5) - (n_then ? pace_quantile(then, n_then, 0.5) : 0);
	free(load);
	return more > 0 ? more : 0;
}
