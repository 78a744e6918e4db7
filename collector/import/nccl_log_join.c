/* nccl_log_join.c - what the logs of several ranks say together: communicators, their
 * rings, and who is which rank of the job.
 */
#include "nccl_log.h"
#include "nccl_ring.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

struct joined { /* a communicator */
	const char *key;
	int64_t n_ranks, n_channels;
	uint32_t n_seen, n_complete, n_rings, n_open, n_contradict;
	bool ambiguous; /* two processes say that they are the same rank of it */
};

enum { ITEM_HOP, ITEM_TREE, ITEM_EDGE };

struct item { /* a row about a channel */
	uint32_t comm;
	int64_t channel;
	int kind;
	uint32_t row;
};

struct join {
	struct trace *t;
	uint32_t n_rows; /* that the readers said */
	struct joined *comms;
	uint32_t n_comms;
	struct item *items;
	uint32_t n_items;
	json_t *ids, *seats; /* index of a key; who sits on "key rank" */
};

static uint32_t find_comm(struct join *j, const char *key)
{
	const json_t *known = json_object_get(j->ids, key);

	return known ? (uint32_t)json_integer_value(known) : UINT32_MAX;
}

/* One process at one rank of it. */
static bool take_rank(struct join *j, const struct trace_row *r)
{
	const char *key = nccl_text(r, RANK_COMM);
	int64_t rank = nccl_int(r, RANK_RANK), n_ranks = nccl_int(r, RANK_N_RANKS);
	int64_t n_channels = nccl_int(r, RANK_N_CHANNELS);
	uint32_t i = find_comm(j, key);
	struct joined *c;
	const char *sitting;
	char seat[NCCL_KEY + 32], who[NCCL_HOST + 48];

	if (i == UINT32_MAX) {
		i = j->n_comms++;
		j->comms[i] = (struct joined){ .key = key, .n_ranks = n_ranks };
		if (json_object_set_new(j->ids, key, json_integer(i)) != 0)
			return false;
	}
	c = &j->comms[i];
	if (n_ranks > c->n_ranks)
		c->n_ranks = n_ranks;
	if (n_channels > c->n_channels)
		c->n_channels = n_channels;
	if (rank == TRACE_NULL)
		return true;
	snprintf(seat, sizeof seat, "%s %lld", key, (long long)rank);
	snprintf(who, sizeof who, "%s %lld %lld", nccl_text(r, RANK_HOST), (long long)nccl_int(r, RANK_PID),
		 (long long)nccl_int(r, RANK_DEVICE));
	sitting = json_string_value(json_object_get(j->seats, seat));
	if (sitting) {
		c->ambiguous |= strcmp(sitting, who) != 0;
		return true;
	}
	c->n_seen++;
	c->n_complete += nccl_int(r, RANK_COMPLETE) == 1;
	return json_object_set_new(j->seats, seat, json_string(who)) == 0;
}

static bool is_table(const struct trace_row *r, const char *name)
{
	return strcmp(r->table, name) == 0;
}

static void take_item(struct join *j, uint32_t row)
{
	const struct trace_row *r = &j->t->rows[row];
	int kind = is_table(r, "nccl_hop")    ? ITEM_HOP
		   : is_table(r, "nccl_tree") ? ITEM_TREE
		   : is_table(r, "nccl_edge") ? ITEM_EDGE
					      : -1;
	uint32_t comm = kind >= 0 ? find_comm(j, nccl_text(r, 0)) : UINT32_MAX;

	/* The first connection between two ranks carries rings and trees; others carry messages, or
	 * are of the algorithms of switches. */
	if (comm == UINT32_MAX || (kind == ITEM_EDGE && (nccl_int(r, EDGE_INDEX) != 0 ||
							 strncmp(nccl_text(r, EDGE_TRANSPORT), "COLLNET", 7) == 0 ||
							 strncmp(nccl_text(r, EDGE_TRANSPORT), "NVLS", 4) == 0)))
		return;
	j->items[j->n_items++] = (struct item){ comm, nccl_int(r, 1), kind, row };
}

static int by_channel(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->comm != y->comm)
		return x->comm < y->comm ? -1 : 1;
	if (x->channel != y->channel)
		return x->channel < y->channel ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind - y->kind;
	return x->row < y->row ? -1 : x->row > y->row;
}

/* ---- a ring ---- */

/* In the tree of this channel as one of its ends told it; without its word it may be. */
static bool may_be_tree(const struct trace_row *const *tree, int64_t from, int64_t to)
{
	const int64_t ends[2] = { from, to };

	for (int k = 0; k < 2; k++) {
		const struct trace_row *r = tree[ends[k]];

		if (!r)
			return true;
		for (unsigned c = TREE_UP; c <= TREE_DOWN_2; c++)
			if (nccl_int(r, c) == ends[1 - k])
				return true;
	}
	return false;
}

static void set_hops(const struct join *j, struct nccl_ring *ring, const struct item *v, uint32_t n)
{
	/* A chain of them closes with its last hop: in any order. */
	for (uint32_t i = 0; i < n && v[i].kind == ITEM_HOP; i++) {
		const struct trace_row *r = &j->t->rows[v[i].row];
		int64_t rank = nccl_int(r, HOP_RANK), previous = nccl_int(r, HOP_PREVIOUS), next = nccl_int(r, HOP_NEXT);

		if (previous != TRACE_NULL)
			nccl_ring_set(ring, (int32_t)previous, (int32_t)rank);
		if (next != TRACE_NULL)
			nccl_ring_set(ring, (int32_t)rank, (int32_t)next);
	}
}

