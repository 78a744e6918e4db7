#include "report.h"
#include "cli.h"
#include "db.h"
#include "report_flight.h"
#include "report_memory.h"
#include "report_json.h"
#include "report_profile.h"
#include "report_pipeline.h"
#include "report_nccl.h"
#include "rows.h"
#include "table.h"
#include "term.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int64_t count(const json_t *v, const char *key)
{
	return json_integer_value(json_object_get(v, key));
}

static void put_heading(FILE *f, const char *name)
{
	fprintf(f, "\n%s%s%s\n", term_on(f, STYLE_BOLD), name, term_off(f));
}

/* ---- verdicts ---- */

static enum term_style style_of(const char *severity)
{
	return strcmp(severity, "notice") == 0 ? STYLE_WARN : STYLE_BAD;
}

/* What the error is made of; the object keeps the short word. */
static const char *kind_of_error(const json_t *v)
{
	const char *kind = rows_text(v, "error_kind");

	if (strcmp(kind, "hard") == 0)
		return "hard clock bound";
	if (strcmp(kind, "soft") == 0)
		return "soft clock bound";
	return "no clock involved";
}

static void put_cost(FILE *f, const json_t *v)
{
	const json_t *cost = json_object_get(v, "cost_ratio");
	char margin[32], error[32];

	fprintf(f, "    ");
	if (json_is_number(cost) && !json_is_integer(json_object_get(v, "first_step")))
		fprintf(f, "costs %.1f %% of the time; ", 100 * json_number_value(cost));
	else if (json_is_number(cost)) /* else it is not about steps */
		fprintf(f, "steps %" PRId64 " to %" PRId64 ", costs %.1f %% of step time; ",
			count(v, "first_step"), count(v, "last_step"), 100 * json_number_value(cost));
	if (rows_ns(v, "margin_ns") == 0 && rows_ns(v, "error_ns") == 0)
		fprintf(f, "no times are compared in it\n"); /* sequences, records and sizes decided */
	else
		fprintf(f, "margin %s ± %s (%s)\n", term_ns(rows_ns(v, "margin_ns"), margin, sizeof margin),
			term_ns(rows_ns(v, "error_ns"), error, sizeof error), kind_of_error(v));
}

/* A row of evidence is an object of keys and numbers; show the first few. */
static void put_evidence(FILE *f, const json_t *evidence)
{
	size_t n = json_array_size(evidence), shown = n < 3 ? n : 3;

	if (n == 0)
		return;
	fprintf(f, "    evidence: ");
	for (size_t i = 0; i < shown; i++) {
		const json_t *row = json_array_get(evidence, i);
		const char *key;
		json_t *value;
		bool first = true;

		if (i > 0)
			fprintf(f, "; ");
		json_object_foreach((json_t *)row, key, value)
		{
			if (!first)
				putc(' ', f);
			first = false;
			if (strcmp(key, "view") != 0)
				fprintf(f, "%s ", key);
			if (json_is_string(value)) {
				term_put(f, json_string_value(value));
			} else {
				char *v =
					json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(4));

				fputs(v ? v : "?", f);
				free(v);
			}
		}
		if (json_is_string(row))
			term_put(f, json_string_value(row));
	}
	if (n > shown)
		fprintf(f, "; and %zu more", n - shown);
	putc('\n', f);
}

static void put_list(FILE *f, const char *name, const json_t *list)
{
	size_t i;
	json_t *v;
	bool first = true;

	json_array_foreach((json_t *)list, i, v)
	{
		if (!json_is_string(v))
			continue;
		fprintf(f, "%s", first ? name : "; ");
		term_put(f, json_string_value(v));
		first = false;
	}
	if (!first)
		putc('\n', f);
}

static void put_sentence(FILE *f, const json_t *v)
{
	const char *severity = rows_text(v, "severity");

	fprintf(f, "%s[", term_on(f, style_of(severity)));
	term_put(f, severity);
	fputs(", ", f);
	term_put(f, rows_text(v, "confidence"));
	fprintf(f, "]%s ", term_off(f));
	term_put(f, rows_text(v, "sentence"));
	putc('\n', f);
}

