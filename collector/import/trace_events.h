/* trace_events.h - the events of a JSON file of any size, one after the other.
 *
 * For every format that is a list of objects: the file itself, or a member of the object
 * that is the file ("traceEvents", "nodes", …). Of each object a struct trace_event has what
 * Chrome traces have; its other arguments are there by name, and its text as a whole.
 * The other members of the file's object are there once the events have ended, for they may
 * stand in front of the list or behind it.
 *
 * What writers are known to get wrong is repaired and counted (json_repair.h), an event that
 * is too long is left out and counted; anything else that is no JSON is the end, with a
 * sentence. Memory is bounded whatever the file is.
 */
#pragma once

#include "json_cut.h"
#include "trace_event.h"

#define TRACE_EVENTS_MEMBER_BYTES (1u << 20) /* of one, and of all that are kept */
#define TRACE_EVENTS_MEMBERS 64

enum trace_events_got {
	TRACE_EVENTS_ONE,
	TRACE_EVENTS_END,
	TRACE_EVENTS_BAD, /* trace_events_why() */
};

struct trace_events;

/* list is the member's name and stays the caller's; NULL = "traceEvents". NULL without memory. */
struct trace_events *trace_events_open(bytes_fn read, void *arg, const char *list);
void trace_events_close(struct trace_events *s); /* NULL is fine */

/* What ev points to is there until the next call. */
enum trace_events_got trace_events_next(struct trace_events *s, struct trace_event *ev);
/* A sentence that goes on from the file's name: "is no JSON: …, near byte 1234". Without memory: "". */
const char *trace_events_why(const struct trace_events *s);

/* After the end. Is the list there? Is the file the list? */
bool trace_events_has_list(const struct trace_events *s);
bool trace_events_is_list(const struct trace_events *s);
/* A list that is the file ended without its bracket, behind a whole event: whoever wrote it was
 * stopped, or left it so, as Chrome's format lets them. */
bool trace_events_unclosed(const struct trace_events *s);
/* The JSON text of a member, of two with one name the last; NULL = not there. "" = too long to keep. */
const char *trace_events_top(const struct trace_events *s, const char *name);
/* Its string, without quotes and escapes; or its number as an integer. False: there is none. */
bool trace_events_top_text(const struct trace_events *s, const char *name, char *out, size_t n_out);
bool trace_events_top_integer(const struct trace_events *s, const char *name, int64_t *ret);

/* What the outcome has to say of it, from "ok" or what out has already ("ok; …"): nothing when all was well. */
void trace_events_remark(const struct trace_events *s, char *out, size_t n_out);
