#include "foreign_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define N_ROUNDS 3
#define MAX_TRIES 8 /* references */
#define N_DRIFT 8   /* calls below which nobody speaks of drift */

const struct foreign_config foreign_defaults = {
	.max_rate = 200e-6,
	.skew_ns = 50000,
	.skew_share = 0.25,
	.stamp_ns = 1000,
	.z = 2.8,
};

const char *foreign_text(enum foreign_outcome o)
{
	switch (o) {
	case FOREIGN_OK:
		return "Aligned by its collectives.";
	case FOREIGN_BAD_TIMES:
		return "Its times run backwards or are out of range.";
	case FOREIGN_TOO_FEW:
		return "Too few collectives to test a match.";
	case FOREIGN_ORDER:
		return "It does not make the same calls in the same order as the others.";
	case FOREIGN_RESIDUAL:
		return "Its calls do not end together with the others': some are missing or "
		       "sampled.";
	case FOREIGN_IMPOSSIBLE:
		return "No offset lets every rank enter before another leaves: the match is wrong.";
	case FOREIGN_AMBIGUOUS:
		return "Another match of its calls fits as well, so its offset is open.";
	}
	return "";
}

static bool are_sane(const struct foreign_rank *r)
{
	int64_t last = -FOREIGN_MAX_NS;

	if (r->n_calls > FOREIGN_MAX_CALLS)
		return false;
	for (size_t i = 0; i < r->n_calls; i++) {
		const struct foreign_call *c = &r->calls[i];

		if (c->enter_ns <= -FOREIGN_MAX_NS || c->exit_ns >= FOREIGN_MAX_NS ||
		    c->exit_ns < c->enter_ns || c->enter_ns < last)
			return false;
		last = c->enter_ns;
	}
	return true;
}

/* Everybody against one reference. Returns how many agree with it. */
static size_t try_reference(const struct foreign_rank *ranks, size_t n_ranks, size_t reference,
			    const struct foreign_config *cfg, struct scratch *s,
			    struct foreign_clock *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < n_ranks; i++) {
		enum foreign_outcome known = ret[i].outcome;

		ret[i] = (struct foreign_clock){ .outcome = known };
		if (known == FOREIGN_BAD_TIMES)
			continue;
		if (i == reference) {
			ret[i].outcome = FOREIGN_OK;
			ret[i].n_matched = ranks[i].n_calls;
			ret[i].at_ns = ranks[i].calls[0].exit_ns +
				       (ranks[i].calls[ranks[i].n_calls - 1].exit_ns -
					ranks[i].calls[0].exit_ns) /
					       2;
		} else {
			ret[i].outcome =
				foreign_match(&ranks[reference], &ranks[i], cfg, s, &ret[i]);
		}
		n += ret[i].outcome == FOREIGN_OK;
	}
	return n;
}

/* ---- refinement: exits against the middle of everybody's ---- */

struct refine {
	const struct foreign_rank *ranks;
	size_t n_ranks, n_calls; /* of the reference */
	struct foreign_clock *clocks;
	int64_t origin_ns; /* the reference's first exit: doubles are relative to it */
	double *middle;	   /* [n_calls] when the call let everybody go */
	double *offset;	   /* [n_ranks] against the match's offset */
	double *v, *t;	   /* scratch: max(n_calls, n_ranks) */
};

/* A rank's exit of the reference's call i, in the reference's time; NAN if absent. */
static double exit_of(const struct refine *f, size_t rank, size_t i)
{
	const struct foreign_clock *c = &f->clocks[rank];
	ptrdiff_t k = (ptrdiff_t)i + c->shift;
	const struct foreign_call *call;

	if (c->outcome != FOREIGN_OK || k < 0 || (size_t)k >= f->ranks[rank].n_calls)
		return NAN;
	call = &f->ranks[rank].calls[k];
	return (double)(call->exit_ns + c->offset_ns - f->origin_ns) +
	       c->drift * (double)(call->exit_ns - c->at_ns) + f->offset[rank];
}