/* {"ranks_silent":2,"events_lost":14} as "ranks silent 2, events lost 14". */
static void put_coverage_of(FILE *f, const json_t *coverage)
{
	const char *key, *between = "    seen with: ";
	json_t *v;

	json_object_foreach((json_t *)coverage, key, v)
	{
		char *text = json_dumps(v, JSON_ENCODE_ANY | JSON_REAL_PRECISION(4));

		fputs(between, f);
		for (const char *c = key; *c; c++)
			term_put(f, (char[2]){*c == '_' ? ' ' : *c});
		putc(' ', f);
		term_put(f, text ? text : "?");
		free(text);
		between = ", ";
	}
	if (between[0] == ',')
		putc('\n', f);
}

static void put_verdict(FILE *f, const json_t *v)
{
	put_sentence(f, v);
	put_cost(f, v);
	put_evidence(f, json_object_get(v, "evidence"));
	put_list(f, "    rules out: ", json_object_get(v, "rules_out"));
	put_coverage_of(f, json_object_get(v, "coverage"));
	fprintf(f, "    class ");
	term_put(f, rows_text(v, "class"));
	fprintf(f, ", sql: SELECT * FROM finding WHERE id = %" PRId64 "\n", count(v, "id"));
}

static void put_none(FILE *f, const json_t *report)
{
	const json_t *verdicts = json_object_get(report, "verdicts");

	switch (report_exit(report)) {
	case EXIT_FINE:
		fprintf(f, "%sNothing found%s%s and the data is complete.\n", term_on(f, STYLE_GOOD),
			term_off(f), json_array_size(verdicts) > 0 ? " above a notice," : "");
		break;
	case EXIT_INCOMPLETE:
		if (report_is_blind(report)) {
			fprintf(f,
				"%sNothing can be said of slow ranks%s: the gradient collectives "
				"of "
				"this job are hidden from the probe (NCCL), so a rank that waits "
				"cannot be told from one that computes.\n",
				term_on(f, STYLE_WARN), term_off(f));
			break;
		}
		fprintf(f, "%sNothing found, but data is missing%s: see the coverage.\n",
			term_on(f, STYLE_WARN), term_off(f));
		break;
	default:
		if (json_array_size(verdicts) == 0)
			fprintf(f, "Nothing found.\n");
	}
}

/* ---- tables ---- */

static void cell_percent(struct libscols_line *line, size_t i, const json_t *row, const char *key)
{
	const json_t *v = json_object_get(row, key);
	char buf[32] = "?";

	if (json_is_number(v))
		snprintf(buf, sizeof buf, "%+.1f %%", 100 * json_number_value(v));
	table_cell(line, i, buf);
}

static void put_ranks(FILE *f, const json_t *ranks)
{
	struct libscols_table *t = table_new(f);
	size_t i;
	json_t *r;

	if (!t)
		return;
	table_column(t, "RANK", true);
	table_column(t, "HOST", false);
	table_column(t, "STATE", false);
	table_column(t, "STEPS", true);
	table_column(t, "EXCESS", true);
	table_column(t, "COMPUTE", true);
	table_column(t, "COMM", true);
	table_column(t, "WAIT", true);
	table_column(t, "IDLE", true);
	table_column(t, "OVERLAP", true);
	json_array_foreach((json_t *)ranks, i, r)
	{
		struct libscols_line *line = scols_table_new_line(t, NULL);
		char buf[32];

		if (!line)
			break;
		snprintf(buf, sizeof buf, "%" PRId64, count(r, "rank"));
		table_cell(line, 0, buf);
		table_cell(line, 1, rows_text(r, "host"));
		table_cell(line, 2, rows_text(r, "state"));
		snprintf(buf, sizeof buf, "%" PRId64, count(r, "steps"));
		table_cell(line, 3, buf);
		cell_percent(line, 4, r, "excess_ratio");
		table_cell_ns(line, 5, r, "compute_ns");
		table_cell_ns(line, 6, r, "comm_ns");
		table_cell_ns(line, 7, r, "wait_ns");
		table_cell_ns(line, 8, r, "idle_ns");
		cell_percent(line, 9, r, "overlap_ratio");
	}
	table_put(f, t);
}

