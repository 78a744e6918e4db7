#include "lateness.h"

/* On one host its own clock decides. */
static bool is_later(const struct match *m, const struct instant *a, const struct instant *b)
{
	if (m->roster->procs[a->proc].host == m->roster->procs[b->proc].host)
		return a->host_ns > b->host_ns;
	return a->at.at.ns > b->at.at.ns;
}

void lateness_of(const struct match *m, uint32_t group, const struct coll *c, struct lateness *ret)
{
	const struct group *g = &m->groups[group];
	struct instant v[LATENESS_MEMBERS];
	uint32_t n = 0, n_all = 0;

	*ret = (struct lateness){ 0 };
	roster_compare(m->roster);
	for (uint32_t i = 0; i < c->n_alloc && i < g->n_members; i++) {
		const struct arrival *a = &c->arrivals[i];
		struct instant at;
		uint32_t k;

		if (a->enter_ns == FACT_NONE)
			continue;
		n_all++;
		at = (struct instant){ a->proc, a->enter_ns,
				       roster_place(m->roster, &m->roster->procs[a->proc],
						    a->enter_ns) };
		for (k = n; k > 0 && is_later(m, &at, &v[k - 1]); k--)
			if (k < LATENESS_MEMBERS)
				v[k] = v[k - 1];
		if (k < LATENESS_MEMBERS)
			v[k] = at;
		n += n < LATENESS_MEMBERS;
	}
	ret->all_here = n_all > 1 && c->n_entered >= g->n_expected;
	ret->n = ret->all_here ? n : 0;
	for (uint32_t i = 0; i < ret->n; i++)
		ret->v[i] = (struct late_member){
			.proc = v[i].proc, .rank = m->roster->procs[v[i].proc].rank,
			.enter_ns = v[i].host_ns, .at_ns = v[i].at.at.ns,
			.behind = i > 0 ? match_between(m, &v[0], &v[i]) : (struct gap){ 0 },
		};
}
