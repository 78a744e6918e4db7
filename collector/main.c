/* main.c - syncline-collector: options, the loop, and an orderly end.
 *
 *   NNG threads          loop thread (this one)               store threads
 *  ┌────────────┐ queue ┌──────────────────────────────┐ queue ┌────────────┐
 *  │ receive,   │──────▶│ inbox → ingest → core        │──────▶│ writer:    │
 *  │ stamp time │ async │   (align → match → graph     │       │ one trans- │
 *  │            │◀──────│    → verdict, heat)          │◀──────│ action a   │
 *  │ send       │ reply │ HTTP (libmicrohttpd's fd)    │ async │ group      │
 *  └────────────┘       │ clock probes (UDP)           │       ├────────────┤
 *                       │ timer 20 Hz, signals         │       │            │
 *                       └──────────────┬───────────────┘       │ checkpoint │
 *                                      │ uv_queue_work         └────────────┘
 *                                      ▼
 *                         libuv workers: read-only SQL for HTTP
 *
 * The loop thread owns all state and never waits for the disk. A batch's answer
 * leaves when the writer says that it is committed; a heartbeat's at once.
 *
 * The end: stop receiving, take what waits for its turn, commit, answer, leave.
 */
#include "clk.h"
#include "core.h"
#include "heat.h"
#include "inbox.h"
#include "ingest.h"
#include "responder.h"
#include "../proto/frame.h"
#include "../proto/said.h"
#include "serve/serve.h"
#include "store/store.h"

#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXIT_USAGE 2
#define EXIT_UNREACHED 3
#define DEFAULT_LISTEN "tcp://127.0.0.1:7788"
#define DEFAULT_HTTP "127.0.0.1:7780"
#define TICK_MS 50
#define STOP_DEADLINE_MS 10000
#define TROUBLE_EVERY_NS INT64_C(30000000000) /* a disk at its brim fills again and again */
#define FINE_AFTER_NS INT64_C(2000000000)
#define MAX_TOKEN 64
#define MAX_RUN_ID 64
#define MAX_HTTP_HOSTS 16

struct options {
	const char *db, *listen, *http, *run_id;
	const char *token_file, *http_token_file;
	const char *http_hosts[MAX_HTTP_HOSTS];
	size_t n_http_hosts;
	uint32_t probe_port; /* 0 = as the control port */
	bool no_probes;
	unsigned n_peers;
	int ready_fd; /* -1 = none */
	uint32_t level; /* UINT32_MAX = no opinion */
	bool read_only;
};

struct collector {
	struct options opt;
	char db_path[4096];
	char token[MAX_TOKEN + 1], http_token[MAX_TOKEN + 1]; /* "" = none */

	uv_loop_t loop;
	uv_timer_t tick;
	uv_signal_t on_term, on_int;
	struct store *store;
	struct core *core;
	struct ingest *ingest;
	struct inbox *inbox;
	struct responder *responder; /* NULL: no clock probes are taken */
	struct serve *serve;

	bool is_new; /* the catalogue was made by this start */
	bool stopping;
	int status;
	uint64_t n_drops_told;
	int64_t clock_error_told_ns;
	int trouble_told; /* 0 = the user knows of none */
	int64_t trouble_told_ns, fine_since_ns; /* raw; FACT_NONE = never, not yet */
};

static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("syncline-collector: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
}

/* --- options ------------------------------------------------------------- */

enum { OPT_HTTP_TOKEN_FILE = 256, OPT_HTTP_HOST, OPT_READY_FD, OPT_READ_ONLY,
       OPT_PROBE_PORT, OPT_PEERS };

