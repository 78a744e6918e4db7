/* probe.h - the probe as other guests of the same process see it.
 *
 * The Python extension and the NCCL plug-in link with libsyncline_probe.so, so
 * that a process has one file, one clock and one identity whoever speaks. These
 * functions are not for programs (that is syncline_probe.h) and may change with
 * any release; their symbols begin with syncline_guest_.
 *
 * The guest rule holds for each of them: no lock, no allocation, no system call
 * once a thread has its ring, errno left as it was, nothing printed, no failure
 * that the caller must handle. Callable from any thread.
 */
#pragma once

#include "../../proto/event.h"
#include "../../proto/shm.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROBE_API(symbol) \
	__asm__("syncline_guest_" #symbol) __attribute__((visibility("default")))

/* Why no events go to a file. The order is of no importance; the sentence of
 * each is in probe.c. */
enum probe_off {
	PROBE_ON = 0,
	PROBE_NOT_STARTED,
	PROBE_STARTING,       /* another thread is at it */
	PROBE_FORKED,         /* a child of the process that opened the file */
	PROBE_ASKED_OFF,      /* SYNCLINE_OFF */
	PROBE_NOT_ASKED,      /* nothing in the environment asks for a trace */
	PROBE_NOT_RANK,       /* started by a rank, not one itself */
	PROBE_SETUID,         /* the program runs with other rights than its caller */
	PROBE_NO_DIR,         /* not there and cannot be made */
	PROBE_DIR_DENIED,     /* no right to create files in it */
	PROBE_DIR_FOREIGN,    /* the default one belongs to somebody else */
	PROBE_DIR_FILESYSTEM, /* cannot promise that mapped space exists */
	PROBE_NO_SPACE,
	PROBE_FILE_LIMIT, /* RLIMIT_FSIZE */
	PROBE_NO_FD,
	PROBE_NO_LOCK,
	PROBE_NO_MAP,
	PROBE_NO_GATE, /* the kernel cannot wipe a page on fork */
	PROBE_NO_KEY,  /* no thread key left */
	PROBE_OPEN_FAILED,
	PROBE_OFF_N,
};

struct probe_stats {
	enum probe_off off; /* PROBE_ON = on */
	int system_error;
	const char *file; /* "" = none; static */
	uint32_t level;
	uint32_t n_rings, n_rings_taken;
	uint32_t n_threads_without_ring;
	uint64_t n_events; /* written by all rings so far */
	uint64_t n_dropped, n_text_dropped, n_names_dropped;
};

/* Open the shared file. Once a process; later calls report. Does not look at
 * RANK: the caller has decided that this process is to be traced. Takes
 * milliseconds and system calls, never blocks on another process. */
enum probe_off probe_start(void) PROBE_API(start);

/* Who this process is; -1 for what is not known. run_id may be NULL. */
void probe_identity(int rank, int local_rank, int world_size, int local_world_size,
		    int restart_count, const char *run_id) PROBE_API(identity);

/* One event now. Kinds of the analysis need LEVEL_STEPS or LEVEL_DEFAULT as
 * proto/event.h groups them; the caller checks probe_level() for higher ones. */
void probe_emit(unsigned kind, unsigned flags, uint32_t name, uint64_t a, uint64_t b)
	PROBE_API(emit);
/* The same with a tick taken earlier by probe_tick(). */
void probe_emit_at(uint64_t tick, unsigned kind, unsigned flags, uint32_t name, uint64_t a,
		   uint64_t b) PROBE_API(emit_at);

/* A text record (enum shm_text_kind). Longer than SHM_MAX_TEXT bytes: cut at a
 * character, except SHM_TEXT_RECORD, which is dropped, for half a JSON object
 * is none. Another thread writing one at this moment: dropped. Both counted.
 * True when it was stored. */
bool probe_text(unsigned kind, unsigned level, const char *text, size_t n_bytes) PROBE_API(text);

/* As syncline_name(), without starting anything. */
uint32_t probe_name(const char *s) PROBE_API(name);
uint32_t probe_name_n(const char *s, size_t n_bytes) PROBE_API(name_n);

/* 0 when off, forked or not started. */
unsigned probe_level(void) PROBE_API(level);
/* The process's tick source; works also when the probe is off. */
uint64_t probe_tick(void) PROBE_API(tick);

/* The step that events of other guests belong to; EVENT_STEP_UNKNOWN before the
 * first and when off. */
void probe_set_step(uint32_t step) PROBE_API(set_step);
uint32_t probe_step(void) PROBE_API(step);

void probe_stats(struct probe_stats *ret) PROBE_API(stats);
const char *probe_off_text(enum probe_off off) PROBE_API(off_text);
/* The mapped header, NULL when off: read-only for other guests and for tests. */
const struct shm_header *probe_header(void) PROBE_API(header);
