/* clocks.c - `syncline clocks`: how far can each host's times be trusted?
 *
 * Offsets between hosts' RAW clocks are arbitrary (they count from their boots),
 * so a person is told the error, the drift, and how far the wall clock is off,
 * which is what log lines go by; --json has the offsets too.
 */
#include "cli.h"
#include "clocks.h"
#include "rows.h"
#include "table.h"
#include "term.h"

#include <inttypes.h>
#include <string.h>

#include "sql.h"

struct clocks_options {
	const char *path;
	bool json, history, hindsight;
};

static bool is_true(const json_t *row, const char *key)
{
	return json_is_true(json_object_get(row, key));
}

static int64_t count(const json_t *row, const char *key)
{
	return json_integer_value(json_object_get(row, key));
}

static void cell_count(struct libscols_line *line, size_t i, int64_t n)
{
	char buf[32];

	snprintf(buf, sizeof buf, "%" PRId64, n);
	table_cell(line, i, buf);
}

static void cell_bound(struct libscols_line *line, size_t i, const json_t *row, const char *key)
{
	if (rows_ns(row, key) == INT64_MAX)
		table_cell(line, i, "unbounded");
	else
		table_cell_ns(line, i, row, key);
}

static void cell_signed(struct libscols_line *line, size_t i, const json_t *row, const char *key)
{
	int64_t ns = rows_ns(row, key);
	char text[32], buf[40];

	snprintf(buf, sizeof buf, "%s%s", ns > 0 ? "+" : "", term_ns(ns, text, sizeof text));
	table_cell(line, i, buf);
}

static void cell_drift(struct libscols_line *line, size_t i, const json_t *row)
{
	const json_t *v = json_object_get(row, "skew_ppb");
	char buf[32] = "?";

	if (json_is_number(v))
		snprintf(buf, sizeof buf, "%+.2f ppm", json_number_value(v) / 1000);
	table_cell(line, i, buf);
}

static const char *probes_of(const json_t *h)
{
	if (is_true(h, "same_clock"))
		return "the collector's own clock";
	if (strcmp(rows_text(h, "way"), "udp") == 0)
		return strcmp(rows_text(h, "stamps"), "kernel") == 0 ? "udp, kernel stamps" :
								       "udp, program's stamps";
	return strcmp(rows_text(h, "way"), "stream") == 0 ? "in the stream of events" : "none";
}

static void put_hosts(FILE *f, const json_t *hosts)
{
	static const struct {
		const char *name;
		bool right;
	} columns[] = {
		{ "HOST", false },  { "RANKS", true },	{ "ERROR", true },	{ "WORST", true },
		{ "SOFT", true },   { "DRIFT", true },	{ "WALL CLOCK", true }, { "STATUS", false },
		{ "PROBES", false },
	};
	struct libscols_table *t = table_new(f);
	size_t i;
	json_t *h;

	if (!t)
		return;
	for (i = 0; i < sizeof columns / sizeof *columns; i++)
		table_column(t, columns[i].name, columns[i].right);
	json_array_foreach((json_t *)hosts, i, h)
	{
		struct libscols_line *line = scols_table_new_line(t, NULL);

		if (!line)
			break;
		table_cell(line, 0, rows_text(h, "host"));
		cell_count(line, 1, (int64_t)json_array_size(json_object_get(h, "ranks")));
		cell_bound(line, 2, h, "error_ns");
		cell_bound(line, 3, h, "worst_error_ns");
		cell_bound(line, 4, h, "soft_ns");
		cell_drift(line, 5, h);
		cell_signed(line, 6, h, "wall_ns");
		table_cell(line, 7, rows_text(h, "status"));
		table_cell(line, 8, probes_of(h));
	}
	table_put(f, t);
	json_array_foreach((json_t *)hosts, i, h)
	{
		if (strcmp(rows_text(h, "way"), "stream") != 0 || is_true(h, "same_clock"))
			continue;
		fputs(term_on(f, STYLE_WARN), f);
		term_put(f, rows_text(h, "host"));
		fprintf(f, "%s: no clock probe gets through, so its bound is wider: ", term_off(f));
		term_put(f, rows_text(h, "why"));
		putc('\n', f);
	}
}