static const struct argp_option option_table[] = {
	{ "db", 'd', "FILE", 0, "catalogue of the run; a directory means FILE = its <run id>.db", 0 },
	{ "listen", 'l', "URL", 0,
	  "where agents connect: tcp://ADDRESS:PORT (and the next port) or ipc:///PATH (default "
	  DEFAULT_LISTEN "; port 0 picks a free pair)", 0 },
	{ "http", 'a', "ADDRESS:PORT", 0, "where the page is served (default " DEFAULT_HTTP "; port 0 picks "
	  "a free one)", 0 },
	{ "run", 'r', "ID", 0, "run id; agents of another run are refused (default: the first agent's)", 0 },
	{ "token-file", 't', "FILE", 0, "token that agents must bring (or SYNCLINE_TOKEN_FILE, "
	  "SYNCLINE_TOKEN)", 0 },
	{ "http-token-file", OPT_HTTP_TOKEN_FILE, "FILE", 0,
	  "token that browsers must bring (or SYNCLINE_HTTP_TOKEN_FILE; else the agents' token when "
	  "other hosts can reach the page)", 0 },
	{ "http-host", OPT_HTTP_HOST, "NAME", 0,
	  "a further name that browsers reach the page by, as behind an ingress; may be repeated", 0 },
	{ "probe-port", OPT_PROBE_PORT, "N", 0,
	  "UDP port for the agents' clock probes (default: the number of the --listen port, or any free "
	  "one when that is taken; 0: take none, clocks are then estimated from the stream)", 0 },
	{ "peers", OPT_PEERS, "K", 0,
	  "let every agent probe the clocks of K others too, chosen at random, as a check of all estimates "
	  "(0 to 8; default 0)", 0 },
	{ "level", 'L', "N", 0, "what probes record, 0 to 4 (default: what they and their agents say)", 0 },
	{ "ready-fd", OPT_READY_FD, "N", 0, "write one line of JSON to this descriptor once it serves", 0 },
	{ "read-only", OPT_READ_ONLY, NULL, 0, "serve an existing catalogue, never write it", 0 },
	{ 0 },
};

static unsigned long parse_number(struct argp_state *state, const char *what, const char *arg,
				  unsigned long max)
{
	unsigned long v;
	char *end;

	errno = 0;
	v = strtoul(arg, &end, 10);
	if (*arg < '0' || *arg > '9' || *end || errno || v > max)
		argp_error(state, "%s is a number from 0 to %lu, not '%s'", what, max, arg);
	return v;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case 'd':
		o->db = arg;
		return 0;
	case 'l':
		o->listen = arg;
		return 0;
	case 'a':
		o->http = arg;
		return 0;
	case 'r':
		if (!*arg || strlen(arg) > MAX_RUN_ID)
			argp_error(state, "a run id has 1 to %d characters", MAX_RUN_ID);
		o->run_id = arg;
		return 0;
	case 't':
		o->token_file = arg;
		return 0;
	case 'L':
		o->level = (uint32_t)parse_number(state, "--level", arg, LEVEL_MAX);
		return 0;
	case OPT_PROBE_PORT:
		o->probe_port = (uint32_t)parse_number(state, "--probe-port", arg, 65535);
		o->no_probes = o->probe_port == 0;
		return 0;
	case OPT_PEERS:
		o->n_peers = (unsigned)parse_number(state, "--peers", arg, FRAME_MAX_PEERS);
		return 0;
	case OPT_HTTP_TOKEN_FILE:
		o->http_token_file = arg;
		return 0;
	case OPT_HTTP_HOST:
		if (o->n_http_hosts == MAX_HTTP_HOSTS)
			argp_error(state, "--http-host can be given %d times", MAX_HTTP_HOSTS);
		o->http_hosts[o->n_http_hosts++] = arg;
		return 0;
	case OPT_READY_FD:
		o->ready_fd = (int)parse_number(state, "--ready-fd", arg, 65535);
		return 0;
	case OPT_READ_ONLY:
		o->read_only = true;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "'%s' is not expected here; the catalogue is named with --db", arg);
		return EINVAL;
	case ARGP_KEY_END:
		if (!o->db)
			argp_error(state, "which catalogue? Name it with --db FILE");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void print_version(FILE *stream, struct argp_state *state)
{
	(void)state;
	fprintf(stream, "syncline-collector %s\n", SYNCLINE_VERSION);
}

static bool is_token_byte(unsigned char c)
{
	return c > 0x20 && c < 0x7f;
}

