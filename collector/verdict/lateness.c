#include "lateness.h"

/* A member, and where it stands: later is larger. */
struct standing {
	struct instant at;
	int64_t order_ns; /* fleet time of its entry; or how short it was inside, below zero */
};

/* On one host its own clock decides. */
static bool is_later(const struct match *m, const struct standing *a, const struct standing *b,
		     bool by_duration)
{
	if (!by_duration && m->roster->procs[a->at.proc].host == m->roster->procs[b->at.proc].host)
		return a->at.host_ns > b->at.host_ns;
	return a->order_ns > b->order_ns;
}

/* Does everyone leave it together, and nobody before the last one came? */
static bool is_joint(uint8_t op)
{
	return op == OP_ALL_REDUCE || op == OP_ALL_GATHER || op == OP_REDUCE_SCATTER ||
	       op == OP_ALL_TO_ALL || op == OP_BARRIER;
}

/* Several hosts, and one of them has no clock that can be compared. */
static bool without_clocks(const struct match *m, const struct coll *c, uint32_t n_members)
{
	uint32_t host = UINT32_MAX;
	bool several = false, unbounded = false;

	for (uint32_t i = 0; i < c->n_alloc && i < n_members; i++) {
		const struct proc *p;

		if (c->arrivals[i].enter_ns == FACT_NONE)
			continue;
		p = &m->roster->procs[c->arrivals[i].proc];
		several |= host != UINT32_MAX && p->host != host;
		if (p->host != host)
			unbounded |= roster_place(m->roster, p, c->arrivals[i].enter_ns).err_ns ==
				     CLOCK_UNBOUNDED;
		host = p->host;
	}
	return several && unbounded;
}

static struct gap behind(const struct match *m, const struct standing *last, const struct standing *v,
			 bool by_duration)
{
	if (!by_duration)
		return match_between(m, &last->at, &v->at);
	/* They leave together, up to the transfer; the last one was inside for no more. */
	return (struct gap){ last->order_ns - v->order_ns, -last->order_ns };
}

void lateness_of(const struct match *m, uint32_t group, const struct coll *c, struct lateness *ret)
{
	const struct group *g = &m->groups[group];
	struct standing v[LATENESS_MEMBERS];
	uint32_t n = 0, n_all = 0, n_members = g->n_members;

	*ret = (struct lateness){ 0 };
	roster_compare(m->roster);
	ret->by_duration = without_clocks(m, c, n_members);
	if (ret->by_duration && !is_joint(c->op))
		return;
	for (uint32_t i = 0; i < c->n_alloc && i < n_members; i++) {
		const struct arrival *a = &c->arrivals[i];
		struct standing at;
		uint32_t k;

		if (a->enter_ns == FACT_NONE || (ret->by_duration && a->exit_ns == FACT_NONE))
			continue;
		n_all++;
		at.at = (struct instant){ a->proc, a->enter_ns,
					  roster_place(m->roster, &m->roster->procs[a->proc],
						       a->enter_ns) };
		at.order_ns = ret->by_duration ? a->enter_ns - a->exit_ns : at.at.at.at.ns;
		for (k = n; k > 0 && is_later(m, &at, &v[k - 1], ret->by_duration); k--)
			if (k < LATENESS_MEMBERS)
				v[k] = v[k - 1];
		if (k < LATENESS_MEMBERS)
			v[k] = at;
		n += n < LATENESS_MEMBERS;
	}
	ret->all_here = n_all > 1 && c->n_entered >= g->n_expected && n_all >= g->n_expected;
	ret->n = ret->all_here ? n : 0;
	for (uint32_t i = 0; i < ret->n; i++)
		ret->v[i] = (struct late_member){
			.proc = v[i].at.proc, .rank = m->roster->procs[v[i].at.proc].rank,
			.enter_ns = v[i].at.host_ns, .at_ns = v[i].at.at.at.ns,
			.behind = i > 0 ? behind(m, &v[0], &v[i], ret->by_duration) :
					  (struct gap){ 0 },
		};
	ret->shortest_ns = ret->by_duration && n > 0 ? -v[0].order_ns : 0;
}

int64_t lateness_wait_ns(const struct match *m, const struct lateness *late, const struct arrival *a)
{
	int64_t ns;

	if (a->enter_ns == FACT_NONE || a->exit_ns == FACT_NONE)
		return 0;
	ns = late->by_duration ?
		     a->exit_ns - a->enter_ns - late->shortest_ns :
		     late->v[0].at_ns - roster_place(m->roster, &m->roster->procs[a->proc],
						     a->enter_ns).at.ns;
	if (ns > a->exit_ns - a->enter_ns)
		ns = a->exit_ns - a->enter_ns;
	return ns > 0 ? ns : 0;
}
