#include "timeline.h"

#include "cli.h"
#include "place.h"
#include "rows.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "sql.h"

#define NS INT64_C(1000000000)
#define RUN_PID (1 << 20) /* above the largest rank */
#define BEFORE_NS (10 * NS) /* waits lie before what they are waits for */

/* ---- tracks ---- */

struct timeline_rank *timeline_rank(struct timeline *t, int32_t rank)
{
	uint32_t lo = 0, hi = t->n_ranks;

	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;

		if (t->ranks[mid].rank < rank)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < t->n_ranks && t->ranks[lo].rank == rank ? &t->ranks[lo] : NULL;
}

static uint32_t tell_track(struct timeline *t, struct sink_track v)
{
	v.id = ++t->n_tracks;
	t->sink->ops->track(t->sink, &v);
	return v.id;
}

static int32_t order_of(enum timeline_kind kind, uint64_t sub)
{
	return (int32_t)kind * 100000 + (int32_t)(sub % 100000);
}

struct timeline_set *timeline_set(struct timeline *t, const struct timeline_rank *r, enum timeline_kind kind, uint64_t sub,
				  const char *fmt, ...)
{
	uint64_t key = (uint64_t)kind << 60 | (uint64_t)(r - t->ranks) << 40 | sub;
	uint32_t i = idmap_get(&t->by_key, key);
	struct timeline_set *s;
	va_list ap;

	if (i != IDMAP_NONE)
		return &t->sets[i];
	if (t->n_sets == t->n_sets_alloc) {
		uint32_t n = t->n_sets_alloc ? 2 * t->n_sets_alloc : 64;
		struct timeline_set *grown = realloc(t->sets, n * sizeof *grown);

		if (!grown)
			goto no_memory;
		t->sets = grown;
		t->n_sets_alloc = n;
	}
	s = &t->sets[t->n_sets];
	*s = (struct timeline_set){ .parent = r->track, .pid = r->rank + 1, .order = order_of(kind, sub) };
	va_start(ap, fmt);
	if (vasprintf(&s->name, fmt, ap) < 0)
		s->name = NULL;
	va_end(ap);
	if (!s->name || idmap_put(&t->by_key, key, t->n_sets) != 0) {
		free(s->name);
		goto no_memory;
	}
	t->n_sets++;
	return s;
no_memory:
	t->no_memory = true;
	return NULL;
}

uint32_t timeline_lane(struct timeline *t, struct timeline_set *s, int64_t begin_ns, int64_t end_ns)
{
	struct timeline_lane *grown;
	uint32_t i = 0;

	while (i < s->n && s->v[i].end_ns > begin_ns)
		i++;
	if (i < s->n) {
		s->v[i].end_ns = end_ns;
		return s->v[i].track;
	}
	if (i == TIMELINE_MAX_LANES) {
		t->lost.n_unplaced++;
		return 0;
	}
	grown = realloc(s->v, (i + 1) * sizeof *grown);
	if (!grown) {
		t->no_memory = true;
		return 0;
	}
	s->v = grown;
	s->v[i] = (struct timeline_lane){
		tell_track(t, (struct sink_track){ .parent = s->parent, .kind = SINK_LANE, .pid = s->pid, .order = s->order, .name = s->name }),
		end_ns };
	s->n++;
	return s->v[i].track;
}

void timeline_slice(struct timeline *t, const struct sink_event *begin, int64_t end_ns)
{
	t->sink->ops->begin(t->sink, begin);
	t->sink->ops->end(t->sink, &(struct sink_event){ .track = begin->track, .at_ns = end_ns });
	t->n_events++;
}

uint32_t timeline_counter(struct timeline *t, const struct timeline_rank *r, uint32_t host, const char *host_name, const char *name)
{
	bool is_new;
	uint32_t number = interns_number(&t->names, name, &is_new);
	uint64_t key = (uint64_t)TIMELINE_READING << 60 | (r ? 0 : UINT64_C(1) << 59) | (r ? (uint64_t)(r - t->ranks) : host) << 24 | number;
	uint32_t track = number ? idmap_get(&t->by_key, key) : 0;
	char text[600];

	if (track != IDMAP_NONE)
		return track;
	snprintf(text, sizeof text, "%s%s%s", name, r ? "" : " of ", r ? "" : host_name);
	track = tell_track(t, (struct sink_track){ .parent = r ? r->track : t->run_track, .kind = SINK_COUNTER,
						   .pid = r ? r->rank + 1 : RUN_PID,
						   .order = order_of(TIMELINE_READING, number), .name = text });
	if (idmap_put(&t->by_key, key, track) != 0)
		t->no_memory = true;
	return track;
}

/* ---- rows ---- */