static bool solve(const struct join *j, struct nccl_ring *ring, const struct item *v, uint32_t n)
{
	const struct trace_row **tree = calloc(ring->n, sizeof *tree);
	struct nccl_hop *hops = calloc(n, sizeof *hops);
	uint32_t n_hops = 0;
	bool fine = tree && hops;

	for (uint32_t i = 0; i < n && fine; i++) {
		const struct trace_row *r = &j->t->rows[v[i].row];
		int64_t from = nccl_int(r, EDGE_FROM), to = nccl_int(r, EDGE_TO);
		int64_t rank = nccl_int(r, TREE_RANK);

		if (v[i].kind == ITEM_TREE && rank >= 0 && rank < ring->n)
			tree[rank] = r;
		if (v[i].kind == ITEM_EDGE && from < ring->n && to < ring->n)
			hops[n_hops++] = (struct nccl_hop){ (int32_t)from, (int32_t)to, may_be_tree(tree, from, to) };
	}
	fine = fine && nccl_ring_solve(ring, hops, n_hops);
	free(tree);
	free(hops);
	return fine;
}

/* An order of all ranks goes on from its last to its first. */
static void close_order(struct nccl_ring *ring)
{
	if (!ring->contradicts && ring->n_set + 1 == ring->n)
		for (uint32_t i = 0; i < ring->n; i++)
			if (ring->next[i] < 0)
				nccl_ring_set(ring, (int32_t)i, ring->begin[i]);
}

static bool put_ring(struct join *j, const struct joined *c, int64_t channel, const struct nccl_ring *ring)
{
	int32_t rank = 0;

	for (int64_t i = 0; i < ring->n; i++, rank = ring->next[rank])
		if (!trace_row(j->t, "nccl_ring", "tiii", c->key, channel, i, (int64_t)rank))
			return false;
	return true;
}

static bool take_channel(struct join *j, const struct item *v, uint32_t n)
{
	struct joined *c = &j->comms[v->comm];
	struct nccl_ring ring;
	bool fine = true;

	/* A size is only said: what so few lines cannot tell takes no memory. */
	if (c->ambiguous || c->n_ranks < 1 || c->n_ranks > NCCL_MAX_RANKS || 2 * (int64_t)n + 1 < c->n_ranks) {
		c->n_open++;
		return true;
	}
	if (!nccl_ring_init(&ring, (uint32_t)c->n_ranks))
		return false;
	set_hops(j, &ring, v, n);
	close_order(&ring);
	fine = solve(j, &ring, v, n);
	c->n_rings += nccl_ring_complete(&ring);
	c->n_contradict += ring.contradicts;
	c->n_open += !ring.contradicts && !nccl_ring_complete(&ring);
	if (fine && nccl_ring_complete(&ring))
		fine = put_ring(j, c, v->channel, &ring);
	nccl_ring_fini(&ring);
	return fine;
}

static bool take_channels(struct join *j)
{
	qsort(j->items, j->n_items, sizeof *j->items, by_channel);
	for (uint32_t from = 0, to; from < j->n_items; from = to) {
		for (to = from; to < j->n_items && j->items[to].comm == j->items[from].comm &&
				j->items[to].channel == j->items[from].channel;)
			to++;
		if (!take_channel(j, &j->items[from], to - from))
			return false;
	}
	return true;
}

static bool put_comms(struct join *j)
{
	for (uint32_t i = 0; i < j->n_comms; i++) {
		const struct joined *c = &j->comms[i];

		if (!trace_row(j->t, "nccl_comm", "tiiiiiiii", c->key, c->n_ranks, (int64_t)c->n_seen,
			       (int64_t)c->n_complete, c->n_channels, (int64_t)c->n_rings, (int64_t)c->n_open,
			       (int64_t)c->n_contradict, (int64_t)c->ambiguous))
			return false;
	}
	return true;
}

static bool join_comms(struct join *j)
{
	uint32_t n_comms = 0;
	bool fine = true;

	for (uint32_t i = 0; i < j->n_rows; i++)
		n_comms += is_table(&j->t->rows[i], "nccl_rank");
	j->comms = calloc(n_comms + 1, sizeof *j->comms);
	j->items = calloc((size_t)j->n_rows + 1, sizeof *j->items);
	j->ids = json_object();
	j->seats = json_object();
	fine = j->comms && j->items && j->ids && j->seats;
	for (uint32_t i = 0; i < j->n_rows && fine; i++)
		if (is_table(&j->t->rows[i], "nccl_rank"))
			fine = take_rank(j, &j->t->rows[i]);
	for (uint32_t i = 0; i < j->n_rows && fine; i++)
		take_item(j, i);
	return fine && take_channels(j) && put_comms(j) && nccl_log_ranks(j->t, j->n_rows);
}

bool nccl_log_join(struct trace *t, struct trace_input *inputs, uint32_t n_inputs)
{
	struct join j = { .t = t, .n_rows = t->n_rows };
	bool there = false;

	(void)inputs;
	(void)n_inputs;
	for (uint32_t i = 0; i < t->n_rows && !there; i++)
		there = is_table(&t->rows[i], "nccl_rank");
	if (there && !join_comms(&j))
		t->no_memory = true;
	free(j.comms);
	free(j.items);
	json_decref(j.ids);
	json_decref(j.seats);
	return !t->no_memory;
}
