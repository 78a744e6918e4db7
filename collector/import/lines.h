/* lines.h - a file as lines of bounded length, out of one piece of memory. */
#pragma once

#include "format.h"

#define LINES_MAX (1u << 18) /* bytes of a line; a longer one is left out and counted */

struct lines {
	bytes_fn read;
	void *arg;
	char *buf; /* LINES_MAX, owned */
	size_t n, at;
	bool ended, failed; /* failed: the file cannot be read on */
	uint64_t n_long;
};

/* False without memory. */
bool lines_open(struct lines *l, bytes_fn read, void *arg);
void lines_close(struct lines *l);
/* The next line without its end, ended by a zero, until the next call; NULL behind the last. */
char *lines_next(struct lines *l, size_t *ret_n);
