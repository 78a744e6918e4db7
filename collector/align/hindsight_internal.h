/* hindsight_internal.h - what the passes hand to each other. */
#pragma once

#include "hindsight.h"

/* A bucket after the pass backward. */
struct hind_knot {
	int64_t at_ns;
	double theta, rate, sd, rate_sd;
	double unrest; /* largest change of the rate between buckets around */
	uint8_t n_clear;
};

/* Bounds at one sample's end, relative to the smoothed curve. */
struct hind_bound {
	int64_t at_ns;
	double hi, lo;
};

struct hind_segment {
	struct beam_segment s; /* first_knot and n_knots count in knots */
	size_t first_bound, n_bounds;
};

struct hindsight {
	const struct beam_config *cfg;
	struct hind_segment *segments;
	size_t n_segments;
	struct hind_knot *knots;
	struct hind_bound *bounds;
	struct beam_floors floors;
	struct hindsight_stats stats;
};

void hind_smooth(const struct beam_config *cfg, const struct beam_closed *c, size_t n,
		 struct hind_knot *out);
double hind_curve(const struct hind_knot *k, size_t n, int64_t t_ns, double *rate);
double hind_rate_bound(const struct hindsight *h, const struct hind_segment *g, int64_t t_ns);
/* v, n: all samples. bounds must have room for two a sample. */
void hind_envelope(struct hindsight *h, struct hind_segment *g, const struct beam_sample *v,
		   size_t n, size_t *n_bounds);
/* The last of n that is at or before t, 0 when none is. */
size_t hind_find(const struct hind_knot *k, size_t n, int64_t t_ns);
