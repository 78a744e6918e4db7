/* fleet.h - instants of two clocks that the compiler keeps apart.
 *
 * host_time is CLOCK_MONOTONIC_RAW of one host, fleet_time is the collector's
 * time line. Durations are plain int64_t and end in _ns.
 */
#pragma once

#include <stdint.h>

typedef struct { int64_t ns; } host_time;
typedef struct { int64_t ns; } fleet_time;

/* An aligned instant: the truth lies within ±err_ns (hard bound). */
struct fleet_point {
	fleet_time at;
	int64_t err_ns;
};
