/* transfers.h - how long the largest collectives of each group take once all are there.
 *
 * A group is remembered by the operation and size of its largest call so far; a
 * larger one starts anew. Groups that call the same can be compared with each
 * other: like work over other hosts.
 */
#pragma once

#include "../match/match.h"

struct transfer {
	uint8_t op;
	uint64_t bytes;
	uint32_t n, n_members, n_hosts;
	int64_t sum_ns; /* from the last arrival to its end: the shortest stay of a member */
};

struct transfers {
	struct transfer *v; /* by match's group */
	uint32_t n;
};

void transfers_fini(struct transfers *t);
/* A collective that is final. 0 or -ENOMEM. */
int transfers_call(struct transfers *t, const struct match *m, uint32_t group, const struct coll *c);
