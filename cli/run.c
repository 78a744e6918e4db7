#include "run.h"
#include "cli.h"
#include "db.h"
#include "report.h"
#include "report_json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TICK_MS 500

void run_make_id(char *out, size_t n, const char *prefix)
{
	time_t now = time(NULL);
	uint16_t random = 0;
	struct tm tm;
	char when[32];

	if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random)
		random = (uint16_t)getpid();
	localtime_r(&now, &tm);
	strftime(when, sizeof when, "%Y%m%d-%H%M%S", &tm);
	snprintf(out, n, "%s%s-%04x", prefix, when, random);
}

bool run_db_is_free(const char *path)
{
	struct stat st;

	if (stat(path, &st) != 0 || (S_ISREG(st.st_mode) && st.st_size == 0))
		return true;
	cli_say("%s exists already and one database holds one run. Name another file or remove it",
		path);
	return false;
}

/* ---- python ---- */

static bool has_torch(const char *python)
{
	static const char *const probe =
		"import importlib.util,sys;sys.exit(0 if importlib.util.find_spec('torch') else 1)";
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		launch_restore_signals();
		setenv("SYNCLINE_OFF", "1", 1);
		if (!freopen("/dev/null", "w", stderr))
			_exit(126);
		execlp(python, python, "-c", probe, (char *)NULL);
		_exit(127);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

const char *run_python(bool *ret_has_torch)
{
	const char *chosen = getenv("SYNCLINE_PYTHON");

	if (chosen && *chosen) {
		*ret_has_torch = has_torch(chosen);
		return chosen;
	}
	*ret_has_torch = true;
	if (has_torch("python3"))
		return "python3";
	if (has_torch("/usr/bin/python3"))
		return "/usr/bin/python3";
	*ret_has_torch = false;
	return "python3";
}

/* ---- the job ---- */

struct running {
	const struct run_plan *plan;
	struct services services;
};

static void on_env(void *arg)
{
	services_job_env(&((struct running *)arg)->services);
}

static void on_child(void *arg, pid_t pid, int wait_status)
{
	services_child(&((struct running *)arg)->services, pid, wait_status);
}

static void on_tick(void *arg)
{
	struct running *r = arg;

	services_tick(&r->services);
	if (r->plan->on_tick && r->services.http_url[0])
		r->plan->on_tick(r->plan->arg, r->services.http_url);
}

int run_job(const struct paths *p, const struct run_plan *plan, struct run_outcome *ret)
{
	struct running *r = calloc(1, sizeof *r);
	struct stat st;
	int rc;

	*ret = (struct run_outcome){0};
	if (!r)
		return -ENOMEM;
	r->plan = plan;
	if (getenv("SYNCLINE_OFF") && *getenv("SYNCLINE_OFF"))
		cli_say("SYNCLINE_OFF is set: the job runs without the probe");
	else
		services_start(&r->services, p, &plan->services);
	if (r->services.http_url[0])
		cli_say("dashboard %s", r->services.http_url);
	rc = launch_run(&(struct launch_spec){.argv = plan->argv,
					      .n_ranks = plan->n_ranks,
					      .tick_ms = TICK_MS,
					      .set_env = on_env,
					      .on_child = on_child,
					      .on_tick = on_tick,
					      .arg = r},
			&ret->job);
	services_stop_agent(&r->services);
	services_stop_collector(&r->services);
	ret->traced = r->services.traced;
	ret->shipped = services_all_shipped(&r->services);
	snprintf(ret->http_bound, sizeof ret->http_bound, "%s", r->services.http_bound);
	ret->has_db =
		ret->traced && !plan->services.collector_url && stat(plan->services.db, &st) == 0;
	services_fini(&r->services);
	free(r);
	return rc;
}

/* ---- the command ---- */

struct run_options {
	struct run_plan plan;
	int command; /* index of the job's first word */
};

enum { KEY_NPROC = 'n', KEY_HTTP_TOKEN = 0x100, KEY_TOKEN, KEY_DIR, KEY_RUN };

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct run_options *o = state->input;
	struct services_options *s = &o->plan.services;

	switch (key) {
	case 'd':
		s->db = arg;
		return 0;
	case 'a':
		s->http = arg;
		return 0;
	case 'l':
		s->level = (int)cli_number(state, "--level", arg, 0, 4);
		return 0;
	case 'c':
		s->collector_url = arg;
		return 0;
	case KEY_NPROC:
		o->plan.n_ranks = (unsigned)cli_number(state, "--nproc", arg, 1, LAUNCH_MAX_RANKS);
		return 0;
	case KEY_HTTP_TOKEN:
		s->http_token_file = arg;
		return 0;
	case KEY_TOKEN:
		s->token_file = arg;
		return 0;
	case KEY_DIR:
		s->dir = arg;
		return 0;
	case KEY_RUN:
		if (!*arg || strlen(arg) > 63)
			argp_error(state, "--run has 1 to 63 bytes, not %zu", strlen(arg));
		s->run_id = arg;
		return 0;
	case ARGP_KEY_ARG:
		/* The job's own options are its own: stop here. */
		o->command = state->next - 1;
		state->next = state->argc;
		return 0;
	case ARGP_KEY_END:
		if (o->command == 0)
			argp_error(state,
				   "which job? For example: syncline run -- torchrun … train.py");
		if (s->collector_url && s->db)
			argp_error(state, "--db is for a collector of this command's own; with "
					  "--collector that one has the database");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static bool is_script(const char *name)
{
	size_t n = strlen(name);

	return n > 3 && strcmp(name + n - 3, ".py") == 0;
}

/* "train.py a b" becomes "python3 -u train.py a b", as torchrun does. */
static char **ranks_argv(char **words, int n)
{
	char **argv = calloc((size_t)n + 3, sizeof *argv);
	bool has;
	int at = 0;

	if (!argv)
		return NULL;
	if (is_script(words[0])) {
		argv[at++] = (char *)run_python(&has);
		argv[at++] = (char *)"-u";
	}
	for (int i = 0; i < n; i++)
		argv[at++] = words[i];
	return argv;
}

static void put_end(const struct run_plan *plan, const struct run_outcome *o)
{
	struct db d;
	json_t *report;

	if (!o->traced)
		return;
	if (plan->services.collector_url) {
		cli_say(o->shipped ? "the data is at the collector %s" :
				     "the collector %s has not got all of the data",
			plan->services.collector_url);
		return;
	}
	if (!o->has_db) {
		cli_say("the collector left no database at %s", plan->services.db);
		return;
	}
	if (db_open(&d, plan->services.db) != DB_OK) {
		cli_say("%s", d.why);
		return;
	}
	report = report_build(&d);
	db_close(&d);
	if (!report) {
		cli_say("%s: %s", plan->services.db, d.why);
		return;
	}
	putc('\n', stderr);
	report_put_brief(stderr, report);
	json_decref(report);
	fprintf(stderr, "Database %s. More: syncline report %s, syncline serve %s\n",
		plan->services.db, plan->services.db, plan->services.db);
}

int cmd_run(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"db", 'd', "FILE", 0, "database to write (syncline-TIME.db here)", 0},
		{"http", 'a', "ADDR:PORT", 0,
		 "where the dashboard is served (a free port on 127.0.0.1)", 0},
		{"level", 'l', "N", 0,
		 "0 off, 1 steps, 2 phases and buckets (default), 3 layers, 4 GPU", 0},
		{"nproc", KEY_NPROC, "N", 0, "start N ranks of the job on this machine", 0},
		{"collector", 'c', "URL", 0, "use the collector at URL, start none", 0},
		{"dir", KEY_DIR, "DIR", 0, "an agent serves DIR already, start none", 0},
		{"run", KEY_RUN, "ID", 0, "name of the run (made from the time)", 0},
		{"token-file", KEY_TOKEN, "FILE", 0, "token for --collector", 0},
		{"http-token-file", KEY_HTTP_TOKEN, "FILE", 0, "token that browsers must give", 0},
		{0},
	};
	static const struct argp_child children[] = {{&cli_color_argp, 0, 0, 0}, {0}};
	static const struct argp argp = {
		options,
		parse,
		"[--] COMMAND [ARG…]",
		"Run a training job with the probe. The script is not changed; the job's output "
		"and "
		"exit status stay its own (128 + signal when it was killed).\v"
		"A collector and an agent are started and end with the job. When they cannot "
		"start, "
		"the job runs all the same.\n\n"
		"Examples:\n"
		"  syncline run -- torchrun --nproc-per-node 8 train.py\n"
		"  syncline run --nproc 4 train.py --lr 0.1\n"
		"  syncline run --collector tcp://head:7788 -- torchrun … train.py\n",
		children,
		0,
		0};
	struct run_options o = {.plan.services.level = 2};
	char id[64], db[128];
	struct run_outcome outcome;
	struct paths paths;
	char **job;
	int r;

	if (!cli_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &o))
		return EXIT_USAGE;
	run_make_id(id, sizeof id, "");
	if (!o.plan.services.run_id)
		o.plan.services.run_id = id;
	snprintf(db, sizeof db, "syncline-%s.db", id);
	if (!o.plan.services.db)
		o.plan.services.db = db;
	if (!o.plan.services.collector_url && !run_db_is_free(o.plan.services.db))
		return EXIT_UNREACHED;
	r = paths_find(&paths);
	if (r != 0) {
		cli_say("cannot find the other programs of this build: %s", strerror(-r));
		return EXIT_UNREACHED;
	}
	job = argv + o.command;
	if (o.plan.n_ranks > 0) {
		job = ranks_argv(argv + o.command, argc - o.command);
		if (!job)
			return EXIT_UNREACHED;
	}
	o.plan.argv = job;
	r = run_job(&paths, &o.plan, &outcome);
	if (r != 0)
		cli_say("cannot start the job: %s", strerror(-r));
	else if (!outcome.job.not_started)
		put_end(&o.plan, &outcome);
	if (job != argv + o.command)
		free(job);
	return r != 0 ? EXIT_UNREACHED : outcome.job.status;
}
