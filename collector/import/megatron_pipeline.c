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

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct numbers {
	int64_t p, m, v, tp, dp, n_steady, first_step, last_step;
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
	return trace_row(m->trace, "megatron_pipeline", "iiiiiiiitrrrrrrrrrrrr", or_null(v->p), or_null(v->m), v->v, or_null(v->tp),
			 or_null(v->dp), v->n_steady, v->first_step < 0 ? TRACE_NULL : v->first_step,
			 v->last_step < 0 ? TRACE_NULL : v->last_step, v->over_ranks ? "most of all ranks" : "last stage",
			 v->step_ms, v->step_theory_ms, v->forward_ms, v->backward_ms, v->optimizer_ms, v->recv_ms,
			 v->recv_theory_ms, v->embedding_ms, v->embedding_theory_ms, v->idle, v->idle_theory,
			 v->over_ranks ? v->least_forward_ms : NAN);
}

static bool put_steps(struct megatron *m)
{
	bool fine = true;

	for (uint32_t i = 0; i < m->n_steps && fine; i++) {
		const struct megatron_step *s = &m->steps[i];

		fine = trace_row(m->trace, "megatron_step", "iirrrrrrrr", s->step, or_null(s->n), s->elapsed_ms, s->skipped, s->nan,
				 s->loss, s->loss_scale, s->grad_norm, s->learning_rate, s->batch_size);
	}
	for (uint32_t i = 0; i < m->n_samples && fine; i++) {
		const struct megatron_sample *s = &m->samples[i];

		fine = trace_row(m->trace, "megatron_timer", "iitrr", s->step == UINT32_MAX ? TRACE_NULL : m->steps[s->step].step,
				 s->rank < 0 ? TRACE_NULL : (int64_t)s->rank, m->names[s->name], s->ms, s->least_ms);
	}
	return fine;
}

/* ---- what is told to the rules ---- */

static void add(char *out, size_t n_out, size_t *at, const char *name, double v)
{
	if (!isnan(v) && *at < n_out)
		*at += (size_t)snprintf(out + *at, n_out - *at, ",\"%s\":%.6g", name, v);
}

static bool note_pipeline(struct megatron *m, struct trace_rank *r, const struct numbers *v)
{
	char text[1024];
	size_t at;

	if (v->p < 2 || v->m < 1 || v->n_steady == 0 || isnan(v->forward_ms) || isnan(v->backward_ms) || isnan(v->step_ms))
		return true;
	at = (size_t)snprintf(text, sizeof text, "{\"stages\":%lld,\"micro_batches\":%lld,\"chunks\":%lld,\"first_step\":%lld,"
			      "\"last_step\":%lld", (long long)v->p, (long long)v->m, (long long)v->v,
			      (long long)v->first_step, (long long)v->last_step);
	add(text, sizeof text, &at, "step_ms", v->step_ms);
	add(text, sizeof text, &at, "forward_ms", v->forward_ms);
	add(text, sizeof text, &at, "backward_ms", v->backward_ms);
	add(text, sizeof text, &at, "least_forward_ms", v->least_forward_ms);
	add(text, sizeof text, &at, "least_backward_ms", v->least_backward_ms);
	add(text, sizeof text, &at, "optimizer_ms", v->optimizer_ms);
	add(text, sizeof text, &at, "receive_wait_ms", v->recv_ms);
	add(text, sizeof text, &at, "embedding_ms", v->embedding_ms);
	if (at + 2 > sizeof text)
		return true;
	memcpy(text + at, "}", 2);
	return trace_note(m->trace, r, 0, "pipeline.timers", text);
}

/* The log has no times: its steps follow one another, each as long as the mean that it says. */
static bool tell_steps(struct megatron *m, struct trace_rank *r)
{
	int64_t at_ns = 0, last_step = -1;

	for (uint32_t i = 0; i < m->n_steps; i++) {
		const struct megatron_step *s = &m->steps[i];
		double ns = s->elapsed_ms * 1e6;
		struct event ev = { .kind = EVENT_STEP_BEGIN };

		if (!(ns >= 1) || ns > 1e16 || at_ns > INT64_C(1) << 60 || s->step <= last_step)
			continue;
		last_step = s->step;
		ev.tick = (uint64_t)at_ns;
		ev.a = event_a((uint32_t)s->step, 0);
		if (!trace_say(m->trace, r, TRACE_HOST, &ev))
			return !m->trace->no_memory;
		at_ns += (int64_t)ns;
		ev.tick = (uint64_t)at_ns;
		ev.kind = EVENT_STEP_END;
		if (!trace_say(m->trace, r, TRACE_HOST, &ev))
			return !m->trace->no_memory;
	}
	return true;
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

bool megatron_tell(struct megatron *m, char *why, size_t n_why)
{
	int64_t world = m->numbers[MEGATRON_WORLD];
	size_t n = m->n_steps > m->n_samples ? m->n_steps : m->n_samples;
	double *scratch = calloc(n + 1, sizeof *scratch);
	struct trace_rank *r;
	struct numbers v;
	bool fine;

	m->trace->no_memory |= !scratch;
	if (!scratch)
		return false;
	if (m->trace->n_ranks > 0) {
		snprintf(why, n_why, "is of a whole job, and a file before it is of one, too: import each on its own");
		free(scratch);
		return false;
	}
	count_first(m);
	v = numbers_of(m, scratch);
	free(scratch);
	/* It is the last rank that writes. */
	world = world <= FACT_MAX_RANKS ? world : 0;
	r = trace_add_rank(m->trace, world > 0 ? (int32_t)world - 1 : 0, "log");
	fine = r && put_steps(m) && put_pipeline(m, &v) && note_pipeline(m, r, &v) && tell_steps(m, r);
	m->trace->world_size = (int32_t)world;
	m->trace->clock_method = "none: the log has no times; its steps follow one another";
	if (v.p > 0)
		snprintf(m->trace->layout, sizeof m->trace->layout, "{\"pp\":%lld,\"tp\":%lld,\"dp\":%lld}", (long long)v.p,
			 (long long)v.tp, (long long)v.dp);
	say_what_lacks(&v, m->n_left_out, why, n_why);
	return fine;
}
