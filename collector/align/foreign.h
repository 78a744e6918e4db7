/* foreign.h - offsets of traces that know nothing of each other's clocks.
 *
 * An imported trace has events and no probes. Its collectives are still the
 * others' collectives: matched call by call, all leave at about the same moment,
 * so offsets come from exits alone, bounded by "no exit before the last entry"
 * where that holds. What cannot be known is said: in a short window a drift
 * cannot be told from noise. And a match that does not stand (sampled traces,
 * missing calls, one period as good as the next) is refused, because from a wrong
 * match follow wrong clocks that look right.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FOREIGN_UNBOUNDED INT64_MAX
#define FOREIGN_MAX_NS (INT64_C(1) << 61)
#define FOREIGN_MAX_CALLS (1u << 22) /* a rank */
#define FOREIGN_MAX_RANKS 65536

/* One collective as one rank saw it, local time. kind: equal on all ranks of one
 * call (operation, size, algorithm: what the trace tells), 0 = unknown. */
struct foreign_call {
	int64_t enter_ns, exit_ns;
	uint64_t kind;
	bool proves; /* every exit needs every entry */
};

/* Of one communicator, in the order of their entries. */
struct foreign_rank {
	const struct foreign_call *calls;
	size_t n_calls;
};

struct foreign_config {
	double max_rate;   /* of one clock against another, ns per ns */
	int64_t skew_ns;   /* exits of one call may be this far apart … */
	double skew_share; /* … and this share of the shortest call */
	int64_t stamp_ns;  /* stamps are true to this */
	double z;	   /* deviations of the soft error */
};

extern const struct foreign_config foreign_defaults;

enum foreign_outcome {
	FOREIGN_OK = 0,
	FOREIGN_BAD_TIMES,  /* out of range or running backwards */
	FOREIGN_TOO_FEW,    /* not enough calls to test anything */
	FOREIGN_ORDER,	    /* the ranks do not make the same calls in the same order */
	FOREIGN_RESIDUAL,   /* matched calls do not end together: calls are missing or sampled */
	FOREIGN_IMPOSSIBLE, /* an exit before an entry that it needed, whatever the offset */
	FOREIGN_AMBIGUOUS,  /* another match fits as well */
};

/* A sentence for a person. */
const char *foreign_text(enum foreign_outcome o);

/* reference = local + offset + drift * (local - at). */
struct foreign_clock {
	enum foreign_outcome outcome; /* the rest only holds when FOREIGN_OK */
	int64_t offset_ns, at_ns;
	int64_t lo_ns, hi_ns; /* hard, of the offset at at_ns; unbounded when nothing proves */
	int64_t soft_ns;      /* bend_ns is in it */
	int64_t bend_ns;      /* how far the clock leaves the line, in long windows */
	bool drift_known;     /* otherwise drift is 0 and max_rate is all that bounds it */
	double drift, drift_sd;
	size_t n_matched;
	ptrdiff_t shift;     /* call i of the reference is call i + shift of this rank */
	int64_t residual_ns; /* of 80 % of the calls */
};

/* ret: n_ranks clocks. ret_reference: the rank whose clock is the reference; its
 * offset is 0. Refused ranks say why; everybody is refused when fewer than half
 * agree on anything. Returns how many are FOREIGN_OK, or negative errno. */
int64_t foreign_align(const struct foreign_rank *ranks, size_t n_ranks,
		      const struct foreign_config *cfg, struct foreign_clock *ret,
		      size_t *ret_reference);

/* The soft error of an instant: what the drift adds to soft_ns. */
int64_t foreign_error_ns(const struct foreign_clock *c, const struct foreign_config *cfg,
			 int64_t local_ns);
