#include "json_cut.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define READ_BYTES (1u << 18)
#define NOTHING (-1) /* the end, or it cannot be read */

enum { AT_BEGIN, AT_ELEMENT, BEHIND_ELEMENT, AT_KEY, BEHIND_MEMBER, AT_END, IS_DONE };

bool json_cut_init(struct json_cut *c, bytes_fn read, void *arg, const char *list)
{
	*c = (struct json_cut){ .read = read, .arg = arg, .list = list };
	c->buf = malloc(JSON_CUT_BYTES + READ_BYTES + JSON_CUT_PADDING);
	return c->buf != NULL;
}

void json_cut_fini(struct json_cut *c)
{
	free(c->buf);
	c->buf = NULL;
}

bool json_cut_fail(struct json_cut *c, const char *why, uint64_t at_bytes)
{
	if (!c->failed)
		snprintf(c->why, sizeof c->why, "%s, near byte %" PRIu64, why, at_bytes);
	c->failed = true;
	return false;
}

static bool bad(struct json_cut *c, const char *why)
{
	return json_cut_fail(c, why, c->base_bytes + c->at);
}

/* More bytes behind those from *from on, which move to the begin. False at the end. */
static bool more(struct json_cut *c, size_t *from)
{
	ptrdiff_t n;

	memmove(c->buf, c->buf + *from, c->n - *from);
	c->base_bytes += *from;
	c->n -= *from;
	c->at -= *from;
	*from = 0;
	n = c->failed ? 0 : c->read(c->arg, c->buf + c->n, READ_BYTES);
	if (n < 0)
		bad(c, "the file cannot be read to its end");
	if (n <= 0)
		return false;
	c->n += (size_t)n;
	memset(c->buf + c->n, 0, JSON_CUT_PADDING);
	return true;
}

static int skip_space(struct json_cut *c)
{
	for (;;) {
		for (; c->at < c->n; c->at++) {
			int b = c->buf[c->at];

			if (b != ' ' && b != '\n' && b != '\r' && b != '\t')
				return b;
		}
		if (!more(c, &c->at))
			return NOTHING;
	}
}

/* ---- where a value ends ---- */

static bool is_scalar(unsigned char b)
{
	return (b >= '0' && b <= '9') || (b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z') || b == '-' || b == '+' ||
	       b == '.' || b == '#';
}

/* Bits of the 64 bytes at p: which are b. */
static uint64_t bits_of(const unsigned char *p, unsigned char b)
{
	uint64_t bits = 0;

#ifdef __SSE2__
	for (int i = 0; i < 4; i++) {
		const __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(p + 16 * i));

		bits |= (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(v, _mm_set1_epi8((char)b))) << 16 * i;
	}
#else
	for (int i = 0; i < 64; i++)
		bits |= (uint64_t)(p[i] == b) << i;
#endif
	return bits;
}

/* Bytes behind a backslash that is not behind one itself. */
static uint64_t escaped_of(struct json_cut *c, uint64_t backslashes, unsigned n)
{
	uint64_t escaped = 0;

	if (!backslashes && !c->escaped)
		return 0;
	for (unsigned i = 0; i < n; i++) {
		uint64_t bit = UINT64_C(1) << i;

		if (c->escaped) {
			escaped |= bit;
			c->escaped = false;
		} else {
			c->escaped = (backslashes & bit) != 0;
		}
	}
	return escaped;
}

/* Bytes from a quote, which is within, to the next, which is not. */
static uint64_t strings_of(struct json_cut *c, uint64_t quotes, unsigned n)
{
	for (unsigned i = 1; i < 64; i *= 2)
		quotes ^= quotes << i;
	quotes ^= c->in_string ? ~UINT64_C(0) : 0;
	c->in_string = quotes >> (n - 1) & 1;
	return quotes;
}

/* Brackets outside of texts, 64 bytes at a time. A backslash outside of a text escapes, too: that is
 * no JSON either way. True: the value ended behind one of them, or it is bad. False: more bytes are
 * needed. */
static bool scan_brackets(struct json_cut *c)
{
	while (c->at < c->n) {
		const unsigned char *p = c->buf + c->at;
		unsigned n = c->n - c->at < 64 ? (unsigned)(c->n - c->at) : 64;
		uint64_t there = ~UINT64_C(0) >> (64 - n), escaped = escaped_of(c, bits_of(p, '\\'), n);
		uint64_t outside = there & ~strings_of(c, bits_of(p, '"') & ~escaped & there, n) & ~escaped;
		uint64_t opens = (bits_of(p, '{') | bits_of(p, '[')) & outside;
		uint64_t both = opens | ((bits_of(p, '}') | bits_of(p, ']')) & outside);

		for (; both; both &= both - 1) {
			unsigned i = (unsigned)__builtin_ctzll(both);

			if (opens >> i & 1) {
				if (++c->depth <= JSON_CUT_DEPTH)
					continue;
				bad(c, "it is nested too deeply");
				return true;
			}
			if (--c->depth == 0) {
				c->at += i + 1;
				return true;
			}
		}
		c->at += n;
	}
	return false;
}

