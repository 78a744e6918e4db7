/* device.h - what runs on a rank's device, and whose time that is.
 *
 * A device's events come in order. Every instant of it belongs to one of three:
 * a kernel runs; none does, but a collective or message is under way; or it is
 * idle. So nothing is counted twice however much overlaps. The time of an
 * operation is that of the step which launched it, as the host may be steps ahead;
 * idle time is of the step whose work ends it.
 */
#pragma once

#include "steps.h"

#define DEVICE_MAX_RUNNING 16 /* kernels, and calls, at one time; more are not told apart */

struct running_kernel {
	uint32_t step;
	uint16_t stream;
};

struct running_call {
	uint64_t seq;
	uint32_t step, group; /* group: index + 1 */
	uint32_t name, low;   /* as its events have it */
};

struct device { /* of one process */
	bool told;	   /* it has told when something ran */
	bool submits;	   /* calls in a ring of its own are the device's */
	int64_t at_ns;	   /* all before is given to steps */
	int64_t compute_ns, call_ns, idle_ns; /* of all time, whatever the step */
	struct running_kernel kernels[DEVICE_MAX_RUNNING];
	struct running_call calls[DEVICE_MAX_RUNNING];
	uint32_t n_kernels, n_calls; /* the oldest first */
	uint32_t kernel_step; /* the newest of which a kernel has begun, */
	int64_t kernel_ns;    /* and when its first did */
	uint32_t call_launch;	/* the last launch that proved to be a call */
	uint32_t done_step;	/* the newest step of which something ended, + 1 */
	uint32_t cut_step;	/* where the last told step of it ends: its number + 1 */
	int64_t cut_ns;
	int64_t host_ns;	/* its host's last launch or wait; FACT_NONE */
	int64_t news_now_ns;	/* core time */
};

/* That of a process, made when it is new; NULL without memory. */
struct device *device_of(struct steps *s, const struct proc *p);
/* NULL when the process has told of none. */
struct device *device_known(const struct steps *s, uint32_t proc);
/* What ran is not known any more: events are lost. */
void device_forget(struct steps *s, uint32_t proc);

/* LAUNCH, COLL_SUBMIT, KERNEL_*. step: the fact's number, EVENT_STEP_UNKNOWN where
 * it belongs to none. 0 or negative errno. */
int device_event(struct steps *s, struct proc *p, const struct event *ev, uint32_t step,
		 uint64_t chunk);
/* The host comes to the end of a step or of its waiting (waited). */
void device_host(struct steps *s, const struct proc *p, uint32_t step, int64_t t_ns, bool waited);
/* Is a call told in that ring the device's? */
bool device_has_call(const struct steps *s, const struct proc *p, const struct ring *ring);
int device_call(struct steps *s, struct proc *p, const struct event *ev, uint32_t step,
		uint32_t group, uint64_t seq, uint64_t chunk);

/* Is work of that step still to come? Not once work of a later one has ended. */
bool device_works(const struct steps *s, const struct step *st, const struct rank_step *rs);
/* From where to where the step is counted on this rank: until its loop and its work
 * on the device are both done, from where the step before it was. */
void device_cut(struct steps *s, const struct step *st, struct rank_step *rs);
