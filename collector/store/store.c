/* store.c - the writer thread and the checkpoint thread.
 *
 *   loop ── queue ──▶ writer ── done, uv_async ──▶ loop
 *                       │ COMMIT
 *                       ▼
 *                   log (-wal) ── checkpoint thread ──▶ file
 *
 * The writer writes rows as jobs come and commits at 64 chunks or 5 ms after the
 * first: the wait costs no time under load, because rows are written during it.
 * A failed group is rolled back, kept, and written again until it succeeds: order
 * is kept, so "committed" always means "and everything before it".
 *
 * Copying the log back needs a moment without new commits before it can start
 * from its beginning. Past wal_max_bytes the writer grants that moment, for at
 * most two seconds: a reader's long snapshot pins the log, and waiting for it
 * would stop ingest.
 */
#include "internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECKPOINT_EVERY_NS UINT64_C(200000000)
#define CHECKPOINT_WAIT_NS UINT64_C(2000000000)

struct store_back {
	uv_async_t handle;
	struct store *s; /* NULL once the store is stopped */
};

static void give_back(struct store *s, struct store_job *j)
{
	while (j) {
		struct store_job *next = j->next;

		j->next = NULL;
		s->n_pending--;
		s->cfg.done(s->cfg.arg, j);
		j = next;
	}
}

static struct store_job *take_done(struct store *s)
{
	struct store_job *j;

	uv_mutex_lock(&s->lock);
	j = s->done;
	s->done = NULL;
	s->done_tail = &s->done;
	uv_mutex_unlock(&s->lock);
	return j;
}

/* Loop thread. */
static void on_back(uv_async_t *handle)
{
	struct store_back *back = handle->data;

	if (back->s)
		give_back(back->s, take_done(back->s));
}

static void on_back_closed(uv_handle_t *handle)
{
	free(handle->data);
}

/* --- writer thread ------------------------------------------------------- */

/* Jobs of the transaction under way, oldest first. */
struct group {
	struct store_job *first, **tail;
	size_t n_chunks;
	uint64_t commit_at; /* uv_hrtime() */
	bool open;	    /* BEGIN was said */
};

static void group_init(struct group *g)
{
	*g = (struct group){ 0 };
	g->tail = &g->first;
}

static void hand_over(struct store *s, struct store_job *first, bool failed)
{
	struct store_job **tail = &first;
	bool was_empty;

	for (struct store_job *j = first; j; j = j->next) {
		j->failed = failed;
		tail = &j->next;
	}
	if (!first)
		return;
	uv_mutex_lock(&s->lock);
	was_empty = s->done == NULL;
	*s->done_tail = first;
	s->done_tail = tail;
	if (was_empty)
		uv_async_send(&s->back->handle);
	uv_mutex_unlock(&s->lock);
}

static int group_write(struct store *s, struct group *g, struct store_job *j)
{
	int r = 0;

	if (!g->open) {
		r = store_exec(s->db, "BEGIN IMMEDIATE");
		g->open = r == 0;
	}
	return r != 0 ? r : store_write_rows(s, j);
}

static void group_roll_back(struct store *s, struct group *g)
{
	/* After a full disk SQLite may have rolled back by itself. */
	if (!sqlite3_get_autocommit(s->db))
		(void)store_exec(s->db, "ROLLBACK");
	g->open = false;
	s->low_water = s->n_late = 0; /* what the file holds now is not known: write it again */
}

static int group_commit(struct store *s, struct group *g)
{
	uint64_t t0 = uv_hrtime();
	int r = store_exec(s->db, "COMMIT");

	if (r != 0)
		return r;
	g->open = false;
	for (const struct store_job *j = g->first; j; j = j->next) {
		for (size_t i = 0; i < j->chunks.n; i++) {
			atomic_fetch_add(&s->n_events, j->chunks.v[i].n_events);
			atomic_fetch_add(&s->n_bytes, j->chunks.v[i].n_bytes);
		}
		atomic_fetch_add(&s->n_chunks, j->chunks.n);
	}
	atomic_fetch_add(&s->n_commits, 1);
	atomic_store(&s->commit_ns, (int64_t)(uv_hrtime() - t0));
	return 0;
}

/* Sleeps until the next try. False when the store was told to stop and its
 * deadline is over. */
static bool wait_to_retry(struct store *s)
{
	bool again;

	uv_mutex_lock(&s->lock);
	(void)uv_cond_timedwait(&s->work, &s->lock, (uint64_t)s->cfg.retry_ms * 1000000);
	again = !s->stopping || uv_hrtime() < s->give_up_at;
	uv_mutex_unlock(&s->lock);
	return again;
}

