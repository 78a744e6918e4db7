/* emit.h - one event, as short as it can be.
 *
 * The thread's ring pointer is also its re-entrancy guard: it is taken away
 * while an event is being written, so a signal handler that comes in between
 * finds none, goes the slow way and is counted as a drop there.
 */
#pragma once

#include "gate.h"
#include "tick.h"

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

enum local_state {
	LOCAL_NEW = 0,
	LOCAL_CLAIMING, /* inside ring_take() */
	LOCAL_OWNER,
	LOCAL_LEFT, /* the thread is ending, its ring is given back */
};

/* What a thread knows. Initial-exec: in a dlopen()ed library the default model
 * may allocate the first time a thread gets here. */
struct local {
	struct shm_ring *ring; /* NULL: none yet, or inside an event */
	struct event *slots;   /* of ring */
	struct shm_ring *mine; /* the claimed ring, also while inside */
	uint32_t state;	       /* enum local_state */
	uint32_t n_denied;
};
extern _Thread_local struct local probe_local __attribute__((tls_model("initial-exec")));

/* The slow way to a ring: claim one, or count the event as lost and return
 * NULL. Keeps errno. */
struct shm_ring *ring_take(struct gate *g);
/* The ring looked full: look again at the consumer's index. */
bool ring_make_room(struct gate *g, struct shm_ring *r, uint64_t head);
/* The gate is shut and a start is running: count what it will miss. */
void ring_count_early(void);

static inline __attribute__((always_inline)) void
emit_write(struct gate *g, uint64_t tick, unsigned kind, unsigned flags, uint32_t name, uint64_t a,
	   uint64_t b)
{
	struct local *l = &probe_local;
	struct shm_ring *r = l->ring;
	uint64_t head;

	if (unlikely(!r)) {
		r = ring_take(g);
		if (!r)
			return;
	}
	l->ring = NULL;
	atomic_signal_fence(memory_order_seq_cst);

	head = atomic_load_explicit(&r->head, memory_order_relaxed);
	if (likely(head - r->tail_seen <= g->slot_mask) || ring_make_room(g, r, head)) {
		l->slots[head & g->slot_mask] = (struct event){
			.tick = tick,
			.kind = (uint16_t)kind,
			.flags = (uint16_t)flags,
			.name = name,
			.a = a,
			.b = b,
		};
		atomic_store_explicit(&r->head, head + 1, memory_order_release);
	}

	atomic_signal_fence(memory_order_seq_cst);
	l->ring = r;
}

/* The gate if events of this level are wanted now, else NULL. */
static inline __attribute__((always_inline)) struct gate *emit_gate(unsigned level)
{
	struct gate *g = gate_get();
	struct shm_header *h = gate_header(g);

	if (unlikely(!h)) {
		if (unlikely(atomic_load_explicit(&probe_start_state, memory_order_relaxed) ==
			     START_RUNNING))
			ring_count_early();
		return NULL;
	}
	if (unlikely(atomic_load_explicit(&h->level, memory_order_relaxed) < level))
		return NULL;
	return g;
}
