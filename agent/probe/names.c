/* names.c - strings once, ids ever after.
 *
 * Finding a known name takes no lock: a hash table of the process's own points
 * into the shared string table. Adding one takes the table's flag, tries a
 * moment and gives up: a name may be lost (and counted), a thread never waits.
 */
#include "gate.h"
#include "utf8.h"

#include <string.h>

#define N_TABLE 8192 /* power of two, at least twice the largest max_strings */
#define N_TRIES 128  /* about a microsecond */

/* hash << 32 | id, 0 = empty. Entries are only ever added. */
static _Atomic uint64_t table[N_TABLE];

static uint32_t hash(const char *s, size_t n)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)s[i]) * UINT64_C(0x100000001b3);
	return (uint32_t)(h ^ h >> 32);
}

static bool is(const struct gate *g, uint32_t id, const char *s, size_t n)
{
	uint64_t entry, at;

	if (id == 0 || id > g->max_strings)
		return false;
	entry = g->string_index[id - 1];
	at = entry >> 8;
	/* The index lies in shared memory: believe no offset. */
	return (entry & 0xff) == n && at <= g->max_string_bytes && n <= g->max_string_bytes - at &&
	       memcmp(g->string_bytes + at, s, n) == 0;
}

/* The id, or 0 and the slot where it would go. */
static uint32_t find(const struct gate *g, uint32_t h, const char *s, size_t n, uint32_t *ret_slot)
{
	for (uint32_t i = 0; i < N_TABLE; i++) {
		uint32_t slot = (h + i) & (N_TABLE - 1);
		uint64_t v = atomic_load_explicit(&table[slot], memory_order_acquire);

		if (v == 0) {
			*ret_slot = slot;
			return 0;
		}
		if ((uint32_t)(v >> 32) == h && is(g, (uint32_t)v, s, n))
			return (uint32_t)v;
	}
	*ret_slot = N_TABLE;
	return 0;
}

/* Flag held. */
static uint32_t add(struct gate *g, struct shm_strings *st, uint32_t h, const char *s, size_t n)
{
	uint32_t id, slot, used, count;

	id = find(g, h, s, n, &slot);
	if (id != 0)
		return id; /* another thread was faster */
	count = atomic_load_explicit(&st->n_strings, memory_order_relaxed);
	used = atomic_load_explicit(&st->n_bytes_used, memory_order_relaxed);
	if (slot == N_TABLE || count >= g->max_strings || used > g->max_string_bytes ||
	    n > g->max_string_bytes - used)
		return 0;
	memcpy(g->string_bytes + used, s, n);
	g->string_index[count] = (uint64_t)used << 8 | n;
	id = count + 1;
	atomic_store_explicit(&st->n_bytes_used, used + (uint32_t)n, memory_order_relaxed);
	atomic_store_explicit(&st->n_strings, id, memory_order_release);
	atomic_store_explicit(&table[slot], (uint64_t)h << 32 | id, memory_order_release);
	return id;
}

static bool take(_Atomic uint32_t *busy)
{
	for (int i = 0; i < N_TRIES; i++) {
		if (atomic_load_explicit(busy, memory_order_relaxed) == 0 &&
		    atomic_exchange_explicit(busy, 1, memory_order_acquire) == 0)
			return true;
#if defined(__x86_64__)
		__builtin_ia32_pause();
#endif
	}
	return false;
}

uint32_t probe_name_n(const char *s, size_t n_bytes)
{
	struct gate *g = gate_get();
	struct shm_header *h = gate_header(g);
	struct shm_strings *st;
	uint32_t id, slot, hashed;

	if (!h || !s || n_bytes == 0)
		return 0;
	n_bytes = utf8_cut(s, n_bytes, SHM_MAX_STRING);
	hashed = hash(s, n_bytes);
	id = find(g, hashed, s, n_bytes, &slot);
	if (id != 0)
		return id;

	st = &h->strings;
	if (take(&st->busy)) {
		id = add(g, st, hashed, s, n_bytes);
		atomic_store_explicit(&st->busy, 0, memory_order_release);
	}
	if (id == 0)
		atomic_fetch_add_explicit(&st->n_dropped, 1, memory_order_relaxed);
	return id;
}

uint32_t probe_name(const char *s)
{
	return s ? probe_name_n(s, strnlen(s, SHM_MAX_STRING + 4)) : 0;
}
