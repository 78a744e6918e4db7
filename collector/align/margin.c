#include "margin.h"

#include <math.h>

void margin_sort(struct margin_point *v, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		struct margin_point p = v[i];
		size_t k = i;

		for (; k > 0 && v[k - 1].x > p.x; k--)
			v[k] = v[k - 1];
		v[k] = p;
	}
}

static double cross(const struct margin_point *a, const struct margin_point *b,
		    const struct margin_point *c)
{
	return (b->x - a->x) * (c->y - a->y) - (b->y - a->y) * (c->x - a->x);
}

size_t margin_lower_hull(struct margin_point *v, size_t n)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++) {
		struct margin_point p = v[i];

		while (k >= 2 && cross(&v[k - 2], &v[k - 1], &p) <= 0)
			k--;
		v[k++] = p;
	}
	return k;
}

/* Height of the highest line of that slope under the hull. */
static double height(const struct margin_point *v, size_t n, double slope)
{
	double least = INFINITY;

	for (size_t i = 0; i < n; i++)
		least = fmin(least, v[i].y - slope * v[i].x);
	return least;
}

static double gap(const struct margin_point *upper, size_t n_upper,
		  const struct margin_point *lower, size_t n_lower, double slope)
{
	return height(upper, n_upper, slope) + height(lower, n_lower, -slope);
}

static struct margin_line middle(const struct margin_point *upper, size_t n_upper,
				 const struct margin_point *lower, size_t n_lower, double slope)
{
	double hi = height(upper, n_upper, slope), lo = -height(lower, n_lower, -slope);

	return (struct margin_line){ (hi + lo) / 2, slope, hi - lo };
}

/* The gap is concave in the slope: thirds find its top, halves its zeros. */
bool margin_widest(const struct margin_point *upper, size_t n_upper,
		   const struct margin_point *lower, size_t n_lower, double max_slope,
		   struct margin_line *ret)
{
	double lo = -max_slope, hi = max_slope;

	for (int i = 0; i < 60; i++) {
		double a = lo + (hi - lo) / 3, b = hi - (hi - lo) / 3;

		if (gap(upper, n_upper, lower, n_lower, a) < gap(upper, n_upper, lower, n_lower, b))
			lo = a;
		else
			hi = b;
	}
	*ret = middle(upper, n_upper, lower, n_lower, (lo + hi) / 2);
	return ret->gap >= 0;
}

static double edge(const struct margin_point *upper, size_t n_upper,
		   const struct margin_point *lower, size_t n_lower, double inside, double outside)
{
	if (gap(upper, n_upper, lower, n_lower, outside) >= 0)
		return outside;
	for (int i = 0; i < 60; i++) {
		double m = (inside + outside) / 2;

		if (gap(upper, n_upper, lower, n_lower, m) >= 0)
			inside = m;
		else
			outside = m;
	}
	return inside;
}

void margin_extremes(const struct margin_point *upper, size_t n_upper,
		     const struct margin_point *lower, size_t n_lower, double max_slope,
		     double slope, struct margin_line *lo, struct margin_line *hi)
{
	double a = edge(upper, n_upper, lower, n_lower, slope, -max_slope);
	double b = edge(upper, n_upper, lower, n_lower, slope, max_slope);

	*lo = middle(upper, n_upper, lower, n_lower, a);
	*hi = middle(upper, n_upper, lower, n_lower, b);
}
