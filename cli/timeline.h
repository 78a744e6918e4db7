/* timeline.h - a run on one time line: what is shown on which track, for any sink.
 *
 * A process per rank, in it its steps, host threads, streams, the calls of each group and
 * readings. What overlaps without nesting goes to another lane of the same name. Memory
 * goes with ranks, groups and threads, not with the length of the window.
 */
#pragma once

#include "export.h"
#include "interns.h"
#include "sink.h"

#define TIMELINE_MAX_LANES 256 /* of one name on one rank: what lies above is counted */

/* Lanes of one name. */
struct timeline_set {
	uint32_t parent;
	int32_t pid, order;
	char *name; /* owned */
	struct timeline_lane { uint32_t track; int64_t end_ns; } *v;
	uint32_t n;
};

struct timeline_rank {
	int32_t rank;
	uint32_t track;
	char *host; /* owned */
};

/* What is not in the file although the database has it. */
struct timeline_losses {
	uint64_t n_unmatched; /* ends whose begins are not there, begins whose names are not */
	uint64_t n_cut;	      /* slices whose end is not there: they end where the window does */
	uint64_t n_unplaced;  /* more at once than there are lanes */
	uint64_t n_unread;    /* chunks or arrivals that cannot be read */
};

struct timeline {
	struct export *e;
	struct sink *sink;
	struct timeline_rank *ranks; /* by rank; owned */
	uint32_t n_ranks;
	struct timeline_set *sets; /* owned */
	uint32_t n_sets, n_sets_alloc;
	struct idmap by_key;
	struct interns names; /* of readings */
	struct place *place; /* owned */
	struct timeline_events *events; /* while they are told */
	uint32_t run_track, findings_track, n_tracks;
	uint64_t n_arrows, n_events;
	struct timeline_losses lost;
	bool no_memory;
};

/* What a set of lanes is of. */
enum timeline_kind { TIMELINE_STEPS, TIMELINE_FINDINGS, TIMELINE_HOST, TIMELINE_STREAM, TIMELINE_GROUP, TIMELINE_READING };

/* An enum cli_exit; makes the sink of whatever lies before it. */
int timeline_write(struct export *e, struct sink *(*sink_new)(FILE *f, int64_t base_ns));

/* ---- for the files of the timeline ---- */

/* NULL = not one of those that are shown. */
struct timeline_rank *timeline_rank(struct timeline *t, int32_t rank);
/* fmt names it, when it is new. NULL without memory. sub below 2^40. */
struct timeline_set *timeline_set(struct timeline *t, const struct timeline_rank *r, enum timeline_kind kind, uint64_t sub,
				  const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* The lane that is free from begin_ns on, taken until end_ns. 0 = there are too many. */
uint32_t timeline_lane(struct timeline *t, struct timeline_set *s, int64_t begin_ns, int64_t end_ns);
/* A whole slice without anything in it. */
void timeline_slice(struct timeline *t, const struct sink_event *begin, int64_t end_ns);
/* A track of readings. 0 without memory. rank NULL = of a host. */
uint32_t timeline_counter(struct timeline *t, const struct timeline_rank *r, uint32_t host, const char *host_name, const char *name);

/* Each row of a statement, with the window bound to :first, :last, :from_ns, :to_ns. False after it has said why not. */
bool timeline_each_row(struct timeline *t, const char *sql, void (*row)(struct timeline *t, sqlite3_stmt *q));

bool timeline_steps(struct timeline *t);
bool timeline_calls(struct timeline *t);
bool timeline_host_and_device(struct timeline *t);
bool timeline_readings(struct timeline *t);
bool timeline_findings(struct timeline *t);
/* What was lost on the way into the database, and on the way out of it. Last. */
bool timeline_about(struct timeline *t);

/* An error bound as people read it: not known where no bound is. */
struct sink_arg timeline_error(const char *name, sqlite3_stmt *q, int column);

static inline struct sink_arg arg_int(const char *name, int64_t v)
{
	return (struct sink_arg){ .name = name, .type = SINK_INT, .integer = v };
}
static inline struct sink_arg arg_bool(const char *name, bool v)
{
	return (struct sink_arg){ .name = name, .type = SINK_BOOL, .integer = v };
}
static inline struct sink_arg arg_text(const char *name, const char *v)
{
	return (struct sink_arg){ .name = name, .type = SINK_TEXT, .text = v ? v : "" };
}
static inline struct sink_arg arg_real(const char *name, double v)
{
	return (struct sink_arg){ .name = name, .type = SINK_REAL, .real = v };
}
static inline struct sink_arg arg_error(const char *name, int64_t ns)
{
	return ns == INT64_MAX ? arg_text(name, "not known") : arg_int(name, ns);
}
