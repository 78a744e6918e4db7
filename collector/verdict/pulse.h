/* pulse.h - the order in which each process worked: its steps, its calls, and what ran on the
 * device between a call and the work that waits for it.
 *
 * A reduction of gradients must come behind the work that makes them. What is a
 * gradient nobody says, but accumulation shows in the shape of the work: the same
 * kernels, pass after pass, then one piece of work that waits for the reduction.
 * A reduction with whole passes between it and what waits for it has left these
 * passes out. A launch log of each process is kept as far back as its oldest call
 * that nobody has waited for yet, and judged when the waiting kernel ends. In a large
 * job only of every second, third ... process: all run the same program, and such a
 * fault is everybody's.
 *
 * The same from the loop's own words, where launches are not seen: passes backward
 * that begin behind the step's last reduction and before its optimizer.
 */
#pragma once

#include "../align/roster.h"
#include "../match/match.h"

#define PULSE_SMALL_BYTES 64 /* a call of so little is a flag, a loss or a count */
#define PULSE_CALLS 128 /* a process's newest */
#define PULSE_BUCKETS 64
#define PULSE_LOGS 512 /* processes with a launch log, at most about so many */
#define PULSE_NO_STEP EVENT_STEP_UNKNOWN

struct pulse_sync { /* of one process and group */
	uint32_t group;
	uint32_t pending, from; /* launches: the last reduction; behind the last that was waited for */
	uint32_t n_left_out;	/* reductions behind which whole passes ran */
	uint32_t n_right, n_unclear;
	bool doubtful;		/* of no step, so perhaps of several; or one kernel each */
	uint32_t first_step, last_step;
	uint64_t first_call;
	uint32_t n_kernels, n_passes; /* of the first one: left out */
	int64_t at_ns;		      /* host */
};

struct pulse_call {
	uint32_t group;
	uint8_t op, older; /* older: so many calls before lies one of the same bucket; 0 = none */
	uint64_t seq, bytes;
	int64_t asked_ns, left_ns; /* host; left FACT_NONE: inside */
};

struct pulse_proc {
	struct pulse_step { int64_t at_ns; uint32_t step; } *steps; /* ring */
	uint64_t n_steps;
	uint32_t before; /* steps of earlier starts of the job */
	struct pulse_call *calls; /* ring */
	uint64_t n_calls;
	uint64_t newest_of[PULSE_BUCKETS]; /* of calls, by hash: behind the newest; 0 = none */
	struct pulse_work *works; /* ring by launch */
	enum { LOG_UNDECIDED, LOG_KEPT, LOG_NONE } log;
	uint32_t n_slots, newest; /* newest: launch; 0 = none */
	uint32_t synced, blocked_on; /* the host has waited for all launches up to here, for that one */
	uint32_t step_from;	  /* first launch of this step */
	uint32_t n_unjudged, judge_from; /* kernels that have not run, and their first launch */
	struct pulse_sync *syncs;
	uint32_t n_syncs, n_syncs_alloc;
	struct pulse_pass *passes; /* of the newest steps */
	uint64_t n_backward;	   /* passes that it said it made */
	uint32_t running;	   /* the kernel that began last */
	int64_t running_ns, busy_ns; /* since when; of kernels, about */
	struct pulse_sync by_passes; /* as far as the loop's words tell */
};

struct pulse {
	struct pulse_proc *v;
	uint32_t n;
	uint32_t n_procs; /* there are, when the event comes */
};

void pulse_fini(struct pulse *p);
/* 0 or -ENOMEM. step: the process's, once it is known of the event; group: index of a call's
 * group, UINT32_MAX = no call. */
int pulse_event(struct pulse *p, uint32_t proc, uint32_t step, const struct event *ev, uint32_t group,
		uint64_t seq);
/* The step that the process was in, of two that meet then the one that ends: numbers are
 * checked at the end of a step. EVENT_STEP_UNKNOWN. */
uint32_t pulse_step(const struct pulse *p, uint32_t proc, int64_t at_ns);
const struct pulse_proc *pulse_proc(const struct pulse *p, uint32_t proc); /* NULL */
/* What it knows of that call; NULL. */
const struct pulse_call *pulse_call(const struct pulse *p, uint32_t proc, uint32_t group,
				    uint64_t seq);
/* The last reduction of at most so many bytes that it asked for by then; NULL. */
const struct pulse_call *pulse_small_call(const struct pulse *p, uint32_t proc, int64_t at_ns);
/* Nothing more will come: what is open is judged. */
void pulse_finish(struct pulse *p);
bool pulse_reduces(unsigned op);
