/* nccl_check.h - a file of NCCL read from memory and joined. */
#pragma once

#include "import_check.h"
#include "../../collector/import/nccl.h"

#include <stdio.h>

/* Reads it up to twice, as two files; false when it was refused. */
static bool read_nccl(const struct import_format *f, struct trace *t, unsigned times, const unsigned char *data, size_t n)
{
	struct trace_input in[2] = { { .path = "a.log", .rank = -1, .outcome = "ok" },
				     { .path = "b.log", .rank = -1, .outcome = "ok" } };
	bool fine = true;

	for (unsigned i = 0; i < times && fine; i++) {
		struct bytes b = { data, n, 0 };
		char why[200] = "";
		uint32_t n_rows = t->n_rows;
		enum import_outcome o = f->read(t, &in[i], read_bytes, &b, why, sizeof why);

		CHECK(memchr(why, '\0', sizeof why));
		CHECK(o == IMPORT_OK || why[0]);
		/* What is refused leaves nothing behind. */
		CHECK(o == IMPORT_OK || t->n_rows == n_rows);
		fine = in[i].fine = o == IMPORT_OK;
	}
	CHECK(!t->no_memory);
	if (fine && f->join)
		CHECK(f->join(t, in, times));
	return fine;
}

static inline bool is_row(const struct trace_row *r, const char *table)
{
	return strcmp(r->table, table) == 0;
}
