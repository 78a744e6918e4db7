#include "trace_events.h"

#include "json_number.h"
#include "json_repair.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static bool is_bad(struct trace_events *s, const char *what)
{
	json_cut_fail(&s->cut, what, s->cut.at_bytes);
	snprintf(s->why, sizeof s->why, "is no JSON: %s", s->cut.why);
	return false;
}

static char *room_for_repair(struct trace_events *s)
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
		return is_bad(s, "its events are no list of objects");
	if (trace_event_read(s->walk, s->cut.text, s->cut.n_text, ev))
		return true;
	if (!room_for_repair(s))
		return false;
	n = json_repair(s->cut.text, s->cut.n_text, s->repaired);
	memset(s->repaired + n, 0, JSON_CUT_PADDING);
	s->n_repaired++;
	return trace_event_read(s->walk, s->repaired, n, ev) || is_bad(s, "an event that is none");
}

/* ---- other members ---- */

static void nothing(void *arg, const struct json_item *v)
{
	(void)arg;
	(void)v;
}

/* In brackets, so that numbers and words are walked like all else. 0 = no JSON. */
static size_t checked(struct trace_events *s, bool repair)
{
	char *out = s->repaired;
	size_t n = s->cut.n_text;

	out[0] = '[';
	if (repair)
		n = json_repair(s->cut.text, n, out + 1);
	else
		memcpy(out + 1, s->cut.text, n);
	out[n + 1] = ']';
	memset(out + n + 2, 0, JSON_CUT_PADDING);
	return json_walk(s->walk, out, n + 2, nothing, NULL) ? n : 0;
}

static struct member *place_of(struct trace_events *s)
{
	for (unsigned i = 0; i < s->n_members; i++)
		if (strcmp(s->members[i].key, s->cut.key) == 0)
			return &s->members[i];
	if (s->n_members == TRACE_EVENTS_MEMBERS)
		return NULL;
	snprintf(s->members[s->n_members].key, sizeof s->members->key, "%s", s->cut.key);
	return &s->members[s->n_members++];
}

/* A bounded number of members of a bounded length, the first ones of a file. */
static bool keep_member(struct trace_events *s)
{
	struct member *m = place_of(s);
	size_t n = s->cut.n_text;

	if (n > 0) {
		if (!room_for_repair(s))
			return false;
		n = checked(s, false);
		if (n == 0) {
			n = checked(s, true);
			s->n_repaired += n > 0;
		}
		if (n == 0)
			return is_bad(s, "a value that is none");
	}
	if (!m || !s->cut.key[0])
		return true;
	if (m->text)
		s->n_member_bytes -= strlen(m->text);
	if (n > TRACE_EVENTS_MEMBER_BYTES - s->n_member_bytes)
		n = 0;
	free(m->text);
	m->text = strndup(n > 0 ? s->repaired + 1 : "", n);
	s->no_memory |= !m->text;
	s->n_member_bytes += n;
	return m->text != NULL;
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
			(void)keep_member(s);
			break;
		case JSON_CUT_BAD:
			is_bad(s, "");
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

/* ---- afterwards ---- */

const char *trace_events_top(const struct trace_events *s, const char *name)
{
	for (unsigned i = 0; i < s->n_members; i++)
		if (strcmp(s->members[i].key, name) == 0)
			return s->members[i].text;
	return NULL;
}

struct top {
	char type;
	char *out;
	size_t n_out;
	int64_t number;
	bool found;
};

static void take_top(void *arg, const struct json_item *v)
{
	struct top *t = arg;

	if (v->depth != 1 || v->type != t->type)
		return;
	if (t->out)
		snprintf(t->out, t->n_out, "%.*s", (int)(v->n_text < t->n_out ? v->n_text : t->n_out - 1), v->text);
	t->found = t->out || json_integer_of(v->text, v->n_text, 0, &t->number);
}

static bool look(const struct trace_events *s, const char *name, struct top *t)
{
	const char *text = trace_events_top(s, name);
	char one[4096 + JSON_CUT_PADDING];
	int n = text && text[0] ? snprintf(one, 4096, "[%s]", text) : 0;

	return n > 0 && n < 4096 && json_walk(s->walk, one, (size_t)n, take_top, t) && t->found;
}

bool trace_events_top_text(const struct trace_events *s, const char *name, char *out, size_t n_out)
{
	struct top t = { .type = '"', .out = out, .n_out = n_out };

	out[0] = '\0';
	return look(s, name, &t);
}

bool trace_events_top_integer(const struct trace_events *s, const char *name, int64_t *ret)
{
	struct top t = { .type = '0' };

	if (!look(s, name, &t))
		return false;
	*ret = t.number;
	return true;
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
}
