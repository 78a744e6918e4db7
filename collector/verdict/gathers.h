/* gathers.h - how many gathers are in flight before the first of them is used?
 *
 * A gather holds memory from its submit on, until the kernel that waits for it has
 * it. Gathers that one kernel waits for are one unit's. When a kernel that waits
 * for a unit begins on the device, the units of its step that were submitted before
 * are in flight: that is its depth. Submits and waits come from the host's thread and begins from the
 * device, in any order of their chunks; only their times are compared, all of one
 * process. A window of units a process is kept.
 */
#pragma once

#include "../align/roster.h"

#define GATHERS_KEPT 256 /* power of two */
#define GATHERS_DEEP 4	 /* units in flight; a limiter allows two, three when it looks ahead */

struct gather { /* submitted */
	uint32_t launch;
	uint16_t stream;
	bool used;
	int64_t submit_ns; /* host time */
};

struct gather_use { /* the kernel that waits for some */
	uint32_t launch, n_gathers;
	uint32_t depth, n_in_flight; /* units and gathers, itself counted */
	int64_t submit_ns; /* of the first */
	int64_t begin_ns;  /* FACT_NONE-like: INT64_MIN = not begun */
	uint32_t step;
};

struct gathers_proc {
	struct gather *v;	/* rings */
	struct gather_use *uses;
	uint64_t n, n_uses;
	uint64_t n_begun; /* uses below have begun, or are given up */
	uint32_t n_deep;	/* units at that depth */
	uint32_t n_waiting;	/* submitted, and no kernel that waits for them launched */
	uint32_t most_ahead;	/* of those, when a unit's kernel is launched: the program's own prefetch */
	struct gather_use deepest;
	int64_t first_ns, last_ns; /* from the first deep one's submit to the deepest's begin */
	uint32_t launch; /* the last one, and its stream */
	uint16_t stream;
};

struct gathers {
	struct gathers_proc *procs; /* as in the roster */
	uint32_t n_procs;
};

void gathers_fini(struct gathers *g);
/* 0 or -ENOMEM. */
int gathers_event(struct gathers *g, uint32_t proc, const struct event *ev);
const struct gathers_proc *gathers_of(const struct gathers *g, uint32_t proc); /* NULL none */
