/* replayed.h - what a replay of all operations says of a job, as far as a rule asks. */
#pragma once

#include "../facts.h"

struct replayed {
	bool any;
	double slowdown; /* of the job */
	int64_t step_ns;
	struct replayed_rank {
		int32_t rank;
		double share, slowdown;
		int64_t without_ns;
		uint32_t n_clear; /* steps in which it has most of the gap */
	} worst, next; /* by share; rank -1 = none */
	uint32_t n_steps, first_step, last_step, n_replicas;
};

/* Rows of one replay, in any order. */
void replayed_note(struct replayed *p, const struct fact_what_if *v, size_t n, uint32_t first_step,
		   uint32_t last_step);
