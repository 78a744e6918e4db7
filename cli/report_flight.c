#include "report_flight.h"
#include "rows.h"
#include "table.h"
#include "term.h"

#include "sql.h"

#define MAX_ROWS 32 /* that people read */

json_t *report_flight(struct db *d)
{
	json_t *groups = rows_all(d, sql_report_flight_groups), *pending = rows_all(d, sql_report_flight_pending);
	json_t *last = rows_all(d, sql_report_flight_last);
	json_t *v = groups && pending && last
			    ? json_pack("{s:O, s:O, s:O}", "groups", groups, "pending", pending, "last", last)
			    : NULL;

	json_decref(groups);
	json_decref(pending);
	json_decref(last);
	return v;
}

static void cell(struct libscols_line *line, size_t i, const json_t *row, const char *key)
{
	const json_t *v = json_object_get(row, key);
	char buf[32] = "-";

	if (json_is_integer(v))
		snprintf(buf, sizeof buf, "%lld", (long long)json_integer_value(v));
	table_cell(line, i, json_is_string(v) ? json_string_value(v) : buf);
}

static void put_row(struct libscols_table *t, const json_t *row, bool pending)
{
	static const char *const keys[] = { "rank", "group", "call", "op" };
	struct libscols_line *line = scols_table_new_line(t, NULL);

	if (!line)
		return;
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		cell(line, i, row, keys[i]);
	if (pending)
		cell(line, 4, row, "state");
	else
		table_cell(line, 4, "in no call; its last");
	cell(line, 5, row, "frame");
}

void report_put_flight(FILE *f, const json_t *flight)
{
	static const char *const columns[] = { "RANK", "GROUP", "CALL", "OPERATION", "STATE", "FROM" };
	const json_t *pending = json_object_get(flight, "pending"), *last = json_object_get(flight, "last");
	struct libscols_table *t = json_array_size(pending) > 0 ? table_new(f) : NULL;
	json_t *row;
	size_t i, n = json_array_size(pending);

	if (!t)
		return;
	fprintf(f, "\n%sDumps (the first call of each rank and group that has not ended)%s\n", term_on(f, STYLE_BOLD),
		term_off(f));
	for (i = 0; i < sizeof columns / sizeof *columns; i++)
		table_column(t, columns[i], i == 0 || i == 2);
	json_array_foreach((json_t *)last, i, row)
		if (i < MAX_ROWS)
			put_row(t, row, false);
	json_array_foreach((json_t *)pending, i, row)
		if (i < MAX_ROWS)
			put_row(t, row, true);
	table_put(f, t);
	if (n > MAX_ROWS)
		fprintf(f, "… and %zu more: SELECT * FROM flight_entry\n", n - MAX_ROWS);
}
