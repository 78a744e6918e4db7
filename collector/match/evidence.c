#include "evidence.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct member_group {
	uint32_t pairs_group; /* + 1, 0 = none yet */
	uint32_t n_members;
	uint32_t *hosts;
};

struct evidence {
	const struct roster *roster;
	struct pairs *pairs;
	uint32_t n_nodes;
	struct member_group *groups; /* by match's index */
	uint32_t n_groups;
	int64_t *enter_ns, *exit_ns; /* scratch, by member */
	uint32_t *hosts;
	uint32_t n_alloc;
	void (*told)(void *arg, uint32_t group, const struct pairs_proof *);
	void *told_arg;
};

int evidence_new(struct evidence **ret, const struct roster *r)
{
	struct evidence *e = calloc(1, sizeof *e);
	int err;

	if (!e)
		return -ENOMEM;
	e->roster = r;
	err = pairs_new(&e->pairs, &pairs_defaults);
	if (err < 0) {
		free(e);
		return err;
	}
	*ret = e;
	return 0;
}

void evidence_free(struct evidence *e)
{
	if (!e)
		return;
	for (uint32_t i = 0; i < e->n_groups; i++)
		free(e->groups[i].hosts);
	free(e->groups);
	free(e->enter_ns);
	free(e->exit_ns);
	free(e->hosts);
	pairs_free(e->pairs);
	free(e);
}

void evidence_on_proof(struct evidence *e,
		       void (*told)(void *arg, uint32_t group, const struct pairs_proof *), void *arg)
{
	e->told = told;
	e->told_arg = arg;
}

/* Nodes are made in the order of hosts, so that both have one number. */
static int make_nodes(struct evidence *e, uint32_t host)
{
	while (e->n_nodes <= host) {
		int64_t r = pairs_node(e->pairs);

		if (r < 0)
			return (int)r;
		e->n_nodes++;
	}
	return 0;
}

int evidence_probe(struct evidence *e, uint32_t host, const struct pairs_probe *k)
{
	int r = make_nodes(e, host);

	return r < 0 ? r : pairs_probe(e->pairs, host, k);
}

void evidence_step(struct evidence *e, uint32_t host)
{
	if (host < e->n_nodes)
		pairs_step(e->pairs, host);
}

int evidence_ask(const struct evidence *e, uint32_t i, uint32_t j, int64_t t_ns,
		 struct pairs_answer *ret)
{
	return pairs_ask(e->pairs, i, j, t_ns, ret);
}

/* A broadcast's root is in no event: what needs one proves nothing here. */
static bool needs(const struct coll *c, enum pairs_need *ret)
{
	switch ((enum event_op)c->op) {
	case OP_ALL_REDUCE:
	case OP_ALL_GATHER:
	case OP_REDUCE_SCATTER:
	case OP_BARRIER:
		*ret = PAIRS_NEED_ALL;
		return true;
	case OP_ALL_TO_ALL:
		*ret = PAIRS_NEED_NOTHING; /* its pieces may be empty */
		return true;
	case OP_UNKNOWN:
	case OP_BROADCAST:
	case OP_REDUCE:
	case OP_GATHER:
	case OP_SCATTER:
	case OP_SEND:
	case OP_RECV:
	case OP_N:
		break;
	}
	return false;
}

static int make_room(struct evidence *e, uint32_t group, uint32_t n_members)
{
	if (group >= e->n_groups) {
		uint32_t want = e->n_groups ? 2 * e->n_groups : 8;
		struct member_group *grown;

		while (want <= group)
			want *= 2;
		grown = realloc(e->groups, want * sizeof *grown);
		if (!grown)
			return -ENOMEM;
		memset(grown + e->n_groups, 0, (want - e->n_groups) * sizeof *grown);
		e->groups = grown;
		e->n_groups = want;
	}
	if (n_members > e->n_alloc) {
		int64_t *in = realloc(e->enter_ns, n_members * sizeof *in), *out;
		uint32_t *hosts;

		if (!in)
			return -ENOMEM;
		e->enter_ns = in;
		out = realloc(e->exit_ns, n_members * sizeof *out);
		if (!out)
			return -ENOMEM;
		e->exit_ns = out;
		hosts = realloc(e->hosts, n_members * sizeof *hosts);
		if (!hosts)
			return -ENOMEM;
		e->hosts = hosts;
		e->n_alloc = n_members;
	}
	return 0;
}

/* The communicator in pairs; a new one when members or their hosts have changed.
 * Only from a call in which everybody was seen. */
static int find_group(struct evidence *e, uint32_t group, uint32_t n_members)
{
	struct member_group *g = &e->groups[group];
	uint32_t last = 0;
	int64_t r;

	if (g->pairs_group && g->n_members == n_members &&
	    memcmp(g->hosts, e->hosts, n_members * sizeof *g->hosts) == 0)
		return 0;
	for (uint32_t i = 0; i < n_members; i++)
		last = e->hosts[i] > last ? e->hosts[i] : last;
	r = make_nodes(e, last);
	if (r == 0)
		r = pairs_group(e->pairs, e->hosts, n_members);
	if (r < 0)
		return (int)r;
	free(g->hosts);
	g->pairs_group = 0;
	g->hosts = malloc(n_members * sizeof *g->hosts);
	if (!g->hosts)
		return -ENOMEM;
	memcpy(g->hosts, e->hosts, n_members * sizeof *g->hosts);
	g->pairs_group = (uint32_t)r + 1;
	g->n_members = n_members;
	return 0;
}

int evidence_closed(void *evidence, const struct match *m, uint32_t group, const struct coll *c)
{
	struct evidence *e = evidence;
	uint32_t n = m->groups[group].n_members;
	struct pairs_proof proof;
	struct pairs_call call;
	enum pairs_need need;
	int r;

	if (!c->arrivals || c->mismatch || n > c->n_alloc || c->n_entered < n || !needs(c, &need))
		return 0;
	r = make_room(e, group, n);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < n; i++) {
		const struct arrival *a = &c->arrivals[i];
		const struct proc *p = &e->roster->procs[a->proc];

		e->hosts[i] = p->host;
		/* What the tick's conversion leaves open may only loosen. */
		e->enter_ns[i] = a->enter_ns == FACT_NONE ? PAIRS_NONE
							  : a->enter_ns - p->tick_error_ns;
		e->exit_ns[i] = a->exit_ns == FACT_NONE ? PAIRS_NONE
							: a->exit_ns + p->tick_error_ns;
	}
	r = find_group(e, group, n);
	if (r < 0)
		return r;
	call = (struct pairs_call){
		.group = e->groups[group].pairs_group - 1,
		.seq = c->seq,
		.kind = (uint32_t)c->op << 8 | c->dtype,
		.bytes = c->bytes,
		.need = need,
		.together = true,
		.enter_is_queued = true, /* BEGIN is the call, not its start on the GPU */
		.enter_ns = e->enter_ns,
		.exit_ns = e->exit_ns,
	};
	r = pairs_call(e->pairs, &call, &proof);
	if (r == PAIRS_VIOLATION && e->told)
		e->told(e->told_arg, group, &proof);
	return r < 0 ? r : 0;
}
