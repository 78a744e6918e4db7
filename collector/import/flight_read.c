/* flight_read.c - one dump: its groups, its calls, how far the rank is in each group.
 *
 * A group is known by its name, since its number is the rank's own. The status of a group has
 * only that number; where no entry ties the two, they are tied by order: both count up as
 * groups are made.
 */
#include "flight.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_GROUPS 65536
#define MAX_CALLS (1u << 22)
#define MAX_NS (INT64_C(1) << 61)

struct reader {
	struct trace *t;
	struct flight_dump *d;
	char *why;
	size_t n_why;
};

static bool no_memory(struct reader *r)
{
	r->t->no_memory = true;
	return false;
}

static bool fail(struct reader *r, const char *why)
{
	snprintf(r->why, r->n_why, "%s", why);
	return false;
}

void flight_free(struct flight_dump *d)
{
	for (uint32_t i = 0; d && i < d->n_groups; i++) {
		free(d->groups[i].name);
		free(d->groups[i].what);
		free(d->groups[i].ranks);
	}
	if (d) {
		free(d->groups);
		free(d->calls);
		json_decref(d->by_name);
	}
	free(d);
}

/* ---- groups ---- */

static bool add_group(struct reader *r, const char *name, uint32_t *ret)
{
	const json_t *known = json_object_get(r->d->by_name, name);
	struct flight_dump *d = r->d;
	struct flight_group *g;

	if (known) {
		*ret = (uint32_t)json_integer_value(known);
		return true;
	}
	if (d->n_groups == MAX_GROUPS)
		return fail(r, "has more groups than 65536");
	if (d->n_groups == d->n_groups_alloc) {
		uint32_t want = d->n_groups_alloc ? 2 * d->n_groups_alloc : 16;

		g = realloc(d->groups, want * sizeof *g);
		if (!g)
			return no_memory(r);
		d->groups = g;
		d->n_groups_alloc = want;
	}
	if (json_object_set_new(r->d->by_name, name, json_integer(d->n_groups)) != 0)
		return no_memory(r);
	*ret = d->n_groups++;
	d->groups[*ret] = (struct flight_group){ strdup(name), NULL, NULL, 0, FLIGHT_UNKNOWN, FLIGHT_UNKNOWN,
						 FLIGHT_UNKNOWN, FLIGHT_UNKNOWN, false };
	return d->groups[*ret].name || no_memory(r);
}

static bool describe(struct reader *r, struct flight_group *g, const json_t *what)
{
	if (g->what || !json_is_string(what))
		return true;
	g->what = strdup(json_string_value(what));
	return g->what || no_memory(r);
}

/* "[0, 1]", or a list. What is neither is not known. */
static bool read_ranks(struct reader *r, struct flight_group *g, const json_t *v)
{
	json_t *parsed = json_is_string(v) ? json_loads(json_string_value(v), 0, NULL) : json_incref((json_t *)v);
	size_t n = json_array_size(parsed);

	if (n > 0 && n <= FACT_MAX_RANKS && !g->ranks) {
		g->ranks = calloc(n, sizeof *g->ranks);
		for (size_t i = 0; g->ranks && i < n; i++) {
			int64_t rank = flight_integer(json_array_get(parsed, i), -1);

			if (rank < 0 || rank >= FACT_MAX_RANKS) {
				g->n_ranks = 0;
				break;
			}
			g->ranks[g->n_ranks++] = (int32_t)rank;
		}
	}
	json_decref(parsed);
	return n == 0 || n > FACT_MAX_RANKS || g->ranks || no_memory(r);
}

static bool read_config(struct reader *r, const json_t *config)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)config, key, v)
	{
		const char *name = json_string_value(json_object_get(v, "name"));
		uint32_t i;

		if (!add_group(r, name ? name : key, &i) ||
		    !describe(r, &r->d->groups[i], json_object_get(v, "desc")) ||
		    !read_ranks(r, &r->d->groups[i], json_object_get(v, "ranks")))
			return false;
	}
	return true;
}

