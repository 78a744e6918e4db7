#include "shm.h"

#include <stdbool.h>
#include <string.h>

/* Does [at, at + n) with this alignment lie in the file? n may be hostile. */
static bool inside(uint64_t at, uint64_t n, uint64_t align, uint64_t file_bytes)
{
	return at >= sizeof(struct shm_header) && at % align == 0 && at <= file_bytes &&
	       n <= file_bytes - at;
}

static bool power_of_two(uint64_t v)
{
	return v != 0 && (v & (v - 1)) == 0;
}

enum shm_outcome shm_check(const void *map, size_t n_bytes, struct shm_header *ret)
{
	struct shm_header h;
	uint64_t n_slots;

	if (n_bytes < sizeof h)
		return SHM_TOO_SHORT;
	/* One copy: what is checked is what is used, whatever the other side does. */
	memcpy(&h, map, sizeof h);
	if (h.magic != SHM_MAGIC)
		return SHM_BAD_MAGIC;
	if (h.version != SHM_VERSION || h.header_bytes != sizeof h)
		return SHM_BAD_VERSION;
	if (h.file_bytes > n_bytes)
		return SHM_TOO_SHORT;
	if (h.file_bytes > SHM_MAX_BYTES || h.n_rings == 0 || h.n_rings > SHM_MAX_RINGS ||
	    !power_of_two(h.ring_slots) || !power_of_two(h.text_bytes))
		return SHM_BAD_LAYOUT;

	n_slots = (uint64_t)h.n_rings * h.ring_slots; /* at most 2^6 * 2^31 */
	if (!inside(h.ring_headers_at, h.n_rings * sizeof(struct shm_ring), 64, h.file_bytes) ||
	    n_slots > h.file_bytes / sizeof(struct event) ||
	    !inside(h.ring_slots_at, n_slots * sizeof(struct event), 64, h.file_bytes) ||
	    !inside(h.string_index_at, (uint64_t)h.max_strings * 8, 8, h.file_bytes) ||
	    !inside(h.string_bytes_at, h.max_string_bytes, 1, h.file_bytes) ||
	    !inside(h.text_at, h.text_bytes, 8, h.file_bytes))
		return SHM_BAD_LAYOUT;

	*ret = h;
	return SHM_OK;
}

const char *shm_outcome_text(enum shm_outcome o)
{
	switch (o) {
	case SHM_OK:
		return "fine";
	case SHM_TOO_SHORT:
		return "shorter than its header says";
	case SHM_BAD_MAGIC:
		return "not a probe's file";
	case SHM_BAD_VERSION:
		return "written by a probe of another version";
	case SHM_BAD_LAYOUT:
		return "its layout points outside the file";
	}
	return "unknown";
}
