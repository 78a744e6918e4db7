/* evidence_internal.h - what the files of evidence share. */
#pragma once

#include "evidence.h"

struct member_group {
	uint32_t pairs_group; /* + 1, 0 = none yet */
	uint32_t n_members;
	uint32_t *hosts;
	bool told; /* that it is believed no more */
};

/* What pairs was told of a host's clock. */
struct fed {
	bool any;
	bool stepped;
	int64_t stepped_ns;	  /* fleet, when that was known */
	int64_t since_ns;	  /* host: older instants are on another clock */
	int64_t last_ns, fleet_ns; /* the newest, host and fleet */
};

struct evidence {
	const struct roster *roster;
	struct pairs *pairs;
	struct fed *fed; /* by host */
	uint32_t n_nodes, n_fed_alloc;
	uint32_t own; /* index + 1 of a host that has the collector's clock */
	int64_t now_ns, told_pairs_ns; /* fleet */
	struct member_group *groups; /* by match's index */
	uint32_t n_groups, n_pairs_groups;
	int64_t *enter_ns, *exit_ns; /* scratch, by member */
	uint32_t *hosts;
	uint32_t n_alloc;
};

/* Is that instant on the clock that pairs knows? */
bool evidence_knows(const struct evidence *e, uint32_t host, int64_t host_ns);

static inline bool is_vaguer(int64_t a_ns, int64_t b_ns, int64_t limit_ns)
{
	return a_ns >= limit_ns || b_ns >= limit_ns - a_ns;
}
