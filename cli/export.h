/* export.h - a catalogue in a form that other tools open.
 *
 * A format is one file and one row in export.c's table. What is common is done there:
 * the options, which part of the run is meant, the announcement of the size, and the
 * file, which is there whole or not at all.
 */
#pragma once

#include "db.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Which part of the run. Steps and times say the same: what belongs to no step is taken by its time. */
struct export_window {
	int64_t first, last;	/* steps; first > last = the run has none */
	int64_t from_ns, to_ns; /* fleet */
	bool whole;		/* from the first thing to the last */
	bool to_the_end;	/* and what came behind the last step: calls that never ended */
	int64_t finding;	/* its id; 0 = not asked for */
	char what[160];		/* in words: "steps 40 to 80 of 0 to 999" */
};

static inline int64_t export_first(const struct export_window *w)
{
	return w->whole ? 0 : w->first;
}
static inline int64_t export_last(const struct export_window *w)
{
	return w->to_the_end && w->first <= w->last ? INT64_MAX : w->last;
}

/* How much lies in it. */
struct export_size {
	int64_t n_steps, n_rank_steps, n_calls, n_arrivals, n_events, n_readings, n_findings;
};

/* Ranges of ranks, sorted and apart; none = all. */
struct export_ranks {
	struct export_range { int32_t lo, hi; } *v;
	size_t n;
};

struct export {
	struct db *db;
	const char *db_path;
	const char *out_path; /* "-" = standard output; NULL = the database's name with the format's ending */
	bool force;	      /* over a file that is there, and more than a viewer takes */
	bool terminal;	      /* somebody watches */

	/* Of the windowed formats. */
	struct export_window window;
	struct export_size size;
	struct export_ranks ranks;
	unsigned without; /* enum export_part, a bit each */

	/* Of otlp. */
	const char *endpoint; /* NULL = a file */
	long every_s;	      /* 0 = once */

	/* What was done, for the last line. */
	uint64_t n_written; /* events, rows: what the format counts in */
	FILE *out;
	char *final_path, *part_path; /* owned */
};

/* What a person may leave out. */
enum export_part { EXPORT_KERNELS, EXPORT_HOST, EXPORT_ARROWS, EXPORT_COUNTERS, EXPORT_N_PARTS };
extern const char *const export_part_names[EXPORT_N_PARTS];
static inline bool export_has(const struct export *e, enum export_part part)
{
	return !(e->without >> part & 1);
}

struct export_format {
	const char *name, *ending, *summary, *unit;
	bool windowed; /* takes --from … --without, and tells its size first */
	/* Bytes that so much will take, for the announcement; NULL = nobody asks. */
	int64_t (*guess)(const struct export *e);
	/* More than this is refused without --force; the sentence says why. 0 = no limit. */
	int64_t limit_bytes;
	const char *limit_why;
	/* An enum cli_exit; says what went wrong itself. */
	int (*write)(struct export *e, const struct export_format *f);
};
extern const struct export_format export_formats[]; /* ends with a NULL name */

/* The output, opened under a name of its own beside the one that was asked for. An enum cli_exit,
 * after it has said why not. export_close() gives it its name, or removes it unless fine. */
int export_open(struct export *e, const struct export_format *f);
bool export_close(struct export *e, bool fine);

/* "exporting, 40 %" for somebody who watches. */
void export_progress(const struct export *e, double share);

bool export_has_rank(const struct export_ranks *r, int32_t rank);
