#include "query_internal.h"

#include "sql.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_COLLECTIVES 500
#define MAX_ARRIVALS 20000
#define MAX_BUCKETS 20000

int query_told(struct reader *rd, const struct params *p, bool with_findings, json_t **ret,
	       char why[160])
{
	json_t *run = NULL, *last = NULL, *findings = NULL;
	int r;

	r = query_one(rd, sql_serve_run, p, &run, why);
	if (r == QUERY_NONE)
		run = json_pack("{s:n,s:n,s:n,s:n,s:n}", "run_id", "name", "world_size", "started_ns",
				"ended_ns");
	else if (r != 0)
		return r;
	r = query_one(rd, sql_serve_last_step, p, &last, why);
	if (r == QUERY_NONE)
		r = 0;
	if (r == 0 && with_findings)
		r = query_all(rd, sql_serve_findings, p, &findings, why);
	if (r != 0) {
		json_decref(run);
		json_decref(last);
		return r;
	}
	*ret = json_pack("{s:o,s:o*,s:o*}", "run", run, "last", last, "findings", findings);
	return *ret ? 0 : -ENOMEM;
}

static int told_json(struct reader *rd, const struct query_facts *f, const struct params *p,
		     json_t **ret, char why[160])
{
	if (!f->finished)
		return query_told(rd, p, p->r->route == ROUTE_BOOT, ret, why);
	*ret = json_loads(f->finished, 0, NULL);
	return *ret ? 0 : -ENOMEM;
}

/* run, live and coverage. */
static int run_json(const struct query_facts *f, const json_t *told, json_t **ret)
{
	const struct serve_live *l = &f->live;
	json_t *last = json_object_get(told, "last");

	*ret = json_pack(
		"{s:O,s:{s:s,s:o,s:o,s:O?,s:O?,s:I,s:I,s:s?},s:{s:o,s:I,s:I,s:I,s:I,s:b}}", "run",
		json_object_get(told, "run"), "live", "state", f->state, "now_ns", query_instant_json(l->now_ns),
		"last_event_ns", query_instant_json(l->last_event_ns), "step",
		json_object_get(last, "step"), "step_ns", json_object_get(last, "dur_ns"),
		"n_ranks", (json_int_t)l->n_ranks, "n_agents", (json_int_t)l->n_agents, "listen",
		f->listen[0] ? f->listen : NULL, "coverage", "ranks_expected",
		l->n_ranks_expected ? json_integer(l->n_ranks_expected) : json_null(), "ranks_seen",
		(json_int_t)l->n_ranks_seen, "events", (json_int_t)l->n_events, "events_lost",
		(json_int_t)l->n_events_lost, "drops", (json_int_t)l->n_drops, "collectives_hidden",
		json_is_true(json_object_get(last, "hidden")));
	return *ret ? 0 : -ENOMEM;
}

static int boot_json(const struct query_facts *f, const json_t *told, json_t **ret)
{
	const struct serve_live *l = &f->live;
	bool has_steps = f->n_ranks > 0;
	json_t *boot, *more, *metrics, *baselines, *aggs;
	int r;

	r = run_json(f, told, &boot);
	if (r != 0)
		return r;
	metrics = json_array();
	baselines = json_array();
	aggs = json_array();
	for (unsigned m = 0; m < HEAT_N_METRICS; m++)
		json_array_append_new(metrics, json_string(heat_metric_name((enum heat_metric)m)));
	for (unsigned b = 0; b < HEAT_N_BASELINES; b++)
		json_array_append_new(baselines, json_string(heat_baseline_name((enum heat_baseline)b)));
	for (unsigned a = 0; a < HEAT_N_AGGS; a++)
		json_array_append_new(aggs, json_string(heat_agg_name((enum heat_agg)a)));
	more = json_pack(
		"{s:{s:o,s:I,s:I,s:I},s:{s:o,s:b},s:{s:o,s:o,s:I},s:{s:I,s:o,s:o,s:o},s:O,s:I,s:s}",
		"clock", "error_ns", query_duration_json(l->clock_error_ns), "hosts",
		(json_int_t)l->n_hosts, "unaligned", (json_int_t)l->n_hosts_unaligned,
		"by_stream", (json_int_t)l->n_hosts_by_stream, "overhead",
		"agent_cpu_ratio", query_real_json(l->agent_cpu_ratio), "known",
		(int)isfinite(l->agent_cpu_ratio) != 0, "axes", "first_step",
		has_steps ? json_integer(f->first_step) : json_null(), "last_step",
		has_steps ? json_integer(f->last_step) : json_null(), "n_ranks",
		(json_int_t)f->n_ranks, "heat", "rev", (json_int_t)f->rev, "metrics", metrics,
		"baselines", baselines, "aggs", aggs, "findings",
		json_object_get(told, "findings"), "cursor",
		(json_int_t)f->cursor, "version", SYNCLINE_VERSION);
	if (!more || json_object_update(boot, more) != 0) {
		json_decref(more);
		json_decref(boot);
		return -ENOMEM;
	}
	json_decref(more);
	*ret = boot;
	return 0;
}

