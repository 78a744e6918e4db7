/* excess.c - how much longer a piece of the path took than what its peers take for it.
 *
 * Ranks of one program do the same work in the same order, so the peer of a node is
 * the node at the same place of another rank, if it is of the same kind and name.
 * What is usual is the median over a few dozen ranks, spread evenly: one slow rank
 * or host is not in it, half of a job is. The same work of another moment would be a
 * worse measure: steps differ honestly, ranks of one step seldom.
 */
#include "graph_internal.h"

#define MIN_PEERS 3

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* own less what is usual; FACT_NONE where too few say what that is. */
static int64_t over_median(int64_t *v, unsigned n, int64_t own_ns)
{
	if (n < MIN_PEERS)
		return FACT_NONE;
	qsort(v, n, sizeof *v, by_value);
	return own_ns - (v[(n - 1) / 2] + v[n / 2]) / 2;
}

struct peers { /* a few dozen ranks beside one */
	const struct graph_step *gs;
	int32_t rank;
	uint32_t stride, at;
};

static struct peers peers_of(const struct graph_step *gs, int32_t rank)
{
	uint32_t stride = (gs->n_ranks + EXCESS_PEERS - 1) / EXCESS_PEERS;

	/* Odd, so that it does not fall on one place of every host or group. */
	return (struct peers){ gs, rank, stride > 1 ? stride | 1 : 1, 0 };
}

static const struct rank_work *next_peer(struct peers *p)
{
	while (p->at < p->gs->n_ranks) {
		const struct rank_work *w = p->gs->ranks[p->at];
		bool other = p->at != (uint32_t)p->rank;

		p->at += p->stride;
		if (other && w && w->to_ns != FACT_NONE && w->from_ns != FACT_NONE)
			return w;
	}
	return NULL;
}

static const struct node *same_node(const struct rank_work *w, int64_t i, const struct node *n)
{
	const struct node *o = i < w->n_nodes ? &w->nodes[i] : NULL;

	return o && node_ran(o) && o->kind == n->kind && o->op == n->op && o->name == n->name ? o : NULL;
}

/* How long a call took since the last had arrived; -1 when that is not known. */
static int64_t transfer_ns(const struct graph *g, const struct rank_work *w, const struct node *n)
{
	const struct coll_last *last;
	struct instant late, end;

	if (n->kind != NODE_CALL)
		return -1;
	last = match_last(g->match, n->group - 1, match_seq(g->match, n->group - 1, n->seq));
	if (!last || last->rank < 0)
		return -1;
	roster_compare(g->roster);
	end = graph_instant(g, w, n->end_ns);
	late = (struct instant){ last->proc, last->host_ns,
				 roster_place(g->roster, &g->roster->procs[last->proc],
					      last->host_ns) };
	return match_between(g->match, &end, &late).ns;
}

int64_t excess_of_node(const struct graph *g, const struct graph_step *gs, int32_t rank,
		       const struct node *n, int64_t own_ns)
{
	struct peers peers = peers_of(gs, rank);
	int64_t at = n - gs->ranks[rank]->nodes, v[EXCESS_PEERS];
	const struct rank_work *w;
	unsigned n_v = 0;

	while (n_v < EXCESS_PEERS && (w = next_peer(&peers))) {
		const struct node *o = same_node(w, at, n);
		int64_t ns = !o ? -1 : n->kind == NODE_KERNEL ? o->end_ns - o->begin_ns
							      : transfer_ns(g, w, o);

		if (ns >= 0)
			v[n_v++] = ns;
	}
	return over_median(v, n_v, own_ns);
}

/* Between two of its nodes, less the calls that it stood still in meanwhile. */
static int64_t run_up_ns(const struct rank_work *w, int64_t k, int64_t j)
{
	int64_t from = k < 0 ? w->from_ns : w->nodes[k].end_ns;
	int64_t to = j < 0 ? w->to_ns : w->nodes[j].begin_ns, sum_ns = to - from;

	for (int64_t i = k + 1; i < (j < 0 ? w->n_nodes : j); i++)
		if ((w->nodes[i].flags & NODE_BLOCKS) && node_ran(&w->nodes[i]))
			sum_ns -= w->nodes[i].end_ns - w->nodes[i].begin_ns;
	return sum_ns;
}

/* Messages may be many or none; what is computed ends in a call. */
static unsigned n_calls_between(const struct rank_work *w, int64_t k, int64_t j)
{
	unsigned n = 0;

	for (int64_t i = k + 1; i < (j < 0 ? w->n_nodes : j); i++)
		n += w->nodes[i].kind == NODE_CALL;
	return n;
}

int64_t excess_of_run_up(const struct graph_step *gs, int32_t rank, int64_t k, int64_t j,
			 int64_t own_ns)
{
	const struct node *nodes = gs->ranks[rank]->nodes;
	unsigned n_calls = n_calls_between(gs->ranks[rank], k, j), n_v = 0;
	struct peers peers = peers_of(gs, rank);
	const struct rank_work *w;
	int64_t v[EXCESS_PEERS];

	while (n_v < EXCESS_PEERS && (w = next_peer(&peers))) {
		const struct node *a = k < 0 ? NULL : same_node(w, k, &nodes[k]);
		const struct node *b = j < 0 ? NULL : same_node(w, j, &nodes[j]);
		bool same = (k < 0 || a) && (j < 0 || b) && n_calls_between(w, k, j) == n_calls;
		int64_t ns = same ? run_up_ns(w, k, j) : -1;

		if (ns >= 0)
			v[n_v++] = ns;
	}
	return over_median(v, n_v, own_ns);
}

/* All that it did in that phase or work in the step; without what it stood still for. */
static int64_t scope_ns(const struct rank_work *w, enum item_label label, uint32_t what)
{
	int64_t sum_ns = 0;

	for (uint32_t i = 0; i < w->n_items; i++) {
		const struct item *v = &w->items[i];
		int64_t last_ns = INT64_MIN, end_ns = INT64_MIN;

		if (v->label != label || v->what != what || v->end_ns == FACT_NONE)
			continue;
		sum_ns += v->end_ns - v->begin_ns;
		if (label != IN_PHASE)
			continue;
		for (uint32_t b = 0; b < w->n_items; b++) {
			const struct item *u = &w->items[b];

			if (u->begin_ns < v->begin_ns || u->begin_ns > v->end_ns || u->end_ns == FACT_NONE)
				continue;
			if (u->label == IN_WAIT)
				sum_ns -= u->end_ns - u->begin_ns;
			if (u->label == IN_BUCKET && u->begin_ns > last_ns) {
				last_ns = u->begin_ns;
				end_ns = u->end_ns;
			}
		}
		if (end_ns <= v->end_ns && end_ns > last_ns)
			sum_ns -= end_ns - last_ns;
	}
	return sum_ns;
}

int64_t excess_of_scope(const struct graph_step *gs, int32_t rank, enum item_label label,
			uint32_t what, int64_t dur_ns)
{
	struct peers peers = peers_of(gs, rank);
	int64_t own_ns = scope_ns(gs->ranks[rank], label, what), v[EXCESS_PEERS], over;
	const struct rank_work *w;
	unsigned n_v = 0;

	while (n_v < EXCESS_PEERS && (w = next_peer(&peers)))
		v[n_v++] = scope_ns(w, label, what);
	over = own_ns > 0 ? over_median(v, n_v, own_ns) : FACT_NONE;
	if (over == FACT_NONE)
		return over;
	return (int64_t)((double)dur_ns * (double)over / (double)own_ns);
}
