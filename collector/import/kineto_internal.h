/* kineto_internal.h - what is kept of a profiler's file between its reader and what is
 * told of it. */
#pragma once

#include "kineto.h"
#include "kernel_class.h"
#include "kineto_groups.h"
#include "kineto_profile.h"
#include "rank_name.h"

enum kept_sort {
	KEPT_STEP,   /* number = the profiler's */
	KEPT_RANGE,  /* an annotation of the host, and where its work ran */
	KEPT_DEVICE_RANGE,
	KEPT_LAUNCH, /* a call of the runtime with a correlation */
	KEPT_WAIT,   /* the host stands until the device is done */
	KEPT_WORK,   /* on the device */
	KEPT_CALL,   /* a collective, on the device */
	KEPT_HOST_CALL, /* a collective that the host itself does */
	KEPT_NOTE,   /* the host's name of a collective, around its launch */
	KEPT_PARAMS, /* the host's word about a collective: found by number = External id */
};

struct kept {
	int64_t begin_ns, end_ns;
	int64_t number;	     /* step; launches and work: correlation, -1 = none */
	int64_t external;    /* External id, -1 = none */
	int64_t launched_ns; /* of work whose launch is there; -1 */
	uint64_t at;	     /* its place in the order of time, once that is known */
	uint32_t name;	     /* index + 1 */
	uint32_t call;	     /* index + 1 of its call; 0 = nothing known */
	uint32_t stream;
	uint32_t note;	     /* index + 1 of the name of the note around its launch */
	uint32_t launch;     /* number of the launch, from 1; 0 = none */
	uint32_t step;	     /* EVENT_STEP_UNKNOWN */
	uint8_t sort;
	uint8_t class; /* of what runs on the device */
};

struct call { /* the arguments of a collective: equal ones once */
	char op[64], dtype[32], group[64], desc[64];
	char ranks[256];
	bool ranks_cut;
	int64_t n_in, n_out, size; /* -1 = not told */
	int64_t start, stride;	   /* of its ranks, where they are regular */
};

struct kineto {
	struct trace *trace;
	struct runs *kept; /* struct kept, by begin; NULL = none yet */
	int64_t last_ns;   /* the latest end of one */
	struct call *calls;
	uint32_t n_calls, n_calls_alloc;
	char **names;
	uint32_t n_names, n_names_alloc, n_step_names;
	void *name_ids; /* json_t */
	uint8_t *name_classes; /* of kernels, by name: 0 = not asked yet; owned */
	int64_t base_ns;
	int64_t rank, world_size; /* -1 = not told */
	char host[64];		  /* "" = not told */
	bool has_events, is_kineto;
	bool is_list, names_ops; /* of functions (kineto_list.c); operators have a name of their own: "aten::add" */
	struct kineto_groups groups;
	struct profile profile;
	char remark[240]; /* of a file that is fine */
	char *why;
	size_t n_why;
};

bool kineto_fail(struct kineto *k, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* What people should know of a file that was read. */
void kineto_remark(struct kineto *k, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* False with a sentence in why, or t->no_memory. */
bool kineto_keep(struct kineto *k, const struct kept *v);

/* What was kept, joined, in the order of time: steps, annotations, launches that have work,
 * waits, work and collectives; each is given once. Launches are numbered in this order, and work has
 * its launch's number, step and note, a collective what the host said of it. It is one pass
 * over files of any size: whoever needs what is before or behind keeps it. */
struct kineto_joined {
	struct runs *told;
	bool has_steps;
	uint64_t *used; /* a bit a launch, in the order of all of them; owned */
	uint32_t *used_before; /* a word: bits of the words before; owned */
	uint32_t n_launches;
};

/* k->kept is gone afterwards. */
bool kineto_joined_init(struct kineto_joined *j, struct kineto *k);
void kineto_joined_fini(struct kineto_joined *j); /* zeroed is fine */
/* Each runs_next() is a struct kept. NULL only with no_memory; end it with trace_read_end(). */
struct runs_reader *kineto_joined_read(struct kineto_joined *j, struct kineto *k);
/* Its launch as numbered among those that have work. */
uint32_t kineto_launch(const struct kineto_joined *j, const struct kept *v);

/* What an event of a list of functions is. */
enum profile_role kineto_list_role(const struct kineto *k, const struct trace_event *ev);

/* All that was kept as events of that rank. False without memory. */
bool kineto_tell(struct kineto *k, struct trace_rank *r, uint64_t *ret_n_events);
