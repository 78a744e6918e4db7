/* path_again.c - a step's critical path from raw events, when its detail is not kept.
 *
 * The analysis of the collector, fed what the catalogue holds of that time: events
 * from five seconds before the step until five after it, clock exchanges up to
 * there. Where the job was started more than once all of it is fed, for the steps of
 * a later start are numbered behind those of an earlier one.
 */
#include "path.h"
#include "rows.h"

#include "../collector/core.h"
#include "../proto/chunk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sql.h"

#define MARGIN_NS INT64_C(5000000000)
#define TICK_NS INT64_C(100000000)
#define CHUNK_NS INT64_C(1000000)

struct again {
	struct db *d;
	struct core *core;
	struct facts facts;
	int64_t step, from_ns, to_ns, now_ns;
	bool edges;
	char **groups; /* names by index */
	uint32_t n_groups;
	json_t *hosts; /* names by id */
	json_t *found;
	struct event events[CHUNK_MAX_EVENTS];
};

/* ---- what was found ---- */

static int note_groups(struct again *a)
{
	for (size_t i = 0; i < a->facts.groups.n; i++) {
		const struct fact_group *g = &a->facts.groups.v[i];

		if (g->group >= a->n_groups) {
			char **grown = realloc(a->groups, (g->group + 1) * sizeof *grown);

			if (!grown)
				return -ENOMEM;
			memset(grown + a->n_groups, 0, (g->group + 1 - a->n_groups) * sizeof *grown);
			a->groups = grown;
			a->n_groups = g->group + 1;
		}
		free(a->groups[g->group]);
		a->groups[g->group] = strdup(g->name);
	}
	return 0;
}

static json_t *text(const char *v)
{
	return v && v[0] ? json_string(v) : json_null();
}

static json_t *whole(int64_t ns)
{
	return ns == FACT_NONE ? json_null() : json_integer((json_int_t)ns);
}

static json_t *group_of(const struct again *a, uint32_t group)
{
	return text(group < a->n_groups ? a->groups[group] : NULL);
}

static json_t *segment(const struct again *a, const struct fact_segment *s, size_t n)
{
	json_t *host = json_object_get(json_array_get(a->hosts, s->host), "name");

	return json_pack("{s:I, s:i, s:O?, s:s, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:b, s:I}",
			 "n", (json_int_t)n, "rank", (int)s->rank, "host", host, "kind",
			 fact_segment_name(s->kind), "name", text(s->name), "comm_id",
			 group_of(a, s->group), "seq",
			 s->kind == SEGMENT_TRANSFER ? json_integer((json_int_t)s->seq) : json_null(),
			 "bucket", s->bucket == UINT32_MAX ? json_null() : json_integer(s->bucket),
			 "from_rank", s->from_rank < 0 ? json_null() : json_integer(s->from_rank),
			 "begin_ns", (json_int_t)s->begin_ns, "end_ns",
			 (json_int_t)(s->begin_ns + s->dur_ns), "dur_ns", (json_int_t)s->dur_ns, "err_ns",
			 (json_int_t)s->err_ns, "excess_ns", whole(s->excess_ns), "held_ns",
			 whole(s->held_ns), "held_err_ns", whole(s->held_err_ns), "undecided",
			 (int)s->undecided, "n_joined", (json_int_t)s->n_joined);
}

static json_t *edges_of(const struct again *a)
{
	json_t *list = json_array();

	for (size_t i = 0; i < a->facts.edges.n; i++) {
		const struct fact_edge *e = &a->facts.edges.v[i];

		json_array_append_new(
			list, json_pack("{s:s, s:o, s:o, s:o, s:I, s:o, s:I, s:I}", "kind",
					fact_edge_name(e->kind), "comm_id", group_of(a, e->group), "seq",
					e->group == UINT32_MAX ? json_null()
							       : json_integer((json_int_t)e->seq),
					"from_rank", e->from_rank < 0 ? json_null() : json_integer(e->from_rank),
					"from_ns", (json_int_t)e->from_ns, "to_rank",
					e->to_rank < 0 ? json_null() : json_integer(e->to_rank), "to_ns",
					(json_int_t)e->to_ns, "err_ns", (json_int_t)e->err_ns));
	}
	return list;
}

