#include "trace.h"

#include "flight.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void trace_init(struct trace *t)
{
	*t = (struct trace){ 0 };
}

static void free_row(struct trace_row *r)
{
	for (uint32_t i = 0; r->values && i < r->n_values; i++)
		free(r->values[i].text);
	free(r->values);
}

void trace_fini(struct trace *t)
{
	for (uint32_t i = 0; i < t->n_ranks; i++) {
		struct trace_rank *r = &t->ranks[i];

		for (unsigned k = 0; k < TRACE_RINGS; k++)
			runs_free(r->events[k]);
		runs_free(r->calls);
		for (uint32_t k = 0; k < r->n_names; k++)
			free(r->names[k]);
		for (uint32_t k = 0; k < r->n_records; k++) {
			free(r->records[k].category);
			free(r->records[k].fields);
		}
		free(r->names);
		free(r->records);
		json_decref(r->name_ids);
	}
	for (uint32_t i = 0; i < t->n_groups; i++) {
		free(t->groups[i].name);
		free(t->groups[i].ranks);
	}
	for (uint32_t i = 0; i < t->n_what_ifs; i++)
		free((char *)t->what_ifs[i].name);
	for (uint32_t i = 0; i < t->n_rows; i++)
		free_row(&t->rows[i]);
	for (uint32_t i = 0; i < t->n_dumps; i++)
		flight_free(t->dumps[i]);
	free(t->dumps);
	free(t->dumped.lines);
	free(t->dumped.seats);
	free(t->dumped.missing);
	free(t->rows);
	free(t->ranks);
	free(t->groups);
	free(t->what_ifs);
	if (t->spill)
		spill_forget(t->spill, t->kept_bytes);
	spill_unref(t->spill);
	trace_init(t);
}

/* Room for one more, zeroed; NULL without memory. */
static void *more(struct trace *t, void *v, uint32_t *n, uint32_t *n_alloc, size_t size)
{
	if (*n == *n_alloc) {
		uint32_t want = *n_alloc ? 2 * *n_alloc : 8;
		void *grown = realloc(*(void **)v, want * size);

		if (!grown) {
			t->no_memory = true;
			return NULL;
		}
		*(void **)v = grown;
		*n_alloc = want;
	}
	return memset(*(char **)v + size * (*n)++, 0, size);
}

struct trace_rank *trace_find_rank(struct trace *t, int32_t rank)
{
	for (uint32_t i = 0; i < t->n_ranks; i++)
		if (t->ranks[i].rank == rank)
			return &t->ranks[i];
	return NULL;
}

struct trace_rank *trace_add_rank(struct trace *t, int32_t rank, const char *host)
{
	struct trace_rank *r = more(t, &t->ranks, &t->n_ranks, &t->n_ranks_alloc, sizeof *r);

	if (!r)
		return NULL;
	r->rank = rank;
	r->first_ns = INT64_MAX;
	r->last_ns = INT64_MIN;
	snprintf(r->host, sizeof r->host, "%s", host);
	r->name_ids = json_object();
	if (!r->name_ids)
		t->no_memory = true;
	return r->name_ids ? r : NULL;
}

/* Is there room for texts and numbers of that size, in n allocations? */
static bool keep(struct trace *t, size_t n_bytes, size_t n)
{
	n_bytes += 16 * n;
	if (!trace_spill(t) || !spill_keep(t->spill, n_bytes))
		return false;
	t->kept_bytes += n_bytes;
	return true;
}

uint32_t trace_name(struct trace *t, struct trace_rank *r, const char *name)
{
	const json_t *known = json_object_get(r->name_ids, name);
	char **place;

	if (known)
		return (uint32_t)json_integer_value(known);
	if (!name[0] || r->n_names == TRACE_MAX_NAMES || !keep(t, 2 * strlen(name) + 64, 4))
		return 0;
	/* What is no UTF-8 has no name. */
	if (json_object_set_new(r->name_ids, name, json_integer(r->n_names + 1)) != 0)
		return 0;
	place = more(t, &r->names, &r->n_names, &r->n_names_alloc, sizeof *place);
	if (!place)
		return 0;
	*place = strdup(name);
	if (!*place) {
		r->n_names--;
		t->no_memory = true;
		return 0;
	}
	return r->n_names;
}

bool trace_note(struct trace *t, struct trace_rank *r, int64_t at_ns, const char *category,
		const char *fields)
{
	struct trace_record *v;

	if (!keep(t, sizeof *v + strlen(category) + strlen(fields), 2)) {
		t->n_left_out++;
		return true;
	}
	v = more(t, &r->records, &r->n_records, &r->n_records_alloc, sizeof *v);
	if (!v)
		return false;
	*v = (struct trace_record){ at_ns, strdup(category), strdup(fields) };
	t->no_memory |= !v->category || !v->fields;
	return v->category && v->fields;
}

bool trace_has_group(const struct trace *t, const char *name)
{
	for (uint32_t i = 0; i < t->n_groups; i++)
		if (strcmp(t->groups[i].name, name) == 0)
			return true;
	return false;
}

bool trace_group(struct trace *t, const char *name, const int32_t *ranks, uint32_t n)
{
	struct trace_group *g;

	if (trace_has_group(t, name))
		return true;
	g = more(t, &t->groups, &t->n_groups, &t->n_groups_alloc, sizeof *g);
	if (!g)
		return false;
	*g = (struct trace_group){ strdup(name), calloc((size_t)n + 1, sizeof *ranks), n };
	if (!g->name || !g->ranks) {
		t->no_memory = true;
		return false;
	}
	memcpy(g->ranks, ranks, n * sizeof *ranks);
	return true;
}

static size_t row_bytes(const char *types, va_list args)
{
	size_t n = sizeof(struct trace_row);

	for (; *types; types++) {
		const char *text = NULL;

		if (*types == 'i')
			(void)va_arg(args, int64_t);
		else if (*types == 'r')
			(void)va_arg(args, double);
		else
			text = va_arg(args, const char *);
		n += sizeof(struct trace_value) + (text ? strlen(text) + 17 : 0);
	}
	return n;
}

bool trace_row(struct trace *t, const char *table, const char *types, ...)
{
	struct trace_row *r;
	size_t n_bytes;
	va_list args;

	va_start(args, types);
	n_bytes = row_bytes(types, args);
	va_end(args);
	if (t->n_rows == TRACE_MAX_ROWS || !keep(t, n_bytes, 1)) {
		t->n_left_out++;
		return true;
	}
	r = more(t, &t->rows, &t->n_rows, &t->n_rows_alloc, sizeof *r);
	if (!r)
		return false;
	*r = (struct trace_row){ table, (uint32_t)strlen(types), calloc(strlen(types) + 1, sizeof *r->values) };
	va_start(args, types);
	for (uint32_t i = 0; r->values && i < r->n_values; i++) {
		struct trace_value *v = &r->values[i];
		const char *text;

		v->type = types[i];
		if (v->type == 'i') {
			v->integer = va_arg(args, int64_t);
			v->type = v->integer == TRACE_NULL ? 0 : 'i';
		} else if (v->type == 'r') {
			v->real = va_arg(args, double);
			v->type = v->real != v->real ? 0 : 'r';
		} else {
			text = va_arg(args, const char *);
			v->type = text ? 't' : 0;
			v->text = text ? strdup(text) : NULL;
			t->no_memory |= text && !v->text;
		}
	}
	va_end(args);
	t->no_memory |= !r->values;
	return !t->no_memory;
}

void trace_forget_rows(struct trace *t, uint32_t n)
{
	while (t->n_rows > n)
		free_row(&t->rows[--t->n_rows]);
}
