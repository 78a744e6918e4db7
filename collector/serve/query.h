/* query.h - answers read from the catalogue.
 *
 * Any thread but the loop: a worker takes a read-only connection from the pool,
 * reads in one short transaction and gives text back. A statement that outlives
 * the deadline is stopped, so that no reader holds the log back for long.
 */
#pragma once

#include "route.h"
#include "serve.h"

struct query; /* the pool */

enum query_outcome {
	QUERY_OK = 0,
	QUERY_BUSY, /* the catalogue is locked or not there yet: try again */
	QUERY_LATE, /* took longer than the deadline */
	QUERY_NONE, /* no such row */
	QUERY_BAD,  /* not a catalogue of ours, or damaged */
};

/* What the loop thread knows at the moment of the question. */
struct query_facts {
	struct serve_live live; /* listen is not valid: use the one below */
	char listen[256];       /* "" = unknown */
	const char *state;
	uint32_t first_step, last_step, n_ranks; /* of the heat */
	uint64_t rev, cursor;
	size_t n_streams;
	char *finished; /* what was told at the load, owned; NULL = ask the catalogue */
};

/* finished: nobody is known to write it, so it may be read without leaving a trace. */
int query_new(struct query **ret, const char *path, bool finished, unsigned deadline_ms);
/* Running and later questions end with QUERY_BUSY. Any thread. */
void query_cancel(struct query *q);
void query_free(struct query *q); /* no question may be running */

/* 0 with text (caller frees), an outcome with a reason in why, or -ENOMEM. */
int query_answer(struct query *q, const struct route_request *r, const struct query_facts *facts,
		 char **ret, size_t *ret_n, char why[160]);

/* For a file without its collector, one call at a time. No deadline.
 *
 * All of one moment: what the live collector would know, what boot tells (*ret_told,
 * caller frees) and the picture. */
int query_load(struct query *q, struct serve_live *ret, char **ret_told, struct heat *heat,
	       char why[160]);
/* Was the file written since the last load that went well? */
bool query_changed(struct query *q);
/* Is this a catalogue that can be answered from? */
int query_check(struct query *q, char why[160]);