/* Writes the whole group again until it is on the disk. */
static bool insist(struct store *s, struct group *g, int r)
{
	for (;;) {
		group_roll_back(s, g);
		atomic_fetch_add(&s->n_failed_commits, 1);
		atomic_store(&s->trouble, r);
		if (!wait_to_retry(s))
			return false;
		r = 0;
		for (struct store_job *j = g->first; j && r == 0; j = j->next)
			r = group_write(s, g, j);
		if (r == 0)
			r = group_commit(s, g);
		if (r == 0) {
			atomic_store(&s->trouble, 0);
			return true;
		}
	}
}

/* After each commit: the number of pages in the log. */
static int on_wal(void *arg, sqlite3 *db, const char *name, int n_pages)
{
	struct store *s = arg;
	unsigned page = s->cfg.page_bytes;

	(void)db;
	(void)name;
	atomic_store(&s->wal_bytes, (uint64_t)n_pages * page);
	return SQLITE_OK;
}

static void grant_checkpoint(struct store *s)
{
	uint64_t wal = atomic_load(&s->wal_bytes), until, now;
	uint64_t seen;

	if (wal < s->cfg.wal_max_bytes)
		s->wait_above_bytes = s->cfg.wal_max_bytes;
	if (wal < s->wait_above_bytes)
		return;
	until = uv_hrtime() + CHECKPOINT_WAIT_NS;
	uv_mutex_lock(&s->lock);
	seen = s->n_full_copies;
	uv_cond_signal(&s->wake);
	while (s->n_full_copies == seen && !s->stopping && (now = uv_hrtime()) < until)
		(void)uv_cond_timedwait(&s->copied, &s->lock, until - now);
	if (s->n_full_copies == seen)
		s->wait_above_bytes = wal + s->cfg.wal_max_bytes; /* pinned: not again at once */
	uv_mutex_unlock(&s->lock);
}

static void writer_main(void *arg)
{
	struct store *s = arg;
	bool stopping = false;
	struct group g;

	group_init(&g);
	while (!stopping || g.first) {
		struct store_job *taken;
		bool alive = true;
		int r = 0;

		uv_mutex_lock(&s->lock);
		while (!s->queue && !s->stopping) {
			uint64_t now = uv_hrtime();

			if (!g.first)
				uv_cond_wait(&s->work, &s->lock);
			else if (now < g.commit_at)
				(void)uv_cond_timedwait(&s->work, &s->lock, g.commit_at - now);
			else
				break;
		}
		taken = s->queue;
		stopping = s->stopping && !taken;
		s->queue = NULL;
		s->queue_tail = &s->queue;
		uv_mutex_unlock(&s->lock);

		while (taken && alive) {
			struct store_job *j = taken;

			taken = j->next;
			j->next = NULL;
			if (!g.first)
				g.commit_at = uv_hrtime() + STORE_GROUP_NS;
			*g.tail = j;
			g.tail = &j->next;
			g.n_chunks += j->chunks.n;
			r = group_write(s, &g, j);
			if (r == 0 && g.n_chunks < STORE_GROUP_CHUNKS && uv_hrtime() < g.commit_at)
				continue;
			if (r == 0)
				r = group_commit(s, &g);
			if (r != 0)
				alive = insist(s, &g, r);
			hand_over(s, g.first, !alive);
			group_init(&g);
			if (alive)
				grant_checkpoint(s);
		}
		if (!alive) {
			hand_over(s, taken, true);
			continue;
		}
		if (g.first && (stopping || uv_hrtime() >= g.commit_at)) {
			r = group_commit(s, &g);
			alive = r == 0 || insist(s, &g, r);
			hand_over(s, g.first, !alive);
			group_init(&g);
		}
	}
}

/* --- checkpoint thread --------------------------------------------------- */

static void checkpointer_main(void *arg)
{
	struct store *s = arg;
	bool stop = false;

	while (!stop) {
		int n_log = 0, n_copied = 0, rc;

		uv_mutex_lock(&s->lock);
		if (!s->checkpoint_stopping)
			(void)uv_cond_timedwait(&s->wake, &s->lock, CHECKPOINT_EVERY_NS);
		stop = s->checkpoint_stopping;
		uv_mutex_unlock(&s->lock);

		/* A failure is told to nobody: the log only grows, and the next try is near. */
		rc = sqlite3_wal_checkpoint_v2(s->checkpoint_db, NULL, SQLITE_CHECKPOINT_PASSIVE,
					       &n_log, &n_copied);
		if (rc == SQLITE_OK && n_log == n_copied) {
			uv_mutex_lock(&s->lock);
			s->n_full_copies++;
			uv_cond_signal(&s->copied);
			uv_mutex_unlock(&s->lock);
		}
	}
}

