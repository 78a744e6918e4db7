/* flight_rows.c - the tables flight_group and flight_entry: each rank's status, what it is in, its last calls
 * before that, and where in the program they were made. */
#include "flight.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PENDING 1024
#define MAX_OVER 8
#define MAX_FRAMES 16

static int64_t or_null(int64_t v)
{
	return v == FLIGHT_UNKNOWN ? TRACE_NULL : v;
}

static int64_t field(const json_t *e, const char *key)
{
	return or_null(flight_integer(json_object_get(e, key), FLIGHT_UNKNOWN));
}

static const char *text_of(const json_t *e, const char *key)
{
	return json_string_value(json_object_get(e, key));
}

/* "train.py:36 step" */
static void put_frame(const json_t *frame, char *out, size_t n_out)
{
	const char *file = text_of(frame, "filename"), *name = text_of(frame, "name");

	snprintf(out, n_out, "%.200s:%lld %.120s", file ? file : "?",
		 (long long)flight_integer(json_object_get(frame, "line"), 0), name ? name : "?");
}

/* The innermost that is the program's and not the library's. */
static const json_t *top_frame(const json_t *frames)
{
	json_t *v;
	size_t i;

	json_array_foreach((json_t *)frames, i, v)
	{
		const char *file = text_of(v, "filename");

		if (file && !strstr(file, "/torch/") && strncmp(file, "torch/", 6) != 0 && file[0] != '<')
			return v;
	}
	return json_array_get(frames, 0);
}

static char *all_frames(const json_t *frames)
{
	json_t *list = json_array();
	char one[400], *text;

	for (size_t i = 0; i < json_array_size(frames) && i < MAX_FRAMES; i++) {
		put_frame(json_array_get(frames, i), one, sizeof one);
		json_array_append_new(list, json_string_nocheck(one));
	}
	text = json_dumps(list, JSON_COMPACT);
	json_decref(list);
	return text;
}

static bool is_over(const json_t *e)
{
	const char *state = text_of(e, "state");

	return (state && strcmp(state, "completed") == 0) ||
	       flight_integer(json_object_get(e, "time_discovered_completed_ns"), 0) > 0;
}

static bool put_entry(struct trace *t, const struct flight_dump *d, const struct flight_group *g, const json_t *e)
{
	const json_t *frames = json_object_get(e, "frames"), *top = top_frame(frames);
	const json_t *duration = json_object_get(e, "duration_ms");
	bool message = json_is_true(json_object_get(e, "is_p2p"));
	int64_t seq = field(e, message ? "p2p_seq_id" : "collective_seq_id"), timeout_ms = field(e, "timeout_ms");
	char *in = json_dumps(json_object_get(e, "input_sizes"), JSON_COMPACT), frame[400];
	char *out = json_dumps(json_object_get(e, "output_sizes"), JSON_COMPACT), *stack = all_frames(frames);
	bool fine;

	put_frame(top, frame, sizeof frame);
	fine = trace_row(t, "flight_entry", "iititttiiiritttttt", (int64_t)d->rank, field(e, "record_id"), g->name,
			 seq == TRACE_NULL ? field(e, "seq_id") : seq, message ? "message" : "collective",
			 text_of(e, "profiling_name"), text_of(e, "state"), field(e, "time_created_ns"),
			 field(e, "time_discovered_started_ns"), field(e, "time_discovered_completed_ns"),
			 json_is_number(duration) ? json_number_value(duration) * 1e6 : (double)NAN,
			 timeout_ms < 0 || timeout_ms > INT64_MAX / 1000000 ? TRACE_NULL : timeout_ms * 1000000,
			 json_string_value(json_array_get(json_object_get(e, "input_dtypes"), 0)), in, out,
			 text_of(e, "thread_name"), top ? frame : NULL, top ? stack : NULL);
	free(in);
	free(out);
	free(stack);
	return fine;
}

static bool put_group(struct trace *t, const struct flight_dump *d, uint32_t i)
{
	const struct flight_group *g = &d->groups[i];
	int64_t n_pending = 0;

	for (uint32_t k = 0; k < g->n_calls; k++)
		n_pending += !d->calls[g->first_call + k].over;
	return trace_row(t, "flight_group", "ittiiiiiii", (int64_t)d->rank, g->name, g->what,
			 g->n_ranks ? (int64_t)g->n_ranks : TRACE_NULL, or_null(g->id), or_null(g->enqueued),
			 or_null(g->started), or_null(g->completed), (int64_t)g->n_calls, n_pending);
}

bool flight_put_rows(struct trace *t, const struct flight_dump *d, const json_t *entries, const uint32_t *groups)
{
	size_t n = json_array_size(entries), n_over = 0, n_pending = 0;

	for (uint32_t i = 0; i < d->n_groups; i++)
		if (!put_group(t, d, i))
			return false;
	for (size_t i = 0; i < n; i++)
		n_over += is_over(json_array_get(entries, i));
	for (size_t i = 0; i < n; i++) {
		const json_t *e = json_array_get(entries, i);
		bool put = is_over(e) ? n_over-- <= MAX_OVER : n_pending++ < MAX_PENDING;

		if (put && !put_entry(t, d, &d->groups[groups[i]], e))
			return false;
	}
	return true;
}
