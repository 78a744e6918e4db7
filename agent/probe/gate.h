/* gate.h - everything the guest knows about its file, on a page that a child
 * process finds empty.
 *
 * The page is private memory with MADV_WIPEONFORK: whatever way a child is made
 * (fork, clone without CLONE_VM), it reads zeros here, and zero means off. So
 * one load answers "is the probe on?" and "is this still my process?".
 *
 * The pointers and sizes are the guest's own copies. The shared file is never
 * asked where something lies: whoever may write to it can spoil the trace, but
 * not make the guest touch memory outside its mapping.
 */
#pragma once

#include "../../proto/shm.h"
#include "probe.h"

#include <stdatomic.h>

struct gate {
	struct shm_header *_Atomic header; /* NULL = off */
	const uint32_t *level; /* header's, for syncline_probe.h; NULL = off */
	struct shm_ring *rings;
	struct event *slots;
	uint64_t slot_mask;
	uint32_t tick_source; /* enum shm_tick */
	uint32_t n_rings;

	uint64_t *string_index;
	char *string_bytes;
	uint32_t max_strings, max_string_bytes;
	unsigned char *text;
	uint32_t text_bytes;

	void *map;
	size_t n_map_bytes;
};

/* Never NULL: an always-closed one until gate_open(). Written once. */
extern struct gate *_Atomic probe_gate;

/* How far the process is on its way from nothing to on or off. */
enum start {
	START_UNDECIDED = 0, /* nobody has asked yet */
	START_RUNNING,
	START_SETTLED, /* on or off for good */
};
extern _Atomic uint32_t probe_start_state;

/* Make the page; 0 or errno. The gate is closed and private to the caller. */
int gate_new(struct gate **ret);
/* Let events through: everything else in g must be set. */
void gate_open(struct gate *g, struct shm_header *h);
/* It stays closed for good. */
void gate_close(void);

static inline struct gate *gate_get(void)
{
	return atomic_load_explicit(&probe_gate, memory_order_acquire);
}
static inline struct shm_header *gate_header(const struct gate *g)
{
	return atomic_load_explicit(&g->header, memory_order_relaxed);
}
