#include "replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct edge {
	uint32_t op, before;
};

struct replay {
	struct replay_op *ops;
	uint32_t n_ops, n_ops_alloc;
	struct edge *edges;
	uint32_t n_edges, n_edges_alloc;
	uint32_t n_steps, n_joins;

	/* replay_order() */
	uint32_t *first_out; /* by op, n_ops + 1; into out */
	uint32_t *out;	     /* the ops behind it */
	uint32_t *first_member, *members; /* of joins */
	/* A unit is an operation alone, or all of a join: the order of units, as one
	 * operation of each. */
	uint32_t *order, n_order;

	/* scratch of a run */
	int64_t *ready_ns;
	int64_t *step_ns;
};

int replay_new(struct replay **ret)
{
	*ret = calloc(1, sizeof **ret);
	return *ret ? 0 : -ENOMEM;
}

void replay_free(struct replay *r)
{
	if (!r)
		return;
	free(r->ops);
	free(r->edges);
	free(r->first_out);
	free(r->out);
	free(r->first_member);
	free(r->members);
	free(r->order);
	free(r->ready_ns);
	free(r->step_ns);
	free(r);
}

static int grow(void *v, uint32_t n, uint32_t *n_alloc, size_t size, uint32_t max)
{
	uint32_t want = *n_alloc ? 2 * *n_alloc : 256;
	void *grown;

	if (n < *n_alloc)
		return 0;
	if (n >= max)
		return REPLAY_TOO_MANY;
	grown = realloc(*(void **)v, want * size);
	if (!grown)
		return -ENOMEM;
	*(void **)v = grown;
	*n_alloc = want;
	return 0;
}

int replay_add(struct replay *r, const struct replay_op *op, uint32_t *ret)
{
	int e = grow(&r->ops, r->n_ops, &r->n_ops_alloc, sizeof *r->ops, REPLAY_MAX_OPS);

	if (e != 0)
		return e;
	if (op->step >= REPLAY_MAX_OPS || (op->join != REPLAY_ALONE && op->join >= REPLAY_MAX_OPS))
		return REPLAY_TOO_MANY;
	r->ops[r->n_ops] = *op;
	if (op->ns < 0)
		r->ops[r->n_ops].ns = 0;
	if (op->ns > REPLAY_MAX_NS)
		r->ops[r->n_ops].ns = REPLAY_MAX_NS;
	if (op->step >= r->n_steps)
		r->n_steps = op->step + 1;
	if (op->join != REPLAY_ALONE && op->join >= r->n_joins)
		r->n_joins = op->join + 1;
	*ret = r->n_ops++;
	return 0;
}

int replay_after(struct replay *r, uint32_t op, uint32_t before)
{
	int e = grow(&r->edges, r->n_edges, &r->n_edges_alloc, sizeof *r->edges,
		     4 * REPLAY_MAX_OPS);

	if (e == 0)
		r->edges[r->n_edges++] = (struct edge){ op, before };
	return e;
}

/* Counts become where each begins; returns nothing is left to do but fill. */
static void begin_at(uint32_t *counts, uint32_t n)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i <= n; i++) {
		uint32_t mine = counts[i];

		counts[i] = at;
		at += mine;
	}
}

static bool index_all(struct replay *r)
{
	uint32_t *at = calloc((size_t)(r->n_ops > r->n_joins ? r->n_ops : r->n_joins) + 1,
			      sizeof *at);

	r->first_out = calloc((size_t)r->n_ops + 1, sizeof *r->first_out);
	r->out = calloc((size_t)r->n_edges + 1, sizeof *r->out);
	r->first_member = calloc((size_t)r->n_joins + 1, sizeof *r->first_member);
	r->members = calloc((size_t)r->n_ops + 1, sizeof *r->members);
	r->order = calloc((size_t)r->n_ops + 1, sizeof *r->order);
	r->ready_ns = calloc((size_t)r->n_ops + 1, sizeof *r->ready_ns);
	r->step_ns = calloc((size_t)r->n_steps + 1, sizeof *r->step_ns);
	if (!at || !r->first_out || !r->out || !r->first_member || !r->members || !r->order ||
	    !r->ready_ns || !r->step_ns) {
		free(at);
		return false;
	}
	for (uint32_t i = 0; i < r->n_edges; i++)
		r->first_out[r->edges[i].before]++;
	begin_at(r->first_out, r->n_ops);
	memcpy(at, r->first_out, r->n_ops * sizeof *at);
	for (uint32_t i = 0; i < r->n_edges; i++)
		r->out[at[r->edges[i].before]++] = r->edges[i].op;
	for (uint32_t i = 0; i < r->n_ops; i++)
		if (r->ops[i].join != REPLAY_ALONE)
			r->first_member[r->ops[i].join]++;
	begin_at(r->first_member, r->n_joins);
	memcpy(at, r->first_member, r->n_joins * sizeof *at);
	for (uint32_t i = 0; i < r->n_ops; i++)
		if (r->ops[i].join != REPLAY_ALONE)
			r->members[at[r->ops[i].join]++] = i;
	free(at);
	return true;
}

