/* memory_snapshot.h - what a snapshot of PyTorch's allocator says: its segments and blocks at the end,
 * and the ring of what was allocated and freed before that.
 *
 * The end is exact; the ring may have lost its begin. So what was in use earlier is found by undoing
 * events from the end backward. Only the rounding of a block that is gone by then may be unknown: such
 * a number has a bound.
 */
#pragma once

#include "format.h"

#include <jansson.h>

#define MEMORY_UNKNOWN INT64_MIN
#define MEMORY_MAX_BYTES (INT64_C(1) << 40) /* of anything; no device has that */
#define MEMORY_MAX_ITEMS (1u << 22)		  /* so no sum of theirs is beyond 64 bit */
#define MEMORY_NO_SITE 0

enum memory_action {
	MEMORY_ALLOC, MEMORY_FREE_REQUESTED, MEMORY_FREE_COMPLETED, MEMORY_SEGMENT_ALLOC, MEMORY_SEGMENT_FREE,
	MEMORY_SEGMENT_MAP, MEMORY_SEGMENT_UNMAP, MEMORY_OOM, MEMORY_ACTIONS, /* others say nothing of memory */
};

enum memory_state { MEMORY_FREE, MEMORY_AWAITING, MEMORY_LIVE };

struct memory_block {
	int64_t address, size;
	uint32_t site;
	enum memory_state state;
};

struct memory_segment {
	int64_t address, size, stream;
	const char *kind; /* the tree's; NULL */
	int expandable;	  /* -1 = not said */
	uint32_t first_block, n_blocks; /* blocks lie behind one another and fill it */
};

struct memory_event {
	int64_t at_ns, address, size, stream, device_free; /* MEMORY_UNKNOWN; address and size are there, or 0 */
	uint32_t site, seq;
	enum memory_action action;
};

struct memory_oom {
	uint32_t event;
	int64_t reserved, largest_free, allocated, allocated_err; /* MEMORY_UNKNOWN; allocated: at least, and err more at most */
	uint32_t site; /* that holds most, as far as is known */
	int64_t n_held, held;
	bool none_freed, still_used; /* by that site: nothing was freed; it has allocated to the last */
};

struct memory_site {
	char *name; /* owned; NULL = no stack was recorded */
	int64_t n_live, live, n_allocated, allocated, n_freed, freed;
};

struct memory_device {
	int64_t device;
	struct memory_segment *segments;
	struct memory_block *blocks;
	struct memory_event *events;
	struct memory_oom *ooms;
	struct memory_site *sites; /* the first: MEMORY_NO_SITE */
	uint32_t n_segments, n_blocks, n_events, n_ooms, n_sites;
	size_t n_segments_alloc, n_blocks_alloc, n_events_alloc, n_sites_alloc;
	int64_t reserved, allocated, active; /* at the end */
	int64_t private_free; /* of reserved: free in pools of their own, which CUDA graphs have */
	bool whole_rounding; /* it is set to round more than blocks of a large pool by up to 1 MiB, or nothing says that it is not */
	json_t *site_ids;
};

/* ---- memory_walk.c ---- */

/* Fills ooms (of the last 64, oldest first) and what sites had. False only without memory. */
bool memory_walk(struct memory_device *d);

/* ---- memory_cause.c ---- */

/* Words for the table, static. */
const char *memory_cause(const struct memory_device *d, const struct memory_oom *o, int64_t rank, char *sentence, size_t n);
/* Was it not the device that refused? -1 = unknown. */
int memory_capped(const struct memory_device *d, const struct memory_oom *o);

/* ---- memory_rows.c ---- */

bool memory_put_rows(struct trace *t, struct memory_device *d, int64_t rank, const char *rank_from, uint32_t *n_left_out);
bool memory_join(struct trace *t);
bool memory_has_rank(const struct trace *t, int64_t rank);

/* ---- memory_snapshot.c ---- */

bool memory_is(const json_t *tree);
enum import_outcome memory_read(struct trace *t, struct trace_input *in, json_t *tree, char *why, size_t n_why);
