#include "pairs_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define JUMP_NS INT64_C(3600000000000) /* no call is told this late */

const struct pairs_config pairs_defaults = {
	.window_ns = INT64_C(15000000000),
	.rate_sd = 0.03e-6,
	.exit_skew_ns = 1000,
	.exit_skew_share = 1e-3,
	.z = 2.8,
};

int pairs_new(struct pairs **ret, const struct pairs_config *cfg)
{
	struct pairs *p;

	if (cfg->reference >= PAIRS_MAX_CLOSED)
		return -EINVAL;
	p = calloc(1, sizeof *p);
	if (!p)
		return -ENOMEM;
	p->cfg = *cfg;
	p->closed = true;
	p->tick_ns = PAIRS_NONE;
	*ret = p;
	return 0;
}

void pairs_free(struct pairs *p)
{
	if (!p)
		return;
	for (uint32_t i = 0; i < p->n_groups; i++) {
		free(p->groups[i].nodes);
		for (size_t k = 0; k < MAX_CLASSES; k++)
			exits_free(&p->groups[i].classes[k]);
	}
	free(p->groups);
	free(p->nodes);
	free(p->bounds);
	free(p->square);
	free(p->square_from);
	free(p->visits);
	free(p->merged);
	free(p->place);
	free(p->sorted);
	free(p);
}

int64_t pairs_node(struct pairs *p)
{
	struct node *n;
	int r;

	if (p->n_nodes == PAIRS_MAX_NODES)
		return -E2BIG;
	if (p->n_nodes == p->n_nodes_alloc) {
		uint32_t want = p->n_nodes_alloc ? 2 * p->n_nodes_alloc : 8;
		struct node *nodes = realloc(p->nodes, want * sizeof *nodes);
		uint32_t *place;

		if (!nodes)
			return -ENOMEM;
		p->nodes = nodes;
		place = realloc(p->place, want * sizeof *place);
		if (!place)
			return -ENOMEM;
		p->place = place;
		p->n_nodes_alloc = want;
	}
	n = &p->nodes[p->n_nodes];
	*n = (struct node){ .probe_lo_ns = -PAIRS_UNBOUNDED,
			    .probe_hi_ns = PAIRS_UNBOUNDED,
			    .probe_sd = INFINITY,
			    .sd = INFINITY,
			    .part = p->n_nodes };
	p->place[p->n_nodes] = 0;
	p->n_nodes++;
	r = bounds_grow_nodes(p);
	if (r < 0) {
		p->n_nodes--;
		return r;
	}
	return p->n_nodes - 1;
}

void pairs_step(struct pairs *p, uint32_t node)
{
	struct node *n;

	if (node >= p->n_nodes)
		return;
	n = &p->nodes[node];
	n->told = false;
	n->probe_lo_ns = -PAIRS_UNBOUNDED;
	n->probe_hi_ns = PAIRS_UNBOUNDED;
	n->probe_sd = n->sd = INFINITY;
	n->n_marks = 0;
	/* Between the step and its discovery it lent its word to everybody. */
	bounds_forget_all(p);
	for (uint32_t i = 0; i < p->n_groups; i++) {
		struct group *g = &p->groups[i];

		for (uint32_t m = 0; m < g->n_members; m++)
			if (g->nodes[m] == node)
				exits_forget_member(g, m);
		if (g->quarantined && (g->proof.early == node || g->proof.late == node))
			g->quarantined = false;
	}
}

/* ---- calls ---- */

static int make_room(struct pairs *p, uint32_t n_members)
{
	uint32_t want = p->n_visits_alloc ? p->n_visits_alloc : 64;
	struct visit *visits, *merged;
	int64_t *sorted;

	while (want < n_members)
		want *= 2;
	if (want == p->n_visits_alloc)
		return 0;
	visits = realloc(p->visits, want * sizeof *visits);
	if (!visits)
		return -ENOMEM;
	p->visits = visits;
	merged = realloc(p->merged, want * sizeof *merged);
	if (!merged)
		return -ENOMEM;
	p->merged = merged;
	sorted = realloc(p->sorted, (want > N_OWN ? want : N_OWN) * sizeof *sorted);
	if (!sorted)
		return -ENOMEM;
	p->sorted = sorted;
	p->n_visits_alloc = want;
	return 0;
}