/* The members of the unit of operation i; one of its own when it is alone. */
static const uint32_t *unit_of(const struct replay *r, const uint32_t *i, uint32_t *ret_n)
{
	uint32_t join = r->ops[*i].join;

	if (join == REPLAY_ALONE) {
		*ret_n = 1;
		return i;
	}
	*ret_n = r->first_member[join + 1] - r->first_member[join];
	return r->members + r->first_member[join];
}

int replay_order(struct replay *r)
{
	uint32_t *owed = NULL, *unit_owed = NULL, *todo = NULL, n_todo = 0, n_done = 0;
	int e = index_all(r) ? 0 : -ENOMEM;

	owed = calloc((size_t)r->n_ops + 1, sizeof *owed);
	unit_owed = calloc((size_t)r->n_joins + 1, sizeof *unit_owed);
	todo = calloc((size_t)r->n_ops + 1, sizeof *todo);
	if (e != 0 || !owed || !unit_owed || !todo) {
		e = -ENOMEM;
		goto out;
	}
	for (uint32_t i = 0; i < r->n_edges; i++)
		owed[r->edges[i].op]++;
	for (uint32_t i = 0; i < r->n_ops; i++) {
		if (r->ops[i].join != REPLAY_ALONE)
			unit_owed[r->ops[i].join]++;
		if (owed[i] == 0)
			todo[n_todo++] = i;
	}
	while (n_todo > 0) {
		uint32_t i = todo[--n_todo], n;
		const uint32_t *unit;

		if (r->ops[i].join != REPLAY_ALONE && --unit_owed[r->ops[i].join] > 0)
			continue;
		r->order[r->n_order++] = i;
		unit = unit_of(r, &i, &n);
		n_done += n;
		for (uint32_t k = 0; k < n; k++)
			for (uint32_t o = r->first_out[unit[k]]; o < r->first_out[unit[k] + 1]; o++)
				if (--owed[r->out[o]] == 0)
					todo[n_todo++] = r->out[o];
	}
	e = n_done == r->n_ops ? REPLAY_OK : REPLAY_CYCLE;
out:
	free(owed);
	free(unit_owed);
	free(todo);
	return e;
}

uint32_t replay_n_ops(const struct replay *r)
{
	return r->n_ops;
}

uint32_t replay_n_steps(const struct replay *r)
{
	return r->n_steps;
}

const struct replay_op *replay_at(const struct replay *r, uint32_t op)
{
	return &r->ops[op];
}

int64_t replay_run(struct replay *r, replay_ns_fn ns, const void *arg, int64_t *ret_steps)
{
	int64_t total_ns = 0;

	memset(r->ready_ns, 0, r->n_ops * sizeof *r->ready_ns);
	memset(r->step_ns, 0, r->n_steps * sizeof *r->step_ns);
	for (uint32_t k = 0; k < r->n_order; k++) {
		int64_t begin_ns = 0;
		uint32_t n;
		const uint32_t *unit = unit_of(r, &r->order[k], &n);

		for (uint32_t m = 0; m < n; m++)
			if (r->ready_ns[unit[m]] > begin_ns)
				begin_ns = r->ready_ns[unit[m]];
		for (uint32_t m = 0; m < n; m++) {
			const struct replay_op *op = &r->ops[unit[m]];
			int64_t end_ns = begin_ns + ns(arg, unit[m], op);

			if (end_ns > r->step_ns[op->step])
				r->step_ns[op->step] = end_ns;
			for (uint32_t o = r->first_out[unit[m]]; o < r->first_out[unit[m] + 1]; o++)
				if (r->ready_ns[r->out[o]] < end_ns)
					r->ready_ns[r->out[o]] = end_ns;
		}
	}
	for (uint32_t i = 0; i < r->n_steps; i++)
		total_ns += r->step_ns[i];
	if (ret_steps)
		memcpy(ret_steps, r->step_ns, r->n_steps * sizeof *ret_steps);
	return total_ns;
}
