/* et_check.c - is the graph of an execution trace one? Edges from nobody, ids twice, and nodes that
 * would have to come before themselves.
 *
 * What nothing is left before, or nothing after, is taken away until nothing changes:
 * cycles stay, and what is on a way from one to another.
 */
#include "et.h"

#include <stdlib.h>
#include <string.h>

struct ids { /* sorted, each once */
	int64_t *v;
	uint32_t n;
};

static int by_id(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static bool sort_ids(const struct et *e, struct ids *ret, uint64_t *ret_n_duplicate)
{
	uint32_t n = 0;

	ret->v = malloc(((size_t)e->n_nodes + 1) * sizeof *ret->v);
	if (!ret->v)
		return false;
	for (uint32_t i = 0; i < e->n_nodes; i++)
		ret->v[i] = e->nodes[i].id;
	if (e->n_nodes > 1)
		qsort(ret->v, e->n_nodes, sizeof *ret->v, by_id);
	for (uint32_t i = 0; i < e->n_nodes; i++)
		if (n == 0 || ret->v[n - 1] != ret->v[i])
			ret->v[n++] = ret->v[i];
	ret->n = n;
	*ret_n_duplicate = e->n_nodes - n;
	return true;
}

static uint32_t index_of(const struct ids *ids, int64_t id)
{
	const int64_t *at = bsearch(&id, ids->v, ids->n, sizeof id, by_id);

	return at ? (uint32_t)(at - ids->v) : UINT32_MAX;
}

struct graph_edge {
	uint32_t from, to;
};

static int by_from(const void *a, const void *b)
{
	const struct graph_edge *x = a, *y = b;

	return x->from != y->from ? (x->from < y->from ? -1 : 1) : (x->to > y->to) - (x->to < y->to);
}

/* Away with what nothing is before any more; marks in gone. False without memory. */
static bool trim(struct graph_edge *v, size_t n, uint32_t n_nodes, bool *gone)
{
	uint32_t *before = calloc((size_t)n_nodes + 1, sizeof *before);
	uint32_t *ready = calloc((size_t)n_nodes + 1, sizeof *ready);
	size_t *first = calloc((size_t)n_nodes + 2, sizeof *first);
	uint32_t n_ready = 0;
	bool fine = before && ready && first;

	if (fine && n > 1)
		qsort(v, n, sizeof *v, by_from);
	for (size_t i = 0; fine && i < n; i++) {
		first[v[i].from + 1] = i + 1;
		before[v[i].to] += !gone[v[i].from];
	}
	for (uint32_t i = 0; fine && i < n_nodes; i++) {
		first[i + 1] = first[i + 1] > first[i] ? first[i + 1] : first[i];
		if (before[i] == 0)
			ready[n_ready++] = i;
	}
	for (uint32_t at = 0; fine && at < n_ready; at++) {
		uint32_t node = ready[at];
		bool was = gone[node];

		gone[node] = true;
		for (size_t i = first[node]; i < first[node + 1] && !was; i++)
			if (--before[v[i].to] == 0)
				ready[n_ready++] = v[i].to;
	}
	free(before);
	free(ready);
	free(first);
	return fine;
}

static void turn(struct graph_edge *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		v[i] = (struct graph_edge){ v[i].to, v[i].from };
}

bool et_look(const struct et *e, struct et_check *ret)
{
	struct graph_edge *v = calloc((size_t)e->n_edges + 1, sizeof *v);
	struct ids ids = { 0 };
	bool *gone = NULL, fine;
	size_t n = 0;

	*ret = (struct et_check){ 0 };
	fine = v && sort_ids(e, &ids, &ret->n_duplicate);
	gone = fine ? calloc((size_t)ids.n + 1, sizeof *gone) : NULL;
	for (uint32_t i = 0; gone && i < e->n_edges; i++) {
		struct graph_edge g = { index_of(&ids, e->edges[i].from), index_of(&ids, e->edges[i].to) };

		if (g.from == UINT32_MAX || g.to == UINT32_MAX)
			ret->n_unknown++;
		else
			v[n++] = g;
	}
	fine = gone && trim(v, n, ids.n, gone);
	turn(v, n);
	fine = fine && trim(v, n, ids.n, gone);
	for (uint32_t i = 0; fine && i < ids.n; i++)
		ret->n_cyclic += !gone[i];
	e->trace->no_memory |= !fine;
	free(v);
	free(ids.v);
	free(gone);
	return fine;
}
