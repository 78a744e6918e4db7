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
#define LATENESS_LEAST_NS INT64_C(200000) /* what is less costs nobody anything */

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

/* Where each member's entry lies: to place an instant costs more than all the rest. */
struct lateness_places {
	struct fleet_point *v; /* by member */
	uint32_t n_alloc;
};

/* Of a collective that is final, with its arrivals. gaps: behind is asked for, with its
 * error, where the earliest kept may be LATENESS_LEAST_NS behind or more. 0 or -ENOMEM. */
int lateness_of(const struct match *m, uint32_t group, const struct coll *c,
		struct lateness_places *places, bool gaps, struct lateness *ret);
/* How long that member waited inside for the last one. */
int64_t lateness_wait_ns(const struct lateness *late, const struct lateness_places *places,
			 uint32_t member, const struct arrival *a);
