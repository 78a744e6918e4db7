/* play_internal.h - a play while it is made: programs become nodes and edges
 * (program.c), which are then followed in time (play.c). */
#pragma once

#include "play.h"

struct play_edge {
	uint32_t from, to; /* to begins no earlier than from ends */
};

struct node_list {
	uint32_t *v, n, n_alloc;
};

/* One rank while its program is unrolled. Streams: the last node of each. */
struct play_rank {
	uint32_t rank, host, n_launches, step;
	uint32_t *tails;
	struct node_list *calls;   /* by group */
	struct node_list pending;  /* waited for by the next kernel */
	struct node_list unsynced; /* device work that no sync has waited for */
	uint32_t *n_sent, *n_received; /* by peer */
};

struct play_build {
	struct play *play;
	char *why;
	size_t n_why;
	bool refused, no_memory;
	uint32_t max_nodes;
	uint64_t n_visits;
	uint32_t n_nodes_alloc, n_pairs_alloc, n_waits_alloc;
	struct play_edge *edges;
	uint32_t n_edges, n_edges_alloc;
	struct play_rank at;
};

/* All ranks' programs. False when refused or out of memory. */
bool program_expand(struct play_build *b);
bool play_refuse(struct play_build *b, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
