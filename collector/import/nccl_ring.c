#include "nccl_ring.h"

#include <stdlib.h>
#include <string.h>

bool nccl_ring_init(struct nccl_ring *r, uint32_t n)
{
	*r = (struct nccl_ring){ .n = n, .next = malloc(4 * ((size_t)n + 1) * sizeof *r->next) };
	if (!r->next)
		return false;
	r->prev = r->next + n;
	r->begin = r->prev + n;
	r->end = r->begin + n;
	for (uint32_t i = 0; i < n; i++) {
		r->next[i] = r->prev[i] = -1;
		r->begin[i] = r->end[i] = (int32_t)i;
	}
	return true;
}

void nccl_ring_fini(struct nccl_ring *r)
{
	free(r->next);
	*r = (struct nccl_ring){ 0 };
}

/* Would close a ring of some ranks only. */
static bool is_short(const struct nccl_ring *r, int32_t from, int32_t to)
{
	return r->begin[from] == to && r->n_set + 1 < r->n;
}

static bool can_be(const struct nccl_ring *r, int32_t from, int32_t to)
{
	return r->next[from] < 0 && r->prev[to] < 0 && !is_short(r, from, to);
}

void nccl_ring_set(struct nccl_ring *r, int32_t from, int32_t to)
{
	int32_t first, last;

	if (from < 0 || to < 0 || (uint32_t)from >= r->n || (uint32_t)to >= r->n) {
		r->contradicts = true;
		return;
	}
	if (r->next[from] == to)
		return;
	if (!can_be(r, from, to)) {
		r->contradicts = true;
		return;
	}
	first = r->begin[from];
	last = r->end[to];
	r->next[from] = to;
	r->prev[to] = from;
	r->end[first] = last;
	r->begin[last] = first;
	r->n_set++;
}

static int by_sender(const void *a, const void *b)
{
	const struct nccl_hop *x = a, *y = b;

	return x->from != y->from ? (x->from > y->from) - (x->from < y->from) : (x->to > y->to) - (x->to < y->to);
}

static uint32_t once_each(struct nccl_hop *v, uint32_t n)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++)
		if (kept == 0 || by_sender(&v[kept - 1], &v[i]) != 0)
			v[kept++] = v[i];
	return kept;
}

/* One choice left among v: the only way on from a sender, or to a receiver. */
static bool settle(struct nccl_ring *r, const struct nccl_hop *v, uint32_t n, uint32_t *n_to, uint32_t *only)
{
	uint32_t before = r->n_set;

	memset(n_to, 0, r->n * sizeof *n_to);
	for (uint32_t from = 0, to; from < n; from = to) {
		uint32_t ways = 0, way = 0;

		for (to = from; to < n && v[to].from == v[from].from; to++)
			if (can_be(r, v[to].from, v[to].to)) {
				ways++;
				way = to;
				n_to[v[to].to]++;
				only[v[to].to] = to;
			}
		if (ways == 1)
			nccl_ring_set(r, v[way].from, v[way].to);
	}
	for (uint32_t i = 0; i < r->n; i++)
		if (n_to[i] == 1 && can_be(r, v[only[i]].from, v[only[i]].to))
			nccl_ring_set(r, v[only[i]].from, v[only[i]].to);
	return r->n_set > before;
}

/* Every rank has told whom it sends to: else a way may be missing. */
static bool all_spoke(const struct nccl_ring *r, const struct nccl_hop *v, uint32_t n)
{
	uint32_t ranks = 0;

	for (uint32_t i = 0; i < n; i++)
		ranks += i == 0 || v[i].from != v[i - 1].from;
	return ranks == r->n;
}

bool nccl_ring_solve(struct nccl_ring *r, const struct nccl_hop *hops, uint32_t n_hops)
{
	struct nccl_hop *v = malloc((n_hops + 1) * sizeof *v);
	uint32_t *counts = malloc(2 * ((size_t)r->n + 1) * sizeof *counts), n = 0;
	struct nccl_ring try = { 0 };
	bool fine = v && counts && nccl_ring_init(&try, r->n);

	for (uint32_t i = 0; fine && i < n_hops; i++)
		if (hops[i].from >= 0 && hops[i].to >= 0 && (uint32_t)hops[i].from < r->n &&
		    (uint32_t)hops[i].to < r->n && hops[i].from != hops[i].to)
			v[n++] = hops[i];
	if (fine && n > 0 && !r->contradicts && !nccl_ring_complete(r)) {
		qsort(v, n, sizeof *v, by_sender);
		n = once_each(v, n);
		for (uint32_t i = 0; i < r->n; i++)
			if (r->next[i] >= 0)
				nccl_ring_set(&try, (int32_t)i, r->next[i]);
		for (uint32_t i = 0; i < n; i++)
			if (!v[i].tree)
				nccl_ring_set(&try, v[i].from, v[i].to);
		if (all_spoke(&try, v, n))
			while (!try.contradicts && settle(&try, v, n, counts, counts + r->n))
				;
		/* Connections of another kind may be among them: only what fits as a whole counts. */
		if (nccl_ring_complete(&try)) {
			struct nccl_ring old = *r;

			*r = try;
			try = old;
		}
	}
	nccl_ring_fini(&try);
	free(v);
	free(counts);
	return fine;
}

bool nccl_ring_complete(const struct nccl_ring *r)
{
	return !r->contradicts && r->n > 0 && r->n_set == r->n;
}
