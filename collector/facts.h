/* facts.h - what the analysis concludes and the store keeps.
 *
 * The core (align -> match -> graph -> verdict) is a library without I/O: it is
 * fed events and time and appends facts here. The loop thread hands a filled
 * set to the store thread and takes a fresh one. Each fact has a natural key
 * and replaces the row of that key, so facts may be told again (after a
 * restart, or when a late rank completes a step).
 *
 * Times are fleet nanoseconds: the collector's time line, close to unix time
 * (int64_t ns since 1970), the same over restarts of the collector.
 */
#pragma once

#include "align/fleet.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FACT_NONE INT64_MIN /* a time or duration that is not known */
#define FACT_UNBOUNDED INT64_MAX /* an error bound of a host that was never aligned */
#define FACT_MAX_RANKS 65536

/* Growable array: n used of n_alloc, owned by the facts set. */
#define FACT_ARRAY(type) struct { type *v; size_t n, n_alloc; }

struct fact_step {
	uint32_t step;
	int64_t begin_ns, dur_ns, dur_err_ns; /* earliest begin to latest end over ranks */
	uint32_t n_ranks;
	int32_t slowest_rank; /* largest self time; -1 when too close to call */
	bool complete;        /* every rank of the world reported */
};

struct fact_rank_step {
	uint32_t step;
	int32_t rank;
	int64_t begin_ns, begin_err_ns, dur_ns; /* dur on the rank's own clock */
	int64_t self_ns;         /* dur - exposed communication - evaluation */
	int64_t exposed_comm_ns; /* the loop was blocked in or for collectives */
	int64_t wait_ns, wait_err_ns; /* part of exposed: until the last rank arrived */
	int64_t input_wait_ns; /* data phase */
	int64_t fwd_ns, bwd_ns, opt_ns, eval_ns; /* bwd without the exposed tail */
	double excess_ratio; /* self / median self of the peers in this step - 1; NaN unknown */
	uint32_t n_peers;
	double coverage; /* 1 = every event is here; lost events lower it */
	int64_t dur_err_ns; /* of dur, self and the phases: tick conversion */
	/* Where a device tells what ran, else FACT_NONE: dur = compute + exposed + idle. */
	int64_t compute_ns; /* kernels ran */
	int64_t idle_ns;    /* nothing ran */
	int64_t host_ns;    /* of idle: the host was in work that the program names */
	int64_t pause_ns; /* the longest that its host let pass without a launch or a wait for the
			   * device; not stored */
	int64_t loop_ns; /* where its loop began the step, host time; not stored */
	uint32_t proc;	 /* index in the roster; not stored */
};

struct fact_arrival {
	int32_t rank;
	int64_t enter_ns, exit_ns; /* exit FACT_NONE while inside */
	int64_t err_ns;            /* clock bound of both */
	/* For the last of them, inside the call or as a gap before it (split.h); FACT_NONE
	 * where it left before the last came, as it may when one rank sends to others. */
	int64_t wait_ns, wait_err_ns;
};

struct fact_collective {
	uint32_t group; /* index from fact_group */
	uint64_t seq;
	uint8_t op, dtype; /* event.h */
	uint64_t bytes;
	uint32_t step; /* EVENT_STEP_UNKNOWN */
	int64_t first_arrival_ns, last_arrival_ns, end_ns;
	int64_t skew_ns, skew_err_ns;
	int32_t last_rank; /* -1 when undecided */
	bool decided;      /* the last arrival is disjoint from every other */
	bool mismatch;     /* ranks disagree on op, dtype or bytes */
	bool gap; /* it began everywhere at once: waits are gaps before it, last_rank and
		   * skew go by who was ready when */
	uint32_t n_expected, n_seen; /* expected 0 = membership unknown */
	size_t first_arrival_index;  /* facts->arrivals[index .. index + n_seen) by rank */
};

struct fact_group {
	uint32_t group;
	const char *name;
	bool ranks_known;
	const char *ranks_json; /* [0,1,2,3] */
};

#define FACT_NO_DDP UINT32_MAX /* a call of a device that no wrapped module speaks of */

struct fact_bucket {
	uint32_t step, ddp, micro, bucket; /* bucket: of a call, its place in the step */
	uint32_t group; /* index + 1 from fact_group; 0 = unknown */
	int32_t rank;
	uint64_t bytes, seq;
	int64_t ready_ns, submitted_ns, started_ns, reduced_ns, applied_ns, err_ns;
};

/* What a stretch of a step's critical path is. */
enum fact_segment_kind {
	SEGMENT_HOST,	  /* its host thread; name: the phase */
	SEGMENT_WORK,	  /* work of the host that the program named */
	SEGMENT_INPUT,	  /* the phase that gets the next batch */
	SEGMENT_KERNEL,	  /* on the device */
	SEGMENT_LAUNCH,	  /* launched, and not begun although nothing was before it */
	SEGMENT_QUEUE,	  /* behind other work of its device */
	SEGMENT_TRANSFER, /* a call or a message, since the last had arrived */
	SEGMENT_CARRY,	  /* the rank was still in the step before */
	SEGMENT_N,
};

