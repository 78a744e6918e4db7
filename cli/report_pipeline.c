#include "report_pipeline.h"
#include "rows.h"
#include "table.h"
#include "term.h"

#include <inttypes.h>

#include "sql.h"

#define MOST_LINES 16

json_t *report_pipeline(struct db *d)
{
	json_t *stages = rows_all(d, sql_report_pipeline_stages), *logs = stages ? rows_all(d, sql_report_pipeline_logs) : NULL;

	if (stages && logs)
		return json_pack("{s:o, s:o}", "stages", stages, "logs", logs);
	json_decref(stages);
	return NULL;
}

json_t *report_execution_traces(struct db *d)
{
	return rows_all(d, sql_report_execution_traces);
}

static void put_number(struct libscols_line *line, size_t i, const json_t *row, const char *key)
{
	const json_t *v = json_object_get(row, key);
	char text[32] = "?";

	if (json_is_integer(v))
		snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
	table_cell(line, i, text);
}

static void put_share(struct libscols_line *line, size_t i, const json_t *row, const char *key)
{
	const json_t *v = json_object_get(row, key);
	char text[32] = "?";

	if (json_is_number(v))
		snprintf(text, sizeof text, "%.1f %%", 100 * json_number_value(v));
	table_cell(line, i, text);
}

/* More than the first are for the tables. */
static void put_more(FILE *f, const json_t *rows, const char *view)
{
	if (json_array_size(rows) > MOST_LINES)
		fprintf(f, "… and %zu more: syncline sql, view %s\n", json_array_size(rows) - MOST_LINES, view);
}

static void put_stages(FILE *f, const json_t *rows)
{
	struct libscols_table *t = json_array_size(rows) ? table_new(f) : NULL;
	static const char *const names[] = {"STAGE", "RANK", "STEPS", "FORWARDS", "TIME", "BACKWARDS", "TIME", "OF", "IDLE"};
	size_t i;
	json_t *row;

	if (!t)
		return;
	for (i = 0; i < sizeof names / sizeof *names; i++)
		table_column(t, names[i], true);
	json_array_foreach((json_t *)rows, i, row)
	{
		struct libscols_line *line = i < MOST_LINES ? scols_table_new_line(t, NULL) : NULL;

		if (!line)
			break;
		put_number(line, 0, row, "stage");
		put_number(line, 1, row, "rank");
		put_number(line, 2, row, "steps");
		put_number(line, 3, row, "forwards");
		table_cell_ns(line, 4, row, "forward_ns");
		put_number(line, 5, row, "backwards");
		table_cell_ns(line, 6, row, "backward_ns");
		table_cell_ns(line, 7, row, "span_ns");
		put_share(line, 8, row, "idle");
	}
	table_put(f, t);
	put_more(f, rows, "timeline_stage");
}

static void put_pair(FILE *f, const json_t *log, const char *what, const char *seen, const char *theory)
{
	const json_t *v = json_object_get(log, seen), *w = json_object_get(log, theory);

	if (!json_is_number(v))
		return;
	fprintf(f, "  %s %.1f ms", what, json_number_value(v));
	if (json_is_number(w))
		fprintf(f, ", by the schedule %.1f ms", json_number_value(w));
	putc('\n', f);
}

static void put_known(FILE *f, const json_t *log, const char *key, const char *what)
{
	const json_t *v = json_object_get(log, key);

	if (json_is_integer(v))
		fprintf(f, "%" JSON_INTEGER_FORMAT " %s", json_integer_value(v), what);
	else
		fprintf(f, "an unknown number of %s", what);
}

static void put_log(FILE *f, const json_t *log)
{
	const json_t *idle = json_object_get(log, "idle"), *theory = json_object_get(log, "idle_theory");

	fprintf(f, "A training log: ");
	put_known(f, log, "stages", "stages, ");
	put_known(f, log, "micro_batches", "micro-batches; medians of ");
	put_known(f, log, "lines", "of ");
	put_known(f, log, "iterations", "lines");
	fprintf(f, ", timers of the %s.\n", rows_text(log, "timers_of"));
	put_pair(f, log, "a step", "step_ms", "step_theory_ms");
	put_pair(f, log, "forward", "forward_ms", "");
	put_pair(f, log, "backward", "backward_ms", "");
	put_pair(f, log, "optimizer", "optimizer_ms", "");
	put_pair(f, log, "wait to receive", "receive_wait_ms", "receive_wait_theory_ms");
	put_pair(f, log, "all-reduce of the embedding", "embedding_ms", "embedding_theory_ms");
	if (json_is_number(idle))
		fprintf(f, "  idle %.1f %%", 100 * json_number_value(idle));
	if (json_is_number(idle) && json_is_number(theory))
		fprintf(f, ", by the schedule %.1f %%", 100 * json_number_value(theory));
	if (json_is_number(idle))
		putc('\n', f);
}

void report_put_pipeline(FILE *f, const json_t *pipeline)
{
	const json_t *stages = json_object_get(pipeline, "stages"), *logs = json_object_get(pipeline, "logs");
	size_t i;
	json_t *log;

	if (json_array_size(stages) + json_array_size(logs) == 0)
		return;
	fprintf(f, "\n%sPipeline%s\n", term_on(f, STYLE_BOLD), term_off(f));
	put_stages(f, stages);
	json_array_foreach((json_t *)logs, i, log) put_log(f, log);
}

void report_put_execution_traces(FILE *f, const json_t *traces)
{
	struct libscols_table *t = json_array_size(traces) ? table_new(f) : NULL;
	static const char *const names[] = {"TRACE", "RANK", "NODES", "CALLS", "DATA", "CONTROL", "PARENT", "NO SUCH ID", "TWICE",
					    "ON CYCLES"};
	static const char *const keys[] = {"trace",	   "rank",	    "nodes",	   "comms",	   "data_edges",
					   "control_edges", "parent_edges", "unknown_ids", "duplicate_ids", "on_cycles"};
	size_t i;
	json_t *row;

	if (!t)
		return;
	fprintf(f, "\n%sExecution traces (nodes, and edges by their kind)%s\n", term_on(f, STYLE_BOLD), term_off(f));
	for (i = 0; i < sizeof names / sizeof *names; i++)
		table_column(t, names[i], true);
	json_array_foreach((json_t *)traces, i, row)
	{
		struct libscols_line *line = i < MOST_LINES ? scols_table_new_line(t, NULL) : NULL;

		for (size_t k = 0; line && k < sizeof keys / sizeof *keys; k++)
			put_number(line, k, row, keys[k]);
	}
	table_put(f, t);
	put_more(f, traces, "et_trace");
}
