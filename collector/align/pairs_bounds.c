/* pairs_bounds.c - what entries and exits prove about two clocks.
 *
 * Taker a left after giver b had entered: e_b - e_a <= exit_a - enter_b - latency.
 * Up to PAIRS_MAX_CLOSED nodes every pair keeps its bound and once a second the
 * shortest paths over all of them are taken. More nodes keep two bounds each,
 * against the reference; a communicator without the reference hands them on
 * through the member that knows it best. Both are capped by the probes.
 */
#include "pairs_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SQUARE PAIRS_MAX_CLOSED

static const struct bound unbounded = { PAIRS_UNBOUNDED, 0, 0 };

void bounds_forget_all(struct pairs *p)
{
	size_t n = p->closed ? SQUARE * SQUARE : 2 * (size_t)p->n_nodes_alloc;

	for (size_t i = 0; p->bounds && i < n; i++)
		p->bounds[i] = unbounded;
}

int bounds_grow_nodes(struct pairs *p)
{
	struct bound *grown;

	if (p->n_nodes <= SQUARE) {
		if (p->bounds)
			return 0;
		p->bounds = malloc(SQUARE * SQUARE * sizeof *p->bounds);
		p->square = malloc(SQUARE * SQUARE * sizeof *p->square);
		p->square_from = malloc(SQUARE * SQUARE * sizeof *p->square_from);
		if (!p->bounds || !p->square || !p->square_from)
			return -ENOMEM;
		bounds_forget_all(p);
		return 0;
	}
	if (p->closed) {
		/* Too many for a square: what its pairs proved begins anew. */
		grown = malloc(2 * (size_t)p->n_nodes_alloc * sizeof *grown);
		if (!grown)
			return -ENOMEM;
		free(p->bounds);
		p->bounds = grown;
		p->closed = false;
		bounds_forget_all(p);
		return 0;
	}
	/* n_nodes_alloc doubled when n_nodes passed a power of two. */
	if (p->n_nodes - 1 == p->n_nodes_alloc / 2) {
		grown = realloc(p->bounds, 2 * (size_t)p->n_nodes_alloc * sizeof *grown);
		if (!grown)
			return -ENOMEM;
		p->bounds = grown;
		for (size_t i = 2 * (size_t)(p->n_nodes - 1); i < 2 * (size_t)p->n_nodes_alloc; i++)
			grown[i] = unbounded;
	}
	return 0;
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t growth_at(const struct pairs *p, uint32_t node, int64_t t_ns)
{
	int64_t growth_ps;

	node_base_at(&p->nodes[node], t_ns, &growth_ps);
	return growth_ps;
}

static int64_t value(const struct bound *b, int64_t growth_ps)
{
	return b->v_ns == PAIRS_UNBOUNDED ? b->v_ns : opened_ns(b->v_ns, b->growth_ps, growth_ps);
}

/* Upper bounds of e and of -e. */
static int64_t probe_most(const struct node *n, int64_t ps)
{
	return n->probe_hi_ns == PAIRS_UNBOUNDED
		       ? PAIRS_UNBOUNDED
		       : opened_ns(n->probe_hi_ns, n->probe_growth_ps, ps);
}

static int64_t probe_least(const struct node *n, int64_t ps)
{
	return n->probe_lo_ns == -PAIRS_UNBOUNDED
		       ? PAIRS_UNBOUNDED
		       : opened_ns(-n->probe_lo_ns, n->probe_growth_ps, ps);
}

/* Of e_node - e_reference; lower: of minus that. */
static int64_t to_reference(const struct pairs *p, uint32_t node, bool lower, int64_t sum_ps)
{
	return node == p->cfg.reference ? 0 : value(&p->bounds[2 * node + lower], sum_ps);
}

void bounds_moment(const struct pairs *p, uint32_t i, uint32_t j, int64_t t_ns, struct moment *ret)
{
	*ret = (struct moment){ .node = { i, j } };
	for (unsigned k = 0; k < 2; k++)
		ret->base_ns[k] = node_base_at(&p->nodes[ret->node[k]], t_ns, &ret->growth_ps[k]);
	if (!p->closed)
		ret->reference_ps = growth_at(p, p->cfg.reference, t_ns);
}

int64_t bounds_get(const struct pairs *p, const struct moment *m, bool back)
{
	uint32_t a = m->node[back], b = m->node[!back];
	int64_t a_ps = m->growth_ps[back], b_ps = m->growth_ps[!back], calls;

	if (p->closed)
		calls = value(&p->bounds[a * SQUARE + b], a_ps + b_ps);
	else
		calls = pairs_plus(to_reference(p, a, false, a_ps + m->reference_ps),
				   to_reference(p, b, true, b_ps + m->reference_ps));
	return least(calls, bounds_probe(p, m, back));
}

int64_t bounds_probe(const struct pairs *p, const struct moment *m, bool back)
{
	return pairs_plus(probe_most(&p->nodes[m->node[back]], m->growth_ps[back]),
			  probe_least(&p->nodes[m->node[!back]], m->growth_ps[!back]));
}

/* ---- one call ---- */

struct look {
	const struct pairs_call *c;
	const struct visit *v;
	uint32_t n;
	int64_t t_ns, slack_ns;
	struct pairs_proof *proof;
	uint64_t from; /* who built what is contradicted */
};

/* What taker a and giver b say about e_b - e_a, at the time of the look. */
static int64_t said(const struct look *k, const struct visit *a, const struct visit *b)
{
	int64_t v = a->exit_ns - b->enter_ns + k->slack_ns;

	v = opened_ns(v, b->enter_growth_ps, b->now_growth_ps);
	return opened_ns(v, a->exit_growth_ps, a->now_growth_ps);
}

/* most: upper bound of e_a - e_b. */
static void judge(struct look *k, const struct visit *a, const struct visit *b, int64_t said_ns,
		  int64_t most, enum pairs_source source, uint64_t from)
{
	int64_t room_ns = pairs_plus(said_ns, most);

	if (room_ns >= 0 || -room_ns <= k->proof->impossible_ns)
		return;
	*k->proof = (struct pairs_proof){
		.group = k->c->group,
		.seq = k->c->seq,
		.early = a->node,
		.late = b->node,
		.t_ns = k->t_ns,
		.impossible_ns = -room_ns,
		.said_ns = said_ns,
		.known_ns = -most,
		.source = source,
	};
	k->from = from;
}

static void check_one_clock(struct look *k)
{
	for (uint32_t i = 0; i < k->n; i++) {
		const struct visit *v = &k->v[i];

		if (v->enter_ns != PAIRS_NONE && v->exit_ns != PAIRS_NONE)
			judge(k, v, v, v->exit_ns - v->enter_ns + k->slack_ns, 0,
			      PAIRS_FROM_ONE_CLOCK, 0);
	}
}

static void check_pairs(const struct pairs *p, struct look *k)
{
	for (uint32_t i = 0; i < k->n; i++)
		for (uint32_t j = 0; j < k->n; j++) {
			const struct visit *a = &k->v[i], *b = &k->v[j];
			const struct bound *d = &p->bounds[a->node * SQUARE + b->node];
			int64_t said_ns;

			if (i == j || a->exit_ns == PAIRS_NONE || b->enter_ns == PAIRS_NONE)
				continue;
			said_ns = said(k, a, b);
			judge(k, a, b, said_ns,
			      pairs_plus(probe_most(&p->nodes[a->node], a->now_growth_ps),
					 probe_least(&p->nodes[b->node], b->now_growth_ps)),
			      PAIRS_FROM_PROBES, 0);
			judge(k, a, b, said_ns, value(d, a->now_growth_ps + b->now_growth_ps),
			      PAIRS_FROM_CALLS, d->from);
		}
}

static void take_pairs(struct pairs *p, const struct look *k)
{
	for (uint32_t i = 0; i < k->n; i++)
		for (uint32_t j = 0; j < k->n; j++) {
			const struct visit *a = &k->v[i], *b = &k->v[j];
			struct bound *d = &p->bounds[b->node * SQUARE + a->node];
			int64_t sum_ps = a->now_growth_ps + b->now_growth_ps, said_ns;

			if (i == j || a->exit_ns == PAIRS_NONE || b->enter_ns == PAIRS_NONE)
				continue;
			said_ns = said(k, a, b);
			if (said_ns < WIDEST_NS && said_ns < value(d, sum_ps))
				*d = (struct bound){ said_ns, sum_ps,
						     UINT64_C(1) << (k->c->group % 64) };
		}
}

/* Many nodes: the taker who must have left last, by one rule, against the giver
 * who must have entered first. Looks at each node once. */
static void check_reference(const struct pairs *p, struct look *k, int64_t ref_ps, bool probes)
{
	const struct visit *first = NULL, *last = NULL;
	int64_t least_exit = INT64_MAX, last_enter = INT64_MIN, first_most = 0, last_most = 0;

	for (uint32_t i = 0; i < k->n; i++) {
		const struct visit *v = &k->v[i];
		const struct node *n = &p->nodes[v->node];
		int64_t most, lowest;

		most = probes ? probe_most(n, v->now_growth_ps)
			      : to_reference(p, v->node, false, v->now_growth_ps + ref_ps);
		lowest = probes ? probe_least(n, v->now_growth_ps)
				: to_reference(p, v->node, true, v->now_growth_ps + ref_ps);
		if (v->exit_ns != PAIRS_NONE && most != PAIRS_UNBOUNDED) {
			int64_t at = opened_ns(v->exit_ns, v->exit_growth_ps, v->now_growth_ps);

			if (pairs_plus(at, most) < least_exit) {
				least_exit = pairs_plus(at, most);
				first_most = most;
				first = v;
			}
		}
		if (v->enter_ns != PAIRS_NONE && lowest != PAIRS_UNBOUNDED) {
			int64_t at = -opened_ns(-v->enter_ns, v->enter_growth_ps, v->now_growth_ps);

			if (pairs_plus(at, -lowest) > last_enter) {
				last_enter = pairs_plus(at, -lowest);
				last_most = lowest;
				last = v;
			}
		}
	}
	if (first && last && first != last)
		judge(k, first, last, said(k, first, last), pairs_plus(first_most, last_most),
		      probes ? PAIRS_FROM_PROBES : PAIRS_FROM_CALLS,
		      probes ? 0
			     : p->bounds[2 * first->node].from |
				       p->bounds[2 * last->node + 1].from);
}

static void take_one(struct bound *d, int64_t v_ns, int64_t sum_ps, uint64_t from)
{
	if (v_ns < WIDEST_NS && v_ns < value(d, sum_ps))
		*d = (struct bound){ v_ns, sum_ps, from };
}

static void take_reference(struct pairs *p, const struct look *k, int64_t ref_ps)
{
	const struct visit *m = NULL;
	int64_t width = PAIRS_UNBOUNDED, m_most = 0, m_least = 0;
	uint64_t from;

	for (uint32_t i = 0; i < k->n && width > 0; i++) {
		const struct visit *v = &k->v[i];
		int64_t sum_ps = v->now_growth_ps + ref_ps;
		int64_t most = to_reference(p, v->node, false, sum_ps);
		int64_t lowest = to_reference(p, v->node, true, sum_ps);

		if (pairs_plus(most, lowest) >= width)
			continue;
		m = v;
		width = most + lowest;
		m_most = most;
		m_least = lowest;
	}
	if (!m)
		return;
	from = UINT64_C(1) << (k->c->group % 64);
	if (m->node != p->cfg.reference)
		from |= p->bounds[2 * m->node].from | p->bounds[2 * m->node + 1].from;
	for (uint32_t i = 0; i < k->n; i++) {
		const struct visit *v = &k->v[i];
		int64_t sum_ps = v->now_growth_ps + ref_ps;

		if (v == m || v->node == p->cfg.reference)
			continue;
		if (m->exit_ns != PAIRS_NONE && v->enter_ns != PAIRS_NONE)
			take_one(&p->bounds[2 * v->node], pairs_plus(said(k, m, v), m_most), sum_ps,
				 from);
		if (v->exit_ns != PAIRS_NONE && m->enter_ns != PAIRS_NONE)
			take_one(&p->bounds[2 * v->node + 1], pairs_plus(said(k, v, m), m_least),
				 sum_ps, from);
	}
}

int bounds_call(struct pairs *p, const struct pairs_call *c, struct visit *v, uint32_t n,
		int64_t t_ns, bool mute, struct pairs_proof *proof, uint64_t *ret_from)
{
	struct look k = { .c = c,
			  .v = v,
			  .n = n,
			  .t_ns = t_ns,
			  .proof = proof,
			  .slack_ns = 2 * p->cfg.stamp_ns - p->cfg.least_latency_ns };
	int64_t ref_ps = p->closed ? 0 : growth_at(p, p->cfg.reference, t_ns);

	for (uint32_t i = 0; i < n; i++)
		v[i].now_growth_ps = growth_at(p, v[i].node, t_ns);
	check_one_clock(&k);
	if (p->closed) {
		check_pairs(p, &k);
	} else {
		check_reference(p, &k, ref_ps, true);
		check_reference(p, &k, ref_ps, false);
	}
	*ret_from = k.from;
	if (proof->impossible_ns > 0)
		return PAIRS_VIOLATION;
	if (mute)
		return PAIRS_OK;
	if (p->closed)
		take_pairs(p, &k);
	else
		take_reference(p, &k, ref_ps);
	return PAIRS_OK;
}
