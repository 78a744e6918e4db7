/* flight.h - dumps of PyTorch's Flight Recorder: what each rank had called when it was asked.
 *
 * A dump is kept small until all are there (join): calls of a group that share a number are
 * one call, groups have the name that all ranks know them by. Then the dumps become events,
 * and the state that verdict/dumped.c reasons from.
 */
#pragma once

#include "format.h"

#include <jansson.h>

#define FLIGHT_UNKNOWN INT64_MIN

struct flight_call {
	uint32_t group; /* index in the dump */
	uint8_t op, dtype;
	bool message, over, unsized;
	int64_t number;	  /* in its group, of its kind */
	int32_t from, to; /* message: ranks of the job; -1 = not known */
	int64_t created_ns;
	uint64_t bytes;
};

struct flight_group {
	char *name, *what;
	int32_t *ranks;
	uint32_t n_ranks;
	int64_t id; /* the rank's own; FLIGHT_UNKNOWN */
	int64_t enqueued, started, completed; /* the rank's status; FLIGHT_UNKNOWN */
	bool local; /* its name means nothing to other ranks */
	uint32_t first_call, n_calls; /* in the dump */
};

struct flight_dump {
	int32_t rank;
	struct flight_group *groups;
	uint32_t n_groups, n_groups_alloc;
	void *by_name; /* json_t: name to index */
	struct flight_call *calls; /* by group, kind, peers, number */
	uint32_t n_calls, n_calls_alloc;
};

/* A dump from its tree, and its rows. IMPORT_UNKNOWN: it is something else. */
enum import_outcome flight_read(struct trace *t, struct trace_input *in, json_t *tree, char *why, size_t n_why);
bool flight_is(const json_t *tree);
void flight_free(struct flight_dump *d);
bool flight_join(struct trace *t);

/* The rank that a file's name tells; -1. */
int32_t flight_rank_of_name(const char *name);

/* ---- between its files ---- */

struct flight_words { /* of an entry's profiling_name */
	enum event_op op;
	int32_t from, to; /* -1 = none */
};
struct flight_words flight_words(const char *name);
enum event_dtype flight_dtype(const char *name, uint64_t *bytes);
/* Elements of a list of shapes, and how many shapes; 0 and 0 where there are none. */
uint64_t flight_elements(const json_t *shapes, size_t *n);
int64_t flight_integer(const json_t *v, int64_t other); /* digits in a string, too */

/* By name; -1. */
int32_t flight_group_of(const struct flight_dump *d, const char *name);
/* The place of the first call of that group that is not in front of what is asked for. */
uint32_t flight_place(const struct flight_dump *d, const struct flight_call *what);
bool flight_put_rows(struct trace *t, const struct flight_dump *d, const json_t *entries, const uint32_t *groups);
/* Fills t->dumped. */
bool flight_wait(struct trace *t);
