/* json_scan.h - JSON of any size out of a fixed piece of memory: one token after the
 * other, of a file that somebody else wrote.
 *
 * Nothing is kept of what was read but the text of the last key, string or number.
 * A longer text than fits is cut, and says so; deeper nesting, an end in the middle
 * or anything that is no JSON ends the scan with a sentence.
 */
#pragma once

#include "format.h"

#define JSON_SCAN_DEPTH 64
#define JSON_SCAN_TEXT 8192 /* bytes of a text, with its end; the rest is cut */

enum json_token {
	JSON_SCAN_END, /* of the value, and nothing behind it */
	JSON_SCAN_OBJECT,
	JSON_SCAN_OBJECT_END,
	JSON_SCAN_ARRAY,
	JSON_SCAN_ARRAY_END,
	JSON_SCAN_KEY,
	JSON_SCAN_STRING,
	JSON_SCAN_NUMBER, /* text has its digits: nothing is rounded here */
	JSON_SCAN_TRUE,
	JSON_SCAN_FALSE,
	JSON_SCAN_NULL,
	JSON_SCAN_BAD, /* why says what */
};

struct json_scan {
	bytes_fn read;
	void *arg;
	unsigned char buf[65536];
	size_t n, at;
	uint64_t n_bytes; /* read so far */
	unsigned depth;
	bool in_object[JSON_SCAN_DEPTH];
	enum { EXPECT_VALUE, EXPECT_FIRST, EXPECT_MORE, EXPECT_NOTHING } expect;
	char text[JSON_SCAN_TEXT];
	size_t n_text;
	bool cut; /* text is not all of it */
	bool failed;
	char why[160];
};

void json_scan_init(struct json_scan *s, bytes_fn read, void *arg);
enum json_token json_scan_next(struct json_scan *s);
/* The value that begins with t, to its end: returns false when the scan is bad. */
bool json_scan_skip(struct json_scan *s, enum json_token t);
/* For users that find something of theirs wrong; always false. */
bool json_scan_fail(struct json_scan *s, const char *why);

/* A decimal number times 10^power as an integer, rounded half away from zero: exact,
 * where a double would not be. False when it is no number or does not fit. */
bool json_scan_integer(const char *text, int power, int64_t *ret);
