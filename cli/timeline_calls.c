/* timeline_calls.c - collectives: one slice a rank from its arrival to its end, in it the
 * wait for the last to arrive and what was left to transfer, and an arrow from the last to
 * the end of each other's wait. Where the clocks cannot tell who was last there is none. */
#include "timeline.h"

#include "place.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "sql.h"

enum column { COMM, GROUP, SEQ, OP, DTYPE, BYTES, STEP, FIRST_NS, LAST_NS, SKEW, SKEW_ERR, LAST_RANK, DECIDED, MISMATCH, GAP, EXPECTED, SEEN, ARRIVALS };

/* One row of the view collective. */
struct call {
	const char *comm, *op;
	uint32_t group;
	int64_t seq, first_ns, last_ns;
	int32_t last_rank; /* -1 = not decided */
	bool gap;
	struct sink_arg args[8];
	size_t n_args;
	struct sink_arg lateness[3]; /* of the last over the others */
	uint64_t *arrows; /* from the last, one for each other that is shown; owned */
	size_t n_arrows, n_told;
};

/* One member of it, as the view collective_rank has it. */
struct member {
	struct timeline_rank *rank;
	int64_t arrival_ns, err_ns, wait_ns, wait_err_ns, end_ns;
	bool has_end, has_wait, has_arrow;
};

static bool read_member(struct timeline *t, const struct call *c, const json_t *v, struct member *m)
{
	size_t n = json_array_size(v);
	const json_t *exit_ns = json_array_get(v, 2), *wait_err_ns = json_array_get(v, 4), *wait_ns = json_array_get(v, 5);
	int64_t enter_ns;

	if (n < 4 || !json_is_integer(json_array_get(v, 0)) || !json_is_integer(json_array_get(v, 1))) {
		t->lost.n_unread++;
		return false;
	}
	*m = (struct member){ .rank = timeline_rank(t, (int32_t)json_integer_value(json_array_get(v, 0))) };
	if (!m->rank)
		return false;
	enter_ns = json_integer_value(json_array_get(v, 1));
	m->arrival_ns = c->first_ns + enter_ns;
	m->err_ns = json_is_integer(json_array_get(v, 3)) ? json_integer_value(json_array_get(v, 3)) : INT64_MAX;
	m->has_end = json_is_integer(exit_ns) && json_integer_value(exit_ns) >= enter_ns;
	m->end_ns = m->has_end ? c->first_ns + json_integer_value(exit_ns)
			       : t->e->window.to_ns > m->arrival_ns ? t->e->window.to_ns : m->arrival_ns;
	m->has_wait = n < 6 || json_is_integer(wait_ns);
	m->wait_ns = n < 6 ? c->last_ns - m->arrival_ns : json_integer_value(wait_ns);
	m->wait_err_ns = json_is_integer(wait_err_ns) ? json_integer_value(wait_err_ns) : INT64_MAX;
	return true;
}

static int64_t wait_end_ns(const struct call *c, const struct member *m)
{
	if (!m->has_wait || c->gap || m->wait_ns <= 0)
		return m->arrival_ns;
	return m->wait_ns < m->end_ns - m->arrival_ns ? m->arrival_ns + m->wait_ns : m->end_ns;
}

static void put_last(struct timeline *t, struct call *c, uint32_t track, int64_t at_ns)
{
	t->sink->ops->instant(t->sink, &(struct sink_event){ .track = track, .at_ns = at_ns, .name = "last to arrive",
							     .cat = "arrival", .args = c->lateness, .n_args = 3,
							     .out = c->arrows, .n_out = c->n_arrows });
	t->n_events++;
}

/* The part behind the wait; where there is none, the call itself takes the arrow. */
static void put_inside(struct timeline *t, struct call *c, const struct member *m, struct sink_event *ev, bool is_last)
{
	int64_t inside_ns = wait_end_ns(c, m);
	const uint64_t *arrow = m->has_arrow ? &c->arrows[c->n_told++] : NULL;

	if (inside_ns == m->arrival_ns) {
		ev->in = arrow;
		ev->n_in = arrow != NULL;
	}
	t->sink->ops->begin(t->sink, ev);
	if (is_last)
		put_last(t, c, ev->track, m->arrival_ns);
	if (inside_ns > m->arrival_ns) {
		timeline_slice(t, &(struct sink_event){ .track = ev->track, .at_ns = m->arrival_ns, .name = "wait for the last", .cat = "wait" },
			       inside_ns);
		timeline_slice(t, &(struct sink_event){ .track = ev->track, .at_ns = inside_ns, .name = "transfer", .cat = "transfer",
							.in = arrow, .n_in = arrow != NULL }, m->end_ns);
	}
	t->sink->ops->end(t->sink, &(struct sink_event){ .track = ev->track, .at_ns = m->end_ns });
	t->n_events++;
}

