/* internal.h - what the files of store/ share, and no one else. */
#pragma once

#include "store.h"

#include <sqlite3.h>
#include <stdatomic.h>

/* Statement file and the number of its parameters, asserted when prepared. */
#define STORE_STATEMENTS(X)                                                                    \
	X(put_run, 8)                                                                          \
	X(put_host, 6)                                                                         \
	X(put_agent, 8)                                                                        \
	X(put_batch, 2)                                                                        \
	X(put_process, 20)                                                                     \
	X(put_name, 3)                                                                         \
	X(put_chunk, 9)                                                                        \
	X(put_ring, 4)                                                                         \
	X(drop_rings, 4)                                                                       \
	X(put_exchange, 6)                                                                     \
	X(put_log, 8)                                                                          \
	X(put_record, 5)                                                                       \
	X(put_env, 4)                                                                          \
	X(put_gauge, 5)                                                                        \
	X(put_meta, 2)                                                                         \
	X(put_step, 7)                                                                         \
	X(put_rank_step, 21)                                                                   \
	X(put_collective, 18)                                                                  \
	X(put_group, 4)                                                                        \
	X(put_bucket, 14)                                                                      \
	X(put_path, 6)                                                                         \
	X(thin_paths, 1)                                                                       \
	X(put_blame, 12)                                                                       \
	X(forget_blame, 1)                                                                     \
	X(put_verdict, 17)                                                                     \
	X(put_snapshot, 8)                                                                     \
	X(put_clock_step, 6)                                                                   \
	X(put_peer_exchange, 10)                                                               \
	X(put_clock_path, 11)                                                                  \
	X(put_clock, 9)                                                                        \
	X(put_contradiction, 8)                                                                \
	X(put_clock_pair, 8)                                                                   \
	X(put_comm_class, 22)                                                                  \
	X(put_stage, 13)                                                                       \
	X(put_what_if, 10)                                                                     \
	X(put_input, 5)

struct store {
	/* set by store_open(), then read-only */
	char *path; /* owned */
	struct store_config cfg;
	int lock_fd; /* holds flock() on the file; closed after the connections */
	bool readonly;

	/* the caller's until store_start(), then the writer thread's */
	sqlite3 *db;
#define X(name, n_params) sqlite3_stmt *name;
	STORE_STATEMENTS(X)
#undef X
	char *text; /* scratch for JSON */
	size_t n_text_alloc;
	uint64_t wait_above_bytes;
	uint64_t low_water, n_late;

	/* the checkpoint thread's once started */
	sqlite3 *checkpoint_db;

	/* loop thread only */
	struct store_back *back; /* owned until its close callback */
	size_t n_pending;
	uv_thread_t writer, checkpointer;
	bool started;

	/* shared, under lock */
	uv_mutex_t lock;
	uv_cond_t work;	 /* queue, stopping */
	uv_cond_t wake;	 /* the checkpoint thread: look now, or stop */
	uv_cond_t copied; /* n_full_copies grew */
	bool has_lock;
	struct store_job *queue, **queue_tail;
	struct store_job *done, **done_tail;
	bool stopping, checkpoint_stopping;
	uint64_t give_up_at; /* uv_hrtime(), valid once stopping */
	uint64_t n_full_copies; /* checkpoints that left nothing behind */

	/* any thread */
	_Atomic int trouble;
	_Atomic uint64_t n_chunks, n_events, n_bytes, n_commits, n_failed_commits, wal_bytes;
	_Atomic int64_t commit_ns;
};

/* schema.c */
int store_exec(sqlite3 *db, const char *sql);
/* The value of a one-row, one-column query. */
int store_query_int(sqlite3 *db, const char *sql, int64_t *ret);
int store_prepare(sqlite3 *db, const char *sql, int n_params, sqlite3_stmt **ret);

/* write.c: one job's rows inside an open transaction. */
int store_write_rows(struct store *s, struct store_job *j);
/* write_path.c: the critical path of a step, and what of it was whose. */
/* Rows of one table that follow each other cost one statement. */
int store_write_imported(struct store *s, const struct row_imported *v, size_t n);
int store_write_path(struct store *s, const struct fact_path *v, const struct facts *f);
int store_write_blame(struct store *s, const struct fact_blame *v);
