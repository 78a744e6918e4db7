/* timeline_facts.c - what the analysis said in rows: steps, findings, readings, and what was lost. */
#include "timeline.h"

#include "rows.h"

#include <stdlib.h>
#include <string.h>

#include "sql.h"

/* ---- steps ---- */

static void add_ns(struct sink_arg *args, size_t *n, const char *name, sqlite3_stmt *q, int column)
{
	if (sqlite3_column_type(q, column) == SQLITE_INTEGER)
		args[(*n)++] = arg_int(name, sqlite3_column_int64(q, column));
}

/* Steps follow each other: where the next began within the clock's error of this one's end, this
 * one is drawn up to there. How long it took is in its arguments. */
static int64_t drawn_end_ns(sqlite3_stmt *q, int64_t begin_ns, int64_t end_ns)
{
	int64_t next_ns = sqlite3_column_int64(q, 13);

	if (sqlite3_column_type(q, 13) != SQLITE_INTEGER || next_ns >= end_ns || next_ns < begin_ns)
		return end_ns;
	return end_ns - next_ns <= sqlite3_column_int64(q, 3) ? next_ns : end_ns;
}

static void put_step(struct timeline *t, sqlite3_stmt *q)
{
	struct timeline_rank *r = timeline_rank(t, (int32_t)sqlite3_column_int64(q, 1));
	int64_t begin_ns = sqlite3_column_int64(q, 2), end_ns = begin_ns + sqlite3_column_int64(q, 4);
	struct timeline_set *s = r ? timeline_set(t, r, TIMELINE_STEPS, 0, "steps") : NULL;
	struct sink_arg args[SINK_MAX_ARGS];
	struct sink_event ev = { .at_ns = begin_ns, .cat = "step", .args = args };
	char name[32];
	size_t n = 0;

	if (!s)
		return;
	snprintf(name, sizeof name, "step %lld", (long long)sqlite3_column_int64(q, 0));
	ev.name = name;
	args[n++] = arg_int("step", sqlite3_column_int64(q, 0));
	args[n++] = arg_int("dur_ns", sqlite3_column_int64(q, 4));
	args[n++] = timeline_error("dur_error_ns", q, 5);
	args[n++] = timeline_error("clock_error_ns", q, 3);
	add_ns(args, &n, "self_ns", q, 6);
	add_ns(args, &n, "wait_ns", q, 7);
	if (sqlite3_column_type(q, 7) == SQLITE_INTEGER)
		args[n++] = timeline_error("wait_error_ns", q, 8);
	add_ns(args, &n, "exposed_comm_ns", q, 9);
	add_ns(args, &n, "input_wait_ns", q, 10);
	if (sqlite3_column_type(q, 11) != SQLITE_NULL)
		args[n++] = arg_real("excess_ratio", sqlite3_column_double(q, 11));
	args[n++] = arg_real("coverage", sqlite3_column_double(q, 12));
	ev.n_args = n;
	end_ns = drawn_end_ns(q, begin_ns, end_ns);
	ev.track = timeline_lane(t, s, begin_ns, end_ns);
	if (ev.track)
		timeline_slice(t, &ev, end_ns);
}

bool timeline_steps(struct timeline *t)
{
	return timeline_each_row(t, sql_report_export_steps, put_step);
}

/* ---- findings ---- */

static void put_on(struct timeline *t, uint32_t track, int64_t at_ns, const char *class_name, const struct sink_arg *args, size_t n)
{
	t->sink->ops->instant(t->sink, &(struct sink_event){ .track = track, .at_ns = at_ns, .name = class_name, .cat = "finding",
							     .args = args, .n_args = n });
	t->n_events++;
}

/* Its culprits' tracks, too. */
static void put_on_ranks(struct timeline *t, const char *culprit, int64_t at_ns, const char *class_name,
			 const struct sink_arg *args, size_t n)
{
	json_t *v = culprit ? json_loads(culprit, 0, NULL) : NULL, *rank;
	size_t i;

	json_array_foreach(json_object_get(v, "ranks"), i, rank) {
		struct timeline_rank *r = json_is_integer(rank) ? timeline_rank(t, (int32_t)json_integer_value(rank)) : NULL;
		struct timeline_set *s = r ? timeline_set(t, r, TIMELINE_FINDINGS, 0, "findings") : NULL;
		uint32_t track = s ? timeline_lane(t, s, INT64_MAX, INT64_MIN) : 0; /* instants share one */

		if (track)
			put_on(t, track, at_ns, class_name, args, n);
	}
	json_decref(v);
}

