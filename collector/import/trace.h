/* trace.h - what files of other tools tell of a job, as our own probes would have.
 *
 * A reader fills one trace_rank for each process of its file: events of its host
 * threads and of its device, names, records. trace_feed() then gives them to the
 * analysis and the store, in the order of time, as a collector would.
 */
#pragma once

#include "runs.h"
#include "../facts.h"
#include "../verdict/dumped.h"
#include "../../proto/event.h"

#define TRACE_MAX_NAMES 65536
#define TRACE_MAX_ROWS (1u << 20)
#define TRACE_MAX_SECRETS 4096

enum { TRACE_HOST, TRACE_DEVICE, TRACE_RINGS };

struct trace_record {
	int64_t at_ns;
	char *category, *fields; /* owned; a JSON object */
};

struct trace_rank {
	int32_t rank;
	char host[64];	/* its name as the file has it; without one what to call it, with a space in it: "of rank 3" */
	uint32_t clock; /* the same number: the same clock */
	bool host_calls; /* its collectives are done by its host's threads */
	bool guessed;	/* neither the file nor its name tells which rank it is */
	/* Of another clock than the reference's: reference = local + offset, the offset
	 * from lo to hi at at_ns. */
	bool placed;
	int64_t at_ns, lo_ns, hi_ns;
	int64_t best_ns; /* of the offset: what is likeliest */
	int64_t first_ns, last_ns; /* of its events; INT64_MAX, INT64_MIN = none */
	/* Own to trace_say.c, NULL = none: events by time, collectives as they were said. */
	struct runs *events[TRACE_RINGS], *calls;
	char **names; /* id - 1, owned */
	uint32_t n_names, n_names_alloc;
	struct trace_record *records;
	uint32_t n_records, n_records_alloc;
	void *name_ids; /* json_t */
};

struct trace_group {
	char *name;
	int32_t *ranks;
	uint32_t n_ranks;
};

/* A row of one of the tables that only imports fill (migrations/0004_imports.sql). */
struct trace_row {
	const char *table; /* static: raw_ is put before it */
	union trace_value {
		int64_t integer;
		double real;
		const char *text;
	} *values; /* owned, with the types and texts behind them */
	uint32_t n_values;
};

/* i, r, t, or 0: NULL. */
static inline char trace_type(const struct trace_row *r, uint32_t i)
{
	return ((const char *)&r->values[r->n_values])[i];
}

/* NULL: it is none. */
static inline const char *trace_text(const struct trace_row *r, uint32_t i)
{
	return trace_type(r, i) == 't' ? r->values[i].text : NULL;
}

/* A name of a machine or of a person that a file told of, wherever else it may stand in it. */
struct trace_secret {
	bool is_user;
	char *name; /* owned */
};

struct trace_input { /* of one file */
	const char *path;   /* the caller's */
	const char *format; /* static; NULL = not known */
	bool fine;
	char outcome[256]; /* a sentence */
	int64_t rank;	   /* -1 = none, or several */
	uint64_t n_events, n_file_bytes;
	bool found;   /* in a folder that was named: it may be no trace at all */
	bool settled; /* its outcome was known without reading it */
	bool skipped; /* which is no failure */
	bool member;  /* of an archive: n_file_bytes of fd, which is the caller's, from at on */
	int fd;
	uint64_t at;
};

struct trace {
	struct trace_rank *ranks;
	uint32_t n_ranks, n_ranks_alloc;
	struct trace_group *groups;
	uint32_t n_groups, n_groups_alloc;
	struct fact_what_if *what_ifs;
	uint32_t n_what_ifs, first_step, last_step; /* steps: that were replayed */
	struct trace_row *rows;
	uint32_t n_rows, n_rows_alloc;
	uint64_t n_left_out; /* records and rows for which there was no room */
	size_t kept_bytes;   /* of names, records and rows, about: spill_keep() */
	struct trace_secret *secrets;
	uint32_t n_secrets, n_secrets_alloc;
	struct flight_dump **dumps; /* until they are joined (flight.h); owned */
	uint32_t n_dumps;
	struct dumped dumped; /* owned, but for names: the dumps' */
	int32_t world_size; /* 0 = unknown */
	char layout[256];   /* JSON, "" = unknown */
	uint32_t reference; /* the clock that is the job's */
	double rate_bound;  /* of one clock against another */
	const char *clock_method; /* static */
	struct spill *spill; /* where events go that have no room; shared, NULL = not needed yet */
	bool no_memory; /* or no disk: trace_explain() */
};

