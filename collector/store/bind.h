/* bind.h - rows into prepared statements, parameter after parameter. Writer thread. */
#pragma once

#include "internal.h"

#include <assert.h>

/* A statement being bound from its first parameter on. */
struct bind {
	sqlite3_stmt *q;
	int at;
};

static inline void bind_int(struct bind *b, int64_t v)
{
	sqlite3_bind_int64(b->q, ++b->at, v);
}
static inline void bind_u64(struct bind *b, uint64_t v)
{
	sqlite3_bind_int64(b->q, ++b->at, (int64_t)v);
}
static inline void bind_int_unless(struct bind *b, int64_t v, int64_t unknown)
{
	if (v == unknown)
		sqlite3_bind_null(b->q, ++b->at);
	else
		sqlite3_bind_int64(b->q, ++b->at, v);
}
static inline void bind_ns(struct bind *b, int64_t ns)
{
	bind_int_unless(b, ns, FACT_NONE);
}
static inline void bind_real(struct bind *b, double v)
{
	sqlite3_bind_double(b->q, ++b->at, v); /* NaN becomes NULL */
}
/* Texts and blobs outlive the step: SQLite copies nothing. */
static inline void bind_text(struct bind *b, const char *v)
{
	sqlite3_bind_text(b->q, ++b->at, v ? v : "", -1, SQLITE_STATIC);
}
static inline void bind_blob(struct bind *b, const void *v, size_t n)
{
	sqlite3_bind_blob(b->q, ++b->at, v, (int)n, SQLITE_STATIC);
}

static inline int run(struct store *s, const struct bind *b)
{
	int rc;

	assert(b->at == sqlite3_bind_parameter_count(b->q));
	rc = sqlite3_step(b->q);
	rc = store_outcome_of(s->db, rc);
	sqlite3_reset(b->q);
	return rc;
}
