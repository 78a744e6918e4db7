/* foreign_match.c - which call of one rank is which of another's?
 *
 * Numbers are rarely in a trace; order is. So one shift of the order is looked
 * for with which all kinds agree and all calls end together up to one offset and
 * a drift. It must be much better than every other shift: in a job of equal steps
 * a match that is wrong by a step fits as well, and then nothing is known.
 */
#include "foreign_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SHIFT 16
#define MUCH_BETTER 4.0
#define SHARE 0.8 /* of calls whose residual is the score of a match */
#define BLOCK 16  /* neighbouring calls */
#define LEAST_BLOCKS 4
#define N_OUTLIERS 10 /* one in so many may end late on one rank */

int scratch_init(struct scratch *s, const struct foreign_rank *ranks, size_t n_ranks)
{
	*s = (struct scratch){ 0 };
	for (size_t i = 0; i < n_ranks; i++)
		if (ranks[i].n_calls > s->n_alloc && ranks[i].n_calls <= FOREIGN_MAX_CALLS)
			s->n_alloc = ranks[i].n_calls;
	s->n_alloc++;
	s->d = malloc(s->n_alloc * sizeof *s->d);
	s->t = malloc(s->n_alloc * sizeof *s->t);
	s->v = malloc(s->n_alloc * sizeof *s->v);
	if (s->d && s->t && s->v)
		return 0;
	scratch_fini(s);
	return -ENOMEM;
}

