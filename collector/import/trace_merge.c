/* trace_merge.c - what several threads read, put together in the order of the files. */
#include "flight.h"
#include "spill.h"
#include "trace.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void trace_init_beside(struct trace *part, struct trace *t)
{
	trace_init(part);
	part->spill = t->spill ? spill_ref(t->spill) : NULL;
}

static bool refuse(struct trace_input *in, const char *why)
{
	in->fine = false;
	in->rank = -1;
	in->n_events = 0;
	snprintf(in->outcome, sizeof in->outcome, "%s", why);
	return false;
}

/* Has t room for what the file says it is? */
static bool fits(struct trace *t, const struct trace *part, struct trace_input *in)
{
	char why[100];

	for (uint32_t i = 0; i < part->n_dumps; i++)
		for (uint32_t k = 0; k < t->n_dumps; k++)
			if (t->dumps[k]->rank == part->dumps[i]->rank) {
				snprintf(why, sizeof why, "is of rank %d, and so was a dump before it", t->dumps[k]->rank);
				return refuse(in, why);
			}
	if (part->n_ranks == 0 || t->n_ranks == 0)
		return true;
	if (part->clock_method)
		return refuse(in, "has a whole job, and a file before it is of one, too: import each on its own");
	if (t->clock_method)
		return refuse(in, "is of one rank, and a file before it has a whole job: import each on its own");
	for (uint32_t i = 0; i < part->n_ranks; i++) {
		if (part->ranks[i].guessed)
			return refuse(in, "does not say which rank it is, neither inside nor in its name");
		if (!trace_find_rank(t, part->ranks[i].rank))
			continue;
		snprintf(why, sizeof why, "is of rank %lld, and so was a file before it", (long long)part->ranks[i].rank);
		return refuse(in, why);
	}
	return true;
}

/* Room for n more, all that is had of it. */
static bool room(struct trace *t, void *v, uint32_t n, uint32_t n_more, uint32_t *n_alloc, size_t size)
{
	uint32_t want = *n_alloc ? *n_alloc : 8;
	void *grown;

	while (want - n < n_more)
		want *= 2;
	if (want == *n_alloc)
		return true;
	grown = realloc(*(void **)v, want * size);
	if (!grown) {
		t->no_memory = true;
		return false;
	}
	*(void **)v = grown;
	*n_alloc = want;
	return true;
}

/* One name of a host, one clock: of which the first rank of that name has the number. */
static uint32_t clock_of(const struct trace *t, const struct trace_rank *r)
{
	uint32_t clock = 0;

	for (uint32_t i = 0; i < t->n_ranks; i++) {
		if (strcmp(t->ranks[i].host, r->host) == 0)
			return t->ranks[i].clock;
		clock = t->ranks[i].clock >= clock ? t->ranks[i].clock + 1 : clock;
	}
	return clock;
}

static bool move_ranks(struct trace *t, struct trace *part)
{
	if (!room(t, &t->ranks, t->n_ranks, part->n_ranks, &t->n_ranks_alloc, sizeof *t->ranks))
		return false;
	for (uint32_t i = 0; i < part->n_ranks; i++) {
		struct trace_rank *r = &part->ranks[i];

		if (!part->clock_method) /* a whole job's clocks are its own */
			r->clock = clock_of(t, r);
		t->ranks[t->n_ranks++] = *r;
	}
	part->n_ranks = 0;
	return true;
}

static const struct trace_group *group_of(const struct trace *t, const char *name)
{
	for (uint32_t i = 0; i < t->n_groups; i++)
		if (strcmp(t->groups[i].name, name) == 0)
			return &t->groups[i];
	return NULL;
}

static bool replace(struct trace *t, char **text, const char *name)
{
	char *copy;

	if (!*text || strcmp(*text, name) == 0)
		return true;
	copy = strdup(name);
	t->no_memory |= !copy;
	if (!copy)
		return false;
	free(*text);
	*text = copy;
	return true;
}

