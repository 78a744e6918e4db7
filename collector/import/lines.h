/* lines.h - the lines of a text of any size, out of a fixed piece of memory. A longer line is
 * cut, and the rest of it skipped; zeros in it become spaces.
 */
#pragma once

#include "format.h"

#define LINES_BYTES 16384 /* of a line, with its end */

struct lines {
	bytes_fn read;
	void *arg;
	unsigned char buf[65536];
	size_t n, at;
	bool failed, ended;
	char text[LINES_BYTES]; /* the line, without its end */
};

void lines_init(struct lines *s, bytes_fn read, void *arg);
/* False at the end, or when it cannot be read (failed). */
bool lines_next(struct lines *s);
