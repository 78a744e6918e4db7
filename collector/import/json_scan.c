#include "json_scan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOTHING (-1) /* the end, or it cannot be read */

void json_scan_init(struct json_scan *s, bytes_fn read, void *arg)
{
	*s = (struct json_scan){ .read = read, .arg = arg, .expect = EXPECT_VALUE };
}

bool json_scan_fail(struct json_scan *s, const char *why)
{
	if (!s->failed)
		snprintf(s->why, sizeof s->why, "%s, near byte %" PRIu64, why, s->n_bytes - (s->n - s->at));
	s->failed = true;
	return false;
}

static int peek(struct json_scan *s)
{
	if (s->at == s->n) {
		ptrdiff_t n = s->failed ? 0 : s->read(s->arg, s->buf, sizeof s->buf);

		s->at = 0;
		s->n = n > 0 ? (size_t)n : 0;
		s->n_bytes += s->n;
		if (n < 0)
			json_scan_fail(s, "the file cannot be read to its end");
		if (n <= 0)
			return NOTHING;
	}
	return s->buf[s->at];
}

static int take(struct json_scan *s)
{
	int c = peek(s);

	if (c != NOTHING)
		s->at++;
	return c;
}

static int skip_space(struct json_scan *s)
{
	int c;

	while ((c = peek(s)) == ' ' || c == '\t' || c == '\n' || c == '\r')
		s->at++;
	return c;
}

static enum json_token bad(struct json_scan *s, const char *why)
{
	json_scan_fail(s, why);
	return JSON_SCAN_BAD;
}

/* ---- texts ---- */

static void put(struct json_scan *s, int c)
{
	if (s->n_text + 1 < sizeof s->text)
		s->text[s->n_text++] = (char)c;
	else
		s->cut = true;
}

static bool take_hex(struct json_scan *s, uint32_t *ret)
{
	*ret = 0;
	for (int i = 0; i < 4; i++) {
		int c = take(s);

		if (c >= '0' && c <= '9')
			*ret = *ret << 4 | (uint32_t)(c - '0');
		else if ((c | 32) >= 'a' && (c | 32) <= 'f')
			*ret = *ret << 4 | (uint32_t)((c | 32) - 'a' + 10);
		else
			return json_scan_fail(s, "a \\u without four hexadecimal digits");
	}
	return true;
}

static void put_utf8(struct json_scan *s, uint32_t c)
{
	if (c < 0x80) {
		put(s, (int)c);
	} else if (c < 0x800) {
		put(s, (int)(0xc0 | c >> 6));
		put(s, (int)(0x80 | (c & 0x3f)));
	} else if (c < 0x10000) {
		put(s, (int)(0xe0 | c >> 12));
		put(s, (int)(0x80 | (c >> 6 & 0x3f)));
		put(s, (int)(0x80 | (c & 0x3f)));
	} else {
		put(s, (int)(0xf0 | c >> 18));
		put(s, (int)(0x80 | (c >> 12 & 0x3f)));
		put(s, (int)(0x80 | (c >> 6 & 0x3f)));
		put(s, (int)(0x80 | (c & 0x3f)));
	}
}

static bool take_escape(struct json_scan *s)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	int c = take(s);
	const char *at = c > 0 ? strchr(from, c) : NULL;
	uint32_t code, low;

	if (at) {
		put(s, to[at - from]);
		return true;
	}
	if (c != 'u' || !take_hex(s, &code))
		return json_scan_fail(s, "an escape that JSON does not have");
	if (code >= 0xd800 && code < 0xdc00) { /* the first half of a pair */
		if (take(s) != '\\' || take(s) != 'u' || !take_hex(s, &low) || low < 0xdc00 ||
		    low > 0xdfff)
			return json_scan_fail(s, "half a character");
		code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
	} else if (code >= 0xdc00 && code < 0xe000) {
		return json_scan_fail(s, "half a character");
	}
	put_utf8(s, code ? code : 0xfffd); /* texts end with 0 here */
	return true;
}

static bool take_string(struct json_scan *s)
{
	int c;

	s->at++; /* the quote */
	s->n_text = 0;
	s->cut = false;
	while ((c = take(s)) != '"') {
		if (c == NOTHING)
			return json_scan_fail(s, "it ends within a text");
		if (c == '\\') {
			if (!take_escape(s))
				return false;
		} else {
			put(s, c ? c : ' ');
		}
	}
	s->text[s->n_text] = '\0';
	return true;
}

static const char *skip_digits(const char *p)
{
	while (*p >= '0' && *p <= '9')
		p++;
	return p;
}

static bool is_number(const char *p)
{
	const char *from;

	p += *p == '-';
	from = p;
	p = skip_digits(p);
	if (p == from)
		return false;
	if (*p == '.') {
		from = ++p;
		p = skip_digits(p);
		if (p == from)
			return false;
	}
	if ((*p | 32) == 'e') {
		p++;
		p += *p == '-' || *p == '+';
		from = p;
		p = skip_digits(p);
		if (p == from)
			return false;
	}
	return *p == '\0';
}

static enum json_token take_number(struct json_scan *s)
{
	int c;

	s->n_text = 0;
	s->cut = false;
	while ((c = peek(s)) > 0 && strchr("+-.0123456789eE", c)) {
		put(s, c);
		s->at++;
	}
	s->text[s->n_text] = '\0';
	return is_number(s->text) && !s->cut ? JSON_SCAN_NUMBER : bad(s, "a number that is none");
}