static void put_steps(FILE *f, const json_t *steps)
{
	static const struct {
		const char *kind, *what;
	} kinds[] = {
		{ "wall", "its wall clock was set by" },
		{ "suspend", "it slept for" },
		{ "raw", "its hardware clock moved by" },
	};
	size_t i;
	json_t *s;

	if (json_array_size(steps) == 0)
		return;
	fprintf(f, "\n%sWhat was done to clocks%s\n", term_on(f, STYLE_BOLD), term_off(f));
	json_array_foreach((json_t *)steps, i, s)
	{
		const char *what = "a clock moved by";
		char when[64], by[32], err[32];
		int64_t ns = rows_ns(s, "step_ns");

		for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
			if (strcmp(kinds[k].kind, rows_text(s, "kind")) == 0)
				what = kinds[k].what;
		if (i == 20) {
			fprintf(f, "… and %zu more\n", json_array_size(steps) - i);
			break;
		}
		fprintf(f, "%s  ", term_time(rows_ns(s, "at_ns"), when, sizeof when));
		term_put(f, rows_text(s, "host"));
		fprintf(f, ": %s %s%s ± %s\n", what, ns > 0 ? "+" : "", term_ns(ns, by, sizeof by),
			term_ns(rows_ns(s, "step_err_ns"), err, sizeof err));
	}
}

static void put_pairs(FILE *f, const json_t *pairs)
{
	struct libscols_table *t = json_array_size(pairs) > 0 ? table_new(f) : NULL;
	size_t i;
	json_t *p;

	if (!t)
		return;
	fprintf(f, "\n%sOne host against another%s (width of what is certain, by the job's own collectives and "
		   "by probes alone)\n",
		term_on(f, STYLE_BOLD), term_off(f));
	table_column(t, "HOST", false);
	table_column(t, "AGAINST", false);
	table_column(t, "CORRECTION", true);
	table_column(t, "CERTAIN", true);
	table_column(t, "BY PROBES", true);
	table_column(t, "SOFT", true);
	table_column(t, "BASIS", false);
	json_array_foreach((json_t *)pairs, i, p)
	{
		struct libscols_line *line = scols_table_new_line(t, NULL);

		if (!line)
			break;
		table_cell(line, 0, rows_text(p, "host"));
		table_cell(line, 1, rows_text(p, "reference"));
		cell_signed(line, 2, p, "correction_ns");
		cell_bound(line, 3, p, "width_ns");
		cell_bound(line, 4, p, "probe_width_ns");
		cell_bound(line, 5, p, "soft_ns");
		table_cell(line, 6, rows_text(p, "basis"));
	}
	table_put(f, t);
}

static void put_contradictions(FILE *f, const json_t *contradictions)
{
	size_t i;
	json_t *c;

	if (json_array_size(contradictions) == 0)
		return;
	fprintf(f, "\n%sWhat cannot have been%s\n", term_on(f, STYLE_BOLD), term_off(f));
	json_array_foreach((json_t *)contradictions, i, c)
	{
		char when[64], by[32];

		if (i == 20) {
			fprintf(f, "… and %zu more\n", json_array_size(contradictions) - i);
			break;
		}
		fprintf(f, "%s  collective %" PRId64 " of ", term_time(rows_ns(c, "at_ns"), when, sizeof when),
			count(c, "seq"));
		term_put(f, rows_text(c, "group"));
		fputs(": ", f);
		term_put(f, rows_text(c, "early_host"));
		fprintf(f, " left it %s before ", term_ns(rows_ns(c, "impossible_ns"), by, sizeof by));
		term_put(f, rows_text(c, "late_host"));
		fputs(" had entered it, against ", f);
		term_put(f, rows_text(c, "against"));
		fputs(json_is_integer(json_object_get(c, "lifted_ns")) ?
			      "; a step of a clock explains it\n" :
			      "; what it says about clocks is not believed\n",
		      f);
	}
}

