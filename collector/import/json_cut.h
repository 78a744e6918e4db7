/* json_cut.h - JSON of any size out of a fixed piece of memory: cut into its elements, for
 * a library to read.
 *
 * A file of events is one list: the file itself, or a member of the object that is the
 * file. A library wants a text that is whole and in memory. So each element of that list,
 * and each other member of the object, is handed out as one text that ends where its
 * brackets and quotes do. What is in it is the library's business: it may be no JSON.
 *
 * A text longer than JSON_CUT_BYTES is passed over and handed out as too long. What stands
 * between the texts (commas, colons, keys, the end) is checked here. Deeper nesting than
 * JSON_CUT_DEPTH, an end in the middle and anything behind the end are bad.
 */
#pragma once

#include "format.h"

#define JSON_CUT_BYTES (1u << 20)
#define JSON_CUT_DEPTH 64
#define JSON_CUT_PADDING 64 /* that may be read behind a text; whatever is in there */

enum json_cut_got {
	JSON_CUT_ELEMENT,
	JSON_CUT_MEMBER, /* of the object that is the file: key has its name */
	JSON_CUT_END,
	JSON_CUT_BAD, /* why says what */
};

struct json_cut {
	bytes_fn read;
	void *arg;
	const char *list; /* the member whose elements are wanted */
	unsigned char *buf;
	size_t n, at;	     /* in buf: there, used */
	uint64_t base_bytes; /* of the file, before buf */
	int state;
	bool in_object, has_list;
	bool unclosed; /* at the end: a list that is the file ended without a bracket behind an element or a comma */
	/* the value that is looked at */
	unsigned depth;
	bool in_string, escaped;
	/* what was found, until the next call */
	const char *text;
	size_t n_text; /* 0 = too long */
	uint64_t at_bytes; /* where it begins in the file */
	char key[128];	   /* as it is written: what has an escape in it is not looked for. "" = longer */
	bool failed;
	char why[160];
};

/* list is the caller's. False without memory. */
bool json_cut_init(struct json_cut *c, bytes_fn read, void *arg, const char *list);
void json_cut_fini(struct json_cut *c); /* zeroed is fine */
enum json_cut_got json_cut_next(struct json_cut *c);
/* For users that find something of theirs wrong; always false. */
bool json_cut_fail(struct json_cut *c, const char *why, uint64_t at_bytes);
