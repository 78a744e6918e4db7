#include "table.h"
#include "rows.h"
#include "term.h"

#include <string.h>

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

const char *table_name(const char *name, char buf[TABLE_NAME + 4])
{
	size_t n = name ? strlen(name) : 0, head = TABLE_NAME / 2, tail = TABLE_NAME - head;

	if (n <= TABLE_NAME)
		return name ? name : "";
	while (head > 0 && ((unsigned char)name[head] & 0xc0) == 0x80) /* whole characters */
		head--;
	while (tail > 0 && ((unsigned char)name[n - tail] & 0xc0) == 0x80)
		tail--;
	snprintf(buf, TABLE_NAME + 4, "%.*s...%s", (int)head, name, name + n - tail);
	return buf;
}

void table_cell_name(struct libscols_line *line, size_t i, const char *name)
{
	char cut[TABLE_NAME + 4];

	table_cell(line, i, table_name(name, cut));
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
