/* import.h - files of other tools, known by what is in them and not by their name. */
#pragma once

#include "trace.h"

struct import_progress {
	void (*fn)(void *arg, const char *path, double share); /* may be NULL */
	void *arg;
};

/* Reads all of them, up to n_jobs at once (0: as many as there are cores), into t in their order: what comes
 * of them is the same with any number of jobs. The share is of all files then. False only without
 * memory. */
bool import_files(struct trace *t, struct trace_input *inputs, uint32_t n_inputs, unsigned n_jobs,
		  const struct import_progress *p);

/* Reads in->path into t; in says what came of it, in a sentence where it was nothing.
 * False only without memory. */
bool import_file(struct trace *t, struct trace_input *in, const struct import_progress *p);
/* The same, but only if it is of a format that is read apart from other files: t is to be empty. False:
 * it is not, or not surely; in is as it was. */
bool import_file_apart(struct trace *t, struct trace_input *in, const struct import_progress *p);
/* Once all files are read: what they have in common. False only without memory. */
bool import_join(struct trace *t, struct trace_input *inputs, uint32_t n_inputs);
