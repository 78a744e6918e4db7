#include "trace_events_internal.h"

#include "json_repair.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct trace_events *trace_events_open(bytes_fn read, void *arg, const char *list)
{
	struct trace_events *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->walk = json_walk_new();
	if (json_cut_init(&s->cut, read, arg, list ? list : "traceEvents") && s->walk)
		return s;
	trace_events_close(s);
	return NULL;
}

void trace_events_close(struct trace_events *s)
{
	if (!s)
		return;
	for (unsigned i = 0; i < s->n_members; i++)
		free(s->members[i].text);
	json_cut_fini(&s->cut);
	json_walk_free(s->walk);
	free(s->repaired);
	free(s);
}

bool trace_events_fail(struct trace_events *s, const char *what)
{
	json_cut_fail(&s->cut, what, s->cut.at_bytes);
	snprintf(s->why, sizeof s->why, "is no JSON: %s", s->cut.why);
	return false;
}

char *trace_events_room(struct trace_events *s)
{
	if (!s->repaired)
		s->repaired = malloc(JSON_REPAIR_GROWS * (size_t)JSON_CUT_BYTES + 2 + JSON_CUT_PADDING);
	s->no_memory |= !s->repaired;
	return s->repaired;
}

/* ---- events ---- */

static bool read_event(struct trace_events *s, struct trace_event *ev)
{
	size_t n;

	if (s->cut.text[0] != '{')
		return trace_events_fail(s, "its events are no list of objects");
	if (trace_event_read(s->walk, s->cut.text, s->cut.n_text, ev))
		return true;
	if (!trace_events_room(s))
		return false;
	n = json_repair(s->cut.text, s->cut.n_text, s->repaired);
	memset(s->repaired + n, 0, JSON_CUT_PADDING);
	s->n_repaired++;
	return trace_event_read(s->walk, s->repaired, n, ev) || trace_events_fail(s, "an event that is none");
}

enum trace_events_got trace_events_next(struct trace_events *s, struct trace_event *ev)
{
	while (!s->why[0] && !s->no_memory) {
		switch (json_cut_next(&s->cut)) {
		case JSON_CUT_ELEMENT:
			if (s->cut.n_text == 0)
				s->n_too_long++;
			else if (read_event(s, ev))
				return TRACE_EVENTS_ONE;
			break;
		case JSON_CUT_MEMBER:
			(void)trace_events_keep(s);
			break;
		case JSON_CUT_BAD:
			trace_events_fail(s, "");
			break;
		case JSON_CUT_END:
			return TRACE_EVENTS_END;
		}
	}
	return TRACE_EVENTS_BAD;
}

const char *trace_events_why(const struct trace_events *s)
{
	return s->why;
}

bool trace_events_has_list(const struct trace_events *s)
{
	return s->cut.has_list;
}

bool trace_events_is_list(const struct trace_events *s)
{
	return s->cut.has_list && !s->cut.in_object;
}

bool trace_events_unclosed(const struct trace_events *s)
{
	return s->cut.unclosed;
}

static void say(char *out, size_t n_out, const char *what, uint64_t n)
{
	size_t at = strlen(out);

	if (at == 0)
		at = (size_t)snprintf(out, n_out, "ok");
	if (at < n_out)
		snprintf(out + at, n_out - at, "; %" PRIu64 " %s", n, what);
}

void trace_events_remark(const struct trace_events *s, char *out, size_t n_out)
{
	if (s->n_repaired > 0)
		say(out, n_out, "of its values are written as JSON does not allow, and were read with marks in those places",
		    s->n_repaired);
	if (s->n_too_long > 0)
		say(out, n_out, "of its events are longer than 1 MiB and were left out", s->n_too_long);
	if (s->cut.unclosed) {
		size_t at = strlen(out);

		snprintf(out + at, n_out - at, "%s; its list of events has no end: it may be cut off", at ? "" : "ok");
	}
}
