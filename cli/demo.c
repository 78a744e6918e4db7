/* demo.c - `syncline demo`: a real training with one slow rank, and is it found?
 *
 * The same path as `syncline run --nproc 4`; only the script is ours, so the
 * truth is known and the exit status can say whether the verdict is right.
 */
#include "cli.h"
#include "db.h"
#include "report.h"
#include "report_json.h"
#include "run.h"
#include "term.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEMO_RANKS 4
#define SLOW_RANK 2
#define SLOW_FROM 80
#define SLOW_MS 40
#define LATEST_ONSET 120 /* steps after SLOW_FROM within which it must be seen */
#define DEMO_ID "demo-"

struct demo_options {
	const char *db, *http;
	bool serve, healthy;
	long seconds;
};

/* A demo's database may be made anew, anybody else's may not. */
static bool make_room(const char *path)
{
	static const char *const tails[] = {"", "-wal", "-shm"};
	const char *id;
	struct stat st;
	struct db d;
	json_t *report, *run;
	bool ours;

	if (stat(path, &st) != 0 || st.st_size == 0 || db_open(&d, path) != DB_OK)
		return run_db_is_free(path);
	report = report_build(&d);
	db_close(&d);
	run = json_object_get(report, "run");
	id = json_string_value(json_object_get(run, "id"));
	ours = id && strncmp(id, DEMO_ID, strlen(DEMO_ID)) == 0 &&
	       json_is_integer(json_object_get(run, "ended_ns"));
	json_decref(report);
	if (!ours)
		return run_db_is_free(path);
	for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
		char *name = sqlite3_mprintf("%s%s", path, tails[i]);

		if (name)
			unlink(name);
		sqlite3_free(name);
	}
	return run_db_is_free(path);
}

/* ---- the truth ---- */

static bool is(const json_t *v, const char *key, const char *text)
{
	const char *s = json_string_value(json_object_get(v, key));

	return s && strcmp(s, text) == 0;
}

static bool names_only(const json_t *verdict, int rank)
{
	const json_t *ranks = json_object_get(json_object_get(verdict, "culprit"), "ranks");

	return json_array_size(ranks) == 1 && json_integer_value(json_array_get(ranks, 0)) == rank;
}

/* What is wrong with the verdicts, NULL when they tell the truth. */
static const char *compare(const json_t *report, bool healthy, char *buf, size_t n_buf)
{
	const json_t *found = NULL;
	int64_t first;
	size_t i, n = 0;
	json_t *v;

	json_array_foreach(json_object_get(report, "verdicts"), i, v)
	{
		if (is(v, "severity", "notice"))
			continue;
		found = found ? found : v;
		n++;
	}
	if (healthy) {
		if (n == 0)
			return NULL;
		snprintf(buf, n_buf, "nothing was planted, yet there are %zu findings", n);
		return buf;
	}
	if (n == 0)
		return "the slow rank was not found";
	if (n > 1) {
		snprintf(buf, n_buf, "there is one cause but %zu findings", n);
		return buf;
	}
	if (!is(found, "confidence", "certain") && !is(found, "confidence", "likely"))
		return "the finding is not sure of itself";
	if (!is(found, "class", "slow.fixed_rank"))
		return "the finding is of another kind than slow.fixed_rank";
	if (!names_only(found, SLOW_RANK))
		return "the finding names other ranks";
	first = json_integer_value(json_object_get(found, "first_step"));
	if (first < SLOW_FROM || first > SLOW_FROM + LATEST_ONSET) {
		snprintf(buf, n_buf,
			 "the finding begins at step %" PRId64 ", the slowness at step %d", first,
			 SLOW_FROM);
		return buf;
	}
	return NULL;
}

static int judge(const struct demo_options *o, const char *path)
{
	enum term_style style;
	const char *wrong;
	char buf[128];
	json_t *report;
	struct db d;

	if (db_open(&d, path) != DB_OK) {
		cli_say("%s", d.why);
		return EXIT_UNREACHED;
	}
	report = report_build(&d);
	db_close(&d);
	if (!report) {
		cli_say("%s: %s", path, d.why);
		return EXIT_UNREACHED;
	}
	putchar('\n');
	report_put_brief(stdout, report);
	if (o->healthy)
		printf("\nPlanted: nothing.\n");
	else
		printf("\nPlanted: rank %d computes %d ms more in each forward pass from step %d "
		       "on.\n",
		       SLOW_RANK, SLOW_MS, SLOW_FROM);
	wrong = compare(report, o->healthy, buf, sizeof buf);
	style = wrong ? STYLE_BAD : STYLE_GOOD;
	printf("%s%s%s\n", term_on(stdout, style), wrong ? "Not right: " : "That is the truth.",
	       wrong ? wrong : "");
	printf("%s", term_off(stdout));
	printf("\nDatabase %s. Look closer:\n  syncline report %s\n  syncline serve %s\n"
	       "  syncline sql %s 'SELECT * FROM blame'\n",
	       path, path, path, path);
	json_decref(report);
	return wrong ? EXIT_FINDING : EXIT_FINE;
}

