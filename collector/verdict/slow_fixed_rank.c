#include "slow_fixed_rank_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define UNIFORM_PART 0.05 /* of every bet: one odd step cannot ruin the product */
#define SPELLS 4.0 /* times the longest spell of anybody that passed */

int slow_fixed_rank_new(struct slow_fixed_rank **ret, const struct slow_config *cfg)
{
	struct slow_fixed_rank *s = calloc(1, sizeof *s);

	if (!s)
		return -ENOMEM;
	if (cfg)
		s->cfg = *cfg;
	if (s->cfg.effect_ratio <= 0)
		s->cfg.effect_ratio = 0.05;
	if (s->cfg.alpha <= 0)
		s->cfg.alpha = 1e-6;
	*ret = s;
	return 0;
}

void slow_fixed_rank_free(struct slow_fixed_rank *s)
{
	if (!s)
		return;
	free(s->step_of);
	free(s->begin_of);
	free(s->end_of);
	free(s->dur_of);
	free(s->samples);
	free(s->suspects);
	free(s->standing);
	free(s->table);
	free(s->scratch);
	free(s);
}

/* Room for the world as it is; it may still grow at the start of a run. */
static int resize(struct slow_fixed_rank *s, uint32_t n_ranks)
{
	uint32_t n_window = 1024;
	struct sample *samples;
	struct suspect *suspects;
	double *scratch;

	if (n_ranks <= s->n_ranks)
		return 0;
	if (s->n_window)
		n_window = s->n_window;
	else if (s->cfg.n_window)
		for (n_window = 64; n_window < s->cfg.n_window;)
			n_window *= 2;
	else
		while (n_window > 256 && (uint64_t)n_window * n_ranks > 1u << 20)
			n_window /= 2;

	if (!s->n_window) {
		s->step_of = calloc(n_window, sizeof *s->step_of);
		s->begin_of = calloc(n_window, sizeof *s->begin_of);
		s->end_of = calloc(n_window, sizeof *s->end_of);
		s->dur_of = calloc(n_window, sizeof *s->dur_of);
		if (!s->step_of || !s->begin_of || !s->end_of || !s->dur_of)
			return -ENOMEM;
		s->n_window = n_window;
	}
	samples = malloc((size_t)n_window * n_ranks * sizeof *samples);
	if (!samples)
		return -ENOMEM;
	for (uint32_t i = 0; i < n_window; i++)
		for (uint32_t r = 0; r < n_ranks; r++) {
			struct sample *to = &samples[(size_t)i * n_ranks + r];

			if (r < s->n_ranks)
				*to = s->samples[(size_t)i * s->n_ranks + r];
			else
				*to = (struct sample){ .self = -1 };
		}
	free(s->samples);
	s->samples = samples;
	suspects = realloc(s->suspects, n_ranks * sizeof *suspects);
	if (!suspects)
		return -ENOMEM;
	s->suspects = suspects;
	memset(suspects + s->n_ranks, 0, (n_ranks - s->n_ranks) * sizeof *suspects);
	for (uint32_t r = s->n_ranks; r < n_ranks; r++)
		for (unsigned k = 0; k < N_SHAPES; k++)
			suspects[r].start[k] = s->n_steps;
	s->n_scratch = 4 * (size_t)(n_window > n_ranks ? n_window : n_ranks) + 8;
	scratch = realloc(s->scratch, s->n_scratch * sizeof *scratch);
	if (!scratch)
		return -ENOMEM;
	s->scratch = scratch;
	s->n_ranks = n_ranks;
	return 0;
}

