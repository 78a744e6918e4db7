/* path.c - `syncline path F STEP`: what a step waited for, from its begin to its end.
 *
 * The catalogue keeps the paths of the newest steps and of those that a finding cites;
 * any other is followed anew from the events.
 */
#include "cli.h"
#include "path.h"
#include "rows.h"
#include "table.h"
#include "term.h"

#include <inttypes.h>
#include <string.h>

#include "sql.h"

struct path_options {
	const char *path;
	int64_t step; /* -1 = not named */
	bool json, edges, again;
};

static bool is_true(const json_t *row, const char *key)
{
	return json_is_true(json_object_get(row, key));
}

static void cell_int(struct libscols_line *line, size_t i, const json_t *row, const char *key)
{
	const json_t *v = json_object_get(row, key);
	char buf[32] = "";

	if (json_is_integer(v))
		snprintf(buf, sizeof buf, "%" PRId64, (int64_t)json_integer_value(v));
	table_cell(line, i, buf);
}

static void cell_known(struct libscols_line *line, size_t i, const json_t *row, const char *key)
{
	if (json_is_integer(json_object_get(row, key)))
		table_cell_ns(line, i, row, key);
	else
		table_cell(line, i, "");
}

/* What it was, in one cell: the name, the call, the bucket. */
static void cell_what(struct libscols_line *line, size_t i, const json_t *s)
{
	const char *comm = json_string_value(json_object_get(s, "comm_id"));
	char cut[TABLE_NAME + 4];
	const char *name = table_name(json_string_value(json_object_get(s, "name")), cut);
	const json_t *bucket = json_object_get(s, "bucket");
	char buf[300];
	size_t n;

	if (comm)
		n = (size_t)snprintf(buf, sizeof buf, "%s#%" PRId64 "%s%s", comm, rows_ns(s, "seq"),
				     name[0] ? " " : "", name);
	else
		n = (size_t)snprintf(buf, sizeof buf, "%s", name);
	if (json_is_integer(bucket) && n < sizeof buf)
		n += (size_t)snprintf(buf + n, sizeof buf - n, " bucket %" PRId64,
				      (int64_t)json_integer_value(bucket));
	if (rows_ns(s, "n_joined") > 1 && n < sizeof buf)
		snprintf(buf + n, sizeof buf - n, " and %" PRId64 " more, too short to tell apart",
			 rows_ns(s, "n_joined") - 1);
	for (char *p = buf; *p; p++) /* not ours to trust: the file may be anybody's */
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
	table_cell(line, i, buf);
}

static void cell_from(struct libscols_line *line, size_t i, const json_t *s)
{
	const json_t *from = json_object_get(s, "from_rank");
	char buf[40] = "";

	if (json_is_integer(from))
		snprintf(buf, sizeof buf, "%" PRId64 "%s", (int64_t)json_integer_value(from),
			 is_true(s, "undecided") ? " or another" : "");
	else if (is_true(s, "undecided"))
		snprintf(buf, sizeof buf, "undecided");
	table_cell(line, i, buf);
}

static void put_segments(FILE *f, const json_t *v)
{
	static const struct { const char *name; bool right; } columns[] = {
		{"AT", true}, {"TOOK", true}, {"ERROR", true}, {"RANK", true}, {"HOST", false}, {"KIND", false},
		{"WHAT", false}, {"WAITED FOR", false}, {"ALONE FOR", true}, {"EXCESS", true},
	};
	struct libscols_table *t = table_new(f);
	int64_t begin_ns = rows_ns(v, "begin_ns");
	size_t i;
	json_t *s;

	if (!t)
		return;
	for (i = 0; i < sizeof columns / sizeof *columns; i++)
		table_column(t, columns[i].name, columns[i].right);
	json_array_foreach(json_object_get(v, "segments"), i, s)
	{
		struct libscols_line *line = scols_table_new_line(t, NULL);
		char buf[32];

		if (!line)
			break;
		table_cell(line, 0, term_ns(rows_ns(s, "begin_ns") - begin_ns, buf, sizeof buf));
		table_cell_ns(line, 1, s, "dur_ns");
		if (rows_ns(s, "err_ns") == INT64_MAX)
			table_cell(line, 2, "unbounded");
		else
			table_cell_ns(line, 2, s, "err_ns");
		cell_int(line, 3, s, "rank");
		table_cell(line, 4, rows_text(s, "host"));
		table_cell(line, 5, rows_text(s, "kind"));
		cell_what(line, 6, s);
		cell_from(line, 7, s);
		cell_known(line, 8, s, "held_ns");
		cell_known(line, 9, s, "excess_ns");
	}
	table_put(f, t);
}

