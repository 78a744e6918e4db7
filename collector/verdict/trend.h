/* trend.h - does a series rise steadily?
 *
 * The slope is the median of all pairs' slopes (Theil and Sen), which a third of wild
 * values does not move; its interval comes from Kendall's statistic at 99.9 %. A
 * rise that ends (warm-up, a plateau), that comes in one jump, or that falls back again
 * and again (a saw) is not steady: both halves have to rise alike, and the floors of
 * its quarters each above the one before.
 */
#pragma once

#include <stdbool.h>

#define TREND_MAX 64
#define TREND_MIN 8

struct trend {
	double slope, low, high; /* of y over x */
	double rising;		 /* share of neighbours that rise */
	double begin, rise;	 /* of the line over the whole of x */
	bool steady;
};

/* x ascends. False with fewer than TREND_MIN. */
bool trend_of(const double *x, const double *y, unsigned n, struct trend *ret);
