/* colls.h - hosts whose clocks wander, asymmetric probes, and a job's collectives,
 * with the truth of each instant.
 *
 * True time is the fleet's. A host's clock is what is left after theta(t): an
 * offset, a rate, its random walk and a warm and cold period. The probes' word is
 * a stand-in for a converged estimator: right but for its path's asymmetry, the
 * rate a few seconds late. Everything comes from one seed.
 */
#pragma once

#include "../../collector/align/pairs.h"

#include <stdlib.h>

#define COLLS_START_NS INT64_C(1700000000000000000)

struct colls_config {
	uint32_t n_ranks;
	double rate_hz, seconds;
	double comm_us, comm_jitter; /* the collective itself; sd of its logarithm */
	double exit_bias_us;	     /* ± of a rank's habit */
	double exit_us;		     /* mean of each exit's own lateness */
	double ring_us;		     /* exit by the distance from the last to enter, a step */
	double host_us;		     /* mean by which entries are early and exits late */
	double asymmetry_us;	     /* ± of a host's path, each way */
	double round_trip_us;
	double rate_lag_s, rate_noise; /* of the probes' word on rates: its age, its noise */
	double straggler;	       /* share of calls in which rank 1 is last by far */
	uint32_t burst;		       /* calls one right behind the other; 0 and 1: none */
	bool broadcast;		       /* from rank call % n_ranks; nobody waits for others */
	uint64_t seed;
};

extern const struct colls_config colls_defaults;

struct colls_rng {
	uint64_t s;
};
double colls_unit(struct colls_rng *r); /* [0, 1) */
double colls_normal(struct colls_rng *r);
double colls_exponential(struct colls_rng *r, double mean);

struct colls_clock {
	int64_t offset_ns;
	double *x, *rate; /* by tenth of a second: theta - offset in ns, ns per ns */
	uint32_t n;
	double asymmetry_ns;
};

struct colls {
	struct colls_config cfg;
	struct colls_rng rng;
	struct colls_clock *clocks;
	uint32_t n_calls;
	int64_t *enter_ns, *exit_ns; /* true, [call * n_ranks + rank] */
	int64_t *enter_host_ns, *exit_host_ns;
	double *bias_ns;
};

void colls_make(struct colls *s, const struct colls_config *cfg);
void colls_fini(struct colls *s);

int64_t colls_theta(const struct colls *s, uint32_t rank, int64_t t_ns);
/* What the probes say of this host at t. */
void colls_probe(struct colls *s, uint32_t rank, int64_t t_ns, struct pairs_probe *ret);