static void put_edges(FILE *f, const json_t *edges)
{
	struct libscols_table *t = json_array_size(edges) > 0 ? table_new(f) : NULL;
	size_t i;
	json_t *e;

	if (!t)
		return;
	fprintf(f, "\n%sEdges%s\n", term_on(f, STYLE_BOLD), term_off(f));
	table_column(t, "KIND", false);
	table_column(t, "FROM", true);
	table_column(t, "TO", true);
	table_column(t, "CALL", false);
	table_column(t, "TOOK", true);
	table_column(t, "ERROR", true);
	json_array_foreach((json_t *)edges, i, e)
	{
		struct libscols_line *line = scols_table_new_line(t, NULL);
		char buf[32];

		if (!line)
			break;
		table_cell(line, 0, rows_text(e, "kind"));
		cell_int(line, 1, e, "from_rank");
		cell_int(line, 2, e, "to_rank");
		cell_what(line, 3, e);
		table_cell(line, 4, term_ns(rows_ns(e, "to_ns") - rows_ns(e, "from_ns"), buf, sizeof buf));
		table_cell_ns(line, 5, e, "err_ns");
	}
	table_put(f, t);
}

static void put_text(FILE *f, const json_t *v)
{
	char took[32], err[32];

	fprintf(f, "Step %" PRId64 " took %s", rows_ns(v, "step"),
		term_ns(rows_ns(v, "dur_ns"), took, sizeof took));
	if (rows_ns(v, "dur_err_ns") == INT64_MAX)
		fprintf(f, ", by clocks of which nothing is known");
	else
		fprintf(f, " ± %s", term_ns(rows_ns(v, "dur_err_ns"), err, sizeof err));
	fprintf(f, ". It waited for, in this order%s:\n",
		is_true(v, "complete") ? "" : " (something is missing, the path ends early)");
	put_segments(f, v);
	put_edges(f, json_object_get(v, "edges"));
}

/* As it was told, when that is kept; NULL with d->why set. */
static json_t *as_told(struct db *d, const json_t *known)
{
	json_t *segments = rows_all_of(d, sql_report_path, rows_ns(known, "step")), *v;

	if (!segments)
		return NULL;
	v = json_pack("{s:O, s:O, s:O, s:O, s:O, s:o}", "step", json_object_get(known, "step"), "begin_ns",
		      json_object_get(known, "begin_ns"), "dur_ns", json_object_get(known, "dur_ns"),
		      "dur_err_ns", json_object_get(known, "dur_err_ns"), "complete",
		      json_object_get(known, "complete"), "segments", segments);
	return v;
}

static int show(struct db *d, const struct path_options *o)
{
	json_t *rows = rows_all_of(d, sql_report_path_step, o->step), *known = json_array_get(rows, 0), *v;
	int status = EXIT_FINE;

	if (rows && !known) {
		cli_say("%s has no step %" PRId64 ". Which there are: syncline sql %s \"SELECT min(step), "
			"max(step) FROM step\"", o->path, o->step, o->path);
		json_decref(rows);
		return EXIT_UNREACHED;
	}
	v = !rows ? NULL
	    : is_true(known, "kept") && !o->edges && !o->again ? as_told(d, known)
							       : path_again(d, known, o->edges);
	json_decref(rows);
	if (!v) {
		cli_say("%s: %s", o->path, d->why);
		return EXIT_UNREACHED;
	}
	if (json_is_null(v)) {
		cli_say("step %" PRId64 " has no path: not every rank and device came to its end, or the events are gone", o->step);
		status = EXIT_INCOMPLETE;
	} else if (o->json) {
		json_dumpf(v, stdout, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
		putchar('\n');
	} else {
		put_text(stdout, v);
	}
	json_decref(v);
	return status;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct path_options *o = state->input;

	switch (key) {
	case 'j':
		o->json = true;
		return 0;
	case 'e':
		o->edges = true;
		return 0;
	case 'a':
		o->again = true;
		return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num == 1) {
			o->step = cli_number(state, "STEP", arg, 0, UINT32_MAX - 1L);
			return 0;
		}
		if (state->arg_num > 1)
			argp_error(state, "takes a database and a step, got '%s' too", arg);
		break;
	case ARGP_KEY_END:
		if (o->path && o->step < 0)
			argp_error(state, "which step? Name its number after the database");
		break;
	default:
		break;
	}
	return cli_one_database(key, arg, state, &o->path);
}

int cmd_path(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"json", 'j', 0, 0, "one JSON object", 0},
		{"edges", 'e', 0, 0, "and every edge that the path was found among", 0},
		{"again", 'a', 0, 0, "follow it anew from the events, even where it is kept", 0},
		{0},
	};
	static const struct argp_child children[] = {{&cli_color_argp, 0, 0, 0}, {0}};
	static const struct argp argp = {
		options,
		parse,
		"DATABASE STEP",
		"The critical path of a step over its ranks: what it waited for, from its begin to its end, "
		"where it was handed from rank to rank, and by how much the late one was alone.\v"
		"Exit status: 0 shown, 2 wrong use, 3 cannot read or no such step, 5 the step did not end "
		"everywhere.\n\n"
		"Examples:\n"
		"  syncline path run.db 120\n"
		"  syncline path run.db 120 --json | jq '.segments[] | select(.from_rank != null)'\n",
		children,
		0,
		0};
	struct path_options o = { .step = -1 };
	enum db_outcome outcome;
	struct db d;
	int status;

	if (!cli_parse(&argp, argc, argv, 0, NULL, &o))
		return EXIT_USAGE;
	outcome = db_open(&d, o.path);
	if (outcome != DB_OK) {
		cli_say("%s", d.why);
		return EXIT_UNREACHED;
	}
	status = show(&d, &o);
	db_close(&d);
	return status;
}
