/* rates.h - how fast collectives and messages are once everybody has come.
 *
 * What counts of a call is its transfer: the time of the rank that came last, which
 * waits for nobody and so is inside the shortest. It is measured on that rank's own
 * clock, so no alignment of clocks enters and a late rank does not spoil it. (Of an
 * operation that a rank may leave early it is a lower bound, the same for all groups.
 * Messages of one launch to and from different peers are left out: they end together.)
 *
 * Kept are two things. Cells, for rules: of each group or pair of ranks, operation,
 * type and size (to an eighth of an octave) the last calls one by one and the first
 * few. Classes, for people: by shape of group, operation, type and power of two of
 * the size the distribution over the whole run. Both are bounded in number; what
 * finds no room is counted.
 */
#pragma once

#include "../match/match.h"
#include "../sketch.h"
#include "messages.h"

#define RATES_KEEP 32
#define RATES_EARLY 16

struct rates_sample {
	int64_t begin_ns, transfer_ns; /* begin: on the cell's host */
	uint64_t bytes;
	uint32_t step;
};

struct rates_cell {
	bool pair;   /* messages from ranks[0] to ranks[1]; otherwise a group's calls */
	bool device; /* as the device ran them; otherwise as a host called and noticed */
	uint8_t op, dtype;
	uint16_t size; /* eighths of octaves */
	uint32_t group, life; /* life: of its processes, as the roster counts */
	int32_t ranks[2];
	uint32_t n_ranks, n_hosts;
	uint32_t host; /* whose clock the samples have */
	uint64_t n;
	struct rates_sample early[RATES_EARLY], recent[RATES_KEEP]; /* recent: a ring by n */
};

struct rates_class {
	int64_t group; /* -1 = all groups of this shape */
	uint32_t n_ranks, n_hosts;
	uint8_t op, dtype, size; /* size: power of two */
	bool changed;
	uint32_t n_groups;
	struct sketch transfer;
	double bytes, wait_ns, inside_ns; /* sums; wait and inside over ranks */
	int64_t err_ns;
	uint64_t n_copies, copy_bytes, n_layouts;
};

struct rates_table { /* open addressing: index + 1 */
	uint32_t *slots;
	uint32_t n_slots;
};

struct rates {
	struct rates_cell **cells;
	uint32_t n_cells;
	struct rates_table cell_of;
	struct rates_class *classes;
	uint32_t n_classes, n_classes_alloc;
	struct rates_table class_of;
	struct rates_proc *procs;
	uint32_t n_procs;
	struct rates_way *ways; /* by messages' direction */
	uint32_t n_ways;
	uint32_t *host_marks; /* scratch: the last call that a host was in */
	uint32_t n_host_marks, mark;
	int64_t told_ns; /* core time */
	uint64_t n_dropped;
	bool changed;
};

void rates_fini(struct rates *r);
/* 0 or -ENOMEM, all of them. After the messages took the event. */
int rates_event(struct rates *r, const struct roster *roster, const struct messages *m,
		const struct proc *p, const struct event *ev);
int rates_call(struct rates *r, const struct match *m, uint32_t group, const struct coll *c);
/* memcpy.bulk: counted with the next call of that process. */
int rates_copy(struct rates *r, uint32_t proc, int64_t at_ns, int64_t bytes, bool is_layout);

/* Peaks of links in bytes a nanosecond, within a host and between hosts; 0 = not known. */
struct rates_peaks {
	double inside, between;
};
/* What has changed, every few seconds and at the end. */
int rates_tell(struct rates *r, int64_t now_ns, bool finishing, const struct rates_peaks *peaks,
	       struct facts *facts);

/* The newest first; k < n and RATES_KEEP. */
static inline const struct rates_sample *rates_recent(const struct rates_cell *c, uint32_t k)
{
	return &c->recent[(c->n - 1 - k) % RATES_KEEP];
}
