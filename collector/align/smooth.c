/* smooth.c - the pass backward over the filter's buckets, and the curve through them. */
#include "hindsight_internal.h"

#include <math.h>
#include <string.h>

#define AROUND 4

typedef double matrix[3][3];

static void unpack(const double p[6], matrix m)
{
	m[0][0] = p[0];
	m[0][1] = m[1][0] = p[1];
	m[1][1] = p[2];
	m[0][2] = m[2][0] = p[3];
	m[1][2] = m[2][1] = p[4];
	m[2][2] = p[5];
}

static void multiply(matrix a, matrix b, matrix ret)
{
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < 3; k++)
			ret[i][k] = a[i][0] * b[0][k] + a[i][1] * b[1][k] + a[i][2] * b[2][k];
}

static void invert(matrix m, matrix ret)
{
	double det = 0;

	for (int i = 0; i < 3; i++)
		for (int k = 0; k < 3; k++) {
			int a = (i + 1) % 3, b = (i + 2) % 3, c = (k + 1) % 3, d = (k + 2) % 3;

			ret[k][i] = m[a][c] * m[b][d] - m[a][d] * m[b][c];
		}
	for (int k = 0; k < 3; k++)
		det += m[0][k] * ret[k][0];
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < 3; k++)
			ret[i][k] /= det;
}

/* One step of the smoother: a bucket corrected by what its next one became. */
static void correct(const struct beam_config *cfg, const struct beam_closed *a,
		    const struct beam_closed *next, double x[3], double p[6])
{
	double dt = beam_seconds(a->at_ns, next->at_ns), d[3];
	/* the transition, transposed */
	matrix ft = { { 1, 0, 0 }, { dt, 1, 0 }, { dt * dt / 2, dt, exp(-dt / cfg->drift_memory) } };
	matrix m, pa, pp, inverse, gain, e, ge;

	unpack(a->p, pa);
	unpack(next->pp, pp);
	unpack(p, e);
	multiply(pa, ft, m);
	invert(pp, inverse);
	multiply(m, inverse, gain);
	for (int i = 0; i < 3; i++) {
		d[i] = x[i] - next->xp[i];
		for (int k = 0; k < 3; k++)
			e[i][k] -= pp[i][k];
	}
	multiply(gain, e, ge);
	for (int i = 0; i < 3; i++) {
		x[i] = a->x[i] + gain[i][0] * d[0] + gain[i][1] * d[1] + gain[i][2] * d[2];
		for (int k = 0; k < 3; k++)
			pa[i][k] += ge[i][0] * gain[k][0] + ge[i][1] * gain[k][1] + ge[i][2] * gain[k][2];
	}
	p[0] = pa[0][0];
	p[1] = pa[0][1];
	p[2] = pa[1][1];
	p[3] = pa[0][2];
	p[4] = pa[1][2];
	p[5] = pa[2][2];
}

/* How far the curve's rate swings between two buckets. */
static double unrest(const struct hind_knot *a, const struct hind_knot *c)
{
	double chord = (c->theta - a->theta) / beam_seconds(a->at_ns, c->at_ns);

	return fmax(fabs(c->rate - a->rate), 2 * fabs(chord - (a->rate + c->rate) / 2));
}

/* Buckets of one segment. */
void hind_smooth(const struct beam_config *cfg, const struct beam_closed *c, size_t n,
		 struct hind_knot *out)
{
	double x[3], p[6];

	for (size_t i = n; i-- > 0;) {
		if (i == n - 1) {
			memcpy(x, c[i].x, sizeof x);
			memcpy(p, c[i].p, sizeof p);
		} else {
			correct(cfg, &c[i], &c[i + 1], x, p);
		}
		out[i] = (struct hind_knot){ .at_ns = c[i].at_ns,
					     .theta = x[0],
					     .rate = x[1],
					     .sd = sqrt(fmax(p[0], 0)),
					     .rate_sd = sqrt(fmax(p[2], 0)),
					     .n_clear = c[i].n_clear };
	}
	for (size_t i = 0; i < n; i++) {
		size_t from = i > AROUND ? i - AROUND : 0, to = i + AROUND < n ? i + AROUND : n - 1;

		for (size_t k = from; k <= to; k++) {
			if (k > from)
				out[i].unrest = fmax(out[i].unrest, unrest(&out[k - 1], &out[k]));
			/* A filter that was lost did not see what the rate did. */
			if (c[k].lost)
				out[i].unrest = INFINITY;
		}
	}
}

size_t hind_find(const struct hind_knot *k, size_t n, int64_t t_ns)
{
	size_t from = 0;

	while (n - from > 1) {
		size_t m = from + (n - from) / 2;

		if (k[m].at_ns <= t_ns)
			from = m;
		else
			n = m;
	}
	return from;
}

double hind_curve(const struct hind_knot *k, size_t n, int64_t t_ns, double *rate)
{
	size_t i = hind_find(k, n, t_ns);
	const struct hind_knot *a = &k[i], *c = &k[i + 1];
	double h, u, v;

	if (t_ns < a->at_ns || i + 1 == n) {
		*rate = a->rate;
		return a->theta + a->rate * beam_seconds(a->at_ns, t_ns);
	}
	h = beam_seconds(a->at_ns, c->at_ns);
	u = beam_seconds(a->at_ns, t_ns) / h;
	v = 1 - u;
	*rate = 6 * u * v * (c->theta - a->theta) / h + v * (1 - 3 * u) * a->rate +
		u * (3 * u - 2) * c->rate;
	return (1 + 2 * u) * v * v * a->theta + u * v * v * h * a->rate +
	       u * u * (3 - 2 * u) * c->theta + u * u * (u - 1) * h * c->rate;
}