static void find_middles(const struct refine *f)
{
	for (size_t i = 0; i < f->n_calls; i++) {
		size_t n = 0;

		for (size_t r = 0; r < f->n_ranks; r++) {
			double at = exit_of(f, r, i);

			if (!isnan(at))
				f->v[n++] = at;
		}
		f->middle[i] = n > 1 ? middle_of(f->v, n) : NAN;
	}
}

static void move_to_middles(const struct refine *f)
{
	for (size_t r = 0; r < f->n_ranks; r++) {
		size_t n = 0;

		for (size_t i = 0; i < f->n_calls; i++) {
			double at = exit_of(f, r, i);

			if (!isnan(at) && !isnan(f->middle[i]))
				f->v[n++] = f->middle[i] - at;
		}
		if (n > 0)
			f->offset[r] += middle_of(f->v, n);
	}
}

/* What is left of one rank, its spread, and whether it leans with time. */
static void judge_rank(const struct refine *f, const struct foreign_config *cfg, size_t rank,
		       double shortest_ns)
{
	struct foreign_clock *c = &f->clocks[rank];
	double mean_t = 0, spread, s2 = 0, st = 0, slope, sd;
	size_t n = 0, kept = 0;

	for (size_t i = 0; i < f->n_calls; i++) {
		double at = exit_of(f, rank, i);

		if (isnan(at) || isnan(f->middle[i]))
			continue;
		f->v[n] = f->middle[i] - at;
		f->t[n] = f->middle[i];
		n++;
	}
	spread = (double)cfg->stamp_ns + scale_of(f->v, n);
	for (size_t i = 0; i < n; i++)
		if (fabs(f->v[i]) <= 6 * spread) {
			f->v[kept] = f->v[i];
			f->t[kept] = f->t[i];
			mean_t += f->t[kept++];
		}
	mean_t = kept ? mean_t / (double)kept : 0;
	for (size_t i = 0; i < kept; i++) {
		s2 += (f->t[i] - mean_t) * (f->t[i] - mean_t);
		st += (f->t[i] - mean_t) * f->v[i];
	}
	slope = s2 > 0 ? st / s2 : 0;
	sd = s2 > 0 ? spread / sqrt(s2) : INFINITY;
	if (n > 1 && f->t[n - 1] > f->t[0])
		sd = hypot(sd, 2 * (double)c->bend_ns / (f->t[n - 1] - f->t[0]));
	c->drift_sd = sd;
	/* Known when it says four times more than any two clocks do. */
	c->drift_known = kept >= N_DRIFT && 3 * sd <= cfg->max_rate / 4;
	c->soft_ns = (int64_t)ceil(
		cfg->z * (spread / sqrt((double)(kept ? kept : 1)) + 1000 + 1e-3 * shortest_ns));
	c->soft_ns += c->bend_ns;
	if (c->drift_known)
		c->drift += slope;
	else
		c->drift = 0;
}

static double shortest_call(const struct foreign_rank *ranks, const struct foreign_clock *clocks,
			    size_t n_ranks)
{
	int64_t shortest = INT64_MAX;

	for (size_t r = 0; r < n_ranks; r++)
		for (size_t i = 0; clocks[r].outcome == FOREIGN_OK && i < ranks[r].n_calls; i++) {
			const struct foreign_call *c = &ranks[r].calls[i];

			if (c->exit_ns - c->enter_ns < shortest)
				shortest = c->exit_ns - c->enter_ns;
		}
	return shortest == INT64_MAX ? 0 : (double)shortest;
}

