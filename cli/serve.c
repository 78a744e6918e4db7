/* serve.c - `syncline serve F`: the same pages on a finished run.
 *
 * The collector serves them; this command checks the file first, because its
 * answers name the next step, and then becomes the collector.
 */
#include "cli.h"
#include "db.h"
#include "paths.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_HTTP "127.0.0.1:7780"

struct serve_options {
	const char *path, *http, *token_file;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct serve_options *o = state->input;

	switch (key) {
	case 'a':
		o->http = arg;
		return 0;
	case 't':
		o->token_file = arg;
		return 0;
	default:
		return cli_one_database(key, arg, state, &o->path);
	}
}

int cmd_serve(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"http", 'a', "ADDR:PORT", 0,
		 "where to serve (" DEFAULT_HTTP "; port 0 = a free one)", 0},
		{"http-token-file", 't', "FILE", 0,
		 "token that browsers must give; needed beyond loopback", 0},
		{0},
	};
	static const struct argp argp = {
		options,
		parse,
		"DATABASE",
		"Serve the dashboard of a finished run until Ctrl-C. The file is only read.\v"
		"Examples:\n"
		"  syncline serve run.db\n"
		"  syncline serve run.db --http 127.0.0.1:0\n",
		0,
		0,
		0};
	struct serve_options o = {.http = DEFAULT_HTTP};
	const char *words[12];
	struct paths paths;
	struct db d;
	int n = 0, r;

	if (!cli_parse(&argp, argc, argv, 0, NULL, &o))
		return EXIT_USAGE;
	if (db_open(&d, o.path) != DB_OK) {
		cli_say("%s", d.why);
		return EXIT_UNREACHED;
	}
	if (d.live_wal)
		cli_say("%s is being written, or its collector was killed: it is served as it "
			"stands and read again when it changes. While it is written, its own "
			"collector has the live page",
			o.path);
	db_close(&d);
	r = paths_find(&paths);
	if (r != 0) {
		cli_say("cannot find the collector: %s", strerror(-r));
		return EXIT_UNREACHED;
	}
	words[n++] = "syncline-collector";
	words[n++] = "--read-only";
	words[n++] = "--db";
	words[n++] = o.path;
	words[n++] = "--http";
	words[n++] = o.http;
	if (o.token_file) {
		words[n++] = "--http-token-file";
		words[n++] = o.token_file;
	}
	words[n] = NULL;
	fflush(NULL);
	execv(paths.collector, (char *const *)words);
	cli_say("cannot run %s: %s. Build or install all of syncline", paths.collector,
		strerror(errno));
	return EXIT_UNREACHED;
}
