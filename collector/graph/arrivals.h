/* arrivals.h - what the steps of a job would take without one rank's excess, from what
 * every job tells: when its ranks came to their collectives and left them.
 *
 * A rank's time between two collectives is its own; a collective ends when the last
 * has come and its transfer, that of the last, is over. So a step is replayed
 * (replay.h) from segments of the ranks and transfers, all of them durations on one
 * rank's own clock: no clock of another host comes in. A rank's excess in a segment is
 * what lies above the median of its peers, the other members of the collective that
 * ends it, where they came from the same collective before.
 *
 * A rank that does not stand still in a call gets ahead: while it waits, or while its
 * device is busy for long, its host goes on giving work, and what follows takes less
 * time than it would. So each rank has a credit in a step, of what it waited and of
 * its own excess; where it is faster than a peer by no more than its credit, that is
 * no excess of the peer. Where the thread itself stands in the call there is none.
 *
 * What follows a collective is taken to have waited for it. Time in messages between
 * two ranks is not told apart from their own, so a job that sends any is not replayed:
 * its operations would have to be known.
 *
 * Memory is bounded: a step that finds no room is left out. Large steps ask for the
 * few ranks with the largest excess alone.
 */
#pragma once

#include "../match/match.h"

#define ARRIVALS_MAX (1u << 20) /* of all open steps */

struct arrivals;

int arrivals_new(struct arrivals **ret); /* 0 or -ENOMEM */
void arrivals_free(struct arrivals *a);	 /* NULL is fine */

/* A collective is final. 0 or -ENOMEM, like all of these. */
int arrivals_call(struct arrivals *a, const struct match *m, uint32_t group, const struct coll *c);
/* Threads stand still in that group's calls. */
int arrivals_blocks(struct arrivals *a, uint32_t group);
/* A message between two ranks was seen. */
void arrivals_message(struct arrivals *a);
/* A step is told, once. */
int arrivals_step(struct arrivals *a, const struct fact_step *step, const struct fact_rank_step *v,
		  size_t n);
/* Steps whose collectives are final by now are replayed, and the sums told now and then. */
int arrivals_tick(struct arrivals *a, int64_t now_ns, int64_t late_ns, struct facts *facts);
int arrivals_finish(struct arrivals *a, struct facts *facts);
