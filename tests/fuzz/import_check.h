/* import_check.h - bytes in memory as the file of an importer, and what must hold of
 * whatever it gives. */
#pragma once

#include "../../collector/import/trace.h"
#include "../../collector/import/trace_events.h"

#include <stdlib.h>
#include <string.h>

#define CHECK(claim)             \
	do {                     \
		if (!(claim))    \
			abort(); \
	} while (0)

struct bytes {
	const unsigned char *v;
	size_t n, at;
};

static ptrdiff_t read_bytes(void *arg, unsigned char *out, size_t n)
{
	struct bytes *b = arg;

	n = n < b->n - b->at ? n : b->n - b->at;
	memcpy(out, b->v + b->at, n);
	b->at += n;
	return (ptrdiff_t)n;
}

/* Of a rank: known kinds, names that are there, in order of time, what ends had begun. */
static inline void check_rank(struct trace *t, struct trace_rank *r, unsigned ring)
{
	struct runs_reader *in = trace_read(t, r, ring);
	const struct event *ev;
	uint64_t last = 0;
	int64_t n_open = 0;

	CHECK(in);
	while ((ev = runs_next(in))) {
		CHECK(event_kind_is_known(ev->kind) && ev->name <= r->n_names);
		CHECK(ev->tick < UINT64_C(1) << 61 && ev->tick >= last);
		last = ev->tick;
		n_open += ev->kind == EVENT_KERNEL_BEGIN || ev->kind == EVENT_COLL_BEGIN;
		n_open -= ev->kind == EVENT_KERNEL_END || ev->kind == EVENT_COLL_END;
		CHECK(n_open >= 0);
	}
	CHECK(n_open == 0 && trace_read_end(t, in));
}

static inline void check_trace(struct trace *t)
{
	for (uint32_t i = 0; i < t->n_ranks; i++) {
		CHECK(t->ranks[i].rank >= 0 && t->ranks[i].rank < FACT_MAX_RANKS);
		CHECK(trace_sort(t, &t->ranks[i]));
		for (unsigned ring = 0; ring < TRACE_RINGS; ring++)
			check_rank(t, &t->ranks[i], ring);
		for (uint32_t k = 0; k < i; k++)
			CHECK(t->ranks[i].rank != t->ranks[k].rank);
	}
	for (uint32_t i = 0; i < t->n_groups; i++)
		CHECK(t->groups[i].n_ranks > 0);
}
