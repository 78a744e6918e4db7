/* json_text.h - a JSON value as text, or nothing.
 *
 * json_dumps() of jansson 2.14 passes over a lack of memory inside a key and gives
 * broken text. The size is asked for first, so that nothing grows on the way.
 */
#pragma once

#include <jansson.h>
#include <stdlib.h>

/* The caller's; NULL without memory. */
static inline char *json_text(const json_t *v, size_t flags)
{
	size_t n = v ? json_dumpb(v, NULL, 0, flags) : 0;
	char *text = n ? malloc(n + 1) : NULL;

	if (!text)
		return NULL;
	if (json_dumpb(v, text, n, flags) != n) {
		free(text);
		return NULL;
	}
	text[n] = '\0';
	return text;
}
