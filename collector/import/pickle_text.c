/* pickle_text.c - a pickle's bytes, and the numbers and texts in them. */
#include "pickle_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool fill(struct machine *m)
{
	ptrdiff_t n;

	if (m->in_at < m->n_in)
		return true;
	n = m->read(m->arg, m->in, sizeof m->in);
	m->in_at = 0;
	m->n_in = n > 0 ? (size_t)n : 0;
	if (n < 0) {
		m->unread = true;
		return false;
	}
	return n > 0 || pickle_fail(m, "is cut off: it ends after %llu bytes", (unsigned long long)m->n_bytes);
}

/* As much of n as is at hand, at least one. */
static bool some(struct machine *m, size_t n, const unsigned char **ret, size_t *ret_n)
{
	if (!fill(m))
		return false;
	*ret = m->in + m->in_at;
	*ret_n = n < m->n_in - m->in_at ? n : m->n_in - m->in_at;
	m->in_at += *ret_n;
	m->n_bytes += *ret_n;
	return m->n_bytes <= m->limits->max_bytes ||
	       pickle_fail(m, "has more than %llu bytes", (unsigned long long)m->limits->max_bytes);
}

bool pickle_bytes(struct machine *m, void *out, size_t n)
{
	const unsigned char *v;
	unsigned char *to = out;
	size_t n_some;

	for (; n > 0; n -= n_some, to += n_some) {
		if (!some(m, n, &v, &n_some))
			return false;
		memcpy(to, v, n_some);
	}
	return true;
}

bool pickle_number(struct machine *m, unsigned n_bytes, uint64_t *ret)
{
	unsigned char v[8];

	*ret = 0;
	if (!pickle_bytes(m, v, n_bytes))
		return false;
	while (n_bytes-- > 0)
		*ret = *ret << 8 | v[n_bytes];
	return true;
}

static bool add(struct machine *m, const unsigned char *v, size_t n)
{
	while (m->n_text_alloc < m->n_text + n + 1)
		if (!pickle_grow(m, &m->text, m->n_text_alloc, &m->n_text_alloc, 1))
			return false;
	memcpy(m->text + m->n_text, v, n);
	m->n_text += n;
	m->text[m->n_text] = '\0';
	return true;
}

static bool too_long(struct machine *m)
{
	return pickle_fail(m, "has a text of more than %u bytes", m->limits->max_text_bytes);
}

bool pickle_text(struct machine *m, uint64_t n)
{
	const unsigned char *v;
	size_t n_some;

	m->n_text = 0;
	if (n > m->limits->max_text_bytes)
		return too_long(m);
	if (!add(m, (const unsigned char *)"", 0))
		return false;
	for (; n > 0; n -= n_some)
		if (!some(m, (size_t)n, &v, &n_some) || !add(m, v, n_some))
			return false;
	return true;
}

bool pickle_line(struct machine *m)
{
	const unsigned char *v, *end;
	size_t n;

	m->n_text = 0;
	for (;;) {
		if (!fill(m))
			return false;
		end = memchr(m->in + m->in_at, '\n', m->n_in - m->in_at);
		if (!some(m, end ? (size_t)(end - m->in) - m->in_at + 1 : sizeof m->in, &v, &n) ||
		    !add(m, v, n))
			return false;
		if (m->n_text > (size_t)m->limits->max_text_bytes + 1)
			return too_long(m);
		if (!end)
			continue;
		m->text[--m->n_text] = '\0';
		return true;
	}
}

const char *pickle_shown(const char *text, size_t n, char out[80])
{
	size_t at = 0;

	for (size_t i = 0; i < n && at < 79; i++)
		out[at++] = text[i] > ' ' && text[i] < 0x7f ? text[i] : '?';
	out[at] = '\0';
	return out;
}

/* ---- text ---- */

/* Of a whole character in UTF-8; 0 when it is none. Nor is a 0 one: texts end with it elsewhere. */
static size_t utf8_length(const unsigned char *s, size_t n)
{
	size_t len = s[0] == 0 ? 0 : s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
	unsigned least = s[0] == 0xe0 ? 0xa0 : s[0] == 0xf0 ? 0x90 : 0x80;
	unsigned most = s[0] == 0xed ? 0x9f : s[0] == 0xf4 ? 0x8f : 0xbf;

	if (len > n || (len > 1 && (s[1] < least || s[1] > most)))
		return 0;
	for (size_t i = 1; i < len; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	return len;
}

static size_t put_utf8(char *out, uint32_t c)
{
	if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		c = 0xfffd;
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 0x3f));
		out[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 0x3f));
	out[2] = (char)(0x80 | (c >> 6 & 0x3f));
	out[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

json_t *pickle_string(const char *text, size_t n)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t at = 0, bad = 0;
	json_t *v;
	char *out;

	while (at < n && utf8_length(s + at, n - at) > 0)
		at += utf8_length(s + at, n - at);
	if (at == n)
		return json_stringn_nocheck(text, n);
	out = malloc(3 * n + 4);
	if (!out)
		return NULL;
	for (size_t i = 0; i < n;) {
		size_t len = utf8_length(s + i, n - i);

		if (len == 0)
			bad += put_utf8(out + bad, 0xfffd);
		else
			memcpy(out + bad, s + i, len);
		bad += len;
		i += len ? len : 1;
	}
	v = json_stringn_nocheck(out, bad);
	free(out);
	return v;
}

