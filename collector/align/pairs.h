/* pairs.h - what a job's own collectives prove about the clocks of its hosts.
 *
 * Probes cannot see how far a path is asymmetric; collectives do not care. No
 * rank leaves an all-reduce before the last has entered: a bound from the same
 * cards and switch that the work uses. And all leave at nearly the same moment:
 * a broadcast without a path. So the time of one host against another, base of
 * every picture and verdict across ranks, comes from here, inside the bounds of
 * the probes.
 *
 * Two errors, never mixed: lo and hi are what the order of events and a bound
 * of the rates prove; soft is what the spread of the exits says. A collective
 * that contradicts what is proven is reported with both sides and its
 * communicator is believed no more: one wrong match makes false proofs.
 *
 * A pure function of what is told, live or in hindsight. host_ns is a node's
 * own clock (a host, or a rank of which only a trace is left), t is the fleet's
 * time line as the probes have it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define PAIRS_NONE INT64_MIN	  /* no such instant */
#define PAIRS_UNBOUNDED INT64_MAX /* nothing is proven */
#define PAIRS_MAX_CLOSED 64	  /* nodes up to which every pair keeps its own bound */
#define PAIRS_MAX_NODES 65536
#define PAIRS_MAX_NS (INT64_C(1) << 61) /* larger instants are nobody's */

struct pairs;

struct pairs_config {
	uint32_t reference; /* < PAIRS_MAX_CLOSED: to which all are bounded when there are many */
	int64_t least_latency_ns; /* proven least time from the last entry to an exit */
	int64_t stamp_ns;	  /* stamps are true to this */
	int64_t window_ns;	  /* exits of this long before and after say what time it is */
	double rate_sd; /* least deviation of the rates that the probes tell; more is learned */
	int64_t exit_skew_ns;	/* deviation of a rank's usual exit before it is calibrated */
	double exit_skew_share; /* and what the shortest duration adds to it */
	double z;		/* deviations of the soft error */
};

extern const struct pairs_config pairs_defaults;

/* 0 or negative errno. cfg is copied. */
int pairs_new(struct pairs **ret, const struct pairs_config *cfg);
void pairs_free(struct pairs *p); /* NULL is fine */

/* The new node's index, or negative errno. */
int64_t pairs_node(struct pairs *p);

/* What the probes know at host_ns: fleet = host + offset. lo and hi are hard
 * (-PAIRS_UNBOUNDED, PAIRS_UNBOUNDED where nothing is); the true rate of the
 * offset stays within rate ± rate_bound until the next call. */
struct pairs_probe {
	int64_t host_ns, offset_ns, lo_ns, hi_ns, soft_ns;
	double rate, rate_bound; /* ns per ns */
};

enum pairs_outcome {
	PAIRS_OK = 0,
	PAIRS_REFUSED,	   /* instants that cannot be; nothing changed */
	PAIRS_VIOLATION,   /* proof that something is wrong; the communicator is quarantined */
	PAIRS_QUARANTINED, /* checked, and not believed */
};

/* 0, PAIRS_REFUSED or negative errno. */
int pairs_probe(struct pairs *p, uint32_t node, const struct pairs_probe *k);
/* The node's clock was set: what collectives said about it is void. Communicators
 * that were quarantined for a contradiction with this node are believed again. */
void pairs_step(struct pairs *p, uint32_t node);

/* A communicator; nodes[i] is where its member i runs. Its index or negative errno. */
int64_t pairs_group(struct pairs *p, const uint32_t *nodes, uint32_t n_members);

/* Whose exit proves that somebody else had entered. */
enum pairs_need {
	PAIRS_NEED_NOTHING, /* pieces may be empty: nobody need have waited */
	PAIRS_NEED_ALL,	    /* every output needs every input */
	PAIRS_NEED_ROOT,    /* everybody needs the root: broadcast, a receive from its sender */
	PAIRS_ROOT_NEEDS,   /* the root needs everybody: reduce, gather */
};

