/* beam_internal.h - the parts of the estimator, one file each. */
#pragma once

#include "beam.h"

#define BEAM_N_LEARN 20 /* clear buckets until the noise is known */

/* What a bucket says: the least bounds, detrended to its middle, relative to theta0. */
struct beam_bucket {
	int64_t at_ns;
	double f, g;	  /* INFINITY, -INFINITY when empty */
	int64_t f_ns, g_ns; /* when */
	double rtt[2];	  /* the two least */
	unsigned n_rtt;
};

enum beam_verdict { BEAM_FOLLOWS, BEAM_STEP };

/* filter.c */
struct beam_gate {
	double xp[3], pp[6], lim;
	double excess_f, excess_r;
	bool clear_f, clear_r;
	double guess; /* how wrong it is if the other path is the queued one */
};
void beam_predict(const struct beam_config *cfg, const struct beam_filter *k, int64_t at_ns,
		  double xp[3], double pp[6]);
void beam_filter_init(const struct beam_config *cfg, struct beam_filter *k);
enum beam_verdict beam_update(struct beam *b, const struct beam_bucket *u);

/* Has the rate been followed closely, for long enough to bound it? */
bool beam_is_sure(const struct beam *b);

/* floors.c */
void beam_floors_init(struct beam_floors *d);
void beam_floors_lower(struct beam *b, const struct beam_bucket *u);
/* The least delays of both directions together are less than the least round trip. */
void beam_floors_undercut(struct beam *b, double by);
void beam_floors_window(struct beam_floors *d, double f, double r, bool clear_f, bool clear_r);
/* What a floor that was raised of late must give back of an excess below zero. */
double beam_floors_repent(struct beam *b, int64_t at_ns, double excess, bool forward);
/* Which path was mostly queued in the last n buckets. */
void beam_floors_queued(const struct beam_floors *d, unsigned n, bool *f, bool *r);
/* Raise the floor of a direction that was never clear in the window of at least n buckets. */
void beam_floors_raise(struct beam_floors *d, unsigned n, int64_t at_ns);
void beam_floors_add(struct beam_floors *d, double f, double r, int64_t at_ns);

/* noise.c: both learn; the first returns z carried to where both sides are at the floor. */
double beam_noise_slope(struct beam *b, int64_t at_ns, double z, double q);
void beam_noise_variance(struct beam *b, int64_t at_ns, double z);
void beam_noise_scale(struct beam *b, double q);
/* The deviation of a clear bucket's excess, for the gate. */
double beam_noise_gate(const struct beam_floors *d);
void beam_noise_forget(struct beam_floors *d);

/* change.c */
void beam_segment_open(struct beam *b, int64_t theta0_ns, int64_t begin_ns, int64_t gap_ns);
void beam_change(struct beam *b, int64_t bucket);
/* The segment's first seconds hold another change: it begins at its newest sample. */
void beam_change_again(struct beam *b);
/* A segment that leaves nothing of the one before: time itself jumped. */
void beam_restart(struct beam *b, const struct beam_sample *s);

/* envelope.c */
void beam_envelope_init(struct beam_envelope *e);
void beam_envelope_take(struct beam *b, const struct beam_sample *s);
/* Over dt seconds beyond the newest knot. */
void beam_rate_bounds(const struct beam *b, double dt, double *lo, double *hi);

/* bucket.c */
int64_t beam_bucket_of(const struct beam *b, int64_t t_ns);
void beam_bucket_gather(const struct beam *b, int64_t bucket, struct beam_bucket *ret);
/* Visit kept samples, oldest first: index from beam_recent_first() up to n_samples. */
static inline uint64_t beam_recent_first(const struct beam *b)
{
	return b->n_samples > BEAM_N_RECENT ? b->n_samples - BEAM_N_RECENT : 0;
}

static inline const struct beam_sample *beam_recent(const struct beam *b, uint64_t i)
{
	return &b->recent[i % BEAM_N_RECENT];
}

static inline struct beam_segment *beam_segment(const struct beam *b, uint64_t i)
{
	return &b->segments[i % b->n_segments_alloc];
}

static inline struct beam_segment *beam_now(const struct beam *b)
{
	return beam_segment(b, b->n_segments - 1);
}

static inline struct beam_knot *beam_knot(const struct beam *b, uint64_t i)
{
	return &b->knots[i % b->n_knots_alloc];
}
