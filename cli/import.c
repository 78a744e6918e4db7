/* import.c - `syncline import FILE… --db F`: traces of other tools as a catalogue.
 *
 * What a file is, is seen from what is in it. A file that cannot be read costs only
 * itself: the others are imported, and the exit status says that some are missing.
 */
#include "cli.h"
#include "term.h"

#include "../collector/import/feed.h"
#include "../collector/import/import.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#define MAX_FILES 65536

struct import_options {
	const char *db;
	const char **files;
	uint32_t n_files;
	unsigned n_jobs; /* 0 = one a core */
	bool json;
};

static bool parse_jobs(const char *arg, unsigned *ret)
{
	char *end;
	unsigned long v = strtoul(arg, &end, 10);

	*ret = (unsigned)v;
	return *end == '\0' && arg[0] >= '1' && arg[0] <= '9' && v <= 256;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct import_options *o = state->input;

	switch (key) {
	case 'd':
		o->db = arg;
		return 0;
	case 'j':
		o->json = true;
		return 0;
	case 'J':
		if (!parse_jobs(arg, &o->n_jobs))
			argp_error(state, "--jobs is a number from 1 to 256");
		return 0;
	case ARGP_KEY_ARG:
		if (o->n_files == MAX_FILES)
			argp_error(state, "takes %d files at most", MAX_FILES);
		o->files[o->n_files++] = arg;
		return 0;
	case ARGP_KEY_END:
		if (o->n_files == 0)
			argp_error(state, "what? Name the files of a trace");
		if (!o->db)
			argp_error(state, "where to? Name a new file with --db");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- progress ---- */

static void show(const char *what, const char *path, double share)
{
	const char *name = path ? strrchr(path, '/') : NULL;

	fprintf(stderr, "\r\033[K%s ", what);
	if (path)
		term_put(stderr, name ? name + 1 : path);
	fprintf(stderr, " %3.0f %%", 100 * (share < 1 ? share : 1));
	fflush(stderr);
}

static void on_read(void *arg, const char *path, double share)
{
	(void)arg;
	show("Reading", path, share);
}

static void on_feed(void *arg, double share)
{
	double *told = arg;

	if (share - *told < 0.01)
		return;
	*told = share;
	show("Analysing", NULL, share);
}

static void end_progress(bool terminal)
{
	if (terminal)
		fprintf(stderr, "\r\033[K");
}

/* ---- what came of it ---- */

static void put_json(const struct import_options *o, const struct trace *t,
		     const struct trace_input *inputs, const char *why)
{
	json_t *list = json_array(), *j;

	for (uint32_t i = 0; i < o->n_files; i++) {
		const struct trace_input *in = &inputs[i];
		json_t *v = json_pack("{s:s+, s:s?, s:b, s:s, s:I}", "file", in->path, "", "format",
				      in->format, "ok", (int)in->fine, "outcome", in->outcome, "events",
				      (json_int_t)in->n_events);

		if (!v) /* a name that is no text */
			v = json_pack("{s:n, s:s?, s:b, s:s, s:I}", "file", "format", in->format, "ok",
				      (int)in->fine, "outcome", in->outcome, "events",
				      (json_int_t)in->n_events);
		json_object_set_new(v, "rank", in->rank >= 0 ? json_integer(in->rank) : json_null());
		json_array_append_new(list, v);
	}
	j = json_pack("{s:s, s:i, s:s?, s:o}", "db", o->db, "ranks", (int)t->n_ranks, "error",
		      why[0] ? why : NULL, "inputs", list);
	json_dumpf(j, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
	putchar('\n');
	json_decref(j);
}

static void put_text(const struct import_options *o, const struct trace *t,
		     const struct trace_input *inputs)
{
	uint32_t n_fine = 0;

	for (uint32_t i = 0; i < o->n_files; i++) {
		const struct trace_input *in = &inputs[i];

		n_fine += in->fine;
		term_put(stdout, in->path);
		if (in->fine)
			printf(": %s, %" PRIu64 " events", in->format, in->n_events);
		if (in->fine && in->rank >= 0)
			printf(", rank %" PRId64, in->rank);
		if (!in->fine || strcmp(in->outcome, "ok") != 0) {
			fputs(in->fine ? "; " : " ", stdout);
			term_put(stdout, in->outcome);
		}
		putchar('\n');
	}
	if (n_fine == 0)
		return;
	printf("%" PRIu32 " of %" PRIu32 " files, %" PRIu32 " ranks. What they say: syncline report ", n_fine,
	       o->n_files, t->n_ranks);
	term_put(stdout, o->db);
	putchar('\n');
}

/* The catalogue's name without its folder and ending. */
static void run_id_of(const char *db, char *out, size_t n_out)
{
	const char *name = strrchr(db, '/');
	char *dot;

	snprintf(out, n_out, "%s", name ? name + 1 : db);
	dot = strrchr(out, '.');
	if (dot && dot != out)
		*dot = '\0';
}

static int import(const struct import_options *o, struct trace *t, struct trace_input *inputs)
{
	bool terminal = isatty(STDERR_FILENO), fine;
	struct import_progress progress = { terminal ? on_read : NULL, NULL };
	uint32_t n_fine = 0;
	double told = 0;
	char run_id[64], why[5000] = "";

	for (uint32_t i = 0; i < o->n_files; i++)
		inputs[i].path = o->files[i];
	fine = import_files(t, inputs, o->n_files, o->n_jobs, &progress) && import_join(t, inputs, o->n_files);
	for (uint32_t i = 0; i < o->n_files; i++)
		n_fine += inputs[i].fine;
	if (!fine)
		snprintf(why, sizeof why, "there is not enough memory");
	run_id_of(o->db, run_id, sizeof run_id);
	if (fine && n_fine > 0)
		fine = trace_feed(t,
				  &(struct feed_config){ .db = o->db, .run_id = run_id, .inputs = inputs,
							 .n_inputs = o->n_files,
							 .progress = terminal ? on_feed : NULL, .arg = &told },
				  why, sizeof why) == 0;
	end_progress(terminal);
	if (o->json)
		put_json(o, t, inputs, why);
	else if (fine)
		put_text(o, t, inputs);
	if (!fine) {
		cli_say("%s", why);
		return EXIT_UNREACHED;
	}
	if (n_fine == 0)
		cli_say("no file could be imported");
	return n_fine == 0 ? EXIT_UNREACHED : n_fine < o->n_files ? EXIT_INCOMPLETE : EXIT_FINE;
}

int cmd_import(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"db", 'd', "FILE", 0, "the catalogue to make; it must not be there yet", 0},
		{"jobs", 'J', "N", 0, "files that are read at once; else as many as there are cores", 0},
		{"json", 'j', 0, 0, "what came of each file, as one JSON object", 0},
		{0},
	};
	static const struct argp argp = {
		options,
		parse,
		"FILE…",
		"Read traces that other tools made of one job into a new database, as if the job had "
		"been traced: PyTorch profiler (Kineto) traces, one file a rank, and timelines of "
		"StragglerAnalysis, one file a job. What a file is, is seen from what is in it; "
		"gzip is unpacked.\v"
		"Exit status: 0 all files were read, 5 some were not, 3 none was, or the database "
		"cannot be made.\n\n"
		"Examples:\n"
		"  syncline import trace/rank*.json.gz --db job.db\n"
		"  syncline import timeline.json --db job.db && syncline report job.db\n",
		0,
		0,
		0};
	struct import_options o = { .files = calloc((size_t)argc + 1, sizeof *o.files) };
	struct trace_input *inputs = NULL;
	struct trace t;
	int status = EXIT_USAGE;

	trace_init(&t);
	if (o.files && cli_parse(&argp, argc, argv, 0, NULL, &o)) {
		inputs = calloc((size_t)o.n_files + 1, sizeof *inputs);
		status = EXIT_UNREACHED;
		if (inputs)
			status = import(&o, &t, inputs);
		else
			cli_say("there is not enough memory");
	}
	trace_fini(&t);
	free(inputs);
	free(o.files);
	return status;
}
