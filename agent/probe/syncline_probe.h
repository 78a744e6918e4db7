/* syncline_probe.h - put your own marks on syncline's time line.
 *
 * For C and C++ code inside a training process. Link with libsyncline_probe.so.
 * Nothing here can fail in a way that your program must handle: a call never
 * blocks, prints, exits or changes errno. When the probe cannot work it is off,
 * every call returns at once, and syncline_get_status() says why.
 *
 * Threads: every function may be called from any thread at any time, a signal
 * handler that interrupts one included (its event is dropped and counted).
 * Cost: about five nanoseconds more than reading the clock; less than one when
 * off. In C and C++ the four calls that record look at the level before they
 * call: their arguments are evaluated only when something will be recorded.
 * A thread's first event also claims the thread's ring (some microseconds).
 *
 * Fork: a child is off from its first instruction; its parent goes on.
 */
#ifndef SYNCLINE_PROBE_H
#define SYNCLINE_PROBE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(SYNCLINE_PROBE_BUILD)
#define SYNCLINE_API __attribute__((visibility("default")))
#else
#define SYNCLINE_API
#endif

/* Open the shared file now instead of at the first call below (one to a few
 * milliseconds). Only does so where the environment asks for a trace
 * (SYNCLINE_RUN, SYNCLINE_DIR or SYNCLINE_COLLECTOR is set) and this process is
 * not a helper of a rank. Rank and world size are taken from RANK, LOCAL_RANK,
 * WORLD_SIZE, LOCAL_WORLD_SIZE and TORCHELASTIC_RESTART_COUNT unless something
 * else in the process has told them. Returns 1 when the probe is on, 0 when it
 * is off. Later calls only report. */
SYNCLINE_API int syncline_start(void);

/* An id for a name, the same for the same bytes; ask once and keep it. The
 * string is copied (255 bytes at most, longer ones are cut) and stays yours.
 * 0 = "no name": the probe is off, the table is full, or another thread was
 * adding a name at this moment. 0 is a valid argument everywhere below. */
SYNCLINE_API uint32_t syncline_name(const char *name);

/* A point in time with two values of your choice. */
SYNCLINE_API void syncline_mark(uint32_t name, uint64_t a, uint64_t b);

/* A stretch of one thread's time. Scopes of a thread must nest; begin and end
 * carry the same name. `value` is yours. */
SYNCLINE_API void syncline_scope_begin(uint32_t name, uint64_t value);
SYNCLINE_API void syncline_scope_end(uint32_t name, uint64_t value);

/* The value of a quantity from now on, in the unit that its name tells
 * ("loader.queue_batches", "cache.used_bytes"). */
SYNCLINE_API void syncline_counter(uint32_t name, double value);

/* What is recorded at present: 0 off, 1 steps and collectives, 2 also phases,
 * buckets and all of the above (default), 3 layers, 4 GPU windows. The agent
 * may change it at any time. Calls above record at level 2 and more. */
SYNCLINE_API unsigned syncline_level(void);

struct syncline_status {
	size_t size; /* set it to sizeof(struct syncline_status) before the call */
	int on;      /* 1 = events go to a file, at the level below */
	unsigned level;
	int system_error;  /* errno behind `reason`, 0 = none */
	const char *reason; /* why it is off, a sentence; "" when on. Static, not yours */
	const char *file;   /* path of the shared file, "" = none. Static, not yours */
	uint64_t n_events_dropped; /* no room in a ring, or no ring for the thread */
	uint64_t n_texts_dropped;  /* log records and the like */
	uint64_t n_names_dropped;
};

/* Fill *s up to s->size bytes. Slow (walks all rings): not for a hot path. */
SYNCLINE_API void syncline_get_status(struct syncline_status *s);

/* What the macros below look at: where it is said where the level lies (NULL
 * there = off). Not for your code. */
SYNCLINE_API extern const uint32_t *const *syncline_level_place;

#if !defined(SYNCLINE_PROBE_BUILD)
static inline int syncline_records(void)
{
	const uint32_t *const *place = __atomic_load_n(&syncline_level_place, __ATOMIC_ACQUIRE);
	const uint32_t *level = __atomic_load_n(place, __ATOMIC_RELAXED);

	return level && __atomic_load_n(level, __ATOMIC_RELAXED) >= 2;
}

#define syncline_mark(name, a, b) \
	(syncline_records() ? (syncline_mark)(name, a, b) : (void)0)
#define syncline_scope_begin(name, value) \
	(syncline_records() ? (syncline_scope_begin)(name, value) : (void)0)
#define syncline_scope_end(name, value) \
	(syncline_records() ? (syncline_scope_end)(name, value) : (void)0)
#define syncline_counter(name, value) \
	(syncline_records() ? (syncline_counter)(name, value) : (void)0)
#endif

#ifdef __cplusplus
}
#endif
#endif
