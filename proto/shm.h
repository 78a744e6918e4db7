/* shm.h - the file that a training process and its agent share.
 *
 * One file a process in $SYNCLINE_DIR, written by the guest, drained by the
 * agent, readable after the guest is dead. All of it is allocated before it is
 * mapped: a sparse page on a full tmpfs would kill the host with SIGBUS.
 *
 *   header | string area | text ring | ring 0 | ring 1 | …   (offsets in header)
 *
 * The agent does not trust this file: it checks every offset against the
 * file's size once and copies what it needs (shm_check() in shm.c).
 *
 * Liveness: the guest holds an fcntl write lock on byte 0 for as long as it
 * lives, opens the file exactly once and never closes it; the kernel drops the
 * lock at death, exec included (the descriptor is close-on-exec). No PID
 * namespace or user id is needed to see it (F_GETLK).
 */
#pragma once

#include "event.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define SHM_MAGIC UINT64_C(0x31676e6972636e79) /* "yncring1", little endian */
#define SHM_VERSION 1
#define SHM_SUFFIX ".ring" /* complete files; ".new" while being prepared */

#define SHM_MAX_BYTES (8u << 20)  /* a process; at most 10 % of the free space too */
#define SHM_MIN_BYTES (256u << 10) /* less is not worth it: the probe stays off */
#define SHM_MAX_RINGS 64
#define SHM_MAX_STRING 255 /* bytes of one name, longer ones are cut */
#define SHM_MAX_TEXT 4096  /* bytes of one text record, longer ones are cut */

enum shm_tick {
	SHM_TICK_RAW = 0, /* CLOCK_MONOTONIC_RAW, nanoseconds */
	SHM_TICK_TSC = 1, /* rdtsc; only where the kernel's clocksource is tsc */
	SHM_TICK_CNTVCT = 2, /* arm64 virtual counter, same condition */
};

enum shm_ring_state {
	SHM_RING_FREE = 0,
	SHM_RING_OWNED = 1,
	SHM_RING_LEFT = 2, /* its thread ended; drained like the others, may be claimed */
};

/* One single-producer ring. Head and tail only grow; slot = index & (n - 1).
 * The producer's line and the consumer's line are apart. */
struct shm_ring {
	/* producer */
	_Alignas(64) _Atomic uint64_t head;
	uint64_t tail_seen; /* producer's copy of tail */
	_Atomic uint64_t n_dropped;
	_Atomic uint32_t state; /* enum shm_ring_state, claimed by CAS */
	_Atomic uint32_t tid;
	char thread_name[16];
	/* consumer */
	_Alignas(64) _Atomic uint64_t tail;
};

/* Text records (logs, exceptions, facts in JSON) share one byte ring. A writer
 * takes it by `busy` and gives up at once if another holds it: dropped and
 * counted, never waited for. Each record: struct shm_text, then n_bytes of
 * UTF-8, padded to 8. A record never wraps: SHM_TEXT_PAD fills the rest, which is
 * never shorter than its head. */
struct shm_text {
	uint32_t n_bytes;
	uint16_t kind;  /* enum shm_text_kind */
	uint16_t level; /* Python's logging level for SHM_TEXT_LOG */
	uint64_t tick;
};
enum shm_text_kind {
	SHM_TEXT_PAD = 0,
	SHM_TEXT_LOG = 1,       /* "logger\tmessage" */
	SHM_TEXT_EXCEPTION = 2, /* "Type: message\ntraceback" */
	SHM_TEXT_RECORD = 3,    /* JSON {"c":"meta.env","f":{…}}: records.md's vocabulary */
};
struct shm_text_ring {
	_Alignas(64) _Atomic uint64_t head;
	_Atomic uint64_t n_dropped;
	_Atomic uint32_t busy;
	_Alignas(64) _Atomic uint64_t tail;
};

/* Strings: ids count from 1. Entry id-1 of the index holds offset << 8 | length
 * and is written after the bytes; n_strings after that (release). */
struct shm_strings {
	_Alignas(64) _Atomic uint32_t n_strings;
	_Atomic uint32_t n_bytes_used;
	_Atomic uint32_t busy;
	_Atomic uint32_t n_dropped;
};

/* Set once by shm identity calls; `generation` goes odd while it is written. */
struct shm_identity {
	_Atomic uint32_t generation;
	int32_t rank; /* -1 = not known yet */
	int32_t local_rank;
	int32_t world_size;
	int32_t local_world_size;
	int32_t restart_count;
	char run_id[64]; /* zero-terminated */
	char host[64];
};

struct shm_clock_triple {
	uint64_t tick;
	int64_t raw_ns;
	int64_t real_ns;
};

struct shm_header {
	uint64_t magic;
	uint32_t version;
	uint32_t header_bytes;
	uint64_t file_bytes;
	uint32_t pid; /* in the guest's own PID namespace: a label, not a key */
	uint32_t tick_source; /* enum shm_tick */
	int64_t started_raw_ns;
	int64_t started_real_ns;
	uint64_t unique; /* random; with started_raw_ns names this process */

	uint32_t n_rings;
	uint32_t ring_slots; /* power of two */
	uint64_t ring_headers_at; /* struct shm_ring[n_rings] */
	uint64_t ring_slots_at;   /* struct event[n_rings][ring_slots] */
	uint64_t string_index_at; /* uint64_t[max_strings] */
	uint64_t string_bytes_at;
	uint32_t max_strings;
	uint32_t max_string_bytes;
	uint64_t text_at; /* text ring's bytes */
	uint32_t text_bytes; /* power of two */
	uint32_t reserved;

	/* written by the agent, read by the guest */
	_Alignas(64) _Atomic uint32_t level; /* enum level */
	_Atomic uint32_t request; /* futex word for later uses (stacks) */
	_Atomic int64_t agent_seen_raw_ns; /* the agent's last visit, 0 = never */

	/* written by the guest */
	_Alignas(64) struct shm_identity identity;
	struct shm_clock_triple clock; /* taken at start */
	_Atomic uint32_t n_threads_without_ring; /* all rings taken: their events are lost */
	_Atomic uint64_t n_dropped_without_ring;
	_Atomic uint32_t closed; /* 1 = the process left in order (atexit) */
	_Atomic uint32_t step; /* current step, for other guests in the process */

	struct shm_strings strings;
	struct shm_text_ring text;
};

enum shm_outcome {
	SHM_OK = 0,
	SHM_TOO_SHORT, /* smaller than its header says */
	SHM_BAD_MAGIC, /* not one of our files */
	SHM_BAD_VERSION,
	SHM_BAD_LAYOUT, /* offsets or counts outside the file */
};

/* Is the mapped file of n_bytes one whose offsets stay inside it? Copies the
 * header's layout into *ret so that later reads do not trust the file again.
 * `reader` only: never called in the guest. */
enum shm_outcome shm_check(const void *map, size_t n_bytes, struct shm_header *ret);
const char *shm_outcome_text(enum shm_outcome o);