/* [[rank, enter, exit or null, err, wait_err, wait where it is another], …] as objects with fleet times. Damaged
 * entries are left out: the count in n_seen shows it. */
static json_t *arrivals_json(const char *text, int64_t first_ns, int64_t last_ns, size_t *left)
{
	json_t *in = json_loads(text ? text : "[]", 0, NULL), *out = json_array(), *a;
	size_t i;

	json_array_foreach(in, i, a) {
		json_t *exit_json = json_array_get(a, 2), *wait_json = json_array_get(a, 5);
		int64_t enter_ns = json_integer_value(json_array_get(a, 1));

		if (*left == 0)
			break;
		if (!json_is_integer(json_array_get(a, 0)) || !json_is_integer(json_array_get(a, 1)) ||
		    enter_ns < 0 || enter_ns > INT64_MAX - first_ns)
			continue;
		json_array_append_new(out, json_pack("{s:O,s:o,s:O?,s:o,s:O*,s:o}", "rank",
			json_array_get(a, 0), "arrival_ns", query_instant_json(first_ns + enter_ns),
			"arrival_err_ns", json_array_get(a, 3), "wait_ns",
			wait_json ? json_incref(wait_json)
				  : json_integer(last_ns - first_ns - enter_ns),
			"wait_err_ns", json_array_get(a, 4), "dur_ns",
			json_is_integer(exit_json) ? json_integer(json_integer_value(exit_json) - enter_ns)
						   : json_null()));
		(*left)--;
	}
	json_decref(in);
	return out;
}

static int collectives_json(struct reader *rd, const struct params *p, json_t **ret,
			    int64_t *ret_arrivals_out, char why[160])
{
	struct params limited = { p->r, MAX_COLLECTIVES };
	size_t left = MAX_ARRIVALS;
	json_t *list = json_array();
	int64_t n_seen = 0;
	sqlite3_stmt *q;
	int rc, r;

	r = query_start(rd, sql_serve_step_collectives, &limited, &q, why);
	if (r != 0) {
		json_decref(list);
		return r;
	}
	while ((rc = sqlite3_step(q)) == SQLITE_ROW) {
		int64_t first_ns = sqlite3_column_int64(q, 12), last_ns = sqlite3_column_int64(q, 13);
		json_t *c = query_row_json(q);

		n_seen += sqlite3_column_int64(q, 11);
		json_object_set_new(c, "arrivals", arrivals_json((const char *)sqlite3_column_text(q, 14),
								 first_ns, last_ns, &left));
		json_object_set_new(c, "first_arrival_ns", query_instant_json(first_ns));
		json_object_set_new(c, "last_arrival_ns", query_instant_json(last_ns));
		json_object_set_new(c, "decided", json_boolean(sqlite3_column_int(q, 8)));
		json_object_set_new(c, "mismatch", json_boolean(sqlite3_column_int(q, 9)));
		if (json_array_append_new(list, c) != 0) {
			sqlite3_reset(q);
			json_decref(list);
			return -ENOMEM;
		}
	}
	r = rc == SQLITE_DONE ? 0 : query_fail(rd, rc, why);
	sqlite3_reset(q);
	if (r != 0) {
		json_decref(list);
		return r;
	}
	*ret_arrivals_out = left == 0 ? n_seen - MAX_ARRIVALS : 0;
	*ret = list;
	return 0;
}

static int step_json(struct reader *rd, const struct params *p, json_t **ret, char why[160])
{
	json_t *step = NULL, *ranks = NULL, *collectives = NULL, *buckets = NULL;
	struct params limited = { p->r, MAX_BUCKETS };
	int64_t n_collectives, n_buckets, n_arrivals_out;
	int r;

	r = query_one(rd, sql_serve_step, p, &step, why);
	if (r == 0)
		r = query_all(rd, sql_serve_step_ranks, p, &ranks, why);
	if (r == 0)
		r = collectives_json(rd, p, &collectives, &n_arrivals_out, why);
	if (r == 0)
		r = query_all(rd, sql_serve_step_buckets, &limited, &buckets, why);
	if (r == 0)
		r = query_count(rd, sql_serve_step_n_collectives, p, &n_collectives, why);
	if (r == 0)
		r = query_count(rd, sql_serve_step_n_buckets, p, &n_buckets, why);
	if (r != 0) {
		json_decref(step);
		json_decref(ranks);
		json_decref(collectives);
		json_decref(buckets);
		return r;
	}
	n_collectives -= (int64_t)json_array_size(collectives);
	n_buckets -= (int64_t)json_array_size(buckets);
	*ret = json_pack("{s:o,s:o,s:o,s:o,s:{s:I,s:I,s:I}}", "step", step, "ranks", ranks,
			 "collectives", collectives, "buckets", buckets, "left_out", "collectives",
			 (json_int_t)n_collectives, "arrivals", (json_int_t)n_arrivals_out, "buckets",
			 (json_int_t)n_buckets);
	return *ret ? 0 : -ENOMEM;
}

