/* timeline_events.c - raw events: what host threads were in, and what ran on each stream.
 *
 * Chunks are read one at a time, a thread after the other. A slice belongs to the window
 * when it begins in it. Launches, joins and the host's side of calls are not drawn; steps
 * and calls are, from the tables. Ends without a begin are counted, begins without an end
 * are cut where the window ends.
 */
#include "timeline.h"

#include "cli.h"
#include "place.h"

#include "../proto/chunk.h"

#include <stdlib.h>
#include <string.h>

#include "sql.h"

#define MAX_DEPTH 256
#define MAX_RUNNING 1024 /* kernels of one thread of events */
#define MAX_NAME_ID (1 << 20)
#define RAW_BIT (UINT64_C(1) << 63) /* of kinds that a chunk's mask has no bits for */
#define BIT(kind) (UINT64_C(1) << (kind))

struct chunk_at {
	uint32_t ring;
	int64_t id;
	uint64_t kinds;
};

struct open_slice {
	uint16_t kind;
	uint64_t key;
	bool shown;
};

struct running {
	uint32_t launch, name, step;
	uint16_t stream;
	int64_t begin_ns;
};

struct timeline_events {
	struct timeline *t;
	sqlite3_stmt *data, *name;
	struct timeline_rank *rank;
	uint32_t process, ring, n_processes;
	bool any;
	struct chunk_at *chunks; /* of the process; owned */
	size_t n_chunks, n_chunks_alloc;
	char **names; /* by id; owned */
	uint32_t n_names;

	/* of the ring */
	struct open_slice stack[MAX_DEPTH];
	size_t depth, n_too_deep;
	struct running running[MAX_RUNNING];
	size_t n_running;
	int64_t last_ns;
	uint32_t track; /* 0 = not told yet */

	struct event events[CHUNK_MAX_EVENTS];
};

/* ---- names ---- */

static void forget_names(struct timeline_events *s)
{
	for (uint32_t i = 0; i < s->n_names; i++)
		free(s->names[i]);
	free(s->names);
	s->names = NULL;
	s->n_names = 0;
}

static char *look_up(struct timeline_events *s, uint32_t id)
{
	const char *text = NULL;
	char *copy;

	sqlite3_bind_int64(s->name, 1, s->process);
	sqlite3_bind_int64(s->name, 2, id);
	if (sqlite3_step(s->name) == SQLITE_ROW)
		text = (const char *)sqlite3_column_text(s->name, 0);
	copy = strdup(text ? text : "name not known");
	sqlite3_reset(s->name);
	return copy;
}

static const char *name_of(struct timeline_events *s, uint32_t id, const char *none)
{
	if (id == 0 || id >= MAX_NAME_ID)
		return none;
	if (id >= s->n_names) {
		uint32_t n = id + id / 2 + 64;
		char **grown = realloc(s->names, n * sizeof *grown);

		if (!grown)
			return none;
		memset(grown + s->n_names, 0, (n - s->n_names) * sizeof *grown);
		s->names = grown;
		s->n_names = n;
	}
	if (!s->names[id])
		s->names[id] = look_up(s, id);
	return s->names[id] ? s->names[id] : none;
}

/* ---- what the host was in ---- */

static bool is_in_window(const struct timeline_events *s, int64_t at_ns)
{
	return at_ns >= s->t->e->window.from_ns && at_ns <= s->t->e->window.to_ns;
}

static uint32_t host_track(struct timeline_events *s)
{
	struct timeline_set *set;

	if (s->track)
		return s->track;
	set = timeline_set(s->t, s->rank, TIMELINE_HOST, (uint64_t)(s->process & 0xffffff) << 16 | (s->ring & 0xffff), "thread %u", s->ring);
	s->track = set ? timeline_lane(s->t, set, INT64_MAX, INT64_MIN) : 0;
	return s->track;
}

static void pop(struct timeline_events *s, int64_t at_ns, bool cut)
{
	const struct open_slice *o = &s->stack[--s->depth];
	struct sink_arg args[1] = { arg_bool("unfinished", true) };

	if (o->shown)
		s->t->sink->ops->end(s->t->sink, &(struct sink_event){ .track = s->track, .at_ns = at_ns, .args = args, .n_args = cut });
	if (cut)
		s->t->lost.n_cut += o->shown;
}

