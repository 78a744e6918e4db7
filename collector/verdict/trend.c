#include "trend.h"

#include <math.h>
#include <stdlib.h>

#define Z 3.29 /* 99.9 %, both sides */
#define LEAST_RISING 0.6
#define LEAST_OF_FIRST_HALF 0.5

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double middle(const double *v, unsigned n)
{
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* Sorted slopes of all pairs; how many. */
static unsigned slopes(const double *x, const double *y, unsigned n, double *out)
{
	unsigned at = 0;

	for (unsigned i = 0; i < n; i++)
		for (unsigned k = i + 1; k < n; k++)
			if (x[k] > x[i])
				out[at++] = (y[k] - y[i]) / (x[k] - x[i]);
	qsort(out, at, sizeof *out, by_value);
	return at;
}

static double floor_of(const double *y, unsigned from, unsigned to)
{
	double least = y[from];

	for (unsigned i = from; i < to; i++)
		least = y[i] < least ? y[i] : least;
	return least;
}

static bool floors_rise(const double *y, unsigned n)
{
	double before = floor_of(y, 0, n / 4);

	for (unsigned k = 1; k < 4; k++) {
		double now = floor_of(y, k * n / 4, (k + 1) * n / 4);

		if (now <= before)
			return false;
		before = now;
	}
	return true;
}

bool trend_of(const double *x, const double *y, unsigned n, struct trend *ret)
{
	double v[TREND_MAX * (TREND_MAX - 1) / 2], first, second;
	unsigned n_slopes, n_rising = 0, off;

	if (n < TREND_MIN || n > TREND_MAX)
		return false;
	n_slopes = slopes(x, y, n / 2, v);
	first = n_slopes ? middle(v, n_slopes) : 0;
	n_slopes = slopes(x + n / 2, y + n / 2, n - n / 2, v);
	second = n_slopes ? middle(v, n_slopes) : 0;
	n_slopes = slopes(x, y, n, v);
	if (n_slopes == 0)
		return false;
	off = (unsigned)((n_slopes - fmin(n_slopes, Z * sqrt(n * (n - 1.0) * (2.0 * n + 5) / 18))) / 2);
	for (unsigned i = 1; i < n; i++)
		n_rising += y[i] > y[i - 1];
	*ret = (struct trend){ .slope = middle(v, n_slopes), .low = v[off],
			       .high = v[n_slopes - 1 - off],
			       .rising = (double)n_rising / (n - 1) };
	ret->rise = ret->slope * (x[n - 1] - x[0]);
	ret->begin = floor_of(y, 0, n / 4);
	ret->steady = ret->low > 0 && ret->rising >= LEAST_RISING && first > 0 &&
		      second >= LEAST_OF_FIRST_HALF * first && first >= LEAST_OF_FIRST_HALF / 2 * second &&
		      floors_rise(y, n);
	return true;
}
