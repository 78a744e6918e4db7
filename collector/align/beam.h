/* beam.h - offset and rate of one clock against another, from two-way exchanges.
 *
 * Queueing only ever adds delay, so each direction of an exchange is a bound of
 * theta (fleet - host): t2 - t1 from above, t3 - t4 from below. The tightest
 * bound of each direction in a bucket of a second, less the least delay of that
 * direction, is a measurement of theta; a filter of two states follows it. Two
 * errors come out and are never mixed: a hard one (what order of events and a
 * bound of the rate prove) and a soft one (what the noise says).
 *
 * A pure function of its samples: no clock is read, no memory is taken, the work
 * and the state of a sample are bounded. Live, in hindsight and in simulation it
 * is the same code. Instants are int64 ns; a double holds only what is relative
 * to the origin of a segment, in ns and ns per second.
 */
#pragma once

#include "fleet.h"

#include <stdbool.h>
#include <stddef.h>

#define BEAM_N_RECENT 128 /* samples kept: the open bucket, and a while before it */
#define BEAM_N_WINDOW 60  /* buckets after which a path that is never clear has changed */
#define BEAM_N_RTTS 32

/* f = t2 - t1 >= theta at t1, g = t3 - t4 <= theta at t4. f - g is the round trip. */
struct beam_sample {
	int64_t t1_ns, t4_ns, f_ns, g_ns;
};

struct beam_config {
	int64_t bucket_ns;
	double rate_slack;	/* ns/s that the rate may leave what was seen of it */
	double rate_jump;	/* ns/s near a change point, where nothing is known */
	double rate_drift;	/* ns/s per s that the rate may move while nobody looks */
	double noise_rate;	/* random walk of the rate, ns/s per sqrt(s) */
	double noise_drift;	/* random walk of the rate's own rate, ns/s² per sqrt(s) */
	double drift_unknown;	/* its deviation before anything is known, ns/s² */
	double drift_memory;	/* seconds after which nothing of it is left but 1/e */
	double noise_theta;	/* white noise of the rate, ns per sqrt(s) */
	double least_scale;	/* of the excess delay of a clear bucket, ns */
	double gate;		/* deviations that are still clear */
	double slack;		/* ns added to the gate */
	double rate_unknown;	/* deviation of the rate before anything is known, ns/s */
	double sure;		/* ns: a larger deviation bounds no rate */
	double asymmetry_share; /* of half the round trip, in the soft error */
	double z;		/* deviations of the soft error */
};

extern const struct beam_config beam_defaults;

/* One stretch of the host's time without a step. theta = theta0 + (what is relative). */
struct beam_segment {
	int64_t theta0_ns;
	int64_t begin_ns, end_ns; /* host; INT64_MIN and INT64_MAX where open */
	int64_t gap_ns;		  /* from here to begin nobody knows which side holds */
	int64_t suspect_ns;	  /* the next one's gap begins; INT64_MAX */
	bool wild;		  /* more than one change in the gap: nothing bounds it */
	uint64_t first_knot, n_knots;
};

/* A closed bucket, for maps of the past. Single precision where a value is relative
 * to theta or to the bucket. */
struct beam_knot {
	int64_t at_ns;
	double theta; /* relative to the segment's theta0 */
	float rate, drift, sd, rate_sd;
	float env_hi, env_lo; /* relative to theta, at env_s after at_ns */
	float env_s;
	uint8_t n_clear; /* directions */
	bool sure;	 /* the rate is known well enough to bound it */
};

/* What the backward pass needs of a bucket: filtered state, and how it was predicted. */
struct beam_closed {
	int64_t at_ns;
	double x[3], p[6]; /* as in the filter */
	double xp[3], pp[6];
	uint32_t segment;
	uint8_t n_clear; /* directions */
	bool lost;	 /* the state bounds nothing */
	bool first;	 /* of its segment: not predicted */
};

/* A state of a few buckets ago, which a change that is only now seen has not touched. */
struct beam_past {
	double x[2], p0;
	int64_t at_ns, anchor_ns;
};

#define BEAM_N_PAST 3

