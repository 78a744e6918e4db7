/* json_walk.h - one text of JSON through simdjson: every value in it, in order.
 *
 * All of it is looked at, so that a text that is no JSON is never taken for one. Numbers
 * are handed out as they are written: what stamps need, no double has.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct json_item {
	const char *key; /* NULL = an element of a list, or the text itself */
	size_t n_key;
	const char *text; /* of strings (without escapes, may have zeros in it), numbers and words */
	size_t n_text;
	unsigned depth; /* lists and objects around it */
	char type;	/* { } [ ], " string, 0 number, t f n */
};

struct json_walk;

struct json_walk *json_walk_new(void); /* NULL without memory */
void json_walk_free(struct json_walk *w);

/* A list or an object; behind it JSON_CUT_PADDING bytes can be read. What take gets of keys and
 * texts stays until the next walk. False when it is no JSON, after some of it was taken. */
bool json_walk(struct json_walk *w, const char *text, size_t n, void (*take)(void *arg, const struct json_item *v),
	       void *arg);

#ifdef __cplusplus
}
#endif
