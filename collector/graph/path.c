/* path.c - the critical path of a step: from its last end back to what that waited for.
 *
 * The walk stands on one rank at one instant of that rank's clock, on its host
 * thread, at the end of a node or at the begin of one, and asks what was needed last:
 *
 *   end of a call    the member that arrived last (a hop to it), else itself
 *   begin of a node  its launch, what was before it in its stream, what it waited for
 *   the host         the last thing that it stood still for; between, its own work
 *
 * It ends where the rank's own step began: its host in it and its device done with
 * the step before.
 */
#include "path_internal.h"

#include <errno.h>

void path_free(struct path *p)
{
	if (!p)
		return;
	free(p->v.v);
	free(p->typical);
	free(p);
}

static int64_t tick_error(const struct walk *k)
{
	return k->g->roster->procs[k->w->proc].tick_error_ns;
}

int64_t path_from_ns(const struct graph *g, const struct rank_work *w, int32_t rank)
{
	bool same = (uint32_t)rank < g->n_done && g->done[rank].proc == w->proc;

	return same && g->done[rank].device_ns > w->from_ns ? g->done[rank].device_ns : w->from_ns;
}

static int64_t to_ns(const struct graph *g, const struct rank_work *w, int32_t rank)
{
	int64_t from = path_from_ns(g, w, rank), to = w->to_ns > from ? w->to_ns : from;

	return w->device_ns > to ? w->device_ns : to;
}

struct stretch *path_add(struct walk *k, enum fact_segment_kind kind, int64_t begin_ns)
{
	int64_t from = path_from_ns(k->g, k->w, k->rank);
	struct stretch *s;

	if (begin_ns <= from) {
		begin_ns = from;
		k->where = OVER;
	}
	if (begin_ns >= k->t_ns)
		return NULL;
	if (k->path->v.n == PATH_MAX_STRETCHES) {
		k->path->cut = true;
		k->where = OVER;
		return NULL;
	}
	s = FACTS_PUSH(k->path, v);
	if (!s) {
		k->no_memory = true;
		k->where = OVER;
		return NULL;
	}
	*s = (struct stretch){ .w = k->w, .node = k->node, .dur_ns = k->t_ns - begin_ns,
			       .err_ns = tick_error(k), .excess_ns = FACT_NONE,
			       .held_ns = FACT_NONE, .held_err_ns = FACT_NONE, .rank = k->rank,
			       .from = -1, .n_joined = 1, .kind = (uint8_t)kind };
	k->t_ns = begin_ns;
	return s;
}

/* From the rank that ended last; false when none has both ends. */
static bool begin_walk(struct walk *k, struct instant *ret_begin, struct instant *ret_end)
{
	bool any = false;

	roster_compare(k->g->roster);
	for (uint32_t i = 0; i < k->gs->n_ranks; i++) {
		const struct rank_work *w = k->gs->ranks[i];
		struct instant from, to;

		if (!w || w->from_ns == FACT_NONE || w->to_ns == FACT_NONE)
			continue;
		from = graph_instant(k->g, w, path_from_ns(k->g, w, (int32_t)i));
		to = graph_instant(k->g, w, to_ns(k->g, w, (int32_t)i));
		if (!any || from.at.at.ns < ret_begin->at.at.ns)
			*ret_begin = from;
		if (!any || to.at.at.ns > ret_end->at.at.ns) {
			*ret_end = to;
			k->w = w;
			k->rank = (int32_t)i;
			k->t_ns = to.host_ns;
		}
		k->path->cut |= w->cut;
		any = true;
	}
	if (!any)
		return false;
	k->node = k->t_ns > k->w->to_ns ? path_device_before(k->w, 0, k->t_ns) : NULL;
	k->where = k->node ? AT_END : ON_HOST;
	k->next = PATH_STEP_END;
	return true;
}

static void follow(struct walk *k)
{
	/* Bounds that contradict each other could lead in a circle. */
	for (uint32_t i = 0; k->where != OVER; i++) {
		if (i == 4 * PATH_MAX_STRETCHES) {
			k->path->cut = true;
			return;
		}
		switch (k->where) {
		case ON_HOST:
			path_on_host(k);
			break;
		case AT_END:
			path_at_end(k);
			break;
		case AT_BEGIN:
			path_at_begin(k);
			break;
		case OVER:
			break;
		}
	}
}

int path_tell(struct graph *g, const struct graph_step *gs)
{
	struct walk k = { .g = g, .gs = gs };
	struct instant begin, end;
	int r;

	if (!g->path && !(g->path = calloc(1, sizeof *g->path)))
		return -ENOMEM;
	k.path = g->path;
	k.path->v.n = 0;
	k.path->cut = false;
	if (!begin_walk(&k, &begin, &end))
		return 1;
	follow(&k);
	r = k.no_memory ? -ENOMEM : path_put(g, gs, k.w, k.rank, &begin, &end);
	if (r == 0)
		r = stages_tell(g, gs);
	return r == 0 && gs->step == g->edges_of ? edges_tell(g, gs) : r;
}
