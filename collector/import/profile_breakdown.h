/* profile_breakdown.h - what a device did in a profile, by step and in all of it.
 *
 * By step: exact, within the step's own annotation. In all: as Holistic Trace Analysis
 * counts it, for people who compare - whole microseconds (begins rounded up, ends down),
 * from the first begin to the last end, and of several steps the work that the last one
 * launched is left out: a profiler is stopped in it.
 *
 * Everything comes in the order of begins.
 */
#pragma once

#include "interval_sweep.h"
#include "trace.h"

#define BREAKDOWN_MAX_STEPS 65536

struct breakdown_row {
	int64_t step; /* TRACE_NULL = all */
	int64_t from_ns, to_ns, n_work;
	int64_t sum_ns[SWEEP_SETS];
};

struct breakdown {
	struct sweep all, step;
	struct breakdown_row whole, open;
	bool in_step;
	struct breakdown_row *steps; /* owned */
	uint32_t n_steps, n_steps_alloc;
	int64_t cut_ns; /* what is launched from there on does not count in all */
	bool no_memory;
};

/* cut_ns: the begin of the last of several steps; INT64_MAX = none. */
void breakdown_init(struct breakdown *b, int64_t cut_ns);
void breakdown_fini(struct breakdown *b);
void breakdown_step(struct breakdown *b, int64_t step, int64_t begin_ns, int64_t end_ns);
/* launched_ns: INT64_MIN = it does not say by which launch, INT64_MAX = of one that the
 * file does not have. */
void breakdown_work(struct breakdown *b, unsigned class, int64_t begin_ns, int64_t end_ns, int64_t launched_ns);
/* After the last. */
void breakdown_end(struct breakdown *b);
/* Rows of raw_profile_breakdown; base_ns is added to stamps. with_steps: false where the
 * clock of the device is not the steps'. */
bool breakdown_tell(const struct breakdown *b, struct trace *t, int32_t rank, int64_t base_ns, bool with_steps);
