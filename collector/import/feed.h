/* feed.h - a trace through the analysis into a new catalogue.
 *
 * Events are given to the core in the order of time and time passes for its rules, as
 * it does for a live job; they are stored as a collector stores them. The core's clock
 * is that of the trace's first clock.
 */
#pragma once

#include "trace.h"

struct feed_config {
	const char *db; /* a new file */
	const char *run_id;
	const struct trace_input *inputs;
	uint32_t n_inputs;
	bool keep_names; /* of people and machines; else they are marks (mask.h) */
	size_t cache_bytes; /* of the database, meanwhile; 0 = 32 MiB */
	void (*progress)(void *arg, double share); /* may be NULL */
	void *arg;
};

/* 0, or -1 after a sentence in why. A file that was made is taken away on failure. */
int trace_feed(struct trace *t, const struct feed_config *cfg, char *why, size_t n_why);
