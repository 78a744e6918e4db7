/* whatif.h - what the job would do if: who takes how much of the step's time.
 *
 * The method is the published one of "Understanding Stragglers in Large Model
 * Training Using What-if Analysis" (J. Lin and others, OSDI 2025). Each kind of
 * operation has an ideal duration: the mean over all workers, micro-batches and
 * steps of what computes, the median of the transfer (after the last is there) of
 * what communicates. The job is replayed with what was measured (T), with ideal
 * durations alone (T_ideal), and with some operations one way and the rest the
 * other:
 *
 *   slow-down of the job        T / T_ideal
 *   slow-down by x              T(everything ideal but x) / T_ideal
 *   share of x                  (T - T(x alone ideal)) / (T - T_ideal)
 *
 * x is a worker, a pipeline stage, a data-parallel rank or a kind of operation. A
 * share is what repair of x would give back: near 1 = it is the cause; it may
 * exceed 1 or be below 0, because an ideal is a mean and not the best.
 *
 * The worst 3 % of workers (at least one) are made ideal together: that share says
 * whether single workers are to blame; the last stage's says the same of the split
 * into stages. Which are the worst, says the smaller one of the slow-downs by a
 * worker's stage and by its data-parallel rank. That also stands for its own in a job
 * so large that a replay for each worker takes too long.
 */
#pragma once

#include "replay.h"

enum what_if_ideal { WHAT_IF_MEAN, WHAT_IF_MEDIAN };

struct what_if_place { /* of a worker, by its number */
	uint32_t stage, replica;
};

struct what_if_config {
	uint32_t n_places, n_stages, n_replicas, n_kinds;
	const struct what_if_place *places; /* by place */
	const enum what_if_ideal *ideals;   /* by kind */
};

struct what_if_part {
	double slowdown; /* it alone as measured, the rest ideal */
	double share;	 /* of the gap, that it being ideal closes; NaN = not asked, or no gap */
	uint32_t n_clear; /* steps in which it closes more than half of the step's own gap */
};

struct what_if {
	int64_t measured_ns, ideal_ns; /* sums over the steps */
	double slowdown;
	struct what_if_part *places, *stages, *replicas, *kinds;
	uint32_t n_worst;
	uint32_t *worst; /* places; the worst first */
	struct what_if_part of_worst, of_last_stage;
};

/* r: ordered. 0, -EINVAL when a place or kind is out of range or nothing takes time,
 * or -ENOMEM. */
int what_if_make(struct what_if *ret, struct replay *r, const struct what_if_config *cfg);
void what_if_fini(struct what_if *w); /* zeroed is fine */
