/* clock_world.h - a host's clock and the paths to it, with the truth.
 *
 * A clock is an offset, a rate, a random walk of the rate, waves of temperature,
 * steps, slews and a change of oscillator; a path is a floor, a log-normal jitter,
 * Pareto queues, episodes of congestion and a change of route. Everything is drawn
 * from one seed. Fleet time is the true time; instants are int64 ns.
 */
#pragma once

#include "../../collector/align/beam.h"

#include <stddef.h>
#include <stdint.h>

#define CLOCK_WORLD_S 900
#define CLOCK_SCENARIOS "ABCDEFGHK"

struct clock_query {
	int64_t host_ns, theta_ns; /* theta: fleet - host, the truth */
};

struct clock_world {
	struct beam_sample *samples; /* as they came back */
	size_t n_samples;
	struct clock_query *queries; /* in order of time */
	size_t n_queries;
	/* where the clock really changed, host time, from and to */
	int64_t changes[8][2];
	size_t n_changes;
};

const char *clock_scenario_title(char scenario);
/* 0 or -ENOMEM. */
int clock_world_make(struct clock_world *w, char scenario, uint64_t seed, double rate_hz,
		     size_t n_queries);
void clock_world_fini(struct clock_world *w);