/* "host", "kernel", … */
const char *fact_segment_name(enum fact_segment_kind kind);

struct fact_segment {
	enum fact_segment_kind kind;
	int32_t rank, from_rank; /* from: the path was handed over by this one; -1 */
	uint32_t host;		 /* store's index */
	const char *name;	 /* of the kernel, the work, the phase or the message */
	uint32_t group;		 /* index from fact_group; UINT32_MAX = no collective */
	uint64_t seq;
	uint32_t bucket; /* of a wrapped module, that was transferred; UINT32_MAX = none */
	int64_t begin_ns, dur_ns, err_ns;
	int64_t excess_ns; /* over what its peers take for the same; FACT_NONE */
	int64_t held_ns, held_err_ns; /* last arrival after the one before it; FACT_NONE */
	bool undecided;	   /* who arrived last is within the clocks' error */
	uint32_t n_joined; /* stretches that this one stands for, each shorter than its error */
};

/* The critical path of a step over its ranks: its segments tile it from begin to end. */
struct fact_path {
	uint32_t step;
	int64_t begin_ns, dur_ns, dur_err_ns;
	bool complete; /* nothing that it asked for was missing */
	size_t first_segment, n_segments; /* facts->segments, in the order of time */
};

enum fact_edge_kind {
	EDGE_PROGRAM, /* order of a host thread */
	EDGE_STREAM,  /* order of a device's stream */
	EDGE_LAUNCH,  /* launched by the host, begun on the device */
	EDGE_WAIT,    /* a stream or the host waits for work of the device */
	EDGE_ENTRY,   /* a rank to the join of a call or message */
	EDGE_END,     /* the join to a rank */
	EDGE_N,
};
const char *fact_edge_name(enum fact_edge_kind kind);

/* What is at `to` could not be before what is at `from`. */
struct fact_edge {
	enum fact_edge_kind kind;
	int32_t from_rank, to_rank; /* -1: the join */
	int64_t from_ns, to_ns, err_ns; /* err: of the time between them */
	uint32_t group;			/* index from fact_group; UINT32_MAX = none */
	uint64_t seq;
};

/* What one rank put on it by one kind of work. */
struct fact_blame {
	uint32_t step;
	int32_t rank;
	uint32_t host; /* store's index */
	enum fact_segment_kind kind;
	const char *name;
	uint32_t group, bucket, n; /* n: segments */
	int64_t path_ns, held_ns, undecided_ns;
	int64_t excess_ns; /* FACT_NONE: no peer does the same */
};

enum fact_severity { SEVERITY_NOTICE, SEVERITY_SLOW, SEVERITY_WRONG, SEVERITY_STUCK };
enum fact_confidence { CONFIDENCE_CERTAIN, CONFIDENCE_LIKELY, CONFIDENCE_TOO_CLOSE,
		       CONFIDENCE_INSUFFICIENT };
enum fact_error_kind { ERROR_KIND_NONE, ERROR_KIND_SOFT, ERROR_KIND_HARD };

struct fact_verdict {
	char key[96]; /* natural key: class, culprit, onset; a repeat updates */
	const char *class_name; /* "slow.fixed_rank" */
	enum fact_severity severity;
	enum fact_confidence confidence;
	enum fact_error_kind error_kind;
	const char *culprit_json;   /* {"ranks":[2],"host":"…","detail":"forward"} */
	const char *sentence;       /* for a person, no markup */
	const char *evidence_json;  /* [{"view":"rank_step","step":40,"rank":2},…] */
	const char *rules_out_json; /* ["slow.global",…] with a reason each */
	const char *coverage_json;  /* {"ranks_silent":0,"events_lost":0} */
	uint32_t first_step, last_step;
	int64_t onset_ns, detected_ns; /* fleet time */
	double cost_ratio;             /* step time added / step time without */
	int64_t margin_ns, error_ns;
};

struct fact_rank {
	int32_t rank, local_rank, world_size, restart_count;
	uint32_t host; /* store's index */
	uint32_t process;
};

struct fact_clock {
	uint32_t host;
	int64_t at_ns; /* fleet */
	int64_t offset_ns, error_ns; /* fleet = host RAW + offset */
	int64_t rtt_ns;
	const char *quality; /* good, poor, refused */
	int64_t soft_ns;     /* what the noise says; FACT_NONE where it says nothing */
	double skew_ppb;     /* ns that offset_ns grows by in a second */
	const char *status;  /* fleet_status_name() */
};

/* A collective that cannot have been as its clocks and its matching say; what its
 * communicator says about clocks is no longer believed. */