static void put_clock(FILE *f, const json_t *clock)
{
	struct libscols_table *t = table_new(f);
	size_t i;
	json_t *h;

	if (!t)
		return;
	table_column(t, "HOST", false);
	table_column(t, "RANKS", true);
	table_column(t, "ERROR", true);
	table_column(t, "QUALITY", false);
	json_array_foreach(json_object_get(clock, "hosts"), i, h)
	{
		struct libscols_line *line = scols_table_new_line(t, NULL);
		char buf[32];

		if (!line)
			break;
		table_cell(line, 0, rows_text(h, "host"));
		snprintf(buf, sizeof buf, "%zu", json_array_size(json_object_get(h, "ranks")));
		table_cell(line, 1, buf);
		table_cell_ns(line, 2, h, "error_ns");
		table_cell(line, 3,
		     json_is_true(json_object_get(h, "same_clock")) ? "the collector's own clock"
								    : rows_text(h, "quality"));
	}
	table_put(f, t);
}

static void put_steps(FILE *f, const json_t *steps)
{
	static const struct {
		const char *key, *name;
	} parts[] = {
		{"data_ns", "data"},	       {"forward_ns", "forward"},
		{"backward_ns", "backward"},   {"exposed_comm_ns", "exposed communication"},
		{"optimizer_ns", "optimizer"}, {"eval_ns", "evaluation"},
		{"kernels_ns", "kernels"},     {"idle_ns", "other"},
	};
	const json_t *b = json_object_get(steps, "breakdown");
	char buf[32];

	if (count(steps, "n") == 0) {
		fprintf(f, "No step was seen.\n");
		return;
	}
	fprintf(f,
		"%" PRId64 " steps (%" PRId64 " to %" PRId64
		"), median %s. Mean of a rank's step:\n  ",
		count(steps, "n"), count(steps, "first"), count(steps, "last"),
		term_ns(rows_ns(steps, "median_ns"), buf, sizeof buf));
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (strcmp(parts[i].key, "kernels_ns") != 0 || rows_ns(b, parts[i].key) >= 0)
			fprintf(f, "%s%s %s", i ? ", " : "", parts[i].name,
				term_ns(rows_ns(b, parts[i].key), buf, sizeof buf));
	putc('\n', f);
}

static void cell_rate(struct libscols_line *line, size_t i, const json_t *row, const char *key)
{
	const json_t *v = json_object_get(row, key);
	char buf[32] = "?";

	if (json_is_number(v))
		snprintf(buf, sizeof buf, "%.3g", json_number_value(v));
	table_cell(line, i, buf);
}

static void cell_share(struct libscols_line *line, size_t i, const json_t *row, const char *key)
{
	const json_t *v = json_object_get(row, key);
	char buf[32] = "?";

	if (json_is_number(v))
		snprintf(buf, sizeof buf, "%.0f %%", 100 * json_number_value(v));
	table_cell(line, i, buf);
}

/* Bytes of a size class: a power of two. */
static void cell_size(struct libscols_line *line, size_t i, int64_t bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	size_t unit = 0;
	char buf[32];

	while (bytes >= 1024 && unit + 1 < sizeof units / sizeof *units) {
		bytes /= 1024;
		unit++;
	}
	snprintf(buf, sizeof buf, "%" PRId64 " %s", bytes, units[unit]);
	table_cell(line, i, buf);
}

static void put_class(struct libscols_table *t, const json_t *c)
{
	struct libscols_line *line = scols_table_new_line(t, NULL);
	char buf[48];

	if (!line)
		return;
	snprintf(buf, sizeof buf, "%.32s", rows_text(c, "op"));
	table_cell(line, 0, buf);
	table_cell(line, 1, rows_text(c, "dtype"));
	cell_size(line, 2, count(c, "size_class"));
	snprintf(buf, sizeof buf, "%" PRId64 " x %" PRId64 " on %" PRId64, count(c, "n_groups"), count(c, "n_ranks"),
		 count(c, "n_hosts"));
	table_cell(line, 3, buf);
	snprintf(buf, sizeof buf, "%" PRId64, count(c, "n"));
	table_cell(line, 4, buf);
	table_cell_ns(line, 5, c, "mean_ns");
	table_cell_ns(line, 6, c, "p50_ns");
	table_cell_ns(line, 7, c, "p95_ns");
	table_cell_ns(line, 8, c, "p99_ns");
	cell_rate(line, 9, c, "busbw_gbs");
	cell_share(line, 10, c, "peak_ratio");
	cell_share(line, 11, c, "wait_ratio");
}

