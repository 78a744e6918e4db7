/* schema.c - opening a catalogue: is it ours, is it ours to write, is it current?
 *
 * The first hundred bytes are looked at before SQLite is, because merely opening
 * somebody else's database for writing may replay its journal.
 */
#include "internal.h"

#include "sql.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Chunks are 5 to 15 KB. 8 KiB: 9.3 bytes an event in the file where 4 KiB takes 9.5 and 16 KiB
 * 16.3, at the same speed within the noise. */
#define DEFAULT_PAGE_BYTES 8192
#define DEFAULT_CACHE_BYTES (32u << 20)
#define DRAFT_WAL_PAGES 4096

int store_outcome_of(sqlite3 *db, int rc)
{
	switch (rc & 0xff) {
	case SQLITE_OK:
	case SQLITE_ROW:
	case SQLITE_DONE:
		return 0;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_FULL:
		return STORE_FULL;
	case SQLITE_IOERR:
		if (db && (sqlite3_system_errno(db) == ENOSPC || sqlite3_system_errno(db) == EDQUOT))
			return STORE_FULL;
		return rc == SQLITE_IOERR_NOMEM ? -ENOMEM : STORE_IO;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return STORE_BUSY;
	case SQLITE_NOTADB:
		return STORE_FOREIGN;
	case SQLITE_CORRUPT:
		return STORE_DAMAGED;
	case SQLITE_CANTOPEN:
	case SQLITE_PERM:
	case SQLITE_READONLY:
	case SQLITE_AUTH:
		return STORE_UNREADABLE;
	default:
		return STORE_IO;
	}
}

void store_explain(char *out, size_t n_out, int outcome, const char *path)
{
	switch (outcome) {
	case STORE_OK:
		snprintf(out, n_out, "%s is fine.", path);
		return;
	case STORE_BUSY:
		snprintf(out, n_out,
			 "%s is being written by another collector. Stop that one, or name another "
			 "file with --db.",
			 path);
		return;
	case STORE_FULL:
		snprintf(out, n_out,
			 "No space is left for %s. Free some: nothing is lost, agents keep what is "
			 "not stored.",
			 path);
		return;
	case STORE_NEWER:
		snprintf(out, n_out,
			 "%s was written by a newer syncline. Use that release, or name another file "
			 "with --db.",
			 path);
		return;
	case STORE_FOREIGN:
		snprintf(out, n_out,
			 "%s is not a syncline catalogue and was left as it is. Name another file with "
			 "--db.",
			 path);
		return;
	case STORE_UNREADABLE:
		snprintf(out, n_out,
			 "%s cannot be opened: it is no file that this user may read and write. Check "
			 "its owner and mode, or name another with --db.",
			 path);
		return;
	case STORE_NO_DIRECTORY:
		snprintf(out, n_out, "The directory of %s is not there. Make it, or name another file "
				     "with --db.",
			 path);
		return;
	case STORE_NO_FILE:
		snprintf(out, n_out, "%s is not there. Name an existing catalogue.", path);
		return;
	case STORE_DAMAGED:
		snprintf(out, n_out,
			 "%s is damaged. Keep a copy, see what `sqlite3 FILE .recover` saves, and name "
			 "another file with --db.",
			 path);
		return;
	case STORE_IO:
		snprintf(out, n_out, "The disk below %s answers with errors. See the kernel's log.",
			 path);
		return;
	default:
		snprintf(out, n_out, "%s cannot be used: %s.", path, uv_strerror(outcome));
		return;
	}
}

int store_exec(sqlite3 *db, const char *sql)
{
	return store_outcome_of(db, sqlite3_exec(db, sql, NULL, NULL, NULL));
}

int store_prepare(sqlite3 *db, const char *sql, int n_params, sqlite3_stmt **ret)
{
	int r = store_outcome_of(
		db, sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, ret, NULL));

	if (r == 0 && sqlite3_bind_parameter_count(*ret) != n_params)
		abort(); /* a statement and its caller disagree: our bug, in every run alike */
	return r;
}

