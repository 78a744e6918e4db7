/* runs_internal.h - a runs from the inside: what is appended, and what is read. */
#pragma once

#include "runs.h"

#define RUNS_READ_BYTES 32768u /* of each run that is read */

struct run {
	uint64_t at_bytes, n; /* in the spill's file; records */
};

struct runs {
	struct spill *spill;
	size_t size;
	runs_key_fn key;
	unsigned char *buffer; /* sorted once finished and in memory */
	size_t n, n_alloc;
	struct runs_key last; /* appended */
	bool sorted;	      /* the buffer is, as it came */
	struct run *v;
	uint32_t n_runs, n_runs_alloc;
	uint64_t n_total;
	bool finished;
};

/* Where n records of that size, one after the other, are in the order of their keys:
 * NULL without memory. */
uint32_t *runs_order(const unsigned char *records, size_t n, size_t size, runs_key_fn key);
/* Of runs [from, to) of one that is not finished. */
struct runs_reader *runs_read_some(struct runs *r, uint32_t from, uint32_t to);
