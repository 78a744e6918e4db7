#include "serve_internal.h"

#include "address.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MAX_CONNECTIONS 256u
#define MAX_CONNECTION_BYTES ((size_t)32 << 10)
#define IDLE_S 30u
#define STALE_NS INT64_C(10000000000)
#define RELOAD_MS 2000u
#define GRACE_NS INT64_C(500000000) /* for goodbyes to reach the streams */

/* A file without its collector on its way into memory: the worker's until done. */
struct load {
	uv_work_t work;
	struct serve *s;
	struct query *query;
	bool again; /* only if the file changed */
	bool unchanged;
	struct heat *heat;
	char *told;
	struct serve_live snapshot;
	int64_t took_ns;
	int result;
	char why[160];
};

int64_t serve_mono_ns(void)
{
	return (int64_t)uv_hrtime();
}

/* ---- the daemon on the loop */

static void run_daemon(struct serve *s);

static void on_timer(uv_timer_t *handle)
{
	run_daemon(handle->data);
}

static void on_poll(uv_poll_t *handle, int status, int events)
{
	(void)status; /* an error shows again inside the daemon */
	(void)events;
	run_daemon(handle->data);
}

static void run_daemon(struct serve *s)
{
	MHD_UNSIGNED_LONG_LONG wait_ms;

	if (s->stopped || s->running)
		return;
	s->running = true;
	MHD_run(s->daemon);
	s->running = false;
	if (MHD_get_timeout(s->daemon, &wait_ms) == MHD_YES)
		uv_timer_start(&s->timer, on_timer, wait_ms, 0);
	else
		uv_timer_stop(&s->timer);
}

void serve_kick(struct serve *s)
{
	if (!s->stopped && !s->running)
		uv_timer_start(&s->timer, on_timer, 0, 0);
}

/* ---- facts */

uint64_t serve_rev(const struct serve *s)
{
	return s->rev_base + (s->heat ? heat_rev(s->heat) : 0);
}

void serve_facts(struct serve *s, struct query_facts *f)
{
	struct serve_live *l = &f->live;

	memset(f, 0, sizeof *f);
	*l = (struct serve_live){
		.now_ns = FACT_NONE, .last_event_ns = FACT_NONE, .clock_error_ns = FACT_NONE,
		.agent_cpu_ratio = NAN,
	};
	if (s->read_only)
		*l = s->snapshot;
	else if (s->live)
		s->live(s->arg, l);
	snprintf(f->listen, sizeof f->listen, "%s", l->listen ? l->listen : "");
	l->listen = NULL;
	if (s->read_only)
		f->state = "snapshot";
	else if (l->last_event_ns == FACT_NONE)
		f->state = "waiting";
	else if (l->ended)
		f->state = "ended";
	else
		f->state = l->now_ns - l->last_event_ns > STALE_NS ? "stale" : "live";
	if (s->heat)
		heat_bounds(s->heat, &f->first_step, &f->last_step, &f->n_ranks);
	f->rev = serve_rev(s);
	f->cursor = feed_head(s->feed);
	f->n_streams = s->streams.n;
}

/* ---- the streams */

static void on_check_timer(uv_timer_t *handle)
{
	struct serve *s = handle->data;

	if (streams_check(&s->streams, serve_mono_ns()))
		serve_kick(s);
}

/* ---- a file without its collector
 *
 * Facts and picture are of one moment, the load's. Where somebody still writes the
 * file, it is loaded again: looked at each 2 s, and less often the longer a load
 * takes, so that a large file costs at most a tenth of one worker.
 */

/* Worker thread. */
static void on_load(uv_work_t *work)
{
	struct load *load = work->data;
	int64_t begin_ns = serve_mono_ns();

	load->unchanged = load->again && !query_changed(load->query);
	if (load->unchanged)
		return;
	load->result = heat_new(&load->heat);
	if (load->result == 0)
		load->result = query_load(load->query, &load->snapshot, &load->told, load->heat,
					  load->why);
	load->took_ns = serve_mono_ns() - begin_ns;
}

/* The load's facts and picture become those that are served. Addresses and tags
 * carry the revision, so it has to grow. */
