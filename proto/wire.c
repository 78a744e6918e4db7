#include "wire.h"

#include <stdint.h>

struct shape {
	uint64_t n_head, n_body, n_children;
};

static uint64_t be(const unsigned char *p, unsigned n)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < n; i++)
		v = v << 8 | p[i];
	return v;
}

/* What one element announces. n >= 1 bytes are there. */
static enum wire_outcome shape_of(const unsigned char *p, size_t n, struct shape *s)
{
	unsigned char c = p[0];
	unsigned n_size = 0; /* bytes of the size field */

	*s = (struct shape){ .n_head = 1 };
	if (c <= 0x7f || c >= 0xe0)
		return WIRE_OK; /* small integers */
	if (c <= 0x8f) {
		s->n_children = 2 * (uint64_t)(c & 0x0f);
		return WIRE_OK;
	}
	if (c <= 0x9f) {
		s->n_children = c & 0x0f;
		return WIRE_OK;
	}
	if (c <= 0xbf) {
		s->n_body = c & 0x1f;
		return WIRE_OK;
	}
	switch (c) {
	case 0xc0: /* nil */
	case 0xc2: /* false */
	case 0xc3: /* true */
		return WIRE_OK;
	case 0xc1:
		return WIRE_BAD_TYPE;
	case 0xca: /* float32, then u32, i32 */
	case 0xce:
	case 0xd2:
		s->n_body = 4;
		return WIRE_OK;
	case 0xcb: /* float64, u64, i64 */
	case 0xcf:
	case 0xd3:
		s->n_body = 8;
		return WIRE_OK;
	case 0xcc: /* u8, i8 */
	case 0xd0:
		s->n_body = 1;
		return WIRE_OK;
	case 0xcd: /* u16, i16 */
	case 0xd1:
		s->n_body = 2;
		return WIRE_OK;
	case 0xd4: /* fixext 1, 2, 4, 8, 16: a type byte and the body */
	case 0xd5:
	case 0xd6:
	case 0xd7:
	case 0xd8:
		s->n_body = 1 + (UINT64_C(1) << (c - 0xd4));
		return WIRE_OK;
	case 0xc4: /* bin 8, 16, 32 */
	case 0xc5:
	case 0xc6:
		n_size = 1u << (c - 0xc4);
		break;
	case 0xc7: /* ext 8, 16, 32 */
	case 0xc8:
	case 0xc9:
		n_size = 1u << (c - 0xc7);
		break;
	case 0xd9: /* str 8, 16, 32 */
	case 0xda:
	case 0xdb:
		n_size = 1u << (c - 0xd9);
		break;
	case 0xdc: /* array 16, 32 */
	case 0xdd:
		n_size = 2u << (c - 0xdc);
		break;
	case 0xde: /* map 16, 32 */
	case 0xdf:
		n_size = 2u << (c - 0xde);
		break;
	default:
		return WIRE_BAD_TYPE;
	}
	if (n < 1 + n_size)
		return WIRE_TRUNCATED;
	s->n_head = 1 + n_size;
	if (c >= 0xde)
		s->n_children = 2 * be(p + 1, n_size);
	else if (c >= 0xdc)
		s->n_children = be(p + 1, n_size);
	else if (c >= 0xc7 && c <= 0xc9)
		s->n_body = be(p + 1, n_size) + 1;
	else
		s->n_body = be(p + 1, n_size);
	return WIRE_OK;
}

enum wire_outcome wire_check(const unsigned char *buf, size_t n_bytes)
{
	uint64_t owed[WIRE_MAX_DEPTH + 1] = { 1 }; /* elements due per level */
	size_t depth = 0, at = 0, n_elements = 0;

	for (;;) {
		enum wire_outcome r;
		struct shape s;

		while (depth > 0 && owed[depth] == 0)
			depth--;
		if (owed[depth] == 0)
			return at == n_bytes ? WIRE_OK : WIRE_TRAILING;
		if (at == n_bytes)
			return WIRE_TRUNCATED;
		/* The unpacker makes an object of 24 bytes of each: a megabyte of
		 * one-byte elements would become 24. */
		if (++n_elements > WIRE_MAX_ELEMENTS)
			return WIRE_TOO_MANY;

		r = shape_of(buf + at, n_bytes - at, &s);
		if (r != WIRE_OK)
			return r;
		owed[depth]--;
		at += (size_t)s.n_head;
		/* Every element takes at least a byte, so this bounds both. */
		if (s.n_body > n_bytes - at || s.n_children > n_bytes - at)
			return WIRE_TRUNCATED;
		at += (size_t)s.n_body;
		if (s.n_children > 0) {
			if (depth == WIRE_MAX_DEPTH)
				return WIRE_TOO_DEEP;
			owed[++depth] = s.n_children;
		}
	}
}

const char *wire_outcome_text(enum wire_outcome o)
{
	switch (o) {
	case WIRE_OK:
		return "fine";
	case WIRE_TRUNCATED:
		return "it claims more than it carries";
	case WIRE_TOO_DEEP:
		return "it is nested too deeply";
	case WIRE_TRAILING:
		return "something follows the message";
	case WIRE_BAD_TYPE:
		return "it holds a type that msgpack does not have";
	case WIRE_TOO_MANY:
		return "it has more elements than any honest message";
	}
	return "unknown";
}
