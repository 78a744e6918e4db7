/* Frame of reference with byte widths, a column at a time. A column is coded
 * either as v - min (FOR) or as zigzag(v - previous) (DELTA); whichever needs
 * fewer bytes wins. Width 3 is there because the gap between two events of a
 * busy thread is most often between 65 us and 16 ms. */
#include "chunk.h"

#include <string.h>

#define CHUNK_MAGIC 0x314b4353u /* "SCK1" */
#define CHUNK_VERSION 1

enum mode { MODE_FOR = 0, MODE_DELTA = 1 };

static void put(unsigned char *p, uint64_t v, unsigned n)
{
	memcpy(p, &v, n); /* little endian hosts only, asserted below */
}

static uint64_t get(const unsigned char *p, unsigned n)
{
	uint64_t v = 0;

	memcpy(&v, p, n);
	return v;
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the layout is little endian");

static uint64_t zigzag(uint64_t d)
{
	return d << 1 ^ (uint64_t)((int64_t)d >> 63);
}

static uint64_t unzigzag(uint64_t z)
{
	return z >> 1 ^ (uint64_t)-(int64_t)(z & 1);
}

static unsigned width_of(uint64_t bits) /* or of all values */
{
	if (bits == 0)
		return 0;
	if (bits <= UINT8_MAX)
		return 1;
	if (bits <= UINT16_MAX)
		return 2;
	if (bits <= 0xffffff)
		return 3;
	return bits <= UINT32_MAX ? 4 : 8;
}

/* The columns of ev, widened to 64 bits. */
static void gather(const struct event *ev, size_t n, unsigned column, uint64_t *out)
{
	switch (column) {
	case 0:
		for (size_t i = 0; i < n; i++)
			out[i] = ev[i].tick;
		break;
	case 1:
		for (size_t i = 0; i < n; i++)
			out[i] = ev[i].kind;
		break;
	case 2:
		for (size_t i = 0; i < n; i++)
			out[i] = ev[i].flags;
		break;
	case 3:
		for (size_t i = 0; i < n; i++)
			out[i] = ev[i].name;
		break;
	case 4:
		for (size_t i = 0; i < n; i++)
			out[i] = ev[i].a >> 32;
		break;
	case 5:
		for (size_t i = 0; i < n; i++)
			out[i] = (uint32_t)ev[i].a;
		break;
	default:
		for (size_t i = 0; i < n; i++)
			out[i] = ev[i].b << 1 | ev[i].b >> 63;
		break;
	}
}

/* Narrowing loops by width, so that the compiler can make vectors of them. */
static void pack(unsigned char *p, const uint64_t *v, size_t n, unsigned width)
{
	switch (width) {
	case 1:
		for (size_t i = 0; i < n; i++)
			p[i] = (unsigned char)v[i];
		break;
	case 2:
		for (size_t i = 0; i < n; i++)
			put(p + 2 * i, v[i], 2);
		break;
	case 3:
		for (size_t i = 0; i < n; i++) {
			put(p + 3 * i, v[i], 2);
			p[3 * i + 2] = (unsigned char)(v[i] >> 16);
		}
		break;
	case 4:
		for (size_t i = 0; i < n; i++)
			put(p + 4 * i, v[i], 4);
		break;
	case 8:
		memcpy(p, v, 8 * n);
		break;
	default:
		break;
	}
}

static void unpack(const unsigned char *p, uint64_t *v, size_t n, unsigned width)
{
	switch (width) {
	case 0:
		memset(v, 0, 8 * n);
		break;
	case 1:
		for (size_t i = 0; i < n; i++)
			v[i] = p[i];
		break;
	case 2:
		for (size_t i = 0; i < n; i++)
			v[i] = get(p + 2 * i, 2);
		break;
	case 3:
		for (size_t i = 0; i < n; i++)
			v[i] = get(p + 3 * i, 2) | (uint64_t)p[3 * i + 2] << 16;
		break;
	case 4:
		for (size_t i = 0; i < n; i++)
			v[i] = get(p + 4 * i, 4);
		break;
	default:
		memcpy(v, p, 8 * n);
		break;
	}
}

static unsigned char *encode_column(unsigned char *out, uint64_t *v, size_t n)
{
	uint64_t min = v[0], bits_for = 0, bits_delta = 0, previous = v[0], base;
	unsigned width_for, width_delta, width;
	size_t n_bytes, n_padded;
	enum mode mode;

	for (size_t i = 1; i < n; i++)
		min = v[i] < min ? v[i] : min;
	for (size_t i = 0; i < n; i++) {
		bits_for |= v[i] - min;
		bits_delta |= zigzag(v[i] - previous);
		previous = v[i];
	}
	width_for = width_of(bits_for);
	width_delta = width_of(bits_delta);
	mode = width_delta < width_for ? MODE_DELTA : MODE_FOR;
	width = mode == MODE_DELTA ? width_delta : width_for;
	base = mode == MODE_DELTA ? v[0] : min;

	if (mode == MODE_DELTA) {
		for (size_t i = n; i-- > 1;)
			v[i] = zigzag(v[i] - v[i - 1]);
		v[0] = 0;
	} else {
		for (size_t i = 0; i < n; i++)
			v[i] -= min;
	}
	n_bytes = n * width;
	n_padded = (n_bytes + 7) & ~(size_t)7;
	out[0] = (unsigned char)width;
	out[1] = (unsigned char)mode;
	put(out + 2, 0, 2);
	put(out + 4, n_bytes, 4);
	put(out + 8, base, 8);
	pack(out + 16, v, n, width);
	memset(out + 16 + n_bytes, 0, n_padded - n_bytes);
	return out + 16 + n_padded;
}

static uint64_t kind_bit(unsigned kind)
{
	return UINT64_C(1) << (kind < 63 ? kind : 63);
}

/* The head is what a reader goes by when it does not decode: a head that lies
 * about kinds would hide events from the analysis. */
static bool head_is_true(const struct event *ev, size_t n, const struct chunk_info *info)
{
	int64_t t_min_ns = (int64_t)ev[0].tick, t_max_ns = t_min_ns;
	uint64_t kinds = 0;

	for (size_t i = 0; i < n; i++) {
		int64_t t_ns = (int64_t)ev[i].tick;

		kinds |= kind_bit(ev[i].kind);
		t_min_ns = t_ns < t_min_ns ? t_ns : t_min_ns;
		t_max_ns = t_ns > t_max_ns ? t_ns : t_max_ns;
	}
	return kinds == info->kinds && t_min_ns == info->t_min_ns && t_max_ns == info->t_max_ns;
}

size_t chunk_encode(const struct event *ev, size_t n, unsigned char *out)
{
	uint64_t v[CHUNK_MAX_EVENTS], kinds = 0;
	uint64_t t_min = ev[0].tick, t_max = ev[0].tick;
	unsigned char *p = out + CHUNK_HEAD_BYTES;

	assert(n >= 1 && n <= CHUNK_MAX_EVENTS);
	for (size_t i = 0; i < n; i++) {
		kinds |= kind_bit(ev[i].kind);
		t_min = (int64_t)ev[i].tick < (int64_t)t_min ? ev[i].tick : t_min;
		t_max = (int64_t)ev[i].tick > (int64_t)t_max ? ev[i].tick : t_max;
	}
	put(out, CHUNK_MAGIC, 4);
	put(out + 4, CHUNK_VERSION, 2);
	put(out + 6, n, 2);
	put(out + 8, kinds, 8);
	put(out + 16, t_min, 8);
	put(out + 24, t_max, 8);
	for (unsigned c = 0; c < CHUNK_N_COLUMNS; c++) {
		gather(ev, n, c, v);
		p = encode_column(p, v, n);
	}
	return (size_t)(p - out);
}

enum chunk_outcome chunk_peek(const unsigned char *buf, size_t n_bytes, struct chunk_info *ret)
{
	struct chunk_info i;

	if (n_bytes < CHUNK_HEAD_BYTES)
		return CHUNK_TRUNCATED;
	if (get(buf, 4) != CHUNK_MAGIC)
		return CHUNK_BAD_MAGIC;
	if (get(buf + 4, 2) != CHUNK_VERSION)
		return CHUNK_BAD_VERSION;
	i.n_events = (unsigned)get(buf + 6, 2);
	if (i.n_events == 0 || i.n_events > CHUNK_MAX_EVENTS)
		return CHUNK_TOO_MANY;
	i.kinds = get(buf + 8, 8);
	i.t_min_ns = (int64_t)get(buf + 16, 8);
	i.t_max_ns = (int64_t)get(buf + 24, 8);
	if (i.t_min_ns > i.t_max_ns)
		return CHUNK_BAD_COLUMN;
	i.n_bytes = n_bytes;
	*ret = i;
	return CHUNK_OK;
}

/* Exactly what encode_column() writes, or an outcome; *at moves past it. */
static enum chunk_outcome decode_column(const unsigned char *buf, size_t n_bytes, size_t *at,
					size_t n, uint64_t *v)
{
	const unsigned char *p;
	unsigned width, mode;
	uint64_t n_body, base, n_padded;

	if (n_bytes - *at < 16)
		return CHUNK_TRUNCATED;
	p = buf + *at;
	width = p[0];
	mode = p[1];
	n_body = get(p + 4, 4);
	base = get(p + 8, 8);
	if (width > 8 || (width > 4 && width < 8) || mode > MODE_DELTA || get(p + 2, 2) != 0 ||
	    n_body != (uint64_t)n * width)
		return CHUNK_BAD_COLUMN;
	n_padded = (n_body + 7) & ~UINT64_C(7);
	if (n_bytes - *at - 16 < n_padded)
		return CHUNK_TRUNCATED;
	unpack(p + 16, v, n, width);
	if (mode == MODE_DELTA) {
		for (size_t i = 0; i < n; i++) {
			base += unzigzag(v[i]);
			v[i] = base;
		}
	} else {
		for (size_t i = 0; i < n; i++)
			v[i] += base;
	}
	*at += 16 + (size_t)n_padded;
	return CHUNK_OK;
}

enum chunk_outcome chunk_decode(const unsigned char *buf, size_t n_bytes, struct event *out,
				size_t max, size_t *ret_n)
{
	uint64_t v[CHUNK_MAX_EVENTS], limits[CHUNK_N_COLUMNS] = {
		UINT64_MAX, EVENT_N_KINDS - 1, UINT16_MAX, UINT32_MAX,
		UINT32_MAX, UINT32_MAX,        UINT64_MAX,
	};
	size_t at = CHUNK_HEAD_BYTES, n;
	struct chunk_info info;
	enum chunk_outcome r;

	r = chunk_peek(buf, n_bytes, &info);
	if (r != CHUNK_OK)
		return r;
	n = info.n_events;
	if (n > max)
		return CHUNK_TOO_MANY;
	for (unsigned c = 0; c < CHUNK_N_COLUMNS; c++) {
		uint64_t over = 0;

		r = decode_column(buf, n_bytes, &at, n, v);
		if (r != CHUNK_OK)
			return r;
		for (size_t i = 0; i < n; i++)
			over |= v[i] > limits[c];
		if (over)
			return CHUNK_BAD_COLUMN;
		switch (c) {
		case 0:
			for (size_t i = 0; i < n; i++)
				out[i].tick = v[i];
			break;
		case 1:
			for (size_t i = 0; i < n; i++)
				out[i].kind = (uint16_t)v[i];
			break;
		case 2:
			for (size_t i = 0; i < n; i++)
				out[i].flags = (uint16_t)v[i];
			break;
		case 3:
			for (size_t i = 0; i < n; i++)
				out[i].name = (uint32_t)v[i];
			break;
		case 4:
			for (size_t i = 0; i < n; i++)
				out[i].a = v[i] << 32;
			break;
		case 5:
			for (size_t i = 0; i < n; i++)
				out[i].a |= v[i];
			break;
		default:
			for (size_t i = 0; i < n; i++)
				out[i].b = v[i] >> 1 | v[i] << 63;
			break;
		}
	}
	if (at != n_bytes || !head_is_true(out, n, &info))
		return CHUNK_BAD_COLUMN;
	*ret_n = n;
	return CHUNK_OK;
}

const char *chunk_outcome_text(enum chunk_outcome o)
{
	switch (o) {
	case CHUNK_OK:
		return "fine";
	case CHUNK_TRUNCATED:
		return "it ends before its columns do";
	case CHUNK_BAD_MAGIC:
		return "it is not a chunk of events";
	case CHUNK_BAD_VERSION:
		return "its version is not known here";
	case CHUNK_BAD_COLUMN:
		return "a column has a size or a value that no encoder writes";
	case CHUNK_TOO_MANY:
		return "it has no events or too many";
	}
	return "unknown";
}
