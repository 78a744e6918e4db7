/* onpath.h - do transfers over one path differ from the others?
 *
 * A path is a host's way out, the way between two hosts, the way between two ranks, or a rank's
 * own, where a job has one host or nothing says where ranks sit. Three ways to differ: slower than
 * the same calls elsewhere (contrast.h); a tail that others have not; slower than
 * before.
 */
#pragma once

#include "members.h"

#define TAIL_LEAST 12 /* calls of a cell, before a tail or its absence means something */

struct onpath {
	uint32_t host, other_host; /* UINT32_MAX = none */
	int32_t rank;		   /* -1 = all of the host; otherwise what this rank takes part in */
	uint32_t peer_plus_1;	   /* and this rank too; 0 = no matter who */
};

bool onpath_uses(const struct rules *r, const struct rates_cell *c, const struct onpath *p);
/* "a", "a-b", "rank 3". */
void onpath_words(const struct rules *r, const struct onpath *p, char *out, size_t n_out);

/* A contrast whose slow cells all use it, and none of the fast. NULL = none. */
const struct contrast *onpath_contrast(const struct rules *r, const struct onpath *p);
/* Were there cells that use it and others like them that do not? */
bool onpath_compared(const struct rules *r, const struct onpath *p);

struct onpath_tail {
	const struct contrast_cell *cell; /* with the most */
	uint32_t n_tail, n_with, n_without; /* calls: in tails, on the path, elsewhere */
	double chance; /* that all of them fall on this path where all are alike */
};
/* Of its cells some have a tail (a few calls of more than twice the median), and no
 * cell elsewhere has. */
bool onpath_tails(const struct rules *r, const struct onpath *p, struct onpath_tail *ret);
double tail_chance(const struct onpath_tail *t);
bool onpath_has_tail(const struct contrast_cell *v);

struct onpath_change {
	const struct contrast_cell *cell;
	double before, after; /* medians */
	int64_t margin_ns, error_ns;
};
/* Its last calls are slower than its first, beyond their spread. */
bool onpath_slower(const struct rules *r, const struct onpath *p, struct onpath_change *ret);

/* Largest share of a cell's time that its transfers over the path take. */
double onpath_share(const struct rules *r, const struct onpath *p);
