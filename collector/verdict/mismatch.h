/* mismatch.h - the camps of a call that differs; mismatch.c finds them, mismatch_tell.c words them. */
#pragma once

#include "rules.h"

#define MISMATCH_MAX_SWAP 8

struct camps {
	const struct page *page;
	uint64_t call;
	struct shape major, minor;
	uint32_t n_major, n_minor, n_unknown, n_camps;
	uint32_t major_seat, minor_seat; /* one of each */
	bool equal;   /* two camps of one size */
	bool by_habit; /* told apart by the pattern */
};

/* The class, and how sure it is. */
const char *mismatch_kind(const struct camps *c, enum fact_confidence *sure);
/* The roster's text + 1 of work that the smaller camp left out; 0 = none. */
uint32_t mismatch_skipped(const struct rules *r, uint32_t group, const struct camps *c);
/* 0 or -ENOMEM. */
int mismatch_tell(struct rules *r, uint32_t group, const struct camps *c);
