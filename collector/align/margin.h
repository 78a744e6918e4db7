/* margin.h - the line that keeps the widest margin between two clouds of bounds.
 *
 * Used where nothing is known yet: inside a bucket of a second a rate of 20 ppm
 * is worth 20 us, so the first rate must come from somewhere.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct margin_point {
	double x, y;
};

void margin_sort(struct margin_point *v, size_t n); /* by x; quick when nearly sorted */
/* Sorted by x. Writes the lower hull into v itself; returns its length. */
size_t margin_lower_hull(struct margin_point *v, size_t n);

struct margin_line {
	double at, slope; /* y at x = 0 */
	double gap;	  /* between the clouds at that slope; negative: they overlap */
};

/* upper: lower hull of the upper bounds; lower: upper hull of the lower ones (y
 * negated, as a lower hull). false: no line passes between, ret has the least overlap. */
bool margin_widest(const struct margin_point *upper, size_t n_upper,
		   const struct margin_point *lower, size_t n_lower, double max_slope,
		   struct margin_line *ret);
/* The extreme slopes that still pass; only after margin_widest() said true. */
void margin_extremes(const struct margin_point *upper, size_t n_upper,
		     const struct margin_point *lower, size_t n_lower, double max_slope,
		     double slope, struct margin_line *lo, struct margin_line *hi);
