/* format.h - what a format of somebody else's has to offer to be imported: how it is
 * known by its first bytes, and how it is read.
 *
 * A reader gets bytes from a function, so that tests and fuzzers can give it any. Those
 * bytes are a stranger's: it keeps no more of them than it has limits for.
 */
#pragma once

#include "trace.h"

#define IMPORT_HEAD_BYTES 65536

/* Up to n bytes into out: how many, 0 at the end, below 0 when it cannot be read (why is
 * the source's then). */
typedef ptrdiff_t (*bytes_fn)(void *arg, unsigned char *out, size_t n);

struct import_head {
	const unsigned char *bytes; /* unpacked, from the begin of the file; may have zeros in it */
	size_t n_bytes;
	const char *name; /* of the file, without its folder */
};

enum import_outcome {
	IMPORT_OK,
	IMPORT_FAILED,	/* it is of this format, but why (a sentence that goes on from the file's name) */
	IMPORT_UNKNOWN, /* it only looked like it: the next format is asked */
};

struct import_format {
	const char *name; /* as people know it; goes into the table of outcomes */
	/* Cheap, and never sure of more than the first bytes. */
	bool (*is)(const struct import_head *head);
	/* in has path; it gets rank and n_events, and format where a reader knows better. On
	 * IMPORT_OK, why may have a remark. Without memory t->no_memory is set, whatever
	 * comes back. */
	enum import_outcome (*read)(struct trace *t, struct trace_input *in, bytes_fn read, void *arg, char *why,
				    size_t n_why);
	/* After all files: what they have in common. May be NULL. False only without memory. */
	bool (*join)(struct trace *t, struct trace_input *inputs, uint32_t n_inputs);
	/* read() never looks at what t has of other files: several are read at once, each into a
	 * trace of its own, which trace_merge() puts in order. */
	bool apart;
	/* is() only says that it may be: reading it tells. */
	bool any;
	/* Of a whole file, spaces behind it left out unless it is one; 0: the reader tells. */
	char last;
	/* Of a log: lines of another such format may stand between its own. */
	bool lines;
};

/* Every format, in the order in which they are asked. The last is NULL. */
extern const struct import_format *const import_formats[];

/* Does text occur in the head? */
bool head_has(const struct import_head *h, const char *text);
/* The first byte that is no space; -1 when there is none. */
int head_first(const struct import_head *h);
