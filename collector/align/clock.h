/* clock.h - where does an instant of one host lie on the fleet's time line?
 *
 * First version: each two-way exchange bounds the offset (fleet - host) from
 * both sides, without any belief about symmetry: the request arrived after it
 * was sent, the answer was sent before it arrived. An instant is placed by the
 * exchange whose bound is the narrowest there: half its round trip, grown by
 * 200 ppm for each nanosecond of distance. The bound is hard as long as the two
 * clocks' rates differ by less than that.
 */
#pragma once

#include "fleet.h"

#include <stdbool.h>

#define CLOCK_N_FINE 32    /* the newest exchanges, all of them */
#define CLOCK_N_COARSE 224 /* then the best of every CLOCK_COARSE: 7 minutes at 4 Hz */
#define CLOCK_COARSE 8
#define CLOCK_DRIFT_DIVISOR 5000 /* 200 ppm */
#define CLOCK_MAX_NS (INT64_C(1) << 61) /* larger instants are nobody's; sums stay in range */
#define CLOCK_UNBOUNDED INT64_MAX
#define CLOCK_GOOD_NS 1000000 /* quality "good" up to here */

/* offset_ns = fleet - host, true within ±half_ns somewhere in [t0, t3]. */
struct clock_sample {
	int64_t t0_ns, t3_ns, offset_ns, half_ns;
};

struct clock {
	bool exact; /* the collector's own clock */
	int64_t offset_ns; /* exact, or only a hint */
	struct clock_sample fine[CLOCK_N_FINE], coarse[CLOCK_N_COARSE], best;
	unsigned n_fine, next_fine, n_coarse, next_coarse, n_best;
	int64_t told_ns;
	uint64_t n_refused, n_contradictions;

	/* the choice for one eighth of a second of host time */
	int64_t chosen_bucket;
	struct clock_sample chosen;
	bool has_chosen;
};

enum clock_outcome {
	CLOCK_OK = 0,
	CLOCK_REFUSED, /* times that run backwards or are out of range */
	CLOCK_STEPPED, /* contradicts what was known: the old samples are dropped */
};

void clock_init(struct clock *c, bool exact, int64_t offset_ns);
enum clock_outcome clock_exchange(struct clock *c, host_time t0, fleet_time t1, fleet_time t2,
				  host_time t3);
bool clock_is_aligned(const struct clock *c);

/* Which offset to use around t: constant for calls with near instants, so that
 * the order of events on one host never turns around. */
struct clock_sample clock_choose(struct clock *c, host_time t);
/* The bound of t under that choice. */
int64_t clock_error_ns(const struct clock_sample *s, host_time t);

/* 0, or 1 when never aligned: then ret is placed by the hint and unbounded. */
int clock_map(struct clock *c, host_time t, struct fleet_point *ret);
