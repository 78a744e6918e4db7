/* span_pairs.h - begins and ends of spans, as some traces have them, put together.
 *
 * A thread's spans are nested: an end closes the newest open begin of its name, and one
 * without a name the newest. What was begun inside of it and has no end, and an end
 * that nothing open goes with, are left out and counted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAIRS_DEPTH 256 /* open begins that an end looks at */

struct pair_mark {
	int64_t at_ns;
	uint32_t lane; /* a thread */
	uint32_t name; /* 0 = none */
	uint32_t tag;  /* the caller's; grows with the place in the file */
	bool ends;
};

struct pair {
	int64_t begin_ns, end_ns;
	uint32_t lane, depth; /* depth: begins that were open around it */
	uint32_t begin_tag, end_tag;
};

struct pair_count {
	size_t n;			     /* pairs */
	uint64_t n_without_end, n_without_begin; /* begins, ends */
};

/* Sorts v by lane and time; ret has room for n / 2. Pairs come in the order of their lanes and
 * ends. False only without memory. */
bool pairs_find(struct pair_mark *v, size_t n, struct pair *ret, struct pair_count *count);
