#include "clock_peers.h"
#include "../../collector/align/margin.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SLOPE 2e6 /* ns/s */
#define WINDOW_S 10.0
#define N_CHRONY 64

struct mid {
	double x, y, delay; /* s, ns, ns */
};

/* Everything relative to the first sample. */
struct view {
	struct mid *mids; /* by x */
	struct margin_point *hi, *lo; /* by x; lo negated */
	double *q; /* queries */
	size_t n, n_q;
	int64_t base_ns;
};

/* Interpolated between knots, straight on beyond them. */
struct path {
	double *x, *y;
	size_t n;
};

const char *clock_peer_title(enum clock_peer p)
{
	static const char *const titles[CLOCK_N_PEERS] = {
		"naive midpoint", "NTP min-of-8", "regression, all points", "two-point",
		"convex hull, bisector", "max-margin per 10 s", "chrony-like, causal"
	};

	return titles[p];
}

static int by_x(const void *pa, const void *pb)
{
	const struct mid *a = pa, *b = pb;

	return (a->x > b->x) - (a->x < b->x);
}

static void close_view(struct view *v)
{
	free(v->mids);
	free(v->hi);
	free(v->lo);
	free(v->q);
}

static int open_view(struct view *v, const struct clock_world *w)
{
	int64_t origin = w->samples[0].t1_ns;

	*v = (struct view){ .n = w->n_samples, .n_q = w->n_queries };
	v->mids = malloc(v->n * sizeof *v->mids);
	v->hi = malloc(v->n * sizeof *v->hi);
	v->lo = malloc(v->n * sizeof *v->lo);
	v->q = malloc(v->n_q * sizeof *v->q);
	if (!v->mids || !v->hi || !v->lo || !v->q) {
		close_view(v);
		return -ENOMEM;
	}
	v->base_ns = w->samples[0].g_ns;
	for (size_t i = 0; i < v->n; i++) {
		const struct beam_sample *s = &w->samples[i];
		double a = (double)(s->t1_ns - origin) * 1e-9, b = (double)(s->t4_ns - origin) * 1e-9;
		double f = (double)(s->f_ns - v->base_ns), g = (double)(s->g_ns - v->base_ns);

		v->mids[i] = (struct mid){ (a + b) / 2, (f + g) / 2, f - g };
		v->hi[i] = (struct margin_point){ a, f };
		v->lo[i] = (struct margin_point){ b, -g };
	}
	qsort(v->mids, v->n, sizeof *v->mids, by_x);
	margin_sort(v->hi, v->n);
	margin_sort(v->lo, v->n);
	for (size_t i = 0; i < v->n_q; i++)
		v->q[i] = (double)(w->queries[i].host_ns - origin) * 1e-9;
	return 0;
}

static size_t before(const double *x, size_t n, double q)
{
	size_t from = 0;

	while (n - from > 1) {
		size_t m = from + (n - from) / 2;

		if (x[m] <= q)
			from = m;
		else
			n = m;
	}
	return from;
}

static double on_path(const struct path *p, double q, bool straight)
{
	size_t i = before(p->x, p->n, q);

	if (p->n == 1 || (!straight && (q <= p->x[0] || i + 1 == p->n)))
		return p->y[i];
	if (i + 1 == p->n)
		i--;
	return p->y[i] + (p->y[i + 1] - p->y[i]) * (q - p->x[i]) / (p->x[i + 1] - p->x[i]);
}

static void answer_path(const struct view *v, const struct path *p, bool straight, double *out)
{
	for (size_t i = 0; i < v->n_q; i++)
		out[i] = on_path(p, v->q[i], straight);
}

static void answer_line(const struct view *v, double at, double slope, double x0, double *out)
{
	for (size_t i = 0; i < v->n_q; i++)
		out[i] = at + slope * (v->q[i] - x0);
}

static void midpoint(const struct view *v, struct path *p, double *out)
{
	for (size_t i = 0; i < v->n; i++) {
		p->x[i] = v->mids[i].x;
		p->y[i] = v->mids[i].y;
	}
	p->n = v->n;
	answer_path(v, p, false, out);
}

