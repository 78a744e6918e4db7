/* sketch.h - the distribution of many durations in little memory.
 *
 * Buckets grow by a fixed factor, so a quantile is known within SKETCH_ERROR of its
 * value, wherever it lies: that bound holds for every quantile and every input
 * (Masson, Rim, Lee: DDSketch, VLDB 2019). Two of them add up to the sketch of
 * both. Only the buckets between the least and the largest are kept.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SKETCH_ERROR 0.01 /* relative */

struct sketch {
	uint32_t *v; /* by bucket, from first on */
	uint32_t n_slots;
	int32_t first;
	uint64_t n;
	double sum;
	int64_t min, max;
};

void sketch_fini(struct sketch *s);
/* What is not above 0 counts as 1 ns. 0 or -ENOMEM. */
int sketch_add(struct sketch *s, int64_t ns);
int sketch_merge(struct sketch *to, const struct sketch *from);
/* The value that a share q of them do not exceed; 0 of none. */
int64_t sketch_quantile(const struct sketch *s, double q);
