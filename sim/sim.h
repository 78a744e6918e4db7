/* sim.h - a played case told to a collector in this process, and the catalogue
 * that comes of it.
 *
 * What the probes of the ranks say is encoded as agents do, goes through ingest,
 * the analysis and the store, and is acknowledged; only sockets and clocks are
 * left out. Time is the case's: a run of a week takes a moment, and the same
 * case gives the same catalogue.
 *
 * The collector's clock is the true one. The first host whose ranks have no
 * "clock" of their own is taken to be the collector's; every other is a foreign
 * host. Only a case with "probes" exchanges clock readings with them.
 */
#pragma once

#include "play.h"

#define SIM_REAL0_NS INT64_C(1700000000000000000) /* when every case begins */
#define SIM_RAW0_NS INT64_C(2000000000000000)	  /* the same instant since boot */

struct sim_config {
	const char *db; /* a new file */
	uint64_t seed;	/* of the exchanges' delays */
	void (*say)(const char *sentence);
};

struct sim_result {
	uint64_t n_events, n_texts, n_gauges, n_batches;
	uint32_t n_left; /* ranks that ended in order */
	int64_t end_ns;	 /* of what is observed, on the case's time */
};

enum sim_outcome {
	SIM_OK = 0,
	SIM_FAILED, /* why says what: the file, the disk, or a refusal of the collector */
};

/* 0, SIM_FAILED or -ENOMEM. On failure a file that was made is taken away. */
int sim_tell(struct sim_result *ret, const struct play *p, const struct sim_config *cfg, char *why,
	     size_t n_why);
