/* chunk.h - a run of events of one ring as columns, each as narrow as it can be.
 *
 * Seven columns: time, kind, flags, name, the upper and the lower half of a
 * (a step and a number: apart they are narrow), and b rotated left by one (its
 * top bit is a flag). Each is stored as a base and per-event differences of 0,
 * 1, 2, 3, 4 or 8 bytes, either to the base or to the event before, whichever
 * is narrower. Times are host CLOCK_MONOTONIC_RAW
 * nanoseconds: the agent converts ticks, the guest never does.
 *
 * Pure functions on bytes: no allocation, no I/O. A decoder believes nothing:
 * the caller's array bounds the count, every column's width is checked against
 * the bytes that are there.
 *
 * Layout, little endian: u32 magic, u16 version, u16 n_events, u64 kinds (bit k
 * set when kind k < 63 is present, bit 63 for any other), i64 t_min_ns,
 * i64 t_max_ns, then for each column: u8 width, u8 mode, u16 0, u32 n_bytes,
 * u64 base, bytes padded to 8.
 */
#pragma once

#include "event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHUNK_MAX_EVENTS 4096
#define CHUNK_EVENTS 1008 /* what an agent seals at */
#define CHUNK_HEAD_BYTES 32
#define CHUNK_N_COLUMNS 7
/* The largest encoding of n events. */
#define CHUNK_MAX_BYTES(n) (CHUNK_HEAD_BYTES + CHUNK_N_COLUMNS * (16 + 8) + (size_t)(n) * 32)

enum chunk_outcome {
	CHUNK_OK = 0,
	CHUNK_TRUNCATED, /* ends before its columns do */
	CHUNK_BAD_MAGIC,
	CHUNK_BAD_VERSION,
	CHUNK_BAD_COLUMN, /* width, mode or size that no encoder writes */
	CHUNK_TOO_MANY,   /* more events than the caller has room for */
};

struct chunk_info {
	unsigned n_events;
	uint64_t kinds;
	int64_t t_min_ns, t_max_ns;
	size_t n_bytes;
};

/* Encode ev[0..n), 1 <= n <= CHUNK_MAX_EVENTS, into out (at least
 * CHUNK_MAX_BYTES(n)). Event ticks must already be host ns. Returns the size. */
size_t chunk_encode(const struct event *ev, size_t n, unsigned char *out);

/* Read the head only: O(1). */
enum chunk_outcome chunk_peek(const unsigned char *buf, size_t n_bytes, struct chunk_info *ret);

/* Decode into out[0..max). *ret_n is set on CHUNK_OK only. */
enum chunk_outcome chunk_decode(const unsigned char *buf, size_t n_bytes, struct event *out,
				size_t max, size_t *ret_n);

/* Does the chunk hold a kind that the analysis reads? */
static inline bool chunk_has_domain(const struct chunk_info *i)
{
	return (i->kinds & ~(UINT64_C(1) << 63)) != 0;
}
const char *chunk_outcome_text(enum chunk_outcome o);
