/* timeline_join.c - which operations of different workers are one, and since when a
 * worker stood waiting for each.
 *
 * The n-th send to a neighbour is its n-th receive; the n-th collective of a sort is
 * the same on all that take part. What finds no other end stays alone.
 */
#include "timeline_internal.h"

#include "../graph/replay.h"

#include <stdlib.h>
#include <string.h>

struct member {
	uint64_t what;	/* step, and what is joined … */
	uint64_t where; /* … between whom */
	uint32_t op;
};

static uint64_t pack(uint32_t a, uint32_t b, uint32_t c)
{
	return (uint64_t)(a & 0x1fffff) << 42 | (uint64_t)(b & 0x1fffff) << 21 | (c & 0x1fffff);
}

static bool member_of(const struct timeline *l, uint32_t i, struct member *ret)
{
	const struct op *op = &l->ops[i];
	const struct kind *k = &l->kinds[op->kind];
	const struct worker *w = &l->workers[op->worker];
	uint32_t from = w->pp, what = op->kind;

	if (k->role == ROLE_MESSAGE) {
		if (k->lane == LANE_FORWARD_RECV)
			from = w->pp - 1; /* wraps where there is none: nobody sends */
		else if (k->lane == LANE_BACKWARD_RECV)
			from = w->pp + 1;
		what = k->lane == LANE_FORWARD_SEND || k->lane == LANE_FORWARD_RECV ? 0 : 1;
		*ret = (struct member){ (uint64_t)op->step << 32 | (l->linked ? (uint32_t)op->seq : op->nth),
					pack(from, w->dp, w->tp), i };
		ret->what ^= (uint64_t)what << 31;
		return true;
	}
	if (k->role != ROLE_COLL || k->scope == SCOPE_ALONE)
		return false;
	*ret = (struct member){ (uint64_t)op->step << 32 | (uint64_t)(what + 2) << 20 | (op->nth & 0xfffff),
				0, i };
	ret->what |= UINT64_C(1) << 30; /* no message has so many */
	if (k->scope == SCOPE_REPLICAS)
		ret->where = pack(w->pp, w->tp, (uint32_t)(op->chunk + 1));
	else if (k->scope == SCOPE_STAGES)
		ret->where = pack(w->dp, w->tp, 0);
	return true;
}

static int by_key(const void *a, const void *b)
{
	const struct member *x = a, *y = b;

	if (x->what != y->what)
		return x->what < y->what ? -1 : 1;
	if (x->where != y->where)
		return x->where < y->where ? -1 : 1;
	return x->op < y->op ? -1 : x->op > y->op;
}

/* A message has two ends, of different sorts, and a collective each worker once. */
static bool fits(const struct timeline *l, const struct member *v, size_t n)
{
	const struct op *a = &l->ops[v[0].op];

	if (n < 2)
		return false;
	if (l->kinds[a->kind].role == ROLE_MESSAGE)
		return n == 2 && a->kind != l->ops[v[1].op].kind;
	for (size_t i = 1; i < n; i++)
		if (l->ops[v[i].op].worker == l->ops[v[i - 1].op].worker)
			return false;
	return true;
}

/* Ops are sorted by step and worker. */
static void count_kinds(struct timeline *l)
{
	uint32_t seen[64] = { 0 };

	for (uint32_t i = 0; i < l->n_ops; i++) {
		if (i == 0 || l->ops[i].step != l->ops[i - 1].step ||
		    l->ops[i].worker != l->ops[i - 1].worker)
			memset(seen, 0, sizeof seen);
		l->ops[i].nth = seen[l->ops[i].kind]++;
	}
}

/* Of one worker in one step: [from, to). */
static void look_before(struct timeline *l, uint32_t from, uint32_t to)
{
	int64_t end_ns = l->ops[from].begin_ns;

	for (uint32_t i = from, k; i < to; i = k) {
		int64_t begin_ns = l->ops[i].begin_ns, latest_ns = end_ns;

		if (l->kinds[l->ops[i].kind].role == ROLE_STEP) { /* around the others */
			k = i + 1;
			continue;
		}
		/* What begins together is waited for together. */
		for (k = i; k < to && l->ops[k].begin_ns == begin_ns && l->kinds[l->ops[k].kind].role != ROLE_STEP; k++) {
			l->ops[k].ready_ns = end_ns < begin_ns ? end_ns : begin_ns;
			latest_ns = l->ops[k].end_ns > latest_ns ? l->ops[k].end_ns : latest_ns;
		}
		end_ns = latest_ns;
	}
}

bool timeline_join(struct timeline *l)
{
	struct member *v = calloc((size_t)l->n_ops + 1, sizeof *v);
	size_t n = 0, to;

	if (!v) {
		l->trace->no_memory = true;
		return false;
	}
	count_kinds(l);
	for (uint32_t i = 0; i < l->n_ops; i++)
		n += member_of(l, i, &v[n]);
	qsort(v, n, sizeof *v, by_key);
	for (size_t from = 0; from < n; from = to) {
		for (to = from + 1; to < n && v[to].what == v[from].what && v[to].where == v[from].where;)
			to++;
		if (!fits(l, v + from, to - from))
			continue;
		for (size_t i = from; i < to; i++)
			l->ops[v[i].op].join = l->n_joins;
		l->n_joins++;
	}
	free(v);
	for (uint32_t from = 0, at; from < l->n_ops; from = at) {
		for (at = from; at < l->n_ops && l->ops[at].step == l->ops[from].step &&
				l->ops[at].worker == l->ops[from].worker;)
			at++;
		look_before(l, from, at);
	}
	return true;
}
