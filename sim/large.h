/* large.h - a job of thousands of ranks with one planted fault, fed to the core.
 *
 * Layout: rank = (d * pp + p) * tp + t. Each step is a pipeline of micro-batches,
 * one forward and one backward in turn; every piece of compute ends in a
 * collective of its tensor-parallel group, and the last calls of a step are those
 * of the data-parallel group, as gradients are reduced. A step at a time is made and fed, so that memory
 * does not grow with the run. Every draw is a function of seed, step, rank and
 * place: the same job without its fault is played beside it, and what the fault
 * costs is known.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct core;
struct event;

#define LARGE_N_NAMES 8 /* of a process; 0 is none */

enum large_fault {
	LARGE_HEALTHY,
	LARGE_SLOW_RANK,  /* compute of rank `target` times factor */
	LARGE_SLOW_HOST,  /* of every rank of host `target` */
	LARGE_SLOW_STAGE, /* of every rank of pipeline stage `target` */
	LARGE_SLOW_ALL,
	LARGE_SLOW_LINK,  /* transfers of tensor-parallel group `target` times factor */
	LARGE_PAUSES,	  /* another rank each step stands still for factor * compute_ns */
	LARGE_SKIPPED,	  /* rank `target` leaves out its last call of step from_step */
	LARGE_N_FAULTS,
};

struct large_config {
	uint32_t dp, pp, tp;
	uint32_t n_micro;	/* a step; 0 = 4 * pp, 1 without a pipeline */
	/* Collectives of a rank in a step, at least 2 * n_micro + 1; without tensor
	 * parallelism those of its group are compute alone. */
	uint32_t n_calls;
	uint32_t n_dp_calls; /* of them at the end; 0 = an eighth, all where there is nothing else */
	uint32_t ranks_a_host;	/* 0 = 8 */
	int64_t compute_ns;	/* before each call */
	int64_t transfer_ns;
	double noise;		/* of compute and transfers, a share */
	uint64_t seed;
	int64_t max_offset_ns;	/* of the hosts' clocks; 0: all are the collector's own */
	bool device;		/* launches, kernels and streams; otherwise calls that block */
	enum large_fault fault;
	uint32_t target, from_step;
	double factor;
	/* Each call as it ends (never for one that hangs). Calls of a group count from 0. */
	void (*on_call)(void *arg, const char *group, uint64_t seq, int32_t last_rank,
			int64_t first_ns, int64_t last_ns, int64_t end_ns);
	void *arg;
};

struct large_step { /* truth of one step; fleet time */
	int64_t begin_ns, end_ns;
	int64_t dur_ns, healthy_dur_ns; /* with the fault and without */
	uint64_t n_events;
	bool hangs;
};

struct large;

/* 0, -EINVAL for a layout that cannot be, or -ENOMEM. */
int large_new(struct large **ret, const struct large_config *cfg);
void large_free(struct large *l); /* NULL is fine */
uint32_t large_world(const struct large *l);
uint32_t large_n_hosts(const struct large *l);

/* Hosts, processes, names and groups. 0 or a negative errno of the core. */
int large_introduce(const struct large *l, struct core *c);
/* Makes the next step; its events stay until the one after. 0 or -ENOMEM. After a
 * step that hangs there is none: 1. */
int large_next(struct large *l, struct large_step *ret);
/* Feeds what large_next() made, with the clock exchanges and ticks of its time. */
int large_feed(struct large *l, struct core *c);
/* The events of the step that was made; ring 0 is the host's, 1 the device's. Host
 * times in .tick. They stay until the next step. Returns how many. */
size_t large_events(const struct large *l, uint32_t rank, unsigned ring, const struct event **ret);
/* What a name's id means in the rank's events. */
void large_name(const struct large *l, uint32_t rank, uint32_t name, char *out, size_t n_out);
/* The ranks that the fault is about, ascending; all of them for LARGE_SLOW_ALL,
 * none for a link or for pauses. Returns how many. */
size_t large_culprits(const struct large *l, int32_t *out, size_t max);
