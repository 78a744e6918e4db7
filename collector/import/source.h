/* source.h - the bytes of a file to import, or of a member of an archive, unpacked when they
 * are packed. */
#pragma once

#include "format.h"

/* What is packed may unpack to this much, and so many times its own size. */
#define SOURCE_FREE_BYTES (UINT64_C(256) << 20)
#define SOURCE_GROWTH 200

struct unpack;

struct source {
	int fd;
	bool borrowed;	  /* fd: of an archive's members */
	uint64_t at, end; /* in the file: what grows meanwhile is read as it was */
	struct unpack *unpack; /* NULL: not packed */
	uint64_t n_bytes, n_file_bytes; /* given out; the file's own size */
	char why[200];
	unsigned char head[IMPORT_HEAD_BYTES]; /* given out again from its begin by source_rewind() */
	size_t n_head, head_at;
};

/* False after a sentence in why: not there, no file, no permission. */
bool source_open(struct source *s, const char *path);
/* The same, of a member too. */
bool source_open_input(struct source *s, const struct trace_input *in);
void source_close(struct source *s); /* after either, whatever it returned */
/* The first bytes, which are still given out by source_read(). False: why. */
bool source_head(struct source *s);
/* From the begin again. */
bool source_rewind(struct source *s);
/* A bytes_fn over a struct source. */
ptrdiff_t source_read(void *source, unsigned char *out, size_t n);
/* How much of the file was used, from 0 to 1: for progress. */
double source_share(const struct source *s);
