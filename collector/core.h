/* core.h - align -> match -> graph -> verdict, as one library without I/O.
 *
 * Fed by the live collector, by imports and by the simulator alike; what is
 * proven in simulation holds live. One thread at a time. Time is a parameter:
 * the core never reads a clock.
 *
 * Order of calls for a process: core_host, core_process, then names and events
 * in ring order. Events of different rings may interleave freely and ranks may
 * lag each other by any amount; memory is bounded by core_config.
 */
#pragma once

#include "facts.h"
#include "../proto/event.h"

#include <stdbool.h>

struct core;

struct core_config {
	/* Steps waited for; older ones close incomplete. 0 = by world size: as many
	 * as fit into 64 MiB, from 64 to 4096 (a chunk of one thread may hold a
	 * hundred short steps before the next thread's chunk comes). */
	uint32_t n_open_steps;
	uint32_t n_open_collectives; /* a group; 0 = 4096 */
	/* Ranks that will be told of, whatever their numbers; 0 = the whole world. */
	uint32_t n_ranks;
	int64_t step_late_ns; /* close a step this long after its first end; 0 = 2 s */
	bool no_paths;	      /* of steps: to see what they cost */
	bool no_heat;	      /* nobody looks: core_heat() stays empty */
};

/* facts is where everything is appended; it may be swapped by core_set_facts().
 * 0 or -ENOMEM. */
int core_new(struct core **ret, const struct core_config *cfg, struct facts *facts);
void core_free(struct core *c); /* NULL is fine */
void core_set_facts(struct core *c, struct facts *facts);

/* A clock. same_clock: it is the collector's own, offset is exact (error 0).
 * Otherwise the host is unaligned until the first exchange, and what it does with
 * others places it: offset_ns is what its wall clock says of fleet - host, 0 = it says
 * nothing and its stamps count from some boot. */
int core_host(struct core *c, uint32_t host, bool same_clock, int64_t offset_ns);
/* What people call it, for sentences and culprits. */
int core_host_name(struct core *c, uint32_t host, const char *name);
/* One two-way exchange: t0, t3 host; t1, t2 fleet. As often as they come. */
int core_exchange(struct core *c, uint32_t host, host_time t0, fleet_time t1, fleet_time t2,
		  host_time t3);
/* The host's CLOCK_REALTIME at that instant, read within half_ns of it. */
int core_wall(struct core *c, uint32_t host, host_time at, int64_t real_ns, int64_t half_ns);

struct core_process {
	uint32_t process; /* caller's id, unique over the run */
	uint32_t host;
	int32_t rank, world_size, restart_count; /* rank -1 = not known yet */
	int64_t tick_error_ns;
};
/* New process, or one whose identity became known. */
int core_process(struct core *c, const struct core_process *p);
enum core_process_state { CORE_ALIVE, CORE_LEFT, CORE_DIED };
int core_process_state(struct core *c, uint32_t process, enum core_process_state s, host_time at);

int core_name(struct core *c, uint32_t process, uint32_t id, const char *text, size_t n_text);
/* Host times in .tick. chunk is an increasing number of the caller's for
 * core_low_water(). */
int core_events(struct core *c, uint32_t process, uint32_t ring, uint64_t chunk,
		const struct event *ev, size_t n);
/* Members of a group (JSON array of ranks), from a meta.group record. */
int core_group(struct core *c, const char *name, const int32_t *ranks, size_t n);
/* What a process said besides events (fields: a JSON object). Kept are the kinds
 * that a rule asks for, the first few of each of a process. */
int core_record(struct core *c, uint32_t process, host_time at, const char *category,
		const char *fields_json, size_t n_fields);
/* A reading of a gauge of that process; of the host where process is UINT32_MAX.
 * Kept are the newest of each, and a thinned past. */
int core_gauge(struct core *c, uint32_t process, uint32_t host, host_time at, const char *name,
	       double value);
/* How far dumps show each rank to be, for the rules: the caller's until core_free(). */
struct dumped;
void core_dumped(struct core *c, const struct dumped *d);
/* What a replay of all the job's operations found, for the rules; its facts are the
 * caller's to store. */
void core_replayed(struct core *c, const struct fact_what_if *v, size_t n, uint32_t first_step,
		   uint32_t last_step);
/* n events of this process are gone for good; lowers coverage from here on. */
int core_lost(struct core *c, uint32_t process, host_time at, uint64_t n);

/* These came after their turn, behind a gap that core_lost() told of: they are
 * stored, and counted as late. */
void core_late(struct core *c, const struct event *ev, size_t n);

/* The edges of this step are told with its path, to facts->edges. */
void core_edges(struct core *c, uint32_t step);

/* Let time pass: closes late steps, runs rules. Call it at least 4 times a second. */
int core_tick(struct core *c, fleet_time now);
/* No more input is coming (end of run, end of import): close everything. */
int core_finish(struct core *c, fleet_time now);

/* What replay cannot rebuild, because it is final and its chunks may be gone:
 * which steps and sequences are closed, and the numbers of groups and restarts.
 * A few kilobytes; keep it in the same transaction as the facts and the low
 * water mark. Returns the size; nothing is written when n_out is too small. */
size_t core_save(const struct core *c, unsigned char *out, size_t n_out);
/* Into a new core, before any other call. 0, -ENOMEM, -EINVAL when malformed. */
int core_load(struct core *c, const unsigned char *in, size_t n);
/* Then every stored rank_step row in order of step, in any portions (heatmap and rules; no fact is told),
 * hosts, processes, names, exchanges, and the chunks from the low water mark on
 * in their old order. */
int core_restore_rank_steps(struct core *c, const struct fact_rank_step *v, size_t n);

/* The smallest chunk number that open state still needs: after a restart,
 * replaying from it rebuilds this state. UINT64_MAX = nothing is open. */
uint64_t core_low_water(const struct core *c);

/* The time line: where is this host instant? 0, or 1 when the host has never been
 * aligned. Near a step of its clock the bound is FACT_UNBOUNDED. */
int core_map(const struct core *c, uint32_t host, host_time t, struct fleet_point *ret);

struct core_stats {
	uint64_t n_events, n_unknown_kind, n_steps, n_collectives, n_lost;
	uint64_t n_late_events; /* came too late for the analysis; over restarts too */
	uint64_t n_bad_events; /* times, rings or processes that cannot be */
	uint32_t first_step, last_step; /* last complete one */
	int64_t max_clock_error_ns;     /* over aligned hosts */
	uint32_t n_hosts_unaligned; /* never, or not now */
};
void core_stats(const struct core *c, struct core_stats *ret);

/* The heatmap's blocks live in the core and are read by serve on the same
 * thread. */
struct heat;
struct heat *core_heat(struct core *c);