#define CLASSES_SHOWN 12

static void put_classes(FILE *f, const json_t *classes)
{
	static const char *const names[] = {"OPERATION", "TYPE", "FROM", "GROUPS x RANKS ON HOSTS", "CALLS", "MEAN",
					    "P50", "P95", "P99", "GB/S", "OF PEAK", "WAIT"};
	struct libscols_table *t;
	size_t n = json_array_size(classes);

	if (n == 0)
		return;
	fprintf(f, "Transfers, from the last arrival on, and the share of the ranks' time that was waiting for it:\n");
	t = table_new(f);
	if (!t)
		return;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		table_column(t, names[i], i == 2 || i >= 4);
	for (size_t i = 0; i < n && i < CLASSES_SHOWN; i++)
		put_class(t, json_array_get(classes, i));
	table_put(f, t);
	if (n > CLASSES_SHOWN)
		fprintf(f, "… and %zu more: SELECT * FROM comm_class\n", n - CLASSES_SHOWN);
}

static void put_blame(FILE *f, const json_t *blame)
{
	const json_t *top = json_object_get(blame, "top");
	struct libscols_table *t = json_array_size(top) > 0 ? table_new(f) : NULL;
	char buf[32];
	size_t i;
	json_t *r;

	if (!t) {
		fprintf(f, "No step was seen to its end on all its ranks.\n");
		return;
	}
	table_column(t, "RANK", true);
	table_column(t, "HOST", false);
	table_column(t, "KIND", false);
	table_column(t, "WHAT", false);
	table_column(t, "STEPS", true);
	table_column(t, "ON PATH", true);
	table_column(t, "SHARE", true);
	table_column(t, "EXCESS", true);
	table_column(t, "ALONE FOR", true);
	json_array_foreach((json_t *)top, i, r)
	{
		struct libscols_line *line = i < 8 ? scols_table_new_line(t, NULL) : NULL;
		const char *comm = json_string_value(json_object_get(r, "comm_id"));

		if (!line)
			break;
		snprintf(buf, sizeof buf, "%" PRId64, count(r, "rank"));
		table_cell(line, 0, buf);
		table_cell(line, 1, rows_text(r, "host"));
		table_cell(line, 2, rows_text(r, "kind"));
		table_cell_name(line, 3, comm ? comm : json_string_value(json_object_get(r, "name")));
		snprintf(buf, sizeof buf, "%" PRId64, count(r, "n_steps"));
		table_cell(line, 4, buf);
		table_cell_ns(line, 5, r, "path_ns");
		snprintf(buf, sizeof buf, "%.1f %%", 100 * json_number_value(json_object_get(r, "path_ratio")));
		table_cell(line, 6, buf);
		table_cell_ns(line, 7, r, "excess_ns");
		table_cell_ns(line, 8, r, "held_ns");
	}
	table_put(f, t);
	if (json_array_size(top) > 8)
		fprintf(f, "… and more: syncline sql, view blame_step. One step: syncline path\n");
	if (count(blame, "undecided_ns") > 0)
		fprintf(f, "Of %s on the paths, %s went where it cannot be told who arrived last.\n",
			term_ns(rows_ns(blame, "path_ns"), buf, sizeof buf),
			term_ns(rows_ns(blame, "undecided_ns"), (char[32]){ 0 }, 32));
}