/* The first line of the file. False after a sentence. */
static bool read_token_file(const char *path, char out[MAX_TOKEN + 1])
{
	char buf[MAX_TOKEN + 3];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, sizeof buf - 1);
	int e = errno;

	if (fd >= 0)
		close(fd);
	if (n < 0) {
		say("cannot read the token file %s: %s. Check its path and mode.", path, strerror(e));
		return false;
	}
	buf[n] = '\0';
	n = (ssize_t)strcspn(buf, "\r\n");
	buf[n] = '\0';
	for (ssize_t i = 0; i < n; i++)
		if (!is_token_byte((unsigned char)buf[i]))
			n = 0;
	if (n == 0 || n > MAX_TOKEN) {
		say("the token file %s must begin with a line of 1 to %d visible ASCII characters.", path,
		    MAX_TOKEN);
		return false;
	}
	memcpy(out, buf, (size_t)n + 1);
	return true;
}

static bool take_token(const char *file, const char *file_env, const char *env,
		       char out[MAX_TOKEN + 1])
{
	const char *v;

	out[0] = '\0';
	if (!file)
		file = getenv(file_env);
	if (file && *file)
		return read_token_file(file, out);
	v = env ? getenv(env) : NULL;
	if (!v || !*v)
		return true;
	if (strlen(v) > MAX_TOKEN) {
		say("%s is longer than %d characters.", env, MAX_TOKEN);
		return false;
	}
	snprintf(out, MAX_TOKEN + 1, "%s", v);
	return true;
}

static bool http_is_local(const char *address)
{
	return strncmp(address, "127.", 4) == 0 || strncmp(address, "[::1]", 5) == 0 ||
	       strncmp(address, "localhost:", 10) == 0;
}

/* What is no address at all is told so later, not that it wants a token. */
static bool is_listen_url(const char *url)
{
	return strncmp(url, "tcp://", 6) == 0 || strncmp(url, "ipc://", 6) == 0;
}

/* 0 or an exit status after a sentence. */
static int settle_tokens(struct collector *c)
{
	if (!take_token(c->opt.token_file, "SYNCLINE_TOKEN_FILE", "SYNCLINE_TOKEN", c->token) ||
	    !take_token(c->opt.http_token_file, "SYNCLINE_HTTP_TOKEN_FILE", NULL, c->http_token))
		return EXIT_UNREACHED;
	if (!c->http_token[0] && !http_is_local(c->opt.http))
		memcpy(c->http_token, c->token, sizeof c->token);
	if (!c->opt.read_only && is_listen_url(c->opt.listen) && !inbox_is_local(c->opt.listen) &&
	    !c->token[0]) {
		say("other hosts can reach %s, so agents must bring a token. Put one into a file and "
		    "name it with --token-file here and for the agents, or listen on 127.0.0.1.",
		    c->opt.listen);
		return EXIT_USAGE;
	}
	if (strchr(c->opt.http, ':') && !http_is_local(c->opt.http) && !c->http_token[0]) {
		say("other hosts can reach %s, so browsers must bring a token. Name a file with "
		    "--http-token-file, or serve on 127.0.0.1.",
		    c->opt.http);
		return EXIT_USAGE;
	}
	return 0;
}

/* A directory means one file a run inside it. */
static int settle_path(struct collector *c)
{
	const char *db = c->opt.db;
	size_t n = strlen(db);
	struct stat st;
	bool is_dir = (stat(db, &st) == 0 && S_ISDIR(st.st_mode)) || (n && db[n - 1] == '/');
	int written;

	if (!is_dir) {
		written = snprintf(c->db_path, sizeof c->db_path, "%s", db);
	} else if (!c->opt.run_id) {
		say("%s is a directory of runs. Say which with --run ID, or name a file with --db.", db);
		return EXIT_USAGE;
	} else {
		char name[65];

		snprintf(name, sizeof name, "%s", c->opt.run_id);
		for (char *p = name; *p; p++)
			if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
			      (*p >= '0' && *p <= '9') || *p == '-' || *p == '_' ||
			      (*p == '.' && p != name)))
				*p = '_';
		written = snprintf(c->db_path, sizeof c->db_path, "%s%s%s.db", db,
				   db[n - 1] == '/' ? "" : "/", name);
	}
	if (written < 0 || (size_t)written >= sizeof c->db_path - 8) {
		say("the path of the catalogue is too long.");
		return EXIT_USAGE;
	}
	return 0;
}