static void ntp(const struct view *v, struct path *p, double *out, double *half)
{
	size_t *of = malloc(v->n * sizeof *of), last = SIZE_MAX;

	p->n = 0;
	for (size_t i = 0; of && i < v->n; i++) {
		size_t best = i < 7 ? 0 : i - 7;

		for (size_t k = best + 1; k <= i; k++)
			if (v->mids[k].delay < v->mids[best].delay)
				best = k;
		if (last != SIZE_MAX && best <= last)
			continue;
		last = of[p->n] = best;
		p->x[p->n] = v->mids[best].x;
		p->y[p->n++] = v->mids[best].y;
	}
	answer_path(v, p, false, out);
	for (size_t i = 0; of && i < v->n_q; i++) {
		size_t k = before(p->x, p->n, v->q[i]);

		if (k + 1 < p->n && fabs(p->x[k + 1] - v->q[i]) < fabs(p->x[k] - v->q[i]))
			k++;
		half[i] = v->mids[of[k]].delay / 2 + 15e3 * fabs(p->x[k] - v->q[i]) + 1e3 +
			  fabs(out[i] - p->y[k]);
	}
	free(of);
}

static void regression(const struct view *v, double *out)
{
	double mx = 0, my = 0, xx = 0, xy = 0;

	for (size_t i = 0; i < v->n; i++) {
		mx += v->mids[i].x / (double)v->n;
		my += v->mids[i].y / (double)v->n;
	}
	for (size_t i = 0; i < v->n; i++) {
		xx += (v->mids[i].x - mx) * (v->mids[i].x - mx);
		xy += (v->mids[i].x - mx) * (v->mids[i].y - my);
	}
	answer_line(v, my, xy / xx, mx, out);
}

static size_t least_delay(const struct mid *m, size_t from, size_t to)
{
	size_t best = from;

	for (size_t i = from + 1; i < to; i++)
		if (m[i].delay < m[best].delay)
			best = i;
	return best;
}

static void two_point(const struct view *v, double *out)
{
	const struct mid *a = &v->mids[least_delay(v->mids, 0, 10)];
	const struct mid *b = &v->mids[least_delay(v->mids, v->n - 10, v->n)];

	answer_line(v, a->y, (b->y - a->y) / (b->x - a->x), a->x, out);
}

static void hull(const struct view *v, double *out)
{
	struct margin_line best, a, b;
	size_t n_hi = margin_lower_hull(v->hi, v->n), n_lo = margin_lower_hull(v->lo, v->n);

	if (margin_widest(v->hi, n_hi, v->lo, n_lo, MAX_SLOPE, &best)) {
		margin_extremes(v->hi, n_hi, v->lo, n_lo, MAX_SLOPE, best.slope, &a, &b);
		best.at = (a.at + b.at) / 2;
		best.slope = (a.slope + b.slope) / 2;
	}
	answer_line(v, best.at, best.slope, 0, out);
}

/* Those of v that lie in the window, relative to its middle. */
static size_t cut(const struct margin_point *v, size_t n, double from, double to,
		  struct margin_point *out)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++)
		if (v[i].x >= from && v[i].x < to)
			out[k++] = (struct margin_point){ v[i].x - (from + to) / 2, v[i].y };
	return k;
}

static int margins(const struct view *v, struct path *p, double *out)
{
	struct margin_point *hi = malloc(v->n * sizeof *hi), *lo = malloc(v->n * sizeof *lo);

	p->n = 0;
	for (double t = 0; hi && lo && t < v->mids[v->n - 1].x; t += WINDOW_S) {
		size_t n_hi = cut(v->hi, v->n, t, t + WINDOW_S, hi);
		size_t n_lo = cut(v->lo, v->n, t, t + WINDOW_S, lo);
		struct margin_line line;

		if (n_hi < 4 || n_lo < 4)
			continue;
		margin_widest(hi, margin_lower_hull(hi, n_hi), lo, margin_lower_hull(lo, n_lo),
			      MAX_SLOPE, &line);
		p->x[p->n] = t + WINDOW_S / 2;
		p->y[p->n++] = line.at;
	}
	free(hi);
	free(lo);
	answer_path(v, p, true, out);
	return hi && lo ? 0 : -ENOMEM;
}

/* ---- a regression that shortens its own memory ---- */