static void push(struct timeline_events *s, const struct event *ev, uint64_t key, const char *name, const char *cat, int64_t at_ns)
{
	bool shown = is_in_window(s, at_ns) && host_track(s);

	if (s->depth == MAX_DEPTH) {
		s->n_too_deep++;
		s->t->lost.n_unplaced++;
		return;
	}
	s->stack[s->depth++] = (struct open_slice){ ev->kind, key, shown };
	if (!shown)
		return;
	s->t->sink->ops->begin(s->t->sink, &(struct sink_event){ .track = s->track, .at_ns = at_ns, .name = name, .cat = cat });
	s->t->n_events++;
}

/* Its begin is the newest of that kind and key; whatever began behind it has lost its end. */
static void close_slice(struct timeline_events *s, uint16_t begin_kind, uint64_t key, int64_t at_ns)
{
	size_t i = s->depth;

	if (s->n_too_deep) {
		s->n_too_deep--;
		return;
	}
	while (i > 0 && (s->stack[i - 1].kind != begin_kind || s->stack[i - 1].key != key))
		i--;
	if (i == 0) {
		s->t->lost.n_unmatched += is_in_window(s, at_ns);
		return;
	}
	while (s->depth > i)
		pop(s, at_ns, true);
	pop(s, at_ns, false);
}

static void put_instant(struct timeline_events *s, const char *name, const char *cat, const struct sink_arg *args, size_t n, int64_t at_ns)
{
	if (!is_in_window(s, at_ns) || !host_track(s))
		return;
	s->t->sink->ops->instant(s->t->sink, &(struct sink_event){ .track = s->track, .at_ns = at_ns, .name = name, .cat = cat,
								   .args = args, .n_args = n });
	s->t->n_events++;
}

/* ---- what ran on a stream ---- */

static void kernel_begin(struct timeline_events *s, const struct event *ev, int64_t at_ns)
{
	if (s->n_running == MAX_RUNNING) {
		s->t->lost.n_unplaced++;
		return;
	}
	s->running[s->n_running++] = (struct running){ event_low(ev->a), ev->name, event_step(ev->a), ev->flags, at_ns };
}

static void put_kernel(struct timeline_events *s, const struct running *k, int64_t end_ns, bool cut)
{
	struct timeline_set *set;
	struct sink_arg args[3] = { arg_int("launch", k->launch) };
	struct sink_event ev = { .at_ns = k->begin_ns, .name = name_of(s, k->name, "kernel"), .cat = "kernel", .args = args, .n_args = 1 };

	if (!is_in_window(s, k->begin_ns))
		return;
	set = timeline_set(s->t, s->rank, TIMELINE_STREAM, (uint64_t)(s->process & 0xffffff) << 16 | k->stream, "stream %u", k->stream);
	if (!set)
		return;
	if (k->step != EVENT_STEP_UNKNOWN)
		args[ev.n_args++] = arg_int("step_of_process", k->step);
	if (cut)
		args[ev.n_args++] = arg_bool("unfinished", true);
	s->t->lost.n_cut += cut;
	ev.track = timeline_lane(s->t, set, k->begin_ns, end_ns);
	if (ev.track)
		timeline_slice(s->t, &ev, end_ns);
}

static void kernel_end(struct timeline_events *s, const struct event *ev, int64_t at_ns)
{
	size_t i = s->n_running;

	while (i > 0 && (s->running[i - 1].launch != event_low(ev->a) || s->running[i - 1].stream != ev->flags))
		i--;
	if (i == 0) {
		s->t->lost.n_unmatched += is_in_window(s, at_ns);
		return;
	}
	put_kernel(s, &s->running[i - 1], at_ns, false);
	memmove(&s->running[i - 1], &s->running[i], (s->n_running - i) * sizeof *s->running);
	s->n_running--;
}

/* ---- events ---- */

