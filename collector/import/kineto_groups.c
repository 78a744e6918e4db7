#include "kineto_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_GROUPS 4096
#define MAX_RANKS (1u << 20) /* of all groups of a file */
#define MAX_TEXT 4000	     /* of a list of ranks; the rest is "…" */

static bool no_memory(struct kineto *k)
{
	k->trace->no_memory = true;
	return false;
}

/* ---- the file's head ---- */

static struct kineto_group *add_group(struct kineto *k)
{
	struct kineto_groups *g = &k->groups;

	if (g->n == g->n_alloc) {
		uint32_t want = g->n_alloc ? 2 * g->n_alloc : 16;
		struct kineto_group *grown = realloc(g->v, want * sizeof *grown);

		if (!grown) {
			no_memory(k);
			return NULL;
		}
		g->v = grown;
		g->n_alloc = want;
	}
	g->v[g->n] = (struct kineto_group){ 0 };
	return &g->v[g->n++];
}

static bool add_rank(struct kineto *k, struct kineto_group *v, const json_t *value)
{
	int64_t rank = json_is_integer(value) ? json_integer_value(value) : -1;

	if (rank < 0 || rank >= FACT_MAX_RANKS || v->n == FACT_MAX_RANKS || k->groups.n_ranks == MAX_RANKS)
		return true;
	if (v->n == v->n_alloc) {
		uint32_t want = v->n_alloc ? 2 * v->n_alloc : 16;
		int32_t *grown = realloc(v->ranks, want * sizeof *grown);

		if (!grown)
			return no_memory(k);
		v->ranks = grown;
		v->n_alloc = want;
	}
	v->ranks[v->n++] = (int32_t)rank;
	k->groups.n_ranks++;
	return true;
}

/* Texts, and numbers that stand for one. */
static void read_text(const json_t *value, char *out, size_t n_out)
{
	if (json_is_string(value))
		snprintf(out, n_out, "%.63s", json_string_value(value));
	else if (json_is_integer(value))
		snprintf(out, n_out, "%lld", (long long)json_integer_value(value));
}

static bool read_group(struct kineto *k, const json_t *value, struct kineto_group *v)
{
	const json_t *ranks = json_object_get(value, "ranks"), *size = json_object_get(value, "pg_size"), *rank;
	size_t i;

	read_text(json_object_get(value, "pg_name"), v->name, sizeof v->name);
	read_text(json_object_get(value, "pg_desc"), v->desc, sizeof v->desc);
	json_array_foreach(ranks, i, rank)
		if (!add_rank(k, v, rank))
			return false;
	if (json_is_integer(size) && json_integer_value(size) != v->n)
		v->n = 0; /* this list is cut as well */
	return true;
}

bool kineto_groups_read(struct kineto *k, const json_t *list)
{
	const json_t *value;
	size_t i;

	json_array_foreach(list, i, value) {
		struct kineto_group *v = json_is_object(value) && k->groups.n < MAX_GROUPS ? add_group(k) : NULL;

		if (k->trace->no_memory || (v && !read_group(k, value, v)))
			return false;
	}
	return true;
}

/* ---- a call's members ---- */

/* "[0, 1, 2]" or "[0, 1, …]" into out: how many there are, and whether that is all. */
static uint32_t parse_ranks(const char *text, int32_t *out, uint32_t max, bool *ret_all)
{
	uint32_t n = 0;

	*ret_all = false;
	if (*text++ != '[')
		return 0;
	while (n < max) {
		char *end;
		long rank = strtol(text, &end, 10);

		if (end == text || rank < 0 || rank >= FACT_MAX_RANKS)
			return n;
		text = end + strspn(end, " ");
		if (*text != ',' && *text != ']')
			return n; /* a number may be cut as well */
		out[n++] = (int32_t)rank;
		*ret_all = *text == ']';
		if (*text++ == ']')
			return n;
	}
	return n;
}

static const struct kineto_group *find_group(const struct kineto *k, const struct call *c)
{
	for (uint32_t i = 0; i < k->groups.n; i++) {
		const struct kineto_group *v = &k->groups.v[i];

		if (v->n > 0 && strcmp(v->name, c->group) == 0 &&
		    (!c->desc[0] || !v->desc[0] || strcmp(v->desc, c->desc) == 0))
			return v;
	}
	return NULL;
}

