/* lateness.h - who came last to a collective, and how much earlier it would have run without.
 *
 * The gain of a rank that had not been late is not its distance to the first but to
 * the one before it: that is what a pause costs the job.
 */
#pragma once

#include "../match/between.h"

struct lateness {
	bool all_here; /* every expected member, two at least */
	uint32_t last, second; /* members */
	uint32_t proc;	       /* of the last */
	int64_t enter_ns;      /* of the last, host time */
	int64_t last_ns;       /* fleet */
	struct gap gain;       /* last less second, with the error of their clocks */
};

/* Of a collective that is final, with its arrivals. */
void lateness_of(const struct match *m, uint32_t group, const struct coll *c, struct lateness *ret);