/* --- between the parts --------------------------------------------------- */

static void on_reply(void *arg, struct inbox_msg *m, const void *data, size_t n_bytes)
{
	struct collector *c = arg;

	if (data)
		inbox_reply(c->inbox, m, data, n_bytes);
	else
		inbox_drop(c->inbox, m);
}

static void on_submit(void *arg, struct store_job *j)
{
	struct collector *c = arg;

	store_submit(c->store, j);
}

static int on_trouble(void *arg)
{
	const struct collector *c = arg;

	return store_trouble(c->store);
}

static unsigned on_n_free(void *arg)
{
	const struct collector *c = arg;

	return c->inbox ? inbox_n_free(c->inbox) : 0;
}

static void on_say(void *arg, const char *sentence)
{
	(void)arg;
	say("%s", sentence);
}

/* What is on the disk now is news for the page. */
static void tell_page(struct collector *c, const struct store_job *j)
{
	const struct facts *f = &j->facts;
	struct ingest_rank_change changes[64];
	size_t n = ingest_take_changes(c->ingest, changes, sizeof changes / sizeof *changes);
	uint32_t newest = 0;

	for (size_t i = 0; i < f->steps.n; i++)
		if (f->steps.v[i].step > newest)
			newest = f->steps.v[i].step;
	if (f->steps.n)
		serve_notify_step(c->serve, newest);
	for (size_t i = 0; i < f->verdicts.n && i < j->verdict_ids.n; i++)
		serve_notify_finding(c->serve, j->verdict_ids.v[i], f->verdicts.v[i].class_name,
				     store_severity_name(f->verdicts.v[i].severity));
	for (size_t i = 0; i < n; i++)
		serve_notify_rank(c->serve, changes[i].rank,
				  store_state_name(changes[i].state));
}

static void on_done(void *arg, struct store_job *j)
{
	struct collector *c = arg;

	if (c->serve && !j->failed)
		tell_page(c, j);
	ingest_done(c->ingest, j);
}

static void stop(struct collector *c);

static void check_fatal(struct collector *c)
{
	if (ingest_fatal(c->ingest) != 0 && !c->stopping) {
		say("out of memory. What was acknowledged is stored, agents keep the rest; start it "
		    "again with more memory.");
		c->status = EXIT_UNREACHED;
		stop(c);
	}
}

static void on_message(void *arg, struct inbox_msg *m)
{
	struct collector *c = arg;

	ingest_message(c->ingest, m, clk_raw_ns());
}

static void on_turn_over(void *arg)
{
	struct collector *c = arg;

	ingest_turn_over(c->ingest);
	check_fatal(c);
}

static void on_live(void *arg, struct serve_live *ret)
{
	struct collector *c = arg;
	int64_t raw_ns = clk_raw_ns();
	struct responder_stats p = { 0 };
	struct ingest_status s;
	struct core_stats k;

	ingest_status(c->ingest, raw_ns, &s);
	core_stats(c->core, &k);
	*ret = (struct serve_live){
		.now_ns = ingest_fleet_ns(c->ingest, raw_ns),
		.last_event_ns = s.last_event_ns,
		.listen = inbox_url(c->inbox),
		.n_agents = s.n_agents,
		.n_agents_lost = s.n_agents_lost,
		.n_ranks = s.n_ranks,
		.n_ranks_seen = s.n_ranks_seen,
		.n_ranks_expected = s.n_ranks_expected,
		.n_events = s.n_events,
		.n_events_lost = s.n_events_lost,
		.n_drops = s.n_drops + k.n_late_events,
		.clock_error_ns = k.n_hosts_unaligned ? FACT_NONE : k.max_clock_error_ns,
		.n_hosts = s.n_hosts,
		.n_hosts_unaligned = k.n_hosts_unaligned,
		.n_hosts_by_stream = s.n_hosts_by_stream,
		.agent_cpu_ratio = s.agent_cpu_ratio,
		.ended = s.ended,
	};
	if (c->responder)
		responder_stats(c->responder, &p);
	for (unsigned i = PROBE_ANSWER + 1; i < PROBE_N_OUTCOMES; i++)
		ret->n_probes_refused += p.n[i];
}

