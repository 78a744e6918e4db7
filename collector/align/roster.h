/* roster.h - the hosts and processes of a run, and their instants on the time line. */
#pragma once

#include "clock.h"
#include "../idmap.h"
#include "../../proto/event.h"

#include <stddef.h>

#define ROSTER_MAX_RINGS 256
#define ROSTER_MAX_NAMES (1u << 20)
#define RING_MAX_DEPTH 16

struct host {
	uint32_t id;
	char *name; /* NULL until told */
	struct clock clock;
	/* One line for all instants of this host in one comparison. */
	uint64_t placed_epoch;
	struct clock_line placed;
};

/* What is open on one thread of a process. */
struct ring {
	bool used;
	int64_t last_ns;
	int64_t end_ns; /* of the work that ended on it last; 0 = none since the last collective */
	uint8_t depth, n_sync;
	uint8_t phases[RING_MAX_DEPTH];
	uint32_t outer_step; /* of phases[0] */
	int64_t outer_begin_ns;
	uint32_t sync_step, sync_group, sync_name; /* of the outermost blocking call */
	uint64_t sync_seq;
	uint32_t sync_low;
	int64_t sync_begin_ns;
	bool is_host; /* a thread of the program, not a device */
	uint32_t work_depth, work_step; /* named work; step of the outermost */
	int64_t work_begin_ns;
};

struct name_use {
	uint32_t text;	 /* index + 1 into the roster's texts, 0 = not told */
	uint32_t group;	 /* index + 1 of match's group */
	uint32_t member; /* this rank's place in it */
};

/* Events that came before their rank was known. */
struct early {
	uint32_t ring;
	uint64_t chunk;
	struct event ev;
};

struct proc {
	uint32_t id, host; /* host: index */
	int32_t rank, world_size, restart_count;
	int64_t tick_error_ns;
	uint32_t life; /* index + 1 into the analysis' incarnations, 0 = none yet */
	bool gone, died; /* died: it did not say that it leaves */
	host_time gone_at;
	struct ring *rings;
	uint32_t n_rings;
	struct name_use *names;
	uint32_t n_names;
	struct early *early;
	size_t n_early, n_early_alloc;
	uint32_t cur_step; /* last step begun; EVENT_STEP_UNKNOWN */
	uint64_t n_lost_pending; /* lost before any step was seen */
};

struct roster {
	struct host *hosts;
	struct proc *procs;
	char **texts;
	uint32_t n_hosts, n_hosts_alloc, n_procs, n_procs_alloc, n_texts, n_texts_alloc;
	struct idmap host_of, proc_of;
	uint32_t *text_slots; /* open addressing by content: index + 1 */
	uint32_t n_text_slots;
	uint64_t epoch;
	/* What to add to a host's offset around t, from what else is known; NULL = nothing. */
	int64_t (*shift)(const void *arg, uint32_t host, host_time t, int64_t offset_ns);
	const void *shift_arg;
};

void roster_fini(struct roster *r);
/* Find or make. NULL without memory. */
struct host *roster_host(struct roster *r, uint32_t id);
struct proc *roster_proc(struct roster *r, uint32_t id);
/* NULL when unknown. */
struct host *roster_find_host(const struct roster *r, uint32_t id);
struct proc *roster_find_proc(const struct roster *r, uint32_t id);
/* NULL without memory or past the limit. */
struct ring *roster_ring(struct proc *p, uint32_t ring);
int roster_name(struct roster *r, struct proc *p, uint32_t id, const char *text, size_t n_text);

/* All instants placed between two calls of roster_compare() use one line a
 * host: their order on a host is that of the host's own clock. */
static inline void roster_compare(struct roster *r)
{
	r->epoch++;
}
/* The errors include the process's tick conversion; CLOCK_UNBOUNDED when the host
 * was never aligned, and near a step of its clock: nothing certain rests on it. */
struct fleet_point roster_place(struct roster *r, const struct proc *p, int64_t host_ns);
