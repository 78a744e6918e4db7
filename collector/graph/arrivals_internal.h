/* arrivals_internal.h - what is kept of open steps, between those who collect it, replay
 * it and tell of it. */
#pragma once

#include "arrivals.h"

#define ARRIVALS_OPEN 256 /* steps, a power of two */

struct visit { /* of a rank in a call */
	int32_t rank;
	uint32_t call; /* index in the step */
	int64_t enter_ns, exit_ns;
};

struct call {
	uint32_t group, n; /* members */
	int64_t transfer_ns, last_ns; /* last: somebody entered */
};

struct span {
	int32_t rank;
	int64_t begin_ns, dur_ns, err_ns;
};

struct open_step {
	uint32_t step;
	bool used, told, full;
	int64_t told_now_ns;
	struct visit *visits;
	struct call *calls;
	struct span *ranks;
	size_t n_visits, n_visits_alloc, n_calls, n_calls_alloc, n_ranks, n_ranks_alloc;
};

struct sum { /* of one rank over the steps */
	int64_t without_ns; /* saved: measured less without it */
	int64_t alone_ns;   /* added: it alone less ideal */
};

struct arrivals {
	struct open_step open[ARRIVALS_OPEN];
	size_t n_held;
	uint32_t done_below;
	bool messages;
	int64_t now_ns, told_ns;
	bool *blocks; /* by group */
	uint32_t n_blocks;
	struct sum *sums; /* by rank */
	int32_t n_sums;
	int64_t measured_ns, ideal_ns, err_ns;
	uint32_t n_steps, n_told_steps;
};

/* Adds what a step says to the sums. A step that cannot be replayed says nothing. 0 or
 * -ENOMEM. */
int arrivals_replay(struct arrivals *a, struct open_step *s);
