#include "trace.h"

#include "flight.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void trace_init(struct trace *t)
{
	*t = (struct trace){ 0 };
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
	trace_forget_rows(t, 0);
	for (uint32_t i = 0; i < t->n_secrets; i++)
		free(t->secrets[i].name);
	free(t->secrets);
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

bool trace_keep(struct trace *t, size_t n_bytes, size_t n)
{
	n_bytes += 16 * n;
	if (!trace_spill(t) || !spill_keep(t->spill, n_bytes))
		return false;
	t->kept_bytes += n_bytes;
	return true;
}

void trace_unkeep(struct trace *t, size_t n_bytes, size_t n)
{
	n_bytes += 16 * n;
	n_bytes = n_bytes < t->kept_bytes ? n_bytes : t->kept_bytes; /* the rest is another trace's: trace_merge() */
	spill_forget(t->spill, n_bytes);
	t->kept_bytes -= n_bytes;
}

uint32_t trace_name(struct trace *t, struct trace_rank *r, const char *name)
{
	const json_t *known = json_object_get(r->name_ids, name);
	char **place;

	if (known)
		return (uint32_t)json_integer_value(known);
	if (!name[0] || r->n_names == TRACE_MAX_NAMES || !trace_keep(t, 2 * strlen(name) + 64, 4))
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

	if (!trace_keep(t, sizeof *v + strlen(category) + strlen(fields), 2)) {
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

bool trace_secret(struct trace *t, bool is_user, const char *name)
{
	struct trace_secret *v;

	for (uint32_t i = 0; i < t->n_secrets; i++)
		if (t->secrets[i].is_user == is_user && strcmp(t->secrets[i].name, name) == 0)
			return true;
	if (t->n_secrets == TRACE_MAX_SECRETS || strlen(name) > 254)
		return true;
	v = more(t, &t->secrets, &t->n_secrets, &t->n_secrets_alloc, sizeof *v);
	if (!v)
		return false;
	*v = (struct trace_secret){ is_user, strdup(name) };
	if (v->name)
		return true;
	t->n_secrets--;
	t->no_memory = true;
	return false;
}