struct beam_filter {
	double x[3]; /* offset, rate, and the rate's own rate */
	double p[6]; /* covariance: 00, 01, 11, 02, 12, 22 */
	double nis, last_y; /* times the process noise; the last innovation in deviations */
	int64_t at_ns, anchor_ns;
	unsigned n, n_bad;
	bool queued_f, queued_r; /* of a young segment: which path was so before it */
	unsigned n_sure; /* buckets running whose deviation is small */
	uint8_t n_clear; /* directions, in the last bucket */
	struct beam_past past[BEAM_N_PAST]; /* oldest first */
};

/* Floors and state before a drop of the round trip began. */
struct beam_before {
	double f, r, rtt, x[2]; /* rtt: the least of late */
	int64_t at_ns, until_ns;
	uint64_t segment;
};

/* Least one-way delays, their noise, and how it was learned. */
struct beam_floors {
	double f, r; /* INFINITY until known */
	double scale, variance;
	unsigned n_scale, n_variance;
	double raised_f, raised_r; /* of f and r: learned last, given back first */
	int64_t raised_ns;
	double blame; /* share of the forward path in a shorter round trip */
	int64_t blame_until_ns;
	struct beam_before before;
	float rtts[BEAM_N_RTTS]; /* the least of each bucket */
	unsigned n_rtts;
	struct beam_excess {
		float f, r;
		bool clear_f, clear_r;
	} window[BEAM_N_WINDOW];
	unsigned n_window, next_window;
	/* slope of z on q: one direction's jitter larger than the other's */
	int64_t slope_ns;
	double slope_z, slope_q, szq, sqq;
	unsigned n_slope;
	/* the last three z, for their second difference */
	int64_t z_ns[3];
	double z[3];
	unsigned n_z;
	/* a young segment's least width */
	double young_least;
	unsigned n_young;
};

/* The hard bounds at the newest sample, relative to theta0. */
struct beam_envelope {
	int64_t at_ns;
	double hi, lo;
	int64_t broken_ns; /* the last sample that contradicted it; INT64_MIN */
};

struct beam {
	const struct beam_config *cfg;
	int64_t origin_ns; /* host: buckets count from here */
	int64_t bucket;	   /* the open one's number */
	int64_t last_ns, fleet_ns; /* newest t4, t2 */
	bool started;	   /* the segment's first rate is known, its buckets are closed */
	uint64_t start_sample; /* number of the segment's first sample */
	struct beam_sample recent[BEAM_N_RECENT];
	uint64_t n_samples;
	struct beam_filter filter;
	struct beam_floors floors;
	struct beam_envelope envelope;

	/* memory of the caller's; rings by number */
	struct beam_knot *knots;
	size_t n_knots_alloc;
	uint64_t n_knots;
	struct beam_segment *segments;
	size_t n_segments_alloc;
	uint64_t n_segments, n_since_restart, oldest_segment; /* counts and a number of segments */

	/* the clock left its own past: confirmed by a second sample, or dropped */
	int64_t odd_ns;
	unsigned n_odd;
	unsigned n_refused_running;
	uint64_t n_refused, n_late, n_contradictions, n_restarts;

	void (*closed)(void *arg, const struct beam_closed *); /* may be NULL */
	void *closed_arg;
};

void beam_init(struct beam *b, const struct beam_config *cfg, struct beam_knot *knots,
	       size_t n_knots, struct beam_segment *segments, size_t n_segments);

enum beam_outcome {
	BEAM_OK = 0,
	BEAM_REFUSED, /* stamps that cannot be; nothing changed */
	BEAM_STEPPED, /* the clock was set, or moved to another machine */
};

enum beam_outcome beam_exchange(struct beam *b, host_time t1, fleet_time t2, fleet_time t3,
				host_time t4);
enum beam_outcome beam_take(struct beam *b, const struct beam_sample *s);
/* No more samples come: close what is open. */
void beam_finish(struct beam *b);

/* Where lies a host instant? Relative to its segment: theta0_ns + theta. */
struct beam_point {
	uint64_t segment;
	int64_t theta0_ns;
	double theta, rate; /* a line that is good around the instant */
	double hi, lo;	    /* hard, relative to theta0_ns */
	double rate_bound;  /* the true rate is within rate ± this: what hi and lo rest on */
	double soft;	    /* half a width */
	enum fleet_status status;
};

void beam_place(const struct beam *b, host_time t, struct beam_point *ret);

/* What both sides of a map share. */
static inline double beam_seconds(int64_t from_ns, int64_t to_ns)
{
	return (double)(to_ns - from_ns) * 1e-9;
}
