/* sink.h - a file of tracks with slices, instants, readings and arrows, whatever its encoding.
 *
 * The timeline says what is on which track; a sink says it in one format. Order matters
 * only among events of one track at the same nanosecond: outer slices begin first and
 * end last, an arrow leaves before it arrives. Failures of writing stay with the stream.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum sink_track_kind { SINK_GROUP, SINK_PROCESS, SINK_LANE, SINK_COUNTER };

struct sink_track {
	uint32_t id, parent; /* parent 0 = none; told before */
	enum sink_track_kind kind;
	int32_t pid;  /* of the process that it lies in */
	int32_t order; /* among its siblings */
	const char *name, *label; /* label: more on a process, NULL = nothing */
	/* What the name says, apart: of a process, and of readings. */
	bool has_rank;
	int32_t rank;
	const char *host, *reading; /* NULL = none */
};

enum sink_arg_type { SINK_INT, SINK_REAL, SINK_TEXT, SINK_BOOL };
struct sink_arg {
	const char *name; /* static */
	enum sink_arg_type type;
	int64_t integer;
	double real;
	const char *text;
};
#define SINK_MAX_ARGS 16

struct sink_event {
	uint32_t track;
	int64_t at_ns;		/* fleet */
	const char *name, *cat; /* cat: static */
	const struct sink_arg *args;
	size_t n_args;
	const uint64_t *out, *in; /* arrows that leave, that arrive */
	size_t n_out, n_in;
	/* What the track's name says already, for files without tracks. */
	const struct sink_arg *aside;
	size_t n_aside;
};

struct sink;
struct sink_ops {
	void (*track)(struct sink *s, const struct sink_track *t);
	void (*begin)(struct sink *s, const struct sink_event *ev);
	void (*end)(struct sink *s, const struct sink_event *ev); /* of the innermost on its track; no name */
	void (*instant)(struct sink *s, const struct sink_event *ev);
	void (*reading)(struct sink *s, uint32_t track, int64_t at_ns, double value);
	/* What is said of the file as a whole, once, at the end. */
	void (*about)(struct sink *s, const struct sink_arg *args, size_t n);
	void (*free)(struct sink *s); /* closes brackets; not the stream */
};

struct sink {
	const struct sink_ops *ops;
	FILE *f;
	bool failed; /* memory ran out */
};

/* base_ns: nothing lies before it. NULL without memory. */
struct sink *sink_perfetto(FILE *f, int64_t base_ns);
struct sink *sink_chrome(FILE *f, int64_t base_ns);
struct sink *sink_csv(FILE *f, int64_t base_ns);

/* text as UTF-8 without control characters, in buf when it is not so already: it may be anybody's. */
const char *sink_clean(const char *text, char *buf, size_t n_buf);
