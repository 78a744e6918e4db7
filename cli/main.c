/* main.c - the table of commands. */
#include "cli.h"
#include "paths.h"
#include "term.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <curl/curl.h>
#include <jansson.h>
#include <sqlite3.h>

#include "../proto/frame.h"
#include "sql.h"

static int cmd_version(int argc, char **argv);
static int cmd_help(int argc, char **argv);

const struct command cli_commands[] = {
	{"run", "run a training job with the probe, nothing else changes", cmd_run},
	{"demo", "train a real model with one slow rank and find it", cmd_demo},
	{"report", "what a finished or running job's database says", cmd_report},
	{"sql", "read-only SQL on a database", cmd_sql},
	{"path", "what a step waited for, rank by rank", cmd_path},
	{"clocks", "how well each host is placed on the time line", cmd_clocks},
	{"status", "one screen about a running collector", cmd_status},
	{"serve", "the dashboard on a finished run", cmd_serve},
	{"import", "traces of other tools as a database", cmd_import},
	{"export", "a run for Perfetto and other tools", cmd_export},
	{"sim", "play a case through the whole pipeline", cmd_sim},
	{"doctor", "what the probe can see on this machine, and why", cmd_doctor},
	{"version", "versions of this build and its libraries", cmd_version},
	{"help", "help on a command", cmd_help},
	{NULL, NULL, NULL},
};

void cli_say(const char *fmt, ...)
{
	va_list ap;
	char line[2048];

	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	fputs("syncline: ", stderr);
	term_put(stderr, line);
	putc('\n', stderr);
}

/* ---- options ---- */

static error_t parse_color(int key, char *arg, struct argp_state *state)
{
	if (key != 'C')
		return ARGP_ERR_UNKNOWN;
	if (strcmp(arg, "auto") == 0)
		term_set_color(COLOR_AUTO);
	else if (strcmp(arg, "always") == 0)
		term_set_color(COLOR_ALWAYS);
	else if (strcmp(arg, "never") == 0)
		term_set_color(COLOR_NEVER);
	else
		argp_error(state, "--color is auto, always or never, not '%s'", arg);
	return 0;
}

static const struct argp_option color_options[] = {
	{"color", 'C', "WHEN", 0, "auto (default), always or never; NO_COLOR is obeyed", 1},
	{0},
};
const struct argp cli_color_argp = {color_options, parse_color, 0, 0, 0, 0, 0};

bool cli_parse(const struct argp *argp, int argc, char **argv, unsigned flags, int *ret_next,
	       void *arg)
{
	int next = argc;
	error_t r = argp_parse(argp, argc, argv, flags, &next, arg);

	if (r != 0) {
		cli_say("%s", strerror(r));
		return false;
	}
	if (ret_next)
		*ret_next = next;
	return true;
}

error_t cli_one_database(int key, char *arg, struct argp_state *state, const char **ret_path)
{
	switch (key) {
	case ARGP_KEY_ARG:
		if (*ret_path)
			argp_error(state, "takes one database, got '%s' and '%s'", *ret_path, arg);
		*ret_path = arg;
		return 0;
	case ARGP_KEY_END:
		if (!*ret_path)
			argp_error(state, "which database? Name the file that --db wrote");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

long cli_number(struct argp_state *state, const char *option, const char *text, long lo, long hi)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || v < lo || v > hi)
		argp_error(state, "%s is a number from %ld to %ld, not '%s'", option, lo, hi, text);
	return v;
}

/* ---- nearest name ---- */

