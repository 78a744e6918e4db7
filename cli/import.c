/* import.c - `syncline import FILE|DIR… --db F`: traces of other tools as a catalogue.
 *
 * What a file is, is seen from what is in it. A file that cannot be read costs only
 * itself: the others are imported, and the exit status says that some are missing. What is
 * no trace at all is a failure where it was named, and skipped where it lay in a folder.
 */
#include "cli.h"
#include "import_db.h"
#include "import_show.h"

#include "../collector/import/feed.h"
#include "../collector/import/import.h"

#include <dirent.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_ARGUMENTS 65536
#define MAX_MEMORY_MIB 65536
#define MAX_JOBS 256
#define CACHE_BYTES (32u << 20)

enum { OPTION_TMP = 256, OPTION_MEMORY };

struct import_options {
	struct import_db db;
	const char *tmp;
	size_t memory_bytes;
	const char **paths;
	uint32_t n_paths;
	unsigned n_jobs; /* 0 = one a core */
	bool json, keep_names, dry_run, verbose;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct import_options *o = state->input;

	switch (key) {
	case 'd':
		o->db.path = arg;
		return 0;
	case 'f':
		o->db.force = true;
		return 0;
	case OPTION_TMP:
		o->tmp = arg;
		return 0;
	case OPTION_MEMORY:
		o->memory_bytes = (size_t)cli_number(state, "--memory", arg, 1, MAX_MEMORY_MIB) << 20;
		return 0;
	case 'j':
		o->json = true;
		return 0;
	case 'k':
		o->keep_names = true;
		return 0;
	case 'n':
		o->dry_run = true;
		return 0;
	case 'v':
		o->verbose = true;
		return 0;
	case 'J':
		o->n_jobs = (unsigned)cli_number(state, "--jobs", arg, 1, MAX_JOBS);
		return 0;
	case ARGP_KEY_ARG:
		if (o->n_paths == MAX_ARGUMENTS)
			argp_error(state, "takes %d files at most; name their folder", MAX_ARGUMENTS);
		o->paths[o->n_paths++] = arg;
		return 0;
	case ARGP_KEY_END:
		if (o->n_paths == 0)
			argp_error(state, "what? Name the files of a trace, or their folder");
		if (!o->db.path && !o->dry_run)
			argp_error(state, "where to? Name a new file with --db");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- a name that is not there ---- */

/* The name in the same folder that is nearest to it. */
static bool find_near(const char *path, char *out, size_t n_out)
{
	char *a = strdup(path), *b = strdup(path);
	const char *folder = a ? dirname(a) : ".", *name = b ? basename(b) : "";
	DIR *dir = opendir(folder);
	size_t best = 3; /* further away is no misspelling */
	const struct dirent *e;

	while (dir && (e = readdir(dir))) {
		size_t d = cli_distance(name, e->d_name);

		if (d < best && e->d_name[0] != '.') {
			best = d;
			snprintf(out, n_out, "%.100s", e->d_name);
		}
	}
	if (dir)
		closedir(dir);
	free(a);
	free(b);
	return best < 3;
}

static void help_typos(struct files *f)
{
	for (uint32_t i = 0; i < f->n && i < 16; i++) {
		struct trace_input *in = &f->v[i];
		size_t n = strlen(in->outcome);
		char near[101];

		if (in->settled && !in->found && access(in->path, F_OK) != 0 && find_near(in->path, near, sizeof near))
			snprintf(in->outcome + n, sizeof in->outcome - n, ". Did you mean %s?", near);
	}
}

/* ---- the work ---- */

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

/* Where what has no room in memory goes: beside the catalogue, which needs as much room itself. */
static void find_tmp(const struct import_options *o, char *out, size_t n_out)
{
	const char *of_user = getenv("TMPDIR"), *db = o->db.path, *slash = db ? strrchr(db, '/') : NULL;

	if (o->tmp || (of_user && of_user[0]))
		snprintf(out, n_out, "%s", o->tmp ? o->tmp : of_user);
	else if (slash)
		snprintf(out, n_out, "%.*s", (int)(slash - db) + 1, db);
	else
		snprintf(out, n_out, "%s", db ? "." : "/tmp");
}

static bool gather(const struct import_options *o, struct files *f)
{
	char tmp[4096];
	bool fine = true;

	find_tmp(o, tmp, sizeof tmp);
	f->tmp = tmp;
	for (uint32_t i = 0; i < o->n_paths && fine; i++)
		fine = files_add(f, o->paths[i]);
	f->tmp = NULL;
	help_typos(f);
	return fine && files_skip_copies(f);
}

static int import(struct import_options *o, struct trace *t, struct files *f)
{
	bool terminal = isatty(STDERR_FILENO), fine;
	struct import_show show = { .files = f };
	const struct import_progress progress = { terminal ? import_show_read : NULL, &show };
	char run_id[64], why[5000] = "", tmp[4096];
	struct import_result r = { .db = o->db.path, .why = why };

	fine = import_db_check(&o->db, why, sizeof why);
	if (!fine) {
		cli_say("%s", why);
		return EXIT_UNREACHED;
	}
	find_tmp(o, tmp, sizeof tmp);
	t->spill = spill_new(tmp, o->memory_bytes);
	if (!t->spill || !gather(o, f)) {
		fine = false;
		snprintf(why, sizeof why, "there is not enough memory");
	} else if (!import_files(t, f->v, f->n, o->n_jobs, &progress) || !import_join(t, f->v, f->n)) {
		fine = false;
		trace_explain(t, why, sizeof why);
	}
	import_count(f, &r);
	run_id_of(o->db.path, run_id, sizeof run_id);
	if (fine && r.n_fine > 0)
		fine = trace_feed(t,
				  &(struct feed_config){ .db = o->db.part, .run_id = run_id, .inputs = f->v,
							 .n_inputs = f->n, .keep_names = o->keep_names,
							 .cache_bytes = o->memory_bytes < CACHE_BYTES ? o->memory_bytes : CACHE_BYTES,
							 .progress = terminal ? import_show_feed : NULL, .arg = &show },
				  why, sizeof why) == 0 &&
		       import_db_finish(&o->db, why, sizeof why);
	if (terminal)
		import_show_end();
	r.n_ranks = t->n_ranks;
	if (o->json)
		import_put_json(f, &r);
	else
		import_put_text(f, &r, o->verbose);
	if (!fine)
		cli_say("%s", why);
	else if (r.n_fine == 0)
		cli_say(r.n_failed ? "no file could be imported" : "there is no trace in what was named");
	return !fine || r.n_fine == 0 ? EXIT_UNREACHED : r.n_failed > 0 ? EXIT_INCOMPLETE : EXIT_FINE;
}

/* What each looks like by its begin, which costs nothing. */
static int look(const struct import_options *o, struct files *f)
{
	struct import_result r = { .why = "" };

	if (!gather(o, f)) {
		cli_say("there is not enough memory");
		return EXIT_UNREACHED;
	}
	for (uint32_t i = 0; i < f->n; i++) {
		struct trace_input *in = &f->v[i];

		if (in->settled)
			continue;
		in->format = files_look(in, in->outcome, sizeof in->outcome);
		in->fine = in->format != NULL;
		in->skipped = !in->fine && in->found;
		if (in->fine)
			snprintf(in->outcome, sizeof in->outcome, "not read yet");
	}
	import_count(f, &r);
	if (o->json)
		import_put_json(f, &r);
	else
		import_put_text(f, &r, o->verbose);
	return r.n_fine == 0 ? EXIT_UNREACHED : r.n_failed > 0 ? EXIT_INCOMPLETE : EXIT_FINE;
}

int cmd_import(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"db", 'd', "FILE", 0, "the catalogue to make; it must not be there yet", 0},
		{"force", 'f', 0, 0, "replace a database that is there, once the new one is whole", 0},
		{"keep-names", 'k', 0, 0,
		 "store names of users and hosts, addresses and home folders as they are; else they are marks", 0},
		{"dry-run", 'n', 0, 0, "only say what each file looks like; needs no --db", 0},
		{"list", 'n', 0, OPTION_ALIAS, NULL, 0},
		{"tmp", OPTION_TMP, "DIR", 0, "what does not fit into memory is kept here meanwhile, in files without a "
		 "name (default: $TMPDIR, else the database's folder)", 0},
		{"memory", OPTION_MEMORY, "MIB", 0, "how much of what is read may be in memory at once (default: 48)", 0},
		{"jobs", 'J', "N", 0, "files that are read at once; else as many as there are cores", 0},
		{"json", 'j', 0, 0, "what came of each file, as one JSON object", 0},
		{"verbose", 'v', 0, 0, "say, too, what was hidden and so not looked at", 0},
		{0},
	};
	static const struct argp_child children[] = {{&cli_color_argp, 0, 0, 0}, {0}};
	static const struct argp argp = {
		options,
		parse,
		"FILE|FOLDER…",
		"Read traces that other tools made of one job into a new database, as if the job had "
		"been traced. What a file is, is seen from what is in it; packed files are unpacked. Folders are "
		"walked; what in them is no trace is skipped. docs/import.md has the formats.\v"
		"Exit status: 0 all files were read, 5 some were not, 2 wrong use, 3 none was, or the database "
		"cannot be made.\n\n"
		"Examples:\n"
		"  syncline import trace/rank*.json.gz --db job.db\n"
		"  syncline import recordings/ --list\n"
		"  syncline import timeline.json --db job.db && syncline report job.db\n",
		children,
		0,
		0};
	struct import_options o = { .paths = calloc((size_t)argc + 1, sizeof *o.paths),
				    .memory_bytes = SPILL_MEMORY_BYTES };
	struct files f = { 0 };
	struct trace t;
	int status = EXIT_USAGE;

	trace_init(&t);
	if (o.paths && cli_parse(&argp, argc, argv, 0, NULL, &o))
		status = o.dry_run ? look(&o, &f) : import(&o, &t, &f);
	trace_fini(&t);
	files_fini(&f);
	free(o.paths);
	return status;
}