/* Of the same size, and with the same first ones. */
static bool fits(const struct call *c, const int32_t *ranks, uint32_t n, const int32_t *first, uint32_t n_first)
{
	return n >= n_first && (c->size < 0 || c->size == n) && memcmp(ranks, first, n_first * sizeof *ranks) == 0;
}

/* How many, into out, which has room for FACT_MAX_RANKS; 0 = not known. */
static uint32_t find_members(const struct kineto *k, const struct call *c, int32_t *out)
{
	int32_t first[128];
	bool all;
	uint32_t n = parse_ranks(c->ranks, first, 128, &all);
	const struct kineto_group *v;

	if (all && !c->ranks_cut && (c->size < 0 || c->size == n)) {
		memcpy(out, first, n * sizeof *out);
		return n;
	}
	v = c->group[0] ? find_group(k, c) : NULL;
	if (v && fits(c, v->ranks, v->n, first, n)) {
		memcpy(out, v->ranks, v->n * sizeof *out);
		return v->n;
	}
	if (c->start < 0 || c->stride < 1 || c->size < 1 || c->size > FACT_MAX_RANKS ||
	    c->stride >= FACT_MAX_RANKS || c->start + (c->size - 1) * c->stride >= FACT_MAX_RANKS)
		return 0;
	for (uint32_t i = 0; i < c->size; i++)
		out[i] = (int32_t)(c->start + i * c->stride);
	return fits(c, out, (uint32_t)c->size, first, n) ? (uint32_t)c->size : 0;
}

static char *text_of(const int32_t *ranks, uint32_t n)
{
	char *text = malloc(MAX_TEXT + 64);
	size_t at = 0;

	for (uint32_t i = 0; text && i < n && at < MAX_TEXT; i++)
		at += (size_t)sprintf(text + at, "%s%d", i ? ", " : "[", ranks[i]);
	if (text)
		strcpy(text + at, at < MAX_TEXT ? "]" : ", …]");
	return text;
}

/* ---- its name ---- */

/* The default group's name where nothing tells of it. */
static void name_group(const struct call *c, char *out, size_t n_out)
{
	if (!c->group[0])
		snprintf(out, n_out, "collectives");
	else if (c->desc[0] && strcmp(c->desc, "undefined") != 0)
		snprintf(out, n_out, "%s (%s)", c->group, c->desc);
	else
		snprintf(out, n_out, "%s", c->group);
}

/* Names may be a rank's own: "1" of ranks 0 and 1 is not "1" of 2 and 3. So it is named by
 * its ranks as well, as long as it is not of all. */
static void name_members(const struct kineto *k, struct kineto_label *v, const int32_t *ranks, uint32_t n)
{
	size_t at = strlen(v->name);

	if (n != k->world_size)
		snprintf(v->name + at, sizeof v->name - at, " of ranks %d to %d", ranks[0], ranks[n - 1]);
}

static bool make_label(struct kineto *k, const struct call *c, struct kineto_label *v)
{
	int32_t *ranks = malloc(FACT_MAX_RANKS * sizeof *ranks);
	uint32_t n = ranks ? find_members(k, c, ranks) : 0;
	bool fine = ranks != NULL;

	name_group(c, v->name, sizeof v->name);
	k->groups.n_cut += n == 0 && c->ranks[0];
	if (n > 0) {
		name_members(k, v, ranks, n);
		v->ranks = text_of(ranks, n);
		fine = v->ranks && trace_group(k->trace, v->name, ranks, n);
	}
	free(ranks);
	return fine || no_memory(k);
}

const struct kineto_label *kineto_group_of(struct kineto *k, uint32_t call)
{
	static const struct kineto_label unknown = { "collectives", NULL };
	struct kineto_groups *g = &k->groups;

	if (call == 0)
		return &unknown;
	if (!g->labels) {
		g->labels = calloc(k->n_calls, sizeof *g->labels);
		g->n_labels = g->labels ? k->n_calls : 0;
	}
	if (!g->labels) {
		no_memory(k);
		return NULL;
	}
	if (!g->labels[call - 1].name[0] && !make_label(k, &k->calls[call - 1], &g->labels[call - 1]))
		return NULL;
	return &g->labels[call - 1];
}

void kineto_groups_free(struct kineto *k)
{
	struct kineto_groups *g = &k->groups;

	for (uint32_t i = 0; i < g->n; i++)
		free(g->v[i].ranks);
	for (uint32_t i = 0; i < g->n_labels; i++)
		free(g->labels[i].ranks);
	free(g->v);
	free(g->labels);
}
