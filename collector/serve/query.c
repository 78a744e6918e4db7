#include "query.h"

#include "sql.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define N_READERS 4 /* libuv's workers */
#define N_STATEMENTS 32
#define MAX_COLLECTIVES 500
#define MAX_ARRIVALS 20000
#define MAX_BUCKETS 20000

struct reader {
	struct query *pool;
	sqlite3 *db;
	int64_t deadline_ns; /* INT64_MAX = none */
	bool late, immutable;
	size_t n_statements;
	struct {
		const char *sql;
		sqlite3_stmt *q;
	} statements[N_STATEMENTS];
};

struct query {
	/* read-only after query_new */
	char *path, *wal_path; /* owned */
	bool finished;
	int64_t deadline_ns;

	atomic_bool cancelled;

	/* shared, under lock */
	pthread_mutex_t lock;
	struct reader *idle[N_READERS];
	size_t n_idle;
};

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int query_new(struct query **ret, const char *path, bool finished, unsigned deadline_ms)
{
	struct query *q = calloc(1, sizeof *q);

	if (!q)
		return -ENOMEM;
	q->path = strdup(path);
	if (!q->path || asprintf(&q->wal_path, "%s-wal", path) < 0) {
		free(q->path);
		free(q);
		return -ENOMEM;
	}
	q->finished = finished;
	q->deadline_ns = (int64_t)deadline_ms * 1000000;
	pthread_mutex_init(&q->lock, NULL);
	*ret = q;
	return 0;
}

static void reader_free(struct reader *rd)
{
	if (!rd)
		return;
	for (size_t i = 0; i < rd->n_statements; i++)
		sqlite3_finalize(rd->statements[i].q);
	sqlite3_close(rd->db);
	free(rd);
}

void query_cancel(struct query *q)
{
	atomic_store(&q->cancelled, true);
}

void query_free(struct query *q)
{
	if (!q)
		return;
	for (size_t i = 0; i < q->n_idle; i++)
		reader_free(q->idle[i]);
	pthread_mutex_destroy(&q->lock);
	free(q->path);
	free(q->wal_path);
	free(q);
}

/* SQLite asks every 1,000 operations whether to go on. */
static int on_progress(void *arg)
{
	struct reader *rd = arg;

	if (atomic_load_explicit(&rd->pool->cancelled, memory_order_relaxed))
		return 1;
	if (now_ns() < rd->deadline_ns)
		return 0;
	rd->late = true;
	return 1;
}

static int fail(struct reader *rd, int rc, char why[160])
{
	if (atomic_load(&rd->pool->cancelled)) {
		snprintf(why, 160, "the collector is stopping");
		return QUERY_BUSY;
	}
	snprintf(why, 160, "%s", rd->db ? sqlite3_errmsg(rd->db) : sqlite3_errstr(rc));
	switch (rc & 0xff) {
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
	case SQLITE_CANTOPEN:
	case SQLITE_SCHEMA:
		return QUERY_BUSY;
	case SQLITE_INTERRUPT:
		return QUERY_LATE;
	default:
		return QUERY_BAD;
	}
}

static bool has_log(const struct query *pool)
{
	struct stat st;

	return stat(pool->wal_path, &st) == 0;
}

/* Read as it is: no locks, and no -shm file, which the folder may not take and
 * which would stay behind. Only for a finished run without a log beside it: where
 * somebody writes, it would see a torn file. */
static int open_immutable(struct reader *rd)
{
	size_t n = strlen(rd->pool->path), room = 3 * n + 32, at;
	char *uri = malloc(room);
	int rc;

	if (!uri)
		return SQLITE_NOMEM;
	memcpy(uri, "file:", 5);
	at = 5 + url_encode(rd->pool->path, n, uri + 5, room - 5);
	memcpy(uri + at, "?immutable=1", 13);
	rc = sqlite3_open_v2(uri, &rd->db,
			     SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI, NULL);
	free(uri);
	rd->immutable = true;
	return rc;
}

