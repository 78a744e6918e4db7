/* lateness.h - who came last to a collective, and who just before.
 *
 * What a late rank costs the job is not its distance to the first but to the one that
 * came before it for no fault: so the latest few are kept, the last one first.
 */
#pragma once

#include "../match/between.h"

#define LATENESS_MEMBERS 8

struct late_member {
	uint32_t proc;
	int32_t rank;
	int64_t enter_ns; /* host time */
	int64_t at_ns;	  /* fleet */
	struct gap behind; /* by which the last one came later */
};

struct lateness {
	bool all_here; /* every expected member, two at least */
	uint32_t n;
	struct late_member v[LATENESS_MEMBERS]; /* the last one first */
};

/* Of a collective that is final, with its arrivals. */
void lateness_of(const struct match *m, uint32_t group, const struct coll *c, struct lateness *ret);