json_t *pickle_hex(const char *text, size_t n)
{
	const unsigned char *s = (const unsigned char *)text;
	char *out;
	size_t at = 0;
	json_t *v;

	while (at < n && utf8_length(s + at, n - at) > 0)
		at += utf8_length(s + at, n - at);
	if (at == n)
		return json_stringn_nocheck(text, n);
	out = malloc(2 * n + 1);
	if (!out)
		return NULL;
	for (size_t i = 0; i < n; i++)
		snprintf(out + 2 * i, 3, "%02x", s[i]);
	v = json_stringn_nocheck(out, 2 * n);
	free(out);
	return v;
}

/* A number of that many digits in that base; -1 when there is none. */
static long digits(const char *s, size_t n, size_t n_digits, unsigned base)
{
	static const char known[] = "0123456789abcdef";
	long v = 0;

	if (n < n_digits)
		return -1;
	for (size_t i = 0; i < n_digits; i++) {
		const char *at = s[i] ? strchr(known, s[i] | (s[i] >= 'A' && s[i] <= 'F' ? 0x20 : 0)) : NULL;

		if (!at || at - known >= (long)base)
			return -1;
		v = v * (long)base + (at - known);
	}
	return v;
}

/* Protocol 0: Latin-1 with \uXXXX and \UXXXXXXXX. Room: a Latin-1 character becomes two bytes. */
bool pickle_unescape_unicode(struct machine *m)
{
	char *out = malloc(2 * m->n_text + 4);
	size_t at = 0;

	if (!out) {
		m->no_memory = true;
		return false;
	}
	for (size_t i = 0; i < m->n_text;) {
		size_t left = m->n_text - i, n = 0;
		long c = -1;

		if (m->text[i] == '\\' && left > 1) {
			n = m->text[i + 1] == 'u' ? 4 : m->text[i + 1] == 'U' ? 8 : 0;
			c = n ? digits(m->text + i + 2, left - 2, n, 16) : -1;
		}
		at += put_utf8(out + at, c < 0 ? (unsigned char)m->text[i] : c > 0x10ffff ? 0xfffd : (uint32_t)c);
		i += c < 0 ? 1 : n + 2;
	}
	m->n_text = 0;
	if (!add(m, (const unsigned char *)out, at)) {
		free(out);
		return false;
	}
	free(out);
	return true;
}

/* Protocol 0 of Python 2: as a program would quote it. Never longer than it was. */
bool pickle_unescape_quoted(struct machine *m)
{
	static const char from[] = "\\'\"abfnrtv", to[] = "\\'\"\a\b\f\n\r\t\v";
	size_t n = m->n_text, at = 0;
	char *s = m->text;

	if (n < 2 || (s[0] != '\'' && s[0] != '"') || s[n - 1] != s[0])
		return pickle_fail(m, "has a text without its quotes");
	for (size_t i = 1; i < n - 1;) {
		const char *known = NULL;
		long c = -1;

		if (s[i] == '\\' && i + 2 < n)
			known = s[i + 1] ? strchr(from, s[i + 1]) : NULL;
		if (s[i] == '\\' && i + 2 < n && s[i + 1] == 'x')
			c = digits(s + i + 2, n - 3 - i, 2, 16);
		if (known) {
			s[at++] = to[known - from];
			i += 2;
		} else {
			s[at++] = c < 0 ? s[i] : (char)c;
			i += c < 0 ? 1 : 4;
		}
	}
	m->n_text = at;
	s[at] = '\0';
	return true;
}

/* ---- numbers ---- */

json_t *pickle_digits(const char *text, size_t n)
{
	size_t first = n > 0 && text[0] == '-', n_digits = n - first;
	char copy[32];
	long long v;

	if (n_digits == 0 || n_digits > 620 || strspn(text + first, "0123456789") != n_digits)
		return NULL;
	errno = 0;
	if (n < sizeof copy) {
		memcpy(copy, text, n);
		copy[n] = '\0';
		v = strtoll(copy, NULL, 10);
		if (errno == 0)
			return json_integer(v);
	}
	return json_stringn_nocheck(text, n);
}

json_t *pickle_long(const unsigned char *bytes, size_t n)
{
	bool negative = n > 0 && bytes[n - 1] & 0x80;
	unsigned char v[256] = { 0 };
	char text[640] = "";
	size_t at = sizeof text - 1;
	unsigned carry = negative;

	if (n <= 8) {
		uint64_t u = negative ? UINT64_MAX : 0;

		for (size_t i = n; i-- > 0;)
			u = u << 8 | bytes[i];
		return json_integer((json_int_t)u);
	}
	for (size_t i = 0; i < n; i++) { /* its size */
		carry += negative ? (unsigned)(unsigned char)~bytes[i] : bytes[i];
		v[i] = (unsigned char)carry;
		carry >>= 8;
	}
	do {
		unsigned rest = 0;

		for (size_t i = n; i-- > 0;) {
			rest = rest << 8 | v[i];
			v[i] = (unsigned char)(rest / 10);
			rest %= 10;
		}
		text[--at] = (char)('0' + rest);
		while (n > 0 && v[n - 1] == 0)
			n--;
	} while (n > 0);
	if (negative)
		text[--at] = '-';
	return pickle_digits(text + at, sizeof text - 1 - at);
}