static int adopt(struct serve *s, struct load *load)
{
	struct picture *picture;
	bool first = !s->heat;
	uint32_t last, n_ranks, from;
	int r = picture_new(&picture);

	if (r != 0)
		return r;
	if (!first)
		s->rev_base = serve_rev(s) + 1;
	picture_free(s->picture);
	heat_free(s->own_heat);
	free(s->told);
	s->picture = picture;
	s->heat = s->own_heat = load->heat;
	s->told = load->told;
	s->snapshot = load->snapshot;
	load->heat = NULL;
	load->told = NULL;
	heat_bounds(s->heat, &from, &last, &n_ranks);
	if (!first)
		serve_notify_step(s, n_ranks ? last : 0);
	return 0;
}

static void load_later(struct serve *s, int64_t took_ns);

static void on_load_done(uv_work_t *work, int status)
{
	struct load *load = work->data;
	struct serve *s = load->s;

	(void)status;
	s->n_jobs--;
	if (!load->unchanged) {
		if (load->result == 0)
			load->result = adopt(s, load);
		s->load_result = load->result;
		memcpy(s->load_why, load->why, sizeof s->load_why);
	}
	load_later(s, load->took_ns);
	heat_free(load->heat);
	free(load->told);
	free(load);
}

static int start_load(struct serve *s)
{
	struct load *load = calloc(1, sizeof *load);
	int r = load ? 0 : -ENOMEM;

	if (r == 0) {
		load->work.data = load;
		load->s = s;
		load->query = s->query;
		load->again = s->heat;
		r = uv_queue_work(s->loop, &load->work, on_load, on_load_done);
	}
	if (r != 0) {
		free(load);
		return r;
	}
	s->n_jobs++;
	return 0;
}

static void on_load_timer(uv_timer_t *handle)
{
	struct serve *s = handle->data;

	if (!s->stopping && start_load(s) != 0)
		load_later(s, 0);
}

static void load_later(struct serve *s, int64_t took_ns)
{
	uint64_t wait_ms = (uint64_t)took_ns / 1000000 * 10;

	if (!s->stopping)
		uv_timer_start(&s->load_timer, on_load_timer,
			       wait_ms > RELOAD_MS ? wait_ms : RELOAD_MS, 0);
}

/* ---- start */

static int sentence(char *error, size_t n, const char *http, int outcome, const char *why)
{
	if (!error)
		return outcome;
	switch (outcome) {
	case SERVE_BAD_ADDRESS:
		snprintf(error, n, "cannot serve HTTP at '%s': it is not ADDRESS:PORT of this host. "
			 "Use for example --http 127.0.0.1:8080, or port 0 for a free one.", http);
		break;
	case SERVE_IN_USE:
		snprintf(error, n, "cannot serve HTTP at %s: the address is in use, maybe by another "
			 "collector. Use another port, or port 0 for a free one.", http);
		break;
	case SERVE_NOT_ALLOWED:
		snprintf(error, n, "cannot serve HTTP at %s: %s. Use an address of this host and a port "
			 "from 1024 on.", http, why);
		break;
	case SERVE_NEEDS_TOKEN:
		snprintf(error, n, "cannot serve HTTP at %s without a token: other hosts can reach it. Use "
			 "--http-token-file FILE, or --http 127.0.0.1:0 and a tunnel.", http);
		break;
	case SERVE_BAD_TOKEN:
		snprintf(error, n, "the HTTP token is not usable: it must be 1 to %d characters, letters, "
			 "digits and -._~+/= only. Make one with: openssl rand -hex 16", MAX_TOKEN);
		break;
	case SERVE_BAD_DATABASE:
		snprintf(error, n, "cannot read the catalogue: %s. Name a database that a collector of "
			 "syncline wrote.", why);
		break;
	default:
		snprintf(error, n, "cannot serve HTTP at %s: %s.", http, uv_strerror(outcome));
	}
	return outcome;
}

