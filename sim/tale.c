#include "json_text.h"
#include "tale.h"

#include "../proto/shm.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct teller {
	struct tale *t;
	const struct play *p;
	uint32_t rank, step;
	int64_t host_ns; /* the host thread got here */
	int64_t busy_ns; /* all that has ended on the device */
	bool no_memory, stuck;
};

static void *room(struct teller *w, void *v, size_t n, size_t *n_alloc, size_t size)
{
	size_t want = *n_alloc ? 2 * *n_alloc : 64;
	void *grown;

	if (n < *n_alloc)
		return *(void **)v;
	grown = realloc(*(void **)v, want * size);
	if (!grown) {
		w->no_memory = true;
		return NULL;
	}
	*(void **)v = grown;
	*n_alloc = want;
	return grown;
}

static void say(struct teller *w, unsigned ring, int64_t at_ns, enum event_kind kind,
		unsigned flags, uint32_t name, uint64_t a, uint64_t b)
{
	struct tale *t = w->t;

	if (!room(w, &t->events[ring], t->n_events[ring], &t->n_events_alloc[ring],
		  sizeof *t->events[ring]))
		return;
	t->events[ring][t->n_events[ring]++] = (struct event){
		.tick = (uint64_t)at_ns, .kind = (uint16_t)kind, .flags = (uint16_t)flags,
		.name = name, .a = a, .b = b,
	};
}

/* The id of a name of this process; 0 for none. */
static uint32_t name_id(struct teller *w, const char *name)
{
	struct tale *t = w->t;
	const json_t *known = json_object_get(t->name_ids, name);
	size_t n_alloc = t->n_names_alloc;

	if (!name[0])
		return 0;
	if (known)
		return (uint32_t)json_integer_value(known);
	if (!room(w, &t->names, t->n_names, &n_alloc, sizeof *t->names))
		return 0;
	t->n_names_alloc = (uint32_t)n_alloc;
	t->names[t->n_names] = strdup(name);
	if (!t->names[t->n_names] ||
	    json_object_set_new(t->name_ids, name, json_integer(t->n_names + 1)) != 0) {
		free((char *)t->names[t->n_names]);
		w->no_memory = true;
		return 0;
	}
	return ++t->n_names;
}

/* ---- texts ---- */

/* Takes the text, NULL when there was no memory for it. */
static void put_text(struct teller *w, int64_t at_ns, uint32_t kind, uint32_t level, char *text)
{
	struct tale *t = w->t;

	if (!text)
		w->no_memory = true;
	else if (strlen(text) > SHM_MAX_TEXT)
		free(text); /* a live probe has no room for it either */
	else if (room(w, &t->texts, t->n_texts, &t->n_texts_alloc, sizeof *t->texts))
		t->texts[t->n_texts++] = (struct tale_text){ at_ns, kind, level, text };
	else
		free(text);
}