int64_t pairs_group(struct pairs *p, const uint32_t *nodes, uint32_t n_members)
{
	struct group *g;
	int r;

	if (n_members == 0 || n_members > PAIRS_MAX_NODES)
		return -EINVAL;
	for (uint32_t i = 0; i < n_members; i++)
		if (nodes[i] >= p->n_nodes)
			return -EINVAL;
	if (p->n_groups == p->n_groups_alloc) {
		uint32_t want = p->n_groups_alloc ? 2 * p->n_groups_alloc : 8;
		struct group *groups = realloc(p->groups, want * sizeof *groups);

		if (!groups)
			return -ENOMEM;
		p->groups = groups;
		p->n_groups_alloc = want;
	}
	r = make_room(p, n_members);
	if (r < 0)
		return r;
	g = &p->groups[p->n_groups];
	*g = (struct group){ .n_members = n_members };
	g->nodes = malloc(n_members * sizeof *g->nodes);
	if (!g->nodes)
		return -ENOMEM;
	memcpy(g->nodes, nodes, n_members * sizeof *g->nodes);
	return p->n_groups++;
}

static bool gives(const struct pairs_call *c, uint32_t member)
{
	return c->need == PAIRS_NEED_ALL || c->need == PAIRS_ROOT_NEEDS ||
	       (c->need == PAIRS_NEED_ROOT && member == c->root);
}

static bool takes(const struct pairs_call *c, uint32_t member)
{
	return c->need == PAIRS_NEED_ALL || c->need == PAIRS_NEED_ROOT ||
	       (c->need == PAIRS_ROOT_NEEDS && member == c->root);
}

static int read_visits(struct pairs *p, const struct group *g, const struct pairs_call *c,
		       int64_t *ret_t_ns)
{
	*ret_t_ns = PAIRS_NONE;
	for (uint32_t i = 0; i < g->n_members; i++) {
		int64_t in = c->enter_ns[i], out = c->exit_ns[i];

		if ((in != PAIRS_NONE && !pairs_is_sane(in)) ||
		    (out != PAIRS_NONE && !pairs_is_sane(out)) ||
		    (in != PAIRS_NONE && out != PAIRS_NONE && out < in))
			return PAIRS_REFUSED;
	}
	for (uint32_t i = 0; i < g->n_members; i++) {
		const struct node *n = &p->nodes[g->nodes[i]];
		int64_t in = c->enter_ns[i], out = c->exit_ns[i];
		struct visit *v = &p->visits[i];

		*v = (struct visit){ .enter_ns = PAIRS_NONE,
				     .exit_ns = PAIRS_NONE,
				     .node = g->nodes[i] };
		if (in != PAIRS_NONE)
			v->enter_ns = in + node_base(n, in, &v->enter_growth_ps);
		if (in != PAIRS_NONE && !pairs_is_sane(v->enter_ns))
			return PAIRS_REFUSED;
		if (out == PAIRS_NONE)
			continue;
		v->exit_ns = out + node_base(n, out, &v->exit_growth_ps);
		if (!pairs_is_sane(v->exit_ns))
			return PAIRS_REFUSED;
		if (v->exit_ns > *ret_t_ns)
			*ret_t_ns = v->exit_ns;
	}
	return *ret_t_ns == PAIRS_NONE ? PAIRS_REFUSED : 0;
}

/* One visit a node: its last needed entry and its first exit that needed. */
static uint32_t merge_nodes(struct pairs *p, const struct group *g, const struct pairs_call *c)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < g->n_members; i++) {
		const struct visit *v = &p->visits[i];
		bool give = gives(c, i) && v->enter_ns != PAIRS_NONE;
		bool take = takes(c, i) && v->exit_ns != PAIRS_NONE;
		struct visit *m;

		if (!give && !take)
			continue;
		if (p->place[v->node] == 0) {
			p->merged[n++] = (struct visit){ .enter_ns = PAIRS_NONE,
							 .exit_ns = PAIRS_NONE,
							 .node = v->node };
			p->place[v->node] = n;
		}
		m = &p->merged[p->place[v->node] - 1];
		if (give && (m->enter_ns == PAIRS_NONE || v->enter_ns > m->enter_ns)) {
			m->enter_ns = v->enter_ns;
			m->enter_growth_ps = v->enter_growth_ps;
		}
		if (take && (m->exit_ns == PAIRS_NONE || v->exit_ns < m->exit_ns)) {
			m->exit_ns = v->exit_ns;
			m->exit_growth_ps = v->exit_growth_ps;
		}
	}
	for (uint32_t i = 0; i < n; i++)
		p->place[p->merged[i].node] = 0;
	return n;
}

