#include "report_profile.h"
#include "rows.h"
#include "table.h"
#include "term.h"

#include "sql.h"

#define MAX_RANKS 32 /* rows that people read */

json_t *report_profile(struct db *d)
{
	json_t *files = rows_all(d, sql_report_profiles), *breakdown = rows_all(d, sql_report_profile_breakdown);
	json_t *calls = rows_all(d, sql_report_profile_calls);
	json_t *v = files && breakdown && calls ? json_pack("{s:O, s:O, s:O}", "files", files, "breakdown",
							     breakdown, "calls", calls)
						: NULL;

	json_decref(files);
	json_decref(breakdown);
	json_decref(calls);
	return v;
}

static void cell_part(struct libscols_line *line, size_t i, const json_t *row, const char *key, const char *of)
{
	int64_t ns = rows_ns(row, key), of_ns = rows_ns(row, of);
	char buf[64] = "-", text[32];

	if (of_ns > 0)
		snprintf(buf, sizeof buf, "%s %4.1f %%", term_ns(ns, text, sizeof text), 100.0 * (double)ns / (double)of_ns);
	table_cell(line, i, buf);
}

static void put_row(struct libscols_table *t, const json_t *row)
{
	struct libscols_line *line = scols_table_new_line(t, NULL);
	char buf[32];

	if (!line)
		return;
	snprintf(buf, sizeof buf, "%lld", (long long)rows_ns(row, "rank"));
	table_cell(line, 0, buf);
	table_cell_ns(line, 1, row, "total_ns");
	cell_part(line, 2, row, "idle_ns", "total_ns");
	cell_part(line, 3, row, "compute_ns", "total_ns");
	cell_part(line, 4, row, "communication_ns", "total_ns");
	cell_part(line, 5, row, "memory_ns", "total_ns");
	cell_part(line, 6, row, "overlap_ns", "communication_ns");
}

static void put_table(FILE *f, const json_t *rows)
{
	static const char *const columns[] = { "RANK", "TOTAL", "IDLE", "COMPUTE", "COMMUNICATION", "MEMORY",
					       "COMMUNICATION BESIDE COMPUTE" };
	struct libscols_table *t = table_new(f);
	size_t i, n = 0;
	json_t *row;

	if (!t)
		return;
	for (i = 0; i < sizeof columns / sizeof *columns; i++)
		table_column(t, columns[i], true);
	json_array_foreach((json_t *)rows, i, row)
		if (json_is_null(json_object_get(row, "step")) && n++ < MAX_RANKS)
			put_row(t, row);
	table_put(f, t);
	if (n > MAX_RANKS)
		fprintf(f, "… and %zu more: SELECT * FROM profile_breakdown\n", n - MAX_RANKS);
}

static void put_calls(FILE *f, const json_t *calls)
{
	int64_t n = 0, told = 0;
	json_t *row;
	size_t i;

	json_array_foreach((json_t *)calls, i, row)
	{
		n += rows_ns(row, "n");
		told += json_is_null(json_object_get(row, "collective")) ? 0 : rows_ns(row, "n");
	}
	if (n > 0)
		fprintf(f, "%lld kernels of communication, %lld with their arguments: SELECT * FROM profile_call\n",
			(long long)n, (long long)told);
}

void report_put_profile(FILE *f, const json_t *profile)
{
	const json_t *breakdown = json_object_get(profile, "breakdown");

	if (json_array_size(breakdown) == 0)
		return;
	fprintf(f, "\n%sProfile (what the devices did; steps: SELECT * FROM profile_breakdown)%s\n",
		term_on(f, STYLE_BOLD), term_off(f));
	put_table(f, breakdown);
	put_calls(f, json_object_get(profile, "calls"));
}
