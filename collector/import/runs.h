/* runs.h - more records than memory has room for, in the order of a key.
 *
 * Records of one size are appended; when the spill has no more memory for them, those
 * that are there are sorted and written as one run. runs_finish() leaves few enough runs
 * to be read at once. Records of one key come in the order in which they were appended.
 *
 *	r = runs_new(spill, sizeof v, key_of_v);
 *	while (…)
 *		fine = runs_append(r, &v);
 *	fine = fine && runs_finish(r) && (reader = runs_read(r));
 *	while ((v = runs_next(reader)))
 *		…
 *	fine = !reader->failed;
 *	runs_read_end(reader);
 *	runs_free(r);
 *
 * One thread at a time uses a runs; several may share a spill. It fails only without
 * memory, or when the spill does: spill_explain() tells which.
 */
#pragma once

#include "spill.h"

struct runs_key {
	uint64_t hi, lo;
};

typedef struct runs_key (*runs_key_fn)(const void *record);

struct runs;

/* key NULL: in the order in which they are appended. */
struct runs *runs_new(struct spill *s, size_t record_bytes, runs_key_fn key);
void runs_free(struct runs *r); /* NULL is fine; not before its readers are ended */
bool runs_append(struct runs *r, const void *record);
/* Ready to be read; most of its memory is given back. More may be appended when nobody
 * reads, and finished again. */
bool runs_finish(struct runs *r);
uint64_t runs_count(const struct runs *r);

struct runs_reader {
	struct runs *runs;
	struct runs_head *heads; /* a heap: the next record's run is the first; owned */
	uint32_t n_heads;
	uint64_t at; /* records given out, of one that is in memory */
	bool started, failed;
};

/* From the begin, of a finished one; several may read it. NULL without memory. */
struct runs_reader *runs_read(struct runs *r);
/* The next record, valid until the next call; NULL at the end or when it failed. */
const void *runs_next(struct runs_reader *in);
void runs_read_end(struct runs_reader *in); /* NULL is fine */
