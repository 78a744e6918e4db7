#include "options.h"

#include "clock.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXIT_USAGE 2
#define EXIT_CANNOT 3

const char *argp_program_version = "syncline-agent " SYNCLINE_VERSION;

static const char doc[] =
	"Ship what the training processes of this host record to a syncline-collector.\v"
	"One agent serves all ranks of a host or pod. It ends by itself when they are gone and "
	"all of it is acknowledged. What the collector has not acknowledged stays in the spool; "
	"the next agent of the same run ships it.\n\n"
	"Exit status: 0 everything was acknowledged; 2 wrong usage; 3 the collector could not be "
	"reached or refused us (the spool is kept).\n\n"
	"Example:\n  syncline-agent --collector tcp://head:7788 --token-file /run/syncline/token";

enum { OPT_SPOOL_BYTES = 256, OPT_KEEP, OPT_WAIT, OPT_TOKEN, OPT_SPOOL, OPT_RUN, OPT_LEVEL,
       OPT_LINGER };

static const struct argp_option list[] = {
	{ "collector", 'c', "URL", 0, "tcp://HOST:PORT or ipc:///PATH ($SYNCLINE_COLLECTOR)", 0 },
	{ "dir", 'd', "DIR", 0,
	  "where the processes' files are ($SYNCLINE_DIR, /dev/shm/syncline-UID)", 0 },
	{ "run", OPT_RUN, "ID", 0, "the run to serve ($SYNCLINE_RUN, or the first process's)", 0 },
	{ "token-file", OPT_TOKEN, "FILE", 0,
	  "the collector's token ($SYNCLINE_TOKEN_FILE, $SYNCLINE_TOKEN)", 0 },
	{ "spool", OPT_SPOOL, "DIR", 0,
	  "where unacknowledged batches are kept, not on a tmpfs "
	  "($XDG_STATE_HOME/syncline, /var/tmp/syncline-UID)",
	  0 },
	{ "spool-bytes", OPT_SPOOL_BYTES, "N", 0,
	  "at most this much of it, K, M or G may follow (256M); the oldest goes first", 0 },
	{ "level", OPT_LEVEL, "0..4", 0, "what to record until the collector says otherwise", 0 },
	{ "wait", OPT_WAIT, "SECONDS", 0,
	  "give up when the collector has not answered by then (try for ever)", 0 },
	{ "linger", OPT_LINGER, "SECONDS", 0,
	  "stay this long after the last process is gone (1; 10 when one died: a launcher may "
	  "start it again)",
	  0 },
	{ "keep", OPT_KEEP, 0, 0, "stay when all processes are gone", 0 },
	{ "quiet", 'q', 0, 0, "say only why it cannot go on", 0 },
	{ 0 },
};

static void bad(struct argp_state *state, const char *what, const char *arg, const char *want)
{
	argp_error(state, "%s \"%s\" is not %s", what, arg, want);
}

static int64_t seconds(struct argp_state *state, const char *what, const char *arg)
{
	char *end;
	double s = strtod(arg, &end);

	if (end == arg || *end || !(s >= 0 && s < 1e9))
		bad(state, what, arg, "a number of seconds");
	return (int64_t)(s * 1e9);
}

static bool parse_bytes(const char *s, uint64_t *ret)
{
	char *end;
	unsigned shift = 0;
	unsigned long long v;

	errno = 0;
	v = strtoull(s, &end, 10);
	if (end == s || errno != 0 || *s == '-')
		return false;
	switch (*end) {
	case 'K':
	case 'k':
		shift = 10;
		end++;
		break;
	case 'M':
	case 'm':
		shift = 20;
		end++;
		break;
	case 'G':
	case 'g':
		shift = 30;
		end++;
		break;
	default:
		break;
	}
	if (*end || v > UINT64_MAX >> shift)
		return false;
	*ret = (uint64_t)v << shift;
	return true;
}

static _Noreturn void cannot(const char *what, const char *path, const char *why, const char *next)
{
	say_fatal("cannot read %s %s: %s; %s", what, path, why, next);
	exit(EXIT_CANNOT);
}

