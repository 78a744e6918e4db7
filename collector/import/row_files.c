#include "row_files.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int64_t row_file_mark(const char *path)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

	for (; *path; path++)
		h = (h ^ (unsigned char)*path) * UINT64_C(0x100000001b3);
	return (int64_t)(h & INT64_MAX);
}

int64_t row_integer(const struct trace_row *r, uint32_t column)
{
	return column < r->n_values && trace_type(r, column) == 'i' ? r->values[column].integer : TRACE_NULL;
}

double row_real(const struct trace_row *r, uint32_t column)
{
	return column < r->n_values && trace_type(r, column) == 'r' ? r->values[column].real : NAN;
}

static bool is_of(const struct trace_row *r, const char *const *tables)
{
	for (; *tables; tables++)
		if (strcmp(r->table, *tables) == 0)
			return true;
	return false;
}

bool row_files_number(struct trace *t, const char *table, const char *const *others)
{
	uint32_t n = 0, last = 0;
	int64_t *marks;

	for (uint32_t i = 0; i < t->n_rows; i++)
		n += strcmp(t->rows[i].table, table) == 0;
	if (n == 0)
		return true;
	marks = calloc(n, sizeof *marks);
	t->no_memory |= !marks;
	if (!marks)
		return false;
	n = 0;
	for (uint32_t i = 0; i < t->n_rows; i++)
		if (strcmp(t->rows[i].table, table) == 0)
			marks[n++] = row_integer(&t->rows[i], 0);
	for (uint32_t i = 0; i < t->n_rows; i++) {
		struct trace_row *r = &t->rows[i];

		if (strcmp(r->table, table) != 0 && !is_of(r, others))
			continue;
		/* A file's rows are one behind the other. */
		if (marks[last] != row_integer(r, 0))
			for (last = 0; last + 1 < n && marks[last] != row_integer(r, 0);)
				last++;
		r->values[0].integer = last;
	}
	free(marks);
	return true;
}

void row_files_drop(struct trace *t, const char *const *tables, int64_t mark)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->n_rows; i++) {
		struct trace_row *r = &t->rows[i];

		if (is_of(r, tables) && row_integer(r, 0) == mark)
			trace_drop_row(t, r);
		else
			t->rows[n++] = *r;
	}
	t->n_rows = n;
}
