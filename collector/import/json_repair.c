#include "json_repair.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#define MARK "\xef\xbf\xbd" /* U+FFFD */

struct repair {
	const unsigned char *at, *end;
	char *out;
};

static void put(struct repair *r, const char *text)
{
	size_t n = strlen(text);

	memcpy(r->out, text, n);
	r->out += n;
}

/* Bytes of the character at p; 0 when it is none. */
static size_t utf8_length(const unsigned char *p, const unsigned char *end)
{
	size_t n = *p < 0x80 ? 1 : *p >= 0xc2 && *p < 0xe0 ? 2 : (*p & 0xf0) == 0xe0 ? 3 : *p >= 0xf0 && *p < 0xf5 ? 4 : 0;

	if (n > (size_t)(end - p))
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f) || (*p == 0xf0 && p[1] < 0x90) ||
	    (*p == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}

/* The code of \uXXXX at p; below 0 when it is none. */
static int32_t escaped_code(const unsigned char *p, const unsigned char *end)
{
	int32_t code = 0;

	if (end - p < 6 || p[0] != '\\' || p[1] != 'u')
		return -1;
	for (int i = 2; i < 6; i++) {
		int c = p[i] | 32;

		if (p[i] >= '0' && p[i] <= '9')
			code = code << 4 | (p[i] - '0');
		else if (c >= 'a' && c <= 'f')
			code = code << 4 | (c - 'a' + 10);
		else
			return -1;
	}
	return code;
}

static void take_some(struct repair *r, size_t n)
{
	memcpy(r->out, r->at, n);
	r->out += n;
	r->at += n;
}

static void take_escape(struct repair *r)
{
	int32_t code = escaped_code(r->at, r->end), low;

	if (code < 0) {
		if (r->end - r->at > 1 && r->at[1] && strchr("\"\\/bfnrt", r->at[1])) {
			take_some(r, 2);
		} else {
			put(r, "\\\\");
			r->at++;
		}
		return;
	}
	if (code < 0xd800 || code > 0xdfff) {
		take_some(r, 6);
		return;
	}
	low = code < 0xdc00 ? escaped_code(r->at + 6, r->end) : -1;
	if (low >= 0xdc00 && low <= 0xdfff) {
		take_some(r, 12);
		return;
	}
	put(r, "\\ufffd");
	r->at += 6;
}

/* From behind the quote to behind the other. */
static void take_string(struct repair *r)
{
	while (r->at < r->end && *r->at != '"') {
		size_t n = utf8_length(r->at, r->end);

		if (*r->at == '\\') {
			take_escape(r);
		} else if (n == 0) {
			put(r, MARK);
			r->at++;
		} else if (*r->at < ' ') {
			put(r, " ");
			r->at++;
		} else {
			take_some(r, n);
		}
	}
	if (r->at < r->end)
		take_some(r, 1);
}

/* What C, Python and JavaScript write for numbers that are none. */
static bool take_no_number(struct repair *r)
{
	static const char *const words[] = { "-infinity", "infinity", "-nan", "nan", "-inf", "inf" };

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		size_t n = strlen(words[i]);

		if ((size_t)(r->end - r->at) < n || strncasecmp((const char *)r->at, words[i], n) != 0)
			continue;
		put(r, "null");
		r->at += n;
		return true;
	}
	return false;
}

size_t json_repair(const char *text, size_t n, char *out)
{
	struct repair r = { (const unsigned char *)text, (const unsigned char *)text + n, out };

	while (r.at < r.end) {
		bool quote = *r.at == '"';

		if (!quote && take_no_number(&r))
			continue;
		take_some(&r, 1);
		if (quote)
			take_string(&r);
	}
	return (size_t)(r.out - out);
}
