/* source.h - the bytes of a file to import, unpacked when they are packed. */
#pragma once

#include "json_scan.h"

#define SOURCE_MAX_BYTES (UINT64_C(8) << 30) /* unpacked; a file is read once, in pieces */

struct source {
	void *gz;
	uint64_t n_bytes, n_file_bytes; /* given out; the file's own size */
	char why[200];
};

/* False after a sentence in why: not there, no file, no permission. */
bool source_open(struct source *s, const char *path);
void source_close(struct source *s); /* zeroed is fine */
/* A json_read_fn over a struct source. */
ptrdiff_t source_read(void *source, unsigned char *out, size_t n);
/* How much of the file was used, from 0 to 1: for progress. */
double source_share(const struct source *s);
