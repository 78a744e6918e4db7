/* interval_sweep.h - how long some of several classes of work were under way, and how
 * long together: intervals come in the order of their begins, and only the furthest end
 * of each class is kept.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SWEEP_CLASSES 3 /* bits of a set */
#define SWEEP_SETS (1u << SWEEP_CLASSES)

struct sweep {
	int64_t at_ns; /* all before it is counted */
	int64_t end_ns[SWEEP_CLASSES];
	int64_t sum_ns[SWEEP_SETS]; /* [set]: just these classes; [0] = none of them */
	bool begun;
};

/* Counts from here. What is under way goes on. */
void sweep_begin(struct sweep *s, int64_t at_ns);
/* In the order of begins, which is seen to: an earlier begin is taken for the last one's.
 * The first of a sweep that was not begun begins it. */
void sweep_add(struct sweep *s, unsigned set, int64_t begin_ns, int64_t end_ns);
/* All up to there is counted. */
void sweep_until(struct sweep *s, int64_t to_ns);
/* To the last end. */
void sweep_finish(struct sweep *s);
/* Sum over the sets of which (set & mask) == want. */
int64_t sweep_sum(const struct sweep *s, unsigned mask, unsigned want);
