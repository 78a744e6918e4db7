/* clock.h - where does an instant of one host lie on the fleet's time line?
 *
 * The live side of the estimator (beam.h): exchanges in, instants out, each with
 * both errors and a word for how it came by its place. Instants that are compared
 * are placed by one line a host, so that their order is that of the host's own
 * clock whatever is learned in between.
 */
#pragma once

#include "beam.h"

#include <errno.h>

#define CLOCK_N_KNOTS 256 /* seconds that an instant may come late */
#define CLOCK_N_SEGMENTS 16
#define CLOCK_MAX_NS (INT64_C(1) << 61) /* larger instants are nobody's; sums stay in range */
#define CLOCK_UNBOUNDED INT64_MAX
#define CLOCK_GOOD_NS 1000000 /* quality "good" up to here */

struct clock {
	bool exact;	   /* the collector's own clock */
	int64_t offset_ns; /* exact, or only a hint */
	int64_t told_ns;
	struct clock_state *state; /* NULL until the first exchange */
};

enum clock_outcome {
	CLOCK_OK = 0,
	CLOCK_REFUSED, /* times that cannot be */
	CLOCK_STEPPED, /* the clock is not where it was: the time around is undecided */
};

void clock_init(struct clock *c, bool exact, int64_t offset_ns);
void clock_fini(struct clock *c);
/* An enum clock_outcome or -ENOMEM. */
int clock_exchange(struct clock *c, host_time t0, fleet_time t1, fleet_time t2, host_time t3);
bool clock_is_aligned(const struct clock *c);
/* The newest instant that an exchange told of; only when aligned by exchanges. */
host_time clock_newest(const struct clock *c);

/* fleet = host + offset_ns + rate * (host - at_ns): never falls while the host's time rises. */
struct clock_line {
	int64_t at_ns, offset_ns;
	double rate;
};

/* A line that is good around t. */
struct clock_line clock_choose(const struct clock *c, host_time t);
/* Where t lies by that line, and the errors of it. */
void clock_place(const struct clock *c, const struct clock_line *l, host_time t,
		 struct fleet_point *ret);

/* What else is known around t, for those who combine it. */
struct clock_view {
	int64_t offset_ns, lo_ns, hi_ns; /* of the offset; lo and hi hard, ± CLOCK_UNBOUNDED */
	int64_t soft_ns;
	double rate, rate_bound; /* ns per ns: of the offset, and how far the true one may be */
	enum fleet_status status;
};
void clock_view(const struct clock *c, host_time t, struct clock_view *ret);

/* clock_choose() and clock_place() at once. 0, or 1 when never aligned: then ret is
 * placed by the hint and unbounded. */
int clock_map(const struct clock *c, host_time t, struct fleet_point *ret);

/* May a comparison rest on the bound? Near a step nobody knows which side holds. */
static inline bool clock_decides(enum fleet_status s)
{
	return s != FLEET_UNDECIDED && s != FLEET_VOID;
}
