/* reader.c - the pool of read-only connections: opened with no powers, stopped at
 * their deadline, given back without a transaction.
 */
#include "query_internal.h"

#include "sql.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int64_t query_now_ns(void)
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

void query_drop_reader(struct reader *rd)
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
	query_drop_reader(q->watch);
	for (size_t i = 0; i < q->n_idle; i++)
		query_drop_reader(q->idle[i]);
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
	if (query_now_ns() < rd->deadline_ns)
		return 0;
	rd->late = true;
	return 1;
}

int query_fail(struct reader *rd, int rc, char why[160])
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
	if (stat(rd->pool->path, &rd->as_opened) != 0) {
		free(uri);
		return SQLITE_CANTOPEN;
	}
	memcpy(uri, "file:", 5);
	at = 5 + url_encode(rd->pool->path, n, uri + 5, room - 5);
	memcpy(uri + at, "?immutable=1", 13);
	rc = sqlite3_open_v2(uri, &rd->db,
			     SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI, NULL);
	free(uri);
	rd->immutable = true;
	return rc;
}

/* A finished run of an earlier release: today's statements hold for it too. */
static int stand_in(sqlite3 *db)
{
	sqlite3_stmt *q;
	int rc = sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &q, NULL), version;

	if (rc != SQLITE_OK)
		return rc;
	rc = sqlite3_step(q);
	version = rc == SQLITE_ROW ? sqlite3_column_int(q, 0) : 0;
	sqlite3_finalize(q);
	if (rc != SQLITE_ROW)
		return rc;
	rc = version < 2 ? sqlite3_exec(db, sql_serve_stand_ins, NULL, NULL, NULL) : SQLITE_OK;
	if (rc == SQLITE_OK && version < 3)
		rc = sqlite3_exec(db, sql_serve_stand_ins_2, NULL, NULL, NULL);
	if (rc == SQLITE_OK && version < 4)
		rc = sqlite3_exec(db, sql_serve_stand_ins_3, NULL, NULL, NULL);
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
		rc = stand_in(rd->db);
	if (rc != SQLITE_OK) {
		int r = query_fail(rd, rc, why);

		query_drop_reader(rd);
		return r;
	}
	/* The file may come from a stranger: its schema gets no powers. (TRUSTED_SCHEMA stays on, as in
	 * cli/db.c: without it, SQLite 3.40 refuses json_extract() and ->> in views. No function that could do
	 * harm is there to be called.) */
	sqlite3_db_config(rd->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(rd->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_busy_timeout(rd->db, 200);
	sqlite3_progress_handler(rd->db, 1000, on_progress, rd);
	*ret = rd;
	return 0;
}

bool query_reader_stale(const struct reader *rd)
{
	const struct stat *was = &rd->as_opened;
	struct stat now;

	if (!rd->immutable)
		return false;
	return has_log(rd->pool) || stat(rd->pool->path, &now) != 0 || now.st_ino != was->st_ino ||
	       now.st_size != was->st_size || now.st_mtim.tv_sec != was->st_mtim.tv_sec ||
	       now.st_mtim.tv_nsec != was->st_mtim.tv_nsec;
}

int query_take_reader(struct query *pool, struct reader **ret, char why[160])
{
	struct reader *rd = NULL;
	int r;

	pthread_mutex_lock(&pool->lock);
	if (pool->n_idle > 0)
		rd = pool->idle[--pool->n_idle];
	pthread_mutex_unlock(&pool->lock);
	if (rd && query_reader_stale(rd)) {
		query_drop_reader(rd); /* not finished after all: somebody writes again */
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

void query_give_reader(struct query *pool, struct reader *rd)
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
	query_drop_reader(rd);
}

int query_prepare(struct reader *rd, const char *sql, sqlite3_stmt **ret)
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
