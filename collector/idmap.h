/* idmap.h - from a caller's 64-bit id to a dense index, by open addressing.
 *
 * Nothing is ever removed: hosts, processes and members only become more.
 */
#pragma once

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#define IDMAP_NONE UINT32_MAX

struct idmap {
	struct idmap_slot {
		uint64_t key;
		uint32_t value; /* index + 1, 0 = empty */
	} *v;
	uint32_t n, n_slots; /* n_slots: 0 or a power of two */
};

static inline uint64_t idmap_mix(uint64_t k)
{
	k ^= k >> 31;
	k *= UINT64_C(0x9e3779b97f4a7c15);
	return k ^ k >> 29;
}

static inline uint32_t idmap_get(const struct idmap *m, uint64_t key)
{
	if (m->n_slots == 0)
		return IDMAP_NONE;
	for (uint64_t i = idmap_mix(key);; i++) {
		const struct idmap_slot *s = &m->v[i & (m->n_slots - 1)];

		if (s->value == 0)
			return IDMAP_NONE;
		if (s->key == key)
			return s->value - 1;
	}
}

/* key must be new. 0 or -ENOMEM. */
static inline int idmap_put(struct idmap *m, uint64_t key, uint32_t index)
{
	uint64_t i;

	if (2 * (m->n + 1) > m->n_slots) {
		struct idmap grown = { .n_slots = m->n_slots ? 2 * m->n_slots : 16 };

		grown.v = calloc(grown.n_slots, sizeof *grown.v);
		if (!grown.v)
			return -ENOMEM;
		for (uint32_t k = 0; k < m->n_slots; k++)
			if (m->v[k].value)
				idmap_put(&grown, m->v[k].key, m->v[k].value - 1);
		free(m->v);
		*m = grown;
	}
	for (i = idmap_mix(key); m->v[i & (m->n_slots - 1)].value; i++)
		;
	m->v[i & (m->n_slots - 1)] = (struct idmap_slot){ key, index + 1 };
	m->n++;
	return 0;
}

static inline void idmap_fini(struct idmap *m)
{
	free(m->v);
	*m = (struct idmap){ 0 };
}
