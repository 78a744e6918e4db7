/* kineto.h - traces of the PyTorch profiler: one file a rank.
 *
 * From it come the profiler's steps, the launches of the host, what ran on the device
 * and its collectives. A collective has no number in these files: calls of a group are
 * counted from the first step on, and that the ranks' counts fit is tested by when
 * they end. Each file is a clock of its own unless it names a machine that another one
 * names too.
 */
#pragma once

#include "trace_events.h"
#include "trace.h"

/* s: the object's begin was read. Not IMPORT_OK: why has a sentence, unless
 * t->no_memory. in gets rank and number of events. */
enum import_outcome kineto_read(struct trace *t, struct trace_input *in, struct trace_events *s, char *why,
				size_t n_why);
/* The same of a list of functions (kineto_list.c). */
enum import_outcome kineto_read_list(struct trace *t, struct trace_input *in, struct trace_events *s, char *why,
				     size_t n_why);
extern const struct import_format format_kineto, format_kineto_list;

/* Do the files' calls fit together? Where they do not, each rank's stay its own and
 * its input says so. False without memory. */
bool kineto_join(struct trace *t, struct trace_input *inputs, uint32_t n_inputs);
