/* slow_fixed_rank_look.c - a look at one suspect: since when, how far its steps
 * depend on each other, how much slower than the others, and what it costs.
 */
#include "slow_fixed_rank_internal.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define TAU_MAX 64.0
#define TAU_RANKS 64 /* of more, only the livelier ones are measured */
#define SIGMA 3.72   /* 1e-4, one-sided */

/* Sum of absolute deviations from the median of v[0..n), sorted by this. */
static double deviation(double *v, size_t n)
{
	double m, sum = 0;

	slow_sort(v, n);
	m = slow_median(v, n);
	for (size_t i = 0; i < n; i++)
		sum += fabs(v[i] - m);
	return sum;
}

/* The count at which the rank's excess changes its level: the best split near
 * the product's own start. */
static uint32_t find_onset(struct slow_fixed_rank *s, uint32_t rank, uint32_t near)
{
	uint32_t begin = slow_window_begin(s), from, to, lo, hi, best = near, n = 0;
	double *v = s->scratch, *w = v + s->n_window, least = DBL_MAX, whole;

	from = near > begin + 96 ? near - 96 : begin;
	to = near + 96 < s->n_steps ? near + 96 : s->n_steps;
	for (uint32_t c = from; c < to; c++) {
		const struct sample *x = slow_sample(s, c, rank);

		v[n++] = x->self < 0 ? 0 : x->excess;
	}
	memcpy(w, v, n * sizeof *w);
	whole = deviation(w, n);
	lo = near > from + 32 ? near - 32 : from;
	hi = near + 32 < to ? near + 32 : to;
	for (uint32_t c = lo; c < hi; c++) {
		uint32_t n_before = c - from;
		double cost;

		if (n_before < 3)
			continue; /* too few to be another level */
		memcpy(w, v, n * sizeof *w);
		cost = deviation(w, n_before) + deviation(w + n_before, n - n_before);
		if (cost < least) {
			least = cost;
			best = c;
		}
	}
	/* Slow from the first step on: no split explains more than one level does. */
	if (near - begin < 8 && begin == 0 && least > 0.8 * whole)
		return 0;
	return best;
}

/* Whoever is or may be slow for good does not tell how long slowness lasts. */
static bool is_left_out(const struct slow_fixed_rank *s, uint32_t r, uint32_t rank, bool after,
			double limit)
{
	return s->suspects[r].standing || (after && (r == rank || slow_is_culprit(s, r, limit)));
}

/* Integrated autocorrelation time of the positions (Geyer's initial positive
 * sequence). Ranks that are alike have one mean, so deviations are from the
 * mean of all of them and not of each: a rank that was slow for the whole of a
 * short past must count as slow for long, not as a rank with another mean. What
 * is under suspicion is left out where it is. */
static double find_tau(struct slow_fixed_rank *s, uint32_t rank, uint32_t onset, double limit)
{
	uint32_t begin = slow_window_begin(s), max_lag;
	double *cov = s->scratch, *z = cov + s->n_window, tau = 1, last = 0;
	uint32_t longest = s->n_steps - onset > onset - begin ? s->n_steps - onset : onset - begin;

	max_lag = longest / 3 < 128 ? longest / 3 : 128;
	memset(cov, 0, (max_lag + 1) * sizeof *cov);
	for (unsigned side = 0; side < 2; side++) {
		uint32_t from = side ? onset : begin, to = side ? s->n_steps : onset;
		double sum = 0, squares = 0, n_all = 0, mean, variance;

		if (to - from < 16)
			continue;
		for (uint32_t c = from; c < to; c++)
			for (uint32_t r = 0; r < s->n_ranks; r++) {
				double p = slow_sample(s, c, r)->position;

				if (slow_sample(s, c, r)->self < 0 ||
				    is_left_out(s, r, rank, side, limit))
					continue;
				sum += p;
				squares += p * p;
				n_all++;
			}
		if (n_all == 0)
			continue;
		mean = sum / n_all;
		variance = squares / n_all - mean * mean;
		for (uint32_t r = 0; r < s->n_ranks; r++) {
			double square = 0;
			uint32_t n = 0;

			if (is_left_out(s, r, rank, side, limit))
				continue;
			for (uint32_t c = from; c < to; c++) {
				const struct sample *x = slow_sample(s, c, r);

				if (x->self < 0)
					continue;
				z[n] = x->position - mean;
				square += z[n] * z[n];
				n++;
			}
			/* Of many ranks only the lively ones: they had the spells. */
			if (s->n_ranks > TAU_RANKS && square < variance * n)
				continue;
			for (uint32_t lag = 0; lag <= max_lag && lag < n; lag++)
				for (uint32_t i = lag; i < n; i++)
					cov[lag] += z[i] * z[i - lag];
		}
	}
	if (cov[0] <= 0)
		return TAU_MIN;
	for (uint32_t lag = 1; lag <= max_lag; lag++) {
		if (lag % 2 == 0 && last + cov[lag] < 0)
			break;
		last = cov[lag];
		tau += 2 * cov[lag] / cov[0];
	}
	return tau < TAU_MIN ? TAU_MIN : tau > TAU_MAX ? TAU_MAX : tau;
}

