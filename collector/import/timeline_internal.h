/* timeline_internal.h - operations of a timeline, between its reader, its replay and
 * what is told of it. */
#pragma once

#include "timeline.h"

enum lane { LANE_COMPUTE, LANE_FORWARD_SEND, LANE_FORWARD_RECV, LANE_BACKWARD_SEND, LANE_BACKWARD_RECV, LANE_COLL, N_LANES };

/* Who takes part in a collective. */
enum scope { SCOPE_ALONE, SCOPE_REPLICAS, SCOPE_STAGES, SCOPE_ALL };

/* What the format's names stand for. Others are work of their thread. */
enum role { ROLE_WORK, ROLE_STEP, ROLE_FORWARD, ROLE_BACKWARD, ROLE_OPTIMIZER, ROLE_MESSAGE, ROLE_COLL };

struct op {
	int64_t begin_ns, end_ns;
	int64_t ready_ns; /* the worker had nothing else to do from here on */
	uint32_t worker; /* index; of its thread until it is known whose that is */
	uint32_t step;	/* index */
	int32_t micro, seq; /* -1 = none */
	uint32_t nth;	/* of its kind on its worker in this step */
	uint32_t join;	/* REPLAY_ALONE = nobody */
	int16_t chunk;	/* -1 = none */
	uint8_t kind;	/* index */
};

struct thread {
	char pid[64], tid[64];
	bool named, talks; /* talks: a thread of communication */
	uint32_t dp, pp, tp;
	uint32_t worker;
};

struct kind {
	char name[64];
	enum role role;
	enum lane lane;
	enum scope scope;
	uint32_t ideal; /* kinds with one ideal: the first of them */
};

struct worker {
	uint32_t dp, pp, tp;
	int32_t rank;	   /* among those in the file, from 0 without gaps */
	int32_t job_rank; /* in the job, of the worker's first tensor rank */
};

struct timeline {
	struct trace *trace;
	struct op *ops; /* by step, worker, begin once sorted */
	uint32_t n_ops, n_ops_alloc;
	struct thread *threads;
	uint32_t n_threads, n_threads_alloc;
	void *thread_ids; /* json_t: by process and thread */
	struct kind *kinds;
	uint32_t n_kinds, n_kinds_alloc;
	struct worker *workers;
	uint32_t n_workers, n_workers_alloc;
	int64_t *steps; /* the file's numbers, growing */
	uint32_t n_steps;
	uint32_t n_dp, n_pp, n_tp;
	uint32_t n_joins;
	bool linked;	  /* messages carry their number of their edge in seq */
	bool unplaced;	  /* who is which stage is not known */
	bool interleaved; /* several model chunks a stage: another schedule */
	const char *not_replayed; /* why; static, NULL = it was */
	char *why;
	size_t n_why;
};

bool timeline_fail(struct timeline *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Room for one more of v; size is that of one. */
bool timeline_grow(struct timeline *l, void *v, uint32_t n, uint32_t *n_alloc, size_t size, uint32_t max);
/* The kind of that name, made where it is new. */
bool timeline_kind(struct timeline *l, const char *name, uint8_t *ret);
bool timeline_add(struct timeline *l, const struct op *op);
/* Ranks of the catalogue from those in the job. */
void timeline_rank_workers(struct timeline *l);
/* All that is left, once ops (their step a number) and workers are there. */
bool timeline_finish(struct timeline *l);
void timeline_free(struct timeline *l);
/* A row a step and worker: what it computed, and what part of the time it did not. */
bool timeline_put_rows(struct timeline *l);
/* Who is joined with whom, and since when each could begin. */
bool timeline_join(struct timeline *l);
/* The what-if facts, where the schedule is understood. */
bool timeline_what_if(struct timeline *l);
/* The job's events, as probes would have said them. */
bool timeline_tell(struct timeline *l);
