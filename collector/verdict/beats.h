/* beats.h - a job that tells no steps, paced by a group that all its ranks are in.
 *
 * Every time a call of that group ends on a rank, what its device had done until then
 * is noted. Rounds are as many calls as the group takes to do the same again: the
 * shortest period of the calls' kinds and of the time between them. They stand for
 * steps, with a call's number in the place of the step's. Only for small worlds and
 * short runs; whoever has many ranks has steps.
 */
#pragma once

#include "pace.h"
#include "../graph/device.h"

#define BEATS_MAX_RANKS 128
#define BEATS_MAX_CALLS 2048
#define BEATS_MAX_STEPS 3 /* a job that told more has steps */

struct beat { /* of one rank */
	int64_t at_ns; /* host time; 0 = not there */
	double compute_ns, call_ns, idle_ns;
	uint32_t proc;
};

struct beats {
	uint32_t n_ranks, group, n;
	uint64_t first; /* number of the first call */
	struct beat *v; /* by call and rank */
	uint64_t *kind; /* by call */
};

void beats_fini(struct beats *b);
/* 0 or -ENOMEM. */
int beats_note(struct beats *b, uint32_t world_size, const struct proc *p, uint32_t proc, uint32_t group,
	       uint64_t seq, const struct event *ev, const struct device *d);
/* Rounds into a pace that is made anew. How many, or -ENOMEM. */
int beats_play(const struct beats *b, struct pace *p);
