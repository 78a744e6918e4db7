#include "db.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sql.h"

#define N_BUSY_MS 5000

static enum db_outcome fail(struct db *d, enum db_outcome o, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static enum db_outcome fail(struct db *d, enum db_outcome o, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(d->why, sizeof d->why, fmt, ap);
	va_end(ap);
	sqlite3_close(d->handle);
	d->handle = NULL;
	return o;
}

/* SQLite creates a log beside a database in WAL mode when it is opened, and
 * removes it at the last orderly close. */
static bool has_wal(const char *path)
{
	struct stat st;
	char *wal = sqlite3_mprintf("%s-wal", path);
	bool has = wal && stat(wal, &st) == 0 && st.st_size > 0;

	sqlite3_free(wal);
	return has;
}

/* A file: URI of any path: what has a meaning in URIs is escaped. */
static char *uri_of(const char *path, const char *parameters)
{
	size_t n = strlen(path) * 3 + strlen(parameters) + 8;
	char *uri = malloc(n), *out = uri;

	if (!uri)
		return NULL;
	out += sprintf(out, "file:");
	for (; *path; path++) {
		if (*path == '?' || *path == '#' || *path == '%')
			out += sprintf(out, "%%%02x", (unsigned char)*path);
		else
			*out++ = *path;
	}
	strcpy(out, parameters);
	return uri;
}

static int open_as(struct db *d, const char *path, const char *parameters)
{
	char *uri = uri_of(path, parameters);
	int rc;

	if (!uri)
		return SQLITE_NOMEM;
	sqlite3_close(d->handle);
	d->handle = NULL;
	rc = sqlite3_open_v2(uri, &d->handle, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL);
	free(uri);
	if (rc != SQLITE_OK)
		return rc;
	sqlite3_extended_result_codes(d->handle, 1);
	sqlite3_busy_timeout(d->handle, N_BUSY_MS);
	/* The file may be anybody's: its schema must not be able to do anything.
	 * (TRUSTED_SCHEMA stays on: with it off, SQLite 3.40 takes json_extract() in
	 * a view for unsafe. No function that could do harm is there to be called.) */
	sqlite3_db_config(d->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(d->handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	rc = sqlite3_exec(d->handle, "PRAGMA query_only = 1", NULL, NULL, NULL);
	if (rc != SQLITE_OK)
		return rc;
	return sqlite3_exec(d->handle, "SELECT count(*) FROM sqlite_master", NULL, NULL, NULL);
}

static int number(sqlite3 *h, const char *sql, int64_t *ret)
{
	sqlite3_stmt *q;
	int rc = sqlite3_prepare_v2(h, sql, -1, &q, NULL);

	if (rc != SQLITE_OK)
		return rc;
	rc = sqlite3_step(q);
	if (rc == SQLITE_ROW)
		*ret = sqlite3_column_int64(q, 0);
	sqlite3_finalize(q);
	return rc == SQLITE_ROW ? SQLITE_OK : rc;
}

/* Of an earlier release: what it lacks is stood in for, in this connection alone. */
static void stand_in(sqlite3 *db, int64_t version)
{
	sqlite3_exec(db, "PRAGMA query_only = 0", NULL, NULL, NULL);
	if (version < 2)
		sqlite3_exec(db, sql_serve_stand_ins, NULL, NULL, NULL);
	if (version < 3)
		sqlite3_exec(db, sql_serve_stand_ins_2, NULL, NULL, NULL);
	sqlite3_exec(db, sql_serve_stand_ins_3, NULL, NULL, NULL);
	sqlite3_exec(db, "PRAGMA query_only = 1", NULL, NULL, NULL);
}

enum db_outcome db_open(struct db *ret, const char *path)
{
	struct db *d = ret;
	struct stat st;
	int64_t n = 0, version = 0;
	int rc;

	memset(d, 0, sizeof *d);
	if (stat(path, &st) != 0) {
		if (errno == ENOENT)
			return fail(d, DB_MISSING, "there is no file %s. Is the name right?", path);
		return fail(d, DB_UNREADABLE, "cannot read %s: %s", path, strerror(errno));
	}
	if (!S_ISREG(st.st_mode))
		return fail(d, DB_UNREADABLE, "%s is not a file. Name the database itself", path);
	if (access(path, R_OK) != 0)
		return fail(d, DB_UNREADABLE, "cannot read %s: %s. Who owns it?", path,
			    strerror(errno));
	if (st.st_size == 0)
		return fail(d, DB_UNFINISHED, "%s is empty: its run wrote nothing", path);

	d->live_wal = has_wal(path);
	/* Without a log nobody has the catalogue open, so it is read as it stands: that
	 * works in a folder we may not write to, and leaves no log behind. */
	rc = open_as(d, path, d->live_wal ? "?mode=ro" : "?mode=ro&immutable=1");
	switch (rc & 0xff) {
	case SQLITE_OK:
		break;
	case SQLITE_NOTADB:
		return fail(d, DB_NOT_A_DATABASE,
			    "%s is not a database. syncline reads what --db F wrote", path);
	case SQLITE_CANTOPEN:
	case SQLITE_READONLY:
		if (d->live_wal)
			return fail(
				d, DB_NEEDS_WAL,
				"%s has a write-ahead log that cannot be used in this folder. Copy "
				"it with %s-wal into a folder of yours and read it there",
				path, path);
		/* fall through */
	default:
		return fail(d, DB_UNREADABLE, "cannot read %s: %s (SQLite code %d)", path,
			    d->handle ? sqlite3_errmsg(d->handle) : sqlite3_errstr(rc), rc);
	}

	rc = number(d->handle, "PRAGMA user_version", &version);
	if (rc == SQLITE_OK)
		rc = number(d->handle, sql_report_n_known_tables, &n);
	if (rc != SQLITE_OK)
		return fail(d, DB_UNREADABLE, "cannot read %s: %s", path,
			    sqlite3_errmsg(d->handle));
	if (n != 3)
		return fail(d, DB_FOREIGN, "%s is a SQLite database, but not one of syncline's",
			    path);
	if (version > SQL_N_MIGRATIONS)
		return fail(
			d, DB_NEWER,
			"%s has schema %lld, this build knows up to %d: it was written by a newer "
			"release. Read it with that one",
			path, (long long)version, SQL_N_MIGRATIONS);
	if (version > 0 && version < SQL_N_MIGRATIONS)
		stand_in(d->handle, version);
	rc = number(d->handle, sql_report_n_known_views, &n);
	if (rc != SQLITE_OK || n != 3)
		return fail(d, DB_UNFINISHED,
			    "%s has no views: its collector stopped before it was ready", path);
	return DB_OK;
}

void db_close(struct db *d)
{
	sqlite3_close(d->handle);
	d->handle = NULL;
}
