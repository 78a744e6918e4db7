/* text.c - log records, exceptions and facts on their way to the agent.
 *
 * Rare next to events and of any length, so all threads share one byte ring.
 * Whoever finds its flag taken drops the record and counts it.
 */
#include "gate.h"
#include "tick.h"
#include "utf8.h"

#include <string.h>

#define HEAD sizeof(struct shm_text)

static size_t padded(size_t n)
{
	return (n + 7) & ~(size_t)7;
}

/* Flag held. A record never wraps, and what is left behind it to the end of the
 * buffer is nothing or has room for a pad's head, so a reader needs no third
 * case. Returns false when there is no room. */
static bool append(struct gate *g, struct shm_text_ring *t, const struct shm_text *rec,
		   const char *text)
{
	uint64_t head = atomic_load_explicit(&t->head, memory_order_relaxed);
	uint64_t used = head - atomic_load_explicit(&t->tail, memory_order_acquire);
	size_t at = head & (g->text_bytes - 1) & ~(size_t)7;
	size_t to_end = g->text_bytes - at;
	size_t need = HEAD + padded(rec->n_bytes);
	size_t pad = 0;

	if (to_end < need || (to_end > need && to_end - need < HEAD))
		pad = to_end;
	if (used > g->text_bytes || need + pad > g->text_bytes - used)
		return false;
	if (pad >= HEAD) {
		struct shm_text p = { .n_bytes = (uint32_t)(pad - HEAD), .kind = SHM_TEXT_PAD };

		memcpy(g->text + at, &p, HEAD);
		at = 0;
	} else if (pad > 0) {
		return false; /* only by a head that somebody else has moved */
	}
	memcpy(g->text + at, rec, HEAD);
	memcpy(g->text + at + HEAD, text, rec->n_bytes);
	memset(g->text + at + HEAD + rec->n_bytes, 0, need - HEAD - rec->n_bytes);
	atomic_store_explicit(&t->head, head + pad + need, memory_order_release);
	return true;
}

bool probe_text(unsigned kind, unsigned level, const char *text, size_t n_bytes)
{
	struct gate *g = gate_get();
	struct shm_header *h = gate_header(g);
	struct shm_text_ring *t;
	struct shm_text rec;
	bool stored = false;

	if (!h || !text || atomic_load_explicit(&h->level, memory_order_relaxed) == LEVEL_OFF)
		return false;
	t = &h->text;
	if (n_bytes <= SHM_MAX_TEXT || kind != SHM_TEXT_RECORD) {
		rec = (struct shm_text){
			.n_bytes = (uint32_t)utf8_cut(text, n_bytes, SHM_MAX_TEXT),
			.kind = (uint16_t)kind,
			.level = (uint16_t)level,
			.tick = tick_read(g->tick_source),
		};
		if (atomic_exchange_explicit(&t->busy, 1, memory_order_acquire) == 0) {
			stored = append(g, t, &rec, text);
			atomic_store_explicit(&t->busy, 0, memory_order_release);
		}
	}
	if (!stored)
		atomic_fetch_add_explicit(&t->n_dropped, 1, memory_order_relaxed);
	return stored;
}