bool timeline_each_row(struct timeline *t, const char *sql, void (*row)(struct timeline *t, sqlite3_stmt *q))
{
	static const char *const names[] = { ":first", ":last", ":from_ns", ":to_ns" };
	const struct export_window *w = &t->e->window;
	const int64_t values[] = { export_first(w), export_last(w), w->whole ? INT64_MIN : w->from_ns, w->whole ? INT64_MAX : w->to_ns };
	sqlite3_stmt *q = NULL;
	int rc = sqlite3_prepare_v2(t->e->db->handle, sql, -1, &q, NULL), at;

	for (size_t i = 0; rc == SQLITE_OK && i < 4; i++)
		if ((at = sqlite3_bind_parameter_index(q, names[i])) > 0)
			rc = sqlite3_bind_int64(q, at, values[i]);
	if (rc == SQLITE_OK)
		while ((rc = sqlite3_step(q)) == SQLITE_ROW && !t->no_memory && !t->sink->failed && !ferror(t->sink->f))
			row(t, q);
	if (rc != SQLITE_DONE && rc != SQLITE_ROW)
		cli_say("%s: cannot read the tables: %s", t->e->db_path, sqlite3_errmsg(t->e->db->handle));
	else if (t->no_memory || t->sink->failed)
		cli_say("there is not enough memory");
	sqlite3_finalize(q);
	return rc == SQLITE_DONE;
}

struct sink_arg timeline_error(const char *name, sqlite3_stmt *q, int column)
{
	return sqlite3_column_type(q, column) == SQLITE_NULL ? arg_text(name, "not known")
							      : arg_error(name, sqlite3_column_int64(q, column));
}

/* ---- the whole ---- */

static bool note_ranks(struct timeline *t)
{
	json_t *rows = rows_all(t->e->db, sql_report_export_ranks), *row;
	size_t i;

	if (!rows) {
		cli_say("%s: %s", t->e->db_path, t->e->db->why);
		return false;
	}
	t->ranks = calloc(json_array_size(rows) + 1, sizeof *t->ranks);
	json_array_foreach(rows, i, row) {
		int64_t rank = rows_ns(row, "rank");
		struct timeline_rank *last = t->n_ranks ? &t->ranks[t->n_ranks - 1] : NULL;

		if (!t->ranks || rank < 0 || rank >= RUN_PID || !export_has_rank(&t->e->ranks, (int32_t)rank) ||
		    (last && last->rank == rank))
			continue;
		t->ranks[t->n_ranks++] = (struct timeline_rank){ .rank = (int32_t)rank, .host = strdup(rows_text(row, "host")) };
	}
	json_decref(rows);
	return t->ranks != NULL;
}

static void tell_processes(struct timeline *t)
{
	char name[400];

	t->run_track = tell_track(t, (struct sink_track){ .kind = SINK_GROUP, .pid = RUN_PID, .order = -1, .name = "The run" });
	t->findings_track = tell_track(t, (struct sink_track){ .parent = t->run_track, .kind = SINK_LANE, .pid = RUN_PID, .name = "findings" });
	for (uint32_t i = 0; i < t->n_ranks; i++) {
		struct timeline_rank *r = &t->ranks[i];

		snprintf(name, sizeof name, "rank %" PRId32 " (host %s)", r->rank, r->host ? r->host : "?");
		r->track = tell_track(t, (struct sink_track){ .kind = SINK_PROCESS, .pid = r->rank + 1, .order = r->rank, .name = name });
	}
}

static int64_t earliest(struct export *e)
{
	json_t *rows = rows_all_of(e->db, sql_report_export_earliest, e->window.first);
	int64_t ns = rows_ns(json_array_get(rows, 0), "at_ns");

	json_decref(rows);
	if (ns == INT64_MIN || ns > e->window.from_ns)
		ns = e->window.from_ns;
	ns -= ns % NS + BEFORE_NS;
	return ns > 0 ? ns : 0;
}

static bool write_all(struct timeline *t)
{
	static bool (*const parts[])(struct timeline *t) = {
		timeline_steps, timeline_calls, timeline_host_and_device, timeline_readings, timeline_findings, timeline_about,
	};
	size_t n = sizeof parts / sizeof *parts;

	if (!note_ranks(t))
		return false;
	tell_processes(t);
	for (size_t i = 0; i < n; i++) {
		export_progress(t->e, (double)i / (double)n);
		if (!parts[i](t) || t->no_memory || t->sink->failed)
			return false;
	}
	return true;
}

static void fini(struct timeline *t)
{
	for (uint32_t i = 0; i < t->n_ranks; i++)
		free(t->ranks[i].host);
	for (uint32_t i = 0; i < t->n_sets; i++) {
		free(t->sets[i].name);
		free(t->sets[i].v);
	}
	free(t->ranks);
	free(t->sets);
	free(t->by_key.v);
	interns_fini(&t->names);
	place_free(t->place);
}

int timeline_write(struct export *e, struct sink *(*sink_new)(FILE *f, int64_t base_ns))
{
	struct timeline t = { .e = e };
	bool fine = false;

	t.place = place_new(e);
	t.sink = t.place ? sink_new(e->out, earliest(e)) : NULL;
	interns_init(&t.names, 1 << 16);
	if (t.sink) {
		fine = write_all(&t);
		t.sink->ops->free(t.sink);
	} else {
		cli_say("there is not enough memory");
	}
	e->n_written = t.n_events;
	fini(&t);
	return fine ? EXIT_FINE : EXIT_UNREACHED;
}