static void put_finding(struct timeline *t, sqlite3_stmt *q)
{
	const struct export_window *w = &t->e->window;
	const char *class_name = (const char *)sqlite3_column_text(q, 1), *culprit = (const char *)sqlite3_column_text(q, 5);
	int64_t onset_ns = sqlite3_column_int64(q, 12);
	int64_t at_ns = onset_ns < w->from_ns ? w->from_ns : onset_ns > w->to_ns ? w->to_ns : onset_ns;
	struct sink_arg args[SINK_MAX_ARGS];
	size_t n = 0;

	args[n++] = arg_int("finding", sqlite3_column_int64(q, 0));
	args[n++] = arg_text("sentence", (const char *)sqlite3_column_text(q, 4));
	args[n++] = arg_text("severity", (const char *)sqlite3_column_text(q, 2));
	args[n++] = arg_text("confidence", (const char *)sqlite3_column_text(q, 3));
	args[n++] = arg_text("culprit", culprit);
	add_ns(args, &n, "first_step", q, 6);
	add_ns(args, &n, "last_step", q, 7);
	if (sqlite3_column_type(q, 8) != SQLITE_NULL)
		args[n++] = arg_real("cost_ratio", sqlite3_column_double(q, 8));
	add_ns(args, &n, "margin_ns", q, 9);
	if (sqlite3_column_type(q, 10) == SQLITE_INTEGER)
		args[n++] = timeline_error("error_ns", q, 10);
	args[n++] = arg_text("error_kind", (const char *)sqlite3_column_text(q, 11));
	if (at_ns != onset_ns)
		args[n++] = arg_int("onset_ns", onset_ns);
	put_on(t, t->findings_track, at_ns, class_name ? class_name : "?", args, n);
	put_on_ranks(t, culprit, at_ns, class_name ? class_name : "?", args, n);
}

bool timeline_findings(struct timeline *t)
{
	return timeline_each_row(t, sql_report_export_findings, put_finding);
}

/* ---- readings ---- */

static void put_reading(struct timeline *t, sqlite3_stmt *q)
{
	bool of_rank = sqlite3_column_type(q, 0) == SQLITE_INTEGER;
	struct timeline_rank *r = of_rank ? timeline_rank(t, (int32_t)sqlite3_column_int64(q, 0)) : NULL;
	const char *host = (const char *)sqlite3_column_text(q, 2), *name = (const char *)sqlite3_column_text(q, 3);
	uint32_t track;

	if ((of_rank && !r) || !name)
		return;
	track = timeline_counter(t, r, (uint32_t)sqlite3_column_int64(q, 1), host ? host : "?", name);
	if (!track)
		return;
	t->sink->ops->reading(t->sink, track, sqlite3_column_int64(q, 4), sqlite3_column_double(q, 5));
	t->n_events++;
}

bool timeline_readings(struct timeline *t)
{
	return !export_has(t->e, EXPORT_COUNTERS) || timeline_each_row(t, sql_report_export_readings, put_reading);
}

/* ---- what is missing ---- */

static void put_drops(struct timeline *t, sqlite3_stmt *q)
{
	static const char *const places[] = { "ring", "text", "names", "gap" };
	struct timeline_rank *r = timeline_rank(t, (int32_t)sqlite3_column_int64(q, 0));
	struct timeline_set *s = r ? timeline_set(t, r, TIMELINE_FINDINGS, 0, "findings") : NULL;
	uint32_t track = s ? timeline_lane(t, s, INT64_MAX, INT64_MIN) : 0;
	struct sink_arg args[4];

	for (int i = 0; i < 4; i++)
		args[i] = arg_int(places[i], sqlite3_column_int64(q, i + 1));
	if (!track)
		return;
	t->sink->ops->instant(t->sink, &(struct sink_event){ .track = track, .at_ns = t->e->window.from_ns, .name = "lost, never stored",
							     .cat = "drops", .args = args, .n_args = 4 });
	t->n_events++;
}

bool timeline_about(struct timeline *t)
{
	const struct export_window *w = &t->e->window;
	struct sink_arg args[SINK_MAX_ARGS];
	json_t *run, *drops;
	size_t n = 0;

	if (!timeline_each_row(t, sql_report_export_drops, put_drops))
		return false;
	run = rows_one(t->e->db, sql_report_run);
	drops = rows_one(t->e->db, sql_report_export_drop_sums);
	args[n++] = arg_text("run", rows_text(run, "id"));
	args[n++] = arg_text("window", w->what);
	args[n++] = arg_text("made_by", "syncline " SYNCLINE_VERSION);
	args[n++] = arg_text("times", "fleet nanoseconds since 1970, compared within clock_error_ns");
	args[n++] = arg_int("ranks", t->n_ranks);
	args[n++] = arg_int("lost_by_ranks", rows_ns(drops, "n_ranks"));
	args[n++] = arg_int("lost_by_agents", rows_ns(drops, "n_agents"));
	args[n++] = arg_int("late", rows_ns(drops, "n_late"));
	args[n++] = arg_int("ends_without_begin", (int64_t)t->lost.n_unmatched);
	args[n++] = arg_int("slices_cut", (int64_t)t->lost.n_cut);
	args[n++] = arg_int("slices_without_lane", (int64_t)t->lost.n_unplaced);
	args[n++] = arg_int("unreadable", (int64_t)t->lost.n_unread);
	t->sink->ops->instant(t->sink, &(struct sink_event){ .track = t->findings_track, .at_ns = w->from_ns, .name = "about this file",
							     .cat = "about", .args = args, .n_args = n });
	t->sink->ops->about(t->sink, args, n);
	t->n_events++;
	json_decref(run);
	json_decref(drops);
	return true;
}
