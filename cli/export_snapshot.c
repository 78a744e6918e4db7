/* export_snapshot.c - a consistent copy of a catalogue, while it is written or not.
 *
 * The copy is one plain file: without a write-ahead log, it opens in any SQLite client
 * and on media that cannot be written. Its views are the documented ones.
 */
#include "cli.h"
#include "export.h"
#include "export_formats.h"

#include <string.h>

#define PAGES_A_TURN 4096
#define BUSY_MS 5000

/* A writer that comes between makes SQLite begin anew, so a copy that a run overtakes again and
 * again is taken in one turn at last: then the writer's log waits for us, not its data. */
#define MAX_BEGINNINGS 3

static bool copy(const struct export *e, sqlite3 *to)
{
	sqlite3_backup *b = sqlite3_backup_init(to, "main", e->db->handle, "main");
	int rc = b ? SQLITE_OK : sqlite3_errcode(to), n_beginnings = 0, n_left = 0;

	while (rc == SQLITE_OK || rc == SQLITE_BUSY || rc == SQLITE_LOCKED) {
		rc = sqlite3_backup_step(b, n_beginnings < MAX_BEGINNINGS ? PAGES_A_TURN : -1);
		if (sqlite3_backup_remaining(b) > n_left)
			n_beginnings++;
		n_left = sqlite3_backup_remaining(b);
		if (rc == SQLITE_BUSY || rc == SQLITE_LOCKED)
			sqlite3_sleep(50);
		if (sqlite3_backup_pagecount(b) > 0)
			export_progress(e, 1 - (double)n_left / sqlite3_backup_pagecount(b) - 1e-9);
	}
	sqlite3_backup_finish(b);
	if (rc != SQLITE_DONE)
		cli_say("cannot copy %s: %s", e->db_path, sqlite3_errstr(rc));
	return rc == SQLITE_DONE;
}

static bool count_rows(struct export *e, sqlite3 *h)
{
	sqlite3_stmt *q;

	if (sqlite3_prepare_v2(h, "SELECT count(*) FROM step", -1, &q, NULL) != SQLITE_OK)
		return false;
	if (sqlite3_step(q) == SQLITE_ROW)
		e->n_written = (uint64_t)sqlite3_column_int64(q, 0);
	sqlite3_finalize(q);
	return true;
}

int export_snapshot(struct export *e, const struct export_format *f)
{
	sqlite3 *to = NULL;
	bool fine;
	int status;

	if (e->out_path && strcmp(e->out_path, "-") == 0) {
		cli_say("a snapshot is a database, which cannot be sent into a pipe. Name a file with -o");
		return EXIT_USAGE;
	}
	if ((status = export_open(e, f)) != EXIT_FINE)
		return status;
	fine = sqlite3_open_v2(e->part_path, &to, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
	       sqlite3_busy_timeout(to, BUSY_MS) == SQLITE_OK;
	if (!fine)
		cli_say("cannot write %s: %s", e->final_path, to ? sqlite3_errmsg(to) : "there is not enough memory");
	fine = fine && copy(e, to);
	if (fine && (sqlite3_exec(to, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL) != SQLITE_OK || !count_rows(e, to))) {
		cli_say("the copy of %s cannot be read: %s", e->db_path, sqlite3_errmsg(to));
		fine = false;
	}
	if (sqlite3_close(to) != SQLITE_OK)
		fine = false;
	return export_close(e, fine) ? EXIT_FINE : EXIT_UNREACHED;
}
