/* fleet.h - instants of two clocks that the compiler keeps apart.
 *
 * host_time is CLOCK_MONOTONIC_RAW of one host, fleet_time is the collector's
 * time line. Durations are plain int64_t and end in _ns.
 */
#pragma once

#include <stdint.h>

typedef struct { int64_t ns; } host_time;
typedef struct { int64_t ns; } fleet_time;

/* How an instant came by its place. Only the first three carry bounds that a
 * comparison may rest on. */
enum fleet_status {
	FLEET_ANCHORED = 0, /* both directions were clear within the last seconds */
	FLEET_ONE_SIDED,    /* one direction only */
	FLEET_COASTING,	    /* neither: extrapolated */
	FLEET_UNDECIDED,    /* near a step: which side of it holds is not known */
	FLEET_UNANCHORED,   /* too few exchanges to believe the least delay */
	FLEET_VOID,	    /* never heard of, or its clock is not sane */
};

const char *fleet_status_name(enum fleet_status s);

/* An aligned instant: the truth lies within ±err_ns (hard bound). */
struct fleet_point {
	fleet_time at;
	int64_t err_ns;
	int64_t soft_ns; /* what the noise says; the hard bound where that is smaller */
	enum fleet_status status;
};
