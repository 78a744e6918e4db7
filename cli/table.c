#include "table.h"
#include "rows.h"
#include "term.h"

struct libscols_table *table_new(FILE *f)
{
	struct libscols_table *t = scols_new_table();

	if (!t)
		return NULL;
	scols_table_enable_colors(t, term_has_color(f));
	scols_table_enable_nowrap(t, 1);
	scols_table_set_stream(t, f);
	return t;
}

void table_column(struct libscols_table *t, const char *name, bool right)
{
	scols_table_new_column(t, name, 0, right ? SCOLS_FL_RIGHT : 0);
}

void table_cell(struct libscols_line *line, size_t i, const char *value)
{
	scols_line_set_data(line, i, value);
}

void table_cell_ns(struct libscols_line *line, size_t i, const json_t *row, const char *key)
{
	char buf[32];

	table_cell(line, i, term_ns(rows_ns(row, key), buf, sizeof buf));
}

void table_put(FILE *f, struct libscols_table *t)
{
	fflush(f);
	scols_print_table(t);
	scols_unref_table(t);
}
