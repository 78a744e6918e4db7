/* import_show.h - what an import says: how far it is, and what came of each file. */
#pragma once

#include "../collector/import/files.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- on a terminal, while it goes on ---- */

struct import_show {
	const struct files *files;
	int64_t begin_ns, shown_ns; /* 0: not yet */
	double share;		    /* of the analysis, as it was shown */
};

/* An import_progress.fn, of all files, and a feed_config.progress; arg is a struct import_show. */
void import_show_read(void *arg, const char *path, double share);
void import_show_feed(void *arg, double share);
void import_show_end(void);

/* ---- at the end ---- */

struct import_result {
	const char *db;	 /* NULL: there is none, it was only looked at */
	const char *why; /* it could not be made; "" */
	uint32_t n_ranks, n_fine, n_failed, n_skipped;
};

/* The numbers of what came of them. */
void import_count(const struct files *f, struct import_result *r);
void import_put_json(const struct files *f, const struct import_result *r);
void import_put_text(const struct files *f, const struct import_result *r, bool verbose);
