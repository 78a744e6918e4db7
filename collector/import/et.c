#include "et.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool et_fail(struct et *e, const char *fmt, ...)
{
	va_list ap;

	if (e->why[0])
		return false;
	va_start(ap, fmt);
	vsnprintf(e->why, e->n_why, fmt, ap);
	va_end(ap);
	return false;
}

struct et_comm et_no_comm(void)
{
	return (struct et_comm){ .seq = ET_NONE, .rank = ET_NONE, .n_in = ET_NONE, .n_out = ET_NONE, .bytes = ET_NONE,
				 .group_size = ET_NONE, .source = ET_NONE, .target = ET_NONE };
}

static bool grow(struct et *e, void *v, uint32_t n, uint32_t *n_alloc, size_t size, uint32_t max)
{
	uint32_t want = *n_alloc ? 2 * *n_alloc : 64;
	void *grown;

	if (n < *n_alloc)
		return true;
	if (n >= max)
		return et_fail(e, "has more than %u nodes or edges", max);
	grown = realloc(*(void **)v, want * size);
	e->trace->no_memory |= !grown;
	if (!grown)
		return false;
	*(void **)v = grown;
	*n_alloc = want;
	return true;
}

bool et_add_node(struct et *e, const struct et_node *node)
{
	if (grow(e, &e->nodes, e->n_nodes, &e->n_nodes_alloc, sizeof *e->nodes, ET_MAX_NODES)) {
		e->nodes[e->n_nodes++] = *node;
		return true;
	}
	free(node->name);
	free(node->comm);
	return false;
}

bool et_add_edge(struct et *e, int64_t from, int64_t to, enum et_edge_kind kind)
{
	if (!grow(e, &e->edges, e->n_edges, &e->n_edges_alloc, sizeof *e->edges, ET_MAX_EDGES))
		return false;
	e->edges[e->n_edges++] = (struct et_edge){ from, to, kind };
	return true;
}

void et_free(struct et *e)
{
	for (uint32_t i = 0; i < e->n_nodes; i++) {
		free(e->nodes[i].name);
		free(e->nodes[i].comm);
	}
	free(e->nodes);
	free(e->edges);
}

/* ---- whose it is ---- */

static int64_t digits_at(const char *at)
{
	int64_t v = 0;

	if (!isdigit((unsigned char)*at))
		return -1;
	for (; isdigit((unsigned char)*at); at++)
		if ((v = 10 * v + (*at - '0')) >= FACT_MAX_RANKS)
			return -1;
	return v;
}

int64_t et_rank_of(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot, *at;

	for (at = name; (at = strcasestr(at, "rank")) != NULL; at++) {
		const char *digits = at + 4 + strspn(at + 4, "-_.");

		if (digits_at(digits) >= 0)
			return digits_at(digits);
	}
	dot = strrchr(name, '.');
	for (; dot && dot > name && strcmp(dot, ".gz") == 0;)
		for (dot--; dot > name && *dot != '.';)
			dot--;
	if (!dot || dot == name)
		return -1;
	for (at = dot; at > name && isdigit((unsigned char)at[-1]);)
		at--;
	/* A number of its own: "et_3.json", not "resnet50.json". */
	return at > name && strchr("-_.", at[-1]) ? digits_at(at) : -1;
}

static int64_t rank_in(const struct et *e)
{
	int64_t rank = -1;

	for (uint32_t i = 0; i < e->n_nodes; i++) {
		int64_t v = e->nodes[i].comm ? e->nodes[i].comm->rank : ET_NONE;

		if (v == ET_NONE)
			continue;
		if (v < 0 || v >= FACT_MAX_RANKS || (rank >= 0 && rank != v))
			return -1;
		rank = v;
	}
	return rank;
}

/* A file before it of the same rank. */
static bool is_told(const struct trace *t, int64_t rank)
{
	for (uint32_t i = 0; rank >= 0 && i < t->n_rows; i++)
		if (strcmp(t->rows[i].table, "et_trace") == 0 && t->rows[i].values[1].type == 'i' &&
		    t->rows[i].values[1].integer == rank)
			return true;
	return false;
}

/* ---- rows ---- */

static int64_t or_null(int64_t v)
{
	return v == ET_NONE ? TRACE_NULL : v;
}

static const char *text_or_null(const char *text)
{
	return text[0] ? text : NULL;
}

static const char *type_name(int64_t type)
{
	static const char *const names[] = { "invalid", "metadata", "memory load", "memory store", "compute", "send", "receive",
					     "collective" };

	return type >= 0 && type < (int64_t)(sizeof names / sizeof *names) ? names[type] : NULL;
}

static bool tell_node(struct et *e, int64_t file, int64_t rank, const struct et_node *v)
{
	const struct et_comm none = et_no_comm(), *c = v->comm ? v->comm : &none;

	return trace_row(e->trace, "et_node", "iiittiiittiiiitii", file, rank, v->id, v->name, type_name(v->type),
			 or_null(v->parent), or_null(v->dur_us), (int64_t)(v->comm != NULL), text_or_null(c->collective),
			 text_or_null(c->group), or_null(c->seq), or_null(c->n_in), or_null(c->n_out), or_null(c->bytes),
			 text_or_null(c->dtype), or_null(c->source), or_null(c->target));
}

bool et_tell(struct et *e, struct trace_input *in)
{
	static const char *const kinds[ET_N_EDGE_KINDS] = { "data", "control", "parent" };
	uint64_t n_of[ET_N_EDGE_KINDS] = { 0 }, n_comms = 0;
	int64_t rank = et_rank_of(in->path), file = 0;
	struct et_check check;

	rank = rank >= 0 ? rank : rank_in(e);
	if (is_told(e->trace, rank))
		return et_fail(e, "is of rank %lld, and so was an execution trace before it", (long long)rank);
	for (uint32_t i = 0; i < e->trace->n_rows; i++)
		file += strcmp(e->trace->rows[i].table, "et_trace") == 0;
	if (!et_look(e, &check))
		return false;
	for (uint32_t i = 0; i < e->n_edges; i++)
		n_of[e->edges[i].kind]++;
	for (uint32_t i = 0; i < e->n_nodes; i++)
		n_comms += e->nodes[i].comm != NULL;
	in->rank = rank;
	in->n_events = e->n_nodes;
	rank = rank >= 0 ? rank : TRACE_NULL;
	if (!trace_row(e->trace, "et_trace", "iiitiiiiiii", file, rank, (int64_t)e->n_nodes,
		       text_or_null(e->schema), (int64_t)n_comms, (int64_t)n_of[ET_DATA], (int64_t)n_of[ET_CONTROL],
		       (int64_t)n_of[ET_PARENT], (int64_t)check.n_unknown, (int64_t)check.n_duplicate, (int64_t)check.n_cyclic))
		return false;
	for (uint32_t i = 0; i < e->n_nodes; i++)
		if (!tell_node(e, file, rank, &e->nodes[i]))
			return false;
	for (uint32_t i = 0; i < e->n_edges; i++)
		if (!trace_row(e->trace, "et_edge", "iiiit", file, rank, e->edges[i].from, e->edges[i].to, kinds[e->edges[i].kind]))
			return false;
	return true;
}
