/* spans.h - Chrome traces of spans; see spans.c. */
#pragma once

#include "format.h"
#include "trace_events.h"

extern const struct import_format format_spans;

enum import_outcome spans_read(struct trace *t, struct trace_input *in, struct trace_events *events, char *why,
			       size_t n_why);