struct fact_contradiction {
	uint32_t group;
	uint64_t seq;
	uint32_t early, late; /* hosts: early left before late had entered; the same one: a circle */
	int64_t at_ns, impossible_ns; /* by so much, after all bounds */
	const char *against;	      /* "own clock", "probes", "collectives" */
	int64_t lifted_ns;	      /* believed again since; FACT_NONE */
};

/* One host's clock against the reference host's, as probes and collectives have it. */
struct fact_pair {
	uint32_t host, reference;
	int64_t at_ns;
	int64_t correction_ns; /* what collectives add to the offset that the probes tell */
	int64_t width_ns;      /* of the hard bounds of it; FACT_UNBOUNDED */
	int64_t probe_width_ns; /* by the probes alone */
	int64_t soft_ns;       /* FACT_NONE */
	const char *basis;     /* "exits", "bounds", "probes", "nothing" */
};

/* The calls of one shape of group, one operation, type and power of two of the size,
 * over the run so far (verdict/rates.h). */
struct fact_comm_class {
	int64_t group; /* from fact_group; -1 = all groups of this shape */
	uint32_t n_ranks, n_hosts, n_groups;
	uint8_t op, dtype, size; /* size: power of two of the bytes */
	uint64_t n;
	double bytes, sum_ns;	     /* sums over the calls, of their transfers */
	int64_t min_ns, p50_ns, p95_ns, p99_ns, max_ns; /* quantiles within SKETCH_ERROR */
	int64_t err_ns;		     /* tick conversion of each transfer, the largest */
	double wait_ns, inside_ns;   /* sums over calls and ranks */
	uint64_t n_copies, copy_bytes, n_layouts;
	double peak_gbs; /* of the link; 0 = nobody said */
};

/* One rank of a pipeline in one step, on its device's (or host's) own clock. */
struct fact_stage {
	uint32_t step, stage, pipeline, n_stages, n_micro;
	int32_t rank;
	int64_t work_ns, collective_ns, message_ns, rest_ns; /* collective: without waiting */
	int64_t wait_ns; /* in collectives, for their last member */
	int64_t step_ns; /* the longest of all ranks */
	double theory_ratio; /* of the step, idle by the schedule */
};

/* What the job would do if: a part of it alone as it was and the rest ideal, or the
 * other way round. graph/whatif.h, graph/arrivals.h. */
struct fact_what_if {
	const char *scope;  /* static: job, rank, stage, replica, kind, worst ranks, last stage */
	const char *name;   /* which of them: "3", "forward-compute" */
	int64_t number;	    /* of a rank, stage or replica; -1 */
	double slowdown;    /* times the ideal, it alone as it was; NaN unknown */
	double share;	    /* of the gap that it being ideal closes; NaN unknown */
	int64_t step_ns;    /* mean of a step as it was */
	int64_t without_ns; /* … with it being ideal; FACT_NONE unknown */
	int64_t err_ns;	    /* of the difference of both */
	uint32_t n_steps, n_clear; /* clear: in which its share is above a half */
	const char *method; /* static */
};

struct fact_tile; /* heat.h */

struct facts {
	FACT_ARRAY(struct fact_step) steps;
	FACT_ARRAY(struct fact_rank_step) rank_steps;
	FACT_ARRAY(struct fact_collective) collectives;
	FACT_ARRAY(struct fact_arrival) arrivals;
	FACT_ARRAY(struct fact_group) groups;
	FACT_ARRAY(struct fact_bucket) buckets;
	FACT_ARRAY(struct fact_path) paths;
	FACT_ARRAY(struct fact_segment) segments;
	FACT_ARRAY(struct fact_blame) blames;
	FACT_ARRAY(struct fact_edge) edges; /* of a step that was asked for; not stored */
	FACT_ARRAY(struct fact_verdict) verdicts;
	FACT_ARRAY(struct fact_clock) clocks;
	FACT_ARRAY(struct fact_contradiction) contradictions;
	FACT_ARRAY(struct fact_pair) pairs;
	FACT_ARRAY(struct fact_comm_class) comm_classes;
	FACT_ARRAY(struct fact_stage) stages;
	FACT_ARRAY(struct fact_what_if) what_ifs;
	FACT_ARRAY(struct fact_tile *) tiles; /* sealed or dirty blocks, owned */
	FACT_ARRAY(char *) strings; /* owns what the const char * above point to */
};

void facts_init(struct facts *f);
void facts_clear(struct facts *f); /* keeps the arrays' memory */
void facts_fini(struct facts *f);

/* Room for one more at the end, zeroed; NULL without memory. */
#define FACTS_PUSH(f, field) \
	(facts_reserve((void **)&(f)->field.v, &(f)->field.n, &(f)->field.n_alloc, \
		       sizeof *(f)->field.v) \
		 ? &(f)->field.v[(f)->field.n - 1] : NULL)
bool facts_reserve(void **v, size_t *n, size_t *n_alloc, size_t size); /* n is raised */
/* A copy of the text that lives as long as the set; "" without memory. */
const char *facts_string(struct facts *f, const char *text);
const char *facts_printf(struct facts *f, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
