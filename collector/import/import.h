/* import.h - files of other tools, known by what is in them and not by their name. */
#pragma once

#include "trace.h"

struct import_progress {
	void (*fn)(void *arg, const char *path, double share); /* may be NULL */
	void *arg;
};

/* Reads in->path into t; in says what came of it, in a sentence where it was nothing.
 * False only without memory. */
bool import_file(struct trace *t, struct trace_input *in, const struct import_progress *p);
/* Once all files are read: what they have in common. False only without memory. */
bool import_join(struct trace *t, struct trace_input *inputs, uint32_t n_inputs);
