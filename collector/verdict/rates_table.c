/* rates_table.c - cells and classes by what they are of. */
#include "rates_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CELLS 16384
#define MAX_CLASSES 16384

void rates_fini(struct rates *r)
{
	for (uint32_t i = 0; i < r->n_cells; i++)
		free(r->cells[i]);
	for (uint32_t i = 0; i < r->n_classes; i++)
		sketch_fini(&r->classes[i].transfer);
	free(r->cells);
	free(r->cell_of.slots);
	free(r->classes);
	free(r->class_of.slots);
	free(r->procs);
	free(r->ways);
	free(r->host_marks);
	*r = (struct rates){ 0 };
}

static uint64_t hash(uint64_t a, uint64_t b, uint64_t c)
{
	return idmap_mix(a ^ idmap_mix(b ^ idmap_mix(c)));
}

static uint8_t power_of(uint64_t bytes)
{
	return bytes ? (uint8_t)(63 - __builtin_clzll(bytes)) : 0;
}

static uint16_t eighth_of(uint64_t bytes)
{
	return bytes ? (uint16_t)lround(8 * log2((double)bytes)) : 0;
}

static uint64_t hash_cell(const struct rates_cell *c)
{
	return hash((uint64_t)c->op << 8 | c->dtype | (uint64_t)c->size << 16 | (uint64_t)c->pair << 40,
		    c->pair ? (uint64_t)(uint32_t)c->ranks[0] << 32 | (uint32_t)c->ranks[1] : c->group,
		    c->life);
}

static bool same_cell(const struct rates_cell *a, const struct rates_cell *b)
{
	return a->pair == b->pair && a->op == b->op && a->dtype == b->dtype && a->size == b->size &&
	       a->life == b->life &&
	       (a->pair ? a->ranks[0] == b->ranks[0] && a->ranks[1] == b->ranks[1]
			: a->group == b->group);
}

static uint64_t hash_class(const struct rates_class *c)
{
	return hash((uint64_t)c->op << 16 | (uint64_t)c->dtype << 8 | c->size,
		    (uint64_t)c->n_ranks << 32 | c->n_hosts, (uint64_t)c->group);
}

static bool same_class(const struct rates_class *a, const struct rates_class *b)
{
	return a->group == b->group && a->n_ranks == b->n_ranks && a->n_hosts == b->n_hosts &&
	       a->op == b->op && a->dtype == b->dtype && a->size == b->size;
}

static uint32_t *cell_slot(const struct rates *r, const struct rates_cell *key)
{
	for (uint64_t i = hash_cell(key);; i++) {
		uint32_t *s = &r->cell_of.slots[i & (r->cell_of.n_slots - 1)];

		if (*s == 0 || same_cell(r->cells[*s - 1], key))
			return s;
	}
}

static uint32_t *class_slot(const struct rates *r, const struct rates_class *key)
{
	for (uint64_t i = hash_class(key);; i++) {
		uint32_t *s = &r->class_of.slots[i & (r->class_of.n_slots - 1)];

		if (*s == 0 || same_class(&r->classes[*s - 1], key))
			return s;
	}
}

/* Twice the slots; the caller puts everything in again. false without memory. */
static bool grow(struct rates_table *t)
{
	uint32_t n = t->n_slots ? 2 * t->n_slots : 64;
	uint32_t *slots = calloc(n, sizeof *slots);

	if (!slots)
		return false;
	free(t->slots);
	*t = (struct rates_table){ slots, n };
	return true;
}

int rates_cell_of(struct rates *r, const struct rates_shape *s, struct rates_cell **ret)
{
	struct rates_cell key = { .pair = s->pair, .op = s->op, .dtype = s->dtype, .group = s->group,
				  .life = s->life, .ranks = { s->ranks[0], s->ranks[1] },
				  .size = eighth_of(s->bytes) };
	uint32_t *slot;

	if (2 * (r->n_cells + 1) > r->cell_of.n_slots) {
		struct rates_cell **grown = realloc(r->cells, (2 * (size_t)r->n_cells + 64) * sizeof *grown);

		if (!grown)
			return -ENOMEM;
		r->cells = grown;
		if (!grow(&r->cell_of))
			return -ENOMEM;
		for (uint32_t i = 0; i < r->n_cells; i++)
			*cell_slot(r, r->cells[i]) = i + 1;
	}
	slot = cell_slot(r, &key);
	if (*slot == 0) {
		if (r->n_cells == MAX_CELLS) {
			r->n_dropped++;
			return 1;
		}
		r->cells[r->n_cells] = malloc(sizeof key);
		if (!r->cells[r->n_cells])
			return -ENOMEM;
		*r->cells[r->n_cells] = key;
		*slot = ++r->n_cells;
	}
	*ret = r->cells[*slot - 1];
	(*ret)->device = s->device;
	(*ret)->n_ranks = s->n_ranks;
	(*ret)->n_hosts = s->n_hosts;
	(*ret)->host = s->host;
	return 0;
}

int rates_class_of(struct rates *r, const struct rates_shape *s, bool all, uint32_t *ret)
{
	struct rates_class key = { .group = all ? -1 : (int64_t)s->group, .n_ranks = s->n_ranks,
				   .n_hosts = s->n_hosts, .op = s->op, .dtype = s->dtype,
				   .size = power_of(s->bytes) };
	uint32_t *slot;

	if (2 * (r->n_classes + 1) > r->class_of.n_slots) {
		struct rates_class *grown =
			realloc(r->classes, (2 * (size_t)r->n_classes + 64) * sizeof *grown);

		if (!grown)
			return -ENOMEM;
		r->classes = grown;
		if (!grow(&r->class_of))
			return -ENOMEM;
		for (uint32_t i = 0; i < r->n_classes; i++)
			*class_slot(r, &r->classes[i]) = i + 1;
	}
	slot = class_slot(r, &key);
	if (*slot == 0) {
		if (r->n_classes == MAX_CLASSES) {
			r->n_dropped++;
			return 1;
		}
		r->classes[r->n_classes] = key;
		*slot = ++r->n_classes;
	}
	*ret = *slot - 1;
	return 0;
}

struct rates_proc *rates_proc_of(struct rates *r, uint32_t proc)
{
	if (proc >= r->n_procs) {
		uint32_t n = r->n_procs ? 2 * r->n_procs : 16;
		struct rates_proc *grown;

		n = n > proc ? n : proc + 1;
		grown = realloc(r->procs, n * sizeof *grown);
		if (!grown)
			return NULL;
		memset(grown + r->n_procs, 0, (n - r->n_procs) * sizeof *grown);
		r->procs = grown;
		r->n_procs = n;
	}
	return &r->procs[proc];
}
