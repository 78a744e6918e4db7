/* blame.c - the segments of a path summed up by rank and what it did.
 *
 * That the others waited is laid to what made the late one late: of all that the path
 * shows of it since it took the path over, what took longest over what its peers take;
 * where none of that is known, what it did last.
 */
#include "graph_internal.h"

#include <errno.h>
#include <string.h>

static int by_key(const void *a, const void *b)
{
	const struct fact_blame *x = a, *y = b;
	int r;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	r = strcmp(x->name, y->name);
	return r < 0 ? -1 : r > 0;
}

static void add_up(struct fact_blame *a, const struct fact_blame *b)
{
	a->n += b->n;
	a->path_ns += b->path_ns;
	a->held_ns += b->held_ns;
	a->undecided_ns += b->undecided_ns;
	if (b->excess_ns != FACT_NONE)
		a->excess_ns = (a->excess_ns == FACT_NONE ? 0 : a->excess_ns) + b->excess_ns;
}

/* v[0..n) in the order of time, the last of them just before the others could go on. */
static struct fact_blame *what_held(struct fact_blame *v, const struct fact_segment *s, size_t n)
{
	int32_t rank = s[n].from_rank < 0 ? s[n].rank : s[n].from_rank;
	size_t held = n - 1;

	if (v[n - 1].rank != rank)
		return NULL;
	for (size_t i = n; i-- > 0 && v[i].rank == rank;) {
		if (v[i].excess_ns > 0 && v[i].excess_ns > v[held].excess_ns)
			held = i;
		if (s[i].held_ns != FACT_NONE)
			break; /* here they all met */
	}
	return &v[held];
}

int blame_put(struct graph *g, const struct fact_path *p)
{
	size_t first = g->facts->blames.n, n = first;
	struct fact_blame *v;

	for (size_t i = 0; i < p->n_segments; i++) {
		const struct fact_segment *s = &g->facts->segments.v[p->first_segment + i];
		struct fact_blame *b = FACTS_PUSH(g->facts, blames);

		if (!b)
			return -ENOMEM;
		*b = (struct fact_blame){ .step = p->step, .rank = s->rank, .host = s->host,
					  .kind = s->kind, .name = s->name, .group = s->group, .n = 1,
					  .path_ns = s->dur_ns, .excess_ns = s->excess_ns,
					  .undecided_ns = s->undecided ? s->dur_ns : 0 };
	}
	v = g->facts->blames.v;
	for (size_t i = 1; i < p->n_segments; i++) {
		const struct fact_segment *s = &g->facts->segments.v[p->first_segment];
		struct fact_blame *held = s[i].held_ns == FACT_NONE ? NULL : what_held(v + first, s, i);

		if (held)
			held->held_ns += s[i].held_ns;
	}
	qsort(v + first, g->facts->blames.n - first, sizeof *v, by_key);
	for (size_t i = first; i < g->facts->blames.n; i++) {
		if (n > first && by_key(&v[n - 1], &v[i]) == 0)
			add_up(&v[n - 1], &v[i]);
		else
			v[n++] = v[i];
	}
	g->facts->blames.n = n;
	return 0;
}
