/* sim.c - `syncline sim SPEC.json --db F`: a case played through the whole pipeline.
 *
 * The spec says what each rank does; what comes of it is a catalogue like that of
 * a live job, with a known truth to hold the verdicts against.
 */
#include "cli.h"
#include "term.h"

#include "../sim/sim.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

struct sim_options {
	const char *spec, *db;
	double noise;
	uint64_t seed;
	bool json;
};

static double parse_noise(struct argp_state *state, const char *text)
{
	char *end;
	double v;

	errno = 0;
	v = strtod(text, &end);
	if (errno != 0 || end == text || *end != '\0' || !(v >= 0 && v < 1))
		argp_error(state, "--noise is a number from 0 to less than 1, not '%s'", text);
	return v;
}

static uint64_t parse_seed(struct argp_state *state, const char *text)
{
	unsigned long long v;
	char *end;

	errno = 0;
	v = strtoull(text, &end, 10);
	if (errno != 0 || *text < '0' || *text > '9' || *end != '\0')
		argp_error(state, "--seed is a whole number from 0 to 2^64 - 1, not '%s'", text);
	return v;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct sim_options *o = state->input;

	switch (key) {
	case 'd':
		o->db = arg;
		return 0;
	case 'n':
		o->noise = parse_noise(state, arg);
		return 0;
	case 's':
		o->seed = parse_seed(state, arg);
		return 0;
	case 'j':
		o->json = true;
		return 0;
	case ARGP_KEY_ARG:
		if (o->spec)
			argp_error(state, "plays one case, got '%s' and '%s'", o->spec, arg);
		o->spec = arg;
		return 0;
	case ARGP_KEY_END:
		if (!o->spec)
			argp_error(state, "which case? Name its JSON file");
		if (!o->db)
			argp_error(state, "where to? Name a new file with --db");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* The whole file, one byte more than is allowed at most. NULL after a sentence. */
static char *read_spec(const char *path, size_t *ret_n)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *text = malloc(SPEC_MAX_BYTES + 1);
	ssize_t got = fd < 0 ? -1 : 0;
	size_t n = 0;

	while (text && fd >= 0 && n < SPEC_MAX_BYTES + 1) {
		got = read(fd, text + n, SPEC_MAX_BYTES + 1 - n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		n += (size_t)got;
	}
	if (!text || got < 0) {
		cli_say("cannot read %s: %s", path, strerror(text ? errno : ENOMEM));
		free(text);
		text = NULL;
	}
	if (fd >= 0)
		close(fd);
	*ret_n = n;
	return text;
}

static void say(const char *sentence)
{
	cli_say("%s", sentence);
}

static void put_json(const struct sim_options *o, const struct play *p, const struct sim_result *v)
{
	json_t *j = json_pack("{s:s, s:s, s:I, s:I, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "id",
			      p->spec->id, "db", o->db, "world", (json_int_t)p->spec->world, "seed",
			      (json_int_t)o->seed, "noise", o->noise, "end_ns",
			      (json_int_t)p->end_ns, "observed_ns", (json_int_t)v->end_ns,
			      "ranks_left", (json_int_t)v->n_left, "work_stuck",
			      (json_int_t)p->n_stuck, "events", (json_int_t)v->n_events, "texts",
			      (json_int_t)v->n_texts, "gauges", (json_int_t)v->n_gauges);

	json_dumpf(j, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
	putchar('\n');
	json_decref(j);
}

static void put_text(const struct sim_options *o, const struct play *p, const struct sim_result *v)
{
	char took[32];

	term_put(stdout, p->spec->id);
	printf(": %" PRIu32 " ranks, the last work ends at %s, %" PRIu64 " events, %" PRIu64
	       " texts, %" PRIu64 " gauges.\n",
	       p->spec->world, term_ns(p->end_ns, took, sizeof took), v->n_events, v->n_texts,
	       v->n_gauges);
	if (v->n_left < p->spec->world)
		printf("%" PRIu32 " ranks do not end.\n", p->spec->world - v->n_left);
	printf("What it says: syncline report ");
	term_put(stdout, o->db);
	putchar('\n');
}

static int tell(const struct sim_options *o, const struct play *p)
{
	struct sim_config cfg = { .db = o->db, .seed = o->seed, .say = say };
	struct sim_result result;
	char why[5000];
	int r = sim_tell(&result, p, &cfg, why, sizeof why);

	if (r != SIM_OK) {
		cli_say("%s", r == SIM_FAILED ? why : "there is not enough memory");
		return EXIT_UNREACHED;
	}
	if (o->json)
		put_json(o, p, &result);
	else
		put_text(o, p, &result);
	return EXIT_FINE;
}

static int play(const struct sim_options *o, struct spec *s)
{
	struct play *p = NULL;
	char why[600];
	int r, status;

	if (o->noise > 0)
		spec_add_noise(s, o->noise, o->seed);
	if (s->remark[0])
		cli_say("%s: %s", o->spec, s->remark);
	r = play_run(&p, s, 0, why, sizeof why);
	if (r != PLAY_OK) {
		cli_say("%s cannot be played: %s", o->spec,
			r == PLAY_REFUSED ? why : "there is not enough memory");
		return EXIT_UNREACHED;
	}
	status = tell(o, p);
	play_free(p);
	return status;
}

int cmd_sim(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"db", 'd', "FILE", 0, "the catalogue to make; it must not be there yet", 0},
		{"noise", 'n', "X", 0,
		 "every duration times 1 + u, u evenly in ±X, for example 0.05", 0},
		{"seed", 's', "S", 0, "of the noise and of clock exchanges (0)", 0},
		{"json", 'j', 0, 0, "what was played, as one JSON object", 0},
		{0},
	};
	static const struct argp argp = {
		options,
		parse,
		"SPEC",
		"Play a case: simulated ranks do what SPEC says, in virtual time, and all that "
		"probes would say of it goes through collector, analysis and store into a new "
		"database. The same case, noise and seed give the same database.\v"
		"Examples:\n"
		"  syncline sim case.json --db case.db\n"
		"  syncline report case.db\n"
		"  syncline sim case.json --db noisy.db --noise 0.05 --seed 7\n",
		0,
		0,
		0};
	struct sim_options o = {0};
	struct spec *s = NULL;
	size_t n_bytes;
	char why[600], *text;
	int r, status;

	if (!cli_parse(&argp, argc, argv, 0, NULL, &o))
		return EXIT_USAGE;
	text = read_spec(o.spec, &n_bytes);
	if (!text)
		return EXIT_UNREACHED;
	r = spec_parse(&s, text, n_bytes, why, sizeof why);
	free(text);
	if (r != SPEC_OK) {
		cli_say("%s is no case: %s", o.spec,
			r == SPEC_REFUSED ? why : "there is not enough memory");
		return EXIT_UNREACHED;
	}
	status = play(&o, s);
	spec_free(s);
	return status;
}
