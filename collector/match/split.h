/* split.h - of the time that each rank was in a collective: waiting for the last to
 * come, and transfer.
 *
 * The rank with the longest collective is the victim: it came first and waits. On
 * one host its own clock parts the two; between hosts the bound of match_between()
 * is the error, and by how much someone else may have been the last.
 *
 * Some traces have the waits elsewhere: their collectives begin on all ranks at
 * once and what a rank waits is the gap between its last work and that begin. A
 * group is read so when its calls keep beginning at one instant, within the
 * clocks' error, while its members were ready at different ones; then the whole of
 * the call is transfer, and the gap is charged to whoever was ready last.
 */
#pragma once

#include "match_internal.h"

/* After match_place(), whose points these are. Fills wait_ns and wait_err_ns of the
 * arrivals, which are in the order of the group's; skew, last rank and gap of the
 * collective where waits are gaps. 0 or -ENOMEM. */
int split_call(struct match *m, struct group *g, const struct coll *c, const struct match_point *last,
	       size_t n_points, struct fact_collective *f, struct fact_arrival *arrivals);