struct pairs_call {
	uint32_t group;
	uint64_t seq;	/* for reports */
	uint32_t kind;	/* operation and algorithm: exits are compared within one kind */
	uint64_t bytes; /* and size class */
	enum pairs_need need;
	uint32_t root;	      /* member, for the two root kinds */
	bool together;	      /* the algorithm lets everybody go at about the same time */
	bool enter_is_queued; /* entries are stamped early, at the call: a duration says little */
	/* By member, host time. An entry may be early and an exit late, never the
	 * other way round. PAIRS_NONE: not seen. */
	const int64_t *enter_ns, *exit_ns;
};

/* exit of one before the entry of another that it needed. */
struct pairs_proof {
	uint32_t group, early, late; /* nodes: early left, late had not entered */
	uint64_t seq;
	int64_t t_ns;		   /* fleet, about */
	int64_t impossible_ns;	   /* by so much, after everything is granted */
	int64_t said_ns, known_ns; /* late - early: this call says at most, known is at least */
	enum pairs_source {
		PAIRS_FROM_ONE_CLOCK, /* one node's own clock: the match is wrong */
		PAIRS_FROM_PROBES,    /* against the probes: a match, a rate or a missed step */
		PAIRS_FROM_CALLS,     /* against other collectives */
	} source;
};

/* 0, an outcome or negative errno. proof is written on PAIRS_VIOLATION, and on
 * PAIRS_QUARANTINED when the call contradicts again (else impossible_ns is 0). */
int pairs_call(struct pairs *p, const struct pairs_call *c, struct pairs_proof *proof);

bool pairs_is_quarantined(const struct pairs *p, uint32_t group);
/* What it was quarantined for last; false when it never was. early == late: a
 * circle of several calls' bounds through that node. */
bool pairs_proof_of(const struct pairs *p, uint32_t group, struct pairs_proof *ret);
/* Calls whose exits are no proof of anything and yet unlike all others: checked, but
 * no bound was taken from them. */
uint64_t pairs_n_doubtful(const struct pairs *p, uint32_t group);
uint64_t pairs_n_violations(const struct pairs *p, uint32_t group);

/* Close the open second: before the last questions of a finished run. */
void pairs_finish(struct pairs *p);

enum pairs_basis {
	PAIRS_BY_NOTHING, /* offset is a hint */
	PAIRS_BY_PROBES,
	PAIRS_BY_BOUNDS, /* collectives' bounds are narrower than the probes' soft error */
	PAIRS_BY_EXITS,
};

/* host i = host j + offset at t. */
struct pairs_answer {
	int64_t offset_ns, lo_ns, hi_ns; /* hard: lo <= truth <= hi */
	int64_t soft_ns;		 /* half a width, PAIRS_UNBOUNDED when unknown */
	enum pairs_basis basis;
};

/* 0 or PAIRS_REFUSED. Good for the last minute; older instants get older truth
 * and wider bounds. */
int pairs_ask(const struct pairs *p, uint32_t i, uint32_t j, int64_t t_ns,
	      struct pairs_answer *ret);

/* One node on the time line that all its peers share: fleet = host + offset.
 * Differences of two nodes are what pairs_ask() says, up to its clipping. */
int pairs_place(const struct pairs *p, uint32_t node, int64_t host_ns, int64_t *ret_t_ns,
		int64_t *ret_soft_ns);

/* One instant of node i less one of node j: offset, lo, hi and soft are of that.
 * PAIRS_REFUSED also for a node that no probe has named. */
int pairs_between(const struct pairs *p, uint32_t i, int64_t i_ns, uint32_t j, int64_t j_ns,
		  struct pairs_answer *ret);
/* A node's place as exits have it. */
struct pairs_offset {
	int64_t offset_ns, soft_ns;
	uint32_t part; /* nodes of one part share one line */
};
/* Around host_ns. PAIRS_REFUSED where exits say nothing. */
int pairs_offset(const struct pairs *p, uint32_t node, int64_t host_ns, struct pairs_offset *ret);

/* How a member's exit usually differs from the others', once known. false before. */
bool pairs_exit_bias(const struct pairs *p, uint32_t group, uint32_t kind, uint64_t bytes,
		     uint32_t member, int64_t *ret_bias_ns, int64_t *ret_sd_ns);