static void put_member(struct timeline *t, struct call *c, const struct member *m)
{
	struct timeline_set *s = timeline_set(t, m->rank, TIMELINE_GROUP, c->group, "group %s", c->comm);
	struct sink_arg args[SINK_MAX_ARGS];
	struct sink_event ev = { .at_ns = m->arrival_ns, .name = c->op, .cat = "collective", .args = args };
	bool waits_before = c->gap && m->has_wait && m->wait_ns > 0;
	uint32_t track;

	if (!s)
		return;
	if (waits_before) {
		track = timeline_lane(t, s, m->arrival_ns - m->wait_ns, m->arrival_ns);
		if (track)
			timeline_slice(t, &(struct sink_event){ .track = track, .at_ns = m->arrival_ns - m->wait_ns,
								.name = "gap before the call", .cat = "wait" }, m->arrival_ns);
	}
	memcpy(args, c->args, c->n_args * sizeof *args);
	ev.n_args = c->n_args;
	args[ev.n_args++] = arg_error("clock_error_ns", m->err_ns);
	if (m->has_wait) {
		args[ev.n_args++] = arg_int("wait_ns", m->wait_ns);
		args[ev.n_args++] = arg_error("wait_error_ns", m->wait_err_ns);
	}
	if (!m->has_end) {
		args[ev.n_args++] = arg_bool("unfinished", true);
		t->lost.n_cut++;
	}
	ev.track = timeline_lane(t, s, m->arrival_ns, m->end_ns);
	if (ev.track)
		put_inside(t, c, m, &ev, m->rank->rank == c->last_rank);
	place_note(t->place, m->rank->rank, c->comm, (uint64_t)c->seq, m->arrival_ns);
}

static void read_call(sqlite3_stmt *q, struct call *c)
{
	bool mismatch = sqlite3_column_int(q, MISMATCH) != 0;

	*c = (struct call){ .comm = (const char *)sqlite3_column_text(q, COMM), .op = (const char *)sqlite3_column_text(q, OP),
			    .group = (uint32_t)sqlite3_column_int64(q, GROUP), .seq = sqlite3_column_int64(q, SEQ),
			    .first_ns = sqlite3_column_int64(q, FIRST_NS), .last_ns = sqlite3_column_int64(q, LAST_NS),
			    .last_rank = -1, .gap = sqlite3_column_int(q, GAP) != 0 };
	if (sqlite3_column_type(q, LAST_RANK) == SQLITE_INTEGER && sqlite3_column_int(q, DECIDED))
		c->last_rank = sqlite3_column_int(q, LAST_RANK);
	c->args[c->n_args++] = arg_int("seq", c->seq);
	if (sqlite3_column_type(q, STEP) == SQLITE_INTEGER)
		c->args[c->n_args++] = arg_int("step", sqlite3_column_int64(q, STEP));
	c->args[c->n_args++] = arg_int("bytes", sqlite3_column_int64(q, BYTES));
	c->args[c->n_args++] = arg_text("dtype", (const char *)sqlite3_column_text(q, DTYPE));
	if (c->last_rank >= 0)
		c->args[c->n_args++] = arg_int("last_rank", c->last_rank);
	else
		c->args[c->n_args++] = arg_text("last_rank", "too close to call");
	if (mismatch)
		c->args[c->n_args++] = arg_bool("mismatch", true);
	if (sqlite3_column_type(q, EXPECTED) == SQLITE_INTEGER && sqlite3_column_int64(q, EXPECTED) != sqlite3_column_int64(q, SEEN))
		c->args[c->n_args++] = arg_int("ranks_missing", sqlite3_column_int64(q, EXPECTED) - sqlite3_column_int64(q, SEEN));
	c->lateness[0] = arg_int("seq", c->seq);
	c->lateness[1] = arg_int("skew_ns", sqlite3_column_int64(q, SKEW));
	c->lateness[2] = timeline_error("skew_error_ns", q, SKEW_ERR);
}

/* Where the last one is shown: to each other that stopped waiting no earlier. */
static void number_arrows(struct timeline *t, struct call *c, struct member *v, size_t n_members)
{
	const struct member *last = NULL;

	for (size_t i = 0; i < n_members; i++)
		if (v[i].rank->rank == c->last_rank)
			last = &v[i];
	if (!last || n_members < 2 || !export_has(t->e, EXPORT_ARROWS))
		return;
	c->arrows = calloc(n_members, sizeof *c->arrows);
	if (!c->arrows) {
		t->no_memory = true;
		return;
	}
	for (size_t i = 0; i < n_members; i++) {
		v[i].has_arrow = v[i].rank != last->rank && wait_end_ns(c, &v[i]) >= last->arrival_ns;
		if (v[i].has_arrow)
			c->arrows[c->n_arrows++] = ++t->n_arrows;
	}
}

/* The last goes first: an arrow leaves before it arrives. */
static void put_call(struct timeline *t, sqlite3_stmt *q)
{
	json_t *list = json_loadb((const char *)sqlite3_column_text(q, ARRIVALS), (size_t)sqlite3_column_bytes(q, ARRIVALS), 0, NULL);
	struct member *v = calloc(json_array_size(list) + 1, sizeof *v);
	size_t i, n = 0;
	struct call c;
	json_t *row;

	read_call(q, &c);
	if (!json_is_array(list) || !c.comm || !c.op)
		t->lost.n_unread++;
	else
		json_array_foreach(list, i, row)
			if (v && read_member(t, &c, row, &v[n]))
				n++;
	t->no_memory = t->no_memory || !v;
	number_arrows(t, &c, v, n);
	for (int is_last = 1; v && is_last >= 0; is_last--)
		for (i = 0; i < n; i++)
			if ((v[i].rank->rank == c.last_rank) == is_last)
				put_member(t, &c, &v[i]);
	free(c.arrows);
	free(v);
	json_decref(list);
}

bool timeline_calls(struct timeline *t)
{
	return timeline_each_row(t, sql_report_export_calls, put_call);
}