static void take(struct again *a, const struct fact_path *p)
{
	json_t *segments = json_array();

	for (size_t i = 0; i < p->n_segments; i++)
		json_array_append_new(segments, segment(a, &a->facts.segments.v[p->first_segment + i], i));
	a->found = json_pack("{s:I, s:I, s:I, s:I, s:b, s:o}", "step", (json_int_t)p->step, "begin_ns",
			     (json_int_t)p->begin_ns, "dur_ns", (json_int_t)p->dur_ns, "dur_err_ns",
			     (json_int_t)p->dur_err_ns, "complete", (int)p->complete, "segments", segments);
	if (a->edges)
		json_object_set_new(a->found, "edges", edges_of(a));
}

/* What the analysis has told so far; the rest of it is let go. */
static int look(struct again *a)
{
	int r = note_groups(a);

	for (size_t i = 0; i < a->facts.paths.n && !a->found; i++)
		if (a->facts.paths.v[i].step == a->step)
			take(a, &a->facts.paths.v[i]);
	facts_clear(&a->facts);
	return r;
}

/* ---- what is fed ---- */

static int64_t at(sqlite3_stmt *q, int i)
{
	return sqlite3_column_int64(q, i);
}

static int feed_host(struct again *a, sqlite3_stmt *q)
{
	uint32_t host = (uint32_t)at(q, 0);
	const char *name = (const char *)sqlite3_column_text(q, 1);
	int r = core_host(a->core, host, at(q, 2) != 0, at(q, 3));

	return r == 0 && name ? core_host_name(a->core, host, name) : r;
}

static int feed_process(struct again *a, sqlite3_stmt *q)
{
	return core_process(a->core, &(struct core_process){
					     .process = (uint32_t)at(q, 0), .host = (uint32_t)at(q, 1),
					     .rank = (int32_t)at(q, 2), .world_size = (int32_t)at(q, 3),
					     .restart_count = (int32_t)at(q, 4),
					     .tick_error_ns = at(q, 5) });
}

static int feed_name(struct again *a, sqlite3_stmt *q)
{
	const char *name = (const char *)sqlite3_column_text(q, 2);

	return name ? core_name(a->core, (uint32_t)at(q, 0), (uint32_t)at(q, 1), name, strlen(name)) : 0;
}

static int feed_group(struct again *a, sqlite3_stmt *q)
{
	json_t *fields = json_loads((const char *)sqlite3_column_text(q, 0), 0, NULL);
	const char *name = json_string_value(json_object_get(fields, "name"));
	const json_t *list = json_object_get(fields, "ranks");
	size_t n = json_array_size(list);
	int32_t *ranks = calloc(n + 1, sizeof *ranks);
	int r = ranks ? 0 : -ENOMEM;

	for (size_t i = 0; ranks && i < n; i++)
		ranks[i] = (int32_t)json_integer_value(json_array_get(list, i));
	if (r == 0 && name && n > 0)
		r = core_group(a->core, name, ranks, n);
	free(ranks);
	json_decref(fields);
	return r;
}

static int feed_exchange(struct again *a, sqlite3_stmt *q)
{
	int r = core_exchange(a->core, (uint32_t)at(q, 0), (host_time){ at(q, 1) }, (fleet_time){ at(q, 2) },
			      (fleet_time){ at(q, 3) }, (host_time){ at(q, 4) });

	return r < 0 ? r : look(a);
}

/* Of a chunk nobody knows when it came, and it may span many steps: little time passes
 * with each, so that no rank is late. */
static int feed_chunk(struct again *a, sqlite3_stmt *q)
{
	const unsigned char *data = sqlite3_column_blob(q, 3);
	size_t n_bytes = (size_t)sqlite3_column_bytes(q, 3), n;
	int r;

	if (chunk_decode(data, n_bytes, a->events, CHUNK_MAX_EVENTS, &n) != CHUNK_OK)
		return 0; /* nothing of it was believed then, either */
	r = core_events(a->core, (uint32_t)at(q, 1), (uint32_t)at(q, 2), (uint64_t)at(q, 0), a->events, n);
	a->now_ns += CHUNK_NS;
	if (r == 0)
		r = core_tick(a->core, (fleet_time){ a->now_ns });
	return r == 0 ? look(a) : r;
}

