/* path_calls.c - the end of a node: of a call or message, who came last to it. */
#include "path_internal.h"

#include <stdlib.h>

struct arrived { /* last, at a call */
	const struct rank_work *w; /* NULL: nobody but this rank itself */
	const struct node *node;
	int32_t rank;
	struct gap late; /* after this rank's own arrival */
	struct gap held; /* after the one before it */
	bool decided, knows_held;
};

static struct instant instant_of(const struct walk *k, uint32_t proc, int64_t host_ns)
{
	return (struct instant){ proc, host_ns,
				 roster_place(k->g->roster, &k->g->roster->procs[proc], host_ns) };
}

/* Who came last to a collective. True when this rank had to wait for that one. */
static bool last_of_call(struct walk *k, const struct node *n, struct arrived *ret)
{
	struct match *m = k->g->match;
	const struct coll_last *last = match_last(m, n->group - 1, match_seq(m, n->group - 1, n->seq));
	struct instant own, late, next;
	struct gap after_end;

	if (!last || last->rank < 0)
		return false;
	roster_compare(k->g->roster);
	late = instant_of(k, last->proc, last->host_ns);
	ret->rank = last->rank;
	ret->decided = last->decided;
	if (last->next_proc != UINT32_MAX) {
		next = instant_of(k, last->next_proc, last->next_host_ns);
		ret->held = match_between(m, &late, &next);
		ret->knows_held = true;
	}
	if (last->proc == k->w->proc)
		return false;
	own = graph_instant(k->g, k->w, n->begin_ns);
	ret->late = match_between(m, &late, &own);
	own = graph_instant(k->g, k->w, n->end_ns);
	after_end = match_between(m, &late, &own);
	if (ret->late.err_ns == CLOCK_UNBOUNDED) {
		ret->decided = ret->knows_held = false;
		return false; /* nothing is known of that host's clock: the path stays */
	}
	if (ret->late.ns <= 0 || (after_end.err_ns != CLOCK_UNBOUNDED && after_end.ns > after_end.err_ns)) {
		ret->knows_held = false;
		return false; /* it went on before that one came: a root waits for nobody */
	}
	ret->w = path_work(k->gs, last->rank);
	ret->node = ret->w && ret->w->proc == last->proc ? graph_node(ret->w, n->group, n->seq)
							 : NULL;
	return true;
}

/* The other end of a message, the latest of all that were launched as one. */
static bool last_of_message(struct walk *k, const struct node *n, struct arrived *ret)
{
	struct graph *g = k->g;
	const struct node *first = n;
	struct instant own;

	roster_compare(g->roster);
	own = graph_instant(g, k->w, n->begin_ns);
	while (n->launch && first > k->w->nodes && first[-1].launch == n->launch &&
	       first[-1].kind == NODE_MESSAGE)
		first--;
	for (; first < k->w->nodes + k->w->n_nodes; first++) {
		const struct rank_work *w;
		const struct node *peer;
		struct instant there;
		struct gap late;
		int32_t rank;

		if (first != n && (!n->launch || first->launch != n->launch))
			break;
		rank = graph_message_peer(g, first->group, k->rank);
		w = path_work(k->gs, rank);
		peer = w ? graph_node(w, first->group, first->seq) : NULL;
		if (!peer || !node_ran(peer))
			continue;
		there = graph_instant(g, w, peer->begin_ns);
		late = match_between(g->match, &there, &own);
		if (late.err_ns == CLOCK_UNBOUNDED)
			ret->decided = false;
		if (late.err_ns == CLOCK_UNBOUNDED || (ret->knows_held && late.ns <= ret->late.ns))
			continue;
		*ret = (struct arrived){ .w = w, .node = peer, .rank = rank, .late = late, .knows_held = true,
					 .held = { llabs(late.ns), late.err_ns },
					 .decided = llabs(late.ns) > late.err_ns };
	}
	/* A send may be over before anyone asks for it; nothing is received before it is sent. */
	if (ret->knows_held && ret->late.ns > 0 &&
	    ret->late.ns - (n->op == OP_RECV ? ret->late.err_ns : 0) <= n->end_ns - n->begin_ns)
		return true;
	ret->knows_held = ret->knows_held && ret->late.ns <= 0;
	return false;
}

