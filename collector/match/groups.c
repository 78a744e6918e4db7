/* groups.c - communicators: who is a member, and what the facts say of it. */
#include "match_internal.h"

#include <stdio.h>
#include <string.h>

static uint64_t group_hash(const char *name, uint32_t life)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325) ^ life;

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
	return idmap_mix(h);
}

static uint32_t *group_slot(const struct match *m, const char *name, uint32_t life)
{
	for (uint64_t i = group_hash(name, life);; i++) {
		uint32_t *s = &m->index.slots[i & (m->index.n_slots - 1)];

		if (*s == 0 || (m->groups[*s - 1].life == life &&
				strcmp(m->groups[*s - 1].name, name) == 0))
			return s;
	}
}

/* A new group at the end of those of its name. */
static int64_t make_group(struct match *m, const char *name, uint32_t life, uint32_t *slot)
{
	uint32_t *last = slot;
	struct group *g;

	if (m->n_groups == m->n_groups_alloc) {
		uint32_t n = m->n_groups_alloc ? 2 * m->n_groups_alloc : 8;
		struct group *grown = realloc(m->groups, n * sizeof *grown);

		if (!grown)
			return -ENOMEM;
		m->groups = grown;
		m->n_groups_alloc = n;
	}
	while (*last)
		last = &m->groups[*last - 1].sibling;
	g = &m->groups[m->n_groups];
	*g = (struct group){ .life = life, .changed = true };
	g->name = strdup(name);
	if (!g->name)
		return -ENOMEM;
	*last = ++m->n_groups;
	return *last - 1;
}

/* Where the first of that name is or will be; NULL without memory. */
static uint32_t *first_slot(struct match *m, const char *name, uint32_t life)
{
	if (2 * (m->n_groups + 1) > m->index.n_slots) {
		uint32_t n = m->index.n_slots ? 2 * m->index.n_slots : 64;
		uint32_t *slots = calloc(n, sizeof *slots);

		if (!slots)
			return NULL;
		free(m->index.slots);
		m->index.slots = slots;
		m->index.n_slots = n;
		for (uint32_t i = 0; i < m->n_groups; i++) {
			uint32_t *s = group_slot(m, m->groups[i].name, m->groups[i].life);

			if (!*s)
				*s = i + 1;
		}
	}
	return group_slot(m, name, life);
}

int64_t match_group(struct match *m, const char *name, uint32_t life, int32_t rank)
{
	uint32_t *slot = first_slot(m, name, life), open = 0;

	if (!slot)
		return -ENOMEM;
	for (uint32_t i = *slot; i; i = m->groups[i - 1].sibling) {
		if (idmap_get(&m->groups[i - 1].member_of, (uint32_t)rank) != IDMAP_NONE)
			return i - 1;
		if (!open && !m->groups[i - 1].known)
			open = i;
	}
	return open ? open - 1 : make_group(m, name, life, slot);
}

/* The membership changed: who was last in the open ones must be asked anew. */
static void forget_last(struct group *g)
{
	for (uint32_t k = 0; k < g->n_slots; k++)
		if (g->v[k].arrivals)
			g->v[k].last_valid = false;
}

int64_t match_member(struct match *m, uint32_t group, int32_t rank)
{
	struct group *g = &m->groups[group];
	uint32_t i = idmap_get(&g->member_of, (uint32_t)rank);
	int r;

	if (i != IDMAP_NONE)
		return i;
	if (g->n_members == MATCH_MAX_MEMBERS)
		return -E2BIG;
	if (g->n_members == g->n_members_alloc) {
		uint32_t n = g->n_members_alloc ? 2 * g->n_members_alloc : 8;
		int32_t *ranks = realloc(g->ranks, n * sizeof *ranks);
		uint32_t *order;

		if (!ranks)
			return -ENOMEM;
		g->ranks = ranks;
		order = realloc(g->order, n * sizeof *order);
		if (!order)
			return -ENOMEM;
		g->order = order;
		g->n_members_alloc = n;
	}
	r = idmap_put(&g->member_of, (uint32_t)rank, g->n_members);
	if (r < 0)
		return r;
	g->ranks[g->n_members] = rank;
	g->order_valid = false;
	g->changed = true;
	if (!g->known)
		g->n_expected = g->n_members + 1;
	forget_last(g);
	return g->n_members++;
}

/* How many of the ranks are in the group already? */
static size_t n_shared(const struct group *g, const int32_t *ranks, size_t n)
{
	size_t n_in = 0;

	for (size_t i = 0; i < n; i++)
		n_in += idmap_get(&g->member_of, (uint32_t)ranks[i]) != IDMAP_NONE;
	return n_in;
}

