/* timeline.h - the timelines of a pipeline-parallel job that StragglerAnalysis works on.
 *
 * A JSON list of Chrome events, one process a data-parallel rank and five threads a
 * worker ("PP rank 1, TP rank 0, compute"): computation of each micro-batch, its
 * messages to the neighbour stages, collectives of the end of a step. Waiting is not
 * in the events but in the gaps before them; a collective's spans begin together.
 *
 * All operations of a step and what they come after are known, so the job can be
 * replayed: the what-if facts come from here. A worker's tensor ranks are one time line
 * in the file: the ranks of the catalogue are the workers; why tells on success, too,
 * where their numbers are not the job's.
 */
#pragma once

#include "trace.h"
#include "trace_events.h"

#define TIMELINE_MAX_OPS (5u << 18) /* all of them and what they come after are in memory at once: below 200 MB */

/* s: the list's begin was read. False: it is none of these, or it cannot be read; then
 * why says so (n_why bytes), unless t->no_memory. */
extern const struct import_format format_timeline;

bool timeline_read(struct trace *t, struct trace_events *s, uint64_t *ret_n_events, char *why, size_t n_why);