static void host_event(struct timeline_events *s, const struct event *ev, int64_t at_ns)
{
	struct sink_arg bucket[1] = { arg_int("bucket", event_low(ev->a)) };

	switch (ev->kind) {
	case EVENT_PHASE_BEGIN:
		push(s, ev, ev->flags, event_phase_name(ev->flags), "phase", at_ns);
		break;
	case EVENT_PHASE_END:
		close_slice(s, EVENT_PHASE_BEGIN, ev->flags, at_ns);
		break;
	case EVENT_WORK_BEGIN:
		push(s, ev, ev->name, name_of(s, ev->name, "work"), "work", at_ns);
		break;
	case EVENT_WORK_END:
		close_slice(s, EVENT_WORK_BEGIN, ev->name, at_ns);
		break;
	case EVENT_HOST_WAIT_BEGIN:
		push(s, ev, event_low(ev->a), "wait for the device", "wait", at_ns);
		break;
	case EVENT_HOST_WAIT_END:
		close_slice(s, EVENT_HOST_WAIT_BEGIN, event_low(ev->a), at_ns);
		break;
	case EVENT_SCOPE_BEGIN:
		push(s, ev, ev->name, name_of(s, ev->name, "scope"), "scope", at_ns);
		break;
	case EVENT_SCOPE_END:
		close_slice(s, EVENT_SCOPE_BEGIN, ev->name, at_ns);
		break;
	case EVENT_BUCKET_READY:
		put_instant(s, "bucket ready", "bucket", bucket, 1, at_ns);
		break;
	case EVENT_BUCKET_REDUCED:
		put_instant(s, "bucket reduced", "bucket", bucket, 1, at_ns);
		break;
	case EVENT_MARK:
		put_instant(s, name_of(s, ev->name, "mark"), "mark", NULL, 0, at_ns);
		break;
	default:
		break;
	}
}

static void put_counter(struct timeline_events *s, const struct event *ev, int64_t at_ns)
{
	uint32_t track = is_in_window(s, at_ns) ? timeline_counter(s->t, s->rank, 0, "", name_of(s, ev->name, "counter")) : 0;
	double value;

	memcpy(&value, &ev->a, sizeof value);
	if (!track)
		return;
	s->t->sink->ops->reading(s->t->sink, track, at_ns, value);
	s->t->n_events++;
}

static void put_event(struct timeline_events *s, const struct event *ev)
{
	int64_t at_ns = place_at(s->t->place, (int64_t)ev->tick);

	if (at_ns < s->last_ns) /* a thread's events follow each other, also in a file that says otherwise */
		at_ns = s->last_ns;
	s->last_ns = at_ns;
	if (ev->kind == EVENT_KERNEL_BEGIN || ev->kind == EVENT_KERNEL_END) {
		if (!export_has(s->t->e, EXPORT_KERNELS))
			return;
		(ev->kind == EVENT_KERNEL_BEGIN ? kernel_begin : kernel_end)(s, ev, at_ns);
	} else if (ev->kind == EVENT_COUNTER) {
		if (export_has(s->t->e, EXPORT_COUNTERS))
			put_counter(s, ev, at_ns);
	} else if (export_has(s->t->e, EXPORT_HOST)) {
		host_event(s, ev, at_ns);
	}
}

static void end_ring(struct timeline_events *s)
{
	int64_t at_ns = s->t->e->window.to_ns > s->last_ns ? s->t->e->window.to_ns : s->last_ns;

	while (s->depth > 0)
		pop(s, at_ns, true);
	for (size_t i = 0; i < s->n_running; i++)
		put_kernel(s, &s->running[i], at_ns, true);
	s->n_running = s->n_too_deep = 0;
	s->track = 0;
	s->last_ns = INT64_MIN;
}

/* ---- chunks ---- */

static size_t read_chunk(struct timeline_events *s, const struct chunk_at *c)
{
	size_t n = 0;

	sqlite3_bind_int64(s->data, 1, c->id);
	if (sqlite3_step(s->data) != SQLITE_ROW ||
	    chunk_decode(sqlite3_column_blob(s->data, 0), (size_t)sqlite3_column_bytes(s->data, 0), s->events, CHUNK_MAX_EVENTS, &n) != CHUNK_OK) {
		n = 0;
		s->t->lost.n_unread++;
	}
	sqlite3_reset(s->data);
	return n;
}