static void quarantine(struct pairs *p, uint32_t group, const struct pairs_proof *proof)
{
	struct group *g = &p->groups[group];

	g->n_violations++;
	if (g->quarantined)
		return;
	g->quarantined = true;
	g->proof = *proof;
	g->proof.group = group;
}

static void quarantine_all(struct pairs *p, uint64_t from, const struct pairs_proof *proof)
{
	for (uint32_t i = 0; i < p->n_groups; i++)
		if (from >> (i % 64) & 1)
			quarantine(p, i, proof);
}

/* Two others agree against one: it is the one. Against one other nobody knows. */
static void quarantine_caller(struct pairs *p, uint32_t group, uint64_t from,
			      const struct pairs_proof *proof)
{
	uint64_t others = from & ~(UINT64_C(1) << (group % 64));

	quarantine(p, group, proof);
	if (proof->source == PAIRS_FROM_CALLS && others && !(others & (others - 1)) &&
	    !(from >> (group % 64) & 1))
		quarantine_all(p, others, proof);
	/* What it said before is inside every bound by now. */
	bounds_forget_all(p);
}

static void tick(struct pairs *p, int64_t t_ns)
{
	int64_t second = t_ns - t_ns % TICK_NS;
	struct pairs_proof proof;
	uint64_t from;

	/* Somebody's clock was years ahead: time goes on without him. */
	if (p->tick_ns != PAIRS_NONE && second < p->tick_ns - JUMP_NS) {
		for (uint32_t i = 0; i < p->n_nodes; i++)
			p->nodes[i].n_marks = 0;
		p->tick_ns = PAIRS_NONE;
	}
	if (p->tick_ns != PAIRS_NONE && second <= p->tick_ns)
		return;
	for (uint32_t i = 0; i < p->n_groups; i++)
		for (size_t k = 0; k < MAX_CLASSES; k++) {
			struct exits *x = &p->groups[i].classes[k];

			if (x->used && x->open_ns != PAIRS_NONE && x->open_ns + TICK_NS <= t_ns)
				exits_close(p, &p->groups[i], x);
		}
	if (!bounds_close(p, second, &proof, &from)) {
		quarantine_all(p, from, &proof);
		bounds_forget_all(p);
		bounds_close(p, second, &proof, &from);
	}
	solve(p, second);
	p->tick_ns = second;
}

int pairs_call(struct pairs *p, const struct pairs_call *c, struct pairs_proof *proof)
{
	struct pairs_proof none;
	struct group *g;
	bool doubtful;
	uint64_t from;
	uint32_t n;
	int64_t t_ns;
	int r;

	proof = proof ? proof : &none;
	proof->impossible_ns = 0;
	if (c->group >= p->n_groups ||
	    ((c->need == PAIRS_NEED_ROOT || c->need == PAIRS_ROOT_NEEDS) &&
	     c->root >= p->groups[c->group].n_members))
		return PAIRS_REFUSED;
	g = &p->groups[c->group];
	r = read_visits(p, g, c, &t_ns);
	if (r != 0)
		return r;
	tick(p, t_ns);
	n = merge_nodes(p, g, c);
	doubtful = !g->quarantined && exits_doubt(p, g, c);
	g->n_doubtful += doubtful;
	r = bounds_call(p, c, p->merged, n, t_ns, g->quarantined || doubtful, proof, &from);
	if (r == PAIRS_VIOLATION) {
		bool again = g->quarantined;

		if (again)
			g->n_violations++;
		else
			quarantine_caller(p, c->group, from, proof);
		return again ? PAIRS_QUARANTINED : PAIRS_VIOLATION;
	}
	if (g->quarantined)
		return PAIRS_QUARANTINED;
	return c->together ? exits_call(p, g, c, t_ns, doubtful) : 0;
}

void pairs_finish(struct pairs *p)
{
	if (p->tick_ns != PAIRS_NONE)
		tick(p, p->tick_ns + TICK_NS);
}

bool pairs_is_quarantined(const struct pairs *p, uint32_t group)
{
	return group < p->n_groups && p->groups[group].quarantined;
}

bool pairs_proof_of(const struct pairs *p, uint32_t group, struct pairs_proof *ret)
{
	if (group >= p->n_groups || p->groups[group].n_violations == 0)
		return false;
	*ret = p->groups[group].proof;
	return true;
}

uint64_t pairs_n_doubtful(const struct pairs *p, uint32_t group)
{
	return group < p->n_groups ? p->groups[group].n_doubtful : 0;
}

uint64_t pairs_n_violations(const struct pairs *p, uint32_t group)
{
	return group < p->n_groups ? p->groups[group].n_violations : 0;
}
