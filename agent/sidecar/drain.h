/* drain.h - from a guest's rings into a batch, in order, each event once. */
#pragma once

#include "guest.h"

enum drain_outcome {
	DRAIN_DONE = 0, /* nothing more for now */
	DRAIN_MORE,	/* others may have a turn, then call again */
	DRAIN_FULL,	/* seal the batch, then call again */
	DRAIN_CUT,	/* the file was truncated; what was copied before is good */
};

/* Whole chunks only, or with all: what there is. *ret_fill (may be NULL) is
 * raised to the largest share of a ring that was found in use, 0 to 1. */
enum drain_outcome drain(struct guest *g, bool all, const struct tick *t, struct batch *b,
			 double *ret_fill);

/* What was drained is in the spool now: the guest may have the room. */
void drain_sealed(struct guest *g);
/* The cursors of what is in the batch and not sealed yet; at most max. */
uint32_t drain_cursors(const struct guest *g, struct spool_cursor *out, uint32_t max);
