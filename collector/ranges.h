/* ranges.h - which whole numbers have been seen, as sorted ranges [lo, hi).
 *
 * Used for the events of a ring and for the batches of an agent: almost always
 * one range that grows at its end, a few more where something went missing.
 * Bounded: past RANGES_MAX the oldest hole is forgotten (counted as seen), so
 * that a peer cannot make us remember without end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RANGES_MAX 1024

struct range {
	uint64_t lo, hi;
};
struct ranges {
	struct range *v; /* owned */
	size_t n, n_alloc;
};

void ranges_fini(struct ranges *r); /* zeroed is fine */

/* One past the highest number seen; 0 = none. */
static inline uint64_t ranges_end(const struct ranges *r)
{
	return r->n ? r->v[r->n - 1].hi : 0;
}
bool ranges_has(const struct ranges *r, uint64_t x);

/* The first part of [lo, hi) that has not been seen: false when all of it has. */
bool ranges_missing(const struct ranges *r, uint64_t lo, uint64_t hi, struct range *ret);

/* Note [lo, hi). *ret is the range that holds it now; *ret_merged says that other
 * ranges became part of it. 0 or -ENOMEM. */
int ranges_add(struct ranges *r, uint64_t lo, uint64_t hi, struct range *ret, bool *ret_merged);