/* The token is the file without its last line end. */
static void read_token(struct options *o, const char *path)
{
	FILE *f = fopen(path, "re");
	size_t n;

	if (!f)
		cannot("the token file", path, strerror(errno),
		       "give --token-file a file that this user may read");
	n = fread(o->token, 1, sizeof o->token, f);
	fclose(f);
	while (n > 0 && n < sizeof o->token &&
	       (o->token[n - 1] == '\n' || o->token[n - 1] == '\r'))
		n--;
	if (n == 0 || n == sizeof o->token || memchr(o->token, 0, n))
		cannot("the token file", path, "a token has 1 to 256 bytes and no zero byte",
		       "write the token into it as one line");
	o->token[n] = 0;
}

static error_t on_option(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case 'c':
		o->collector = arg;
		break;
	case 'd':
		o->dir = arg;
		break;
	case OPT_RUN:
		o->run = arg;
		break;
	case OPT_TOKEN:
		read_token(o, arg);
		break;
	case OPT_SPOOL:
		o->spool = arg;
		break;
	case OPT_SPOOL_BYTES:
		if (!parse_bytes(arg, &o->spool_bytes) || o->spool_bytes < SPOOL_MIN_BYTES)
			bad(state, "--spool-bytes", arg, "a size of 1M or more");
		break;
	case OPT_LEVEL:
		if (arg[0] < '0' || arg[0] > '0' + LEVEL_MAX || arg[1])
			bad(state, "--level", arg, "a number from 0 to 4");
		o->level = arg[0] - '0';
		break;
	case OPT_WAIT:
		o->wait_ns = seconds(state, "--wait", arg);
		break;
	case OPT_LINGER:
		o->linger_ns = seconds(state, "--linger", arg);
		break;
	case OPT_KEEP:
		o->keep = true;
		break;
	case 'q':
		o->quiet = true;
		break;
	case ARGP_KEY_ARG:
		argp_error(state, "\"%s\" is one argument too many: all of them are options", arg);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const char *from_env(const char *name)
{
	const char *v = getenv(name);

	return v && *v ? v : NULL;
}

void options_parse(struct options *o, int argc, char **argv)
{
	static const struct argp argp = { list, on_option, 0, doc, 0, 0, 0 };
	const char *v;
	char *made;

	*o = (struct options){ .level = -1,
				.linger_ns = -1,
				.spool_bytes = SPOOL_DEFAULT_BYTES };
	argp_err_exit_status = EXIT_USAGE;
	o->collector = from_env("SYNCLINE_COLLECTOR");
	o->dir = from_env("SYNCLINE_DIR");
	o->run = from_env("SYNCLINE_RUN");
	argp_parse(&argp, argc, argv, 0, NULL, o);

	if (!o->token[0] && (v = from_env("SYNCLINE_TOKEN_FILE")))
		read_token(o, v);
	if (!o->token[0] && (v = from_env("SYNCLINE_TOKEN"))) {
		if (strlen(v) >= sizeof o->token) {
			say_fatal("SYNCLINE_TOKEN is longer than the 256 bytes that a token has");
			exit(EXIT_USAGE);
		}
		strcpy(o->token, v);
	}
	v = from_env("SYNCLINE_TEST_CLOCK");
	if (v && !clock_bend_by(v)) {
		say_fatal("SYNCLINE_TEST_CLOCK \"%s\" is not a clock; it is for tests alone", v);
		exit(EXIT_USAGE);
	}
	if (!o->collector) {
		say_fatal("which collector? give --collector tcp://HOST:7788 or set "
			  "SYNCLINE_COLLECTOR");
		exit(EXIT_USAGE);
	}
	if (o->run && strlen(o->run) > FRAME_MAX_ID - 1) {
		say_fatal("the run id \"%.80s\" is longer than %d bytes", o->run, FRAME_MAX_ID - 1);
		exit(EXIT_USAGE);
	}
	if (!o->dir && asprintf(&made, "/dev/shm/syncline-%u", (unsigned)getuid()) > 0)
		o->dir = made;
	v = from_env("XDG_STATE_HOME");
	if (!o->spool && v && asprintf(&made, "%s/syncline", v) > 0)
		o->spool = made;
	if (!o->spool && asprintf(&made, "/var/tmp/syncline-%u", (unsigned)getuid()) > 0)
		o->spool = made;
}