static void say_storing_again(struct collector *c)
{
	say(SAID_STORING_AGAIN "the catalogue takes what agents kept, and what comes.");
	c->trouble_told = 0;
}

/* Once when the disk takes no more and once when it does again: `syncline run` puts
 * these lines before its user. */
static void tell_trouble(struct collector *c, int64_t raw_ns)
{
	int trouble = store_trouble(c->store);
	char why[5000];

	if (trouble != 0) {
		c->fine_since_ns = FACT_NONE;
		if (trouble == c->trouble_told ||
		    (c->trouble_told_ns != FACT_NONE &&
		     raw_ns - c->trouble_told_ns < TROUBLE_EVERY_NS))
			return;
		store_explain(why, sizeof why, trouble, c->db_path);
		say(SAID_NOT_STORING "%s", why);
		c->trouble_told = trouble;
		c->trouble_told_ns = raw_ns;
	} else if (c->trouble_told != 0) {
		if (c->fine_since_ns == FACT_NONE)
			c->fine_since_ns = raw_ns;
		if (raw_ns - c->fine_since_ns >= FINE_AFTER_NS)
			say_storing_again(c);
	}
}

static void on_tick(uv_timer_t *timer)
{
	struct collector *c = timer->data;
	struct serve_live live;

	if (c->responder)
		responder_tick(c->responder);
	ingest_tick(c->ingest, clk_raw_ns());
	check_fatal(c);
	if (c->stopping)
		return;
	tell_trouble(c, clk_raw_ns());
	on_live(c, &live);
	if (live.n_drops != c->n_drops_told)
		serve_notify_drop(c->serve, live.n_drops);
	c->n_drops_told = live.n_drops;
	if (live.clock_error_ns != c->clock_error_told_ns)
		serve_notify_clock(c->serve, live.clock_error_ns);
	c->clock_error_told_ns = live.clock_error_ns;
}

/* --- the end ------------------------------------------------------------- */

static void on_serve_stopped(void *arg)
{
	struct collector *c = arg;

	uv_stop(&c->loop);
}

static void stop(struct collector *c)
{
	if (c->stopping)
		return;
	c->stopping = true;
	if (c->inbox) {
		uv_timer_stop(&c->tick);
		responder_close(c->responder);
		c->responder = NULL;
		inbox_pause(c->inbox);
		ingest_finish(c->ingest, clk_raw_ns());
		store_stop(c->store, STOP_DEADLINE_MS);
		if (store_trouble(c->store) != 0) {
			char why[5000];

			store_explain(why, sizeof why, store_trouble(c->store), c->db_path);
			say("leaving with work undone; agents keep what was not acknowledged. %s", why);
			c->status = EXIT_UNREACHED;
		} else if (c->trouble_told != 0) {
			say_storing_again(c);
		}
		inbox_drain(c->inbox, 1000);
	}
	serve_stop(c->serve, on_serve_stopped, c);
	c->serve = NULL;
}

static void on_signal(uv_signal_t *handle, int signal)
{
	struct collector *c = handle->data;

	if (c->stopping)
		_exit(128 + signal); /* asked twice: what is not acknowledged is not ours */
	stop(c);
}

/* --- the beginning ------------------------------------------------------- */