/* A collective of a device, as trace_say_call() was given it. */
struct trace_call {
	struct event begin;
	int64_t end_ns;
};

void trace_init(struct trace *t);
void trace_fini(struct trace *t);

/* One that is filled beside t, which has its spill, by another thread, and moved into it by trace_merge() afterwards. */
void trace_init_beside(struct trace *part, struct trace *t);
/* All that in's file told, behind what other files told before. A rank that is there already, or a
 * file of one rank beside one of a whole job, is refused: in says so, and nothing is moved. The
 * part is empty afterwards. False only without memory. */
bool trace_merge(struct trace *t, struct trace *part, struct trace_input *in);
/* Where large things may be kept while a file is read. NULL without memory. One trace
 * that is to be read beside others, by another thread, has theirs: set t->spill to
 * spill_ref() of it behind trace_init(). What it has may then be moved to them. */
struct spill *trace_spill(struct trace *t);
/* Why no_memory is set, in a sentence. */
void trace_explain(const struct trace *t, char *why, size_t n_why);

/* NULL without memory, or (too many = true in the rank's caller) beyond the limits. */
struct trace_rank *trace_add_rank(struct trace *t, int32_t rank, const char *host);
struct trace_rank *trace_find_rank(struct trace *t, int32_t rank);
/* The id of a name of that rank; 0 for "", without memory or when there are too many. */
uint32_t trace_name(struct trace *t, struct trace_rank *r, const char *name);
/* An event of that rank, .tick in ns on its host's clock. They need no order, and there is
 * no limit but the disk's. False only with no_memory. */
bool trace_say(struct trace *t, struct trace_rank *r, unsigned ring, const struct event *ev);
/* Both ends of a collective on the device, which files of other ranks are matched by. */
bool trace_say_call(struct trace *t, struct trace_rank *r, const struct event *begin, const struct event *end);
/* Too many are counted and left out. */
bool trace_note(struct trace *t, struct trace_rank *r, int64_t at_ns, const char *category,
		const char *fields);
static inline bool trace_has_events(const struct trace_rank *r)
{
	return r->first_ns <= r->last_ns;
}
bool trace_has_group(const struct trace *t, const char *name);
bool trace_group(struct trace *t, const char *name, const int32_t *ranks, uint32_t n);
/* One letter of types a column, in the table's order: i int64_t (TRACE_NULL = NULL), r double
 * (NaN = NULL), t const char * (NULL = NULL; copied; what is no UTF-8 is made it). Too many are
 * counted and left out. False only without memory. */
#define TRACE_NULL INT64_MIN
bool trace_row(struct trace *t, const char *table, const char *types, ...);
/* Ranks' hosts, fields and columns called hostname, user and the like, and home folders are known
 * to be private without this. False only without memory. */
bool trace_secret(struct trace *t, bool is_user, const char *name);
/* Another text in place of the one that is there. */
bool trace_row_text(struct trace *t, struct trace_row *r, uint32_t i, const char *text);
/* All but the first n: of a file that turned out to be none. */
void trace_forget_rows(struct trace *t, uint32_t n);
/* Of one that is no longer among the trace's: what it has, and its share of kept_bytes. */
void trace_drop_row(struct trace *t, struct trace_row *r);
/* Is there room for that much, in n allocations? What was kept counts until trace_unkeep(). */
bool trace_keep(struct trace *t, size_t n_bytes, size_t n);
void trace_unkeep(struct trace *t, size_t n_bytes, size_t n);
/* Events come by time; of one time, what ends goes before what begins, else as they were
 * said. So nothing may have no length: its end would go before its begin. trace_sort()
 * first; more may be said after it, then again. It gives memory back, so it is called at
 * the end of each file. */
bool trace_sort(struct trace *t, struct trace_rank *r);
/* Each runs_next() is a struct event; of the calls, a struct trace_call, in the order in
 * which they were said. NULL only with no_memory. End it with runs_read_end(). */
struct runs_reader *trace_read(struct trace *t, struct trace_rank *r, unsigned ring);
struct runs_reader *trace_read_calls(struct trace *t, struct trace_rank *r);
/* Was that the end, or did the disk fail? Sets no_memory. */
bool trace_read_end(struct trace *t, struct runs_reader *in);