static int refine(const struct foreign_rank *ranks, size_t n_ranks, size_t reference,
		  const struct foreign_config *cfg, struct foreign_clock *clocks)
{
	size_t n_calls = ranks[reference].n_calls, n = n_calls > n_ranks ? n_calls : n_ranks;
	struct refine f = { .ranks = ranks,
			    .n_ranks = n_ranks,
			    .n_calls = n_calls,
			    .clocks = clocks,
			    .origin_ns = ranks[reference].calls[0].exit_ns };
	double shortest_ns = shortest_call(ranks, clocks, n_ranks), zero;
	int r = -ENOMEM;

	f.middle = calloc(n_calls, sizeof *f.middle);
	f.offset = calloc(n_ranks, sizeof *f.offset);
	f.v = calloc(n, sizeof *f.v);
	f.t = calloc(n, sizeof *f.t);
	if (!f.middle || !f.offset || !f.v || !f.t)
		goto out;
	for (int round = 0; round < N_ROUNDS; round++) {
		find_middles(&f);
		move_to_middles(&f);
	}
	find_middles(&f);
	/* The reference's own habit is not everybody's error. */
	zero = f.offset[reference];
	for (size_t i = 0; i < n_ranks; i++)
		if (clocks[i].outcome == FOREIGN_OK)
			judge_rank(&f, cfg, i, shortest_ns);
	for (size_t i = 0; i < n_ranks; i++) {
		struct foreign_clock *c = &clocks[i];

		if (c->outcome != FOREIGN_OK)
			continue;
		c->offset_ns += llround(f.offset[i] - zero);
		if (i != reference)
			c->drift -= clocks[reference].drift;
		if (c->offset_ns > c->hi_ns)
			c->offset_ns = c->hi_ns;
		if (c->offset_ns < c->lo_ns)
			c->offset_ns = c->lo_ns;
	}
	clocks[reference].drift = clocks[reference].drift_sd = 0;
	clocks[reference].offset_ns = clocks[reference].lo_ns = clocks[reference].hi_ns = 0;
	clocks[reference].drift_known = true;
	clocks[reference].soft_ns = 0;
	r = 0;
out:
	free(f.middle);
	free(f.offset);
	free(f.v);
	free(f.t);
	return r;
}

int64_t foreign_align(const struct foreign_rank *ranks, size_t n_ranks,
		      const struct foreign_config *cfg, struct foreign_clock *ret,
		      size_t *ret_reference)
{
	size_t most = 0, best = 0, n_tries = 0;
	struct scratch s;
	int r;

	if (n_ranks == 0 || n_ranks > FOREIGN_MAX_RANKS)
		return -EINVAL;
	r = scratch_init(&s, ranks, n_ranks);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n_ranks; i++)
		ret[i] = (struct foreign_clock){ .outcome = are_sane(&ranks[i])
								    ? FOREIGN_OK
								    : FOREIGN_BAD_TIMES };
	for (size_t i = 0; i < n_ranks && n_tries < MAX_TRIES && 4 * most < 3 * n_ranks; i++) {
		size_t n;

		if (ret[i].outcome == FOREIGN_BAD_TIMES || ranks[i].n_calls < FOREIGN_LEAST_CALLS)
			continue;
		n_tries++;
		n = try_reference(ranks, n_ranks, i, cfg, &s, ret);
		if (n > most) {
			most = n;
			best = i;
		}
	}
	if (n_tries == 0)
		for (size_t i = 0; i < n_ranks; i++)
			if (ret[i].outcome == FOREIGN_OK)
				ret[i].outcome = FOREIGN_TOO_FEW;
	if (n_tries > 0)
		try_reference(ranks, n_ranks, best, cfg, &s, ret);
	*ret_reference = best;
	/* A reference that agrees with nobody is no reference. */
	if (n_tries > 0 && n_ranks > 1 && (most < 2 || 2 * most < n_ranks)) {
		enum foreign_outcome why = FOREIGN_TOO_FEW;

		for (size_t i = 0; i < n_ranks && why == FOREIGN_TOO_FEW; i++)
			if (ret[i].outcome != FOREIGN_OK && ret[i].outcome != FOREIGN_BAD_TIMES)
				why = ret[i].outcome;
		for (size_t i = 0; i < n_ranks; i++)
			if (ret[i].outcome == FOREIGN_OK)
				ret[i].outcome = why;
		most = 0;
	}
	if (most > 0)
		r = refine(ranks, n_ranks, best, cfg, ret);
	scratch_fini(&s);
	return r < 0 ? r : (int64_t)most;
}

int64_t foreign_error_ns(const struct foreign_clock *c, const struct foreign_config *cfg,
			 int64_t local_ns)
{
	double far = fabs((double)(local_ns - c->at_ns));

	if (c->outcome != FOREIGN_OK)
		return FOREIGN_UNBOUNDED;
	return c->soft_ns +
	       (int64_t)ceil(far * (c->drift_known ? cfg->z * c->drift_sd : cfg->max_rate));
}
