/* ping.h - the 64 bytes of a clock probe and of its answer, both UDP.
 *
 *   0 magic u32   4 version u8   5 kind u8   6 flags u8   7 wish u8
 *   8 stream u64   16 seq u64   24 report_seq u64   32 t0 i64   40 t3 i64
 *  48 digest, 16 bytes                                  all little-endian
 *
 * Two-step: when a packet left is known only after it left, so an agent tells
 * in a later request when an earlier one (report_seq) was sent and when its
 * answer came. When it was received and answered the collector knows itself, and
 * its answer carries no time. Another agent that answers reports in the same way
 * when an earlier request came and when its answer left. An answer is as long as
 * its request.
 *
 * The digest is HMAC-SHA-256 over the 48 bytes before it, cut to 16, under a
 * key that both ends derive from the token and from a secret that was handed
 * out with the stream. Pure functions on bytes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PING_BYTES 64
#define PING_SECRET_BYTES 32
#define PING_KEY_BYTES 32
#define PING_MAX_NS (INT64_C(1) << 61)

enum ping_kind { PING_REQUEST = 1, PING_ANSWER = 2 };

enum ping_flags {
	PING_WARM_UP = 1,     /* it wakes what sleeps on its way; its own times count little */
	PING_HAS_REPORT = 2,  /* report_seq, t0, t3 are set; else they are 0 */
	PING_KERNEL_T0 = 4,   /* the kernel took t0 … */
	PING_KERNEL_T3 = 8,   /* … and t3 */
	PING_ALL_FLAGS = 15,
};

struct ping {
	enum ping_kind kind;
	uint8_t flags;
	uint8_t wish; /* answer: exchanges a second that are wanted, 0 = no opinion */
	uint64_t stream, seq; /* seq from 1, a stream */
	uint64_t report_seq;
	/* Host CLOCK_MONOTONIC_RAW, of report_seq: sent and answer received; in an
	 * answer received and answered. */
	int64_t t0_ns, t3_ns;
};

struct ping_key {
	uint8_t bytes[PING_KEY_BYTES];
};

enum ping_outcome {
	PING_OK = 0,
	PING_MALFORMED, /* another length, magic, version, or a field out of range */
	PING_FORGED,	/* the digest is not ours */
};

void ping_derive_key(struct ping_key *ret, const char *token, uint64_t stream,
		     const uint8_t secret[PING_SECRET_BYTES]);
void ping_pack(uint8_t out[PING_BYTES], const struct ping *p, const struct ping_key *key);
/* Shape and ranges alone: whose key is needed stands in it. */
enum ping_outcome ping_parse(struct ping *ret, const void *data, size_t n_bytes);
/* Of a packet that ping_parse() took; in a time that does not depend on where it differs. */
enum ping_outcome ping_verify(const void *data, const struct ping_key *key);

/* Which of a stream's numbers came before: repeats and what is too old to tell are
 * refused, in any order of arrival. Zeroed: none. */
#define PING_WINDOW 64
struct ping_window {
	uint64_t newest, seen; /* bit i: newest - i came */
};
bool ping_window_take(struct ping_window *w, uint64_t seq);