/* Median of a rank's excess since the onset, and its interval. False when there
 * are too few steps for one. */
static bool interval(struct slow_fixed_rank *s, uint32_t rank, uint32_t from, double tau,
		     double *ret_low, double *ret_mid, double *ret_high)
{
	double *v = s->scratch, half;
	uint32_t n = 0, k;

	for (uint32_t c = from; c < s->n_steps; c++)
		if (slow_sample(s, c, rank)->self >= 0)
			v[n++] = slow_sample(s, c, rank)->excess;
	half = SIGMA * sqrt(n * tau) / 2;
	if (n == 0 || half >= n / 2.0)
		return false;
	slow_sort(v, n);
	k = (uint32_t)(n / 2.0 - half);
	*ret_low = v[k];
	*ret_mid = slow_median(v, n);
	*ret_high = v[n - 1 - k];
	return true;
}

/* The levels of the others since the onset; whoever is suspect is none of them. */
static void look_at_others(struct slow_fixed_rank *s, uint32_t rank, double limit,
			   struct look *ret)
{
	double mid, low, high;

	for (uint32_t r = 0; r < s->n_ranks; r++) {
		if (r == rank || slow_is_culprit(s, r, limit) ||
		    !interval(s, r, ret->onset, ret->tau, &low, &mid, &high))
			continue;
		ret->n_peers++;
		if (mid > ret->other)
			ret->other = mid;
		if (high > ret->other_high)
			ret->other_high = high;
	}
}

/* How long the steps are, and what the rank adds to them. */
static void look_at_times(struct slow_fixed_rank *s, uint32_t rank, struct look *ret)
{
	double *dur = s->scratch, *added = dur + s->n_window, *ratio = added + s->n_window;
	uint32_t n = 0, n_incomplete = 0;

	for (uint32_t c = ret->onset; c < s->n_steps; c++) {
		const struct sample *x = slow_sample(s, c, rank);
		double d = s->dur_of[slow_slot(s, c)];

		if (x->self < 0) {
			n_incomplete++;
			continue;
		}
		dur[n] = d;
		added[n] = x->excess * d;
		ratio[n] = x->self > added[n] ? added[n] / (x->self - added[n]) : 0;
		ret->coverage += x->coverage;
		n++;
	}
	ret->coverage /= n + n_incomplete;
	slow_sort(dur, n);
	slow_sort(added, n);
	slow_sort(ratio, n);
	ret->step_ns = slow_median(dur, n);
	ret->added_ns = slow_median(added, n);
	ret->self_ratio = slow_median(ratio, n);
}

/* The median over the steps of a value of the rank's samples less the others' mean. */
static double less_others(struct slow_fixed_rank *s, uint32_t rank, uint32_t from,
			  double (*value)(const struct sample *x, unsigned what), unsigned what)
{
	double *v = s->scratch;
	uint32_t n = 0;

	for (uint32_t c = from; c < s->n_steps; c++) {
		const struct sample *x = slow_sample(s, c, rank);
		double sum = 0;
		uint32_t n_others = 0;

		if (x->self < 0)
			continue;
		for (uint32_t r = 0; r < s->n_ranks; r++)
			if (r != rank && slow_sample(s, c, r)->self >= 0) {
				sum += value(slow_sample(s, c, r), what);
				n_others++;
			}
		if (n_others)
			v[n++] = value(x, what) - sum / n_others;
	}
	slow_sort(v, n);
	return n ? slow_median(v, n) : 0;
}

static double exposed_of(const struct sample *x, unsigned what)
{
	(void)what;
	return x->exposed;
}

static double part_of(const struct sample *x, unsigned what)
{
	return x->part[what];
}

bool slow_look(struct slow_fixed_rank *s, uint32_t rank, uint32_t near, double limit,
	       struct look *ret)
{
	*ret = (struct look){ .onset = find_onset(s, rank, near), .other = -DBL_MAX,
			      .other_high = -DBL_MAX };
	ret->n = s->n_steps - ret->onset;
	ret->tau = find_tau(s, rank, ret->onset, limit);
	if (!interval(s, rank, ret->onset, ret->tau, &ret->low, &ret->excess, &ret->high))
		return false;
	look_at_others(s, rank, limit, ret);
	look_at_times(s, rank, ret);
	/* What the others wait more than the rank itself. */
	ret->wait_ns = -less_others(s, rank, ret->onset, exposed_of, 0);
	ret->cost_share = ret->added_ns > 0 ? ret->wait_ns / ret->added_ns : 0;
	for (unsigned p = 0; p < N_PARTS; p++)
		ret->part_ns[p] = less_others(s, rank, ret->onset, part_of, p);
	return true;
}
