#include "report_memory.h"
#include "rows.h"
#include "table.h"
#include "term.h"

#include "sql.h"

#define MAX_ROWS 32 /* that people read */

json_t *report_memory(struct db *d)
{
	json_t *ooms = rows_all(d, sql_report_memory_ooms), *devices = rows_all(d, sql_report_memory_devices);
	json_t *sites = rows_all(d, sql_report_memory_sites);
	json_t *v = ooms && devices && sites
			    ? json_pack("{s:O, s:O, s:O}", "refused", ooms, "devices", devices, "sites", sites)
			    : NULL;

	json_decref(ooms);
	json_decref(devices);
	json_decref(sites);
	return v;
}

static void put_cell(struct libscols_line *line, size_t i, const json_t *v, bool mib)
{
	char buf[32] = "(no stack recorded)";

	if (json_is_integer(v) && mib)
		snprintf(buf, sizeof buf, "%.1f", (double)json_integer_value(v) / 1048576);
	else if (json_is_integer(v))
		snprintf(buf, sizeof buf, "%lld", (long long)json_integer_value(v));
	else if (mib)
		snprintf(buf, sizeof buf, "?");
	table_cell(line, i, json_is_string(v) ? json_string_value(v) : buf);
}

struct column {
	const char *title, *key;
	bool mib;
};

static void put_table(FILE *f, const json_t *rows, const struct column *columns, size_t n)
{
	struct libscols_table *t = json_array_size(rows) > 0 ? table_new(f) : NULL;
	json_t *row;
	size_t i;

	if (!t)
		return;
	for (i = 0; i < n; i++)
		table_column(t, columns[i].title, i + 1 < n);
	json_array_foreach((json_t *)rows, i, row)
	{
		struct libscols_line *line = i < MAX_ROWS ? scols_table_new_line(t, NULL) : NULL;

		for (size_t k = 0; line && k < n; k++)
			put_cell(line, k, json_object_get(row, columns[k].key), columns[k].mib);
	}
	table_put(f, t);
	if (json_array_size(rows) > MAX_ROWS)
		fprintf(f, "… and %zu more\n", json_array_size(rows) - MAX_ROWS);
}

/* The newest of each device. What came before it the program lived through. */
static void put_refused(FILE *f, const json_t *rows)
{
	const json_t *last = NULL;
	size_t i, n_before = 0;
	json_t *row;

	json_array_foreach((json_t *)rows, i, row)
	{
		bool same = last && json_equal(json_object_get(row, "rank"), json_object_get(last, "rank")) &&
			    json_equal(json_object_get(row, "device"), json_object_get(last, "device"));

		last = row;
		n_before += same;
		if (!same)
			fprintf(f, "%s\n", json_string_value(json_object_get(row, "sentence")));
	}
	if (n_before > 0)
		fprintf(f, "%zu earlier refusal%s, which the program went on after: SELECT * FROM memory_oom\n", n_before,
			n_before == 1 ? "" : "s");
}

static void put_unknown(FILE *f, const json_t *devices)
{
	size_t i, n = 0;
	json_t *row;

	json_array_foreach((json_t *)devices, i, row) n += json_integer_value(json_object_get(row, "events")) == 0;
	if (n > 0)
		fprintf(f, "%zu device%s without a recorded history: nothing is known of what was freed, or refused.\n", n,
			n == 1 ? "" : "s");
}

void report_put_memory(FILE *f, const json_t *memory)
{
	static const struct column devices[] = {
		{ "RANK", "rank", false }, { "DEVICE", "device", false }, { "RESERVED MiB", "reserved_bytes", true },
		{ "ALLOCATED MiB", "allocated_bytes", true }, { "LARGEST FREE MiB", "largest_free_bytes", true },
		{ "SEGMENTS", "segments", false }, { "BLOCKS", "blocks", false }, { "EVENTS", "events", false },
	};
	static const struct column sites[] = {
		{ "RANK", "rank", false }, { "DEVICE", "device", false }, { "HOLDS MiB", "live_bytes", true },
		{ "BLOCKS", "n_live", false }, { "ALLOCATED", "n_allocated", false }, { "FREED", "n_freed", false },
		{ "BY", "site", false },
	};
	const json_t *v = json_object_get(memory, "devices");

	if (json_array_size(v) == 0)
		return;
	fprintf(f, "\n%sMemory (snapshots of PyTorch's allocator)%s\n", term_on(f, STYLE_BOLD), term_off(f));
	put_refused(f, json_object_get(memory, "refused"));
	put_table(f, v, devices, sizeof devices / sizeof *devices);
	put_unknown(f, v);
	put_table(f, json_object_get(memory, "sites"), sites, sizeof sites / sizeof *sites);
}