/* Each row; until the path is there. False after a failure that d->why tells of. */
static bool each(struct again *a, const char *sql, int (*feed)(struct again *, sqlite3_stmt *))
{
	sqlite3_stmt *q = NULL;
	int rc = sqlite3_prepare_v2(a->d->handle, sql, -1, &q, NULL), r = 0, i;

	if (rc == SQLITE_OK && (i = sqlite3_bind_parameter_index(q, ":from_ns")) > 0)
		sqlite3_bind_int64(q, i, a->from_ns);
	if (rc == SQLITE_OK && (i = sqlite3_bind_parameter_index(q, ":to_ns")) > 0)
		sqlite3_bind_int64(q, i, a->to_ns);
	if (rc == SQLITE_OK)
		while (r == 0 && !a->found && (rc = sqlite3_step(q)) == SQLITE_ROW)
			r = feed(a, q);
	sqlite3_finalize(q);
	if (r == 0 && (a->found || rc == SQLITE_DONE))
		return true;
	snprintf(a->d->why, sizeof a->d->why, "cannot read the events: %s",
		 r ? strerror(-r) : sqlite3_errmsg(a->d->handle));
	return false;
}

static bool feed_all(struct again *a)
{
	if (!each(a, sql_report_path_hosts, feed_host) || !each(a, sql_report_path_processes, feed_process) ||
	    !each(a, sql_report_path_names, feed_name) || !each(a, sql_report_path_groups, feed_group) ||
	    !each(a, sql_report_path_exchanges, feed_exchange) ||
	    !each(a, sql_report_path_chunks, feed_chunk))
		return false;
	if (a->found)
		return true;
	/* Long enough that nothing is waited for any more. */
	for (int i = 0; i < 2; i++)
		if ((i ? core_finish(a->core, (fleet_time){ a->to_ns + 60 * TICK_NS })
		       : core_tick(a->core, (fleet_time){ a->to_ns + 30 * TICK_NS })) < 0 || look(a) < 0) {
			snprintf(a->d->why, sizeof a->d->why, "out of memory");
			return false;
		}
	return true;
}

static bool started_once(struct db *d)
{
	json_t *v = rows_all(d, sql_report_path_lives), *row = json_array_get(v, 0);
	const char *key;
	json_t *n;
	bool once = false;

	json_object_foreach(row, key, n)
		once = json_integer_value(n) <= 1;
	json_decref(v);
	return once;
}

json_t *path_again(struct db *d, const json_t *known, bool edges)
{
	struct again *a = calloc(1, sizeof *a);
	bool fine;
	json_t *found;

	if (!a || core_new(&a->core, NULL, &a->facts) != 0) {
		free(a);
		snprintf(d->why, sizeof d->why, "out of memory");
		return NULL;
	}
	facts_init(&a->facts);
	a->d = d;
	a->edges = edges;
	a->step = rows_ns(known, "step");
	a->from_ns = started_once(d) ? rows_ns(known, "from_ns") - MARGIN_NS : INT64_MIN;
	a->to_ns = rows_ns(known, "to_ns") + MARGIN_NS;
	a->now_ns = rows_ns(known, "from_ns") - 2 * MARGIN_NS;
	a->hosts = rows_all(d, sql_report_path_hosts);
	if (edges)
		core_edges(a->core, (uint32_t)a->step);
	fine = a->hosts && core_tick(a->core, (fleet_time){ a->now_ns }) == 0 && feed_all(a);
	found = a->found;
	core_free(a->core);
	facts_fini(&a->facts);
	for (uint32_t i = 0; i < a->n_groups; i++)
		free(a->groups[i]);
	free(a->groups);
	json_decref(a->hosts);
	free(a);
	if (fine)
		return found ? found : json_null();
	json_decref(found);
	return NULL;
}