int store_query_int(sqlite3 *db, const char *sql, int64_t *ret)
{
	sqlite3_stmt *q;
	int r = store_outcome_of(db, sqlite3_prepare_v2(db, sql, -1, &q, NULL));

	if (r != 0)
		return r;
	r = store_outcome_of(db, sqlite3_step(q));
	*ret = sqlite3_column_int64(q, 0);
	sqlite3_finalize(q);
	return r;
}

static uint32_t be32(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Whose file is this? 0 with *ret_empty, or an outcome. */
static int look_at(int fd, bool *ret_empty)
{
	unsigned char head[100];
	ssize_t n = pread(fd, head, sizeof head, 0);
	struct stat st;

	if (n < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return STORE_UNREADABLE;
	*ret_empty = n == 0;
	if (n == 0)
		return 0;
	if (n < (ssize_t)sizeof head || memcmp(head, "SQLite format 3", 16) != 0 ||
	    be32(head + 68) != STORE_APPLICATION_ID)
		return STORE_FOREIGN;
	return 0;
}

static int outcome_of_errno(int e, const char *path)
{
	char *dir, *slash;
	struct stat st;
	int r;

	switch (e) {
	case ENOENT:
	case ENOTDIR:
		dir = strdup(path);
		if (!dir)
			return -ENOMEM;
		slash = strrchr(dir, '/');
		if (slash)
			slash[slash == dir ? 1 : 0] = '\0';
		r = slash && (stat(dir, &st) != 0 || !S_ISDIR(st.st_mode)) ? STORE_NO_DIRECTORY :
									       STORE_NO_FILE;
		free(dir);
		return r;
	case ENOSPC:
	case EDQUOT:
		return STORE_FULL;
	case EIO:
		return STORE_IO;
	case ENOMEM:
		return -ENOMEM;
	default:
		return STORE_UNREADABLE;
	}
}

/* FNV-1a: are the views in the file those of this build? */
static uint64_t hash_text(uint64_t h, const char *text)
{
	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return h;
}

static int put_meta(sqlite3 *db, const char *key, const char *value)
{
	sqlite3_stmt *q;
	int r = store_prepare(db, sql_store_put_meta, 2, &q);

	if (r != 0)
		return r;
	sqlite3_bind_text(q, 1, key, -1, SQLITE_STATIC);
	sqlite3_bind_text(q, 2, value, -1, SQLITE_STATIC);
	r = store_outcome_of(db, sqlite3_step(q));
	sqlite3_finalize(q);
	return r;
}

static int get_meta(sqlite3 *db, const char *key, char *out, size_t n_out)
{
	sqlite3_stmt *q;
	int r = store_prepare(db, sql_store_load_meta, 1, &q);

	if (r != 0)
		return r;
	out[0] = '\0';
	sqlite3_bind_text(q, 1, key, -1, SQLITE_STATIC);
	r = sqlite3_step(q);
	if (r == SQLITE_ROW && sqlite3_column_text(q, 0))
		snprintf(out, n_out, "%s", (const char *)sqlite3_column_text(q, 0));
	r = store_outcome_of(db, r);
	sqlite3_finalize(q);
	return r;
}

static int migrate(sqlite3 *db, int64_t version)
{
	char set[64];
	int r = 0;

	for (size_t i = (size_t)version; i < SQL_N_MIGRATIONS && r == 0; i++) {
		r = store_exec(db, "BEGIN IMMEDIATE");
		if (r == 0)
			r = store_exec(db, sql_migrations[i].text);
		snprintf(set, sizeof set, "PRAGMA user_version = %d", sql_migrations[i].version);
		if (r == 0)
			r = store_exec(db, set);
		if (r == 0)
			r = store_exec(db, "COMMIT");
		if (r != 0)
			(void)store_exec(db, "ROLLBACK"); /* already failing; keep the first reason */
	}
	return r;
}

static int renew_views(sqlite3 *db)
{
	char have[32], want[32];
	int r = get_meta(db, "views", have, sizeof have);

	if (r != 0)
		return r;
	snprintf(want, sizeof want, "%016" PRIx64,
		 hash_text(hash_text(UINT64_C(0xcbf29ce484222325), sql_views), sql_doc));
	if (strcmp(have, want) == 0)
		return 0;
	r = store_exec(db, "BEGIN IMMEDIATE");
	if (r == 0)
		r = store_exec(db, sql_views);
	if (r == 0)
		r = store_exec(db, sql_doc);
	if (r == 0)
		r = put_meta(db, "views", want);
	if (r == 0)
		r = put_meta(db, "written_by", SYNCLINE_VERSION);
	if (r == 0)
		r = store_exec(db, "COMMIT");
	if (r != 0)
		(void)store_exec(db, "ROLLBACK"); /* already failing; keep the first reason */
	return r;
}

static int set_up(struct store *s, bool empty)
{
	char sql[200];
	int64_t version;
	int r;

	snprintf(sql, sizeof sql, "PRAGMA page_size = %u; PRAGMA application_id = %d",
		 s->cfg.page_bytes ? s->cfg.page_bytes : DEFAULT_PAGE_BYTES, STORE_APPLICATION_ID);
	r = empty ? store_exec(s->db, sql) : 0;
	if (r == 0)
		r = store_query_int(s->db, "PRAGMA user_version", &version);
	if (r == 0 && version > SQL_N_MIGRATIONS)
		return STORE_NEWER;
	/* The writer never checkpoints; a thread of its own does. */
	snprintf(sql, sizeof sql,
		 "PRAGMA journal_mode = WAL; PRAGMA synchronous = %s; PRAGMA wal_autocheckpoint = %d;"
		 "PRAGMA temp_store = MEMORY; PRAGMA cache_size = -%zu",
		 s->cfg.is_draft ? "OFF" : "FULL", s->cfg.is_draft ? DRAFT_WAL_PAGES : 0,
		 (s->cfg.cache_bytes ? s->cfg.cache_bytes : DEFAULT_CACHE_BYTES) / 1024);
	if (r == 0)
		r = store_exec(s->db, sql);
	if (r == 0)
		r = migrate(s->db, version);
	if (r == 0)
		r = renew_views(s->db);
	return r;
}

int store_open(struct store **ret, const struct store_config *cfg)
{
	bool made = false, empty;
	struct store *s;
	int r;

	s = calloc(1, sizeof *s);
	if (!s)
		return -ENOMEM;
	s->cfg = *cfg;
	s->lock_fd = -1;
	s->queue_tail = &s->queue;
	s->done_tail = &s->done;
	s->path = strdup(cfg->path);
	if (!s->path) {
		r = -ENOMEM;
		goto fail;
	}
	s->cfg.path = s->path;
	if (!s->cfg.retry_ms)
		s->cfg.retry_ms = 250;
	if (!s->cfg.wal_max_bytes)
		s->cfg.wal_max_bytes = UINT64_C(256) << 20;
	s->wait_above_bytes = s->cfg.wal_max_bytes;

	s->lock_fd = open(s->path, O_RDWR | O_CLOEXEC | O_NOCTTY);
	if (s->lock_fd < 0 && errno == ENOENT) {
		s->lock_fd = open(s->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, 0640);
		made = s->lock_fd >= 0;
	}
	if (s->lock_fd < 0) {
		r = outcome_of_errno(errno, s->path);
		goto fail;
	}
	r = look_at(s->lock_fd, &empty);
	if (r != 0)
		goto fail;
	if (flock(s->lock_fd, LOCK_EX | LOCK_NB) != 0) {
		r = STORE_BUSY;
		goto fail;
	}
	r = sqlite3_open_v2(s->path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
	r = store_outcome_of(s->db, r);
	if (r != 0)
		goto fail;
	sqlite3_busy_timeout(s->db, 5000);
	r = set_up(s, empty);
	if (r != 0)
		goto fail;
#define X(name, n_params)                                                                      \
	if ((r = store_prepare(s->db, sql_store_##name, n_params, &s->name)) != 0)             \
		goto fail;
	STORE_STATEMENTS(X)
#undef X
	*ret = s;
	return 0;

fail:
	if (made && s->db == NULL)
		unlink(s->path);
	store_close(s); /* copes with a half-built store */
	return r;
}

/* file: URI of a path, or NULL without memory. */
static char *uri_of(const char *path, const char *query)
{
	size_t n = strlen(path);
	char *uri = malloc(n * 3 + strlen(query) + 8), *p = uri;

	if (!uri)
		return NULL;
	p += sprintf(p, "file:%s", path[0] == '/' ? "//" : "");
	for (; *path; path++) {
		if (strchr("?#%", *path))
			p += sprintf(p, "%%%02X", (unsigned char)*path);
		else
			*p++ = *path;
	}
	strcpy(p, query);
	return uri;
}

int store_open_reader(sqlite3 **ret, const char *path)
{
	char *wal = NULL, *uri = NULL;
	sqlite3 *db = NULL;
	struct stat st;
	int64_t version;
	bool empty, live;
	int fd, r;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return outcome_of_errno(errno, path);
	r = look_at(fd, &empty);
	close(fd);
	if (r == 0 && empty)
		r = STORE_FOREIGN;
	if (r != 0)
		return r;

	/* Without a journal nobody writes it, and immutable reads leave no trace. */
	wal = malloc(strlen(path) + 5);
	if (!wal)
		return -ENOMEM;
	sprintf(wal, "%s-wal", path);
	live = stat(wal, &st) == 0;
	uri = uri_of(path, live ? "?mode=ro" : "?immutable=1");
	if (!uri) {
		r = -ENOMEM;
		goto out;
	}
	r = sqlite3_open_v2(uri, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX,
			    NULL);
	r = store_outcome_of(db, r);
	if (r != 0)
		goto out;
	sqlite3_busy_timeout(db, 2000);
	r = store_query_int(db, "PRAGMA user_version", &version);
	if (r == 0 && version > SQL_N_MIGRATIONS)
		r = STORE_NEWER;
	if (r == 0 && version == 0)
		r = STORE_FOREIGN; /* made and never filled */
	if (r == 0)
		r = store_exec(db, "PRAGMA query_only = 1; PRAGMA temp_store = MEMORY");
out:
	if (r == 0)
		*ret = db;
	else
		sqlite3_close(db);
	free(wal);
	free(uri);
	return r;
}

int store_open_readonly(struct store **ret, const char *path)
{
	struct store *s = calloc(1, sizeof *s);
	int r;

	if (!s)
		return -ENOMEM;
	s->lock_fd = -1;
	s->readonly = true;
	s->path = strdup(path);
	r = s->path ? store_open_reader(&s->db, path) : -ENOMEM;
	if (r != 0) {
		store_close(s);
		return r;
	}
	*ret = s;
	return 0;
}

void store_close(struct store *s)
{
	if (!s)
		return;
#define X(name, n_params) sqlite3_finalize(s->name);
	STORE_STATEMENTS(X)
#undef X
	sqlite3_close(s->checkpoint_db);
	sqlite3_close(s->db);
	if (s->lock_fd >= 0 && s->cfg.is_draft)
		(void)fdatasync(s->lock_fd);
	if (s->lock_fd >= 0)
		close(s->lock_fd);
	if (s->has_lock) {
		uv_mutex_destroy(&s->lock);
		uv_cond_destroy(&s->work);
		uv_cond_destroy(&s->wake);
		uv_cond_destroy(&s->copied);
	}
	free(s->text);
	free(s->path);
	free(s);
}
