/* trace_events_internal.h - between the reading of events and of what stands beside them. */
#pragma once

#include "trace_events.h"

struct member {
	char key[sizeof((struct json_cut *)0)->key];
	char *text; /* owned; "" = too long */
};

struct trace_events {
	struct json_cut cut;
	struct json_walk *walk;
	char *repaired; /* room for the longest text, once one needed it */
	struct member members[TRACE_EVENTS_MEMBERS];
	unsigned n_members;
	size_t n_member_bytes;
	uint64_t n_repaired, n_too_long;
	bool no_memory;
	char why[200];
};

/* A sentence from json_cut's, or with what at the text that was cut last; always false. */
bool trace_events_fail(struct trace_events *s, const char *what);
/* Room for the longest text, repaired and in brackets. NULL without memory. */
char *trace_events_room(struct trace_events *s);
/* The member that was cut last. False without memory, or it is no JSON. */
bool trace_events_keep(struct trace_events *s);
