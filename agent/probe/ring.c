#include "ring.h"
#include "emit.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define RETRY_EVERY 1024 /* lost events until a thread without ring asks again */

_Thread_local struct local probe_local __attribute__((tls_model("initial-exec")));

static pthread_key_t leave_key;
static _Atomic uint64_t n_early;

void emit_early(uint64_t head, uint64_t a, uint64_t b)
{
	(void)head, (void)a, (void)b;
	if (atomic_load_explicit(&probe_start_state, memory_order_relaxed) == START_RUNNING)
		atomic_fetch_add_explicit(&n_early, 1, memory_order_relaxed);
}

uint64_t ring_take_n_early(void)
{
	return atomic_exchange_explicit(&n_early, 0, memory_order_relaxed);
}

/* On the thread that ends. A child made without fork() inherits the thread's
 * key but finds the gate shut: the ring is not its to give back. */
static void leave(void *arg)
{
	struct shm_ring *r = arg;

	probe_local.ring = probe_local.mine = NULL;
	probe_local.state = LOCAL_LEFT;
	if (gate_header(gate_get()))
		atomic_store_explicit(&r->state, SHM_RING_LEFT, memory_order_release);
}

int ring_start(void)
{
	return pthread_key_create(&leave_key, leave);
}

static bool drained(struct shm_ring *r)
{
	return atomic_load_explicit(&r->head, memory_order_relaxed) ==
	       atomic_load_explicit(&r->tail, memory_order_acquire);
}

/* First rings whose events are all gone: their memory is warm, and no event of
 * the old owner can be taken for one of the new. Then untouched ones, then any. */
static struct shm_ring *claim(struct gate *g)
{
	enum { LEFT_DRAINED, FREE, LEFT, N };

	for (int want = LEFT_DRAINED; want < N; want++) {
		uint32_t from = want == FREE ? SHM_RING_FREE : SHM_RING_LEFT;

		for (uint32_t i = 0; i < g->n_rings; i++) {
			struct shm_ring *r = &g->rings[i];
			uint32_t is = atomic_load_explicit(&r->state, memory_order_relaxed);

			if (is != from || (want == LEFT_DRAINED && !drained(r)))
				continue;
			if (atomic_compare_exchange_strong_explicit(&r->state, &is,
								    SHM_RING_OWNED,
								    memory_order_acquire,
								    memory_order_relaxed))
				return r;
		}
	}
	return NULL;
}

static void lost(struct gate *g)
{
	struct shm_header *h = gate_header(g);

	atomic_fetch_add_explicit(&h->n_dropped_without_ring, 1, memory_order_relaxed);
}

static struct shm_ring *settle(struct gate *g, struct local *l)
{
	size_t n_slots_bytes = (g->slot_mask + 1) * sizeof(struct event);
	struct shm_ring *r = claim(g);
	char name[16] = "";

	if (!r)
		return NULL;
	if (pthread_setspecific(leave_key, r) != 0) {
		atomic_store_explicit(&r->state, SHM_RING_LEFT, memory_order_release);
		return NULL;
	}
	atomic_store_explicit(&r->tid, (uint32_t)syscall(SYS_gettid), memory_order_relaxed);
	prctl(PR_GET_NAME, name);
	memcpy(r->thread_name, name, sizeof r->thread_name);
	l->slots = g->slots + (size_t)(r - g->rings) * (g->slot_mask + 1);
	/* Page faults now, in one go, instead of one every 128 events. */
	(void)madvise(l->slots, n_slots_bytes, MADV_POPULATE_WRITE);
	return r;
}

/* This thread's ring, or NULL and the event is counted as lost. */
static struct shm_ring *take(struct gate *g)
{
	struct local *l = &probe_local;
	int saved_errno = errno;
	struct shm_ring *r;

	switch ((enum local_state)l->state) {
	case LOCAL_OWNER: /* a handler on top of an event of its own thread */
		atomic_fetch_add_explicit(&l->mine->n_dropped, 1, memory_order_relaxed);
		return NULL;
	case LOCAL_CLAIMING:
	case LOCAL_LEFT:
		lost(g);
		return NULL;
	case LOCAL_NEW:
		break;
	}
	if (l->n_denied % RETRY_EVERY != 0) {
		l->n_denied++;
		lost(g);
		return NULL;
	}

