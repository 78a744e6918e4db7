#include "gauges.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NAMES 256
#define MAX_SERIES 16384 /* of about 11 kB each */

void gauges_fini(struct gauges *g)
{
	for (uint32_t i = 0; i < g->n_names; i++)
		free(g->names[i]);
	for (uint32_t i = 0; i < g->n; i++)
		free(g->v[i]);
	free(g->names);
	free(g->v);
	free(g->slots);
	*g = (struct gauges){ 0 };
}

static uint32_t find_name(const struct gauges *g, const char *name)
{
	uint32_t i = 0;

	while (i < g->n_names && strcmp(g->names[i], name) != 0)
		i++;
	return i;
}

static uint32_t slot_of(const struct gauges *g, const struct gauge_of *of, uint32_t name)
{
	uint64_t h = ((uint64_t)of->host << 32 ^ of->proc) * UINT64_C(0x9e3779b97f4a7c15) + name;
	uint32_t at;

	h = (h ^ h >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
	at = (uint32_t)(h >> 32) & (g->n_slots - 1);
	while (g->slots[at]) {
		const struct gauge_series *s = g->v[g->slots[at] - 1];

		if (s->of.host == of->host && s->of.proc == of->proc && s->name == name)
			break;
		at = (at + 1) & (g->n_slots - 1);
	}
	return at;
}

static int grow_slots(struct gauges *g)
{
	uint32_t *old = g->slots, n = g->n_slots ? 2 * g->n_slots : 64;

	if (2 * (g->n + 1) <= g->n_slots)
		return 0;
	g->slots = calloc(n, sizeof *g->slots);
	if (!g->slots) {
		g->slots = old;
		return -ENOMEM;
	}
	free(old);
	g->n_slots = n;
	for (uint32_t i = 0; i < g->n; i++)
		g->slots[slot_of(g, &g->v[i]->of, g->v[i]->name)] = i + 1;
	return 0;
}

static void *grown(void *v, uint32_t n, uint32_t *n_alloc, size_t size)
{
	uint32_t want = *n_alloc ? 2 * *n_alloc : 16;
	void *more;

	if (n < *n_alloc)
		return v;
	more = realloc(v, want * size);
	if (more)
		*n_alloc = want;
	return more;
}

/* *ret NULL: there is no room for it. */
static int series_of(struct gauges *g, const struct gauge_of *of, const char *name,
		     struct gauge_series **ret)
{
	uint32_t i = find_name(g, name), at;
	void *more;

	*ret = NULL;
	if (i == g->n_names) {
		if (i == MAX_NAMES)
			return 0;
		more = grown(g->names, g->n_names, &g->n_names_alloc, sizeof *g->names);
		if (!more)
			return -ENOMEM;
		g->names = more;
		g->names[i] = strdup(name);
		if (!g->names[i])
			return -ENOMEM;
		g->n_names++;
	}
	if (grow_slots(g) < 0)
		return -ENOMEM;
	at = slot_of(g, of, i);
	if (g->slots[at]) {
		*ret = g->v[g->slots[at] - 1];
		return 0;
	}
	if (g->n == MAX_SERIES)
		return 0;
	more = grown(g->v, g->n, &g->n_alloc, sizeof *g->v);
	if (!more)
		return -ENOMEM;
	g->v = more;
	g->v[g->n] = calloc(1, sizeof **g->v);
	if (!g->v[g->n])
		return -ENOMEM;
	*ret = g->v[g->n];
	(*ret)->of = *of;
	(*ret)->name = i;
	(*ret)->every = 1;
	g->slots[at] = ++g->n;
	return 0;
}

static void keep(struct gauge_series *s, const struct gauge_sample *v)
{
	if (s->n_skipped + 1 < s->every) {
		s->n_skipped++;
		return;
	}
	s->n_skipped = 0;
	if (s->n == GAUGE_KEEP) {
		for (uint32_t i = 0; i < GAUGE_KEEP / 2; i++)
			s->v[i] = s->v[2 * i];
		s->n = GAUGE_KEEP / 2;
		s->every *= 2;
	}
	s->v[s->n++] = *v;
}

int gauges_note(struct gauges *g, const struct gauge_of *of, const char *name,
		const struct gauge_sample *v)
{
	struct gauge_series *s = NULL;
	int r = isfinite(v->value) ? series_of(g, of, name, &s) : 0;

	if (!s) {
		g->n_dropped += r == 0;
		return r;
	}
	if (s->n_seen++ == 0)
		s->first = s->low = s->high = *v;
	s->last = *v;
	if (v->value < s->low.value)
		s->low = *v;
	if (v->value > s->high.value)
		s->high = *v;
	keep(s, v);
	return 0;
}

const struct gauge_series *gauges_find(const struct gauges *g, const struct gauge_of *of,
				       const char *name)
{
	uint32_t i = find_name(g, name), at;

	if (i == g->n_names || g->n_slots == 0)
		return NULL;
	at = slot_of(g, of, i);
	return g->slots[at] ? g->v[g->slots[at] - 1] : NULL;
}
