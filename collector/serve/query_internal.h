/* query_internal.h - what the files of query share. A reader belongs to one worker
 * from query_take_reader() to query_give_reader().
 */
#pragma once

#include "query.h"

#include <jansson.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/stat.h>

#define N_READERS 4 /* libuv's workers */
#define N_STATEMENTS 32

struct reader {
	struct query *pool;
	sqlite3 *db;
	int64_t deadline_ns; /* INT64_MAX = none */
	bool late, immutable;
	struct stat as_opened; /* immutable: the file then */
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

	/* the load's, one at a time */
	struct reader *watch; /* data_version means something within one connection only */
	int64_t version;

	/* shared, under lock */
	pthread_mutex_t lock;
	struct reader *idle[N_READERS];
	size_t n_idle;
};

/* reader.c */
int64_t query_now_ns(void);
int query_take_reader(struct query *pool, struct reader **ret, char why[160]);
void query_give_reader(struct query *pool, struct reader *rd);
void query_drop_reader(struct reader *rd); /* closes it; NULL is fine */
/* Opened as it is, and it is not so any more. */
bool query_reader_stale(const struct reader *rd);
/* The outcome of an SQLite error, its sentence in why. */
int query_fail(struct reader *rd, int rc, char why[160]);
/* An SQLite code. A statement is kept by the address of its text. */
int query_prepare(struct reader *rd, const char *sql, sqlite3_stmt **ret);

struct params {
	const struct route_request *r;
	int64_t limit;
};

/* rows.c: 0, an outcome, or -ENOMEM. */
int query_start(struct reader *rd, const char *sql, const struct params *p, sqlite3_stmt **ret,
		char why[160]);
int query_all(struct reader *rd, const char *sql, const struct params *p, json_t **ret,
	      char why[160]);
/* The first row as an object; QUERY_NONE without one. */
int query_one(struct reader *rd, const char *sql, const struct params *p, json_t **ret,
	      char why[160]);
/* The first row of a statement, which the caller resets; an outcome without one. */
int query_row(struct reader *rd, const char *sql, const struct params *p, sqlite3_stmt **ret,
	      char why[160]);
int query_count(struct reader *rd, const char *sql, const struct params *p, int64_t *ret,
		char why[160]);
/* {name: list} */
int query_listed(struct reader *rd, const char *name, const char *sql, const struct params *p,
		 json_t **ret, char why[160]);

/* A row as an object. A column called x:json or x:bool is x of that kind. */
json_t *query_row_json(sqlite3_stmt *q);
json_t *query_real_json(double v);
/* An instant as a decimal string; a browser's numbers cannot hold it. */
json_t *query_instant_json(int64_t at_ns);
json_t *query_duration_json(int64_t v_ns);

/* query.c: what boot tells of the catalogue itself: run, last step, findings. */
int query_told(struct reader *rd, const struct params *p, bool with_findings, json_t **ret,
	       char why[160]);

/* metrics.c */
int query_metrics(struct reader *rd, const struct query_facts *f, const struct params *p,
		  char **ret, size_t *ret_n, char why[160]);
