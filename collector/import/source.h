/* source.h - the bytes of a file to import, unpacked when they are packed. */
#pragma once

#include "format.h"

#define SOURCE_MAX_BYTES (UINT64_C(32) << 30) /* of a packed file, once unpacked: a file is read in pieces */

struct source {
	void *gz;
	uint64_t n_bytes, n_file_bytes; /* given out; the file's own size */
	char why[200];
	unsigned char head[IMPORT_HEAD_BYTES]; /* given out again from its begin by source_rewind() */
	size_t n_head, head_at;
};

/* False after a sentence in why: not there, no file, no permission. */
bool source_open(struct source *s, const char *path);
void source_close(struct source *s); /* zeroed is fine */
/* The first bytes, which are still given out by source_read(). False: why. */
bool source_head(struct source *s);
/* From the begin again. */
bool source_rewind(struct source *s);
/* A bytes_fn over a struct source. */
ptrdiff_t source_read(void *source, unsigned char *out, size_t n);
/* How much of the file was used, from 0 to 1: for progress. */
double source_share(const struct source *s);