/* To the end of a text, or of what is there. */
static bool scan_string(struct json_cut *c)
{
	while (c->at < c->n) {
		unsigned char b = c->buf[c->at++];

		if (c->escaped)
			c->escaped = false;
		else if (b == '\\')
			c->escaped = true;
		else if (b == '"')
			return true;
	}
	return false;
}

static bool scan(struct json_cut *c, unsigned char first)
{
	if (first == '{' || first == '[')
		return scan_brackets(c);
	if (first == '"')
		return scan_string(c);
	while (c->at < c->n && is_scalar(c->buf[c->at]))
		c->at++;
	return c->at < c->n;
}

/* The value that begins at c->at. */
static bool take_value(struct json_cut *c)
{
	size_t from = c->at;
	unsigned char first = c->buf[from];
	bool too_long = false;

	c->at_bytes = c->base_bytes + from;
	c->depth = first == '{' || first == '[';
	c->in_string = first == '"';
	c->escaped = false;
	if (!c->depth && !c->in_string && !is_scalar(first))
		return bad(c, "a value is expected");
	c->at++;
	while (!scan(c, first)) {
		if (c->n - from >= JSON_CUT_BYTES) {
			too_long = true;
			from = c->n;
		}
		if (more(c, &from))
			continue;
		if (!c->depth && !c->in_string && !c->failed)
			break; /* a number may end with the file */
		return bad(c, c->in_string ? "it ends within a text" : "it ends too early");
	}
	too_long |= c->at - from > JSON_CUT_BYTES;
	c->text = (const char *)c->buf + from;
	c->n_text = too_long ? 0 : c->at - from;
	return !c->failed;
}

/* ---- what is between them ---- */

static bool take_begin(struct json_cut *c)
{
	int b = skip_space(c);

	if (b != '{' && b != '[')
		return bad(c, b == NOTHING ? "it ends too early" : "it is neither a list nor an object");
	c->at++;
	c->in_object = b == '{';
	c->has_list = b == '[';
	b = skip_space(c);
	c->state = c->in_object ? AT_KEY : AT_ELEMENT;
	if (b == (c->in_object ? '}' : ']')) {
		c->at++;
		c->state = AT_END;
	}
	return true;
}

static bool take_key(struct json_cut *c)
{
	if (skip_space(c) != '"' || !take_value(c))
		return bad(c, "a key is expected");
	c->key[0] = '\0';
	if (c->n_text > 0 && c->n_text - 2 < sizeof c->key)
		snprintf(c->key, sizeof c->key, "%.*s", (int)(c->n_text - 2), c->text + 1);
	if (skip_space(c) != ':')
		return bad(c, "a colon is expected");
	c->at++;
	return true;
}

/* True: a member that is not the list was taken. */
static bool take_member(struct json_cut *c)
{
	int b;

	if (!take_key(c))
		return false;
	b = skip_space(c);
	if (b == NOTHING)
		return bad(c, "it ends too early");
	c->state = BEHIND_MEMBER;
	if (b != '[' || strcmp(c->key, c->list) != 0)
		return take_value(c);
	if (c->has_list)
		return bad(c, "it has two lists of events");
	c->has_list = true;
	c->at++;
	if (skip_space(c) == ']')
		c->at++;
	else
		c->state = AT_ELEMENT;
	return false;
}

/* A comma and what it is followed by, or the end of the list or of the object. */
static bool take_comma(struct json_cut *c, int next, int close, int closed)
{
	int b = skip_space(c);

	if (b != ',' && b != close)
		return bad(c, b == NOTHING ? "it ends too early" : "a comma is expected");
	c->at++;
	c->state = b == ',' ? next : closed;
	return true;
}

/* A list that is the file may end without its bracket: writers that are stopped leave it so. */
static bool is_unclosed(struct json_cut *c)
{
	if (c->in_object || skip_space(c) != NOTHING || c->failed)
		return false;
	c->unclosed = true;
	c->state = IS_DONE;
	return true;
}

enum json_cut_got json_cut_next(struct json_cut *c)
{
	while (!c->failed) {
		switch (c->state) {
		case AT_BEGIN:
			(void)take_begin(c);
			break;
		case AT_ELEMENT:
			if (is_unclosed(c))
				break;
			c->state = BEHIND_ELEMENT;
			if (skip_space(c) == NOTHING)
				bad(c, "it ends too early");
			else if (take_value(c))
				return JSON_CUT_ELEMENT;
			break;
		case BEHIND_ELEMENT:
			if (!is_unclosed(c))
				(void)take_comma(c, AT_ELEMENT, ']', c->in_object ? BEHIND_MEMBER : AT_END);
			break;
		case AT_KEY:
			if (take_member(c))
				return JSON_CUT_MEMBER;
			break;
		case BEHIND_MEMBER:
			(void)take_comma(c, AT_KEY, '}', AT_END);
			break;
		case AT_END:
			if (skip_space(c) != NOTHING)
				bad(c, "something follows behind its end");
			c->state = IS_DONE;
			break;
		default:
			return JSON_CUT_END;
		}
	}
	return JSON_CUT_BAD;
}
