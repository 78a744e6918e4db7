/* path_internal.h - a walk along the critical path: where it stands, and the steps that
 * it takes (path.c says which).
 */
#pragma once

#include "graph_internal.h"

#define PATH_MAX_STRETCHES 65536
#define PATH_STEP_END (-1)
#define PATH_ELSEWHERE (-2)

enum where { ON_HOST, AT_END, AT_BEGIN, OVER };

struct walk {
	struct graph *g;
	const struct graph_step *gs;
	struct path *path;
	enum where where;
	const struct rank_work *w;
	int32_t rank;
	const struct node *node;
	int64_t t_ns;
	int64_t next;	   /* node from whose begin the host was followed, or PATH_… */
	uint64_t n_visits; /* of nodes, in search of who was ready last */
	bool no_memory;
};

/* path.c */

/* Where a rank's own step begins: the host is in it and the device done with the last one. */
int64_t path_from_ns(const struct graph *g, const struct rank_work *w, int32_t rank);
/* The stretch (begin, t]; the walk goes on at its begin, or is over at the step's.
 * NULL when there is none of it. */
struct stretch *path_add(struct walk *k, enum fact_segment_kind kind, int64_t begin_ns);
static inline const struct rank_work *path_work(const struct graph_step *gs, int32_t rank)
{
	return rank >= 0 && (uint32_t)rank < gs->n_ranks ? gs->ranks[rank] : NULL;
}

/* From where the walk stands to what that waited for: path_host.c, path_device.c (the begin
 * of a node) and path_calls.c (the end of one). */
void path_on_host(struct walk *k);
void path_at_begin(struct walk *k);
void path_at_end(struct walk *k);
