/* lateness.h - who came last to a collective, and who just before.
 *
 * What a late rank costs the job is not its distance to the first but to the one that
 * came before it for no fault: so the latest few are kept, the last one first.
 *
 * Where hosts have clocks that cannot be compared, and the operation lets everyone out
 * together, time inside says it too: who was inside for the shortest time came last,
 * and how much longer the others were is how much earlier they came, to within a transfer.
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
	bool by_duration; /* no clocks */
	int64_t shortest_ns; /* by_duration: the last one's time inside */
	uint32_t n;
	struct late_member v[LATENESS_MEMBERS]; /* the last one first */
};

/* Of a collective that is final, with its arrivals. */
void lateness_of(const struct match *m, uint32_t group, const struct coll *c, struct lateness *ret);
/* How long it waited inside for the last one. */
int64_t lateness_wait_ns(const struct match *m, const struct lateness *late, const struct arrival *a);