static bool token_usable(const char *token)
{
	size_t n = strlen(token);

	return n > 0 && n <= MAX_TOKEN &&
	       strspn(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/=") == n;
}

static int take_names(struct serve *s, const struct address *a, const struct serve_config *cfg)
{
	char self[256], ip[INET6_ADDRSTRLEN];
	char text[INET6_ADDRSTRLEN + 32];
	bool v6 = a->u.any.sa_family == AF_INET6;
	unsigned port = ntohs(v6 ? a->u.v6.sin6_port : a->u.v4.sin_port);

	s->hosts = calloc(cfg->n_hosts + 3, sizeof *s->hosts);
	if (!s->hosts)
		return -ENOMEM;
	for (size_t i = 0; i < cfg->n_hosts; i++) {
		s->hosts[s->n_hosts] = strdup(cfg->hosts[i]);
		if (!s->hosts[s->n_hosts++])
			return -ENOMEM;
	}
	inet_ntop(a->u.any.sa_family, v6 ? (const void *)&a->u.v6.sin6_addr : &a->u.v4.sin_addr, ip,
		  sizeof ip);
	s->any_literal = address_is_wildcard(a);
	s->hosts[s->n_hosts] = strdup(ip);
	if (!s->hosts[s->n_hosts++])
		return -ENOMEM;
	s->hosts[s->n_hosts] = strdup(a->name);
	if (!s->hosts[s->n_hosts++])
		return -ENOMEM;
	if (!address_is_loopback(a) && gethostname(self, sizeof self) == 0) {
		self[sizeof self - 1] = '\0';
		s->hosts[s->n_hosts] = strdup(self);
		if (!s->hosts[s->n_hosts++])
			return -ENOMEM;
	}
	if (s->any_literal)
		snprintf(ip, sizeof ip, "%s", v6 ? "::1" : "127.0.0.1");
	snprintf(text, sizeof text, v6 ? "http://[%s]:%u/" : "http://%s:%u/", ip, port);
	s->url = strdup(text);
	return s->url ? 0 : -ENOMEM;
}

static void free_all(struct serve *s)
{
	for (size_t i = 0; i < s->n_hosts; i++)
		free(s->hosts[i]);
	free(s->hosts);
	free(s->token);
	free(s->url);
	free(s->told);
	picture_free(s->picture);
	query_free(s->query);
	feed_free(s->feed);
	heat_free(s->own_heat);
	free(s);
}

static unsigned or_default(unsigned v, unsigned fallback)
{
	return v ? v : fallback;
}

/* Everything that can still be taken back without the loop. */
static int prepare(struct serve *s, const struct serve_config *cfg)
{
	uint64_t now_s = (uint64_t)time(NULL);
	int r;

	/* Larger than anything an earlier collector gave out, as long as it made less
	 * than a million a second; and a browser's number still holds it. */
	s->rev_base = now_s << 20;
	s->read_only = cfg->read_only;
	s->live = cfg->live;
	s->arg = cfg->arg;
	s->snapshot = (struct serve_live){ .now_ns = FACT_NONE, .last_event_ns = FACT_NONE,
					   .clock_error_ns = FACT_NONE, .agent_cpu_ratio = NAN };
	if (cfg->token) {
		s->token = strdup(cfg->token);
		if (!s->token)
			return -ENOMEM;
	}
	r = query_new(&s->query, cfg->db_path, cfg->read_only, or_default(cfg->query_ms, 1000));
	if (r == 0)
		r = picture_new(&s->picture);
	if (r == 0)
		r = feed_new(&s->feed, s->rev_base, (int64_t)or_default(cfg->event_gap_ms, 250) * 1000000);
	if (r != 0)
		return r;
	if (!cfg->read_only) {
		s->heat = cfg->heat;
		return s->heat ? 0 : -EINVAL;
	}
	r = query_check(s->query, s->load_why);
	if (r > 0)
		return SERVE_BAD_DATABASE;
	return r;
}

static void open_timer(struct serve *s, uv_timer_t *timer)
{
	uv_timer_init(s->loop, timer);
	timer->data = s;
	s->n_handles++;
}

int serve_start(struct serve **ret, struct uv_loop_s *loop, const struct serve_config *cfg, char *error,
		size_t n_error)
{
	const union MHD_DaemonInfo *info;
	struct address a = { 0 };
	unsigned check_ms;
	struct serve *s;
	int r, fd = -1;

	r = address_parse(cfg->http, &a);
	if (r == 0 && cfg->token && !token_usable(cfg->token))
		r = SERVE_BAD_TOKEN;
	if (r == 0 && !cfg->token && !address_is_loopback(&a))
		r = SERVE_NEEDS_TOKEN;
	if (r != 0)
		return sentence(error, n_error, cfg->http, r, "");
	s = calloc(1, sizeof *s);
	if (!s)
		return sentence(error, n_error, cfg->http, -ENOMEM, "");
	s->loop = loop;
	r = prepare(s, cfg);
	if (r != 0) {
		sentence(error, n_error, cfg->http, r, s->load_why);
		free_all(s);
		return r;
	}
	r = address_listen(&a, &fd);
	if (r == -EACCES || r == -EADDRNOTAVAIL || r == -EPERM) {
		sentence(error, n_error, cfg->http, SERVE_NOT_ALLOWED, strerror(-r));
		free_all(s);
		return SERVE_NOT_ALLOWED;
	}
	if (r == 0)
		r = take_names(s, &a, cfg);
	if (r != 0)
		goto fail;

	s->daemon = MHD_start_daemon(
		MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, serve_on_request, s,
		MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, MAX_CONNECTIONS,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, MAX_CONNECTION_BYTES,
		MHD_OPTION_CONNECTION_TIMEOUT, IDLE_S, MHD_OPTION_URI_LOG_CALLBACK, serve_on_uri, s,
		MHD_OPTION_NOTIFY_COMPLETED, serve_on_completed, s, MHD_OPTION_UNESCAPE_CALLBACK,
		serve_on_unescape, s, MHD_OPTION_END);
	info = s->daemon ? MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
	if (!info) {
		r = -EIO;
		goto fail;
	}
	fd = -1; /* the daemon's now */
	r = uv_poll_init(loop, &s->poll, info->epoll_fd);
	if (r != 0)
		goto fail;

	/* libuv's handles close only on the loop: nothing fails from here on. */
	s->poll.data = s;
	s->n_handles++;
	open_timer(s, &s->timer);
	open_timer(s, &s->feed_timer);
	open_timer(s, &s->check_timer);
	open_timer(s, &s->grace_timer);
	open_timer(s, &s->load_timer);
	uv_poll_start(&s->poll, UV_READABLE, on_poll);
	s->streams.feed = s->feed;
	s->streams.heartbeat_ns = (int64_t)or_default(cfg->heartbeat_ms, 15000) * 1000000;
	s->streams.slow_ns = (int64_t)or_default(cfg->slow_ms, 60000) * 1000000;
	check_ms = or_default(cfg->heartbeat_ms, 15000) / 4;
	check_ms = check_ms < 10 ? 10 : check_ms > 1000 ? 1000 : check_ms;
	uv_timer_start(&s->check_timer, on_check_timer, check_ms, check_ms);
	if (s->read_only)
		s->load_result = start_load(s); /* without memory: every picture says so */
	if (s->load_result != 0)
		load_later(s, 0);
	run_daemon(s);
	*ret = s;
	return 0;

fail:
	sentence(error, n_error, cfg->http, r, "");
	if (s->daemon)
		MHD_stop_daemon(s->daemon);
	if (fd >= 0)
		close(fd);
	free_all(s);
	return r;
}

const char *serve_url(const struct serve *s)
{
	return s->url;
}

/* ---- stop */

static void on_closed(uv_handle_t *handle)
{
	struct serve *s = handle->data;
	void (*done)(void *) = s->done;
	void *arg = s->done_arg;

	if (--s->n_handles > 0)
		return;
	free_all(s);
	if (done)
		done(arg);
}

static void stop_now(struct serve *s)
{
	if (s->stopped)
		return;
	s->stopped = true;
	uv_poll_stop(&s->poll); /* before its descriptor is closed */
	MHD_stop_daemon(s->daemon);
	uv_close((uv_handle_t *)&s->poll, on_closed);
	uv_close((uv_handle_t *)&s->timer, on_closed);
	uv_close((uv_handle_t *)&s->feed_timer, on_closed);
	uv_close((uv_handle_t *)&s->check_timer, on_closed);
	uv_close((uv_handle_t *)&s->grace_timer, on_closed);
	uv_close((uv_handle_t *)&s->load_timer, on_closed);
}

/* Workers that still run hold requests; streams get a moment to take their bye. */
static void on_grace(uv_timer_t *handle)
{
	struct serve *s = handle->data;

	if (s->n_jobs == 0 && (s->streams.n == 0 || serve_mono_ns() >= s->grace_end_ns))
		stop_now(s);
}

void serve_stop(struct serve *s, void (*done)(void *arg), void *arg)
{
	if (!s) {
		if (done)
			done(arg);
		return;
	}
	assert(!s->stopping);
	s->stopping = true;
	s->done = done;
	s->done_arg = arg;
	query_cancel(s->query);
	if (streams_bye(&s->streams, "stopping"))
		serve_kick(s);
	s->grace_end_ns = serve_mono_ns() + GRACE_NS;
	uv_timer_start(&s->grace_timer, on_grace, 0, 10);
}
