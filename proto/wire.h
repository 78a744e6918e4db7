/* wire.h - is this byte string safe to hand to the msgpack unpacker?
 *
 * msgpack_unpack_next() believes declared sizes: sixteen bytes can make it
 * reserve gigabytes. Run wire_check() on every frame first.
 */
#pragma once

#include <stddef.h>

enum wire_outcome {
	WIRE_OK = 0,
	WIRE_TRUNCATED, /* claims more bytes or elements than it carries */
	WIRE_TOO_DEEP,  /* nested past WIRE_MAX_DEPTH */
	WIRE_TRAILING,  /* one object, then something else */
	WIRE_BAD_TYPE,  /* 0xc1, which msgpack never assigned */
	WIRE_TOO_MANY,  /* more elements than any honest frame */
};

#define WIRE_MAX_DEPTH 8
#define WIRE_MAX_ELEMENTS 65536
#define WIRE_MAX_FRAME_BYTES (1u << 20)

/* Exactly one msgpack object, no bigger than it says, within the limits. */
enum wire_outcome wire_check(const unsigned char *buf, size_t n_bytes);
const char *wire_outcome_text(enum wire_outcome o);
