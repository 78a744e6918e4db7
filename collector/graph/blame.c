/* blame.c - the segments of a path summed up by rank and what it did.
 *
 * That the others waited is laid to what the late one did just before it came: the
 * segment from which the path was handed over.
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
		if (s->held_ns != FACT_NONE && i > 0 &&
		    b[-1].rank == (s->from_rank < 0 ? s->rank : s->from_rank))
			b[-1].held_ns += s->held_ns;
	}
	v = g->facts->blames.v;
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
