/* graph.h - one step over all its ranks: what was done, and what it had waited for.
 *
 * A node is work with a begin and an end: a kernel, a call of a collective, one end
 * of a message. What a host thread was in besides (waits, named work, phases,
 * buckets) is an item. Edges are not kept, they follow from what is: order of a
 * thread and of a stream, launch before begin, STREAM_WAIT, and between ranks the
 * last arrival of a call. path.c walks them back from the end of a step, which
 * costs what the path is long and not what the step is wide; edges.c tells them
 * all for one who asks.
 *
 * Nodes are kept a (step, rank) at a time, in blocks that are used again. A step is
 * told, once and in order, when its host threads have ended it and its launches
 * have ended too: a device may lag steps behind. A call without an end that no device
 * is known to do is waited for as long as for a late step. GRAPH_MAX_NODES bounds what is
 * open; beyond it the oldest steps are closed without a path.
 */
#pragma once

#include "steps.h"

#define GRAPH_MAX_NODES (6u << 20)    /* of all open steps */
#define GRAPH_MAX_RANK_NODES (1u << 16) /* of one rank in one step, and one less: slots are narrow */
#define GRAPH_MAX_STEPS 4096

enum node_kind { NODE_LAUNCH, NODE_DEAD, NODE_KERNEL, NODE_CALL, NODE_MESSAGE };

enum node_flag {
	NODE_DEVICE = 1, /* begins on the device, when its stream and launch let it */
	NODE_BLOCKS = 2, /* its host thread is in it until it ends */
};

struct node {
	int64_t launch_ns, begin_ns, end_ns; /* host time; FACT_NONE */
	uint32_t name;	 /* the roster's text + 1 of it; 0 = not said */
	uint32_t group;	 /* match's + 1; GRAPH_MESSAGE | text of a message; 0 = none */
	uint32_t seq;	 /* low 32 bits of the call's number; without a group the launch */
	uint32_t launch; /* 0 = none */
	uint16_t stream;
	uint8_t kind, flags, op;
};

#define GRAPH_MESSAGE 0x80000000u

enum item_label { IN_WAIT, IN_WORK, IN_PHASE, IN_BUCKET };
struct item {
	int64_t begin_ns, end_ns; /* FACT_NONE: open */
	uint32_t what;		  /* launch waited for, text of the work, phase, group + 1 */
	uint32_t seq;		  /* of a bucket's call */
	uint32_t key;		  /* ring; of a bucket what tells it from the others */
	uint8_t label;
};

struct stream_wait {
	uint32_t launch, other;
};

/* One rank in one step. */
struct rank_work {
	struct rank_work *next_free;
	uint32_t proc;
	int64_t from_ns, to_ns; /* its own step, by its host thread; FACT_NONE */
	int64_t device_ns;	/* the last end on its device; INT64_MIN */
	struct node *nodes;
	uint16_t *slots; /* open addressing: index + 1 of the node with that group and number */
	struct item *items;
	struct stream_wait *waits;
	uint32_t n_nodes, n_nodes_alloc, n_slots, n_items, n_items_alloc, n_waits, n_waits_alloc;
	uint32_t n_pending; /* launched or begun, not ended */
	bool cut;	    /* not all of it is here */
};

struct graph_step {
	struct graph_step *next_free;
	uint32_t step;
	bool told;     /* by steps: every rank that can end it has, or was waited for */
	bool complete; /* every rank has; until then it may be told again */
	struct rank_work **ranks;
	uint32_t n_ranks, n_pending;
	uint32_t n_on_host; /* pending ones that no device is known to do */
	int64_t news_now_ns;
	int64_t begin_ns, dur_ns; /* as steps told */
};

struct graph {
	struct roster *roster;
	struct match *match;
	struct steps *steps;
	struct facts *facts;
	struct graph_step **v; /* by number */
	uint32_t base, next_step;
	struct graph_step *free_steps;
	struct rank_work *free_works;
	struct { /* how far the device of each rank has come in steps that are closed */
		uint32_t proc;
		int64_t device_ns;
	} *done;
	uint32_t n_done;
	uint64_t n_nodes, n_dropped; /* open; steps without a path for lack of room */
	int64_t late_ns, now_ns;
	/* of the newest event */
	struct rank_work *last;
	struct graph_step *last_step;
	uint32_t last_proc, last_own;
	struct channel { /* by text */
		int32_t source, target; /* peers.c */
	} *channels;
	uint32_t n_channels;
	uint32_t edges_of; /* step whose edges are told too; EVENT_STEP_UNKNOWN */
	struct path *path; /* scratch of path.c */
};

void graph_init(struct graph *g, struct roster *r, struct match *m, struct steps *s,
		int64_t late_ns);
void graph_fini(struct graph *g);
/* One event that steps_event() took, after it. 0 or -ENOMEM. */
int graph_event(struct graph *g, struct proc *p, uint32_t ring, const struct event *ev);
/* A step is told by steps; again when it changed. 0 or -ENOMEM. */
int graph_step_told(struct graph *g, const struct fact_step *step);
/* Tells the paths of what is complete, to g->facts. 0 or -ENOMEM. */
int graph_tick(struct graph *g, int64_t now_ns);
int graph_finish(struct graph *g);
