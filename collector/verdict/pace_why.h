/* pace_why.h - why a rank's own part of a step is long, from what was measured beside it. */
#pragma once

#include "pace.h"
#include "rules.h"

struct pace_work { /* do self times follow what the ranks have to do? */
	bool known;
	enum measure what;
	double r2;	/* of the deviations from the step's mean */
	double lost;	/* of a step: the slowest over the mean */
	double uneven;	/* amount of the most loaded rank over the mean, - 1; mean over steps */
	int32_t ranks[PACE_MAX_RANKS]; /* loaded more than the others in most steps */
	uint32_t n_ranks;
	uint32_t first, n; /* count of steps */
};

/* Amounts of work over the window, and whether they explain the self times. */
struct pace_work pace_work_of(struct rules *r);

/* Does the device of that process run below what it can, since then (host time)? The
 * reason is put in words. */
bool pace_throttled(const struct rules *r, uint32_t proc, int64_t since_ns, char *why, size_t n_why);

struct pace_input { /* waiting for data, of the window or since a change */
	double ns, step_ns; /* in a typical step of the rank that waits most */
	int32_t ranks[PACE_MAX_RANKS];
	uint32_t n_ranks, n_all;
	bool measured; /* the loader said how long it took */
};
struct pace_input pace_input_of(struct rules *r, uint32_t from);
/* By how much the ranks' amounts of work grew at that change: 0.3 = 30 %; 0 where nobody
 * said. */
double pace_work_growth(struct rules *r, const struct pace_change *c);
/* How much longer loading takes since then than before it (always: than on the
 * others); 0 where nobody said. */
double pace_load_more_ns(struct rules *r, const struct pace_change *c);
