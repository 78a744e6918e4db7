/* path_device.c - the begin of a node: what let it begin. */
#include "path_internal.h"

#define IMPLIED_NS 20000 /* a device begins what may begin within less */
#define MAX_VISITS 20000000 /* of nodes, in a path's searches for who was ready last */

/* Where waits between streams are not told, what ended just before is what it waited for. */
static const struct node *implied_need(const struct rank_work *w, const struct node *n)
{
	const struct node *last = NULL;

	for (uint32_t i = 0; i < w->n_nodes; i++) {
		const struct node *o = &w->nodes[i];

		if ((o->flags & NODE_DEVICE) && o->launch < n->launch && node_ran(o) &&
		    o->end_ns <= n->begin_ns && n->begin_ns - o->end_ns <= IMPLIED_NS &&
		    (!last || o->end_ns > last->end_ns))
			last = o;
	}
	return last;
}

/* What ended last of what this one had to wait for on its own device. */
static const struct node *device_need(const struct rank_work *w, const struct node *n)
{
	const struct node *last = NULL, *implied;

	for (uint32_t i = 0; i < w->n_nodes; i++) {
		const struct node *o = &w->nodes[i];

		if ((o->flags & NODE_DEVICE) && o->stream == n->stream && o->launch < n->launch &&
		    node_ran(o) && o->end_ns <= n->begin_ns && (!last || o->end_ns > last->end_ns))
			last = o;
	}
	for (uint32_t i = 0; i < w->n_waits; i++) {
		const struct node *o;

		if (w->waits[i].launch != n->launch)
			continue;
		o = graph_launched(w, w->waits[i].other);
		if (o && node_ran(o) && o->end_ns <= n->begin_ns && (!last || o->end_ns > last->end_ns))
			last = o;
	}
	if ((last && n->begin_ns - last->end_ns <= IMPLIED_NS) ||
	    (n->launch_ns != FACT_NONE && n->begin_ns - n->launch_ns <= IMPLIED_NS))
		return last;
	implied = implied_need(w, n);
	return implied ? implied : last;
}

/* When work on a device could have begun, as far as its own rank goes. */
static int64_t ready_ns(const struct rank_work *w, const struct node *n)
{
	const struct node *need = device_need(w, n);
	int64_t ready = n->launch_ns;

	return need && need->end_ns > ready ? need->end_ns : ready;
}

/* Some traces have a call begin on all its ranks at once, when the last of them is ready:
 * the wait is a gap before it. Then that one is followed, from when it was ready. */
static bool waited_before(struct walk *k, const struct node *n)
{
	const struct group *group = &k->g->match->groups[n->group - 1];
	int64_t own_ns = ready_ns(k->w, n), since_ns = own_ns;
	struct instant begin = graph_instant(k->g, k->w, n->begin_ns);
	const struct rank_work *last = NULL;
	int32_t rank = k->rank;
	struct stretch *s;
	struct gap at = { 0 };

	if (own_ns == FACT_NONE || n->begin_ns - own_ns <= IMPLIED_NS)
		return false;
	roster_compare(k->g->roster);
	begin = graph_instant(k->g, k->w, n->begin_ns);
	for (uint32_t i = 0; i < group->n_members; i++) {
		const struct rank_work *w = path_work(k->gs, group->ranks[i]);
		const struct node *o = w ? graph_node(w, n->group, n->seq) : NULL;
		struct instant there;
		struct gap before;

		if (!o || !node_ran(o) || !(o->flags & NODE_DEVICE) || k->n_visits > MAX_VISITS)
			continue;
		k->n_visits += w->n_nodes + w->n_waits;
		there = graph_instant(k->g, w, ready_ns(w, o));
		before = match_between(k->g->match, &begin, &there);
		if (there.host_ns == FACT_NONE || before.err_ns == CLOCK_UNBOUNDED ||
		    before.ns + before.err_ns < 0 || n->begin_ns - before.ns <= since_ns + before.err_ns)
			continue;
		since_ns = n->begin_ns - before.ns;
		at = before;
		last = w;
		rank = group->ranks[i];
	}
	if (!last || last == k->w)
		return false;
	s = path_add(k, SEGMENT_QUEUE, since_ns < n->begin_ns ? since_ns : n->begin_ns);
	if (s) {
		s->from = rank;
		s->err_ns = at.err_ns;
	}
	if (k->where == OVER)
		return true;
	k->w = last;
	k->rank = rank;
	k->node = graph_node(last, n->group, n->seq);
	k->t_ns = ready_ns(last, k->node);
	return true;
}

void path_at_begin(struct walk *k)
{
	const struct node *n = k->node, *need;

	if ((n->flags & NODE_DEVICE) && n->kind == NODE_CALL && k->t_ns == n->begin_ns &&
	    waited_before(k, n))
		return;
	if (!(n->flags & NODE_DEVICE)) {
		k->where = ON_HOST;
		k->next = n->flags & NODE_BLOCKS ? n - k->w->nodes : PATH_ELSEWHERE;
		k->node = NULL;
		return;
	}
	need = device_need(k->w, n);
	if (need && (n->launch_ns == FACT_NONE || need->end_ns >= n->launch_ns)) {
		k->where = AT_END;
		path_add(k, SEGMENT_QUEUE, need->end_ns);
		k->node = need;
		return;
	}
	k->where = ON_HOST;
	k->next = PATH_ELSEWHERE;
	if (n->launch_ns == FACT_NONE || n->launch_ns > n->begin_ns) {
		k->path->cut = true;
		path_add(k, SEGMENT_QUEUE, INT64_MIN);
		k->where = OVER;
		return;
	}
	/* Until the device was done with the step before it could not begin. */
	path_add(k, n->launch_ns < path_from_ns(k->g, k->w, k->rank) ? SEGMENT_QUEUE : SEGMENT_LAUNCH,
	    n->launch_ns);
	k->node = NULL;
}
