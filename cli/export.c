/* export.c - `syncline export F --format NAME`: a catalogue for other tools. The table of formats, the options. */
#include "cli.h"
#include "export.h"
#include "export_formats.h"
#include "export_trace.h"
#include "export_window.h"
#include "term.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What the Perfetto UI has for a trace is about 2 GB, and that holds two to four times the file. */
#define VIEWER_BYTES INT64_C(512000000)
#define VIEWER_WHY "the Perfetto UI needs two to four times the file in memory and has about 2 GB"

const struct export_format export_formats[] = {
	{"perfetto", ".pftrace", "all ranks on one time line, for ui.perfetto.dev", "events", true, export_guess_perfetto,
	 VIEWER_BYTES, VIEWER_WHY, export_perfetto},
	{"chrome", ".json", "the same as Chrome JSON, for any trace viewer", "events", true, export_guess_chrome, VIEWER_BYTES,
	 VIEWER_WHY, export_chrome},
	{"csv", ".csv", "the same as a table, for spreadsheets and scripts", "rows", true, export_guess_csv, 0, NULL, export_csv},
	{"html", ".html", "the page with the run in it, one file that opens without a server", "steps", true, export_guess_html,
	 INT64_C(100000000), "browsers become slow with such a page", export_html},
	{"snapshot", ".snapshot.db", "a consistent copy of the database, for any SQLite client or Datasette", "steps", false, NULL,
	 0, NULL, export_snapshot},
	{"otlp", ".otlp.json", "the run's figures as OpenTelemetry metrics, to a file or an endpoint", "points", false, NULL, 0, NULL,
	 export_otlp},
	{0},
};

const char *const export_part_names[EXPORT_N_PARTS] = {
	[EXPORT_KERNELS] = "kernels",
	[EXPORT_HOST] = "host",
	[EXPORT_ARROWS] = "arrows",
	[EXPORT_COUNTERS] = "counters",
};

struct export_options {
	const char *db, *out;
	const struct export_format *format;
	struct export_asked asked;
	struct export_ranks ranks;
	unsigned without;
	bool force;
	const char *endpoint;
	long every_s;
};

/* ---- options ---- */

static const struct export_format *format_named(const char *name)
{
	for (const struct export_format *f = export_formats; f->name; f++)
		if (strcmp(f->name, name) == 0)
			return f;
	return NULL;
}

/* By what the file is called, x.otlp.json before x.json; else the first of the table. */
static const struct export_format *format_of(const char *out)
{
	const struct export_format *best = &export_formats[0];
	size_t n = out ? strlen(out) : 0, n_best = 0;

	for (const struct export_format *f = export_formats; f->name; f++) {
		size_t n_ending = strlen(f->ending);

		if (n > n_ending && n_ending > n_best && strcmp(out + n - n_ending, f->ending) == 0) {
			best = f;
			n_best = n_ending;
		}
	}
	return best;
}

static void unknown_format(struct argp_state *state, const char *name)
{
	char known[256] = "";
	size_t n = 0;

	for (const struct export_format *f = export_formats; f->name && n < sizeof known; f++)
		n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", n ? ", " : "", f->name);
	argp_error(state, "there is no format '%s'. There are: %s", name, known);
}

static unsigned parts_named(struct argp_state *state, const char *list)
{
	unsigned parts = 0;

	for (const char *p = list; *p;) {
		size_t n = strcspn(p, ","), i = 0;

		while (i < EXPORT_N_PARTS && (strlen(export_part_names[i]) != n || strncmp(p, export_part_names[i], n) != 0))
			i++;
		if (i == EXPORT_N_PARTS)
			argp_error(state, "--without takes kernels, host, arrows, counters, not '%.*s'", (int)n, p);
		parts |= 1U << i;
		p += n + (p[n] == ',');
	}
	return parts;
}

static int by_low_end(const void *a, const void *b)
{
	const struct export_range *x = a, *y = b;

	return (x->lo > y->lo) - (x->lo < y->lo);
}

/* "0-3,8": ranges, put in order and joined. */
static void ranks_named(struct argp_state *state, const char *list, struct export_ranks *r)
{
	size_t n_out = 0;

	for (const char *p = list; *p;) {
		char *end;
		long lo = strtol(p, &end, 10), hi = lo;
		struct export_range *grown;

		if (end != p && *end == '-')
			hi = strtol(end + 1, &end, 10);
		if (end == p || (*end && *end != ',') || lo < 0 || hi < lo || hi >= INT32_MAX || r->n >= 65536)
			argp_error(state, "--ranks takes numbers and ranges like 0-3,8, not '%s'", list);
		grown = realloc(r->v, (r->n + 1) * sizeof *grown);
		if (!grown)
			argp_failure(state, EXIT_UNREACHED, 0, "there is not enough memory");
		r->v = grown;
		r->v[r->n++] = (struct export_range){ (int32_t)lo, (int32_t)hi };
		p = *end ? end + 1 : end;
	}
	if (r->n == 0)
		argp_error(state, "--ranks takes numbers and ranges like 0-3,8");
	qsort(r->v, r->n, sizeof *r->v, by_low_end);
	for (size_t i = 1; i < r->n; i++) {
		if (r->v[i].lo > r->v[n_out].hi + 1)
			r->v[++n_out] = r->v[i];
		else if (r->v[i].hi > r->v[n_out].hi)
			r->v[n_out].hi = r->v[i].hi;
	}
	r->n = n_out + 1;
}