/* [name, description], {"name", "desc"}, a name, or only the rank's own number. */
static bool group_of(struct reader *r, const json_t *entry, uint32_t *ret)
{
	const json_t *v = json_object_get(entry, "process_group"), *what;
	const char *name = json_string_value(json_is_array(v) ? json_array_get(v, 0)
							      : json_is_object(v) ? json_object_get(v, "name") : v);
	int64_t id = flight_integer(json_object_get(entry, "pg_id"), FLIGHT_UNKNOWN);
	char own[64];
	struct flight_group *g;

	what = json_is_array(v) ? json_array_get(v, 1) : json_object_get(v, "desc");
	snprintf(own, sizeof own, id == 0 ? "0" : "%lld of rank %d", (long long)id, r->d->rank);
	if (!add_group(r, name ? name : own, ret) || !describe(r, &r->d->groups[*ret], what))
		return false;
	g = &r->d->groups[*ret];
	g->local |= !name && id != 0;
	if (g->id == FLIGHT_UNKNOWN)
		g->id = id;
	return true;
}

/* ---- status ---- */

static void set_status(struct flight_group *g, const json_t *v)
{
	g->enqueued = flight_integer(json_object_get(v, "last_enqueued_collective"), FLIGHT_UNKNOWN);
	g->started = flight_integer(json_object_get(v, "last_started_collective"), FLIGHT_UNKNOWN);
	g->completed = flight_integer(json_object_get(v, "last_completed_collective"), FLIGHT_UNKNOWN);
}

struct pair {
	int64_t number;
	const void *what;
};

