#include "lateness.h"

#include <errno.h>
#include <stdlib.h>

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

/* ret_without_clocks: several hosts, and one of them has none that can be compared. */
static int place_all(const struct match *m, const struct coll *c, uint32_t n_members,
		     struct lateness_places *places, bool *ret_without_clocks)
{
	uint32_t host = UINT32_MAX;
	bool several = false, unbounded = false;

	if (n_members > places->n_alloc) {
		uint32_t want = n_members > 2 * places->n_alloc ? n_members : 2 * places->n_alloc;
		struct fleet_point *grown = realloc(places->v, want * sizeof *grown);

		if (!grown)
			return -ENOMEM;
		places->v = grown;
		places->n_alloc = want;
	}
	for (uint32_t i = 0; i < c->n_alloc && i < n_members; i++) {
		const struct proc *p;

		if (c->arrivals[i].enter_ns == FACT_NONE)
			continue;
		p = &m->roster->procs[c->arrivals[i].proc];
		places->v[i] = roster_place(m->roster, p, c->arrivals[i].enter_ns);
		several |= host != UINT32_MAX && p->host != host;
		unbounded |= p->host != host && places->v[i].err_ns == CLOCK_UNBOUNDED;
		host = p->host;
	}
	*ret_without_clocks = several && unbounded;
	return 0;
}

static struct gap behind(const struct match *m, const struct standing *last, const struct standing *v,
			 bool by_duration)
{
	if (!by_duration)
		return match_between(m, &last->at, &v->at);
	/* They leave together, up to the transfer; the last one was inside for no more. */
	return (struct gap){ last->order_ns - v->order_ns, -last->order_ns };
}

/* Whatever else is known, they lie no further apart than their bounds allow. */
static bool is_near(const struct standing *last, const struct standing *v)
{
	const struct fleet_point *a = &last->at.at, *b = &v->at.at;

	return a->err_ns != CLOCK_UNBOUNDED && b->err_ns != CLOCK_UNBOUNDED &&
	       a->at.ns + a->err_ns - (b->at.ns - b->err_ns) < LATENESS_LEAST_NS;
}

int lateness_of(const struct match *m, uint32_t group, const struct coll *c,
		struct lateness_places *places, bool gaps, struct lateness *ret)
{
	const struct group *g = &m->groups[group];
	struct standing v[LATENESS_MEMBERS];
	uint32_t n = 0, n_all = 0, n_members = g->n_members;
	int r;

	*ret = (struct lateness){ 0 };
	roster_compare(m->roster);
	r = place_all(m, c, n_members, places, &ret->by_duration);
	if (r < 0 || (ret->by_duration && !is_joint(c->op)))
		return r;
	for (uint32_t i = 0; i < c->n_alloc && i < n_members; i++) {
		const struct arrival *a = &c->arrivals[i];
		struct standing at;
		uint32_t k;

		if (a->enter_ns == FACT_NONE || (ret->by_duration && a->exit_ns == FACT_NONE))
			continue;
		n_all++;
		at.at = (struct instant){ a->proc, a->enter_ns, places->v[i] };
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
	gaps = gaps && (ret->by_duration || ret->n == 0 || !is_near(&v[0], &v[ret->n - 1]));
	for (uint32_t i = 0; i < ret->n; i++)
		ret->v[i] = (struct late_member){
			.proc = v[i].at.proc, .rank = m->roster->procs[v[i].at.proc].rank,
			.enter_ns = v[i].at.host_ns, .at_ns = v[i].at.at.at.ns,
			.behind = i == 0 ? (struct gap){ 0 } :
				  gaps ? behind(m, &v[0], &v[i], ret->by_duration) :
					 (struct gap){ v[0].order_ns - v[i].order_ns, CLOCK_UNBOUNDED },
		};
	ret->shortest_ns = ret->by_duration && n > 0 ? -v[0].order_ns : 0;
	return 0;
}

int64_t lateness_wait_ns(const struct lateness *late, const struct lateness_places *places,
			 uint32_t member, const struct arrival *a)
{
	int64_t ns;

	if (a->enter_ns == FACT_NONE || a->exit_ns == FACT_NONE)
		return 0;
	ns = late->by_duration ? a->exit_ns - a->enter_ns - late->shortest_ns :
				 late->v[0].at_ns - places->v[member].at.ns;
	if (ns > a->exit_ns - a->enter_ns)
		ns = a->exit_ns - a->enter_ns;
	return ns > 0 ? ns : 0;
}
