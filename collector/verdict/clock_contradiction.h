/* clock.contradiction: a collective was left before it was entered, which cannot be.
 *
 * No rank leaves an all-reduce before the last has entered. Where the times say
 * so, after every bound of every clock is granted, one of three things is wrong:
 * the matching (a rank skipped a call or made one more, which is a fault of the
 * job), a bound of a clock, or a step that nobody has told of. The job's own work
 * does not suffer, so this is a notice; but what the communicator said about
 * clocks is dropped until it is explained, and comparisons of its hosts rest on
 * clock probes alone.
 *
 * Neighbours it must not be taken for: clock.offset (wall clocks, on which nothing
 * rests), and a collective that ranks call with different sizes (mismatch).
 */
#pragma once

#include "../facts.h"

struct clock_contradiction {
	const struct fact_contradiction *fact;
	const char *communicator, *early, *late; /* names */
	uint32_t step;				  /* where the run is */
	int64_t now_ns;
};

/* 0 or -ENOMEM. */
int clock_contradiction_tell(const struct clock_contradiction *c, struct facts *facts);