static enum json_token take_word(struct json_scan *s)
{
	static const struct {
		const char *word;
		enum json_token token;
	} words[] = { { "true", JSON_SCAN_TRUE }, { "false", JSON_SCAN_FALSE }, { "null", JSON_SCAN_NULL } };
	int c;

	s->n_text = 0;
	while ((c = peek(s)) >= 'a' && c <= 'z' && s->n_text < 8) {
		put(s, c);
		s->at++;
	}
	s->text[s->n_text] = '\0';
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strcmp(s->text, words[i].word) == 0)
			return words[i].token;
	return bad(s, "it is no JSON");
}

/* ---- structure ---- */

static void value_ended(struct json_scan *s)
{
	s->expect = s->depth > 0 ? EXPECT_MORE : EXPECT_NOTHING;
}

static enum json_token open_one(struct json_scan *s, bool object)
{
	s->at++;
	if (s->depth == JSON_SCAN_DEPTH)
		return bad(s, "it is nested too deeply");
	s->in_object[s->depth++] = object;
	s->expect = EXPECT_FIRST;
	return object ? JSON_SCAN_OBJECT : JSON_SCAN_ARRAY;
}

static enum json_token close_one(struct json_scan *s, int c)
{
	bool object = c == '}';

	if (s->depth == 0 || s->in_object[s->depth - 1] != object)
		return bad(s, "a bracket that closes nothing");
	s->at++;
	s->depth--;
	value_ended(s);
	return object ? JSON_SCAN_OBJECT_END : JSON_SCAN_ARRAY_END;
}

static enum json_token take_value(struct json_scan *s, int c)
{
	enum json_token t;

	if (c == '{' || c == '[')
		return open_one(s, c == '{');
	if (c == '"')
		t = take_string(s) ? JSON_SCAN_STRING : JSON_SCAN_BAD;
	else if (c == '-' || (c >= '0' && c <= '9'))
		t = take_number(s);
	else
		t = take_word(s);
	value_ended(s);
	return t;
}

static enum json_token take_key(struct json_scan *s, int c)
{
	if (c != '"' || !take_string(s))
		return bad(s, "a key is expected");
	if (skip_space(s) != ':')
		return bad(s, "a colon is expected");
	s->at++;
	s->expect = EXPECT_VALUE;
	return JSON_SCAN_KEY;
}

enum json_token json_scan_next(struct json_scan *s)
{
	int c = skip_space(s);

	if (s->failed)
		return JSON_SCAN_BAD;
	if (s->expect == EXPECT_NOTHING)
		return c == NOTHING ? JSON_SCAN_END : bad(s, "something follows behind its end");
	if (c == NOTHING)
		return bad(s, "it ends too early");
	if (s->expect == EXPECT_MORE || s->expect == EXPECT_FIRST) {
		if (c == '}' || c == ']')
			return close_one(s, c);
		if (s->expect == EXPECT_MORE) {
			if (c != ',')
				return bad(s, "a comma is expected");
			s->at++;
			c = skip_space(s);
		}
		if (s->in_object[s->depth - 1])
			return take_key(s, c);
	}
	return take_value(s, c);
}

bool json_scan_skip(struct json_scan *s, enum json_token t)
{
	unsigned depth = s->depth - 1;

	if (t == JSON_SCAN_BAD)
		return false;
	if (t != JSON_SCAN_OBJECT && t != JSON_SCAN_ARRAY)
		return true;
	while (s->depth > depth)
		if (json_scan_next(s) == JSON_SCAN_BAD)
			return false;
	return true;
}

/* ---- numbers ---- */

#define MAX_DIGITS 40

/* Its digits without the point, and how many of them lie behind it. */
static bool split(const char *text, bool *ret_negative, char digits[MAX_DIGITS + 1], long *ret_behind)
{
	size_t n = 0;
	bool any = false, point = false;

	*ret_behind = 0;
	*ret_negative = *text == '-';
	text += *ret_negative;
	for (; (*text >= '0' && *text <= '9') || (*text == '.' && !point); text++) {
		if (*text == '.') {
			point = true;
			continue;
		}
		any = true;
		if (n == MAX_DIGITS) {
			if (!point)
				return false;
			continue; /* far behind what can matter */
		}
		if (n == 0 && *text == '0' && !point)
			continue;
		digits[n++] = *text;
		*ret_behind += point;
	}
	digits[n] = '\0';
	if (any && (*text | 32) == 'e') {
		char *end;
		long exponent = strtol(text + 1, &end, 10);

		if (end == text + 1 || exponent > 400 || exponent < -400)
			return false;
		*ret_behind -= exponent;
		text = end;
	}
	return any && *text == '\0';
}

bool json_scan_integer(const char *text, int power, int64_t *ret)
{
	char digits[MAX_DIGITS + 1];
	bool negative;
	int64_t v = 0;
	long behind, n, keep;

	if (!split(text, &negative, digits, &behind))
		return false;
	n = (long)strlen(digits);
	keep = n - behind + power; /* digits in front of the point afterwards */
	for (long i = 0; i < keep && n > 0; i++) {
		int d = i < n ? digits[i] - '0' : 0;

		if (v > (INT64_MAX - d) / 10)
			return false;
		v = v * 10 + d;
	}
	if (keep >= 0 && keep < n && digits[keep] >= '5' && v < INT64_MAX)
		v++;
	*ret = negative ? -v : v;
	return true;
}
