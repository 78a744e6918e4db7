/* clock_stamps.h - clocks that nothing ties together disagree, or one was set: what is
 * kept for it.
 *
 * Of the first call that ranks of loose hosts (match/ties.h) make together, who came
 * when: a late start is told apart from a wrong clock by it.
 */
#pragma once

#include "../match/ties.h"

#define CLOCK_STAMPS_FIRST 4096 /* ranks of the first call */

struct clock_first {
	int32_t rank;
	uint32_t host;
	int64_t enter_ns; /* host time */
};

struct clock_stamps {
	struct clock_first *first;
	uint32_t n_first;
	uint32_t told_life; /* + 1 */
	const char *told_class;
	bool told_notice;
	uint32_t told_ranks;
};

void clock_stamps_fini(struct clock_stamps *s);
/* A collective is final. 0 or -ENOMEM. */
int clock_stamps_call(struct clock_stamps *s, const struct match *m, uint32_t group,
		      const struct coll *c);

/* How the clocks of one pair stand, from its sample. */
struct tie_judged {
	int64_t at_ns;	  /* a's stamp, about the middle */
	int64_t ahead_ns; /* of b over a, then */
	int64_t soft_ns, lo_ns, hi_ns; /* hard */
	double drift, drift_sd; /* ns per ns */
	bool drift_known;
	int64_t late_ns; /* the middle of how late either is, the clocks' difference taken off */
	bool stepped, step_certain;
	int64_t step_ns;
	struct tie before, after; /* stepped: the calls around it */
};
/* Of one that has met at least once. 0 or -ENOMEM. */
int tie_judge(const struct tie_pair *p, struct tie_judged *ret);