/* The group is called so from here on, wherever its name stands. */
static bool rename_group(struct trace *part, struct trace_group *g, const char *name)
{
	bool fine = true;

	for (uint32_t i = 0; i < part->n_ranks; i++) {
		struct trace_rank *r = &part->ranks[i];
		json_t *id = json_object_get(r->name_ids, g->name);

		if (id)
			fine &= json_object_set(r->name_ids, name, id) == 0 &&
				replace(part, &r->names[json_integer_value(id) - 1], name) &&
				json_object_del(r->name_ids, g->name) == 0;
	}
	for (uint32_t i = 0; i < part->n_rows; i++)
		for (uint32_t k = 0; k < part->rows[i].n_values; k++)
			if (trace_text(&part->rows[i], k) && strcmp(trace_text(&part->rows[i], k), g->name) == 0)
				fine &= trace_row_text(part, &part->rows[i], k, name);
	part->no_memory |= !fine;
	return fine && replace(part, &g->name, name);
}

/* Names may be a rank's own: "1" of ranks 0 and 1 is not "1" of 2 and 3. */
static bool move_groups(struct trace *t, struct trace *part)
{
	for (uint32_t i = 0; i < part->n_groups && !part->no_memory; i++) {
		struct trace_group *g = &part->groups[i];
		const struct trace_group *known = group_of(t, g->name);
		char name[256];

		if (known && g->n_ranks > 0 &&
		    (known->n_ranks != g->n_ranks || memcmp(known->ranks, g->ranks, g->n_ranks * sizeof *g->ranks) != 0)) {
			snprintf(name, sizeof name, "%.180s of ranks %d to %d", g->name, g->ranks[0], g->ranks[g->n_ranks - 1]);
			if (!rename_group(part, g, name))
				break;
		}
		if (!trace_group(t, g->name, g->ranks, g->n_ranks))
			return false;
	}
	t->no_memory |= part->no_memory;
	return !t->no_memory;
}

static bool move_rows(struct trace *t, struct trace *part)
{
	uint32_t n = TRACE_MAX_ROWS - t->n_rows < part->n_rows ? TRACE_MAX_ROWS - t->n_rows : part->n_rows;

	if (!room(t, &t->rows, t->n_rows, n, &t->n_rows_alloc, sizeof *t->rows))
		return false;
	for (uint32_t i = 0; i < n; i++) {
		t->rows[t->n_rows++] = part->rows[i];
		part->rows[i] = (struct trace_row){ 0 };
	}
	t->n_left_out += part->n_left_out + (part->n_rows - n);
	t->kept_bytes += part->kept_bytes;
	part->kept_bytes = 0;
	return true;
}

static bool move_secrets(struct trace *t, const struct trace *part)
{
	for (uint32_t i = 0; i < part->n_secrets; i++)
		if (!trace_secret(t, part->secrets[i].is_user, part->secrets[i].name))
			return false;
	return true;
}

/* What only a file of a whole job has. */
static void move_job(struct trace *t, struct trace *part)
{
	if (part->world_size > t->world_size)
		t->world_size = part->world_size;
	if (part->layout[0])
		memcpy(t->layout, part->layout, sizeof t->layout);
	if (part->n_what_ifs > 0 && t->n_what_ifs == 0) {
		t->what_ifs = part->what_ifs;
		t->n_what_ifs = part->n_what_ifs;
		t->first_step = part->first_step;
		t->last_step = part->last_step;
		part->what_ifs = NULL;
		part->n_what_ifs = 0;
	}
	if (part->clock_method) {
		t->clock_method = part->clock_method;
		t->reference = part->reference;
		t->rate_bound = part->rate_bound;
	}
}

static bool move_dumps(struct trace *t, struct trace *part)
{
	struct flight_dump **grown;

	if (part->n_dumps == 0)
		return true;
	grown = realloc(t->dumps, (t->n_dumps + part->n_dumps) * sizeof *grown);
	if (!grown) {
		t->no_memory = true;
		return false;
	}
	t->dumps = grown;
	memcpy(grown + t->n_dumps, part->dumps, part->n_dumps * sizeof *grown);
	t->n_dumps += part->n_dumps;
	part->n_dumps = 0;
	return true;
}

bool trace_merge(struct trace *t, struct trace *part, struct trace_input *in)
{
	t->no_memory |= part->no_memory;
	if (!t->no_memory && fits(t, part, in)) {
		move_job(t, part);
		(void)(move_dumps(t, part) && move_groups(t, part) && move_rows(t, part) && move_ranks(t, part) &&
		       move_secrets(t, part));
	}
	trace_fini(part);
	return !t->no_memory;
}
