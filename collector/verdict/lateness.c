#include "lateness.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_GROUPS (1u << 16)
#define LEAST_RATIO 0.02 /* less of a period is nobody's loss */

void lateness_fini(struct lateness *l)
{
	for (uint32_t i = 0; i < l->n_groups; i++)
		free(l->groups[i].v);
	free(l->groups);
	*l = (struct lateness){ 0 };
}

static struct lateness_group *group_of(struct lateness *l, uint32_t group, uint32_t n_members)
{
	struct lateness_group *g;
	void *grown;

	if (group >= l->n_groups) {
		uint32_t n = l->n_groups ? l->n_groups : 8;

		while (n <= group)
			n *= 2;
		grown = realloc(l->groups, n * sizeof *l->groups);
		if (!grown)
			return NULL;
		l->groups = grown;
		memset(l->groups + l->n_groups, 0, (n - l->n_groups) * sizeof *l->groups);
		l->n_groups = n;
	}
	g = &l->groups[group];
	if (n_members > g->n_alloc) {
		grown = realloc(g->v, n_members * sizeof *g->v);
		if (!grown)
			return NULL;
		g->v = grown;
		memset(g->v + g->n_alloc, 0, (n_members - g->n_alloc) * sizeof *g->v);
		g->n_alloc = n_members;
	}
	return g;
}

static bool place(const struct match *m, const struct coll *c, uint32_t member,
		  struct fleet_point *ret)
{
	const struct arrival *a = &c->arrivals[member];

	if (a->enter_ns == FACT_NONE)
		return false;
	*ret = roster_place(m->roster, &m->roster->procs[a->proc], a->enter_ns);
	return ret->err_ns != CLOCK_UNBOUNDED;
}

int lateness_call(struct lateness *l, const struct match *m, uint32_t group, const struct coll *c)
{
	const struct group *g = &m->groups[group];
	uint32_t n_members = g->n_members < c->n_alloc ? g->n_members : c->n_alloc;
	int64_t first_ns = INT64_MAX, last_ns = INT64_MIN;
	struct lateness_group *v;

	if (group >= MAX_GROUPS || !c->arrivals || g->n_expected < 2 || c->n_entered < g->n_expected)
		return 0;
	v = group_of(l, group, n_members);
	if (!v)
		return -ENOMEM;
	roster_compare(m->roster);
	for (uint32_t i = 0; i < n_members; i++) {
		struct fleet_point p;

		if (!place(m, c, i, &p))
			return 0; /* without a clock nobody is late */
		first_ns = p.at.ns < first_ns ? p.at.ns : first_ns;
		last_ns = p.at.ns > last_ns ? p.at.ns : last_ns;
	}
	for (uint32_t i = 0; i < n_members; i++) {
		struct fleet_point p;

		place(m, c, i, &p);
		v->v[i].n++;
		v->v[i].sum_ns += p.at.ns - first_ns;
		v->v[i].n_late += p.at.ns - p.err_ns > first_ns + (last_ns - first_ns) / 2;
	}
	if (v->n_calls++ == 0)
		v->first_ns = first_ns;
	v->last_ns = first_ns;
	return 0;
}

static bool is_of(int32_t rank, const int32_t *ranks, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (ranks[i] == rank)
			return true;
	return false;
}

static bool of_group(const struct lateness_group *v, const struct group *g, const int32_t *ranks,
		     uint32_t n, uint32_t least_calls, double *ret_ns, double *ret_period_ns)
{
	double theirs_ns = -1, others_ns = -1;

	if (v->n_calls < least_calls)
		return false;
	for (uint32_t i = 0; i < g->n_members && i < v->n_alloc; i++) {
		const struct lateness_member *m = &v->v[i];
		bool its = is_of(g->ranks[i], ranks, n);
		double mean_ns = m->n ? (double)m->sum_ns / m->n : 0;

		if (m->n < least_calls || (its ? 5 * m->n_late < 4 * m->n : 3 * m->n_late > m->n))
			return false;
		if (its && (theirs_ns < 0 || mean_ns < theirs_ns))
			theirs_ns = mean_ns;
		if (!its && mean_ns > others_ns)
			others_ns = mean_ns;
	}
	*ret_period_ns = (double)(v->last_ns - v->first_ns) / (v->n_calls - 1);
	*ret_ns = theirs_ns - others_ns;
	return theirs_ns >= 0 && others_ns >= 0 && *ret_ns > 0 &&
	       *ret_ns >= LEAST_RATIO * *ret_period_ns;
}

bool lateness_of(const struct lateness *l, const struct match *m, const int32_t *ranks, uint32_t n,
		 uint32_t least_calls, int64_t *ret_ns, double *ret_ratio)
{
	double most_ns = 0;

	for (uint32_t i = 0; i < l->n_groups && i < m->n_groups; i++) {
		double ns, period_ns;

		if (!of_group(&l->groups[i], &m->groups[i], ranks, n, least_calls, &ns,
			      &period_ns) || ns <= most_ns)
			continue;
		most_ns = ns;
		*ret_ns = (int64_t)ns;
		*ret_ratio = ns < period_ns ? ns / (period_ns - ns) : 0;
	}
	return most_ns > 0;
}
