/* trace_events_top.c - the members that stand beside the list of events. */
#include "trace_events_internal.h"

#include "json_number.h"
#include "json_repair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
bool trace_events_keep(struct trace_events *s)
{
	struct member *m = place_of(s);
	size_t n = s->cut.n_text;

	if (n > 0) {
		if (!trace_events_room(s))
			return false;
		n = checked(s, false);
		if (n == 0) {
			n = checked(s, true);
			s->n_repaired += n > 0;
		}
		if (n == 0)
			return trace_events_fail(s, "a value that is none");
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