/* The finished run at the address where it was live, so that an open page goes on. */
static void serve(const struct paths *p, const char *path, const char *http)
{
	const char *words[] = {p->collector, "--read-only", "--db", path, "--http", http, NULL};
	struct launch_result result;

	cli_say("serving http://%s/ until Ctrl-C", http);
	launch_run(&(struct launch_spec){.argv = (char *const *)words, .tick_ms = 1000}, &result);
	if (!result.interrupted)
		cli_say("the server ended with status %d", result.status);
}

/* ---- the command ---- */

enum { KEY_SERVE = 0x100, KEY_HEALTHY, KEY_SECONDS };

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct demo_options *o = state->input;

	switch (key) {
	case 'd':
		o->db = arg;
		return 0;
	case 'a':
		o->http = arg;
		return 0;
	case KEY_SERVE:
		o->serve = true;
		return 0;
	case KEY_HEALTHY:
		o->healthy = true;
		return 0;
	case KEY_SECONDS:
		o->seconds = cli_number(state, "--seconds", arg, 5, 3600);
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state,
			   "takes no argument, got '%s'. A job of your own: syncline run -- …",
			   arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int cmd_demo(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"db", 'd', "FILE", 0,
		 "database to write (syncline-demo-TIME.db here); an earlier demo's is replaced",
		 0},
		{"http", 'a', "ADDR:PORT", 0,
		 "where the dashboard is served (a free port on 127.0.0.1)", 0},
		{"seconds", KEY_SECONDS, "N", 0, "how long to train (50)", 0},
		{"serve", KEY_SERVE, 0, 0,
		 "keep serving the dashboard after the training, until Ctrl-C", 0},
		{"healthy", KEY_HEALTHY, 0, 0, "plant nothing and expect silence", 0},
		{0},
	};
	static const struct argp_child children[] = {{&cli_color_argp, 0, 0, 0}, {0}};
	static const struct argp argp = {options,
					 parse,
					 "",
					 "Train a real model with PyTorch DDP, four ranks on this "
					 "CPU, one of them slow from a "
					 "step on, and see whether it is found.\v"
					 "Exit status: 0 when exactly the planted rank is named, 1 "
					 "when not, 3 when it could "
					 "not be tried.\n\n"
					 "Examples:\n"
					 "  syncline demo\n"
					 "  syncline demo --healthy --seconds 30\n"
					 "  syncline demo --db demo.db --serve\n",
					 children,
					 0,
					 0};
	struct demo_options o = {.seconds = 50};
	char id[64], db[128], seconds[16], rank[16], from[16], ms[16], every[16];
	struct run_outcome outcome;
	struct paths paths;
	bool has_torch;
	const char *words[24];
	int n = 0, r, status;

	if (!cli_parse(&argp, argc, argv, 0, NULL, &o))
		return EXIT_USAGE;
	run_make_id(id, sizeof id, DEMO_ID);
	snprintf(db, sizeof db, "syncline-%s.db", id);
	if (!o.db)
		o.db = db;
	if (!make_room(o.db))
		return EXIT_UNREACHED;
	r = paths_find(&paths);
	if (r == 0 && !paths_has(paths.demo))
		r = -ENOENT;
	if (r != 0) {
		cli_say("cannot find the demo's script (%s): %s", paths.demo, strerror(-r));
		return EXIT_UNREACHED;
	}
	words[n++] = run_python(&has_torch);
	if (!has_torch) {
		cli_say("no Python with torch here. On Debian: apt-get install python3-torch, or "
			"set "
			"SYNCLINE_PYTHON");
		return EXIT_UNREACHED;
	}
	snprintf(seconds, sizeof seconds, "%ld", o.seconds);
	snprintf(rank, sizeof rank, "%d", o.healthy ? -1 : SLOW_RANK);
	snprintf(from, sizeof from, "%d", SLOW_FROM);
	snprintf(ms, sizeof ms, "%d", SLOW_MS);
	snprintf(every, sizeof every, "%d", isatty(STDOUT_FILENO) ? 2 : 10);
	words[n++] = "-u";
	words[n++] = paths.demo;
	words[n++] = "--seconds";
	words[n++] = seconds;
	words[n++] = "--slow-rank";
	words[n++] = rank;
	words[n++] = "--slow-from";
	words[n++] = from;
	words[n++] = "--slow-ms";
	words[n++] = ms;
	words[n++] = "--word-every";
	words[n++] = every;
	words[n] = NULL;

	r = run_job(&paths,
		    &(struct run_plan){
			    .services = {.db = o.db, .http = o.http, .run_id = id, .level = 2},
			    .argv = (char *const *)words,
			    .n_ranks = DEMO_RANKS},
		    &outcome);
	if (r != 0) {
		cli_say("cannot start the training: %s", strerror(-r));
		return EXIT_UNREACHED;
	}
	if (!outcome.traced || !outcome.has_db) {
		cli_say("the training was not traced, so there is no verdict. Try: syncline "
			"doctor");
		return EXIT_UNREACHED;
	}
	status = judge(&o, o.db);
	if (outcome.job.interrupted)
		return 130;
	if (outcome.job.status != 0) {
		cli_say("the training itself failed with exit status %d", outcome.job.status);
		return EXIT_UNREACHED;
	}
	fflush(stdout);
	if (o.serve)
		serve(&paths, o.db, outcome.http_bound);
	return status;
}
