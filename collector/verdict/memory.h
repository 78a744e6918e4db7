/* memory.h - what the rules about device memory share: gauges in gigabytes, failures, and
 * one cause of it a life. */
#pragma once

#include "rules.h"

#define MEMORY_TREND_LOOK_NS INT64_C(10000000000) /* between looks at trends */

/* A process's readings of "reserved", "allocated", "active" or "rss", told as NAME_gb or
 * NAME_bytes; *ret_unit: what makes them gigabytes. NULL when there are none. */
const struct gauge_series *memory_gauge(const struct rules *r, uint32_t proc, const char *name,
					double *ret_unit);
double memory_high_gb(const struct rules *r, uint32_t proc, const char *name); /* 0 unknown */
/* What is in use: the high of allocated or active; 0 unknown. */
double memory_used_gb(const struct rules *r, uint32_t proc);
/* By how much what is reserved rose between two host times, over what it rose to; 0 when it is
 * not known to have, or fell in between. used_too: where that is not told, what is in use. */
double memory_rise(const struct rules *r, uint32_t proc, int64_t from_ns, int64_t to_ns,
		   bool used_too);

struct memory_failure { /* allocations that failed, of this life */
	uint32_t n;
	uint32_t proc; /* the last one's */
	int64_t at_ns; /* host time */
	double gb, reserved_gb, allocated_gb; /* of the last one; 0 not said */
	bool died; /* such a process is gone */
};
/* proc UINT32_MAX: of any. */
bool memory_failed(const struct rules *r, uint32_t proc, struct memory_failure *ret);
bool memory_counts(const struct rules *r, uint32_t proc); /* a rank of this life */
/* The ranks of `is` where they are fewer than half of `of`, otherwise nobody: then it is how the
 * job is set up. */
void memory_culprits(const struct rules *r, const bool *is, uint32_t n_is, uint32_t n_of,
		     struct finding *f);
/* above: it costs the job something. Stuck where a rank died of it, wrong otherwise, a notice
 * below; of several causes the first. failure may be NULL. 0 or -ENOMEM. */
int memory_tell(struct rules *r, struct once *once, bool above, const struct memory_failure *failure,
		struct finding *f);