bool export_has_rank(const struct export_ranks *r, int32_t rank)
{
	size_t lo = 0, hi = r->n;

	if (r->n == 0)
		return true;
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (r->v[mid].hi < rank)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < r->n && r->v[lo].lo <= rank;
}

enum { KEY_FROM = 0x100, KEY_TO, KEY_LAST, KEY_SINCE, KEY_UNTIL, KEY_FINDING, KEY_ALL, KEY_RANKS, KEY_WITHOUT, KEY_FORCE, KEY_ENDPOINT, KEY_EVERY };

static error_t parse_window(int key, char *arg, struct argp_state *state, struct export_asked *a)
{
	switch (key) {
	case KEY_FROM:
		a->first = cli_number(state, "--from", arg, 0, UINT32_MAX - 1L);
		break;
	case KEY_TO:
		a->last = cli_number(state, "--to", arg, 0, UINT32_MAX - 1L);
		break;
	case KEY_LAST:
		a->n_last = cli_number(state, "--last", arg, 1, UINT32_MAX - 1L);
		break;
	case KEY_SINCE:
		if (!export_time(arg, &a->since))
			argp_error(state, "--since takes seconds of the run or 2026-01-31T12:00:05, not '%s'", arg);
		break;
	case KEY_UNTIL:
		if (!export_time(arg, &a->until))
			argp_error(state, "--until takes seconds of the run or 2026-01-31T12:00:05, not '%s'", arg);
		break;
	case KEY_FINDING:
		a->finding = cli_number(state, "--finding", arg, 1, INT32_MAX);
		break;
	case KEY_ALL:
		a->all = true;
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static void check(struct argp_state *state, struct export_options *o)
{
	const struct export_asked *a = &o->asked;
	int n_ways = (a->first >= 0 || a->last >= 0) + (a->n_last > 0) + (a->since.set || a->until.set) +
		     (a->finding > 0) + a->all;

	if (n_ways > 1)
		argp_error(state, "steps (--from, --to), --last, times (--since, --until), --finding and --all are "
				  "different ways to say which part: take one");
	if (a->first >= 0 && a->last >= 0 && a->first > a->last)
		argp_error(state, "--from %" PRId64 " lies behind --to %" PRId64, a->first, a->last);
	if (!o->format)
		o->format = format_of(o->out);
	if ((o->endpoint || o->every_s) && o->format->write != export_otlp)
		argp_error(state, "--endpoint and --every are of --format otlp");
	if (o->every_s && !o->endpoint)
		argp_error(state, "--every sends again and again: where to? Name it with --endpoint");
	if (o->endpoint && o->out)
		argp_error(state, "--endpoint and --output are different ways to say where to: take one");
	if (!o->format->windowed && (n_ways > 0 || o->ranks.n > 0 || o->without))
		argp_error(state, "%s takes the whole run", o->format->name);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct export_options *o = state->input;

	switch (key) {
	case 'f':
		o->format = format_named(arg);
		if (!o->format)
			unknown_format(state, arg);
		return 0;
	case 'o':
		o->out = arg;
		return 0;
	case KEY_RANKS:
		ranks_named(state, arg, &o->ranks);
		return 0;
	case KEY_WITHOUT:
		o->without |= parts_named(state, arg);
		return 0;
	case KEY_FORCE:
		o->force = true;
		return 0;
	case KEY_ENDPOINT:
		o->endpoint = arg;
		return 0;
	case KEY_EVERY:
		o->every_s = cli_number(state, "--every", arg, 1, 86400);
		return 0;
	case ARGP_KEY_END:
		check(state, o);
		break;
	default:
		break;
	}
	if (parse_window(key, arg, state, &o->asked) == 0)
		return 0;
	return cli_one_database(key, arg, state, &o->db);
}

/* ---- the size ---- */

static const char *bytes_text(int64_t n, char *buf, size_t n_buf)
{
	if (n < 1000000)
		snprintf(buf, n_buf, "%.0f kB", (double)n / 1e3 + 0.5);
	else if (n < 1000000000)
		snprintf(buf, n_buf, "%.0f MB", (double)n / 1e6);
	else
		snprintf(buf, n_buf, "%.1f GB", (double)n / 1e9);
	return buf;
}

/* What will come, before it does. False when it is more than what opens it takes. */
static bool announce(const struct export *e, const struct export_format *f)
{
	char size[32], limit[32];
	int64_t n_bytes = f->guess(e);

	bytes_text(n_bytes, size, sizeof size);
	if (f->write == export_html) /* what it has of is in what was said */
		cli_say("%s: about %s", e->window.what, size);
	else
		cli_say("%s: about %" PRId64 " %s, %s", e->window.what, export_guess_events(e), f->unit, size);
	if (f->limit_bytes == 0 || n_bytes <= f->limit_bytes)
		return true;
	bytes_text(f->limit_bytes, limit, sizeof limit);
	if (e->force) {
		cli_say("that is over %s: %s", limit, f->limit_why);
		return true;
	}
	cli_say("that is over %s: %s. Take fewer steps (--from, --to, --last), fewer ranks (--ranks), leave kernels away "
		"(--without kernels), or write it all the same with --force", limit, f->limit_why);
	return false;
}

static int export(struct export *e, const struct export_options *o)
{
	const struct export_format *f = o->format;
	int status = f->windowed ? export_choose(e, &o->asked) : EXIT_FINE;

	if (status == EXIT_FINE && f->windowed && !announce(e, f))
		status = EXIT_USAGE;
	if (status == EXIT_FINE)
		status = f->write(e, f);
	export_progress(e, 1);
	if (status == EXIT_FINE && e->final_path) {
		printf("%" PRIu64 " %s in ", e->n_written, f->unit);
		term_put(stdout, e->final_path);
		putchar('\n');
	}
	return status;
}

int cmd_export(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"format", 'f', "NAME", 0, "what to make; by the ending of FILE, else perfetto", 1},
		{"output", 'o', "FILE", 0, "where to; - is the standard output", 1},
		{"force", KEY_FORCE, 0, 0, "over a file that is there, and more than a viewer takes", 1},
		{"endpoint", KEY_ENDPOINT, "URL", 0, "otlp: post it there, like http://localhost:4318/v1/metrics", 1},
		{"every", KEY_EVERY, "SECONDS", 0, "otlp: post again so often, until the run ends", 1},
		{"from", KEY_FROM, "STEP", 0, "from this step on", 2},
		{"to", KEY_TO, "STEP", 0, "up to this step", 2},
		{"last", KEY_LAST, "N", 0, "the last N steps", 2},
		{"since", KEY_SINCE, "TIME", 0, "from this time on: seconds of the run, or a date and time in UTC", 2},
		{"until", KEY_UNTIL, "TIME", 0, "up to this time", 2},
		{"finding", KEY_FINDING, "ID", 0, "the steps and ranks of that finding", 2},
		{"all", KEY_ALL, 0, 0, "the whole run, however large", 2},
		{"ranks", KEY_RANKS, "LIST", 0, "these ranks only, like 0-3,8", 3},
		{"without", KEY_WITHOUT, "LIST", 0, "leave out: kernels, host, arrows, counters", 3},
		{0},
	};
	static const struct argp argp = {
		options,
		parse,
		"DATABASE",
		"Write a run for another tool:\n"
		"  perfetto  all ranks on one time line, for ui.perfetto.dev\n"
		"  chrome    the same as Chrome JSON, for any trace viewer\n"
		"  csv       the same as a table, for spreadsheets and scripts\n"
		"  html      the page with the run in it, one file that opens without a server\n"
		"  snapshot  a consistent copy of the database, for any SQLite client or Datasette\n"
		"  otlp      the run's figures as OpenTelemetry metrics, to a file or an endpoint\n"
		"Of a long run the last steps are taken unless others are asked for.\v"
		"Exit status: 0 written, 2 wrong use, refused, or too large, 3 cannot read or write, or no such step or "
		"finding, 5 nothing to export.\n\n"
		"Examples:\n"
		"  syncline export run.db -o run.pftrace\n"
		"  syncline export run.db --format chrome --from 100 --to 120 --ranks 0-7 -o - | gzip > run.json.gz\n"
		"  syncline export run.db --finding 1 -o why.pftrace\n"
		"  syncline export run.db -o run.html\n"
		"  syncline export run.db --format otlp --endpoint http://localhost:4318/v1/metrics --every 15\n",
		0,
		0,
		0};
	struct export_options o = { .asked = { .first = -1, .last = -1 } };
	struct export e = {0};
	struct db d;
	int status = EXIT_UNREACHED;

	if (!cli_parse(&argp, argc, argv, 0, NULL, &o))
		return EXIT_USAGE;
	if (db_open(&d, o.db) != DB_OK) {
		cli_say("%s", d.why);
		free(o.ranks.v);
		return EXIT_UNREACHED;
	}
	e = (struct export){ .db = &d, .db_path = o.db, .out_path = o.out, .force = o.force, .ranks = o.ranks,
			     .without = o.without, .endpoint = o.endpoint, .every_s = o.every_s, .terminal = isatty(STDERR_FILENO) };
	status = export(&e, &o);
	free(e.final_path);
	free(e.part_path);
	free(e.ranks.v);
	db_close(&d);
	return status;
}