static void see_calls(struct timeline_events *s)
{
	for (size_t i = 0; i < s->n_chunks; i++) {
		size_t n = s->chunks[i].kinds & BIT(EVENT_COLL_BEGIN) ? read_chunk(s, &s->chunks[i]) : 0;

		for (size_t k = 0; k < n; k++)
			if (s->events[k].kind == EVENT_COLL_BEGIN)
				place_see(s->t->place, &s->events[k], name_of(s, s->events[k].name, ""));
	}
	place_seen(s->t->place);
}

static void end_process(struct timeline_events *s)
{
	static const uint64_t drawn = BIT(EVENT_PHASE_BEGIN) | BIT(EVENT_PHASE_END) | BIT(EVENT_BUCKET_READY) | BIT(EVENT_BUCKET_REDUCED) |
				      BIT(EVENT_WORK_BEGIN) | BIT(EVENT_WORK_END) | BIT(EVENT_HOST_WAIT_BEGIN) | BIT(EVENT_HOST_WAIT_END) |
				      BIT(EVENT_KERNEL_BEGIN) | BIT(EVENT_KERNEL_END) | RAW_BIT;

	if (!s->any)
		return;
	if (place_process(s->t->place, s->process))
		see_calls(s);
	s->last_ns = INT64_MIN;
	for (size_t i = 0; i < s->n_chunks && !s->t->no_memory; i++) {
		size_t n = s->chunks[i].kinds & drawn ? read_chunk(s, &s->chunks[i]) : 0;

		if (i > 0 && s->chunks[i].ring != s->ring)
			end_ring(s);
		s->ring = s->chunks[i].ring;
		for (size_t k = 0; k < n; k++)
			put_event(s, &s->events[k]);
	}
	end_ring(s);
	forget_names(s);
	s->n_chunks = 0;
	s->any = false;
	export_progress(s->t->e, 0.3 + 0.6 * ++s->n_processes / (s->t->n_ranks + 1.0));
}

static void note_chunk(struct timeline *t, sqlite3_stmt *q)
{
	struct timeline_events *s = t->events;
	uint32_t process = (uint32_t)sqlite3_column_int64(q, 0);
	struct timeline_rank *r = timeline_rank(t, (int32_t)sqlite3_column_int64(q, 1));

	if (!r)
		return;
	if (s->any && s->process != process)
		end_process(s);
	s->any = true;
	s->process = process;
	s->rank = r;
	if (s->n_chunks == s->n_chunks_alloc) {
		size_t n = s->n_chunks_alloc ? 2 * s->n_chunks_alloc : 256;
		struct chunk_at *grown = realloc(s->chunks, n * sizeof *grown);

		if (!grown) {
			t->no_memory = true;
			return;
		}
		s->chunks = grown;
		s->n_chunks_alloc = n;
	}
	s->chunks[s->n_chunks++] = (struct chunk_at){ (uint32_t)sqlite3_column_int64(q, 2), sqlite3_column_int64(q, 3),
						      (uint64_t)sqlite3_column_int64(q, 4) };
}

bool timeline_host_and_device(struct timeline *t)
{
	struct timeline_events *s;
	bool fine = false;

	if (!export_has(t->e, EXPORT_HOST) && !export_has(t->e, EXPORT_KERNELS) && !export_has(t->e, EXPORT_COUNTERS))
		return true;
	s = calloc(1, sizeof *s);
	if (!s) {
		t->no_memory = true;
		return false;
	}
	s->t = t;
	t->events = s;
	if (sqlite3_prepare_v2(t->e->db->handle, sql_report_export_chunk, -1, &s->data, NULL) == SQLITE_OK &&
	    sqlite3_prepare_v2(t->e->db->handle, sql_report_export_name, -1, &s->name, NULL) == SQLITE_OK)
		fine = timeline_each_row(t, sql_report_export_chunks, note_chunk);
	else
		cli_say("%s: cannot read the events: %s", t->e->db_path, sqlite3_errmsg(t->e->db->handle));
	if (fine)
		end_process(s);
	sqlite3_finalize(s->data);
	sqlite3_finalize(s->name);
	forget_names(s);
	free(s->chunks);
	free(s);
	t->events = NULL;
	return fine;
}
