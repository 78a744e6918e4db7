#include "layout.h"

#define PAGE 4096u
#define MAX_RING_SLOTS 8192u /* 256 KiB: 0.8 s of 10,000 events/s */
#define MIN_RING_SLOTS 256u
#define GOOD_N_RINGS 12u /* main, loader, autograd and a few proxies */

static uint64_t align(uint64_t at, uint64_t to)
{
	return (at + to - 1) & ~(to - 1);
}

static uint32_t pow2_floor(uint64_t n)
{
	uint32_t p = 1;

	while ((uint64_t)p * 2 <= n)
		p *= 2;
	return p;
}

static uint32_t clamp(uint64_t v, uint32_t lo, uint32_t hi)
{
	return v < lo ? lo : v > hi ? hi : (uint32_t)v;
}

bool layout_plan(size_t n_bytes, struct shm_header *h)
{
	uint64_t at, left, ring_bytes;

	if (n_bytes < SHM_MIN_BYTES)
		return false;
	n_bytes = n_bytes < SHM_MAX_BYTES ? n_bytes : SHM_MAX_BYTES;
	n_bytes &= ~(size_t)(PAGE - 1);

	h->header_bytes = sizeof *h;
	h->file_bytes = n_bytes;

	at = align(sizeof *h, 64);
	h->max_strings = clamp(n_bytes / 2048, 128, 4096);
	h->max_string_bytes = h->max_strings * 64;
	h->string_index_at = at;
	at += h->max_strings * sizeof(uint64_t);
	h->string_bytes_at = at;
	at = align(at + h->max_string_bytes, 64);

	h->text_bytes = pow2_floor(clamp(n_bytes / 16, 16u << 10, 512u << 10));
	h->text_at = at;
	at += h->text_bytes;
	h->ring_headers_at = at;

	left = n_bytes - at - PAGE; /* the slots begin on a page */
	h->ring_slots = MAX_RING_SLOTS;
	for (;;) {
		ring_bytes = (uint64_t)h->ring_slots * sizeof(struct event) + sizeof(struct shm_ring);
		if (h->ring_slots == MIN_RING_SLOTS || left / ring_bytes >= GOOD_N_RINGS)
			break;
		h->ring_slots /= 2;
	}
	h->n_rings = clamp(left / ring_bytes, 1, SHM_MAX_RINGS);
	h->ring_slots_at = align(at + h->n_rings * sizeof(struct shm_ring), PAGE);
	return true;
}