static void put_coverage(FILE *f, const json_t *coverage)
{
	const json_t *expected = json_object_get(coverage, "ranks_expected");
	int64_t n_open = count(coverage, "ranks_open");
	size_t i;
	size_t n_skipped = 0;
	json_t *in;

	fprintf(f, "%" PRId64 " of ", count(coverage, "ranks_seen"));
	if (json_is_integer(expected))
		fprintf(f, "%" PRId64, (int64_t)json_integer_value(expected));
	else
		fprintf(f, "an unknown number of");
	fprintf(f,
		" ranks seen, %" PRId64 " events kept, %" PRId64 " lost, %" PRId64
		" texts lost, %" PRId64 " steps incomplete.\n",
		count(coverage, "events"), count(coverage, "events_lost"),
		count(coverage, "texts_lost"), count(coverage, "steps_incomplete"));
	if (count(coverage, "events_late") > 0)
		fprintf(f, "Events that came after their step was closed: %" PRId64
			   ". They are kept, but the breakdown is without them.\n",
			count(coverage, "events_late"));
	if (n_open > 0)
		fprintf(f, "Ranks whose end was not seen: %" PRId64 ". They run still, or their agent is gone "
			   "and their last events are missing.\n",
			n_open);
	json_array_foreach(json_object_get(coverage, "inputs"), i, in)
	{
		bool skipped = strncmp(rows_text(in, "outcome"), "skipped: ", 9) == 0;

		n_skipped += skipped;
		if (skipped || strcmp(rows_text(in, "outcome"), "ok") == 0)
			continue;
		term_put(f, rows_text(in, "file"));
		fputs(json_is_string(json_object_get(in, "format")) ? ": " : " ", f);
		term_put(f, rows_text(in, "outcome"));
		putc('\n', f);
	}
	if (n_skipped > 0)
		fprintf(f, "Files that are no traces, or the same as others, and were skipped: %zu (view input).\n",
			n_skipped);
	if (count(coverage, "ranks_seen") == 0)
		fprintf(f, "What keeps the probe from a job: syncline doctor\n");
}

static void put_part(FILE *f, const json_t *row, const char *what, const char *key)
{
	const json_t *share = json_object_get(row, "share"), *slow = json_object_get(row, "slowdown");
	char without[32];

	if (!row)
		return;
	fprintf(f, "  %s ", what);
	if (json_is_integer(json_object_get(row, key)))
		fprintf(f, "%" PRId64, count(row, key));
	else
		term_put(f, rows_text(row, key));
	if (json_is_number(slow))
		fprintf(f, ": it alone makes a step %.3f times the ideal", json_number_value(slow));
	if (json_is_number(share))
		fprintf(f, "%s without it a step takes %s: %.1f %% of what is lost",
			json_is_number(slow) ? ";" : ":",
			term_ns(rows_ns(row, "without_ns"), without, sizeof without),
			100 * json_number_value(share));
	putc('\n', f);
}

static void put_what_if(FILE *f, const json_t *w)
{
	char was[32], ideal[32];

	if (!json_is_number(json_object_get(w, "slowdown"))) {
		fprintf(f, "Nothing could be replayed.\n");
		return;
	}
	fprintf(f, "A step takes %s and could take %s: slow-down %.3f (%s, %" PRId64 " steps).\n",
		term_ns(rows_ns(w, "step_ns"), was, sizeof was),
		term_ns(rows_ns(w, "without_ns"), ideal, sizeof ideal),
		json_number_value(json_object_get(w, "slowdown")), rows_text(w, "method"),
		count(w, "steps"));
	/* The lists begin with what costs most. */
	put_part(f, json_array_get(json_object_get(w, "by_rank"), 0), "rank", "rank");
	put_part(f, json_array_get(json_object_get(w, "by_stage"), 0), "stage", "stage");
	put_part(f, json_array_get(json_object_get(w, "by_kind"), 0), "operation", "name");
}