/* A call that the host gave away: its communicator does one after the other. */
static const struct node *call_before(const struct rank_work *w, const struct node *n)
{
	const struct node *last = NULL;

	if (n->flags & (NODE_DEVICE | NODE_BLOCKS))
		return NULL;
	for (uint32_t i = 0; i < w->n_nodes; i++) {
		const struct node *o = &w->nodes[i];

		if (o != n && o->group == n->group && node_ran(o) && o->seq < n->seq &&
		    o->end_ns > n->begin_ns && o->end_ns <= n->end_ns &&
		    (!last || o->end_ns > last->end_ns))
			last = o;
	}
	return last;
}

static void hop(struct walk *k, const struct arrived *a)
{
	const struct node *n = k->node, *before = call_before(k->w, n);
	int64_t since = n->begin_ns + (a->late.ns < n->end_ns - n->begin_ns
					       ? a->late.ns : n->end_ns - n->begin_ns);
	struct stretch *s;

	if (before && before->end_ns > since) {
		k->where = AT_END;
		s = path_add(k, SEGMENT_TRANSFER, before->end_ns);
		k->node = before;
		if (s)
			s->excess_ns = excess_of_node(k->g, k->gs, k->rank, n, s->dur_ns);
		return;
	}
	k->where = AT_BEGIN;
	s = path_add(k, SEGMENT_TRANSFER, since);
	if (!s && k->where != OVER && k->path->v.n < PATH_MAX_STRETCHES && (s = FACTS_PUSH(k->path, v)))
		*s = (struct stretch){ .w = k->w, .node = n, .rank = k->rank, .from = -1,
				       .excess_ns = FACT_NONE, .n_joined = 1,
				       .kind = SEGMENT_TRANSFER };
	if (s) { /* of no length at all it still is where the path was handed over */
		s->excess_ns = excess_of_node(k->g, k->gs, k->rank, n, s->dur_ns);
		s->from = a->rank;
		s->undecided = !a->decided;
		s->err_ns = a->late.err_ns;
		s->held_ns = a->knows_held ? a->held.ns : FACT_NONE;
		s->held_err_ns = a->knows_held ? a->held.err_ns : FACT_NONE;
	}
	if (k->where == OVER)
		return;
	if (!a->node) { /* how it came there is not known in this step */
		k->path->cut = true;
		k->where = OVER;
		return;
	}
	k->w = a->w;
	k->rank = a->rank;
	k->node = a->node;
	k->t_ns = a->node->begin_ns;
	if (k->w->from_ns == FACT_NONE)
		k->where = OVER;
}

void path_at_end(struct walk *k)
{
	const struct node *n = k->node, *before;
	struct arrived a = { .rank = -1, .decided = true };
	struct stretch *s;

	if (n->kind == NODE_KERNEL) {
		k->where = AT_BEGIN;
		s = path_add(k, SEGMENT_KERNEL, n->begin_ns);
		if (s) {
			s->name = n->name;
			s->excess_ns = excess_of_node(k->g, k->gs, k->rank, n, s->dur_ns);
		}
		return;
	}
	if (n->end_ns > n->begin_ns &&
	    (n->kind == NODE_CALL ? last_of_call(k, n, &a) : last_of_message(k, n, &a))) {
		hop(k, &a);
		return;
	}
	before = call_before(k->w, n);
	k->where = before ? AT_END : AT_BEGIN;
	s = path_add(k, SEGMENT_TRANSFER, before ? before->end_ns : n->begin_ns);
	if (s)
		s->excess_ns = excess_of_node(k->g, k->gs, k->rank, n, s->dur_ns);
	if (s && !before)
		s->undecided = !a.decided;
	if (s && !before && a.knows_held) { /* the others waited for this one */
		s->held_ns = a.held.ns;
		s->held_err_ns = a.held.err_ns;
	}
	if (before)
		k->node = before;
}