static int set_members(struct match *m, uint32_t group, const int32_t *ranks, size_t n)
{
	struct group *g = &m->groups[group];

	for (size_t i = 0; i < n; i++) {
		int64_t r;

		if (ranks[i] < 0 || ranks[i] >= FACT_MAX_RANKS)
			continue;
		r = match_member(m, group, ranks[i]);
		if (r < 0)
			return (int)r;
	}
	if (!g->known || g->n_expected != n)
		g->changed = true;
	g->known = true;
	g->n_expected = (uint32_t)n;
	forget_last(g);
	return 0;
}

int64_t match_declare(struct match *m, const char *name, uint32_t life, const int32_t *ranks,
		      size_t n)
{
	uint32_t *slot = n > 0 && n <= MATCH_MAX_MEMBERS ? first_slot(m, name, life) : NULL;
	uint32_t open = 0, found = 0;
	int64_t group;
	int r;

	if (!slot)
		return n > 0 && n <= MATCH_MAX_MEMBERS ? -ENOMEM : -EINVAL;
	for (uint32_t i = *slot; i && !found; i = m->groups[i - 1].sibling) {
		const struct group *g = &m->groups[i - 1];

		/* With a member in common it is the same one, told anew. */
		if (n_shared(g, ranks, n) > 0)
			found = i;
		else if (!g->known && g->n_members == 0)
			open = i;
	}
	if (!found)
		found = open;
	group = found ? found - 1 : make_group(m, name, life, slot);
	r = group < 0 ? (int)group : set_members(m, (uint32_t)group, ranks, n);
	return r < 0 ? r : group;
}

void match_sort_members(struct group *g)
{
	if (g->order_valid)
		return;
	/* Insertion: members come nearly in order and only at the start. */
	for (uint32_t i = 0; i < g->n_members; i++) {
		uint32_t k = i;

		for (; k > 0 && g->ranks[g->order[k - 1]] > g->ranks[i]; k--)
			g->order[k] = g->order[k - 1];
		g->order[k] = i;
	}
	g->order_valid = true;
}

int match_tell_group(struct match *m, uint32_t group)
{
	struct group *g = &m->groups[group];
	bool twin = *group_slot(m, g->name, g->life) != group + 1;
	char number[16] = "", incarnation[16] = "";
	struct fact_group *f;
	char *json, *at;

	if (!g->changed)
		return 0;
	match_sort_members(g);
	at = json = malloc(16 + 12 * (size_t)g->n_members);
	if (!json)
		return -ENOMEM;
	*at++ = '[';
	for (uint32_t i = 0; i < g->n_members; i++)
		at += sprintf(at, "%s%d", i ? "," : "", g->ranks[g->order[i]]);
	*at++ = ']';
	*at = '\0';

	f = FACTS_PUSH(m->facts, groups);
	if (f) {
		f->group = group;
		/* A restarted job's sequences begin anew: another group to a reader.
		 * Of several of one name each is told by its first member. */
		if (twin && g->n_members > 0)
			snprintf(number, sizeof number, "@%d", g->ranks[0]);
		if (g->life)
			snprintf(incarnation, sizeof incarnation, "#%u", g->life);
		f->name = facts_printf(m->facts, "%s%s%s", g->name, number, incarnation);
		f->ranks_known = g->known;
		f->ranks_json = facts_string(m->facts, json);
		g->changed = false;
	}
	free(json);
	return f ? 0 : -ENOMEM;
}

int match_restore(struct match *m, const char *name, uint32_t life, uint32_t n_known,
		  uint64_t told_below, const void *ranks, uint32_t n)
{
	uint32_t *slot = first_slot(m, name, life);
	int64_t index = slot ? make_group(m, name, life, slot) : -ENOMEM;
	struct group *g;

	if (index < 0)
		return (int)index;
	for (uint32_t i = 0; i < n; i++) {
		int32_t rank;
		int64_t r;

		memcpy(&rank, (const char *)ranks + i * sizeof rank, sizeof rank);
		if (rank < 0 || rank >= FACT_MAX_RANKS)
			return -EINVAL;
		r = match_member(m, (uint32_t)index, rank);
		if (r < 0)
			return (int)r;
	}
	g = &m->groups[index];
	g->known = n_known > 0;
	if (g->known)
		g->n_expected = n_known;
	g->changed = false;
	g->told_below = g->next_seq = told_below;
	g->started = told_below > 0;
	return match_make_room(m, (uint32_t)index, told_below);
}