static int make_table(struct slow_fixed_rank *s, uint32_t n)
{
	double *table;

	if (s->n_table == n)
		return 0;
	table = realloc(s->table, (size_t)n * N_SHAPES * sizeof *table);
	if (!table)
		return -ENOMEM;
	s->table = table;
	s->n_table = n;
	for (unsigned k = 0; k < N_SHAPES; k++) {
		double power = (double)(2u << k) - 1, sum = 0;

		for (uint32_t r = 0; r < n; r++)
			sum += pow((double)(r + 1) / n, power);
		for (uint32_t r = 0; r < n; r++)
			table[k * n + r] = log(UNIFORM_PART + (1 - UNIFORM_PART) * n *
						pow((double)(r + 1) / n, power) / sum);
	}
	return 0;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void slow_sort(double *v, size_t n)
{
	qsort(v, n, sizeof *v, by_value);
}

double slow_median(const double *v, size_t n)
{
	return n ? (v[(n - 1) / 2] + v[n / 2]) / 2 : NAN;
}

/* Of the others: sorted values without one equal to mine. */
static double median_without(const double *v, size_t n, double mine)
{
	size_t k = n / 2;

	if (n < 2)
		return NAN;
	if (n % 2 == 0)
		return mine < v[k] ? v[k] : v[k - 1];
	return ((mine < v[k] ? v[k] : v[k - 1]) + (mine > v[k] ? v[k] : v[k + 1])) / 2;
}

static size_t n_below(const double *sorted, size_t n, double limit)
{
	size_t lo = 0, hi = n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (sorted[mid] < limit)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

bool slow_is_culprit(const struct slow_fixed_rank *s, uint32_t rank, double limit)
{
	for (unsigned k = 0; k < N_SHAPES; k++)
		if (s->suspects[rank].sum[k] >= limit)
			return true;
	return s->suspects[rank].standing;
}

/* One step over its ranks, as the test compares them. */
struct round {
	const double *self; /* sorted; in scratch */
	size_t n;
	int64_t begin_ns, end_ns;
	double typical_ns, effect_ns;
};

/* False when there is nothing to compare in it. */
static bool measure(struct slow_fixed_rank *s, const struct fact_rank_step *v, size_t n,
		    struct round *ret)
{
	double *self = s->scratch, *dur = self + n;
	int64_t err_ns = 0;

	*ret = (struct round){ .self = self, .n = n, .begin_ns = INT64_MAX,
			       .end_ns = INT64_MIN };
	for (size_t i = 0; i < n; i++) {
		self[i] = (double)v[i].self_ns;
		dur[i] = (double)(v[i].dur_ns - v[i].eval_ns);
		if (v[i].begin_ns < ret->begin_ns)
			ret->begin_ns = v[i].begin_ns;
		if (v[i].begin_ns + v[i].dur_ns > ret->end_ns)
			ret->end_ns = v[i].begin_ns + v[i].dur_ns;
		if (v[i].dur_err_ns > err_ns)
			err_ns = v[i].dur_err_ns;
	}
	slow_sort(self, n);
	slow_sort(dur, n);
	ret->typical_ns = slow_median(dur, n);
	ret->effect_ns = s->cfg.effect_ratio * ret->typical_ns;
	if (ret->effect_ns < 2 * (double)err_ns)
		ret->effect_ns = 2 * (double)err_ns;
	return ret->typical_ns > 0;
}

static void keep_sample(struct slow_fixed_rank *s, const struct round *t,
			const struct fact_rank_step *f, size_t position)
{
	struct sample *x = slow_sample(s, s->n_steps, (uint32_t)f->rank);
	double mine = (double)f->self_ns;

	x->self = (float)mine;
	x->exposed = (float)f->exposed_comm_ns;
	x->coverage = (float)f->coverage;
	x->part[PART_INPUT] = (float)f->input_wait_ns;
	x->part[PART_FORWARD] = (float)f->fwd_ns;
	x->part[PART_BACKWARD] = (float)f->bwd_ns;
	x->part[PART_OPTIMIZER] = (float)f->opt_ns;
	x->part[PART_OTHER] = (float)(f->self_ns - f->input_wait_ns - f->fwd_ns - f->bwd_ns -
				      f->opt_ns);
	x->excess = (float)((mine - median_without(t->self, t->n, mine)) / t->typical_ns);
	x->position = (float)position / (float)(t->n - 1);
}

/* The bets that the rank is slow, one a shape, and the one that it is no more. */
static void bet(struct slow_fixed_rank *s, const struct round *t, const struct fact_rank_step *f,
		size_t position)
{
	struct suspect *q = &s->suspects[f->rank];

	for (unsigned k = 0; k < N_SHAPES; k++) {
		q->sum[k] += s->table[k * t->n + position];
		if (q->sum[k] > q->peak[k])
			q->peak[k] = q->sum[k];
		/* It fell to the half: that spell of slowness is over. */
		if (q->sum[k] < q->peak[k] / 2 && !q->standing && q->peak[k] > s->passed[k])
			s->passed[k] = q->peak[k];
		if (q->sum[k] <= 0) {
			q->sum[k] = q->peak[k] = 0;
			q->start[k] = s->n_steps + 1;
		}
	}
	if (q->end_sum <= 0)
		q->end_start = s->n_steps;
	q->end_sum -= s->table[1 * t->n + n_below(t->self, t->n, (double)f->self_ns)];
	if (q->end_sum < 0)
		q->end_sum = 0;
	if (q->end_sum > END_NATS) /* healthy for long must not outweigh what comes */
		q->end_sum = END_NATS;
}

/* Who has won enough to be looked at? */
static int look_for_suspects(struct slow_fixed_rank *s, double limit, struct facts *facts)
{
	uint32_t begin = slow_window_begin(s);

	for (uint32_t k = 0; k < s->n_ranks; k++) {
		struct suspect *q = &s->suspects[k];
		unsigned best = 0;
		int r;

		if (q->standing || s->n_steps < q->next_look)
			continue;
		for (unsigned m = 1; m < N_SHAPES; m++)
			if (q->sum[m] > q->sum[best])
				best = m;
		if (q->sum[best] < TAU_MIN * limit || q->sum[best] < SPELLS * s->passed[best])
			continue;
		r = slow_judge(s, k, q->start[best] > begin ? q->start[best] : begin, q->sum[best],
			       limit, facts);
		if (r < 0)
			return r;
	}
	return 0;
}

int slow_fixed_rank_step(struct slow_fixed_rank *s, uint32_t step, uint32_t world_size,
			 const struct fact_rank_step *v, size_t n, struct facts *facts)
{
	uint32_t n_ranks = world_size, at;
	struct round t;
	double limit;
	int r;

	if (n < 2 || (s->n_steps > 0 && step <= s->last_step))
		return 0;
	for (size_t i = 0; i < n; i++)
		if ((uint32_t)v[i].rank >= n_ranks)
			n_ranks = (uint32_t)v[i].rank + 1;
	r = resize(s, n_ranks);
	if (r == 0)
		r = make_table(s, (uint32_t)n);
	if (r < 0)
		return r;
	if (!measure(s, v, n, &t))
		return 0;

	at = slow_slot(s, s->n_steps);
	s->step_of[at] = step;
	s->begin_of[at] = t.begin_ns;
	s->end_of[at] = t.end_ns;
	s->dur_of[at] = (float)t.typical_ns;
	for (uint32_t k = 0; k < s->n_ranks; k++)
		slow_sample(s, s->n_steps, k)->self = -1;

	limit = log(N_SHAPES * (double)s->n_ranks / s->cfg.alpha) + 2 * log(s->n_steps + 2.0);
	for (size_t i = 0; i < n; i++) {
		size_t position = n_below(t.self, n, (double)v[i].self_ns - t.effect_ns);

		keep_sample(s, &t, &v[i], position);
		bet(s, &t, &v[i], position);
	}
	s->n_steps++;
	s->last_step = step;
	r = look_for_suspects(s, limit, facts);
	return r < 0 ? r : slow_review(s, facts);
}

int slow_fixed_rank_finish(struct slow_fixed_rank *s, struct facts *facts)
{
	for (size_t i = 0; i < s->n_standing; i++) {
		struct standing *v = &s->standing[i];
		int r;

		if (v->ended)
			continue;
		r = slow_tell(s, v, facts);
		if (r < 0)
			return r;
	}
	return 0;
}
