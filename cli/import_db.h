/* import_db.h - the database of an import: nobody sees it before it is whole. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct import_db {
	const char *path;
	bool force; /* a database that is there is replaced */
	char part[4096];
};

/* Before the work: can it be made? False: why. The name of the part is ready then, and goes with
 * the program when a signal ends it. */
bool import_db_check(struct import_db *d, char *why, size_t n_why);
/* The part, which is whole and closed, becomes the database. False: why, and it is gone. */
bool import_db_finish(struct import_db *d, char *why, size_t n_why);