void report_put(FILE *f, const json_t *report, const char *path)
{
	const json_t *run = json_object_get(report, "run");
	const json_t *calls = json_object_get(report, "collectives");
	const json_t *verdicts = json_object_get(report, "verdicts");
	int64_t started = rows_ns(run, "started_ns"), ended = rows_ns(run, "ended_ns");
	char when[64], took[32];
	size_t i;
	json_t *v;

	fprintf(f, "Run %s", term_on(f, STYLE_BOLD));
	term_put(f, rows_text(run, "id")); /* not ours to trust: the file may be anybody's */
	fprintf(f, "%s of %s, %" PRId64 " ranks, ", term_off(f),
		started == 0 && ended == 0 ? "an unknown time" : term_time(started, when, sizeof when),
		count(run, "world_size"));
	if (started == 0 && ended == 0)
		fprintf(f, "no times\n");
	else if (ended != INT64_MIN)
		fprintf(f, "took %s\n", term_ns(ended - started, took, sizeof took));
	else
		fprintf(f, "not ended\n");

	put_heading(f, "Findings");
	put_none(f, report);
	json_array_foreach((json_t *)verdicts, i, v) put_verdict(f, v);

	put_heading(f, "Steps");
	put_steps(f, json_object_get(report, "steps"));
	put_heading(f, "Ranks (sums over the run; excess = self time beyond the peers' median)");
	put_ranks(f, json_object_get(report, "ranks"));
	put_heading(f, "What if");
	put_what_if(f, json_object_get(report, "what_if"));
	report_put_profile(f, json_object_get(report, "profile"));
	report_put_pipeline(f, json_object_get(report, "pipeline"));
	report_put_execution_traces(f, json_object_get(report, "execution_traces"));
	report_put_flight(f, json_object_get(report, "flight"));
	report_put_memory(f, json_object_get(report, "memory"));
	put_heading(f, "Collectives");
	fprintf(f,
		"%" PRId64 " calls, %" PRId64 " seen on all their ranks, %" PRId64
		" with no clear last rank, %" PRId64 " that disagree.\n",
		count(calls, "n"), count(calls, "matched"), count(calls, "undecided"),
		count(calls, "mismatched"));
	put_classes(f, json_object_get(calls, "classes"));
	put_heading(f, "Who held the steps (their critical path; excess = beyond what peers take for the same)");
	put_blame(f, json_object_get(report, "blame"));
	report_nccl_put(f, json_object_get(report, "nccl"));
	put_heading(f, "Clock");
	put_clock(f, json_object_get(report, "clock"));
	put_heading(f, "Coverage");
	put_coverage(f, json_object_get(report, "coverage"));
	fprintf(f, "\nMore: syncline serve %s, syncline sql %s\n", path, path);
}

void report_put_brief(FILE *f, const json_t *report)
{
	const json_t *verdicts = json_object_get(report, "verdicts");
	size_t i;
	json_t *v;

	put_none(f, report);
	json_array_foreach((json_t *)verdicts, i, v)
	{
		if (i == 5) {
			fprintf(f, "… and %zu more\n", json_array_size(verdicts) - i);
			break;
		}
		put_sentence(f, v);
		put_cost(f, v);
	}
	fprintf(f, "Coverage: ");
	put_coverage(f, json_object_get(report, "coverage"));
}

/* ---- the command ---- */

struct report_options {
	const char *path;
	bool json;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct report_options *o = state->input;

	switch (key) {
	case 'j':
		o->json = true;
		return 0;
	default:
		return cli_one_database(key, arg, state, &o->path);
	}
}

int cmd_report(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"json", 'j', 0, 0, "one JSON object (docs/report.schema.json)", 0},
		{0},
	};
	static const struct argp_child children[] = {{&cli_color_argp, 0, 0, 0}, {0}};
	static const struct argp argp = {
		options,
		parse,
		"DATABASE",
		"What a job's database says: findings first, then where the time went, clocks and "
		"coverage.\v"
		"Exit status: 0 nothing found, 1 a finding above notice stands, 3 cannot read, 4 "
		"too "
		"close to call, 5 data incomplete and nothing found.\n\n"
		"Examples:\n"
		"  syncline report run.db\n"
		"  syncline report run.db --json | jq .verdicts\n"
		"  syncline report run.db >/dev/null || echo look\n",
		children,
		0,
		0};
	struct report_options o = {0};
	enum db_outcome outcome;
	struct db d;
	json_t *report;
	int status;

	if (!cli_parse(&argp, argc, argv, 0, NULL, &o))
		return EXIT_USAGE;
	outcome = db_open(&d, o.path);
	if (outcome != DB_OK) {
		cli_say("%s", d.why);
		return EXIT_UNREACHED;
	}
	report = report_build(&d);
	db_close(&d);
	if (!report) {
		cli_say("%s: %s", o.path, d.why);
		return EXIT_UNREACHED;
	}
	if (o.json) {
		json_dumpf(report, stdout,
			   JSON_INDENT(1) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9));
		putchar('\n');
	} else {
		report_put(stdout, report, o.path);
	}
	status = report_exit(report);
	json_decref(report);
	return status;
}
