/* bracket.h - a clock of which only "after this" and "before that" is known.
 *
 * A GPU's timer is never asked for the time. But a kernel starts after its launch
 * call began and is seen complete after it ended: each bounds theta (host - gpu)
 * from one side. The tightest of either side in a second are kept; the line that
 * leaves the widest margin between them says at what rate the timer runs, and
 * which rates are possible at all opens each bound with its distance. The answer
 * is the middle of what is possible, its error half of it: how much faster a
 * launch is than its discovery, no order of events can tell.
 *
 * A pure function of what is told, no memory taken, O(1) an event.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define BRACKET_N 128	  /* seconds kept */
#define BRACKET_WINDOW 32 /* seconds that say the rate */
#define BRACKET_UNBOUNDED INT64_MAX
#define BRACKET_MAX_NS (INT64_C(1) << 61)

struct bracket_config {
	int64_t step_ns;   /* of the timer: a reading may be this much older than the event */
	double max_rate;   /* of the timer against the host, ns per ns */
	double rate_slack; /* by which the rate may leave the line of a window */
};

extern const struct bracket_config bracket_defaults; /* 32 ns */

struct bracket_second {
	int64_t number;
	/* theta <= upper at upper_at, theta >= lower at lower_at, relative to the
	 * origin; the tightest against the rate of then. */
	bool has_upper, has_lower;
	int64_t upper_ns, upper_at_ns, lower_ns, lower_at_ns;
	double rate_lo, rate_hi; /* possible rates around it */
};

struct bracket {
	struct bracket_config cfg;
	bool started;
	int64_t origin_gpu_ns, origin_theta_ns; /* all else is relative to them */
	struct bracket_second v[BRACKET_N];
	uint32_t n; /* kept; the newest is (next - 1) % BRACKET_N */
	uint32_t next;
	double rate, rate_lo, rate_hi;	/* of the newest window */
	double middle_ns, middle_at_ns; /* a point of the line */
	bool has_line;
	unsigned n_odd[2]; /* contradictions of either side since one that told something */
	uint64_t n_refused, n_contradictions, n_restarts;
};

enum bracket_outcome {
	BRACKET_OK = 0,
	BRACKET_REFUSED, /* out of range, too old, or against what is proven */
	BRACKET_STEPPED, /* again and again against what is proven: the timer was reset, all is
			    forgotten */
};

void bracket_init(struct bracket *b, const struct bracket_config *cfg);

/* The host was at host_ns before the timer read gpu_ns (launch began, kernel started). */
enum bracket_outcome bracket_after(struct bracket *b, int64_t host_ns, int64_t gpu_ns);
/* The timer had read gpu_ns before the host was at host_ns (kernel ended, seen complete). */
enum bracket_outcome bracket_before(struct bracket *b, int64_t gpu_ns, int64_t host_ns);

enum bracket_status {
	BRACKET_NOTHING,   /* no event yet */
	BRACKET_ONE_SIDED, /* only one side is bounded: the point is that bound */
	BRACKET_UNDECIDED, /* the last events contradict: soon refused or a step */
	BRACKET_BOTH,
};

/* host = gpu + offset. */
struct bracket_point {
	int64_t offset_ns, lo_ns, hi_ns; /* hard; ±BRACKET_UNBOUNDED */
	int64_t soft_ns;
	enum bracket_status status;
};

void bracket_map(const struct bracket *b, int64_t gpu_ns, struct bracket_point *ret);