static void put_history(FILE *f, const json_t *history)
{
	struct libscols_table *t = json_array_size(history) > 0 ? table_new(f) : NULL;
	size_t i;
	json_t *r;

	if (!t)
		return;
	fprintf(f, "\n%sOver time%s (worst of each part; REFUSED: estimates on which nothing may rest)\n",
		term_on(f, STYLE_BOLD), term_off(f));
	table_column(t, "FROM", false);
	table_column(t, "HOST", false);
	table_column(t, "ERROR", true);
	table_column(t, "SOFT", true);
	table_column(t, "DRIFT", true);
	table_column(t, "ESTIMATES", true);
	table_column(t, "REFUSED", true);
	json_array_foreach((json_t *)history, i, r)
	{
		struct libscols_line *line = scols_table_new_line(t, NULL);
		char when[64];

		if (!line)
			break;
		table_cell(line, 0, term_time(rows_ns(r, "at_ns"), when, sizeof when));
		table_cell(line, 1, rows_text(r, "host"));
		cell_bound(line, 2, r, "worst_error_ns");
		cell_bound(line, 3, r, "worst_soft_ns");
		cell_drift(line, 4, r);
		cell_count(line, 5, count(r, "n_estimates"));
		cell_count(line, 6, count(r, "n_refused"));
	}
	table_put(f, t);
}

static void put_hindsight(FILE *f, const json_t *hosts)
{
	struct libscols_table *t = json_array_size(hosts) > 0 ? table_new(f) : NULL;
	size_t i, k;
	json_t *h, *p;

	fprintf(f, "\n%sIn hindsight%s (all exchanges of the run are known; worst of its sixty parts)\n",
		term_on(f, STYLE_BOLD), term_off(f));
	if (!t) {
		fprintf(f, "No host was probed.\n");
		return;
	}
	table_column(t, "HOST", false);
	table_column(t, "EXCHANGES", true);
	table_column(t, "ERROR", true);
	table_column(t, "SOFT", true);
	table_column(t, "STEPS", true);
	table_column(t, "UNDECIDED", true);
	json_array_foreach((json_t *)hosts, i, h)
	{
		struct libscols_line *line = scols_table_new_line(t, NULL);
		int64_t error_ns = 0, soft_ns = 0, n_undecided = 0;
		char buf[32];

		if (!line)
			break;
		json_array_foreach(json_object_get(h, "points"), k, p)
		{
			int64_t e = rows_ns(p, "error_ns"), s = rows_ns(p, "soft_ns");

			if (e == INT64_MIN)
				n_undecided++;
			error_ns = e > error_ns ? e : error_ns;
			soft_ns = s > soft_ns ? s : soft_ns;
		}
		table_cell(line, 0, rows_text(h, "host"));
		cell_count(line, 1, count(h, "n_exchanges"));
		table_cell(line, 2, term_ns(error_ns, buf, sizeof buf));
		table_cell(line, 3, term_ns(soft_ns, buf, sizeof buf));
		cell_count(line, 4, count(h, "n_steps"));
		cell_count(line, 5, n_undecided);
	}
	table_put(f, t);
}

/* A part of the answer; false with d->why set. */
static bool add_rows(json_t *v, struct db *d, const char *name, const char *sql)
{
	json_t *rows = rows_all(d, sql);

	return rows && json_object_set_new(v, name, rows) == 0;
}

