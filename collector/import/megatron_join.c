/* megatron_join.c - what logs tell the analysis, once it is known what else there is of the job.
 *
 * A log beside traces of ranks only adds its tables and the numbers of its pipeline. Alone, the
 * rank that wrote it - the last one - has the steps. It has no times: they follow one another, each as
 * long as the mean that its line says.
 */
#include "megatron.h"
#include "row_files.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Columns of megatron_pipeline. */
enum { LOG, STAGES, MICRO, CHUNKS, TP, DP, STEADY, FIRST, LAST, WHOSE, STEP, STEP_THEORY, FORWARD, BACKWARD, OPTIMIZER, RECV,
       RECV_THEORY, EMBEDDING, EMBEDDING_THEORY, IDLE, IDLE_THEORY, LEAST_FORWARD, LEAST_BACKWARD, WORLD };

static void add(char *out, size_t n_out, size_t *at, const char *name, double v)
{
	if (!isnan(v) && *at < n_out)
		*at += (size_t)snprintf(out + *at, n_out - *at, ",\"%s\":%.6g", name, v);
}

static bool note_pipeline(struct trace *t, struct trace_rank *r, const struct trace_row *v)
{
	char text[1024];
	size_t at;

	if (row_integer(v, STAGES) < 2 || row_integer(v, MICRO) < 1 || row_integer(v, STEADY) < 1 ||
	    isnan(row_real(v, FORWARD)) || isnan(row_real(v, BACKWARD)) || isnan(row_real(v, STEP)))
		return true;
	at = (size_t)snprintf(text, sizeof text, "{\"stages\":%lld,\"micro_batches\":%lld,\"chunks\":%lld,\"first_step\":%lld,"
			      "\"last_step\":%lld", (long long)row_integer(v, STAGES), (long long)row_integer(v, MICRO),
			      (long long)row_integer(v, CHUNKS), (long long)row_integer(v, FIRST), (long long)row_integer(v, LAST));
	add(text, sizeof text, &at, "step_ms", row_real(v, STEP));
	add(text, sizeof text, &at, "forward_ms", row_real(v, FORWARD));
	add(text, sizeof text, &at, "backward_ms", row_real(v, BACKWARD));
	add(text, sizeof text, &at, "least_forward_ms", row_real(v, LEAST_FORWARD));
	add(text, sizeof text, &at, "least_backward_ms", row_real(v, LEAST_BACKWARD));
	add(text, sizeof text, &at, "optimizer_ms", row_real(v, OPTIMIZER));
	add(text, sizeof text, &at, "receive_wait_ms", row_real(v, RECV));
	add(text, sizeof text, &at, "embedding_ms", row_real(v, EMBEDDING));
	if (at + 2 > sizeof text)
		return true;
	memcpy(text + at, "}", 2);
	return trace_note(t, r, 0, "pipeline.timers", text);
}

static bool say(struct trace *t, struct trace_rank *r, int64_t at_ns, enum event_kind kind, int64_t step)
{
	return trace_say(t, r, TRACE_HOST, &(struct event){ .tick = (uint64_t)at_ns, .kind = (uint16_t)kind,
							     .a = event_a((uint32_t)step, 0) });
}

static bool tell_steps(struct trace *t, struct trace_rank *r)
{
	int64_t at_ns = 0, last_step = -1;

	for (uint32_t i = 0; i < t->n_rows; i++) {
		const struct trace_row *v = &t->rows[i];
		int64_t step = row_integer(v, 1);
		double ns = row_real(v, 3) * 1e6;

		if (strcmp(v->table, "megatron_step") != 0 || row_integer(v, 0) != 0 || !(ns >= 1) || ns > 1e16 ||
		    at_ns > INT64_C(1) << 60 || step <= last_step)
			continue;
		last_step = step;
		if (!say(t, r, at_ns, EVENT_STEP_BEGIN, step) || !say(t, r, at_ns + (int64_t)ns, EVENT_STEP_END, step))
			return !t->no_memory;
		at_ns += (int64_t)ns;
	}
	return trace_sort(t, r);
}

static bool tell_job(struct trace *t, const struct trace_row *v)
{
	int64_t world = row_integer(v, WORLD);
	struct trace_rank *r;

	world = world > 0 && world <= FACT_MAX_RANKS ? world : 0;
	r = trace_add_rank(t, world > 0 ? (int32_t)world - 1 : 0, "log");
	if (!r)
		return false;
	t->world_size = (int32_t)world;
	t->clock_method = "none: the log has no times; its steps follow one another";
	if (row_integer(v, STAGES) > 0)
		snprintf(t->layout, sizeof t->layout, "{\"pp\":%lld}", (long long)row_integer(v, STAGES));
	return tell_steps(t, r);
}

bool megatron_join(struct trace *t, struct trace_input *inputs, uint32_t n_inputs)
{
	static const char *const others[] = { "megatron_step", "megatron_timer", NULL };
	uint32_t at = 0, last = 0;

	(void)inputs;
	(void)n_inputs;
	if (!row_files_number(t, "megatron_pipeline", others))
		return false;
	while (at < t->n_rows && strcmp(t->rows[at].table, "megatron_pipeline") != 0)
		at++;
	if (at == t->n_rows)
		return true;
	if (t->n_ranks == 0 && !tell_job(t, &t->rows[at]))
		return false;
	for (uint32_t i = 1; i < t->n_ranks; i++)
		last = t->ranks[i].rank > t->ranks[last].rank ? i : last;
	return note_pipeline(t, &t->ranks[last], &t->rows[at]);
}