static char *format(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static char *format(const char *fmt, ...)
{
	char *text;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	return n < 0 ? NULL : text;
}

static void put_record(struct teller *w, int64_t at_ns, const struct spec_op *op)
{
	json_t *category;
	char *quoted;

	if (op->record.log_level >= 0) {
		put_text(w, at_ns, SHM_TEXT_LOG, (uint32_t)op->record.log_level,
			 format("case\t%s", op->record.log_text));
		return;
	}
	category = json_sprintf("%s.%s", op->record.category, op->name);
	quoted = json_text(category, JSON_ENCODE_ANY);
	put_text(w, at_ns, SHM_TEXT_RECORD, 0,
		 quoted ? format("{\"c\":%s,\"f\":%s}", quoted, op->record.fields) : NULL);
	free(quoted);
	json_decref(category);
}

static void put_gauge(struct teller *w, int64_t at_ns, const struct spec_op *op)
{
	struct tale *t = w->t;

	if (room(w, &t->gauges, t->n_gauges, &t->n_gauges_alloc, sizeof *t->gauges))
		t->gauges[t->n_gauges++] = (struct tale_gauge){ at_ns, op->name, op->gauge };
}

static bool is_first_member(const struct spec_ranks *ranks, uint32_t rank)
{
	for (uint32_t i = 0; i < rank; i++)
		if (spec_has(ranks, i))
			return false;
	return spec_has(ranks, rank);
}

/* Of each group its first member says who is in it, as the library does when it
 * is made. */
static void put_groups(struct teller *w)
{
	const struct spec *s = w->p->spec;

	for (uint32_t g = 0; g < s->n_groups; g++) {
		const struct spec_ranks *ranks = &s->groups[g].ranks;
		json_t *list, *record;

		if ((!s->groups[g].declared && w->p->n_calls[g] == 0) ||
		    !is_first_member(ranks, w->rank))
			continue;
		list = json_array();
		for (uint32_t rank = w->rank; rank < s->world; rank++)
			if (spec_has(ranks, rank) &&
			    json_array_append_new(list, json_integer(rank)) != 0)
				w->no_memory = true;
		record = json_pack("{s:s, s:{s:s, s:o}}", "c", "meta.group", "f", "name",
				   s->groups[g].name, "ranks", list);
		put_text(w, 0, SHM_TEXT_RECORD, 0, json_text(record, JSON_COMPACT));
		json_decref(record);
	}
}

static void put_limit(struct teller *w)
{
	if (w->p->spec->watchdog_ms > 0)
		put_text(w, 0, SHM_TEXT_RECORD, 0,
			 format("{\"c\":\"init.backend\",\"f\":{\"timeout_ms\":%.15g}}",
				w->p->spec->watchdog_ms));
}

/* The watchdog of a rank speaks of the call that is first to pend too long. Nobody
 * dies of it here: what a case says happens. */
static void put_watchdog(struct teller *w)
{
	const struct play *p = w->p;
	int64_t limit_ns = (int64_t)(p->spec->watchdog_ms * 1e6), at_ns = PLAY_NEVER;
	const struct play_node *late = NULL;
	size_t n_before;

	for (uint32_t i = p->first_node[w->rank]; limit_ns > 0 && i < p->first_node[w->rank + 1]; i++) {
		const struct play_node *n = &p->nodes[i];
		const struct play_node *call = n->kind == PLAY_LAUNCH ? &p->nodes[n->target] : NULL;

		if (!call || call->kind != PLAY_COLL || n->end_ns == PLAY_NEVER)
			continue;
		if (n->end_ns + limit_ns < at_ns && call->end_ns > n->end_ns + limit_ns) {
			at_ns = n->end_ns + limit_ns;
			late = call;
		}
	}
	n_before = w->t->n_texts;
	if (late)
		put_text(w, at_ns, SHM_TEXT_LOG, 40,
			 format("watchdog\tcall %u of group %s (%s of %" PRIu64
				" elements) has not ended after %.15g ms, the limit",
				late->call, p->spec->groups[late->group].name, late->name,
				late->count, p->spec->watchdog_ms));
	for (size_t i = n_before; i > 0 && i < w->t->n_texts; i--) { /* to its place in time */
		struct tale_text *v = w->t->texts, mine = v[i];

		if (v[i - 1].at_ns <= mine.at_ns)
			break;
		v[i] = v[i - 1];
		v[i - 1] = mine;
	}
}

/* ---- the host's thread ---- */

static uint16_t flags_of(const struct play_node *n)
{
	return event_coll_flags((enum event_op)n->op->coll.op, (enum event_dtype)n->op->coll.type);
}

/* A message has a group of its own, and a number in it. */
static uint32_t message_name(struct teller *w, const struct play_pair *pair)
{
	char name[64];

	snprintf(name, sizeof name, "default p2p %u>%u", pair->send ? w->rank : pair->peer,
		 pair->send ? pair->peer : w->rank);
	return name_id(w, name);
}

static unsigned message_flags(const struct play_pair *pair)
{
	return event_coll_flags(pair->send ? OP_SEND : OP_RECV, DTYPE_UNKNOWN);
}

static void tell_submits(struct teller *w, int64_t at_ns, const struct play_node *n)
{
	const struct play *p = w->p;

	if (n->kind == PLAY_COLL)
		say(w, TALE_HOST, at_ns, EVENT_COLL_SUBMIT, flags_of(n),
		    name_id(w, p->spec->groups[n->group].name), event_a(n->step, n->call),
		    event_submit_b(n->op->coll.root, n->launch));
	for (uint32_t i = n->first_pair; i < n->first_pair + n->n_pairs; i++)
		say(w, TALE_HOST, at_ns, EVENT_COLL_SUBMIT, message_flags(&p->pairs[i]),
		    message_name(w, &p->pairs[i]), event_a(n->step, p->pairs[i].number),
		    event_submit_b(-1, n->launch));
}

static void tell_launch(struct teller *w, const struct play_node *host)
{
	const struct play_node *n = &w->p->nodes[host->target];
	const char *name = n->kind == PLAY_COLL ? n->op->coll.tensor : n->name;
	int64_t at_ns = host->end_ns;

	if (host->end_ns == PLAY_NEVER)
		return;
	if (host->phase)
		say(w, TALE_HOST, host->start_ns, EVENT_PHASE_BEGIN, host->phase, 0,
		    event_a(host->step, host->micro), 0);
	say(w, TALE_HOST, at_ns, EVENT_LAUNCH, n->stream, name_id(w, name ? name : ""),
	    event_a(n->step, n->launch), 0);
	for (uint32_t i = n->first_wait; i < n->first_wait + n->n_waits; i++)
		say(w, TALE_HOST, at_ns, EVENT_STREAM_WAIT, n->stream, 0,
		    event_a(n->step, n->launch), w->p->nodes[w->p->waits[i]].launch);
	tell_submits(w, at_ns, n);
	if (host->phase)
		say(w, TALE_HOST, at_ns, EVENT_PHASE_END, host->phase, 0,
		    event_a(host->step, host->micro), 0);
}

static void tell_work(struct teller *w, const struct play_node *n)
{
	uint32_t name = name_id(w, n->name);

	if (n->start_ns == PLAY_NEVER)
		return;
	say(w, TALE_HOST, n->start_ns, EVENT_WORK_BEGIN, 0, name, event_a(n->step, 0), 0);
	if (n->end_ns != PLAY_NEVER)
		say(w, TALE_HOST, n->end_ns, EVENT_WORK_END, 0, name, event_a(n->step, 0), 0);
}

/* The wait begins when the host comes to it and ends when the node begins. */
static void tell_wait(struct teller *w, const struct play_node *n)
{
	uint32_t launch = n->target == PLAY_NONE ? 0 : w->p->nodes[n->target].launch;

	if (w->host_ns == PLAY_NEVER)
		return;
	say(w, TALE_HOST, w->host_ns, EVENT_HOST_WAIT_BEGIN, 0, 0, event_a(n->step, launch), 0);
	if (n->start_ns != PLAY_NEVER)
		say(w, TALE_HOST, n->start_ns, EVENT_HOST_WAIT_END, 0, 0, event_a(n->step, launch),
		    0);
}

static void end_step(struct teller *w, int64_t at_ns)
{
	if (w->step != EVENT_STEP_UNKNOWN)
		say(w, TALE_HOST, at_ns, EVENT_STEP_END, 0, 0, event_a(w->step, 0), 0);
}

static void tell_mark(struct teller *w, const struct play_node *n)
{
	if (n->start_ns == PLAY_NEVER)
		return;
	if (n->op->kind == SPEC_STEP) {
		end_step(w, n->start_ns);
		w->step = n->step;
		say(w, TALE_HOST, n->start_ns, EVENT_STEP_BEGIN, 0, 0, event_a(n->step, 0), 0);
	} else if (n->op->kind == SPEC_RECORD) {
		put_record(w, n->start_ns, n->op);
	} else {
		put_gauge(w, n->start_ns, n->op);
	}
}

static void tell_exit(struct teller *w, const struct play_node *n)
{
	if (n->start_ns != PLAY_NEVER)
		end_step(w, n->start_ns);
	w->t->left_ns = n->start_ns;
}

/* ---- the device ---- */

static void tell_device(struct teller *w, const struct play_node *n, bool begin)
{
	int64_t at_ns = begin ? n->start_ns : n->end_ns;
	enum event_kind kind = begin ? EVENT_COLL_BEGIN : EVENT_COLL_END;
	const struct play *p = w->p;

	if (n->kind == PLAY_KERNEL)
		say(w, TALE_DEVICE, at_ns, begin ? EVENT_KERNEL_BEGIN : EVENT_KERNEL_END, n->stream,
		    name_id(w, n->name), event_a(n->step, n->launch), 0);
	else if (n->kind == PLAY_COLL)
		say(w, TALE_DEVICE, at_ns, kind, flags_of(n),
		    name_id(w, p->spec->groups[n->group].name), event_a(n->step, n->call),
		    n->count * n->op->coll.element_bytes);
	for (uint32_t i = n->first_pair; i < n->first_pair + n->n_pairs; i++)
		say(w, TALE_DEVICE, at_ns, kind, message_flags(&p->pairs[i]),
		    message_name(w, &p->pairs[i]), event_a(n->step, p->pairs[i].number),
		    p->pairs[i].count);
}

struct moment {
	int64_t at_ns;
	uint32_t node;
	bool end;
};

/* Within an instant in the order of the launches: what ends makes way for what begins. */
static int by_time(const void *a, const void *b)
{
	const struct moment *x = a, *y = b;

	if (x->at_ns != y->at_ns)
		return x->at_ns < y->at_ns ? -1 : 1;
	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return x->end - y->end;
}

static void tell_devices(struct teller *w)
{
	const struct play *p = w->p;
	uint32_t first = p->first_node[w->rank], end = p->first_node[w->rank + 1], n = 0;
	struct moment *v = calloc(2 * (size_t)(end - first) + 1, sizeof *v);

	if (!v) {
		w->no_memory = true;
		return;
	}
	for (uint32_t i = first; i < end; i++) {
		const struct play_node *node = &p->nodes[i];

		if (!play_is_device((enum play_kind)node->kind))
			continue;
		if (node->start_ns != PLAY_NEVER)
			v[n++] = (struct moment){ node->start_ns, i, false };
		if (node->end_ns != PLAY_NEVER)
			v[n++] = (struct moment){ node->end_ns, i, true };
		/* A process does not leave while its device works for it. */
		if (node->end_ns > w->t->left_ns)
			w->t->left_ns = node->end_ns;
	}
	qsort(v, n, sizeof *v, by_time);
	for (uint32_t i = 0; i < n; i++)
		tell_device(w, &p->nodes[v[i].node], !v[i].end);
	free(v);
}

static void tell_host(struct teller *w)
{
	const struct play *p = w->p;

	for (uint32_t i = p->first_node[w->rank]; i < p->first_node[w->rank + 1]; i++) {
		const struct play_node *n = &p->nodes[i];

		if (n->kind == PLAY_LAUNCH)
			tell_launch(w, n);
		else if (n->kind == PLAY_CPU || n->kind == PLAY_STALL)
			tell_work(w, n);
		else if (n->kind == PLAY_SYNC || n->kind == PLAY_BLOCK)
			tell_wait(w, n);
		else if (n->kind == PLAY_MARK)
			tell_mark(w, n);
		else if (n->kind == PLAY_EXIT)
			tell_exit(w, n);
		if (!play_is_device((enum play_kind)n->kind))
			w->host_ns = n->end_ns;
	}
}

int tale_tell(struct tale *ret, const struct play *p, uint32_t rank)
{
	struct teller w = { .t = ret, .p = p, .rank = rank, .step = EVENT_STEP_UNKNOWN };

	*ret = (struct tale){ .left_ns = PLAY_NEVER, .name_ids = json_object() };
	if (!ret->name_ids)
		return -ENOMEM;
	put_limit(&w);
	put_groups(&w);
	tell_host(&w);
	tell_devices(&w);
	put_watchdog(&w);
	return w.no_memory ? -ENOMEM : 0;
}

void tale_fini(struct tale *t)
{
	for (unsigned i = 0; i < TALE_RINGS; i++)
		free(t->events[i]);
	for (uint32_t i = 0; i < t->n_names; i++)
		free((char *)t->names[i]);
	for (size_t i = 0; i < t->n_texts; i++)
		free(t->texts[i].text);
	free(t->names);
	free(t->texts);
	free(t->gauges);
	json_decref(t->name_ids);
	*t = (struct tale){ 0 };
}
