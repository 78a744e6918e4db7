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
#include "graph_internal.h"

#include <errno.h>

#define MAX_STRETCHES 65536
#define MAX_VISITS 20000000
#define IMPLIED_NS 20000 /* a device begins what may begin within less */
#define STEP_END (-1)
#define ELSEWHERE (-2)

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
	int64_t next; /* the host was followed from the begin of this node, or: */
	uint64_t n_visits; /* of nodes, in search of who was ready last */
	bool no_memory;
};

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

/* Where its own step begins: the host is in it and the device done with the last one. */
static int64_t from_ns(const struct graph *g, const struct rank_work *w, int32_t rank)
{
	bool same = (uint32_t)rank < g->n_done && g->done[rank].proc == w->proc;

	return same && g->done[rank].device_ns > w->from_ns ? g->done[rank].device_ns : w->from_ns;
}

static int64_t to_ns(const struct graph *g, const struct rank_work *w, int32_t rank)
{
	int64_t from = from_ns(g, w, rank), to = w->to_ns > from ? w->to_ns : from;

	return w->device_ns > to ? w->device_ns : to;
}

/* The stretch (begin, t]; the walk goes on at its begin, or is over at the step's.
 * NULL when there is none of it. */
static struct stretch *add(struct walk *k, enum fact_segment_kind kind, int64_t begin_ns)
{
	int64_t from = from_ns(k->g, k->w, k->rank);
	struct stretch *s;