static int by_number(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

/* Group number n is the n-th name, if both are numbers, as many, and no entry speaks against it. */
static bool by_order(struct reader *r, const json_t *status, struct pair *names, struct pair *ids)
{
	struct flight_dump *d = r->d;
	size_t n = 0;
	const char *key;
	json_t *v;

	for (uint32_t i = 0; i < d->n_groups; i++) {
		json_t *name = json_string(d->groups[i].name);

		names[i] = (struct pair){ flight_integer(name, -1), &d->groups[i] };
		json_decref(name);
		if (names[i].number < 0)
			return false;
	}
	json_object_foreach((json_t *)status, key, v)
	{
		json_t *id = json_string(key);

		if (n < d->n_groups)
			ids[n] = (struct pair){ flight_integer(id, -1), v };
		n++;
		json_decref(id);
	}
	if (n != d->n_groups)
		return false;
	qsort(names, n, sizeof *names, by_number);
	qsort(ids, n, sizeof *ids, by_number);
	for (size_t i = 0; i < n; i++) {
		const struct flight_group *g = names[i].what;

		if (ids[i].number < 0 || (g->id != FLIGHT_UNKNOWN && g->id != ids[i].number))
			return false;
	}
	for (size_t i = 0; i < n; i++) {
		struct flight_group *g = &d->groups[(const struct flight_group *)names[i].what - d->groups];

		g->id = ids[i].number;
		set_status(g, ids[i].what);
	}
	return true;
}

static bool read_status(struct reader *r, const json_t *status)
{
	struct flight_dump *d = r->d;
	struct pair *names = calloc(2 * (size_t)d->n_groups + 1, sizeof *names);
	char key[32];

	if (!names)
		return no_memory(r);
	if (!by_order(r, status, names, names + d->n_groups))
		for (uint32_t i = 0; i < d->n_groups; i++) {
			if (d->groups[i].id == FLIGHT_UNKNOWN && strcmp(d->groups[i].name, "0") == 0)
				d->groups[i].id = 0; /* the first group of a job */
			snprintf(key, sizeof key, "%lld", (long long)d->groups[i].id);
			set_status(&d->groups[i], json_object_get(status, key));
		}
	free(names);
	return true;
}

/* ---- calls ---- */

/* Which of the job's ranks? A pipeline's group counts its own members, the job's group has both
 * numbers alike. self knows who it is itself. */
static int32_t job_rank(const struct flight_group *g, int32_t rank, int32_t own, int32_t self)
{
	bool members = rank >= 0 && own >= 0 && (uint32_t)rank < g->n_ranks && (uint32_t)own < g->n_ranks;

	if (members && g->ranks[own] == self)
		return g->ranks[rank];
	if (own != self || (g->n_ranks == 0 && strcmp(g->name, "0") != 0))
		return -1;
	for (uint32_t i = 0; i < g->n_ranks; i++)
		if (g->ranks[i] == rank)
			return rank;
	return g->n_ranks == 0 ? rank : -1;
}

/* Bytes that members can be held against each other by; false where they may differ. */
static bool size_of(const struct flight_group *g, const json_t *e, enum event_op op, uint64_t element_bytes,
		    uint64_t *ret)
{
	size_t n_in, n_out;
	uint64_t in = flight_elements(json_object_get(e, "input_sizes"), &n_in);
	uint64_t out = flight_elements(json_object_get(e, "output_sizes"), &n_out);
	const json_t *outs = json_object_get(e, "output_sizes");

	*ret = in * element_bytes;
	if (op == OP_ALL_TO_ALL || op == OP_SCATTER || op == OP_BARRIER || op == OP_UNKNOWN || n_in == 0)
		return false;
	for (size_t i = 1; i < n_out && op == OP_ALL_GATHER && n_in == 1; i++)
		if (!json_equal(json_array_get(outs, i), json_array_get(outs, 0)))
			return false; /* unequal parts */
	if (op == OP_ALL_GATHER && g->n_ranks > 0 && n_out > 0 && out != in * g->n_ranks)
		*ret = (out % g->n_ranks ? out : out / g->n_ranks) * element_bytes;
	return true;
}

static bool add_call(struct reader *r, const struct flight_call *c)
{
	struct flight_dump *d = r->d;

	if (d->n_calls == MAX_CALLS)
		return fail(r, "has more entries than 4194304");
	if (d->n_calls == d->n_calls_alloc) {
		uint32_t want = d->n_calls_alloc ? 2 * d->n_calls_alloc : 256;
		struct flight_call *grown = realloc(d->calls, want * sizeof *grown);

		if (!grown)
			return no_memory(r);
		d->calls = grown;
		d->n_calls_alloc = want;
	}
	d->calls[d->n_calls++] = *c;
	return true;
}

static int64_t when(const json_t *e, const char *key)
{
	int64_t ns = flight_integer(json_object_get(e, key), 0);

	return ns > 0 && ns < MAX_NS ? ns : 0;
}

static void find_peers(const struct reader *r, struct flight_call *c, const struct flight_words *w)
{
	const struct flight_group *g = &r->d->groups[c->group];
	int32_t self = r->d->rank;

	c->from = c->op == OP_SEND ? self : job_rank(g, w->from, w->to, self);
	c->to = c->op == OP_SEND ? job_rank(g, w->to, w->from, self) : self;
}

static bool read_entry(struct reader *r, const json_t *e, uint32_t *ret_group)
{
	const char *name = json_string_value(json_object_get(e, "profiling_name"));
	const char *state = json_string_value(json_object_get(e, "state"));
	const char *dtype = json_string_value(json_array_get(json_object_get(e, "input_dtypes"), 0));
	struct flight_words w = flight_words(name ? name : "");
	struct flight_call c = { .op = (uint8_t)w.op, .from = -1, .to = -1 };
	uint64_t element_bytes = 1;
	int64_t number;

	if (!group_of(r, e, &c.group))
		return false;
	*ret_group = c.group;
	c.message = json_is_true(json_object_get(e, "is_p2p")) || w.op == OP_SEND || w.op == OP_RECV;
	number = flight_integer(json_object_get(e, "seq_id"), FLIGHT_UNKNOWN); /* before 2.0 the only one */
	c.number = flight_integer(json_object_get(e, c.message ? "p2p_seq_id" : "collective_seq_id"), number);
	if (c.number < 0 || c.number > UINT32_MAX / 2 || (c.message && w.op != OP_SEND && w.op != OP_RECV))
		return true; /* a bracket around messages, or nothing to go by */
	if (c.message)
		find_peers(r, &c, &w);
	c.dtype = (uint8_t)flight_dtype(dtype ? dtype : "", &element_bytes);
	c.unsized = !size_of(&r->d->groups[c.group], e, w.op, element_bytes, &c.bytes) && !c.message;
	c.created_ns = when(e, "time_created_ns");
	c.over = when(e, "time_discovered_completed_ns") > 0 || (state && strcmp(state, "completed") == 0);
	return add_call(r, &c);
}

static int by_place(const void *a, const void *b)
{
	const struct flight_call *x = a, *y = b;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	if (x->message != y->message)
		return x->message < y->message ? -1 : 1;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

/* Coalesced calls have one number, and are one call. An all-gather of unequal parts is made of
 * broadcasts. */
static void merge(struct flight_call *a, const struct flight_call *b)
{
	if (a->op != b->op) {
		bool parts = (a->op == OP_ALL_GATHER && b->op == OP_BROADCAST) ||
			     (a->op == OP_BROADCAST && b->op == OP_ALL_GATHER);

		a->unsized |= a->op && b->op;
		a->op = !a->op ? b->op : !b->op ? a->op : parts ? OP_ALL_GATHER : OP_UNKNOWN;
	}
	if (a->dtype != b->dtype)
		a->dtype = !a->dtype ? b->dtype : !b->dtype ? a->dtype : DTYPE_UNKNOWN;
	a->bytes += b->bytes;
	a->unsized |= b->unsized && b->op;
	a->over &= b->over;
	if (b->created_ns > 0 && (a->created_ns == 0 || b->created_ns < a->created_ns))
		a->created_ns = b->created_ns;
}

static void merge_calls(struct flight_dump *d)
{
	uint32_t n = 0;

	if (d->n_calls > 0)
		qsort(d->calls, d->n_calls, sizeof *d->calls, by_place);
	for (uint32_t i = 0; i < d->n_calls; i++)
		if (n > 0 && by_place(&d->calls[n - 1], &d->calls[i]) == 0)
			merge(&d->calls[n - 1], &d->calls[i]);
		else
			d->calls[n++] = d->calls[i];
	d->n_calls = n;
	for (uint32_t i = n; i-- > 0;) {
		struct flight_group *g = &d->groups[d->calls[i].group];

		g->first_call = i;
		g->n_calls++;
	}
}

int32_t flight_group_of(const struct flight_dump *d, const char *name)
{
	const json_t *v = json_object_get(d->by_name, name);

	return v ? (int32_t)json_integer_value(v) : -1;
}

uint32_t flight_place(const struct flight_dump *d, const struct flight_call *what)
{
	uint32_t lo = 0, hi = d->n_calls;

	while (lo < hi) {
		uint32_t at = lo + (hi - lo) / 2;

		if (by_place(&d->calls[at], what) < 0)
			lo = at + 1;
		else
			hi = at;
	}
	return lo;
}

/* ---- a dump ---- */

static const json_t *entries_of(const json_t *tree)
{
	return json_is_array(tree) ? tree : json_object_get(tree, "entries");
}

bool flight_is(const json_t *tree)
{
	const json_t *entries = entries_of(tree), *first = json_array_get(entries, 0);

	if (json_is_array(tree)) /* the first releases: nothing but the entries */
		return json_object_get(first, "profiling_name") && json_object_get(first, "state");
	if (!entries) /* of a job without calls */
		return json_object_get(tree, "pg_config") && json_object_get(tree, "pg_status");
	return json_is_array(entries) && (!first || json_is_object(first)) &&
	       (json_object_get(tree, "pg_config") || json_object_get(tree, "version"));
}

/* In the job's group a rank names itself: "send 3->0". */
static int32_t rank_of_entries(const json_t *entries)
{
	json_t *e;
	size_t i;

	json_array_foreach((json_t *)entries, i, e)
	{
		const char *name = json_string_value(json_object_get(e, "profiling_name"));
		const char *group = json_string_value(json_array_get(json_object_get(e, "process_group"), 0));
		struct flight_words w = flight_words(name ? name : "");
		int32_t self = w.op == OP_SEND ? w.from : w.op == OP_RECV ? w.to : -1;

		if (self >= 0 && self < FACT_MAX_RANKS && group && strcmp(group, "0") == 0)
			return self;
	}
	return -1;
}

static bool find_rank(struct reader *r, const struct trace_input *in, const json_t *tree)
{
	const char *slash = strrchr(in->path, '/');
	int64_t said = flight_integer(json_object_get(tree, "rank"), -1);
	int32_t rank = said >= 0 && said < FACT_MAX_RANKS ? (int32_t)said
							  : flight_rank_of_name(slash ? slash + 1 : in->path);

	rank = rank < 0 ? rank_of_entries(entries_of(tree)) : rank;
	if (rank < 0)
		return fail(r, "is a dump of a rank that neither its name nor its entries tell: call it …_rank_3, or what it is");
	for (uint32_t i = 0; i < r->t->n_dumps; i++)
		if (r->t->dumps[i]->rank == rank) {
			snprintf(r->why, r->n_why, "is of rank %d, and so was a dump before it", rank);
			return false;
		}
	r->d->rank = rank;
	return true;
}

static bool keep(struct reader *r)
{
	struct flight_dump **grown = realloc(r->t->dumps, (r->t->n_dumps + 1) * sizeof *grown);

	if (!grown)
		return no_memory(r);
	r->t->dumps = grown;
	grown[r->t->n_dumps++] = r->d;
	r->d = NULL;
	return true;
}

static bool read_dump(struct reader *r, const json_t *tree)
{
	const json_t *entries = entries_of(tree);
	uint32_t *groups = calloc(json_array_size(entries) + 1, sizeof *groups);
	bool fine = groups || no_memory(r);
	json_t *e;
	size_t i;

	fine = fine && read_config(r, json_object_get(tree, "pg_config"));
	json_array_foreach((json_t *)entries, i, e)
		fine = fine && read_entry(r, e, &groups[i]);
	fine = fine && read_status(r, json_object_get(tree, "pg_status"));
	if (fine) {
		merge_calls(r->d);
		fine = flight_put_rows(r->t, r->d, entries, groups) || no_memory(r);
	}
	free(groups);
	return fine;
}

enum import_outcome flight_read(struct trace *t, struct trace_input *in, json_t *tree, char *why, size_t n_why)
{
	struct reader r = { t, calloc(1, sizeof *r.d), why, n_why };
	const char *version = json_string_value(json_object_get(tree, "version"));
	uint32_t n_calls = 0, n_groups = 0;
	bool fine = r.d || no_memory(&r);

	if (fine)
		r.d->by_name = json_object();
	fine = fine && (r.d->by_name || no_memory(&r)) && find_rank(&r, in, tree) && read_dump(&r, tree);
	if (fine) {
		in->rank = r.d->rank;
		in->n_events = json_array_size(entries_of(tree));
		n_calls = r.d->n_calls;
		n_groups = r.d->n_groups;
	}
	fine = fine && keep(&r);
	flight_free(r.d);
	if (fine)
		snprintf(why, n_why, "ok; version %.20s, %u calls of %u groups", version ? version : "unknown", n_calls,
			 n_groups);
	return fine ? IMPORT_OK : IMPORT_FAILED;
}