void scratch_fini(struct scratch *s)
{
	free(s->d);
	free(s->t);
	free(s->v);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double middle_of(double *v, size_t n)
{
	qsort(v, n, sizeof *v, by_value);
	return (v[(n - 1) / 2] + v[n / 2]) / 2;
}

double scale_of(const double *v, size_t n)
{
	double *copy, scale;

	if (n == 0)
		return 0;
	copy = malloc(n * sizeof *copy);
	if (!copy)
		return INFINITY; /* nothing will be called known */
	for (size_t i = 0; i < n; i++)
		copy[i] = fabs(v[i]);
	scale = 1.4826 * middle_of(copy, n);
	free(copy);
	return scale;
}

struct overlap {
	const struct foreign_call *a, *b; /* reference, rank */
	size_t n;
};

static struct overlap overlap_of(const struct foreign_rank *ref, const struct foreign_rank *rank,
				 ptrdiff_t shift)
{
	size_t skip_a = shift < 0 ? (size_t)-shift : 0, skip_b = shift > 0 ? (size_t)shift : 0;
	struct overlap o = { 0 };

	if (skip_a >= ref->n_calls || skip_b >= rank->n_calls)
		return o;
	o.a = ref->calls + skip_a;
	o.b = rank->calls + skip_b;
	o.n = ref->n_calls - skip_a;
	if (rank->n_calls - skip_b < o.n)
		o.n = rank->n_calls - skip_b;
	return o;
}

static bool kinds_agree(const struct overlap *o)
{
	for (size_t i = 0; i < o->n; i++)
		if (o->a[i].kind && o->b[i].kind && o->a[i].kind != o->b[i].kind)
			return false;
	return true;
}

struct line {
	int64_t offset_ns; /* of the first call: doubles are relative to it */
	int64_t at_ns;	   /* of the first call, rank's time */
	double rest, slope, score;
	double bend, steepest; /* what is left of the clock, ns and ns per ns */
};

/* Fills s->d (exits apart) and s->t (rank's time), both from the first call. */
static void apart(const struct overlap *o, struct scratch *s, struct line *l)
{
	l->offset_ns = o->a[0].exit_ns - o->b[0].exit_ns;
	l->at_ns = o->b[0].exit_ns;
	for (size_t i = 0; i < o->n; i++) {
		s->d[i] = (double)(o->a[i].exit_ns - o->b[i].exit_ns - l->offset_ns);
		s->t[i] = (double)(o->b[i].exit_ns - l->at_ns);
	}
}

/* The middle slope of calls half the window apart, as far as clocks can differ. */
static double slope_of(const struct overlap *o, struct scratch *s, double max_rate)
{
	size_t half = o->n / 2, n = 0;
	double slope;

	for (size_t i = 0; i + half < o->n; i++)
		if (s->t[i + half] > s->t[i])
			s->v[n++] = (s->d[i + half] - s->d[i]) / (s->t[i + half] - s->t[i]);
	if (n < FOREIGN_LEAST_CALLS)
		return 0;
	slope = middle_of(s->v, n);
	return slope > max_rate ? max_rate : slope < -max_rate ? -max_rate : slope;
}

/* Clocks of a long window bend away from a line. What neighbours have in common is
 * taken off: the middles of blocks, joined. Their steepest part and their largest
 * value stay as the line's. */
static void unbend(const struct overlap *o, struct scratch *s, double slack_ns, struct line *l)
{
	size_t n = o->n / BLOCK;
	double *at = s->v, *middle = s->v + n, block[2 * BLOCK];

	for (size_t k = 0; k < n; k++) {
		size_t from = k * BLOCK, to = k + 1 < n ? from + BLOCK : o->n;

		memcpy(block, s->d + from, (to - from) * sizeof *block);
		middle[k] = middle_of(block, to - from);
		at[k] = (s->t[from] + s->t[to - 1]) / 2;
		l->bend = fmax(l->bend, fabs(middle[k]));
		if (k > 0 && at[k] > at[k - 1])
			l->steepest =
				fmax(l->steepest, (fabs(middle[k] - middle[k - 1]) - slack_ns) /
							  (at[k] - at[k - 1]));
	}
	for (size_t i = 0, k = 0; i < o->n; i++) {
		while (k + 2 < n && s->t[i] > at[k + 1])
			k++;
		if (at[k + 1] > at[k])
			s->d[i] -= middle[k] + (middle[k + 1] - middle[k]) * (s->t[i] - at[k]) /
						       (at[k + 1] - at[k]);
	}
}

/* Residuals are left in s->d. */
static void fit(const struct overlap *o, const struct foreign_config *cfg, struct scratch *s,
		double slope, struct line *l)
{
	l->slope = slope;
	l->bend = l->steepest = 0;
	for (size_t i = 0; i < o->n; i++)
		s->v[i] = s->d[i] - slope * s->t[i];
	l->rest = middle_of(s->v, o->n);
	for (size_t i = 0; i < o->n; i++)
		s->d[i] -= slope * s->t[i] + l->rest;
	if (o->n >= LEAST_BLOCKS * BLOCK)
		unbend(o, s, (double)cfg->skew_ns, l);
	for (size_t i = 0; i < o->n; i++)
		s->v[i] = fabs(s->d[i]);
	qsort(s->v, o->n, sizeof *s->v, by_value);
	l->score = s->v[(size_t)ceil(SHARE * (double)o->n) - 1];
}

/* Half of the shorter one at least: windows begin and end at other calls. */
static size_t least_overlap(const struct foreign_rank *a, const struct foreign_rank *b)
{
	size_t n = a->n_calls < b->n_calls ? a->n_calls : b->n_calls;

	n = (n + 1) / 2;
	return n < FOREIGN_LEAST_CALLS ? FOREIGN_LEAST_CALLS : n;
}

/* The best shift. false when the kinds forbid every one. */
static bool best_shift(const struct foreign_rank *ref, const struct foreign_rank *rank,
		       const struct foreign_config *cfg, struct scratch *s, ptrdiff_t *ret)
{
	double best = INFINITY;

	for (ptrdiff_t shift = -MAX_SHIFT; shift <= MAX_SHIFT; shift++) {
		struct overlap o = overlap_of(ref, rank, shift);
		struct line l;

		if (o.n < least_overlap(ref, rank) || !kinds_agree(&o))
			continue;
		apart(&o, s, &l);
		fit(&o, cfg, s, slope_of(&o, s, cfg->max_rate), &l);
		/* Of two that are alike the smaller shift. */
		if (l.score < best || (l.score <= best && labs((long)shift) < labs((long)*ret))) {
			best = l.score;
			*ret = shift;
		}
	}
	return best < INFINITY;
}

/* Would a wrong match have been seen? slope: of the right one. */
static bool is_alone(const struct foreign_rank *ref, const struct foreign_rank *rank,
		     ptrdiff_t shift, const struct line *best, const struct foreign_config *cfg,
		     struct scratch *s)
{
	for (ptrdiff_t other = shift - MAX_SHIFT; other <= shift + MAX_SHIFT; other++) {
		struct overlap o = overlap_of(ref, rank, other);
		struct line l;

		if (other == shift || o.n < 2 || o.n < least_overlap(ref, rank) - 1 ||
		    !kinds_agree(&o))
			continue;
		apart(&o, s, &l);
		fit(&o, cfg, s, best->slope, &l);
		if (l.score < MUCH_BETTER * (best->score + (double)cfg->stamp_ns))
			return false;
	}
	return true;
}

static int64_t shortest_ns(const struct overlap *o)
{
	int64_t shortest = INT64_MAX;

	for (size_t i = 0; i < o->n; i++) {
		int64_t a = o->a[i].exit_ns - o->a[i].enter_ns;
		int64_t b = o->b[i].exit_ns - o->b[i].enter_ns;

		shortest = a < shortest ? a : shortest;
		shortest = b < shortest ? b : shortest;
	}
	return shortest;
}

/* All calls end together, but for single late ones. s->d: residuals. */
static bool ends_together(const struct overlap *o, const struct foreign_config *cfg,
			  const struct scratch *s, const struct line *l)
{
	double most = (double)cfg->skew_ns + cfg->skew_share * (double)shortest_ns(o);
	size_t n_out = 0;
	bool before = false;

	/* No clock bends so fast: these are other calls from somewhere on. */
	if (l->score > most || l->steepest > 2 * cfg->max_rate)
		return false;
	for (size_t i = 0; i < o->n; i++) {
		bool out = fabs(s->d[i]) > most;

		n_out += out;
		if (out && before)
			return false; /* not late, but another call */
		before = out;
	}
	return n_out <= o->n / N_OUTLIERS;
}

/* Bounds of the offset at at_ns from calls that prove something. */
static bool bound(const struct overlap *o, const struct foreign_config *cfg,
		  struct foreign_clock *ret)
{
	ret->lo_ns = -FOREIGN_UNBOUNDED;
	ret->hi_ns = FOREIGN_UNBOUNDED;
	for (size_t i = 0; i < o->n; i++) {
		const struct foreign_call *a = &o->a[i], *b = &o->b[i];
		int64_t open_ns, lo, hi;

		if (!a->proves || !b->proves)
			continue;
		open_ns = 2 * cfg->stamp_ns + 1 +
			  (int64_t)(cfg->max_rate * fmax(fabs((double)(b->exit_ns - ret->at_ns)),
							 fabs((double)(b->enter_ns - ret->at_ns))));
		lo = a->enter_ns - b->exit_ns - open_ns;
		hi = a->exit_ns - b->enter_ns + open_ns;
		ret->lo_ns = lo > ret->lo_ns ? lo : ret->lo_ns;
		ret->hi_ns = hi < ret->hi_ns ? hi : ret->hi_ns;
	}
	return ret->lo_ns <= ret->hi_ns;
}

enum foreign_outcome foreign_match(const struct foreign_rank *ref, const struct foreign_rank *rank,
				   const struct foreign_config *cfg, struct scratch *s,
				   struct foreign_clock *ret)
{
	struct overlap o;
	struct line l;

	if (ref->n_calls < FOREIGN_LEAST_CALLS || rank->n_calls < FOREIGN_LEAST_CALLS)
		return FOREIGN_TOO_FEW;
	ret->shift = 0;
	if (!best_shift(ref, rank, cfg, s, &ret->shift))
		return FOREIGN_ORDER;
	o = overlap_of(ref, rank, ret->shift);
	apart(&o, s, &l);
	fit(&o, cfg, s, slope_of(&o, s, cfg->max_rate), &l);
	ret->n_matched = o.n;
	ret->residual_ns = llround(l.score);
	if (!ends_together(&o, cfg, s, &l) || fabs(l.rest) > (double)FOREIGN_MAX_NS)
		return FOREIGN_RESIDUAL;
	ret->at_ns = o.b[0].exit_ns + (o.b[o.n - 1].exit_ns - o.b[0].exit_ns) / 2;
	ret->drift = l.slope;
	ret->bend_ns = llround(l.bend);
	ret->offset_ns = l.offset_ns + llround(l.rest + l.slope * (double)(ret->at_ns - l.at_ns));
	if (!bound(&o, cfg, ret))
		return FOREIGN_IMPOSSIBLE;
	return is_alone(ref, rank, ret->shift, &l, cfg, s) ? FOREIGN_OK : FOREIGN_AMBIGUOUS;
}
