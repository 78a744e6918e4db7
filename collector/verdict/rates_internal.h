/* rates_internal.h - what the files of rates share. */
#pragma once

#include "rates.h"

#define RATES_COPIES 8 /* of a process that wait for their call */
#define RATES_CALLS 16 /* of a process, that a copy may still be of */
#define RATES_OPEN 16  /* messages of one direction under way */

struct rates_proc {
	bool device; /* it says when its calls run on the device */
	struct {     /* the newest message that it began */
		int64_t begin_ns;
		int32_t peer;
		uint32_t way;
		uint64_t number;
	} message;
	uint32_t n_calls, n_copies;
	struct {
		int64_t exit_ns;
		uint32_t cls;
	} calls[RATES_CALLS]; /* a ring by n_calls */
	struct rates_copy {
		int64_t at_ns, bytes;
		bool is_layout;
	} copies[RATES_COPIES];
};

struct rates_way {
	struct {
		uint64_t number;
		int64_t begin_ns[2], end_ns[2]; /* source, target; INT64_MIN */
		uint32_t proc[2];
		uint64_t bytes;
		bool fused;
	} open[RATES_OPEN]; /* by number */
};

struct rates_shape { /* what kind of call */
	bool pair, device;
	uint8_t op, dtype;
	uint32_t group, life, n_ranks, n_hosts, host;
	int32_t ranks[2];
	uint64_t bytes;
};

/* The cell or class of it, made if it is new. 0, 1 when there is no room, -ENOMEM.
 * all: of every group of this shape. */
int rates_cell_of(struct rates *r, const struct rates_shape *s, struct rates_cell **ret);
int rates_class_of(struct rates *r, const struct rates_shape *s, bool all, uint32_t *ret);
struct rates_proc *rates_proc_of(struct rates *r, uint32_t proc); /* NULL without memory */
