/* nccl_log.h - NCCL's own log (NCCL_DEBUG=INFO), between the pieces of its reader.
 *
 * A line is "HOST:PID:TID [DEVICE] NCCL INFO …". Lines of many ranks come mixed, and two
 * may run into each other. What a rank tells of a communicator while it sets it up does
 * not name it: it is the one whose set-up this thread tells of next as complete.
 */
#pragma once

#include "nccl.h"

#define NCCL_LOG_MAX 1000000	/* facts, processes, communicators of a file */
#define NCCL_LOG_MAX_COMMS 4096 /* of a process */

struct nccl_worker { /* a thread, with its device */
	char host[NCCL_HOST];
	int64_t pid, tid, device;
	uint32_t process; /* index */
	uint32_t comm;	  /* index + 1: what its lines are of; 0 = of a set-up that is not told yet */
	uint32_t pending; /* index + 1 of the newest fact of that */
	uint32_t call;	  /* index + 1 of its last call */
	bool sets_up;
	int64_t n_channels;
};

struct nccl_process { /* a thread's process and device */
	char host[NCCL_HOST];
	int64_t pid, device;
	uint32_t n_comms, last_comm; /* index + 1 */
	char version[40];	     /* "" = it did not say */
};

struct nccl_comm {
	char pointer[24], hash[24], bus[24];
	char key[NCCL_KEY];
	uint32_t process, before; /* before: index + 1 of the one that its process had before */
	int64_t rank, n_ranks, device, nvml, n_nodes, n_channels, n_calls;
	bool complete;
};

enum nccl_fact_kind { NCCL_HOP, NCCL_TREE, NCCL_EDGE };

struct nccl_fact {
	uint8_t kind, index; /* index: of the connection */
	bool gdr, send;	     /* of an edge */
	char transport[24], nic[16];
	uint32_t comm, worker, next; /* comm, next: index + 1 */
	int32_t channel, v[5];	     /* hop: rank, previous, next; tree: rank, up, downs; edge: from, to */
	const char *said_by;	     /* static */
};

struct nccl_call { /* of one rank */
	uint32_t comm; /* index + 1 */
	char op[24], algorithm[16], protocol[16], at[40];
	int64_t number, count, dtype, reduction, root, low, high;
};

struct nccl_log {
	struct trace *trace;
	struct nccl_worker *workers;
	struct nccl_process *processes;
	struct nccl_comm *comms;
	struct nccl_fact *facts;
	uint32_t n_workers, n_workers_alloc, n_processes, n_processes_alloc, n_comms, n_comms_alloc;
	struct nccl_call *calls;
	uint32_t n_facts, n_facts_alloc, n_calls, n_calls_alloc;
	void *worker_ids, *process_ids; /* json_t */
	uint64_t n_lines, n_cut, n_left_out, n_unplaced;
};

/* What one line says. worker NULL: the line has no process. */
void nccl_log_message(struct nccl_log *l, struct nccl_worker *w, const char *at, bool warning, const char *text);
/* A new one, zeroed; NULL without memory or beyond the limits. */
struct nccl_fact *nccl_log_fact(struct nccl_log *l, struct nccl_worker *w, enum nccl_fact_kind kind);
struct nccl_call *nccl_log_call(struct nccl_log *l);
/* The newest communicator of that process with that address; NULL = none. */
struct nccl_comm *nccl_log_find(struct nccl_log *l, const struct nccl_worker *w, const char *pointer);
/* NULL without memory or beyond the limits. */
struct nccl_comm *nccl_log_add(struct nccl_log *l, const struct nccl_worker *w, const char *pointer);
/* A row of raw_nccl_line. */
void nccl_log_line(struct nccl_log *l, const struct nccl_worker *w, const char *at, const char *kind,
		   const char *key, const char *text);
/* The rows of all that the file told. False without memory. */
bool nccl_log_put(struct nccl_log *l);
/* After all files: communicators, their rings, ranks and what rules read. */
bool nccl_log_join(struct trace *t, struct trace_input *inputs, uint32_t n_inputs);
/* The ranks of the job, and their records. Rows behind n_rows are not the readers'. */
bool nccl_log_ranks(struct trace *t, uint32_t n_rows);
