/* graph_internal.h - what the files of the graph share. */
#pragma once

#include "graph.h"
#include "../match/between.h"

/* graph.c: where an event of that process belongs, its step by the life's own count;
 * *ret NULL when that is closed. 0 or -ENOMEM. */
int graph_work(struct graph *g, struct proc *p, uint32_t own, struct rank_work **ret);
int graph_close_oldest(struct graph *g);

/* graph_events.c: the node of that key; NULL when this rank has none in this step. */
struct node *graph_node(const struct rank_work *w, uint32_t group, uint32_t seq);
/* The node of that launch, whatever it is; NULL. */
struct node *graph_launched(const struct rank_work *w, uint32_t launch);
struct instant graph_instant(const struct graph *g, const struct rank_work *w, int64_t host_ns);
static inline bool node_ran(const struct node *n)
{
	return n->kind >= NODE_KERNEL && n->begin_ns != FACT_NONE && n->end_ns != FACT_NONE;
}

/* path_host.c: the work of the device that ended last before t; of one launch, 0 = of all. */
const struct node *path_device_before(const struct rank_work *w, uint32_t launch, int64_t t_ns);

/* One stretch of the path, newest first while it is walked. */
struct stretch {
	const struct rank_work *w;
	const struct node *node; /* kernel, transfer, launch and queue: of which; NULL */
	int64_t dur_ns, err_ns;
	int64_t excess_ns;
	int64_t held_ns, held_err_ns; /* a transfer's: how much earlier without `from` alone */
	int32_t rank, from;	      /* from: who was waited for; -1 */
	uint32_t name;		      /* text + 1 */
	uint32_t n_joined;	      /* 1 = itself */
	uint8_t kind;		      /* enum fact_segment_kind */
	uint8_t phase;
	bool undecided, within_error;
};

struct path {
	FACT_ARRAY(struct stretch) v;
	bool cut; /* longer than it may be, or a piece is not known */
	int64_t *typical; /* scratch */
};

/* The path of a step whose work is all here. 0, 1 when nobody ended it, -ENOMEM. */
int path_tell(struct graph *g, const struct graph_step *gs);
void path_free(struct path *p);

/* path_tell.c: the stretches of g->path as facts; w, rank: where it begins. 0 or -ENOMEM. */
int path_put(struct graph *g, const struct graph_step *gs, const struct rank_work *w, int32_t rank,
	     const struct instant *begin, const struct instant *end);

/* edges.c: all that a path is found among. 0 or -ENOMEM. */
int edges_tell(struct graph *g, const struct graph_step *gs);

/* blame.c: what of a told path was whose. 0 or -ENOMEM. */
int blame_put(struct graph *g, const struct fact_path *p);

/* peers.c: the other end of a message's channel; -1 when its name does not say. */
int32_t graph_message_peer(struct graph *g, uint32_t group, int32_t rank);

/* excess.c */
#define EXCESS_PEERS 32
int64_t excess_of_node(const struct graph *g, const struct graph_step *gs, int32_t rank,
		       const struct node *n, int64_t own_ns);
/* Of the host between two calls that block: after node k of the rank, up to node j
 * (-1: the begin and the end of its step). */
int64_t excess_of_run_up(const struct graph_step *gs, int32_t rank, int64_t k, int64_t j,
			 int64_t own_ns);
/* Of dur_ns in a phase or in named work, by what its ranks spend in it in all. */
int64_t excess_of_scope(const struct graph_step *gs, int32_t rank, enum item_label label,
			uint32_t what, int64_t dur_ns);

/* stages.c: G, S, Q, R and U of the calls of devices. */
int stages_tell(struct graph *g, const struct graph_step *gs);