/* 0 or an exit status after a sentence. */
static int open_store(struct collector *c)
{
	struct store_config cfg = { .path = c->db_path, .loop = &c->loop, .done = on_done, .arg = c };
	char boot_id[CLK_BOOT_ID_BYTES], why[5000];
	bool was_there = access(c->db_path, F_OK) == 0;
	int r = store_open(&c->store, &cfg);

	c->is_new = r == 0 && !was_there;
	if (r != 0) {
		store_explain(why, sizeof why, r, c->db_path);
		say("%s", why);
		return EXIT_UNREACHED;
	}
	clk_boot_id(boot_id);
	r = core_new(&c->core, NULL, NULL);
	if (r == 0)
		r = ingest_new(&c->ingest, &(struct ingest_config){
						   .core = c->core,
						   .run_id = c->opt.run_id,
						   .token = c->token,
						   .level = c->opt.level,
						   .boot_id = boot_id,
						   .time_ns_inode = clk_time_ns_inode(),
						   .raw_ns = clk_raw_ns(),
						   .real_ns = clk_real_ns(),
						   .reply = on_reply,
						   .submit = on_submit,
						   .trouble = on_trouble,
						   .n_free = on_n_free,
						   .say = on_say,
						   .arg = c,
					   });
	if (r == 0)
		r = ingest_load(c->ingest, c->store);
	if (r == INGEST_OUTCOME(INGEST_OTHER_RUN)) {
		struct store_head head;

		r = store_head(c->store, &head);
		say("%s holds run %s, not %s. Name another file with --db, or leave out --run.",
		    c->db_path, r == 0 ? head.run.run_id : "?", c->opt.run_id);
		return EXIT_UNREACHED;
	}
	if (r != 0) {
		store_explain(why, sizeof why, r, c->db_path);
		say("%s", why);
		return EXIT_UNREACHED;
	}
	return 0;
}

/* Without it clocks are estimated all the same, with a wider bound. */
static void open_responder(struct collector *c)
{
	struct sockaddr_storage at;
	int r;

	if (c->opt.no_probes || !inbox_address(c->inbox, &at))
		return;
	r = responder_open(&c->responder, &c->loop, c->ingest, &at, (uint16_t)c->opt.probe_port);
	if (r != 0) {
		say("cannot take clock probes: %s. Clocks are estimated from the stream of events, with a "
		    "wider bound; name a free UDP port with --probe-port.",
		    uv_strerror(r));
		return;
	}
	ingest_set_probe_port(c->ingest, responder_port(c->responder));
	if (ingest_set_peers(c->ingest, c->opt.n_peers) != 0)
		say("agents cannot probe each other: the system gives no random numbers.");
}

static int open_live(struct collector *c)
{
	struct inbox_config cfg = { .loop = &c->loop, .url = c->opt.listen, .deliver = on_message,
				    .turn_over = on_turn_over, .arg = c };
	int status = open_store(c), r;
	char why[600];

	if (status != 0)
		return status;
	r = inbox_open(&c->inbox, &cfg);
	if (r != 0) {
		inbox_explain(why, sizeof why, r, c->opt.listen);
		say("%s", why);
		return r == INBOX_BAD_URL ? EXIT_USAGE : EXIT_UNREACHED;
	}
	open_responder(c);
	return 0;
}

/* Looked at before it is served, so that the sentence names the cause. */
static int check_readable(struct collector *c)
{
	struct store *s;
	int r = store_open_readonly(&s, c->db_path);
	char why[5000];

	if (r == 0) {
		store_close(s);
		return 0;
	}
	store_explain(why, sizeof why, r, c->db_path);
	say("%s", why);
	return EXIT_UNREACHED;
}

static int start_serve(struct collector *c)
{
	struct serve_config cfg = {
		.http = c->opt.http, .token = c->http_token[0] ? c->http_token : NULL,
		.db_path = c->db_path, .read_only = c->opt.read_only, .live = on_live, .arg = c,
		.heat = c->core ? core_heat(c->core) : NULL,
		.hosts = c->opt.http_hosts, .n_hosts = c->opt.n_http_hosts,
	};
	char why[600];
	int r = serve_start(&c->serve, &c->loop, &cfg, why, sizeof why);

	if (r == 0)
		return 0;
	say("%s", why);
	return r == SERVE_BAD_ADDRESS || r == SERVE_NEEDS_TOKEN || r == SERVE_BAD_TOKEN ?
		       EXIT_USAGE :
		       EXIT_UNREACHED;
}