static int drops_json(struct reader *rd, const struct params *p, json_t **ret, char why[160])
{
	json_t *list;
	int64_t total;
	int r = query_count(rd, sql_serve_drops_total, p, &total, why);

	if (r == 0)
		r = query_all(rd, sql_serve_drops, p, &list, why);
	if (r != 0)
		return r;
	*ret = json_pack("{s:I,s:o}", "total", (json_int_t)total, "by_rank", list);
	return *ret ? 0 : -ENOMEM;
}

static int told_answer(struct reader *rd, const struct params *p, const struct query_facts *f,
		       json_t **ret, char why[160])
{
	json_t *told;
	int r = told_json(rd, f, p, &told, why);

	if (r != 0)
		return r;
	r = p->r->route == ROUTE_BOOT ? boot_json(f, told, ret) : run_json(f, told, ret);
	json_decref(told);
	return r;
}

static int answer_json(struct reader *rd, const struct params *p, const struct query_facts *f,
		       json_t **ret, char why[160])
{
	switch (p->r->route) {
	case ROUTE_BOOT:
	case ROUTE_RUN:
		return told_answer(rd, p, f, ret, why);
	case ROUTE_RANKS:
		return query_listed(rd, "ranks", sql_serve_ranks, p, ret, why);
	case ROUTE_FINDINGS:
		return query_listed(rd, "findings", sql_serve_findings, p, ret, why);
	case ROUTE_STEPS:
		return query_listed(rd, "steps", sql_serve_steps, p, ret, why);
	case ROUTE_STEP:
		return step_json(rd, p, ret, why);
	case ROUTE_CELL:
		return query_one(rd, sql_serve_cell, p, ret, why);
	case ROUTE_CLOCKS:
		return query_listed(rd, "hosts", sql_serve_clocks, p, ret, why);
	case ROUTE_CLOCK_HISTORY:
		return query_listed(rd, "history", sql_report_clock_history, p, ret, why);
	case ROUTE_CLOCK_STEPS:
		return query_listed(rd, "steps", sql_report_clock_steps, p, ret, why);
	case ROUTE_DROPS:
		return drops_json(rd, p, ret, why);
	case ROUTE_LOGS:
		return query_listed(rd, "logs", sql_serve_logs, p, ret, why);
	case ROUTE_READYZ:
		return query_one(rd, sql_serve_run, p, ret, why);
	case ROUTE_FILE:
	case ROUTE_TILE:
	case ROUTE_COLS:
	case ROUTE_EVENTS:
	case ROUTE_SINCE:
	case ROUTE_LOGIN:
	case ROUTE_HEALTHZ:
	case ROUTE_METRICS:
		break; /* not answered from here */
	}
	return QUERY_NONE;
}

int query_answer(struct query *pool, const struct route_request *req, const struct query_facts *f,
		 char **ret, size_t *ret_n, char why[160])
{
	struct params p = { req, req->limit };
	json_t *json = NULL;
	struct reader *rd;
	int r, rc;

	r = query_take_reader(pool, &rd, why);
	if (r != 0)
		return r;
	rd->deadline_ns = query_now_ns() + pool->deadline_ns;
	rc = sqlite3_exec(rd->db, "BEGIN", NULL, NULL, NULL);
	if (rc != SQLITE_OK)
		r = query_fail(rd, rc, why);
	else if (req->route == ROUTE_METRICS)
		r = query_metrics(rd, f, &p, ret, ret_n, why);
	else
		r = answer_json(rd, &p, f, &json, why);
	if (r == QUERY_LATE && !rd->late)
		r = QUERY_BUSY;
	query_give_reader(pool, rd); /* the transaction ends before the text is made */
	if (r != 0 || !json)
		return r;
	*ret = json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(12));
	json_decref(json);
	if (!*ret)
		return -ENOMEM;
	*ret_n = strlen(*ret);
	return 0;
}
