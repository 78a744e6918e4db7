/* peers.h - hosts, agents and processes of the run, as ingest knows them.
 *
 * Tables that only grow, indexed by the numbers that the store uses as keys.
 * What a peer can make us remember is bounded by the limits below.
 */
#pragma once

#include "probes.h"
#include "ranges.h"
#include "store/job.h"
#include "../proto/frame.h"
#include "../proto/shm.h"

#include <stdbool.h>
#include <stdint.h>

#define PEERS_MAX_AGENTS 16384
#define PEERS_MAX_HOSTS 16384
#define PEERS_MAX_PROCESSES (1u << 20)
#define AGENT_MAX_PROCS 4096	 /* processes one agent may number */
#define PROCESS_MAX_NAMES (1u << 20) /* larger ids are refused */
#define PEER_NONE UINT32_MAX

/* The best exchanges of one second of the host's. */
struct host_second {
	bool open;
	int64_t number, since_raw_ns;
	struct row_exchange there, back;
	int64_t t0_ns, offset_ns; /* the clock as believed when it opened: fleet - host, */
	double rate;		  /* and how that changes */
	int64_t there_ns, back_ns; /* how long, against that */
};

struct host {
	uint32_t id;
	char name[FRAME_MAX_ID + 1], boot_id[FRAME_MAX_ID + 1];
	uint64_t time_ns_inode;
	bool same_clock;
	int64_t offset_ns; /* fleet - RAW: exact with same_clock, else a first guess */

	struct row_snapshot snapshot; /* the newest */
	bool has_snapshot;
	uint32_t snapshot_agent; /* who told it; PEER_NONE = an earlier collector */
	struct host_second second;
	int64_t probe_raw_ns; /* the newest exchange by UDP, 0 = none */
	enum row_way probe_way;
	/* for how many exchanges are wanted */
	int quality; /* 0 unplaced, 1 poor, 2 good */
	int64_t changed_raw_ns; /* 0 = not judged yet */
	/* as last told */
	enum row_way told_way;
	const char *told_why;
	int64_t told_path_raw_ns; /* 0 = never */
};

/* A batch that waits for one with a smaller number. */
struct held {
	struct held *next; /* by seq */
	struct inbox_msg *msg;
	struct frame frame; /* open */
	int64_t since_raw_ns;
};

#define AGENT_BEATS 8

struct agent {
	uint32_t id, host;
	uint8_t agent_id[16];
	uint64_t stream; /* 0 = has not said hello to this collector process */
	char version[32];
	int64_t seen_raw_ns; /* 0 = not by this collector process */
	uint64_t n_given_up, cpu_ns, rss_bytes;
	/* for its use of the CPU between two heartbeats */
	uint64_t cpu_before_ns;
	int64_t cpu_before_raw_ns;
	double cpu_ratio;
	int64_t told_raw_ns; /* its row was last written */

	struct ranges seqs; /* batches taken */
	uint64_t next_seq;
	uint64_t oldest_seq; /* nothing below will come (again): the agent said so; 0 = not yet */
	struct held *held; /* owned */

	uint32_t *proc_of; /* its number -> process id, PEER_NONE; owned */
	uint32_t n_procs;

	/* Answers to heartbeats: an exchange must match one. */
	struct { int64_t t1_ns, t2_ns; } beats[AGENT_BEATS];
	unsigned next_beat;
	char notice[200]; /* told with each answer; "" = none */

	uint32_t place; /* in the circle of those that probe each other; PEER_NONE */
	struct probe_peer *probe; /* owned; NULL: it has not said hello to this process */
	struct frame_probing_state probing; /* as it said last */
};

struct ring {
	struct ranges stored;
	/* The row of it in the current job. */
	uint64_t job_serial;
	size_t job_row;
};

struct process {
	struct row_process row;
	struct ring *rings[SHM_MAX_RINGS]; /* owned, as they appear */
	uint64_t *names; /* bitmap of known ids; owned */
	uint32_t n_names; /* its size in bits */
	uint64_t job_serial; /* its row is in the job of this serial … */
	size_t job_row;	     /* … at this place */
};

struct peers {
	struct host *hosts;
	uint32_t n_hosts, n_hosts_alloc;
	struct agent **agents;
	uint32_t n_agents, n_agents_alloc;
	struct process **processes;
	uint32_t n_processes, n_processes_alloc;
	uint32_t *by_unique; /* open addressing on (host, unique): process id + 1 */
	uint32_t n_by_unique;
	uint32_t rank_of[FACT_MAX_RANKS]; /* rank -> newest process + 1, 0 = none */
	int32_t max_rank; /* -1 = none */
};

int peers_init(struct peers *p);
void peers_fini(struct peers *p);

struct host *peers_find_host(struct peers *p, const char *name, const char *boot_id,
			     uint64_t time_ns_inode);
/* The next number. NULL without memory or beyond the limit. */
struct host *peers_add_host(struct peers *p);

struct agent *peers_find_agent(struct peers *p, const uint8_t agent_id[16]);
struct agent *peers_find_stream(struct peers *p, uint64_t stream);
struct agent *peers_add_agent(struct peers *p, const uint8_t agent_id[16]);
/* A number that cannot be guessed and leads to the agent at once. */
int agent_new_stream(struct agent *a);
/* The process that the agent calls `proc`; NULL unknown. */
struct process *agent_process(struct peers *p, const struct agent *a, uint32_t proc);
int agent_set_process(struct agent *a, uint32_t proc, uint32_t process);

struct process *peers_find_process(struct peers *p, uint32_t host, uint64_t unique);
struct process *peers_add_process(struct peers *p, uint32_t host, uint64_t unique);
struct process *peers_rank(struct peers *p, int32_t rank); /* newest process of it */

/* NULL without memory. ring < SHM_MAX_RINGS. */
struct ring *process_ring(struct process *p, uint32_t ring);
/* Is this the first time? -ENOMEM, else 0 or 1. id < PROCESS_MAX_NAMES. */
int process_note_name(struct process *p, uint32_t id);
