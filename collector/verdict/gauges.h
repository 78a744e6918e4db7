/* gauges.h - readings over time of processes and hosts, as rules read them.
 *
 * A series is one gauge of one process or host. It keeps at most GAUGE_KEEP
 * readings over the whole run: when it is full every second one goes and from
 * then on only each 2nd, 4th, … reading is kept, so that a trend over hours stays
 * visible in bounded memory. The newest reading is always there.
 */
#pragma once

#include "../align/roster.h"

#define GAUGE_KEEP 256
#define GAUGE_OF_HOST UINT32_MAX

struct gauge_sample {
	int64_t at_ns;	/* host time */
	int64_t now_ns; /* core time: when it was heard */
	uint32_t step;	/* the process's; EVENT_STEP_UNKNOWN */
	double value;
};

struct gauge_of {
	uint32_t host, proc; /* indices; GAUGE_OF_HOST = of the host itself */
};

struct gauge_series {
	struct gauge_of of;
	uint32_t name; /* gauges->names */
	uint32_t every, n_skipped; /* one in `every` is kept */
	uint32_t n;
	struct gauge_sample v[GAUGE_KEEP]; /* by time of hearing */
	struct gauge_sample first, last, low, high; /* of all */
	uint64_t n_seen;
};

struct gauges {
	char **names;
	uint32_t n_names, n_names_alloc;
	struct gauge_series **v; /* in the order of their first reading */
	uint32_t n, n_alloc;
	uint32_t *slots; /* open addressing: index + 1 */
	uint32_t n_slots;
	uint64_t n_dropped;
};

void gauges_fini(struct gauges *g);
/* 0 or -ENOMEM. What is not finite, or of too many series, is let go and counted. */
int gauges_note(struct gauges *g, const struct gauge_of *of, const char *name,
		const struct gauge_sample *s);
/* NULL when nothing was read. */
const struct gauge_series *gauges_find(const struct gauges *g, const struct gauge_of *of,
				       const char *name);
