#include "latecomers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_GROUPS (1u << 16)
#define LEAST_RATIO 0.12 /* ranks that are alike differ by less, and for longer than one expects */

void latecomers_fini(struct latecomers *l)
{
	for (uint32_t i = 0; i < l->n_groups; i++)
		free(l->groups[i].v);
	free(l->groups);
	*l = (struct latecomers){ 0 };
}

static struct latecomers_group *group_of(struct latecomers *l, uint32_t group, uint32_t n_members)
{
	struct latecomers_group *g;
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

static int64_t stay_ns(const struct arrival *a)
{
	return a->exit_ns - a->enter_ns;
}

/* Nobody leaves before the last has come. */
static bool all_wait_for_all(uint8_t op)
{
	return op == OP_ALL_REDUCE || op == OP_ALL_GATHER || op == OP_REDUCE_SCATTER ||
	       op == OP_ALL_TO_ALL || op == OP_BARRIER;
}

int latecomers_call(struct latecomers *l, const struct match *m, uint32_t group, const struct coll *c)
{
	const struct group *g = &m->groups[group];
	uint32_t n_members = g->n_members < c->n_alloc ? g->n_members : c->n_alloc;
	int64_t shortest_ns = INT64_MAX, longest_ns = INT64_MIN;
	struct latecomers_group *v;

	if (group >= MAX_GROUPS || !c->arrivals || g->n_expected < 2 || n_members < g->n_expected ||
	    c->n_entered < g->n_expected || c->n_done < g->n_expected || !all_wait_for_all(c->op))
		return 0;
	for (uint32_t i = 0; i < n_members; i++) {
		const struct arrival *a = &c->arrivals[i];

		if (a->enter_ns == FACT_NONE || a->exit_ns == FACT_NONE)
			return 0;
		shortest_ns = stay_ns(a) < shortest_ns ? stay_ns(a) : shortest_ns;
		longest_ns = stay_ns(a) > longest_ns ? stay_ns(a) : longest_ns;
	}
	v = group_of(l, group, n_members);
	if (!v)
		return -ENOMEM;
	for (uint32_t i = 0; i < n_members; i++) {
		int64_t late_ns = longest_ns - stay_ns(&c->arrivals[i]);

		v->v[i].n++;
		v->v[i].sum_ns += late_ns;
		v->v[i].n_late += late_ns > (longest_ns - shortest_ns) / 2;
	}
	if (v->n_calls++ == 0)
		v->first_ns = c->arrivals[0].enter_ns;
	v->last_ns = c->arrivals[0].enter_ns;
	return 0;
}

static bool is_of(int32_t rank, const int32_t *ranks, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (ranks[i] == rank)
			return true;
	return false;
}

static bool of_group(const struct latecomers_group *v, const struct group *g, const int32_t *ranks,
		     uint32_t n, uint32_t least_calls, double *ret_ns, double *ret_period_ns)
{
	double theirs_ns = -1, others_ns = -1;

	if (v->n_calls < least_calls)
		return false;
	for (uint32_t i = 0; i < g->n_members && i < v->n_alloc; i++) {
		const struct latecomers_member *m = &v->v[i];
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

bool latecomers_of(const struct latecomers *l, const struct match *m, const int32_t *ranks, uint32_t n,
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
