/* ties.h - hosts whose clocks no probe ties to the others': what their collectives say.
 *
 * A foreign trace, a played case and a job whose probes do not get through have
 * stamps of which only the stamping clock is known. Placed by the wall clock's word
 * they may lie seconds apart, and whoever compares them takes a wrong clock for a
 * late rank. But nobody leaves an all-reduce before the last has entered, so each
 * call bounds how far one clock is ahead of another (hard), and as all leave at
 * about the same moment, the exits say how far within that (soft).
 *
 * Of two hosts that meet in calls a running interval is kept, which opens with time
 * by what two clocks may drift apart, and a sample over the whole run for whoever
 * judges offset, drift and steps (verdict/). A call that the interval rules out
 * starts it anew. Hosts that probes tie are nobody's business here.
 */
#pragma once

#include "match.h"

#define TIES_KEEP 128
#define TIES_MAX_RATE_PPM 200 /* of one clock against another */

/* Of one call. Stamps are host time as the host's wall clock has it; b is ahead of a by
 * lo to hi. */
struct tie {
	int64_t at_ns;	  /* a's stamp of the exit */
	int64_t lo_ns, hi_ns;
	int64_t ahead_ns; /* b's exit less a's: the soft word */
	int64_t late_ns;  /* b's entry less a's: the clocks' difference is in it */
	uint32_t group;
	uint64_t seq;
};

struct tie_pair { /* a < b: indices of hosts */
	uint32_t a, b;
	bool loose_a, loose_b; /* when they met last: a stamp is placed anew with it */
	int64_t at_ns, lo_ns, hi_ns; /* running */
	int64_t ahead_ns;	     /* running soft */
	int64_t since_ns;	     /* a's stamp: before it the interval does not hold */
	uint32_t n, every, n_skipped;
	uint64_t n_seen;
	struct tie first, last, v[TIES_KEEP]; /* by time, the first in it */
	struct tie before, after; /* the calls around the last time that it began anew */
	uint32_t n_anew;
};

struct ties {
	const struct roster *roster;
	struct tie_pair **v;
	uint32_t n, n_alloc;
	struct idmap of_hosts;
	uint32_t *parents; /* by loose host: index + 1 of the pair towards one that is tied */
	uint32_t n_hosts, n_loose;
	uint32_t reference; /* where nobody is tied */
	struct tie_seen *seen; /* scratch, by host */
	uint32_t n_seen_alloc, *met, n_met;
	uint64_t epoch;
};

void ties_init(struct ties *t, const struct roster *r);
void ties_fini(struct ties *t);

/* Nothing but its own word places this host. */
static inline bool ties_is_loose(const struct ties *t, uint32_t host)
{
	const struct clock *k = &t->roster->hosts[host].clock;

	return !k->exact && !clock_is_aligned(k);
}

static inline bool ties_is_end(const struct ties *t, uint32_t host)
{
	return host == t->reference || !ties_is_loose(t, host);
}

/* A collective is final; its arrivals are there. 0 or -ENOMEM. */
int ties_closed(struct ties *t, const struct match *m, uint32_t group, const struct coll *c);

/* An instant of host i less one of host j, between two bounds. False when nothing is known. */
bool ties_between(const struct ties *t, uint32_t i, int64_t i_ns, uint32_t j, int64_t j_ns,
		  int64_t *ret_lo_ns, int64_t *ret_hi_ns);
/* What to add to a loose host's stamps for a picture; 0 when nothing is known. */
int64_t ties_shift(const struct ties *t, uint32_t host);
