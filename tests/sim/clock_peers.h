/* clock_peers.h - the usual ways to align two clocks, written anew for the table.
 *
 * All get the same samples. Each is at its best here: those that need the whole run
 * have it, and the one that is causal is asked as a live clock would be.
 */
#pragma once

#include "clock_world.h"

enum clock_peer {
	PEER_MIDPOINT,	 /* of each exchange, interpolated */
	PEER_NTP,	 /* the least delay of the last eight */
	PEER_REGRESSION, /* a line through all midpoints */
	PEER_TWO_POINT,	 /* the best of ten at either end */
	PEER_HULL,	 /* bisector of the extreme lines between all bounds */
	PEER_MARGIN,	 /* the widest margin of every ten seconds */
	PEER_CHRONY,	 /* weighted regression over as many seconds as pass a test of runs; causal */
	CLOCK_N_PEERS
};

const char *clock_peer_title(enum clock_peer p);
/* error: one for each query, ns. half: the method's own bound, NAN where it has none.
 * 0 or -ENOMEM. */
int clock_peer_run(enum clock_peer p, const struct clock_world *w, double *error, double *half);
