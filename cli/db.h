/* db.h - open a catalogue to read, with an answer a person can act on.
 *
 * Never writes: neither to the file nor beside it, save for the shared-memory
 * index that SQLite needs to read a run that is still being written.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <sqlite3.h>

enum db_outcome {
	DB_OK = 0,
	DB_MISSING,	   /* no such file */
	DB_UNREADABLE,	   /* permissions, a folder, an I/O error */
	DB_NOT_A_DATABASE, /* the bytes are not SQLite's */
	DB_FOREIGN,	   /* a SQLite database, but none of ours */
	DB_NEWER,	   /* written by a newer release */
	DB_UNFINISHED,	   /* ours, but its tables are not there yet */
	DB_NEEDS_WAL,	   /* has a write-ahead log that cannot be used where it lies */
};

struct db {
	sqlite3 *handle;
	bool live_wal; /* a log lies beside it: a run writes, or ended without closing */
	char why[512]; /* a sentence with cause and next step when not DB_OK */
};

enum db_outcome db_open(struct db *ret, const char *path);
void db_close(struct db *d); /* zeroed is fine */
