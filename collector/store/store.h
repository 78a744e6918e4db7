/* store.h - the catalogue: one SQLite file a run, written by one thread.
 *
 * Jobs (job.h) are written in the order of store_submit(), several to a
 * transaction: up to STORE_GROUP_CHUNKS chunks or STORE_GROUP_NS, whichever is
 * first. A job comes back through `done` on the loop thread after its COMMIT
 * reached the disk (synchronous = FULL), so an answer sent from there is true
 * after kill -9 and after a power cut.
 *
 * A disk that is full is weather, not an error: the group is rolled back, kept,
 * and tried again; store_trouble() says so meanwhile and nobody is answered.
 *
 * Two threads besides the caller's: the writer, and one that copies the log
 * back into the file (checkpoints) on its own connection, so that the writer
 * never pays for it.
 */
#pragma once

#include "job.h"
#include "../align/fleet.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#define STORE_APPLICATION_ID 0x534c4e31 /* "SLN1" */
#define STORE_GROUP_CHUNKS 64
#define STORE_GROUP_NS 5000000

enum store_outcome {
	STORE_OK = 0,
	STORE_BUSY,	    /* another collector writes this file */
	STORE_FULL,	    /* no space left */
	STORE_NEWER,	    /* written by a newer release */
	STORE_FOREIGN,	    /* not a catalogue of ours, or not a database at all */
	STORE_UNREADABLE,   /* permission, or not a file */
	STORE_NO_DIRECTORY, /* the directory is not there */
	STORE_NO_FILE,	    /* reading: nothing there */
	STORE_DAMAGED,	    /* SQLite says it is malformed */
	STORE_IO,	    /* the disk answers with errors */
};

struct store_config {
	const char *path;
	uv_loop_t *loop; /* NULL: jobs are written by store_write() only */
	/* Loop thread, after the commit (or, with j->failed, when the store stops
	 * without one). The job is the caller's again. */
	void (*done)(void *arg, struct store_job *j);
	void *arg;
	unsigned page_bytes; /* of a new file; 0 = the measured best */
	unsigned retry_ms;   /* after a failed commit; 0 = 250 */
	uint64_t wal_max_bytes; /* the writer waits for a checkpoint beyond; 0 = 256 MiB */
	size_t cache_bytes;	/* of pages; 0 = 32 MiB */
	/* Whoever fills the file takes it away when that fails: it is made sure on the
	 * disk when it is closed, not before. */
	bool is_draft;
};

struct store;

/* Opens or makes the file, brings its schema up to date. 0, an enum
 * store_outcome, or -ENOMEM. */
int store_open(struct store **ret, const struct store_config *cfg);
/* Starts the threads. From here on the connection is theirs. */
int store_start(struct store *s);
void store_submit(struct store *s, struct store_job *j);
/* Jobs submitted and not given back yet. Loop thread. */
size_t store_n_pending(const struct store *s);
/* Why nothing is committed right now: an enum store_outcome, 0 = all is well. Any thread. */
int store_trouble(const struct store *s);

struct store_stats {
	uint64_t n_chunks, n_events, n_bytes, n_commits, n_failed_commits, wal_bytes;
	int64_t commit_ns; /* the last one */
};
void store_stats(const struct store *s, struct store_stats *ret); /* any thread */

/* Writes what is queued, for at most deadline_ms while the disk refuses, then
 * ends the threads. Jobs still not stored come back as failed. Loop thread; done
 * is called from here. */
void store_stop(struct store *s, unsigned deadline_ms);
void store_close(struct store *s); /* after store_stop() and the loop's close callbacks; NULL is fine */

/* One job in one transaction, now, on the calling thread: for imports and
 * tests; never after store_start(). 0, an outcome or -ENOMEM; on failure
 * nothing of it is stored. */
int store_write(struct store *s, struct store_job *j);

/* "slow", as the finding view has it. */
const char *store_severity_name(enum fact_severity v);
const char *store_state_name(enum row_state v);

/* A sentence for a person: what, why, what to do next. */
void store_explain(char *out, size_t n_out, int outcome, const char *path);

/* What a restart needs, read before store_start(). NULL members are skipped. */
struct store_reader_fns {
	int (*core_state)(void *arg, const unsigned char *v, size_t n);
	int (*rank_step)(void *arg, const struct fact_rank_step *v);
	int (*host)(void *arg, const struct row_host *v);
	int (*agent)(void *arg, const struct row_agent *v);
	int (*batches)(void *arg, uint32_t agent, uint64_t lo, uint64_t hi);
	int (*process)(void *arg, const struct row_process *v);
	int (*ring)(void *arg, const struct row_ring *v);
	int (*name)(void *arg, const struct row_name *v);
	int (*exchange)(void *arg, const struct row_exchange *v);
	int (*snapshot)(void *arg, const struct row_snapshot *v); /* the newest of a host */
	int (*chunk)(void *arg, const struct row_chunk *v); /* from low_water on */
};
struct store_head {
	struct row_run run; /* .set: there is one */
	uint64_t low_water, last_chunk;
};
int store_head(struct store *s, struct store_head *ret);
/* In the order of the members. Stops at the first answer that is not 0. */
int store_read(struct store *s, const struct store_reader_fns *fns, void *arg);

/* --- reading only: `syncline serve`, report, sql ------------------------- */

struct sqlite3;
/* Opens an existing catalogue and never writes it: no journal files are made
 * when nobody writes it, a live collector is read beside. */
int store_open_reader(struct sqlite3 **ret, const char *path);
/* As store_open(), for store_head() and store_read() only. */
int store_open_readonly(struct store **ret, const char *path);
/* sqlite's result code -> outcome or -ENOMEM. */
int store_outcome_of(struct sqlite3 *db, int rc);