	l->state = LOCAL_CLAIMING;
	atomic_signal_fence(memory_order_seq_cst);
	r = settle(g, l);
	if (r) {
		l->mine = r;
		atomic_signal_fence(memory_order_seq_cst);
		l->state = LOCAL_OWNER;
	} else {
		if (l->n_denied++ == 0)
			atomic_fetch_add_explicit(&gate_header(g)->n_threads_without_ring, 1,
						  memory_order_relaxed);
		lost(g);
		l->state = LOCAL_NEW;
	}
	errno = saved_errno;
	return r;
}

void emit_slow(struct gate *g, uint64_t tick, uint64_t first, uint64_t a, uint64_t b)
{
	struct local *l = &probe_local;
	struct shm_ring *r = l->ring;
	uint64_t head;

	if (!r) {
		r = take(g);
		if (!r)
			return;
	}
	l->ring = NULL;
	atomic_signal_fence(memory_order_seq_cst);

	head = atomic_load_explicit(&r->head, memory_order_relaxed);
	r->tail_seen = atomic_load_explicit(&r->tail, memory_order_acquire);
	/* A tail past head is nonsense from the other side: the difference wraps
	 * and reads as full. */
	if (head - r->tail_seen <= g->slot_mask) {
		emit_slot(&l->slots[head & g->slot_mask], tick, (struct what){ first, a, b });
		atomic_store_explicit(&r->head, head + 1, memory_order_release);
	} else {
		atomic_fetch_add_explicit(&r->n_dropped, 1, memory_order_relaxed);
	}

	atomic_signal_fence(memory_order_seq_cst);
	l->ring = r;
}

void emit_raw(struct gate *g, uint64_t head, uint64_t a, uint64_t b)
{
	emit_write(g, tick_raw_ns(), (struct what){ head, a, b });
}

/* Kinds below LEVEL_DEFAULT's: steps and collectives. */
#define STEP_KINDS                                                                           \
	(UINT64_C(1) << EVENT_STEP_BEGIN | UINT64_C(1) << EVENT_STEP_END |                    \
	 UINT64_C(1) << EVENT_COLL_BEGIN | UINT64_C(1) << EVENT_COLL_END)

#define GPU_KINDS                                                                            \
	(UINT64_C(1) << EVENT_LAUNCH | UINT64_C(1) << EVENT_KERNEL_BEGIN |                    \
	 UINT64_C(1) << EVENT_KERNEL_END | UINT64_C(1) << EVENT_STREAM_WAIT |                 \
	 UINT64_C(1) << EVENT_COLL_SUBMIT)

/* Which level a kind belongs to. Of a kind that this build does not know the
 * caller has decided. */
static inline unsigned level_of(unsigned kind)
{
	if (kind < 64 && (STEP_KINDS >> kind & 1))
		return LEVEL_STEPS;
	if (kind < 64 && (GPU_KINDS >> kind & 1))
		return LEVEL_GPU;
	return kind <= EVENT_HOST_WAIT_END || kind >= EVENT_FIRST_RAW_KIND ? LEVEL_DEFAULT
									   : LEVEL_STEPS;
}

void probe_emit(unsigned kind, unsigned flags, uint32_t name, uint64_t a, uint64_t b)
{
	emit(level_of(kind), what_of(kind, flags, name, a, b), emit_early);
}

void probe_emit_at(uint64_t tick, unsigned kind, unsigned flags, uint32_t name, uint64_t a,
		   uint64_t b)
{
	struct gate *g = gate_get();
	struct shm_header *h = gate_header(g);

	if (unlikely(!h))
		emit_early(0, 0, 0);
	else if (atomic_load_explicit(&h->level, memory_order_relaxed) >= level_of(kind))
		emit_write(g, tick, what_of(kind, flags, name, a, b));
}