size_t cli_distance(const char *a, const char *b)
{
	size_t n = strlen(b), row[64];

	if (n >= 63 || strlen(a) >= 63)
		return SIZE_MAX;
	for (size_t j = 0; j <= n; j++)
		row[j] = j;
	for (size_t i = 1; a[i - 1]; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= n; j++) {
			size_t best = diagonal + (a[i - 1] != b[j - 1]);

			diagonal = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[n];
}

static const struct command *find(const char *name)
{
	for (const struct command *c = cli_commands; c->name; c++)
		if (strcmp(c->name, name) == 0)
			return c;
	return NULL;
}

static int unknown(const char *name)
{
	const struct command *nearest = NULL;
	size_t best = 3; /* further away is no misspelling */

	for (const struct command *c = cli_commands; c->name; c++) {
		size_t d = cli_distance(name, c->name);

		if (d < best || (*name && strncmp(c->name, name, strlen(name)) == 0)) {
			best = d < best ? d : best;
			nearest = c;
		}
	}
	if (nearest)
		cli_say("there is no command '%s'. Did you mean: syncline %s", name, nearest->name);
	else
		cli_say("there is no command '%s'. Try: syncline help", name);
	return EXIT_USAGE;
}

/* ---- version, help ---- */

struct version_options {
	bool json;
};

static error_t parse_version(int key, char *arg, struct argp_state *state)
{
	struct version_options *o = state->input;

	switch (key) {
	case 'j':
		o->json = true;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "takes no argument, got '%s'", arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int cmd_version(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"json", 'j', 0, 0, "one JSON object", 0},
		{0},
	};
	static const struct argp argp = {
		options,
		parse_version,
		"",
		"Versions of this build and its libraries.\v"
		"Examples:\n  syncline version\n  syncline version --json\n",
		0,
		0,
		0};
	struct version_options o = {0};

	if (!cli_parse(&argp, argc, argv, 0, NULL, &o))
		return EXIT_USAGE;
	if (o.json) {
		json_t *v = json_pack("{s:s, s:i, s:i, s:{s:s, s:s, s:s}}", "version",
				      SYNCLINE_VERSION, "protocol", FRAME_PROTOCOL, "schema",
				      SQL_N_MIGRATIONS, "libraries", "sqlite", sqlite3_libversion(),
				      "jansson", jansson_version_str(), "curl",
				      curl_version_info(CURLVERSION_NOW)->version);

		json_dumpf(v, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
		putchar('\n');
		json_decref(v);
		return EXIT_FINE;
	}
	printf("syncline %s (protocol %d, schema %d; sqlite %s, jansson %s, curl %s)\n",
	       SYNCLINE_VERSION, FRAME_PROTOCOL, SQL_N_MIGRATIONS, sqlite3_libversion(),
	       jansson_version_str(), curl_version_info(CURLVERSION_NOW)->version);
	return EXIT_FINE;
}

static void usage(FILE *f)
{
	fprintf(f, "Usage: syncline COMMAND [OPTION…]\n\n"
		   "Traces a training job over all its ranks and says which one holds it up.\n\n");
	for (const struct command *c = cli_commands; c->name; c++)
		fprintf(f, "  %s%-9s%s %s\n", term_on(f, STYLE_BOLD), c->name, term_off(f),
			c->summary);
	fprintf(f, "\nExamples:\n"
		   "  syncline demo                              see it work in a minute\n"
		   "  syncline run -- torchrun … train.py        trace a job\n"
		   "  syncline run --nproc 4 train.py            start the ranks, too\n"
		   "  syncline report syncline-….db              what it found\n\n"
		   "Exit status: 0 fine, 1 a finding stands, 2 wrong use, 3 cannot reach, open or "
		   "read,\n"
		   "4 too close to call, 5 data incomplete and nothing found; `run` returns the "
		   "job's own.\n"
		   "Each command has --help and a manual page: man syncline-run.\n");
}

static int cmd_help(int argc, char **argv)
{
	const struct command *c;
	char *help[] = {NULL, (char *)"--help", NULL};
	char name[64];

	if (argc < 2 || strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0) {
		usage(stdout);
		return EXIT_FINE;
	}
	c = find(argv[1]);
	if (!c)
		return unknown(argv[1]);
	snprintf(name, sizeof name, "syncline %s", c->name);
	help[0] = name;
	return c->run(2, help);
}

/* A report that did not reach its file is not a report. */
static int flushed(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	if (errno == EPIPE)
		return status; /* the reader has seen enough */
	cli_say("cannot write the output: %s", strerror(errno));
	return EXIT_UNREACHED;
}

int main(int argc, char **argv)
{
	const struct command *c;
	char name[64];

	argp_err_exit_status = EXIT_USAGE;
	if (argc < 2) {
		usage(stderr);
		return EXIT_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
	    strcmp(argv[1], "-?") == 0) {
		usage(stdout);
		return flushed(EXIT_FINE);
	}
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)
		argv[1] = (char *)"version";
	if (argv[1][0] == '-') {
		cli_say("options come after the command; '%s' is none. Try: syncline help",
			argv[1]);
		return EXIT_USAGE;
	}
	c = find(argv[1]);
	if (!c)
		return unknown(argv[1]);
	snprintf(name, sizeof name, "syncline %s", c->name);
	argv[1] = name;
	signal(SIGPIPE, SIG_DFL); /* `syncline report F | head` ends without a word */
	return flushed(c->run(argc - 1, argv + 1));
}