/* NULL with d->why set. */
static json_t *build(struct db *d, const struct clocks_options *o)
{
	json_t *v = json_object(), *late;
	bool ok;

	if (!v)
		return NULL;
	json_object_set_new(v, "reference", json_string("collector"));
	json_object_set_new(v, "sign", json_string("reference = local + offset"));
	sqlite3_exec(d->handle, "BEGIN", NULL, NULL, NULL);
	ok = add_rows(v, d, "hosts", sql_report_clocks) &&
	     add_rows(v, d, "steps", sql_report_clock_steps) &&
	     add_rows(v, d, "pairs", sql_report_clock_pairs) &&
	     add_rows(v, d, "contradictions", sql_report_clock_contradictions) &&
	     (!o->history || add_rows(v, d, "history", sql_report_clock_history));
	if (ok && o->hindsight) {
		late = clocks_hindsight(d);
		ok = late && json_object_set_new(v, "hindsight", late) == 0;
	}
	sqlite3_exec(d->handle, "COMMIT", NULL, NULL, NULL);
	if (ok)
		return v;
	json_decref(v);
	return NULL;
}

/* The hosts whose times nothing may rest on now. */
static size_t n_refused(const json_t *hosts)
{
	size_t i, n = 0;
	json_t *h;

	json_array_foreach((json_t *)hosts, i, h)
		n += strcmp(rows_text(h, "quality"), "refused") == 0;
	return n;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct clocks_options *o = state->input;

	switch (key) {
	case 'j':
		o->json = true;
		return 0;
	case 'H':
		o->history = true;
		return 0;
	case 'L':
		o->hindsight = true;
		return 0;
	default:
		return cli_one_database(key, arg, state, &o->path);
	}
}

int cmd_clocks(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"json", 'j', 0, 0, "one JSON object", 0},
		{"history", 'H', 0, 0, "also how it was over time, in sixty parts", 0},
		{"hindsight", 'L', 0, 0, "also estimate anew from all exchanges of the run, forward and back", 0},
		{0},
	};
	static const struct argp_child children[] = {{&cli_color_argp, 0, 0, 0}, {0}};
	static const struct argp argp = {
		options,
		parse,
		"DATABASE",
		"How well each host is placed on the one time line: the hard bound of its error now and at "
		"worst, the likely error, drift, how far its wall clock is off, how its clock probes go, and "
		"what the job's own collectives say of hosts against each other."
		"\v"
		"Exit status: 0 fine, 3 cannot read, 5 a host has no bound at all.\n\n"
		"Examples:\n"
		"  syncline clocks run.db\n"
		"  syncline clocks run.db --history\n"
		"  syncline clocks run.db --json | jq '.hosts[] | {host, error_ns}'\n",
		children,
		0,
		0};
	struct clocks_options o = {0};
	struct db d;
	json_t *v;
	size_t n;

	if (!cli_parse(&argp, argc, argv, 0, NULL, &o))
		return EXIT_USAGE;
	if (db_open(&d, o.path) != DB_OK) {
		cli_say("%s", d.why);
		return EXIT_UNREACHED;
	}
	v = build(&d, &o);
	db_close(&d);
	if (!v) {
		cli_say("%s: %s", o.path, d.why[0] ? d.why : "out of memory");
		return EXIT_UNREACHED;
	}
	n = n_refused(json_object_get(v, "hosts"));
	if (o.json) {
		json_dumpf(v, stdout, JSON_INDENT(1) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9));
		putchar('\n');
	} else if (json_array_size(json_object_get(v, "hosts")) == 0) {
		printf("No host has been heard of yet.\n");
	} else {
		put_hosts(stdout, json_object_get(v, "hosts"));
		put_pairs(stdout, json_object_get(v, "pairs"));
		put_contradictions(stdout, json_object_get(v, "contradictions"));
		put_steps(stdout, json_object_get(v, "steps"));
		if (o.history)
			put_history(stdout, json_object_get(v, "history"));
		if (o.hindsight)
			put_hindsight(stdout, json_object_get(v, "hindsight"));
	}
	json_decref(v);
	return n > 0 ? EXIT_INCOMPLETE : EXIT_FINE;
}
