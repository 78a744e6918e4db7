/* latecomers.h - which members of a group come late to its collectives, again and again?
 *
 * Where all wait for all, they leave together, and who stays inside the shortest came
 * last. Stays are durations on each member's own clock, so hosts need not agree on the
 * time. Of each group a running sum a member: how much shorter it stayed than the
 * longest, and in how many calls it was in the later half. Two sums a member, a call's work in
 * the order of its arrivals: a question about any set of ranks is answered from them.
 */
#pragma once

#include "../match/match.h"

struct latecomers_member {
	uint32_t n, n_late;
	int64_t sum_ns; /* behind the first to come */
};

struct latecomers_group {
	struct latecomers_member *v; /* by member */
	uint32_t n_alloc;
	uint32_t n_calls;
	int64_t first_ns, last_ns; /* the first member's arrivals at the first and the last call */
};

struct latecomers {
	struct latecomers_group *groups; /* as match's */
	uint32_t n_groups;
};

void latecomers_fini(struct latecomers *l);
/* A collective that is final. 0 or -ENOMEM. */
int latecomers_call(struct latecomers *l, const struct match *m, uint32_t group, const struct coll *c);
/* Do exactly these ranks come last, in a group with others? *ret_ns: by how much, in the mean;
 * *ret_ratio: by how much that stretches the time from call to call (0.07 = 7 %), 0 where calls
 * follow each other too fast to say. False in doubt and with fewer calls than
 * that in a group. */
bool latecomers_of(const struct latecomers *l, const struct match *m, const int32_t *ranks, uint32_t n,
		 uint32_t least_calls, int64_t *ret_ns, double *ret_ratio);