	if (begin_ns <= from) {
		begin_ns = from;
		k->where = OVER;
	}
	if (begin_ns >= k->t_ns)
		return NULL;
	if (k->path->v.n == MAX_STRETCHES) {
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

/* ---- on the host ---- */

/* What it was in just before t, the innermost; lo: where that changes at the latest. */
static const struct item *scope_before(const struct rank_work *w, int64_t t_ns, int64_t *lo)
{
	const struct item *in = NULL;

	for (uint32_t i = 0; i < w->n_items; i++) {
		const struct item *v = &w->items[i];

		if (v->label != IN_WORK && v->label != IN_PHASE)
			continue;
		if (v->begin_ns < t_ns && v->begin_ns > *lo)
			*lo = v->begin_ns;
		if (v->end_ns != FACT_NONE && v->end_ns < t_ns && v->end_ns > *lo)
			*lo = v->end_ns;
		if (v->begin_ns < t_ns && (v->end_ns == FACT_NONE || v->end_ns >= t_ns) &&
		    (!in || v->begin_ns >= in->begin_ns))
			in = v;
	}
	return in;
}

/* Its own work since then. */
static void own_work(struct walk *k, int64_t since_ns)
{
	while (k->where == ON_HOST && k->t_ns > since_ns) {
		int64_t lo = since_ns;
		const struct item *in = scope_before(k->w, k->t_ns, &lo);
		enum fact_segment_kind kind = SEGMENT_HOST;
		struct stretch *s;

		if (in && in->label == IN_WORK)
			kind = SEGMENT_WORK;
		else if (in && in->what == PHASE_DATA)
			kind = SEGMENT_INPUT;
		s = add(k, kind, lo);
		if (!s)
			continue;
		s->node = NULL;
		if (in && in->label == IN_WORK) {
			s->name = in->what;
			s->excess_ns = excess_of_scope(k->gs, k->rank, IN_WORK, in->what, s->dur_ns);
		} else if (in) {
			s->phase = (uint8_t)in->what;
			s->excess_ns = excess_of_scope(k->gs, k->rank, IN_PHASE, in->what, s->dur_ns);
		}
	}
}

/* What stood still for a bucket: a backward from the last SUBMIT on, where all of its
 * buckets were reduced within it. */
static const struct item *bucket_wait(const struct rank_work *w, const struct item *phase,
				      int64_t *ret_end_ns)
{
	const struct item *last = NULL;

	*ret_end_ns = INT64_MIN;
	for (uint32_t i = 0; i < w->n_items; i++) {
		const struct item *v = &w->items[i];

		if (v->label != IN_BUCKET || v->begin_ns < phase->begin_ns ||
		    v->begin_ns > phase->end_ns)
			continue;
		if (!last || v->begin_ns > last->begin_ns)
			last = v;
		if (v->end_ns != FACT_NONE && v->end_ns <= phase->end_ns && v->end_ns > *ret_end_ns)
			*ret_end_ns = v->end_ns;
	}
	return last && last->end_ns != FACT_NONE && last->end_ns <= phase->end_ns ? last : NULL;
}

struct stood { /* what the host stood still for, and when it went on */
	int64_t begin_ns, end_ns;
	const struct node *node; /* a call; NULL: the device */
	uint32_t launch;
};

static void consider(struct stood *s, int64_t t_ns, const struct stood *v)
{
	if (v->end_ns <= t_ns && v->begin_ns < v->end_ns && v->end_ns > s->end_ns)
		*s = *v;
}

static struct stood last_stood(const struct rank_work *w, int64_t t_ns)
{
	struct stood s = { .end_ns = INT64_MIN };

	for (uint32_t i = 0; i < w->n_nodes; i++) {
		const struct node *n = &w->nodes[i];

		if ((n->flags & NODE_BLOCKS) && !(n->flags & NODE_DEVICE) && node_ran(n))
			consider(&s, t_ns, &(struct stood){ n->begin_ns, n->end_ns, n, 0 });
	}
	for (uint32_t i = 0; i < w->n_items; i++) {
		const struct item *v = &w->items[i], *bucket;
		int64_t end_ns;

		if (v->end_ns == FACT_NONE)
			continue;
		if (v->label == IN_WAIT)
			consider(&s, t_ns, &(struct stood){ v->begin_ns, v->end_ns, NULL, v->what });
		if (v->label != IN_PHASE || v->what != PHASE_BACKWARD)
			continue;
		bucket = bucket_wait(w, v, &end_ns);
		if (bucket)
			consider(&s, t_ns,
				 &(struct stood){ bucket->begin_ns, end_ns,
						  graph_node(w, bucket->what, bucket->seq), 0 });
	}
	return s;
}

const struct node *path_device_before(const struct rank_work *w, uint32_t launch, int64_t t_ns)
{
	const struct node *last = NULL;

	for (uint32_t i = 0; i < w->n_nodes; i++) {
		const struct node *n = &w->nodes[i];

		if (!(n->flags & NODE_DEVICE) || !node_ran(n) || n->end_ns > t_ns ||
		    (launch && n->launch != launch))
			continue;
		if (!last || n->end_ns > last->end_ns)
			last = n;
	}
	return last;
}

static bool has_buckets(const struct rank_work *w)
{
	for (uint32_t i = 0; i < w->n_items; i++)
		if (w->items[i].label == IN_BUCKET)
			return true;
	return false;
}

/* Between two calls that block: each piece its share of what is too much. */
static void share_excess(struct walk *k, size_t first, const struct stood *s, int64_t own_ns)
{
	int64_t before = s->node ? s->node - k->w->nodes : -1, excess;

	if (own_ns <= 0 || k->next == ELSEWHERE || (s->end_ns != INT64_MIN && !s->node) || has_buckets(k->w) ||
	    k->w->device_ns != INT64_MIN)
		return;
	excess = excess_of_run_up(k->gs, k->rank, before, k->next, own_ns);
	for (size_t i = first; excess != FACT_NONE && i < k->path->v.n; i++) {
		struct stretch *v = &k->path->v.v[i];

		v->excess_ns = (int64_t)((double)excess * (double)v->dur_ns / (double)own_ns);
	}
}

static void on_host(struct walk *k)
{
	struct stood s = last_stood(k->w, k->t_ns);
	int64_t from = from_ns(k->g, k->w, k->rank), t_ns = k->t_ns;
	int64_t since = s.end_ns > from ? s.end_ns : from;
	size_t first = k->path->v.n;
	const struct node *n;

	if (s.end_ns <= from)
		s = (struct stood){ .end_ns = INT64_MIN };
	own_work(k, since);
	share_excess(k, first, &s, t_ns - since);
	if (k->where == OVER || since == from) {
		k->where = OVER;
		return;
	}
	k->where = AT_END;
	k->node = s.node;
	if (s.node && node_ran(s.node) && s.node->end_ns > s.begin_ns) {
		add(k, SEGMENT_HOST, s.node->end_ns);
		return;
	}
	n = s.node ? NULL : path_device_before(k->w, s.launch, s.end_ns);
	if (n && n->end_ns > s.begin_ns) {
		add(k, SEGMENT_HOST, n->end_ns);
		k->node = n;
		return;
	}
	/* It stood still for nothing that is known. */
	k->node = NULL;
	k->next = ELSEWHERE;
	k->where = ON_HOST;
	add(k, SEGMENT_HOST, s.begin_ns);
}

/* ---- nodes ---- */

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

static const struct rank_work *work_of(const struct graph_step *gs, int32_t rank)
{
	return rank >= 0 && (uint32_t)rank < gs->n_ranks ? gs->ranks[rank] : NULL;
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
		const struct rank_work *w = work_of(k->gs, group->ranks[i]);
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
	s = add(k, SEGMENT_QUEUE, since_ns < n->begin_ns ? since_ns : n->begin_ns);
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

static void at_begin(struct walk *k)
{
	const struct node *n = k->node, *need;

	if ((n->flags & NODE_DEVICE) && n->kind == NODE_CALL && k->t_ns == n->begin_ns &&
	    waited_before(k, n))
		return;
	if (!(n->flags & NODE_DEVICE)) {
		k->where = ON_HOST;
		k->next = n->flags & NODE_BLOCKS ? n - k->w->nodes : ELSEWHERE;
		k->node = NULL;
		return;
	}
	need = device_need(k->w, n);
	if (need && (n->launch_ns == FACT_NONE || need->end_ns >= n->launch_ns)) {
		k->where = AT_END;
		add(k, SEGMENT_QUEUE, need->end_ns);
		k->node = need;
		return;
	}
	k->where = ON_HOST;
	k->next = ELSEWHERE;
	if (n->launch_ns == FACT_NONE || n->launch_ns > n->begin_ns) {
		k->path->cut = true;
		add(k, SEGMENT_QUEUE, INT64_MIN);
		k->where = OVER;
		return;
	}
	/* Until the device was done with the step before it could not begin. */
	add(k, n->launch_ns < from_ns(k->g, k->w, k->rank) ? SEGMENT_QUEUE : SEGMENT_LAUNCH,
	    n->launch_ns);
	k->node = NULL;
}

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
	ret->w = work_of(k->gs, last->rank);
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
		w = work_of(k->gs, rank);
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
		s = add(k, SEGMENT_TRANSFER, before->end_ns);
		k->node = before;
		if (s)
			s->excess_ns = excess_of_node(k->g, k->gs, k->rank, n, s->dur_ns);
		return;
	}
	k->where = AT_BEGIN;
	s = add(k, SEGMENT_TRANSFER, since);
	if (!s && k->where != OVER && k->path->v.n < MAX_STRETCHES && (s = FACTS_PUSH(k->path, v)))
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

static void at_end(struct walk *k)
{
	const struct node *n = k->node, *before;
	struct arrived a = { .rank = -1, .decided = true };
	struct stretch *s;

	if (n->kind == NODE_KERNEL) {
		k->where = AT_BEGIN;
		s = add(k, SEGMENT_KERNEL, n->begin_ns);
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
	s = add(k, SEGMENT_TRANSFER, before ? before->end_ns : n->begin_ns);
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

/* ---- all of it ---- */

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
		from = graph_instant(k->g, w, from_ns(k->g, w, (int32_t)i));
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
	k->next = STEP_END;
	return true;
}

static void follow(struct walk *k)
{
	/* Bounds that contradict each other could lead in a circle. */
	for (uint32_t i = 0; k->where != OVER; i++) {
		if (i == 4 * MAX_STRETCHES) {
			k->path->cut = true;
			return;
		}
		switch (k->where) {
		case ON_HOST:
			on_host(k);
			break;
		case AT_END:
			at_end(k);
			break;
		case AT_BEGIN:
			at_begin(k);
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
