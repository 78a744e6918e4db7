/* megatron_pipeline.c - what the numbers of a log say of the job's pipeline.
 *
 * With p stages, m micro-batches, v model chunks a stage and the computing times of a step F
 * and B: one micro-batch of a chunk takes f = F / (v m) and b = B / (v m). Theory lets
 * the last stage wait (p - 1) f for its first activations, lets it wait (p - 1) b for
 * the first stage at the end - in the all-reduce of the shared embedding, which looks slow
 * for that - and a step take (v m + p - 1)(f + b) and the optimizer.
 *
 * Medians are over steady lines: not the first, and most of their iterations not skipped:
 * half-precision scaling skips some at the start, which is as it should be.
 */
#include "megatron.h"
#include "row_files.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct numbers {
	int64_t file, p, m, v, tp, dp, n_steady, first_step, last_step;
	double step_ms, forward_ms, backward_ms, least_forward_ms, least_backward_ms, optimizer_ms, recv_ms, embedding_ms;
	double recv_theory_ms, embedding_theory_ms, step_theory_ms, idle, idle_theory;
	bool over_ranks; /* timers are the most of all ranks, not the last stage's */
};

static bool is_steady(const struct megatron *m, uint32_t i)
{
	const struct megatron_step *s = &m->steps[i];
	double n = s->n > 0 ? (double)s->n : 1;

	return (i > 0 || m->n_steps == 1) && !(2 * s->skipped >= n && s->skipped > 0);
}

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median(double *v, size_t n)
{
	if (n == 0)
		return NAN;
	qsort(v, n, sizeof *v, by_size);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* Of the first of these timers that the log has, over steady lines. */
static double timer(const struct megatron *m, double *scratch, const char *const *names, bool least, bool *ret_over)
{
	for (; *names; names++) {
		size_t n = 0;

		for (uint32_t i = 0; i < m->n_samples; i++) {
			const struct megatron_sample *s = &m->samples[i];
			double ms = least ? s->least_ms : s->ms;

			if (s->rank >= 0 || s->step == UINT32_MAX || strcmp(m->names[s->name], *names) != 0 ||
			    !is_steady(m, s->step) || isnan(ms))
				continue;
			scratch[n++] = ms;
			*ret_over |= !isnan(s->least_ms);
		}
		if (n > 0)
			return median(scratch, n);
	}
	return NAN;
}

static int64_t n_micro(const struct megatron *m, double batch)
{
	int64_t dp = m->numbers[MEGATRON_DP], size = m->numbers[MEGATRON_MICRO_SIZE];
	int64_t layout = m->numbers[MEGATRON_PP] * (m->numbers[MEGATRON_TP] ? m->numbers[MEGATRON_TP] : 1);
	int64_t all = batch >= 1 && batch <= 1e9 ? (int64_t)batch : m->numbers[MEGATRON_GLOBAL_SIZE];

	if (!dp && layout && m->numbers[MEGATRON_WORLD] % layout == 0)
		dp = m->numbers[MEGATRON_WORLD] / layout;
	if (dp && size && all && dp <= all && size <= all / dp && all % (dp * size) == 0)
		return all / (dp * size);
	return m->numbers[MEGATRON_N_MICRO];
}

static void measure(const struct megatron *m, double *scratch, struct numbers *ret)
{
	static const char *const forward[] = { "forward-compute", NULL }, *const backward[] = { "backward-compute", NULL };
	static const char *const forward_1[] = { "forward-compute", "forward", NULL };
	static const char *const backward_1[] = { "backward-compute", "backward", NULL };
	static const char *const optimizer[] = { "optimizer", "optimizer-step", NULL }, *const recv[] = { "forward-recv", NULL };
	static const char *const embedding[] = { "backward-embedding-all-reduce", "embedding-grads-all-reduce", NULL };
	bool one = ret->p == 1; /* older ones name them so, where nothing is received */
	double batch = NAN;
	size_t n = 0;

	for (uint32_t i = 0; i < m->n_steps; i++) {
		if (!is_steady(m, i) || isnan(m->steps[i].elapsed_ms))
			continue;
		scratch[n++] = m->steps[i].elapsed_ms;
		batch = m->steps[i].batch_size;
		ret->first_step = ret->first_step < 0 ? m->steps[i].step : ret->first_step;
		ret->last_step = m->steps[i].step;
	}
	ret->n_steady = (int64_t)n;
	ret->step_ms = median(scratch, n);
	ret->m = n_micro(m, batch);
	ret->forward_ms = timer(m, scratch, one ? forward_1 : forward, false, &ret->over_ranks);
	ret->backward_ms = timer(m, scratch, one ? backward_1 : backward, false, &ret->over_ranks);
	ret->least_forward_ms = timer(m, scratch, one ? forward_1 : forward, true, &ret->over_ranks);
	ret->least_backward_ms = timer(m, scratch, one ? backward_1 : backward, true, &ret->over_ranks);
	ret->optimizer_ms = timer(m, scratch, optimizer, false, &ret->over_ranks);
	ret->recv_ms = timer(m, scratch, recv, false, &ret->over_ranks);
	ret->embedding_ms = timer(m, scratch, embedding, false, &ret->over_ranks);
}

static void think(struct numbers *v)
{
	double optimizer_ms = isnan(v->optimizer_ms) ? 0 : v->optimizer_ms, units = (double)(v->v * v->m), rest = (double)(v->p - 1);

	if (v->step_ms > 0)
		v->idle = (v->step_ms - v->forward_ms - v->backward_ms - optimizer_ms) / v->step_ms;
	if (v->p < 1 || v->m < 1)
		return;
	v->recv_theory_ms = rest * v->forward_ms / units;
	v->embedding_theory_ms = rest * v->backward_ms / units;
	v->step_theory_ms = (units + rest) * (v->forward_ms + v->backward_ms) / units + optimizer_ms;
	v->idle_theory = rest / (units + rest);
}

static struct numbers numbers_of(const struct megatron *m, double *scratch)
{
	struct numbers v = { .p = m->numbers[MEGATRON_PP], .v = m->numbers[MEGATRON_VIRTUAL], .tp = m->numbers[MEGATRON_TP],
			     .dp = m->numbers[MEGATRON_DP], .first_step = -1, .last_step = -1, .recv_theory_ms = NAN,
			     .embedding_theory_ms = NAN, .step_theory_ms = NAN, .idle = NAN, .idle_theory = NAN };

	v.v = v.v ? v.v : 1;
	measure(m, scratch, &v);
	think(&v);
	return v;
}

/* ---- rows ---- */

static int64_t or_null(int64_t v)
{
	return v ? v : TRACE_NULL;
}

static bool put_pipeline(struct megatron *m, const struct numbers *v)
{
	return trace_row(m->trace, "megatron_pipeline", "iiiiiiiiitrrrrrrrrrrrrri", v->file, or_null(v->p), or_null(v->m), v->v, or_null(v->tp),
			 or_null(v->dp), v->n_steady, v->first_step < 0 ? TRACE_NULL : v->first_step,
			 v->last_step < 0 ? TRACE_NULL : v->last_step, v->over_ranks ? "most of all ranks" : "last stage",
			 v->step_ms, v->step_theory_ms, v->forward_ms, v->backward_ms, v->optimizer_ms, v->recv_ms,
			 v->recv_theory_ms, v->embedding_ms, v->embedding_theory_ms, v->idle, v->idle_theory,
			 v->over_ranks ? v->least_forward_ms : NAN, v->over_ranks ? v->least_backward_ms : NAN,
			 or_null(m->numbers[MEGATRON_WORLD]));
}

static bool put_steps(struct megatron *m, int64_t file)
{
	bool fine = true;

	for (uint32_t i = 0; i < m->n_steps && fine; i++) {
		const struct megatron_step *s = &m->steps[i];

		fine = trace_row(m->trace, "megatron_step", "iiirrrrrrrr", file, s->step, or_null(s->n), s->elapsed_ms, s->skipped, s->nan,
				 s->loss, s->loss_scale, s->grad_norm, s->learning_rate, s->batch_size);
	}
	for (uint32_t i = 0; i < m->n_samples && fine; i++) {
		const struct megatron_sample *s = &m->samples[i];

		fine = trace_row(m->trace, "megatron_timer", "iiitrr", file, s->step == UINT32_MAX ? TRACE_NULL : m->steps[s->step].step,
				 s->rank < 0 ? TRACE_NULL : (int64_t)s->rank, m->names[s->name], s->ms, s->least_ms);
	}
	return fine;
}

/* How many iterations the first line is of. */
static void count_first(struct megatron *m)
{
	int64_t n = m->numbers[MEGATRON_INTERVAL];

	if (n == 0 && m->n_steps > 1)
		n = m->steps[1].n;
	if (n == 0 || n > m->steps[0].step)
		n = m->steps[0].step;
	m->steps[0].n = n;
}

static void say_what_lacks(const struct numbers *v, uint64_t n_left_out, char *why, size_t n_why)
{
	const char *sep = "ok; ";
	size_t at = 0;

	why[0] = '\0';
	if (v->p == 0)
		at += (size_t)snprintf(why, n_why, "%sit does not print how many pipeline stages there are: no theory", sep);
	else if (v->m == 0)
		at += (size_t)snprintf(why, n_why, "%sit does not print how many micro-batches there are: no theory", sep);
	else if (v->p > 1 && (isnan(v->forward_ms) || isnan(v->backward_ms)))
		at += (size_t)snprintf(why, n_why, "%sit has no timers of forward-compute and backward-compute: no theory", sep);
	if (n_left_out > 0 && at < n_why)
		snprintf(why + at, n_why - at, "%s%llu values are too many and left out", at ? "; " : sep,
			 (unsigned long long)n_left_out);
}

bool megatron_tell(struct megatron *m, const char *path, char *why, size_t n_why)
{
	size_t n = m->n_steps > m->n_samples ? m->n_steps : m->n_samples;
	double *scratch = calloc(n + 1, sizeof *scratch);
	struct numbers v;

	m->trace->no_memory |= !scratch;
	if (!scratch)
		return false;
	count_first(m);
	v = numbers_of(m, scratch);
	v.file = row_file_mark(path);
	free(scratch);
	say_what_lacks(&v, m->n_left_out, why, n_why);
	return put_pipeline(m, &v) && put_steps(m, v.file);
}
