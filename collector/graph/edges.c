/* edges.c - every edge of a step, for one who asks.
 *
 * The path needs few of them and follows those from what is; told all they are some
 * ten a call and rank. Calls have one join each: an edge from every rank to it and one
 * back, so twice as many as ranks and not their square.
 */
#include "graph_internal.h"

#include <errno.h>
#include <stdlib.h>

struct telling {
	struct graph *g;
	const struct rank_work *w;
	int32_t rank;
	int64_t offset_ns; /* of this rank's clock around the step */
};

static int put(const struct telling *t, enum fact_edge_kind kind, int64_t from_ns, int64_t to_ns,
	       const struct node *n)
{
	struct fact_edge *e = FACTS_PUSH(t->g->facts, edges);
	bool call = n && n->kind == NODE_CALL;

	if (!e)
		return -ENOMEM;
	*e = (struct fact_edge){ .kind = kind, .from_rank = t->rank, .to_rank = t->rank,
				 .from_ns = from_ns + t->offset_ns, .to_ns = to_ns + t->offset_ns,
				 .err_ns = t->g->roster->procs[t->w->proc].tick_error_ns,
				 .group = call ? n->group - 1 : UINT32_MAX,
				 .seq = call ? match_seq(t->g->match, n->group - 1, n->seq) : 0 };
	return 0;
}

/* ---- one rank ---- */

struct moment {
	int64_t begin_ns, end_ns;
};

static int by_begin(const void *a, const void *b)
{
	const struct moment *x = a, *y = b;

	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	return x->end_ns < y->end_ns ? -1 : x->end_ns > y->end_ns;
}

/* What its host thread did, one after the other. */
static int put_program(const struct telling *t)
{
	const struct rank_work *w = t->w;
	struct moment *v = malloc(((size_t)w->n_nodes + w->n_items + 1) * sizeof *v);
	size_t n = 0;
	int r = 0;

	if (!v)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->n_nodes; i++) {
		const struct node *o = &w->nodes[i];

		if (o->launch_ns != FACT_NONE)
			v[n++] = (struct moment){ o->launch_ns, o->launch_ns };
		else if (!(o->flags & NODE_DEVICE) && node_ran(o))
			v[n++] = (struct moment){ o->begin_ns,
						  o->flags & NODE_BLOCKS ? o->end_ns : o->begin_ns };
	}
	for (uint32_t i = 0; i < w->n_items; i++)
		if (w->items[i].label == IN_WAIT && w->items[i].end_ns != FACT_NONE)
			v[n++] = (struct moment){ w->items[i].begin_ns, w->items[i].end_ns };
	qsort(v, n, sizeof *v, by_begin);
	for (size_t i = 1; r == 0 && i < n; i++)
		r = put(t, EDGE_PROGRAM, v[i - 1].end_ns < v[i].begin_ns ? v[i - 1].end_ns : v[i].begin_ns,
			v[i].begin_ns, NULL);
	free(v);
	return r;
}

/* What was before it in its stream. */
static const struct node *before_in_stream(const struct rank_work *w, const struct node *n)
{
	for (const struct node *o = n; o-- > w->nodes;)
		if ((o->flags & NODE_DEVICE) && o->stream == n->stream && o->launch < n->launch && node_ran(o))
			return o;
	return NULL;
}

static int put_device(const struct telling *t)
{
	const struct rank_work *w = t->w;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < w->n_nodes; i++) {
		const struct node *n = &w->nodes[i], *o;

		if (!(n->flags & NODE_DEVICE) || !node_ran(n))
			continue;
		if (n->launch_ns != FACT_NONE)
			r = put(t, EDGE_LAUNCH, n->launch_ns, n->begin_ns, n);
		o = before_in_stream(w, n);
		if (r == 0 && o)
			r = put(t, EDGE_STREAM, o->end_ns, n->begin_ns, n);
	}
	for (uint32_t i = 0; r == 0 && i < w->n_waits; i++) {
		const struct node *n = graph_launched(w, w->waits[i].launch);
		const struct node *o = graph_launched(w, w->waits[i].other);

		if (n && o && node_ran(n) && node_ran(o))
			r = put(t, EDGE_WAIT, o->end_ns, n->begin_ns, n);
	}
	for (uint32_t i = 0; r == 0 && i < w->n_items; i++) {
		const struct item *v = &w->items[i];
		const struct node *o = v->label == IN_WAIT && v->end_ns != FACT_NONE
					       ? path_device_before(w, v->what, v->end_ns) : NULL;

		if (o)
			r = put(t, EDGE_WAIT, o->end_ns, v->end_ns, NULL);
	}
	return r;
}

/* ---- between ranks ---- */

/* When all were there; false when that is not known. */
static bool find_join(const struct telling *t, const struct node *n, struct instant *ret)
{
	struct graph *g = t->g;
	const struct graph_step *gs = g->v[g->edges_of % GRAPH_MAX_STEPS];

	*ret = graph_instant(g, t->w, n->begin_ns);
	if (n->kind == NODE_CALL) {
		const struct coll_last *last = match_last(g->match, n->group - 1,
							  match_seq(g->match, n->group - 1, n->seq));

		if (!last || last->rank < 0)
			return false;
		*ret = (struct instant){ last->proc, last->host_ns,
					 roster_place(g->roster, &g->roster->procs[last->proc],
						      last->host_ns) };
	} else {
		int32_t peer = graph_message_peer(g, n->group, t->rank);
		const struct rank_work *w = peer >= 0 && (uint32_t)peer < gs->n_ranks ? gs->ranks[peer] : NULL;
		const struct node *o = w ? graph_node(w, n->group, n->seq) : NULL;
		struct instant there;

		if (!o || !node_ran(o))
			return false;
		there = graph_instant(g, w, o->begin_ns);
		if (match_between(g->match, &there, ret).ns > 0)
			*ret = there;
	}
	return true;
}

static int put_joins(const struct telling *t)
{
	for (uint32_t i = 0; i < t->w->n_nodes; i++) {
		const struct node *n = &t->w->nodes[i];
		struct instant join, own;
		struct fact_edge *e;
		struct gap gap;

		if (n->kind < NODE_CALL || !node_ran(n) || !find_join(t, n, &join))
			continue;
		own = graph_instant(t->g, t->w, n->begin_ns);
		gap = match_between(t->g->match, &join, &own);
		if (put(t, EDGE_ENTRY, n->begin_ns, n->begin_ns + gap.ns, n) < 0 ||
		    put(t, EDGE_END, n->begin_ns + gap.ns, n->end_ns, n) < 0)
			return -ENOMEM;
		e = &t->g->facts->edges.v[t->g->facts->edges.n - 2];
		e[0].to_rank = e[1].from_rank = -1;
		e[0].err_ns = e[1].err_ns = gap.err_ns;
	}
	return 0;
}

int edges_tell(struct graph *g, const struct graph_step *gs)
{
	int r = 0;

	roster_compare(g->roster);
	for (uint32_t i = 0; r == 0 && i < gs->n_ranks; i++) {
		struct telling t = { .g = g, .w = gs->ranks[i], .rank = (int32_t)i };
		struct fleet_point at;

		if (!t.w || t.w->from_ns == FACT_NONE)
			continue;
		at = roster_place(g->roster, &g->roster->procs[t.w->proc], t.w->from_ns);
		t.offset_ns = at.at.ns - t.w->from_ns;
		r = put_program(&t);
		if (r == 0)
			r = put_device(&t);
		if (r == 0)
			r = put_joins(&t);
	}
	return r;
}
