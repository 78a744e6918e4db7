/* hindsight.h - the map of a finished run: every sample is known, also the later ones.
 *
 * The same estimator runs forward, twice at the start so that it begins with floors
 * that it has learned; then a pass backward takes each bucket's later ones into
 * account, and the bounds are carried from both sides.
 */
#pragma once

#include "beam.h"

struct hindsight;

/* Samples of one host in the order in which they came. 0 or -ENOMEM. */
int hindsight_new(struct hindsight **ret, const struct beam_config *cfg,
		  const struct beam_sample *v, size_t n);
void hindsight_free(struct hindsight *h); /* NULL is fine */

void hindsight_place(const struct hindsight *h, host_time t, struct beam_point *ret);

struct hindsight_stats {
	uint64_t n_segments, n_restarts, n_refused, n_contradictions;
	double floor_f_ns, floor_r_ns;
};
void hindsight_stats(const struct hindsight *h, struct hindsight_stats *ret);
