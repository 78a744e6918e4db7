/* trace_event.h - one object of a Chrome trace, as profilers write them: what the
 * importers ask for, whatever else is in it.
 */
#pragma once

#include "json_walk.h"

#include <stdint.h>

#define TRACE_NO_NUMBER INT64_MIN
#define TRACE_MAX_ARGS 64 /* further ones are not found by their names */

/* Numbers of "args" that somebody reads. */
enum trace_number {
	TRACE_STEP,
	TRACE_CHUNK,	   /* model_chunk */
	TRACE_SEQ,	   /* seq_id */
	TRACE_MICRO,	   /* mb_id */
	TRACE_CORRELATION, /* a launch and what it launched */
	TRACE_EXTERNAL,	   /* External id: an operator and its launches */
	TRACE_STREAM,
	TRACE_BYTES,
	TRACE_N_IN, TRACE_N_OUT, /* In, Out msg nelems */
	TRACE_GROUP_SIZE,
	TRACE_RANK_START, TRACE_RANK_STRIDE, /* Global rank start, stride */
	TRACE_N_NUMBERS,
};

enum trace_text {
	TRACE_NAME, /* args.name: of threads and processes */
	TRACE_COLLECTIVE,
	TRACE_DTYPE,
	TRACE_GROUP, /* Process Group Name */
	TRACE_GROUP_DESC,
	TRACE_GROUP_RANKS,
	TRACE_N_TEXTS,
};

struct trace_event {
	char phase; /* X, M, s, f, B, E, b, e …; 0 = none */
	char name[256], category[64];
	char pid[64], tid[64], id[64]; /* numbers or texts */
	bool has_time, has_duration;
	int64_t ts_ns, dur_ns;
	int64_t numbers[TRACE_N_NUMBERS]; /* TRACE_NO_NUMBER */
	char texts[TRACE_N_TEXTS][256];	  /* "" */
	bool cut[TRACE_N_TEXTS];
	/* The object's text, and its arguments: by trace_event_arg(). */
	const char *text;
	size_t n_text;
	struct json_item args[TRACE_MAX_ARGS];
	unsigned n_args;
	bool in_args;
};

/* False when it is no JSON, or no object. What is of an unexpected type is as if it was not
 * there; of two members with one name, the last counts. */
bool trace_event_read(struct json_walk *w, const char *text, size_t n, struct trace_event *ret);

/* An argument by its name, of the first level, while the event's text is there: strings, numbers
 * and words as text (cut to n_out), numbers and strings of digits as integers. False: not there,
 * or a list or an object (of which text has everything). */
bool trace_event_arg(const struct trace_event *ev, const char *name, char *out, size_t n_out);
bool trace_event_arg_integer(const struct trace_event *ev, const char *name, int64_t *ret);
