#include "split.h"

#include <stdlib.h>

#define COMMON_NS 1000	/* begins as near as this are one instant on one host */
#define DRIFT_PPM 200	/* of two clocks within one call, at most */

struct host_gap {
	uint64_t epoch;
	struct gap gap;
	int64_t host_ns;
};

/* The last less this instant. Between hosts a bound costs much more than on one, so
 * it is asked once a host and carried on by the host's own clock. */
static int until(struct match *m, const struct instant *last, const struct instant *is, struct gap *ret)
{
	const struct proc *p = &m->roster->procs[is->proc], *pl = &m->roster->procs[last->proc];
	struct host_gap *h;
	int64_t moved_ns;

	if (p->host == pl->host) {
		*ret = match_between(m, last, is);
		return 0;
	}
	if (p->host >= m->n_host_gaps) {
		struct host_gap *grown = realloc(m->host_gaps, m->roster->n_hosts * sizeof *grown);

		if (!grown)
			return -ENOMEM;
		for (uint32_t i = m->n_host_gaps; i < m->roster->n_hosts; i++)
			grown[i].epoch = 0;
		m->host_gaps = grown;
		m->n_host_gaps = m->roster->n_hosts;
	}
	h = &m->host_gaps[p->host];
	if (h->epoch != m->roster->epoch) {
		h->epoch = m->roster->epoch;
		h->gap = match_between(m, last, is);
		h->host_ns = is->host_ns;
		*ret = h->gap;
		return 0;
	}
	moved_ns = is->host_ns - h->host_ns;
	*ret = (struct gap){ h->gap.ns - moved_ns, h->gap.err_ns };
	if (ret->err_ns != CLOCK_UNBOUNDED)
		ret->err_ns += (moved_ns < 0 ? -moved_ns : moved_ns) / 1000000 * DRIFT_PPM +
			       2 * p->tick_error_ns;
	return 0;
}

/* May ranks leave before the last has come? */
static bool is_rooted(uint8_t op)
{
	return op == OP_BROADCAST || op == OP_REDUCE || op == OP_GATHER || op == OP_SCATTER;
}

static bool began_together(const struct fact_collective *f)
{
	return f->skew_err_ns != CLOCK_UNBOUNDED && f->skew_ns <= f->skew_err_ns + COMMON_NS;
}

static struct instant instant_of(const struct match *m, const struct arrival *a, int64_t host_ns)
{
	return (struct instant){ a->proc, host_ns,
				 roster_place(m->roster, &m->roster->procs[a->proc], host_ns) };
}

/* The last to be ready, when everybody's readiness is known and it is later than the
 * first's beyond doubt. */
static bool last_ready(const struct match *m, const struct coll *c, size_t n, struct match_point *ret,
		       struct gap *ret_skew)
{
	struct match_point first = { .member = UINT32_MAX };

	ret->member = UINT32_MAX;
	for (size_t i = 0; i < n; i++) {
		struct match_point p = m->points[i];

		if (c->arrivals[p.member].ready_ns == FACT_NONE ||
		    c->arrivals[p.member].ready_ns > c->arrivals[p.member].enter_ns)
			return false;
		p.is = instant_of(m, &c->arrivals[p.member], c->arrivals[p.member].ready_ns);
		if (first.member == UINT32_MAX || p.is.at.at.ns < first.is.at.at.ns)
			first = p;
		if (ret->member == UINT32_MAX || p.is.at.at.ns > ret->is.at.at.ns)
			*ret = p;
	}
	if (n < 2)
		return false;
	*ret_skew = match_between(m, &ret->is, &first.is);
	return ret_skew->err_ns != CLOCK_UNBOUNDED && ret_skew->ns > ret_skew->err_ns + COMMON_NS;
}

/* How far apart each is from the last, in the order of the arrivals. by_ready: of being
 * ready, not of entering. ret_beyond_ns: by so much someone else may in truth be later. */
