/* smooth.c - the pass backward over the filter's buckets, and the curve through them. */
#include "hindsight_internal.h"

#include <math.h>
#include <string.h>

#define AROUND 4

/* One step of the smoother: a bucket corrected by what its next one became. */
static void correct(const struct beam_closed *a, const struct beam_closed *next, double x[2],
		    double p[3])
{
	double dt = beam_seconds(a->at_ns, next->at_ns);
	double det = next->pp[0] * next->pp[2] - next->pp[1] * next->pp[1];
	/* a->p times the transposed transition */
	double m00 = a->p[0] + dt * a->p[1], m01 = a->p[1];
	double m10 = a->p[1] + dt * a->p[2], m11 = a->p[2];
	double c00 = (m00 * next->pp[2] - m01 * next->pp[1]) / det;
	double c01 = (m01 * next->pp[0] - m00 * next->pp[1]) / det;
	double c10 = (m10 * next->pp[2] - m11 * next->pp[1]) / det;
	double c11 = (m11 * next->pp[0] - m10 * next->pp[1]) / det;
	double d0 = x[0] - next->xp[0], d1 = x[1] - next->xp[1];
	double e00 = p[0] - next->pp[0], e01 = p[1] - next->pp[1], e11 = p[2] - next->pp[2];

	x[0] = a->x[0] + c00 * d0 + c01 * d1;
	x[1] = a->x[1] + c10 * d0 + c11 * d1;
	p[0] = a->p[0] + c00 * (c00 * e00 + c01 * e01) + c01 * (c00 * e01 + c01 * e11);
	p[1] = a->p[1] + c10 * (c00 * e00 + c01 * e01) + c11 * (c00 * e01 + c01 * e11);
	p[2] = a->p[2] + c10 * (c10 * e00 + c11 * e01) + c11 * (c10 * e01 + c11 * e11);
}

/* How far the curve's rate swings between two buckets. */
static double unrest(const struct hind_knot *a, const struct hind_knot *c)
{
	double chord = (c->theta - a->theta) / beam_seconds(a->at_ns, c->at_ns);

	return fmax(fabs(c->rate - a->rate), 2 * fabs(chord - (a->rate + c->rate) / 2));
}

/* Buckets of one segment. */
void hind_smooth(const struct beam_closed *c, size_t n, struct hind_knot *out)
{
	double x[2], p[3];

	for (size_t i = n; i-- > 0;) {
		if (i == n - 1) {
			memcpy(x, c[i].x, sizeof x);
			memcpy(p, c[i].p, sizeof p);
		} else {
			correct(&c[i], &c[i + 1], x, p);
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