static int open_checkpointer(struct store *s)
{
	int64_t n;
	int r = sqlite3_open_v2(s->path, &s->checkpoint_db,
				SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);

	r = store_outcome_of(s->checkpoint_db, r);
	if (r != 0)
		return r;
	/* A connection that never read the file checkpoints nothing and says it is fine. */
	r = store_query_int(s->checkpoint_db, "SELECT count(*) FROM sqlite_master", &n);
	if (r == 0)
		r = store_exec(s->checkpoint_db, "PRAGMA wal_autocheckpoint = 0");
	return r;
}

/* --- loop thread --------------------------------------------------------- */

int store_start(struct store *s)
{
	int64_t page;
	int r;

	r = store_query_int(s->db, "PRAGMA page_size", &page);
	if (r != 0)
		return r;
	s->cfg.page_bytes = (unsigned)page;
	r = open_checkpointer(s);
	if (r != 0)
		return r;
	sqlite3_wal_hook(s->db, on_wal, s);
	s->back = calloc(1, sizeof *s->back);
	if (!s->back)
		return -ENOMEM;
	s->back->s = s;
	s->back->handle.data = s->back;
	r = uv_async_init(s->cfg.loop, &s->back->handle, on_back);
	if (r != 0) {
		free(s->back);
		s->back = NULL;
		return r;
	}
	if (uv_mutex_init(&s->lock) != 0 || uv_cond_init(&s->work) != 0 ||
	    uv_cond_init(&s->wake) != 0 || uv_cond_init(&s->copied) != 0)
		abort(); /* libuv fails these only when out of memory at start */
	s->has_lock = true;
	r = uv_thread_create(&s->writer, writer_main, s);
	if (r == 0) {
		r = uv_thread_create(&s->checkpointer, checkpointer_main, s);
		if (r != 0) {
			s->stopping = true; /* nothing is queued: it leaves at once */
			uv_mutex_lock(&s->lock);
			uv_cond_signal(&s->work);
			uv_mutex_unlock(&s->lock);
			uv_thread_join(&s->writer);
		}
	}
	if (r != 0) {
		uv_close((uv_handle_t *)&s->back->handle, on_back_closed);
		s->back->s = NULL;
		s->back = NULL;
		return r;
	}
	s->started = true;
	return 0;
}

void store_submit(struct store *s, struct store_job *j)
{
	s->n_pending++;
	j->next = NULL;
	uv_mutex_lock(&s->lock);
	*s->queue_tail = j;
	s->queue_tail = &j->next;
	uv_cond_signal(&s->work);
	uv_mutex_unlock(&s->lock);
}

size_t store_n_pending(const struct store *s)
{
	return s->n_pending;
}

int store_trouble(const struct store *s)
{
	return atomic_load(&s->trouble);
}

void store_stats(const struct store *s, struct store_stats *ret)
{
	*ret = (struct store_stats){
		.n_chunks = atomic_load(&s->n_chunks),
		.n_events = atomic_load(&s->n_events),
		.n_bytes = atomic_load(&s->n_bytes),
		.n_commits = atomic_load(&s->n_commits),
		.n_failed_commits = atomic_load(&s->n_failed_commits),
		.wal_bytes = atomic_load(&s->wal_bytes),
		.commit_ns = atomic_load(&s->commit_ns),
	};
}

void store_stop(struct store *s, unsigned deadline_ms)
{
	if (!s->started)
		return;
	uv_mutex_lock(&s->lock);
	s->give_up_at = uv_hrtime() + (uint64_t)deadline_ms * 1000000;
	s->stopping = true;
	uv_cond_signal(&s->work);
	uv_cond_signal(&s->copied);
	uv_mutex_unlock(&s->lock);
	uv_thread_join(&s->writer);

	uv_mutex_lock(&s->lock);
	s->checkpoint_stopping = true;
	uv_cond_signal(&s->wake);
	uv_mutex_unlock(&s->lock);
	uv_thread_join(&s->checkpointer);
	s->started = false;

	give_back(s, take_done(s));
	s->back->s = NULL;
	uv_close((uv_handle_t *)&s->back->handle, on_back_closed);
	s->back = NULL;
}
