/* onset.h - has this life of the job got off the ground?
 *
 * What keeps a job from starting shows in two places: nobody ever calls anything,
 * or the first call of a communicator is entered by all its members and left by
 * none, since libraries connect when they are first used. What ranks and hosts say
 * of their configuration counts as the cause only there.
 */
#pragma once

#include "standstill.h"

enum onset {
	ONSET_UNKNOWN,	   /* too early to say */
	ONSET_RUNS,	   /* calls of several ranks came out */
	ONSET_NO_CALL,	   /* nobody called anything */
	ONSET_FIRST_CALLS, /* all are inside one of the first calls, and none comes out */
	ONSET_LATER_CALL,  /* calls came out before; now all or some stand in one */
};

/* silent_ns: how long nothing new may have been said before it counts as a stand. *ret is
 * filled for the last two. */
enum onset onset_of(struct rules *r, int64_t silent_ns, struct standstill *ret);
/* Has anyone left a call? */
bool onset_calls_came_out(const struct rules *r);
/* Has anyone left a call of a group with both ranks? */
bool onset_pair_has_met(const struct rules *r, int32_t a, int32_t b);