/* {"listen":"tcp://…","http":"http://…/"}: both are URLs without quotes in them. */
static void say_ready(struct collector *c)
{
	char line[700];
	int n = snprintf(line, sizeof line, "{\"listen\":\"%s\",\"http\":\"%s\"}\n",
			 c->inbox ? inbox_url(c->inbox) : "", serve_url(c->serve));

	if (c->inbox)
		say("agents: %s   page: %s   catalogue: %s", inbox_url(c->inbox), serve_url(c->serve),
		    c->db_path);
	else
		say("page: %s   catalogue: %s (read only)", serve_url(c->serve), c->db_path);
	if (c->opt.ready_fd < 0)
		return;
	if (n < 0 || write(c->opt.ready_fd, line, (size_t)n) != n)
		say("cannot write to --ready-fd %d: %s", c->opt.ready_fd, strerror(errno));
	close(c->opt.ready_fd);
}

static int start(struct collector *c)
{
	int status = settle_tokens(c), r;

	if (status == 0)
		status = settle_path(c);
	if (status == 0)
		status = c->opt.read_only ? check_readable(c) : open_live(c);
	if (status == 0)
		status = start_serve(c);
	if (status != 0)
		return status;
	c->on_term.data = c->on_int.data = c->tick.data = c;
	uv_signal_init(&c->loop, &c->on_term);
	uv_signal_init(&c->loop, &c->on_int);
	uv_timer_init(&c->loop, &c->tick);
	uv_signal_start(&c->on_term, on_signal, SIGTERM);
	uv_signal_start(&c->on_int, on_signal, SIGINT);
	if (c->opt.read_only)
		return 0;
	r = store_start(c->store);
	if (r != 0) {
		say("cannot start the store's threads: %s", uv_strerror(r));
		return EXIT_UNREACHED;
	}
	uv_timer_start(&c->tick, on_tick, TICK_MS, TICK_MS);
	inbox_start(c->inbox);
	return 0;
}

/* A start that failed leaves no empty catalogue in the way of the next one. It is
 * ours alone while the store is open. */
static void forget_catalogue(const char *path)
{
	static const char *const suffixes[] = { "", "-wal", "-shm" };
	char name[4096 + 8];

	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
		unlink(name);
	}
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = option_table,
		.parser = parse_option,
		.doc = "Takes events of a run from its agents, keeps them in a catalogue, says what is "
		       "slow and shows it.\vExit status: 0 ended in order, 2 wrong usage, 3 a file, "
		       "address or disk could not be used.",
	};
	static struct collector c;
	const char *level = getenv("SYNCLINE_LEVEL");
	int status;

	c.opt = (struct options){ .listen = DEFAULT_LISTEN, .http = DEFAULT_HTTP,
				  .run_id = getenv("SYNCLINE_RUN"), .ready_fd = -1,
				  .level = UINT32_MAX /* no opinion */ };
	if (level && level[0] >= '0' && level[0] <= '4' && !level[1])
		c.opt.level = (uint32_t)(level[0] - '0');
	if (c.opt.run_id && !*c.opt.run_id)
		c.opt.run_id = NULL;
	argp_err_exit_status = EXIT_USAGE;
	argp_program_version_hook = print_version;
	argp_parse(&argp, argc, argv, 0, NULL, &c.opt);
	if (c.opt.run_id && strlen(c.opt.run_id) > MAX_RUN_ID) {
		say("SYNCLINE_RUN is longer than the %d characters of a run id. Shorten it, or give "
		    "--run.",
		    MAX_RUN_ID);
		return EXIT_USAGE;
	}

	signal(SIGPIPE, SIG_IGN);
	uv_loop_init(&c.loop);
	c.clock_error_told_ns = c.trouble_told_ns = c.fine_since_ns = FACT_NONE;
	status = start(&c);
	if (status == 0) {
		say_ready(&c);
		uv_run(&c.loop, UV_RUN_DEFAULT);
		status = c.status;
	} else if (c.is_new) {
		forget_catalogue(c.db_path);
	}
	/* Everything acknowledged is on the disk. Closing the catalogue copies the log
	 * back; the sockets end with the process, which NNG 1.5 survives best. */
	store_close(c.store);
	fflush(NULL);
	_exit(status);
}
