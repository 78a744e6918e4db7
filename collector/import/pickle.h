/* pickle.h - a Python pickle as plain values, and nothing else of it.
 *
 * A pickle is a program for a small machine, and most of that machine is there to call
 * any function of any module. Ours knows only what makes containers, texts and numbers;
 * at the first operation that names or builds anything else it stops and says what that was.
 *
 * dict: object (keys that are no str: their JSON text); list, tuple, set, frozenset: array;
 * str: string, what is no UTF-8 in it, or 0, replaced; bytes: string, or their hexadecimal digits
 * where they are no such text; int: integer, or its digits as a string beyond 64 bit; float: real, or null
 * where it is not finite.
 *
 * What the pickle shares is shared in the tree, so it is to be read and not to be changed, and a
 * short file may be long to walk: max_unfolded bounds what a walk over all of it meets (a text
 * counts once more each 256 bytes), max_depth how deep it goes. Nothing holds itself.
 */
#pragma once

#include "format.h"

#include <jansson.h>

struct pickle_limits {
	uint64_t max_bytes;	 /* of the pickle */
	uint64_t max_kept_bytes; /* of memory for the tree, about */
	uint64_t max_unfolded;
	uint32_t max_values; /* made */
	uint32_t max_depth;
	uint32_t max_text_bytes; /* of one */
};

extern const struct pickle_limits pickle_limits; /* what is enough for any dump that we know of */

enum pickle_outcome {
	PICKLE_OK,
	PICKLE_REFUSED, /* why: a sentence that goes on from the file's name */
	PICKLE_UNREAD,	/* the source said that it cannot be read; why is the source's */
	PICKLE_NO_MEMORY,
};

/* Reads up to the pickle's end; what follows it is not looked at. On PICKLE_OK *ret is the caller's. */
enum pickle_outcome pickle_load(json_t **ret, bytes_fn read, void *arg, const struct pickle_limits *limits, char *why,
				size_t n_why);
