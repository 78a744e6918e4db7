/* train.h - a data-parallel training job as a few formulas, with its truth.
 *
 * Every rank loads, runs forward and backward, gives its buckets to
 * collectives as they fill, waits for the last one, joins one blocking
 * all_reduce and steps the optimizer. The events come out as a probe would
 * write them, on two threads a rank; the truth (when each arrived, how long it
 * computed and waited) is kept beside them.
 */
#pragma once

#include "../../collector/core.h"
#include "../../proto/event.h"

#include <stdlib.h>
#include <string.h>

#define TRAIN_RINGS 2 /* 0 the loop, 1 the thread that runs callbacks */
#define TRAIN_GROUP 1 /* names' ids */
#define TRAIN_LOSS_GROUP 2

struct train_config {
	uint32_t world, n_hosts, n_steps, n_buckets;
	uint64_t seed;
	double noise;		  /* ± this part of each phase */
	int32_t slow_rank;	  /* -1 = nobody */
	uint32_t slow_from;
	double slow_by;		  /* forward takes 1 + this as long */
	int64_t max_offset_ns;	  /* of hosts 1 … against the fleet */
	bool no_sync;		  /* without the blocking all_reduce */
};

struct train_truth { /* fleet and durations, without any clock in between */
	int64_t begin_ns, dur_ns, exposed_ns, wait_ns, data_ns, fwd_ns, bwd_ns, opt_ns;
};

struct train {
	struct train_config cfg;
	struct event *ev[TRAIN_RINGS]; /* by rank: ev[ring][rank * cap …] */
	size_t *n[TRAIN_RINGS];
	size_t cap;
	int64_t *offset_ns; /* by host: host = fleet - offset */
	struct train_truth *truth; /* [step * world + rank] */
};

static inline uint64_t train_rand(uint64_t *s)
{
	uint64_t z = *s += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static inline double train_unit(uint64_t *s) /* [0, 1) */
{
	return (double)(train_rand(s) >> 11) * 0x1p-53;
}

void train_make(struct train *t, const struct train_config *cfg);
void train_fini(struct train *t);
static inline uint32_t train_host(const struct train *t, uint32_t rank)
{
	return rank * t->cfg.n_hosts / t->cfg.world;
}
static inline const struct event *train_events(const struct train *t, uint32_t ring, uint32_t rank)
{
	return t->ev[ring] + rank * t->cap;
}

/* Hosts (host 0 is the collector's), processes 100 + rank and names. */
void train_introduce(const struct train *t, struct core *c, int64_t tick_error_ns);

/* Feeds all events in chunks of at most n_chunk, rings and ranks interleaved at
 * random, from chunk number `from` on to before `to` (numbers are the same for
 * one seed). Ticks 4 times a second of the job's time. Returns the number after
 * the last chunk of all. */
uint64_t train_feed(const struct train *t, struct core *c, uint64_t seed, size_t n_chunk,
		    uint64_t from, uint64_t to);
