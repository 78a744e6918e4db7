/* pulse_internal.h - between pulse.c and the launch log in pulse_works.c */
#pragma once

#include "pulse.h"

#define PULSE_STEPS 64
#define PULSE_CALLS_MIN 64
#define PULSE_PASS_STEPS 4
#define PULSE_PASSES 32
#define PULSE_OPTIMIZERS 4

struct pulse_work { /* a launch */
	uint32_t launch, step;
	uint32_t synced, blocked_on; /* the host had waited for all up to here, for that one */
	uint32_t group; /* of a call: index + 1 */
	uint8_t op;
	bool call;	/* or a message: no kernel */
	bool met;
	uint16_t stream, n_waits;
	uint32_t step_first; /* the launches from here on are of the same step, without a gap */
	uint32_t waits[4];
	uint64_t seq;
	int64_t begin_ns, dur_ns; /* kernel: FACT_NONE until it has ended */
	uint32_t judge;		  /* index + 1 of the sync that this one waits for */
	uint32_t judged_call;	  /* its launch */
};

struct pulse_pass {
	bool used;
	uint32_t step, n;
	int64_t begin_ns[PULSE_PASSES], end_ns[PULSE_PASSES];
	uint32_t n_optimizers;
	int64_t optimizer_ns[PULSE_OPTIMIZERS];
	int64_t reduced_ns; /* the last; FACT_NONE */
};

struct pulse_call *pulse_call_of(const struct pulse_proc *p, uint32_t group, uint64_t seq); /* NULL */
/* The number of the step that the event is of, as the run counts them. */
uint32_t pulse_number(const struct pulse_proc *p, const struct event *ev);
int pulse_launch(struct pulse_proc *p, const struct event *ev);
void pulse_wait(struct pulse_proc *p, const struct event *ev);
int pulse_submit(struct pulse_proc *p, const struct event *ev, uint32_t group, uint64_t seq);
void pulse_kernel(struct pulse_proc *p, const struct event *ev);
