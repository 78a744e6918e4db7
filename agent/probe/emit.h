/* emit.h - one event, as short as it can be.
 *
 * The thread's ring pointer is also its re-entrancy guard: it is taken away
 * while an event is being written, so a signal handler that comes in between
 * finds none, goes the slow way and is counted as a drop there.
 */
#pragma once

#include "gate.h"
#include "tick.h"

#include <string.h>

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

enum local_state {
	LOCAL_NEW = 0,
	LOCAL_CLAIMING, /* claiming its ring */
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

/* The words of an event but its time, in as many registers. */
struct what {
	uint64_t head; /* kind, flags, name as they lie in struct event */
	uint64_t a, b;
};

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file is little endian");

static inline struct what what_of(unsigned kind, unsigned flags, uint32_t name, uint64_t a,
				  uint64_t b)
{
	return (struct what){ (uint64_t)name << 32 | (uint64_t)(flags & 0xffff) << 16 |
				      (kind & 0xffff),
			      a, b };
}

/* Everything that is not the straight way: claim a ring, look again at the
 * consumer's index, or count the event as lost. Keeps errno. */
void emit_slow(struct gate *g, uint64_t tick, uint64_t head, uint64_t a, uint64_t b);
/* The same event at CLOCK_MONOTONIC_RAW. Apart, so that the function around the
 * rdtsc calls nothing and saves no registers. */
void emit_raw(struct gate *g, uint64_t head, uint64_t a, uint64_t b);
/* The gate is shut because a start is running: count what it will miss. */
void emit_early(uint64_t head, uint64_t a, uint64_t b);
typedef void (*emit_closed)(uint64_t head, uint64_t a, uint64_t b);

static inline void emit_slot(struct event *e, uint64_t tick, struct what w)
{
	e->tick = tick;
	memcpy((char *)e + offsetof(struct event, kind), &w.head, sizeof w.head);
	e->a = w.a;
	e->b = w.b;
}

static inline __attribute__((always_inline)) void emit_write(struct gate *g, uint64_t tick,
							     struct what w)
{
	struct local *l = &probe_local;
	struct shm_ring *r = l->ring;
	uint64_t head;

	if (unlikely(!r)) {
		emit_slow(g, tick, w.head, w.a, w.b);
		return;
	}
	l->ring = NULL;
	atomic_signal_fence(memory_order_seq_cst);

	head = atomic_load_explicit(&r->head, memory_order_relaxed);
	if (unlikely(head - r->tail_seen > g->slot_mask)) {
		l->ring = r;
		emit_slow(g, tick, w.head, w.a, w.b);
		return;
	}
	emit_slot(&l->slots[head & g->slot_mask], tick, w);
	atomic_store_explicit(&r->head, head + 1, memory_order_release);

	atomic_signal_fence(memory_order_seq_cst);
	l->ring = r;
}

/* One event now, if the level asks for it. While it is not settled whether the
 * probe is on, `unsettled` gets the event instead. Every way out is a jump: off
 * is two loads and two branches. */
static inline __attribute__((always_inline)) void emit(unsigned level, struct what w,
						       emit_closed unsettled)
{
	struct gate *g = gate_get();
	struct shm_header *h = gate_header(g);

	if (unlikely(!h)) {
		if (unlikely(atomic_load_explicit(&probe_start_state, memory_order_relaxed) !=
			     START_SETTLED))
			unsettled(w.head, w.a, w.b);
		return;
	}
	if (unlikely(atomic_load_explicit(&h->level, memory_order_relaxed) < level))
		return;
	if (g->tick_source == SHM_TICK_RAW)
		emit_raw(g, w.head, w.a, w.b);
	else
		emit_write(g, tick_counter(), w);
}
