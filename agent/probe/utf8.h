/* utf8.h - cut a string without cutting a character. */
#pragma once

#include <stddef.h>

/* The largest length <= n_max that does not end inside a character; n when it
 * fits. Bytes that are not UTF-8 are cut at n_max. */
static inline size_t utf8_cut(const char *s, size_t n, size_t n_max)
{
	size_t at = n_max;

	if (n <= n_max)
		return n;
	while (at > 0 && n_max - at < 4 && ((unsigned char)s[at] & 0xc0) == 0x80)
		at--;
	return ((unsigned char)s[at] & 0xc0) == 0x80 ? n_max : at;
}
