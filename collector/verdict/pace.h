/* pace.h - how long each rank's own part of each step takes, where devices tell.
 *
 * A window of the last steps over all ranks. Devices do not share cores, so what
 * they measure is clean: a change of some per cent shows in a few steps, by its
 * size against the spread that the same run has shown, without counting on how
 * the noise is distributed. What it means is for pace_why.
 *
 * A rank's pace in a step is its self time over that of the fast quarter of the
 * ranks. Ranks change when the paces before and after an instant are apart:
 * nine tenths of each, by 2 % of the step's own work and three times the spread
 * of the paces around their level, of its own and of three quarters of the
 * others; nobody else changed by more than half as much, nor was slower by as much
 * for a spell of eight steps; and the others wait for them. A difference that was always there proves little, as work may be
 * unequal: it must be 9.5 %, and four times what the others differ among
 * themselves. (A case's noise of 5 % of each duration makes 10.5 % at the very worst.) In a recording
 * of few steps and ranks only what is seen in each of them counts: one rank whose
 * kernels, or whose host's longest pause between launches, take half as much again
 * as anybody's and a seventh of the step, or whose own time is above every other's by
 * a quarter of the step; by nearly as much each time.
 */
#pragma once

#include "measures.h"
#include "../facts.h"

#define PACE_MAX_RANKS 64

struct pace_cell { /* of one rank in one step, ns; self < 0 = not there */
	float self, compute, host, input, exposed, wait, pause, dur;
	uint32_t proc;
	int64_t loop_ns;
};

enum pace_kind {
	PACE_STEADY,
	PACE_RANKS,  /* some became slower than they were beside the others */
	PACE_ALWAYS, /* some were from the first step on */
	PACE_ALL,    /* everyone became slower */
	PACE_EVERY,  /* one in every step by far, of however few */
};

struct pace_change {
	enum pace_kind kind;
	int32_t ranks[PACE_MAX_RANKS];
	uint32_t n_ranks;
	uint32_t onset, n; /* counts of steps: the first slow one, and how many since */
	double ratio;	   /* self time longer by; 0.05 = 5 % */
	double added_ns, spread_ns, step_ns; /* of the one that changed most */
	double compute_ns, host_ns, input_ns; /* what of it */
	bool paused; /* PACE_EVERY: its host pauses for so long */
};

struct pace_rank { /* scratch of one look */
	uint32_t onset;
	double shift, spread, level, low, high; /* low, high: within them nine tenths each */
	double range, range_before; /* between the levels of spells: of all, and before the onset */
	bool apart;
};

struct pace {
	uint32_t n_ranks, n_window, n_steps; /* n_steps: of all */
	struct pace_cell *cells;
	uint32_t *step_of;
	int64_t *begin_of, *end_of; /* fleet */
	double *fast_of, *mid_of; /* self of the fast quarter's slowest, and the median */
	double *scratch;
	struct pace_rank *ranks;
	uint32_t looked_steps;
	/* what was told */
	struct pace_change told;
	const char *told_class;
	uint32_t told_steps;
};

void pace_fini(struct pace *p);
/* Steps whose ranks have devices; others are let go. 0 or -ENOMEM. */
int pace_step(struct pace *p, const struct fact_step *step, const struct fact_rank_step *v, size_t n,
	      uint32_t world_size);
/* proven: the ranks have another sign of being slow, so that less of it is enough. */
bool pace_find(struct pace *p, bool (*proven)(const void *arg, uint32_t proc), const void *arg,
	       struct pace_change *ret);

static inline uint32_t pace_first(const struct pace *p)
{
	return p->n_steps > p->n_window ? p->n_steps - p->n_window : 0;
}
static inline uint32_t pace_slot(const struct pace *p, uint32_t count)
{
	return count & (p->n_window - 1);
}
static inline struct pace_cell *pace_cell(const struct pace *p, uint32_t count, uint32_t rank)
{
	return &p->cells[(size_t)pace_slot(p, count) * p->n_ranks + rank];
}
/* Of v[0..n), which is sorted by this; part 0 to 1. */
double pace_quantile(double *v, uint32_t n, double part);
bool pace_holds(const struct pace_change *c, uint32_t rank);
/* The newest process of a rank, UINT32_MAX = none. */
uint32_t pace_proc(const struct pace *p, uint32_t rank);
