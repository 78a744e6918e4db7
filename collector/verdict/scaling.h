/* scaling.h - how the loss scale has fared: the rounds of a scaler as one story. */
#pragma once

#include "rules.h"

struct scaling {
	uint32_t n, n_skipped;	/* rounds */
	uint32_t n_head, n_tail; /* skipped ones without a break: at the begin, at the end */
	uint32_t n_episodes;	/* rows of skipped ones */
	double lowest;		/* scale of a skipped one; INFINITY = not said */
	bool fell;		/* it fell while they were skipped */
	bool alike;		/* on all ranks */
	uint32_t first_step;	/* skipped; EVENT_STEP_UNKNOWN */
	/* where the overflow was */
	uint32_t n_found, n_others_clean; /* rounds with one; with words of others that had none */
	bool one_place;		/* it was always the same stage, or rank */
	int32_t stage, rank;	/* -1 */
	uint32_t proc, last_step; /* of one that had it */
	int64_t first_ns;	/* host time */
};

#define SCALING_ENDLESS 24 /* so many in a row: no scale helps */

void scaling_read(const struct rules *r, struct scaling *ret);
/* Was that value acted on: did the scaler skip that step? */
bool scaling_skipped(const struct rules *r, const struct bad *b);
