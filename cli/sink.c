#include "sink.h"

/* Bytes of the UTF-8 character that begins there; 0 = none does, or it is a control character. */
static size_t length_of(const unsigned char *p)
{
	static const unsigned char lowest[] = { 0, 0, 0x80, 0xa0, 0x90 }; /* of the second byte, for shortest forms */
	size_t n = p[0] < 0x80 ? 1 : p[0] >= 0xc2 && p[0] < 0xe0 ? 2 : (p[0] & 0xf0) == 0xe0 ? 3 : p[0] >= 0xf0 && p[0] < 0xf5 ? 4 : 0;

	if (n == 1)
		return p[0] >= 0x20 && p[0] != 0x7f;
	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((p[0] == 0xe0 || p[0] == 0xf0) && p[1] < lowest[n])
		return 0;
	if ((p[0] == 0xed && p[1] >= 0xa0) || (p[0] == 0xf4 && p[1] >= 0x90)) /* surrogates, beyond the last */
		return 0;
	if (p[0] == 0xc2 && p[1] < 0xa0) /* C1 */
		return 0;
	return n;
}

const char *sink_clean(const char *text, char *buf, size_t n_buf)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t n_out = 0, n;

	while (*p && (n = length_of(p)) > 0)
		p += n;
	if (!*p && (size_t)(p - (const unsigned char *)text) < n_buf)
		return text;
	for (p = (const unsigned char *)text; *p; p += n ? n : 1) {
		n = length_of(p);
		if (n_out + (n ? n : 1) + 1 > n_buf)
			break;
		if (n == 0)
			buf[n_out++] = '?';
		for (size_t i = 0; i < n; i++)
			buf[n_out++] = (char)p[i];
	}
	buf[n_out] = '\0';
	return buf;
}