struct fit {
	double at, slope; /* at the newest point */
	size_t n_runs;
};

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static struct fit weighted(const struct mid *m, size_t n)
{
	double delays[N_CHRONY], w[N_CHRONY], sum = 0, ux = 0, uy = 0, xx = 0, xy = 0, sd, now = m[n - 1].x;
	struct fit f;
	bool up = false;

	for (size_t i = 0; i < n; i++)
		delays[i] = m[i].delay / 2;
	qsort(delays, n, sizeof *delays, ascending);
	sd = ((n % 2 ? delays[n / 2] : (delays[n / 2 - 1] + delays[n / 2]) / 2) - delays[0]) / 0.7;
	sd = fmin(fmax(sd, 100), fmax(delays[0], 100));
	for (size_t i = 0; i < n; i++) {
		double k = 1 + fmax(m[i].delay / 2 - delays[0] - 100, 0) / sd;

		w[i] = 1 / (k * k);
		sum += w[i];
		ux += w[i] * (m[i].x - now);
		uy += w[i] * m[i].y;
	}
	ux /= sum;
	uy /= sum;
	for (size_t i = 0; i < n; i++) {
		double d = m[i].x - now - ux;

		xx += w[i] * d * d;
		xy += w[i] * d * (m[i].y - uy);
	}
	f.slope = xy / xx;
	f.at = uy - f.slope * ux;
	f.n_runs = 1;
	for (size_t i = 0; i < n; i++) {
		bool now_up = m[i].y - f.at - f.slope * (m[i].x - now) > 0;

		f.n_runs += i > 0 && now_up != up;
		up = now_up;
	}
	return f;
}

/* Fewer sign changes than this are not chance, at one in twenty. */
static double least_runs(size_t n)
{
	double m = 1 + ((double)n - 1) / 2;

	return n < 8 ? 0 : m - 1.645 * sqrt(((double)n - 1) / 4);
}

static int chrony(const struct view *v, double *out)
{
	struct mid *best = malloc(v->n * sizeof *best);
	double *at = malloc(3 * v->n * sizeof *at), *y = at + v->n, *slope = y + v->n;
	size_t n = 0, from = 0;

	if (!best || !at) {
		free(best);
		free(at);
		return -ENOMEM;
	}
	for (size_t i = 0; i < v->n;) {
		size_t k = i;

		while (k < v->n && floor(v->mids[k].x) <= floor(v->mids[i].x))
			k++;
		best[n++] = v->mids[least_delay(v->mids, i, k)];
		i = k;
	}
	for (size_t i = 0; i < n; i++) {
		struct fit f = { best[i].y, 0, 0 };

		if (i + 1 > from + N_CHRONY)
			from = i + 1 - N_CHRONY;
		while (i - from >= 2) {
			f = weighted(best + from, i + 1 - from);
			if (i - from <= 2 || (double)f.n_runs > least_runs(i + 1 - from))
				break;
			from++;
		}
		at[i] = best[i].x;
		y[i] = f.at;
		slope[i] = f.slope;
	}
	for (size_t i = 0; i < v->n_q; i++) {
		size_t k = before(at, n, v->q[i]);

		out[i] = y[k] + slope[k] * (v->q[i] - at[k]);
	}
	free(best);
	free(at);
	return 0;
}

int clock_peer_run(enum clock_peer p, const struct clock_world *w, double *error, double *half)
{
	struct path path = { 0 };
	struct view v;
	int r = open_view(&v, w);

	if (r < 0)
		return r;
	path.x = malloc(2 * v.n * sizeof *path.x);
	if (!path.x) {
		close_view(&v);
		return -ENOMEM;
	}
	path.y = path.x + v.n;
	for (size_t i = 0; i < v.n_q; i++)
		half[i] = NAN;
	switch (p) {
	case PEER_MIDPOINT:
		midpoint(&v, &path, error);
		break;
	case PEER_NTP:
		ntp(&v, &path, error, half);
		break;
	case PEER_REGRESSION:
		regression(&v, error);
		break;
	case PEER_TWO_POINT:
		two_point(&v, error);
		break;
	case PEER_HULL:
		hull(&v, error);
		break;
	case PEER_MARGIN:
		r = margins(&v, &path, error);
		break;
	case PEER_CHRONY:
		r = chrony(&v, error);
		break;
	case CLOCK_N_PEERS:
		break;
	}
	for (size_t i = 0; i < v.n_q; i++)
		error[i] -= (double)(w->queries[i].theta_ns - v.base_ns);
	free(path.x);
	close_view(&v);
	return r;
}
