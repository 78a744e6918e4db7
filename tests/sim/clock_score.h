/* clock_score.h - how far the estimator is from the truth, and what it claimed. */
#pragma once

#include "clock_world.h"

#include <stdbool.h>

struct clock_errors { /* ns, of all runs of a scenario */
	double *v;
	size_t n, n_alloc;
};

int clock_errors_add(struct clock_errors *e, double ns);
/* Sorts. part: 0.5 the median. */
double clock_errors_at(struct clock_errors *e, double part);
void clock_errors_fini(struct clock_errors *e);

struct clock_claims {
	struct clock_errors error, error_clear; /* all; outside the flagged time */
	struct clock_errors width;
	uint64_t n, n_flagged, n_misses, n_misses_clear, n_soft_misses;
	double worst_miss_ns;
};

struct clock_score {
	struct clock_claims hindsight, live;
	uint64_t n_samples, n_segments, n_changes, n_false_steps;
	double cpu_ns; /* of the live path: samples only */
	double worst_p99_ns; /* of one run, in hindsight */
};

int clock_score_run(struct clock_score *s, const struct clock_world *w,
		    const struct beam_config *cfg);
void clock_score_fini(struct clock_score *s);
