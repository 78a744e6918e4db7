/* between.h - how far apart are two instants, and which came first? */
#pragma once

#include "match.h"

struct instant {
	uint32_t proc;		/* index */
	int64_t host_ns;
	struct fleet_point at; /* of roster_place(), both in one comparison */
};

struct gap {
	int64_t ns, err_ns; /* err_ns is hard; CLOCK_UNBOUNDED */
};

/* a less b. On one host its own clock says so; between hosts the probes of both and
 * the collectives that they met in, whichever is narrower; of a host that no probe
 * ties, the collectives alone. */
struct gap match_between(const struct match *m, const struct instant *a, const struct instant *b);