static int reader_open(struct query *pool, struct reader **ret, char why[160])
{
	struct reader *rd = calloc(1, sizeof *rd);
	int rc;

	if (!rd)
		return -ENOMEM;
	rd->pool = pool;
	rd->deadline_ns = INT64_MAX;
	if (pool->finished && !has_log(pool))
		rc = open_immutable(rd);
	else
		rc = sqlite3_open_v2(pool->path, &rd->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX,
				     NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(rd->db, "SELECT 1 FROM sqlite_schema", NULL, NULL, NULL);
	if (rc != SQLITE_OK) {
		int r = fail(rd, rc, why);

		reader_free(rd);
		return r;
	}
	/* The file may come from a stranger: its schema gets no powers. */
	sqlite3_db_config(rd->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(rd->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_busy_timeout(rd->db, 200);
	sqlite3_progress_handler(rd->db, 1000, on_progress, rd);
	*ret = rd;
	return 0;
}

static int take_reader(struct query *pool, struct reader **ret, char why[160])
{
	struct reader *rd = NULL;
	int r;

	pthread_mutex_lock(&pool->lock);
	if (pool->n_idle > 0)
		rd = pool->idle[--pool->n_idle];
	pthread_mutex_unlock(&pool->lock);
	if (rd && rd->immutable && has_log(pool)) {
		reader_free(rd); /* not finished after all: somebody writes again */
		rd = NULL;
	}
	if (!rd) {
		r = reader_open(pool, &rd, why);
		if (r != 0)
			return r;
	}
	rd->late = false;
	*ret = rd;
	return 0;
}

static void give_reader(struct query *pool, struct reader *rd)
{
	rd->deadline_ns = INT64_MAX;
	if (!sqlite3_get_autocommit(rd->db))
		sqlite3_exec(rd->db, "ROLLBACK", NULL, NULL, NULL);
	pthread_mutex_lock(&pool->lock);
	if (pool->n_idle < N_READERS) {
		pool->idle[pool->n_idle++] = rd;
		rd = NULL;
	}
	pthread_mutex_unlock(&pool->lock);
	reader_free(rd);
}

static int prepare(struct reader *rd, const char *sql, sqlite3_stmt **ret)
{
	int rc;

	for (size_t i = 0; i < rd->n_statements; i++) {
		if (rd->statements[i].sql == sql) {
			*ret = rd->statements[i].q;
			sqlite3_reset(*ret);
			sqlite3_clear_bindings(*ret);
			return SQLITE_OK;
		}
	}
	rc = sqlite3_prepare_v3(rd->db, sql, -1, SQLITE_PREPARE_PERSISTENT, ret, NULL);
	if (rc != SQLITE_OK)
		return rc;
	if (rd->n_statements == N_STATEMENTS) {
		rd->n_statements--;
		sqlite3_finalize(rd->statements[rd->n_statements].q);
	}
	rd->statements[rd->n_statements].sql = sql;
	rd->statements[rd->n_statements].q = *ret;
	rd->n_statements++;
	return SQLITE_OK;
}

static void bind(sqlite3_stmt *q, const char *name, int64_t v)
{
	int at = sqlite3_bind_parameter_index(q, name);

	if (at > 0)
		sqlite3_bind_int64(q, at, v);
}

/* Length of the valid UTF-8 character at s, 0 when it is none. */
static size_t utf8_length(const unsigned char *s, size_t n)
{
	size_t len = s[0] < 0x80 ? 1 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : (s[0] & 0xf0) == 0xe0 ? 3
		   : s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0;

	if (len == 0 || len > n)
		return 0;
	for (size_t i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	}
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return len;
}

/* Texts come from training scripts: whatever is no UTF-8 becomes U+FFFD. */
static json_t *text_json(const char *text, size_t n)
{
	json_t *v = json_stringn(text, n);
	size_t at = 0;
	char *clean;

	if (v)
		return v;
	clean = malloc(3 * n + 1);
	if (!clean)
		return NULL;
	for (size_t i = 0; i < n;) {
		size_t len = utf8_length((const unsigned char *)text + i, n - i);

		memcpy(clean + at, len ? text + i : "\xef\xbf\xbd", len ? len : 3);
		at += len ? len : 3;
		i += len ? len : 1;
	}
	v = json_stringn(clean, at);
	free(clean);
	return v;
}

static json_t *real_json(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

static json_t *value_json(sqlite3_stmt *q, int col, const char *kind)
{
	const char *text;
	json_t *v;

	switch (sqlite3_column_type(q, col)) {
	case SQLITE_INTEGER:
		if (strcmp(kind, "bool") == 0)
			return json_boolean(sqlite3_column_int64(q, col) != 0);
		return json_integer(sqlite3_column_int64(q, col));
	case SQLITE_FLOAT:
		return real_json(sqlite3_column_double(q, col));
	case SQLITE_TEXT:
		text = (const char *)sqlite3_column_text(q, col);
		if (!text)
			return NULL;
		if (strcmp(kind, "json") == 0) {
			v = json_loads(text, JSON_DECODE_ANY, NULL);
			return v ? v : json_null();
		}
		return text_json(text, (size_t)sqlite3_column_bytes(q, col));
	default:
		return json_null();
	}
}

/* A row as an object. A column called x:json or x:bool is x of that kind. */
static json_t *row_json(sqlite3_stmt *q)
{
	json_t *row = json_object();
	char name[64];

	for (int col = 0; row && col < sqlite3_column_count(q); col++) {
		const char *full = sqlite3_column_name(q, col);
		const char *kind = strchr(full, ':');

		snprintf(name, sizeof name, "%.*s", kind ? (int)(kind - full) : (int)strlen(full), full);
		if (json_object_set_new(row, name, value_json(q, col, kind ? kind + 1 : "")) != 0) {
			json_decref(row);
			return NULL;
		}
	}
	return row;
}

/* All rows of a bound statement as an array. */
static int rows(struct reader *rd, sqlite3_stmt *q, json_t **ret, char why[160])
{
	json_t *list = json_array();
	int rc;

	if (!list)
		return -ENOMEM;
	while ((rc = sqlite3_step(q)) == SQLITE_ROW) {
		if (json_array_append_new(list, row_json(q)) != 0) {
			sqlite3_reset(q);
			json_decref(list);
			return -ENOMEM;
		}
	}
	if (rc != SQLITE_DONE) {
		json_decref(list);
		rc = fail(rd, rc, why);
		sqlite3_reset(q);
		return rc;
	}
	sqlite3_reset(q);
	*ret = list;
	return 0;
}

struct params {
	const struct route_request *r;
	int64_t limit;
};

static int start(struct reader *rd, const char *sql, const struct params *p, sqlite3_stmt **ret,
		 char why[160])
{
	int rc = prepare(rd, sql, ret);

	if (rc != SQLITE_OK)
		return fail(rd, rc, why);
	bind(*ret, ":step", p->r->step);
	bind(*ret, ":rank", p->r->rank);
	bind(*ret, ":from", p->r->from);
	bind(*ret, ":to", p->r->to);
	bind(*ret, ":limit", p->limit);
	return 0;
}

static int all(struct reader *rd, const char *sql, const struct params *p, json_t **ret,
	       char why[160])
{
	sqlite3_stmt *q;
	int r = start(rd, sql, p, &q, why);

	return r != 0 ? r : rows(rd, q, ret, why);
}

/* The first row as an object; QUERY_NONE without one. */
static int one(struct reader *rd, const char *sql, const struct params *p, json_t **ret,
	       char why[160])
{
	json_t *list;
	int r = all(rd, sql, p, &list, why);

	if (r != 0)
		return r;
	*ret = json_incref(json_array_get(list, 0));
	json_decref(list);
	return *ret ? 0 : QUERY_NONE;
}

static int count(struct reader *rd, const char *sql, const struct params *p, int64_t *ret,
		 char why[160])
{
	sqlite3_stmt *q;
	int rc, r = start(rd, sql, p, &q, why);

	if (r != 0)
		return r;
	rc = sqlite3_step(q);
	if (rc != SQLITE_ROW) {
		r = fail(rd, rc, why);
		sqlite3_reset(q);
		return r;
	}
	*ret = sqlite3_column_int64(q, 0);
	sqlite3_reset(q);
	return 0;
}

/* {name: list} */
static int listed(struct reader *rd, const char *name, const char *sql, const struct params *p,
		  json_t **ret, char why[160])
{
	json_t *list;
	int r = all(rd, sql, p, &list, why);

	if (r != 0)
		return r;
	*ret = json_pack("{s:o}", name, list);
	return *ret ? 0 : -ENOMEM;
}

/* An instant as a decimal string; a browser's numbers cannot hold it. */
static json_t *instant_json(int64_t at_ns)
{
	char text[24];

	if (at_ns == FACT_NONE)
		return json_null();
	snprintf(text, sizeof text, "%" PRId64, at_ns);
	return json_string(text);
}

static json_t *duration_json(int64_t v_ns)
{
	return v_ns == FACT_NONE ? json_null() : json_integer(v_ns);
}

/* run, live and coverage. */
static int run_json(struct reader *rd, const struct query_facts *f, const struct params *p,
		    json_t **ret, char why[160])
{
	const struct serve_live *l = &f->live;
	json_t *run = NULL, *last = NULL;
	int r;

	r = one(rd, sql_serve_run, p, &run, why);
	if (r == QUERY_NONE)
		run = json_pack("{s:n,s:n,s:n,s:n,s:n}", "run_id", "name", "world_size", "started_ns",
				"ended_ns");
	else if (r != 0)
		return r;
	r = one(rd, sql_serve_last_step, p, &last, why);
	if (r != 0 && r != QUERY_NONE) {
		json_decref(run);
		return r;
	}
	*ret = json_pack("{s:o,s:{s:s,s:o,s:o,s:O?,s:O?,s:I,s:I,s:s?},s:{s:o,s:I,s:I,s:I,s:I,s:b}}",
		"run", run,
		"live", "state", f->state, "now_ns", instant_json(l->now_ns), "last_event_ns",
		instant_json(l->last_event_ns), "step", json_object_get(last, "step"), "step_ns",
		json_object_get(last, "dur_ns"), "n_ranks", (json_int_t)l->n_ranks, "n_agents",
		(json_int_t)l->n_agents, "listen", f->listen[0] ? f->listen : NULL,
		"coverage", "ranks_expected",
		l->n_ranks_expected ? json_integer(l->n_ranks_expected) : json_null(), "ranks_seen",
		(json_int_t)l->n_ranks_seen, "events", (json_int_t)l->n_events, "events_lost",
		(json_int_t)l->n_events_lost, "drops", (json_int_t)l->n_drops, "collectives_hidden",
		json_is_true(json_object_get(last, "hidden")));
	json_decref(last);
	return *ret ? 0 : -ENOMEM;
}

static int boot_json(struct reader *rd, const struct query_facts *f, const struct params *p,
		     json_t **ret, char why[160])
{
	const struct serve_live *l = &f->live;
	bool has_steps = f->n_ranks > 0;
	json_t *boot, *findings, *more, *metrics, *baselines, *aggs;
	int r;

	r = run_json(rd, f, p, &boot, why);
	if (r != 0)
		return r;
	r = all(rd, sql_serve_findings, p, &findings, why);
	if (r != 0) {
		json_decref(boot);
		return r;
	}
	metrics = json_array();
	baselines = json_array();
	aggs = json_array();
	for (unsigned m = 0; m < HEAT_N_METRICS; m++)
		json_array_append_new(metrics, json_string(heat_metric_name((enum heat_metric)m)));
	for (unsigned b = 0; b < HEAT_N_BASELINES; b++)
		json_array_append_new(baselines, json_string(heat_baseline_name((enum heat_baseline)b)));
	for (unsigned a = 0; a < HEAT_N_AGGS; a++)
		json_array_append_new(aggs, json_string(heat_agg_name((enum heat_agg)a)));
	more = json_pack("{s:{s:o,s:I,s:I},s:{s:o,s:b},s:{s:o,s:o,s:I},s:{s:I,s:o,s:o,s:o},s:o,s:I,s:s}",
		"clock", "error_ns", duration_json(l->clock_error_ns), "hosts", (json_int_t)l->n_hosts,
		"unaligned", (json_int_t)l->n_hosts_unaligned,
		"overhead", "agent_cpu_ratio", real_json(l->agent_cpu_ratio), "known",
		(int)isfinite(l->agent_cpu_ratio) != 0,
		"axes", "first_step", has_steps ? json_integer(f->first_step) : json_null(), "last_step",
		has_steps ? json_integer(f->last_step) : json_null(), "n_ranks", (json_int_t)f->n_ranks,
		"heat", "rev", (json_int_t)f->rev, "metrics", metrics, "baselines", baselines, "aggs",
		aggs, "findings", findings, "cursor", (json_int_t)f->cursor, "version", SYNCLINE_VERSION);
	if (!more || json_object_update(boot, more) != 0) {
		json_decref(more);
		json_decref(boot);
		return -ENOMEM;
	}
	json_decref(more);
	*ret = boot;
	return 0;
}

/* [[rank, enter, exit or null, err], …] as objects with fleet times. Damaged
 * entries are left out: the count in n_seen shows it. */
static json_t *arrivals_json(const char *text, int64_t first_ns, int64_t last_ns, size_t *left)
{
	json_t *in = json_loads(text ? text : "[]", 0, NULL), *out = json_array(), *a;
	size_t i;

	json_array_foreach(in, i, a) {
		json_t *exit_json = json_array_get(a, 2);
		int64_t enter_ns = json_integer_value(json_array_get(a, 1));

		if (*left == 0)
			break;
		if (!json_is_integer(json_array_get(a, 0)) || !json_is_integer(json_array_get(a, 1)) ||
		    enter_ns < 0 || enter_ns > INT64_MAX - first_ns)
			continue;
		json_array_append_new(out, json_pack("{s:O,s:o,s:O?,s:I,s:o}", "rank",
			json_array_get(a, 0), "arrival_ns", instant_json(first_ns + enter_ns),
			"arrival_err_ns", json_array_get(a, 3), "wait_ns",
			(json_int_t)(last_ns - first_ns - enter_ns), "dur_ns",
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

	r = start(rd, sql_serve_step_collectives, &limited, &q, why);
	if (r != 0) {
		json_decref(list);
		return r;
	}
	while ((rc = sqlite3_step(q)) == SQLITE_ROW) {
		int64_t first_ns = sqlite3_column_int64(q, 12), last_ns = sqlite3_column_int64(q, 13);
		json_t *c = row_json(q);

		n_seen += sqlite3_column_int64(q, 11);
		json_object_set_new(c, "arrivals", arrivals_json((const char *)sqlite3_column_text(q, 14),
								 first_ns, last_ns, &left));
		json_object_set_new(c, "first_arrival_ns", instant_json(first_ns));
		json_object_set_new(c, "last_arrival_ns", instant_json(last_ns));
		json_object_set_new(c, "decided", json_boolean(sqlite3_column_int(q, 8)));
		json_object_set_new(c, "mismatch", json_boolean(sqlite3_column_int(q, 9)));
		if (json_array_append_new(list, c) != 0) {
			sqlite3_reset(q);
			json_decref(list);
			return -ENOMEM;
		}
	}
	r = rc == SQLITE_DONE ? 0 : fail(rd, rc, why);
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

	r = one(rd, sql_serve_step, p, &step, why);
	if (r == 0)
		r = all(rd, sql_serve_step_ranks, p, &ranks, why);
	if (r == 0)
		r = collectives_json(rd, p, &collectives, &n_arrivals_out, why);
	if (r == 0)
		r = all(rd, sql_serve_step_buckets, &limited, &buckets, why);
	if (r == 0)
		r = count(rd, sql_serve_step_n_collectives, p, &n_collectives, why);
	if (r == 0)
		r = count(rd, sql_serve_step_n_buckets, p, &n_buckets, why);
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
	int r = count(rd, sql_serve_drops_total, p, &total, why);

	if (r == 0)
		r = all(rd, sql_serve_drops, p, &list, why);
	if (r != 0)
		return r;
	*ret = json_pack("{s:I,s:o}", "total", (json_int_t)total, "by_rank", list);
	return *ret ? 0 : -ENOMEM;
}

/* ---- Prometheus text */

static void label(FILE *out, const char *name, const unsigned char *value)
{
	fprintf(out, "%s=\"", name);
	for (; value && *value; value++) {
		if (*value == '\n')
			fputs("\\n", out);
		else
			fprintf(out, *value == '\\' || *value == '"' ? "\\%c" : "%c", *value);
	}
	fputc('"', out);
}

static void head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP syncline_%s %s\n# TYPE syncline_%s %s\n", name, help, name, type);
}

static void metric(FILE *out, const char *name, const char *type, const char *help, double v)
{
	head(out, name, type, help);
	fprintf(out, "syncline_%s %.17g\n", name, v);
}

/* One line a row: text columns are labels called l1 and l2, then the value. */
static int metric_rows(struct reader *rd, FILE *out, const char *sql, const struct params *p,
		       const char *name, const char *l1, const char *l2, char why[160])
{
	int value_col = l2 ? 2 : 1;
	sqlite3_stmt *q;
	int rc, r = start(rd, sql, p, &q, why);

	if (r != 0)
		return r;
	while ((rc = sqlite3_step(q)) == SQLITE_ROW) {
		fprintf(out, "syncline_%s{", name);
		label(out, l1, sqlite3_column_text(q, 0));
		if (l2) {
			fputc(',', out);
			label(out, l2, sqlite3_column_text(q, 1));
		}
		fprintf(out, "} %.17g\n", sqlite3_column_double(q, value_col));
	}
	r = rc == SQLITE_DONE ? 0 : fail(rd, rc, why);
	sqlite3_reset(q);
	return r;
}

/* Quantiles of a column that comes sorted; nothing at all without rows. */
static int metric_quantiles(struct reader *rd, FILE *out, const char *sql, const struct params *p,
			    const char *name, const char *help, char why[160])
{
	static const double quantiles[] = { 0.5, 0.9, 0.99, 1 };
	size_t n = 0, n_alloc = 0;
	double *v = NULL;
	sqlite3_stmt *q;
	int rc, r = start(rd, sql, p, &q, why);

	if (r != 0)
		return r;
	while ((rc = sqlite3_step(q)) == SQLITE_ROW) {
		if (n == n_alloc) {
			size_t n_more = n_alloc ? 2 * n_alloc : 64;
			double *more = realloc(v, n_more * sizeof *v);

			if (!more) {
				rc = SQLITE_NOMEM;
				break;
			}
			v = more;
			n_alloc = n_more;
		}
		v[n++] = sqlite3_column_double(q, 0);
	}
	r = rc == SQLITE_DONE ? 0 : fail(rd, rc, why);
	sqlite3_reset(q);
	if (r == 0 && n > 0) {
		head(out, name, "gauge", help);
		for (size_t i = 0; i < sizeof quantiles / sizeof *quantiles; i++)
			fprintf(out, "syncline_%s{quantile=\"%g\"} %.17g\n", name, quantiles[i],
				v[(size_t)ceil(quantiles[i] * (double)n) - 1]);
	}
	free(v);
	return r;
}

static int metric_steps(struct reader *rd, FILE *out, const struct params *p, char why[160])
{
	sqlite3_stmt *q;
	int rc, r = start(rd, sql_serve_metrics_steps, p, &q, why);

	if (r != 0)
		return r;
	rc = sqlite3_step(q);
	if (rc != SQLITE_ROW) {
		r = fail(rd, rc, why);
		sqlite3_reset(q);
		return r;
	}
	head(out, "step_seconds", "histogram", "Time of a step, earliest begin to latest end over ranks.");
	for (int col = 2; col < sqlite3_column_count(q); col++)
		fprintf(out, "syncline_step_seconds_bucket{le=\"%s\"} %" PRId64 "\n",
			sqlite3_column_name(q, col), (int64_t)sqlite3_column_double(q, col));
	fprintf(out, "syncline_step_seconds_bucket{le=\"+Inf\"} %lld\n", sqlite3_column_int64(q, 0));
	fprintf(out, "syncline_step_seconds_sum %.17g\n", sqlite3_column_double(q, 1));
	fprintf(out, "syncline_step_seconds_count %lld\n", sqlite3_column_int64(q, 0));
	sqlite3_reset(q);
	return 0;
}

/* Nothing is printed that is not measured: a missing series is "unknown", a zero
 * would be a claim. */
static int metrics_write(struct reader *rd, FILE *out, const struct query_facts *f,
			 const struct params *p, char why[160])
{
	const struct serve_live *l = &f->live;
	int r;

	head(out, "build_info", "gauge", "Always 1; the version is the label.");
	fprintf(out, "syncline_build_info{version=\"%s\"} 1\n", SYNCLINE_VERSION);
	r = metric_steps(rd, out, p, why);
	if (r == 0)
		r = metric_quantiles(rd, out, sql_serve_metrics_excess, p, "rank_excess_ratio",
				     "Self time over the peers' median - 1, mean of a rank's newest 20 steps.",
				     why);
	if (r == 0) {
		head(out, "worst_rank_excess_ratio", "gauge", "The largest rank_excess_ratio on each host.");
		r = metric_rows(rd, out, sql_serve_metrics_worst, p, "worst_rank_excess_ratio", "host",
				NULL, why);
	}
	if (r == 0) {
		head(out, "findings", "gauge", "Findings so far.");
		r = metric_rows(rd, out, sql_serve_metrics_findings, p, "findings", "kind", "severity",
				why);
	}
	if (r == 0) {
		head(out, "collective_skew_seconds", "gauge",
		     "First to last arrival, largest decided of the newest 20 steps.");
		r = metric_rows(rd, out, sql_serve_metrics_skew, p, "collective_skew_seconds", "comm",
				"op", why);
	}
	if (r == 0) {
		head(out, "drops_total", "counter", "Events and texts that were lost, by place.");
		r = metric_rows(rd, out, sql_serve_metrics_drops, p, "drops_total", "where", NULL, why);
	}
	if (r == 0)
		r = metric_quantiles(rd, out, sql_serve_metrics_clock, p, "clock_error_seconds",
				     "Bound of a host's clock error, over aligned hosts.", why);
	if (r != 0)
		return r;
	head(out, "agents", "gauge", "Agents, by state.");
	fprintf(out, "syncline_agents{state=\"connected\"} %u\nsyncline_agents{state=\"lost\"} %u\n",
		l->n_agents, l->n_agents_lost);
	metric(out, "ranks", "gauge", "Ranks that are alive.", l->n_ranks);
	metric(out, "hosts_unaligned", "gauge", "Hosts whose clock was never aligned.",
	       l->n_hosts_unaligned);
	metric(out, "events_total", "counter", "Events received.", (double)l->n_events);
	metric(out, "events_lost_total", "counter", "Events known to be lost.", (double)l->n_events_lost);
	if (isfinite(l->agent_cpu_ratio))
		metric(out, "agent_cpu_ratio", "gauge", "CPU of the agents, mean, 1 = one core.",
		       l->agent_cpu_ratio);
	metric(out, "http_streams", "gauge", "Open server-sent event streams.", (double)f->n_streams);
	return 0;
}

static int metrics_text(struct reader *rd, const struct query_facts *f, const struct params *p,
			char **ret, size_t *ret_n, char why[160])
{
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);
	int r;

	if (!out)
		return -ENOMEM;
	r = metrics_write(rd, out, f, p, why);
	if (fclose(out) != 0 && r == 0)
		r = -ENOMEM;
	if (r != 0) {
		free(text);
		return r;
	}
	*ret = text;
	*ret_n = n;
	return 0;
}

static int answer_json(struct reader *rd, const struct params *p, const struct query_facts *f,
		       json_t **ret, char why[160])
{
	switch (p->r->route) {
	case ROUTE_BOOT:
		return boot_json(rd, f, p, ret, why);
	case ROUTE_RUN:
		return run_json(rd, f, p, ret, why);
	case ROUTE_RANKS:
		return listed(rd, "ranks", sql_serve_ranks, p, ret, why);
	case ROUTE_FINDINGS:
		return listed(rd, "findings", sql_serve_findings, p, ret, why);
	case ROUTE_STEPS:
		return listed(rd, "steps", sql_serve_steps, p, ret, why);
	case ROUTE_STEP:
		return step_json(rd, p, ret, why);
	case ROUTE_CELL:
		return one(rd, sql_serve_cell, p, ret, why);
	case ROUTE_CLOCKS:
		return listed(rd, "hosts", sql_serve_clocks, p, ret, why);
	case ROUTE_DROPS:
		return drops_json(rd, p, ret, why);
	case ROUTE_LOGS:
		return listed(rd, "logs", sql_serve_logs, p, ret, why);
	case ROUTE_READYZ:
		return one(rd, sql_serve_run, p, ret, why);
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

	r = take_reader(pool, &rd, why);
	if (r != 0)
		return r;
	rd->deadline_ns = now_ns() + pool->deadline_ns;
	rc = sqlite3_exec(rd->db, "BEGIN", NULL, NULL, NULL);
	if (rc != SQLITE_OK)
		r = fail(rd, rc, why);
	else if (req->route == ROUTE_METRICS)
		r = metrics_text(rd, f, &p, ret, ret_n, why);
	else
		r = answer_json(rd, &p, f, &json, why);
	if (r == QUERY_LATE && !rd->late)
		r = QUERY_BUSY;
	give_reader(pool, rd); /* the transaction ends before the text is made */
	if (r != 0 || !json)
		return r;
	*ret = json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(12));
	json_decref(json);
	if (!*ret)
		return -ENOMEM;
	*ret_n = strlen(*ret);
	return 0;
}

int query_check(struct query *pool, char why[160])
{
	static const struct route_request none = { 0 };
	struct params p = { &none, 0 };
	json_t *run = NULL;
	struct reader *rd;
	int r = take_reader(pool, &rd, why);

	if (r != 0)
		return r;
	r = one(rd, sql_serve_run, &p, &run, why);
	json_decref(run);
	give_reader(pool, rd);
	return r == QUERY_NONE ? 0 : r;
}

static int64_t time_or_none(sqlite3_stmt *q, int col)
{
	return sqlite3_column_type(q, col) == SQLITE_NULL ? FACT_NONE : sqlite3_column_int64(q, col);
}

int query_snapshot(struct query *pool, struct serve_live *ret, char why[160])
{
	static const struct route_request none = { 0 };
	struct params p = { &none, 0 };
	struct reader *rd;
	sqlite3_stmt *q;
	int rc, r = take_reader(pool, &rd, why);

	if (r != 0)
		return r;
	r = start(rd, sql_serve_snapshot, &p, &q, why);
	if (r != 0)
		goto out;
	rc = sqlite3_step(q);
	if (rc != SQLITE_ROW) {
		r = fail(rd, rc, why);
		sqlite3_reset(q);
		goto out;
	}
	*ret = (struct serve_live){
		.now_ns = time_or_none(q, 0), .last_event_ns = time_or_none(q, 0),
		.n_agents = (uint32_t)sqlite3_column_int64(q, 1),
		.n_ranks = (uint32_t)sqlite3_column_int64(q, 2),
		.n_ranks_seen = (uint32_t)sqlite3_column_int64(q, 2),
		.n_ranks_expected = (uint32_t)sqlite3_column_int64(q, 3),
		.n_events = (uint64_t)sqlite3_column_int64(q, 4),
		.n_drops = (uint64_t)sqlite3_column_int64(q, 5),
		.n_events_lost = (uint64_t)sqlite3_column_int64(q, 6),
		.n_hosts = (uint32_t)sqlite3_column_int64(q, 7),
		.n_hosts_unaligned = (uint32_t)sqlite3_column_int64(q, 8),
		.clock_error_ns = time_or_none(q, 9), .ended = true,
		.agent_cpu_ratio = sqlite3_column_type(q, 10) == SQLITE_NULL
					   ? NAN : sqlite3_column_double(q, 10),
	};
	sqlite3_reset(q);
out:
	give_reader(pool, rd);
	return r;
}

/* The first picture sorts every step of every metric, a second and more at 10,000
 * ranks: better here than on the loop. */
static int warm(struct heat *heat)
{
	struct heat_key all = { .zs = ROUTE_MAX_ZOOM, .zr = ROUTE_MAX_ZOOM, .baseline = HEAT_PEERS };
	unsigned char *tile = malloc(HEAT_TILE_BYTES);
	uint32_t rev;
	bool sealed;
	int r = tile ? heat_tile(heat, &all, tile, &rev, &sealed) : -ENOMEM;

	free(tile);
	return r < 0 ? r : 0;
}

int query_heat(struct query *pool, struct heat *heat, char why[160])
{
	static const struct route_request none = { 0 };
	struct params p = { &none, 0 };
	uint32_t first = UINT32_MAX, last = 0, n_ranks = 0;
	struct reader *rd;
	sqlite3_stmt *q;
	int rc, r = take_reader(pool, &rd, why);

	if (r != 0)
		return r;
	r = start(rd, sql_serve_heat, &p, &q, why);
	if (r != 0)
		goto out;
	while ((rc = sqlite3_step(q)) == SQLITE_ROW) {
		int64_t step = sqlite3_column_int64(q, 0), rank = sqlite3_column_int64(q, 1);
		struct fact_rank_step v = {
			.step = (uint32_t)step, .rank = (int32_t)rank,
			.begin_ns = time_or_none(q, 2), .begin_err_ns = time_or_none(q, 3),
			.dur_ns = time_or_none(q, 4), .self_ns = time_or_none(q, 5),
			.exposed_comm_ns = time_or_none(q, 6), .wait_ns = time_or_none(q, 7),
			.wait_err_ns = time_or_none(q, 8), .input_wait_ns = time_or_none(q, 9),
			.fwd_ns = time_or_none(q, 10), .bwd_ns = time_or_none(q, 11),
			.opt_ns = time_or_none(q, 12), .eval_ns = time_or_none(q, 13),
			.excess_ratio = sqlite3_column_type(q, 14) == SQLITE_NULL
						? NAN : sqlite3_column_double(q, 14),
			.n_peers = (uint32_t)sqlite3_column_int64(q, 15),
			.coverage = sqlite3_column_double(q, 16),
		};

		/* A file may say anything; the heat believes what it is given. */
		if (step < 0 || step >= UINT32_MAX || rank < 0 || rank >= FACT_MAX_RANKS)
			continue;
		r = heat_put(heat, &v);
		if (r != 0)
			break;
		first = v.step < first ? v.step : first;
		last = v.step > last ? v.step : last;
		n_ranks = (uint32_t)rank + 1 > n_ranks ? (uint32_t)rank + 1 : n_ranks;
	}
	if (r == 0 && rc != SQLITE_DONE)
		r = fail(rd, rc, why);
	sqlite3_reset(q);
	if (r == 0 && n_ranks > 0) {
		heat_expect(heat, n_ranks, first, last);
		r = warm(heat);
	}
out:
	give_reader(pool, rd);
	return r;
}
