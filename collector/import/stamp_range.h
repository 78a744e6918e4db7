/* stamp_range.h - where the stamps of a file lie: profilers write some of another clock,
 * or zeros, and one of those would make a profile of seconds fifty years long.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define STAMP_GAP_NS (INT64_C(6) * 3600 * 1000000000) /* no profile stands still for so long */
#define STAMP_RANGES 8

struct stamp_ranges {
	struct stamp_range {
		int64_t lo_ns, hi_ns;
		uint64_t n;
	} v[STAMP_RANGES];
	unsigned n;
};

void stamp_ranges_add(struct stamp_ranges *r, int64_t at_ns);
/* Where most of them are; of equal ones the later: zeros are early. False: there are none. */
bool stamp_most(const struct stamp_ranges *r, struct stamp_range *ret);
