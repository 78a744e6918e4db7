#include "split.h"

#include <stdlib.h>

#define COMMON_NS 1000	/* begins as near as this are one instant on one host */
#define COMMON_CALLS 3	/* of them in a row before a group is read so */
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

static struct instant ready(const struct match *m, const struct arrival *a)
{
	return (struct instant){ a->proc, a->ready_ns,
				 roster_place(m->roster, &m->roster->procs[a->proc], a->ready_ns) };
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
		p.is = ready(m, &c->arrivals[p.member]);
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

/* Waits as gaps. Who was last is named only if nobody else may have been. */
static int split_gaps(struct match *m, const struct group *g, const struct coll *c,
		      const struct match_point *last, struct gap skew, struct fact_collective *f,
		      struct fact_arrival *fa)
{
	f->gap = true;
	f->skew_ns = skew.ns;
	f->skew_err_ns = skew.err_ns;
	f->decided = c->last.all_here;
	for (uint32_t i = 0; i < g->n_members; i++) {
		uint32_t member = g->order[i];
		struct instant is;
		struct gap gap;
		int r;

		if (member >= c->n_alloc || c->arrivals[member].enter_ns == FACT_NONE)
			continue;
		is = ready(m, &c->arrivals[member]);
		r = until(m, &last->is, &is, &gap);
		if (r < 0)
			return r;
		fa->wait_ns = gap.ns > 0 ? gap.ns : 0;
		fa->wait_err_ns = gap.err_ns;
		fa++;
		if (member != last->member &&
		    (gap.err_ns == CLOCK_UNBOUNDED || gap.ns <= gap.err_ns))
			f->decided = false;
	}
	f->last_rank = f->decided ? g->ranks[last->member] : -1;
	return 0;
}

/* Nobody waits longer than it is inside. */
static void put_wait(const struct coll *c, const struct arrival *a, struct gap gap, struct fact_arrival *ret)
{
	int64_t inside_ns = a->exit_ns > a->enter_ns ? a->exit_ns - a->enter_ns : 0;

	ret->wait_ns = gap.ns > 0 ? gap.ns : 0;
	ret->wait_err_ns = gap.err_ns;
	if (a->exit_ns == FACT_NONE || ret->wait_ns <= inside_ns)
		return;
	ret->wait_ns = inside_ns;
	if (is_rooted(c->op) && gap.err_ns != CLOCK_UNBOUNDED && inside_ns < gap.ns - gap.err_ns)
		ret->wait_ns = FACT_NONE;
}

static int split_inside(struct match *m, const struct group *g, const struct coll *c,
			const struct match_point *last, struct fact_arrival *fa)
{
	for (uint32_t i = 0; i < g->n_members; i++) {
		uint32_t member = g->order[i];
		const struct arrival *a = &c->arrivals[member];
		struct instant is;
		struct gap gap;
		int r;

		if (member >= c->n_alloc || a->enter_ns == FACT_NONE)
			continue;
		is = (struct instant){ a->proc, a->enter_ns,
				       roster_place(m->roster, &m->roster->procs[a->proc], a->enter_ns) };
		r = until(m, &last->is, &is, &gap);
		if (r < 0)
			return r;
		put_wait(c, a, gap, fa++);
	}
	return 0;
}

int split_call(struct match *m, struct group *g, const struct coll *c, const struct match_point *last,
	       size_t n_points, struct fact_collective *f, struct fact_arrival *arrivals)
{
	struct match_point late;
	struct gap skew;

	if (!c->last.all_here || n_points < 2 || !began_together(f)) {
		g->n_common = 0;
	} else {
		if (g->n_common < COMMON_CALLS && (g->n_common == 0 || c->seq > g->common_seq))
			g->n_common++;
		g->common_seq = c->seq;
		if (g->n_common == COMMON_CALLS && last_ready(m, c, n_points, &late, &skew))
			return split_gaps(m, g, c, &late, skew, f, arrivals);
	}
	return split_inside(m, g, c, last, arrivals);
}
