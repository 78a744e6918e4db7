/* tell.c - what one collective's arrivals say: who was first, who was last, and
 * whether the clocks can tell them apart.
 */
#include "match_internal.h"
#include "split.h"

static bool disjoint(const struct match *m, const struct match_point *late,
		     const struct match_point *other)
{
	const struct fleet_point *a = &late->is.at, *b = &other->is.at;
	struct gap gap;

	/* Mostly the probes tell them apart, which costs nothing more. */
	if (late->host != other->host && a->err_ns != CLOCK_UNBOUNDED &&
	    b->err_ns != CLOCK_UNBOUNDED && a->at.ns - a->err_ns > b->at.ns + b->err_ns)
		return true;
	gap = match_between(m, &late->is, &other->is);
	return gap.err_ns != CLOCK_UNBOUNDED && gap.ns > gap.err_ns;
}

/* On one host its own clock decides what is told to be equal. */
static bool is_later(const struct match_point *a, const struct match_point *b)
{
	if (a->host == b->host)
		return a->is.host_ns > b->is.host_ns;
	return a->is.at.at.ns > b->is.at.at.ns;
}

size_t match_place(struct match *m, const struct group *g, struct coll *c, size_t *ret_first,
		   size_t *ret_last)
{
	size_t n = 0, first = 0, last = 0, next = SIZE_MAX;

	if (m->n_points < g->n_members) {
		struct match_point *grown = realloc(m->points, g->n_members * sizeof *grown);

		if (!grown)
			return 0;
		m->points = grown;
		m->n_points = g->n_members;
	}
	roster_compare(m->roster);
	for (uint32_t i = 0; i < c->n_alloc && i < g->n_members; i++) {
		const struct arrival *a = &c->arrivals[i];
		struct match_point *p = &m->points[n];

		if (a->enter_ns == FACT_NONE)
			continue;
		p->member = i;
		p->host = m->roster->procs[a->proc].host;
		p->is = (struct instant){ a->proc, a->enter_ns,
					  roster_place(m->roster, &m->roster->procs[a->proc],
						       a->enter_ns) };
		if (is_later(&m->points[first], p))
			first = n;
		if (n > 0 && is_later(p, &m->points[last])) {
			next = last;
			last = n;
		} else if (n > 0 && (next == SIZE_MAX || is_later(p, &m->points[next]))) {
			next = n;
		}
		n++;
	}
	*ret_first = first;
	*ret_last = last;

	c->last = (struct coll_last){ .rank = -1, .next_proc = UINT32_MAX };
	c->last_valid = true;
	if (n == 0)
		return 0;
	c->last.all_here = c->n_entered >= g->n_expected;
	c->last.decided = c->last.all_here && n > 1;
	for (size_t i = 0; i < n && c->last.decided; i++)
		if (i != last && !disjoint(m, &m->points[last], &m->points[i]))
			c->last.decided = false;
	c->last.rank = g->ranks[m->points[last].member];
	c->last.proc = m->points[last].is.proc;
	c->last.host_ns = m->points[last].is.host_ns;
	if (next != SIZE_MAX) {
		c->last.next_proc = m->points[next].is.proc;
		c->last.next_host_ns = m->points[next].is.host_ns;
	}
	return n;
}

int match_tell(struct match *m, uint32_t group, struct coll *c)
{
	struct group *g = &m->groups[group];
	struct fact_collective *f;
	size_t first, last, n_points, n_before = m->facts->arrivals.n;
	const struct match_point *pf, *pl;
	int64_t end_ns = FACT_NONE;
	struct gap skew;
	int r;

	c->told = true;
	c->changed = false;
	n_points = match_place(m, g, c, &first, &last);
	if (n_points == 0)
		return c->n_entered ? -ENOMEM : 0; /* only ends were seen: nothing to say */
	r = match_tell_group(m, group);
	if (r < 0)
		return r;
	match_sort_members(g);
	pf = &m->points[first];
	pl = &m->points[last];

	for (uint32_t i = 0; i < g->n_members; i++) {
		uint32_t member = g->order[i];
		const struct arrival *a;
		struct fact_arrival *fa;
		struct fleet_point at;

		if (member >= c->n_alloc || c->arrivals[member].enter_ns == FACT_NONE)
			continue;
		a = &c->arrivals[member];
		at = match_point_of(m, n_points, member)->is.at;
		fa = FACTS_PUSH(m->facts, arrivals);
		if (!fa)
			return -ENOMEM;
		fa->rank = g->ranks[member];
		fa->enter_ns = at.at.ns;
		fa->err_ns = at.err_ns;
		fa->exit_ns = FACT_NONE;
		if (a->exit_ns != FACT_NONE) {
			fa->exit_ns = at.at.ns + (a->exit_ns - a->enter_ns);
			if (fa->exit_ns > end_ns)
				end_ns = fa->exit_ns;
		}
	}

	f = FACTS_PUSH(m->facts, collectives);
	if (!f)
		return -ENOMEM;
	f->group = group;
	f->seq = c->seq;
	f->op = c->op;
	f->dtype = c->dtype;
	f->bytes = c->bytes;
	f->step = c->step;
	f->first_arrival_ns = pf->is.at.at.ns;
	f->last_arrival_ns = pl->is.at.at.ns;
	f->end_ns = end_ns;
	skew = match_between(m, &pl->is, &pf->is);
	f->skew_ns = skew.ns;
	f->skew_err_ns = skew.err_ns;
	f->decided = c->last.decided;
	f->last_rank = c->last.decided ? c->last.rank : -1;
	f->mismatch = c->mismatch;
	f->n_expected = g->known ? g->n_expected : 0;
	f->n_seen = (uint32_t)(m->facts->arrivals.n - n_before);
	f->first_arrival_index = n_before;
	m->n_told++;
	return split_call(m, g, c, pl, n_points, f, m->facts->arrivals.v + n_before);
}
