/* once.h - what is told once a life, and once more when it turns out to be worse than a notice. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct once {
	uint32_t life;
	bool above;
};

/* May it be told? Then it counts as told. */
static inline bool once_tell(struct once *o, uint32_t life, bool above)
{
	if (o->life == life && (o->above || !above))
		return false;
	*o = (struct once){ life, above };
	return true;
}

struct onces {
	struct once route, qp_retry, corruption, adapters;
	struct once prefetch, deferred, shard, growth, fragmentation;
	uint32_t memory_life;  /* in which a cause about memory was told above a notice */
	size_t n_shard_seen, n_route_seen; /* records */
	int route_seen_as;     /* enum onset */
	int64_t growth_now_ns, fragmentation_now_ns; /* the last look */
};
