#include "lateness.h"

static struct instant instant_of(const struct match *m, const struct arrival *a)
{
	return (struct instant){ a->proc, a->enter_ns,
				 roster_place(m->roster, &m->roster->procs[a->proc], a->enter_ns) };
}

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
	struct instant last = { 0 }, second = { 0 };
	uint32_t n = 0;

	*ret = (struct lateness){ 0 };
	roster_compare(m->roster);
	for (uint32_t i = 0; i < c->n_alloc && i < g->n_members; i++) {
		struct instant at;

		if (c->arrivals[i].enter_ns == FACT_NONE)
			continue;
		at = instant_of(m, &c->arrivals[i]);
		if (n == 0 || is_later(m, &at, &last)) {
			second = last;
			ret->second = ret->last;
			last = at;
			ret->last = i;
		} else if (n == 1 || is_later(m, &at, &second)) {
			second = at;
			ret->second = i;
		}
		n++;
	}
	if (n < 2)
		return;
	ret->all_here = c->n_entered >= g->n_expected;
	ret->proc = last.proc;
	ret->enter_ns = last.host_ns;
	ret->last_ns = last.at.at.ns;
	ret->gain = match_between(m, &last, &second);
}