static int measure(struct match *m, const struct group *g, const struct coll *c, const struct match_point *last,
		   size_t n_points, bool by_ready, struct fact_arrival *fa, int64_t *ret_beyond_ns)
{
	*ret_beyond_ns = 0;
	for (uint32_t i = 0; i < g->n_members; i++) {
		const struct arrival *a = &c->arrivals[g->order[i]];
		struct instant is;
		struct gap gap;
		int r;

		if (g->order[i] >= c->n_alloc || a->enter_ns == FACT_NONE)
			continue;
		is = by_ready ? instant_of(m, a, a->ready_ns) : match_point_of(m, n_points, g->order[i])->is;
		r = until(m, &last->is, &is, &gap);
		if (r < 0)
			return r;
		fa->wait_ns = gap.ns;
		fa->wait_err_ns = gap.err_ns;
		fa++;
		if (g->order[i] == last->member)
			continue;
		if (gap.err_ns == CLOCK_UNBOUNDED)
			*ret_beyond_ns = CLOCK_UNBOUNDED;
		else if (*ret_beyond_ns != CLOCK_UNBOUNDED && gap.err_ns - gap.ns > *ret_beyond_ns)
			*ret_beyond_ns = gap.err_ns - gap.ns;
	}
	return 0;
}

/* Nobody waits longer than it is inside. */
static void put_wait(const struct coll *c, int64_t inside_ns, struct fact_arrival *ret)
{
	int64_t gap_ns = ret->wait_ns;

	ret->wait_ns = gap_ns < 0 ? 0 : gap_ns < inside_ns ? gap_ns : inside_ns;
	if (is_rooted(c->op) && ret->wait_err_ns != CLOCK_UNBOUNDED && inside_ns < gap_ns - ret->wait_err_ns)
		ret->wait_ns = FACT_NONE;
}

static void put_waits(const struct group *g, const struct coll *c, bool gaps, int64_t beyond_ns,
		      struct fact_arrival *fa)
{
	for (uint32_t i = 0; i < g->n_members; i++) {
		const struct arrival *a = &c->arrivals[g->order[i]];

		if (g->order[i] >= c->n_alloc || a->enter_ns == FACT_NONE)
			continue;
		if (beyond_ns == CLOCK_UNBOUNDED || fa->wait_err_ns == CLOCK_UNBOUNDED)
			fa->wait_err_ns = CLOCK_UNBOUNDED;
		else
			fa->wait_err_ns += beyond_ns;
		put_wait(c, gaps || a->exit_ns == FACT_NONE ? INT64_MAX
			    : a->exit_ns > a->enter_ns	    ? a->exit_ns - a->enter_ns : 0, fa++);
	}
}

int split_call(struct match *m, struct group *g, const struct coll *c, const struct match_point *last,
	       size_t n_points, struct fact_collective *f, struct fact_arrival *arrivals)
{
	struct match_point late;
	struct gap skew = { 0 };
	int64_t beyond_ns;
	int r;

	if (!c->last.all_here || n_points < 2 || !began_together(f)) {
		g->n_common = 0;
	} else {
		if (g->n_common < MATCH_COMMON_CALLS && (g->n_common == 0 || c->seq > g->common_seq))
			g->n_common++;
		g->common_seq = c->seq;
		f->gap = g->n_common == MATCH_COMMON_CALLS && last_ready(m, c, n_points, &late, &skew);
	}
	r = measure(m, g, c, f->gap ? &late : last, n_points, f->gap, arrivals, &beyond_ns);
	if (r < 0)
		return r;
	put_waits(g, c, f->gap, beyond_ns, arrivals);
	if (f->gap) {
		f->skew_ns = skew.ns;
		f->skew_err_ns = skew.err_ns;
		f->decided = beyond_ns == 0; /* nobody else may have been last */
		f->last_rank = f->decided ? g->ranks[late.member] : -1;
	}
	return 0;
}
