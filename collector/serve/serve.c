#include "serve.h"

#include "answer.h"
#include "feed.h"
#include "pack.h"
#include "picture.h"
#include "query.h"
#include "stream.h"
#include "web.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#define MAX_CONNECTIONS 256u
#define MAX_CONNECTION_BYTES ((size_t)32 << 10)
#define IDLE_S 30u
#define MAX_BODY_BYTES ((size_t)64 << 10)
#define MAX_JOBS 64
#define MAX_TOKEN 256
#define STALE_NS INT64_C(10000000000)
#define GRACE_NS INT64_C(500000000) /* for goodbyes to reach the streams */

/* Kept by browsers for a year: the name or the revision changes with the content. */
#define CACHE_FOR_EVER "private, max-age=31536000, immutable"
#define CACHE_ASK "private, no-cache"

struct serve {
	/* All of it: loop thread only. Jobs carry what workers need. */
	uv_loop_t *loop;
	struct MHD_Daemon *daemon;
	uv_poll_t poll;       /* the daemon's epoll */
	uv_timer_t timer;     /* the daemon's time-outs */
	uv_timer_t feed_timer; /* folded events that wait */
	uv_timer_t check_timer; /* streams */
	uv_timer_t grace_timer; /* while stopping */
	unsigned n_handles; /* open */
	bool running; /* inside MHD_run: a kick is served by its caller */

	char *token; /* owned; NULL = none wanted */
	char *url;
	char **hosts; /* owned, and each of them */
	size_t n_hosts;
	bool any_literal;
	bool read_only;
	void (*live)(void *arg, struct serve_live *ret);
	void *arg;

	struct heat *heat;  /* NULL while a finished run is being read */
	struct heat *own_heat; /* read-only: owned */
	struct serve_live snapshot;
	uint64_t rev_base; /* added to the heat's revision: differs from run to run */
	int load_result;
	char load_why[160];

	struct picture *picture;
	struct query *query;
	struct feed *feed;
	struct streams streams;
	size_t n_jobs;

	bool stopping, stopped;
	int64_t grace_end_ns;
	void (*done)(void *arg);
	void *done_arg;
};

/* A finished run on its way into memory: the worker's until it is done. */
struct load {
	uv_work_t work;
	struct serve *s;
	struct query *query;
	struct heat *heat;
	struct serve_live snapshot;
	int result;
	char why[160];
};

struct job {
	uv_work_t work;
	struct request *rq; /* loop thread */
	struct query *query;
	struct query_facts facts;
	struct route_request route;
	bool gzip;
	int result;
	char why[160];
	char *text;
	size_t n_text;
	unsigned char *packed;
	size_t n_packed;
	char etag[48];
};

struct request {
	struct serve *s;
	struct MHD_Connection *conn;
	struct route_request route;
	enum route_outcome outcome;
	bool seen, head, post, gzip;
	struct job *job; /* its answer, once it is there; owned */
	char *body;
	size_t n_body; /* may pass MAX_BODY_BYTES: then it was not kept */
	char uri[];
};

static int64_t mono_ns(void)
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

/* A connection was resumed outside of the daemon: let it run soon. */
static void kick(struct serve *s)
{
	if (!s->stopped && !s->running)
		uv_timer_start(&s->timer, on_timer, 0, 0);
}

/* ---- facts */

static uint64_t rev_of(const struct serve *s)
{
	return s->rev_base + (s->heat ? heat_rev(s->heat) : 0);
}

static void facts_now(struct serve *s, struct query_facts *f)
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
	f->rev = rev_of(s);
	f->cursor = feed_head(s->feed);
	f->n_streams = s->streams.n;
}

/* ---- answers that need the catalogue */

static void tag_of(const char *text, size_t n, char etag[48])
{
	uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ (unsigned char)text[i]) * UINT64_C(1099511628211);
	snprintf(etag, 48, "\"%zx-%016" PRIx64 "\"", n, hash);
}

/* Worker thread. */
static void on_work(uv_work_t *work)
{
	struct job *job = work->data;

	job->result = query_answer(job->query, &job->route, &job->facts, &job->text, &job->n_text,
				   job->why);
	if (job->result != 0)
		return;
	tag_of(job->text, job->n_text, job->etag);
	if (job->gzip && job->n_text > 1024)
		(void)pack_gzip(job->text, job->n_text, &job->packed, &job->n_packed); /* else plain */
}

static void job_free(struct job *job)
{
	if (!job)
		return;
	free(job->text);
	free(job->packed);
	free(job);
}

/* Loop thread. The request is still there: a suspended connection is not closed. */
static void on_work_done(uv_work_t *work, int status)
{
	struct job *job = work->data;
	struct request *rq = job->rq;
	struct serve *s = rq->s;

	(void)status; /* never cancelled through libuv */
	s->n_jobs--;
	rq->job = job;
	MHD_resume_connection(rq->conn);
	kick(s);
}

static enum MHD_Result refuse(struct request *rq, unsigned status, const char *detail,
			      const char *hint)
{
	struct answer a;

	answer_problem(&a, status, detail, hint);
	if (status == 503)
		a.retry_after_s = 1;
	return answer_send(rq->conn, &a);
}

static enum MHD_Result start_job(struct request *rq)
{
	struct serve *s = rq->s;
	struct job *job;

	if (s->n_jobs >= MAX_JOBS)
		return refuse(rq, 503, "Too many questions are waiting for the catalogue.",
			      "Ask again in a second.");
	job = calloc(1, sizeof *job);
	if (!job)
		return MHD_NO;
	job->work.data = job;
	job->rq = rq;
	job->query = s->query;
	job->route = rq->route;
	job->gzip = rq->gzip;
	facts_now(s, &job->facts);
	if (uv_queue_work(s->loop, &job->work, on_work, on_work_done) != 0) {
		free(job);
		return refuse(rq, 503, "No worker can be started.", "Ask again in a second.");
	}
	s->n_jobs++;
	MHD_suspend_connection(rq->conn);
	return MHD_YES;
}

static enum MHD_Result finish_job(struct request *rq)
{
	struct job *job = rq->job;
	struct answer a;
	char detail[256];

	if (rq->route.route == ROUTE_READYZ) {
		if (job->result == QUERY_OK || job->result == QUERY_NONE) /* no agent yet is fine */
			return answer_send(rq->conn, &(struct answer){ .status = 200, .type = "text/plain",
								       .data = "ok\n", .n = 3 });
		snprintf(detail, sizeof detail, "The catalogue cannot be read: %s.",
			 job->result < 0 ? uv_strerror(job->result) : job->why);
		return refuse(rq, 503, detail, "Check the file with `syncline doctor`.");
	}
	switch (job->result) {
	case QUERY_OK:
		break;
	case QUERY_NONE:
		return refuse(rq, 404, "The catalogue has no such row.",
			      "api/v1/steps and api/v1/ranks list what there is.");
	case QUERY_BUSY:
		snprintf(detail, sizeof detail, "The catalogue cannot be read now: %s.", job->why);
		return refuse(rq, 503, detail, "Ask again in a second.");
	case QUERY_LATE:
		return refuse(rq, 503, "The question took longer than a reader may.",
			      "Ask for a smaller range, or use `syncline sql` on the file.");
	default:
		snprintf(detail, sizeof detail, "The catalogue could not be read: %s.",
			 job->result < 0 ? uv_strerror(job->result) : job->why);
		return refuse(rq, 500, detail, "Check the file with `syncline doctor`.");
	}
	a = (struct answer){ .status = 200, .type = "application/json", .cache = CACHE_ASK,
			     .varies = true };
	if (rq->route.route == ROUTE_METRICS)
		a.type = "text/plain; version=0.0.4; charset=utf-8";
	memcpy(a.etag, job->etag, sizeof a.etag);
	if (job->packed) {
		a.gzip = true;
		a.data = a.release_arg = job->packed;
		a.n = job->n_packed;
		job->packed = NULL;
		a.etag[strlen(a.etag) - 1] = '\0'; /* another representation, another tag */
		strcat(a.etag, "z\"");
	} else {
		a.data = a.release_arg = job->text;
		a.n = job->n_text;
		job->text = NULL;
	}
	a.release = free;
	return answer_send(rq->conn, &a);
}

/* ---- answers from memory */

static const struct web_file *find_file(const char *name)
{
	for (size_t i = 0; i < web_n_files; i++) {
		if (strcmp(web_files[i].name, name) == 0)
			return &web_files[i];
	}
	return NULL;
}

static enum MHD_Result send_file(struct request *rq, const struct web_file *w)
{
	struct answer a = {
		.status = 200, .type = w->type, .data = w->data, .n = w->n_data, .varies = w->gz,
		.cache = w->hashed ? "public, max-age=31536000, immutable" : "no-cache",
	};

	snprintf(a.etag, sizeof a.etag, "%s", w->etag);
	if (w->gz && rq->gzip) {
		a.gzip = true;
		a.data = w->gz;
		a.n = w->n_gz;
		a.etag[strlen(a.etag) - 1] = '\0';
		strcat(a.etag, "z\"");
	}
	return answer_send(rq->conn, &a);
}

static enum MHD_Result not_there(struct request *rq)
{
	char path[200], detail[256];
	size_t n = strcspn(rq->uri, "?");

	/* Encoded, so that nothing in it can play tricks in a terminal; its slashes stay. */
	url_encode(rq->uri, n, path, sizeof path);
	for (char *p = path, *q = path;; p++, q++) {
		if (strncmp(p, "%2F", 3) == 0) {
			*q = '/';
			p += 2;
		} else {
			*q = *p;
		}
		if (*p == '\0')
			break;
	}
	snprintf(detail, sizeof detail, "There is nothing at %s.", path);
	return refuse(rq, 404, detail, "docs/api.md lists the paths; the page itself is at /.");
}

static enum MHD_Result no_heat(struct request *rq)
{
	char detail[256];

	if (rq->s->load_result == 0)
		return refuse(rq, 503, "The finished run is still being read.", "Ask again in a second.");
	snprintf(detail, sizeof detail, "The run's picture could not be read: %s.",
		 rq->s->load_result < 0 ? uv_strerror(rq->s->load_result) : rq->s->load_why);
	return refuse(rq, 500, detail, "Check the file with `syncline doctor`.");
}

static void release_tile(void *tile)
{
	picture_unref(tile);
}

static enum MHD_Result send_tile(struct request *rq)
{
	struct serve *s = rq->s;
	struct picture_tile *t;
	struct answer a;

	if (!s->heat)
		return no_heat(rq);
	if (picture_tile(s->picture, s->heat, &rq->route.key, rq->gzip, &t) != 0)
		return MHD_NO;
	a = (struct answer){
		.status = 200, .type = "application/octet-stream", .data = t->data, .n = t->n,
		.release = release_tile, .release_arg = t, .gzip = t->gzip, .varies = true,
		/* For ever only under an address that names this very run of ours. */
		.cache = t->sealed && rq->route.rev >= s->rev_base ? CACHE_FOR_EVER : CACHE_ASK,
	};
	snprintf(a.etag, sizeof a.etag, "\"%" PRIx64 "-%x%s\"", s->rev_base, t->rev, t->gzip ? "z" : "");
	return answer_send(rq->conn, &a);
}

static enum MHD_Result send_cols(struct request *rq)
{
	struct serve *s = rq->s;
	unsigned char *cols, *packed;
	size_t n, n_packed;
	struct answer a;

	if (!s->heat)
		return no_heat(rq);
	if (picture_cols(s->heat, &rq->route, &cols, &n) != 0)
		return MHD_NO;
	a = (struct answer){ .status = 200, .type = "application/octet-stream", .data = cols, .n = n,
			     .release = free, .release_arg = cols, .varies = true, .cache = CACHE_ASK };
	if (rq->gzip && pack_gzip(cols, n, &packed, &n_packed) == 0) {
		free(cols);
		a.data = a.release_arg = packed;
		a.n = n_packed;
		a.gzip = true;
	}
	snprintf(a.etag, sizeof a.etag, "\"c%" PRIx64 "%s\"", rev_of(s), a.gzip ? "z" : "");
	return answer_send(rq->conn, &a);
}

/* {"cursor":M,"events":[…],"reset":bool} */
static enum MHD_Result send_since(struct request *rq)
{
	struct serve *s = rq->s;
	uint64_t head = feed_head(s->feed), seen = rq->route.has_cursor ? rq->route.cursor : head;
	bool covered = feed_covers(s->feed, seen);
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);
	struct answer a;

	if (!out)
		return MHD_NO;
	fprintf(out, "{\"cursor\":%" PRIu64 ",\"events\":[", head);
	for (uint64_t id = seen + 1; covered && id <= head; id++) {
		const struct feed_event *ev = feed_get(s->feed, id);

		fprintf(out, "%s{\"id\":%" PRIu64 ",\"event\":\"%s\",\"data\":%s}", id > seen + 1 ? "," : "",
			id, feed_kind_name(ev->kind), ev->data ? ev->data : "{}");
	}
	fprintf(out, "],\"reset\":%s}", covered ? "false" : "true");
	if (fclose(out) != 0) {
		free(text);
		return MHD_NO;
	}
	a = (struct answer){ .status = 200, .type = "application/json", .data = text, .n = n,
			     .release = free, .release_arg = text, .cache = CACHE_ASK };
	snprintf(a.etag, sizeof a.etag, "\"s%" PRIx64 "\"", head);
	return answer_send(rq->conn, &a);
}

static enum MHD_Result send_events(struct request *rq)
{
	const char *last = answer_request_header(rq->conn, "Last-Event-ID");
	bool has_cursor = rq->route.has_cursor;
	uint64_t cursor = rq->route.cursor;
	char *end;

	/* The header is newer than the address: the browser reconnects by itself. */
	if (last && *last) {
		has_cursor = true;
		errno = 0;
		cursor = strtoull(last, &end, 10);
		if (errno != 0 || *end != '\0')
			cursor = UINT64_MAX; /* not ours: reset */
	}
	return streams_open(&rq->s->streams, rq->conn, has_cursor, cursor, mono_ns());
}

static enum MHD_Result log_in(struct request *rq)
{
	struct serve *s = rq->s;
	json_t *json = json_loadb(rq->body ? rq->body : "", rq->n_body, JSON_REJECT_DUPLICATES, NULL);
	const char *given = json_string_value(json_object_get(json, "token"));
	char cookie[MAX_TOKEN + 64];
	struct answer a = { .status = 204 };
	bool right;

	if (!given) {
		json_decref(json);
		return refuse(rq, 400, "The body is not {\"token\":\"T\"}.",
			      "Send the token that the collector was started with as JSON.");
	}
	right = !s->token || token_equal(given, s->token);
	json_decref(json);
	if (!right)
		return refuse(rq, 403, "This is not the token.",
			      "Take it from the file named by --http-token-file on the collector's host.");
	if (s->token) {
		snprintf(cookie, sizeof cookie, "syncline=%s; HttpOnly; SameSite=Strict; Path=/", s->token);
		a.cookie = cookie;
	}
	return answer_send(rq->conn, &a);
}

/* ---- requests */

static bool authorized(struct request *rq)
{
	const char *token = rq->s->token, *given;

	if (!token)
		return true;
	given = answer_request_header(rq->conn, "Authorization");
	if (given && strncasecmp(given, "Bearer ", 7) == 0)
		return token_equal(given + 7 + strspn(given + 7, " "), token);
	given = MHD_lookup_connection_value(rq->conn, MHD_COOKIE_KIND, "syncline");
	return given && token_equal(given, token);
}

static enum MHD_Result bad_request(struct request *rq)
{
	char detail[128];

	switch (rq->outcome) {
	case ROUTE_TOO_LONG:
		return refuse(rq, 414, "The address is longer than 8 kB.", "Ask for less at once.");
	case ROUTE_BAD_ESCAPE:
		return refuse(rq, 400, "The address has a % that is not followed by two hexadecimal digits.",
			      "Encode % itself as %25.");
	case ROUTE_BAD_VALUE:
		snprintf(detail, sizeof detail, "The value of `%s` is not one that can be asked for.",
			 rq->route.bad);
		return refuse(rq, 400, detail, "docs/api.md lists the names and ranges; api/v1/boot what exists.");
	case ROUTE_MISSING:
		snprintf(detail, sizeof detail, "`%s` is missing.", rq->route.bad);
		return refuse(rq, 400, detail, "Add it to the query; docs/api.md has the whole line.");
	case ROUTE_UNKNOWN:
	case ROUTE_OK:
		break;
	}
	return not_there(rq);
}

/* What can be refused before a body is read. MHD_YES with *ret_go: go on. */
static enum MHD_Result admit(struct request *rq, const char *version, bool *ret_go)
{
	struct serve *s = rq->s;
	const char *host = answer_request_header(rq->conn, "Host");
	const char *origin = answer_request_header(rq->conn, "Origin");
	const char *length = answer_request_header(rq->conn, "Content-Length");
	bool probe;

	*ret_go = false;
	if (rq->outcome == ROUTE_TOO_LONG)
		return bad_request(rq);
	/* A name that was rebound to our address would make a stranger's page our own
	 * origin. Health is no secret, and its askers call us by any name; a client
	 * without Host is no browser. */
	probe = rq->outcome == ROUTE_OK &&
		(rq->route.route == ROUTE_HEALTHZ || rq->route.route == ROUTE_READYZ);
	if (!probe && !(host ? host_allowed(host, (const char *const *)s->hosts, s->n_hosts, s->any_literal)
			     : strcmp(version, MHD_HTTP_VERSION_1_0) == 0))
		return refuse(rq, 421, "This collector does not answer to that name.",
			      "Use localhost or its address, or start it with --http-host NAME.");
	if (rq->post && origin && !(host && origin_matches(origin, host)))
		return refuse(rq, 403, "The request comes from a page of another origin.",
			      "Send it from the dashboard itself, or without an Origin header.");
	if (rq->post && length && (strlen(length) > 9 || strtoul(length, NULL, 10) > MAX_BODY_BYTES))
		return refuse(rq, 413, "The body is longer than 64 kB.", "Send less.");
	*ret_go = true;
	return MHD_YES;
}

static enum MHD_Result method_refused(struct request *rq, const char *allow)
{
	struct answer a;

	answer_problem(&a, 405, "This path does not take that method.", "See the Allow header.");
	a.allow = allow;
	return answer_send(rq->conn, &a);
}

static enum MHD_Result dispatch(struct request *rq)
{
	struct serve *s = rq->s;
	const struct web_file *file;
	bool is_login = rq->outcome == ROUTE_OK && rq->route.route == ROUTE_LOGIN;
	struct answer a;

	if (rq->n_body > MAX_BODY_BYTES)
		return refuse(rq, 413, "The body is longer than 64 kB.", "Send less.");
	if (s->stopping)
		return refuse(rq, 503, "The collector is stopping.", "Start it again, then reload.");
	if (is_login != rq->post)
		return method_refused(rq, is_login ? "POST" : "GET, HEAD");
	if (is_login)
		return log_in(rq);
	/* The page is no secret, and it must load to present the token. */
	if (rq->outcome == ROUTE_OK && rq->route.route == ROUTE_FILE) {
		file = find_file(rq->route.path);
		return file ? send_file(rq, file) : not_there(rq);
	}
	if (rq->outcome == ROUTE_OK && rq->route.route == ROUTE_HEALTHZ)
		return answer_send(rq->conn, &(struct answer){ .status = 200, .type = "text/plain",
							       .data = "ok\n", .n = 3 });
	if (rq->outcome == ROUTE_OK && rq->route.route == ROUTE_READYZ)
		return s->heat ? start_job(rq) : no_heat(rq);
	if (!authorized(rq)) {
		answer_problem(&a, 401, "This collector wants a token, and this is none or the wrong one.",
			       "Open the page with #token=T at the end of its address, or send "
			       "`Authorization: Bearer T`.");
		a.ask_token = true;
		return answer_send(rq->conn, &a);
	}
	if (rq->outcome != ROUTE_OK)
		return bad_request(rq);

	switch (rq->route.route) {
	case ROUTE_TILE:
		return send_tile(rq);
	case ROUTE_COLS:
		return send_cols(rq);
	case ROUTE_EVENTS:
		return send_events(rq);
	case ROUTE_SINCE:
		return send_since(rq);
	case ROUTE_BOOT:
	case ROUTE_RUN:
	case ROUTE_RANKS:
	case ROUTE_FINDINGS:
	case ROUTE_STEPS:
	case ROUTE_STEP:
	case ROUTE_CELL:
	case ROUTE_CLOCKS:
	case ROUTE_DROPS:
	case ROUTE_LOGS:
	case ROUTE_METRICS:
		return start_job(rq);
	case ROUTE_FILE:
	case ROUTE_LOGIN:
	case ROUTE_HEALTHZ:
	case ROUTE_READYZ:
		break;
	}
	return not_there(rq);
}

static void keep_body(struct request *rq, const char *data, size_t n)
{
	char *body;

	if (n > MAX_BODY_BYTES || rq->n_body + n > MAX_BODY_BYTES) {
		free(rq->body);
		rq->body = NULL;
		rq->n_body += n;
		return;
	}
	body = realloc(rq->body, rq->n_body + n);
	if (!body)
		return; /* what is missing makes it no JSON */
	memcpy(body + rq->n_body, data, n);
	rq->body = body;
	rq->n_body += n;
}

/* Called once with the head, then for each piece of a body, then to be answered;
 * and once more after a suspension. */
static enum MHD_Result on_request(void *cls, struct MHD_Connection *conn, const char *url,
				  const char *method, const char *version, const char *upload,
				  size_t *n_upload, void **state)
{
	struct request *rq = *state;
	const char *accept;
	bool go;

	(void)cls;
	(void)url; /* ours is the target as it came */
	if (!rq)
		return MHD_NO;
	if (!rq->seen) {
		enum MHD_Result result;

		rq->seen = true;
		rq->conn = conn;
		rq->head = strcmp(method, "HEAD") == 0;
		rq->post = strcmp(method, "POST") == 0;
		accept = answer_request_header(conn, "Accept-Encoding");
		rq->gzip = accept && accepts_gzip(accept);
		result = admit(rq, version, &go);
		if (!go)
			return result;
		if (!rq->head && !rq->post && strcmp(method, "GET") != 0)
			return method_refused(rq, rq->outcome == ROUTE_OK && rq->route.route == ROUTE_LOGIN
							  ? "POST" : "GET, HEAD");
		return MHD_YES;
	}
	if (*n_upload > 0) {
		/* A body without a length that does not end: nothing of it is kept, but
		 * neither do we read it for ever. */
		if (rq->n_body > 16 * MAX_BODY_BYTES)
			return MHD_NO;
		keep_body(rq, upload, *n_upload);
		*n_upload = 0;
		return MHD_YES;
	}
	return rq->job ? finish_job(rq) : dispatch(rq);
}

/* Before anything else of a request: its target, untouched. */
static void *on_uri(void *cls, const char *uri, struct MHD_Connection *conn)
{
	size_t n = strlen(uri), n_kept = n < ROUTE_MAX_URI ? n : ROUTE_MAX_URI;
	struct request *rq = calloc(1, sizeof *rq + n_kept + 1);

	(void)conn;
	if (!rq)
		return NULL;
	rq->s = cls;
	memcpy(rq->uri, uri, n_kept);
	rq->outcome = route_parse(uri, n, &rq->route);
	return rq;
}

static void on_completed(void *cls, struct MHD_Connection *conn, void **state,
			 enum MHD_RequestTerminationCode how)
{
	struct request *rq = *state;

	(void)cls;
	(void)conn;
	(void)how;
	if (!rq)
		return;
	job_free(rq->job);
	free(rq->body);
	free(rq);
	*state = NULL;
}

/* The address is decoded by route.c; MHD's own view of it is not used. */
static size_t on_unescape(void *cls, struct MHD_Connection *conn, char *text)
{
	(void)cls;
	(void)conn;
	return strlen(text);
}

/* ---- the feed */

static void feed_changed(struct serve *s);

static void on_feed_timer(uv_timer_t *handle)
{
	struct serve *s = handle->data;

	if (feed_flush(s->feed, mono_ns()) && streams_wake(&s->streams))
		kick(s);
	feed_changed(s);
}

/* Set the timer for what still waits. */
static void feed_changed(struct serve *s)
{
	int64_t due_ns = feed_due_ns(s->feed), now_ns = mono_ns();

	if (due_ns == INT64_MAX)
		return;
	uv_update_time(s->loop);
	uv_timer_start(&s->feed_timer, on_feed_timer,
		       due_ns > now_ns ? (uint64_t)(due_ns - now_ns) / 1000000 + 1 : 0, 0);
}

static void post(struct serve *s, enum feed_kind kind, json_t *data)
{
	char *text = data ? json_dumps(data, JSON_COMPACT) : NULL;

	json_decref(data);
	if (!s->stopping) {
		if (feed_post(s->feed, kind, text ? text : "{}", mono_ns())) {
			if (streams_wake(&s->streams))
				kick(s);
		} else {
			feed_changed(s);
		}
	}
	free(text);
}

void serve_notify_step(struct serve *s, uint32_t step)
{
	post(s, FEED_STEP, json_pack("{s:I,s:I}", "step", (json_int_t)step, "rev", (json_int_t)rev_of(s)));
}

void serve_notify_finding(struct serve *s, int64_t id, const char *class_name, const char *severity)
{
	post(s, FEED_FINDING, json_pack("{s:I,s:s,s:s}", "id", (json_int_t)id, "class", class_name,
					"severity", severity));
}

void serve_notify_rank(struct serve *s, int32_t rank, const char *state)
{
	post(s, FEED_RANK, json_pack("{s:i,s:s}", "rank", (int)rank, "state", state));
}

void serve_notify_drop(struct serve *s, uint64_t n_total)
{
	post(s, FEED_DROP, json_pack("{s:I}", "total", (json_int_t)n_total));
}

void serve_notify_clock(struct serve *s, int64_t error_ns)
{
	post(s, FEED_CLOCK, error_ns == FACT_NONE ? json_pack("{s:n}", "error_ns")
						  : json_pack("{s:I}", "error_ns", (json_int_t)error_ns));
}

static void on_check_timer(uv_timer_t *handle)
{
	struct serve *s = handle->data;

	if (streams_check(&s->streams, mono_ns()))
		kick(s);
}

/* ---- a finished run */

/* Worker thread. */
static void on_load(uv_work_t *work)
{
	struct load *load = work->data;

	load->result = query_snapshot(load->query, &load->snapshot, load->why);
	if (load->result == 0)
		load->result = query_heat(load->query, load->heat, load->why);
}

static void on_load_done(uv_work_t *work, int status)
{
	struct load *load = work->data;
	struct serve *s = load->s;

	(void)status;
	s->n_jobs--;
	s->own_heat = load->heat;
	s->load_result = load->result;
	memcpy(s->load_why, load->why, sizeof s->load_why);
	if (load->result == 0) {
		s->snapshot = load->snapshot;
		s->heat = s->own_heat;
	}
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
		load->heat = s->own_heat;
		r = uv_queue_work(s->loop, &load->work, on_load, on_load_done);
	}
	if (r != 0) {
		free(load);
		return r;
	}
	s->own_heat = NULL;
	s->n_jobs++;
	return 0;
}

/* ---- start */

struct address {
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} u;
	socklen_t n;
	char name[256]; /* as given, without brackets */
};

static int parse_address(const char *text, struct address *ret)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV };
	const char *colon = strrchr(text, ':'), *name = text;
	struct addrinfo *list;
	size_t n;
	char *end;
	long port;

	if (!colon || colon[1] < '0' || colon[1] > '9')
		return SERVE_BAD_ADDRESS;
	port = strtol(colon + 1, &end, 10);
	if (*end != '\0' || port > 65535)
		return SERVE_BAD_ADDRESS;
	n = (size_t)(colon - text);
	if (n >= 2 && text[0] == '[' && text[n - 1] == ']') {
		name++;
		n -= 2;
	} else if (memchr(text, ':', n)) {
		return SERVE_BAD_ADDRESS; /* an IPv6 address wants brackets */
	}
	if (n == 0 || n >= sizeof ret->name)
		return SERVE_BAD_ADDRESS;
	memcpy(ret->name, name, n);
	ret->name[n] = '\0';
	if (strcmp(ret->name, "localhost") == 0) /* the same on every host */
		memcpy(ret->name, "127.0.0.1", sizeof "127.0.0.1");
	if (getaddrinfo(strcmp(ret->name, "*") == 0 ? "0.0.0.0" : ret->name, colon + 1, &hints, &list) != 0)
		return SERVE_BAD_ADDRESS;
	if (list->ai_addrlen > sizeof ret->u) {
		freeaddrinfo(list);
		return SERVE_BAD_ADDRESS;
	}
	memcpy(&ret->u, list->ai_addr, list->ai_addrlen);
	ret->n = list->ai_addrlen;
	freeaddrinfo(list);
	return 0;
}

static bool is_loopback(const struct address *a)
{
	if (a->u.any.sa_family == AF_INET)
		return ntohl(a->u.v4.sin_addr.s_addr) >> 24 == 127;
	return a->u.any.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&a->u.v6.sin6_addr);
}

static bool is_wildcard(const struct address *a)
{
	if (a->u.any.sa_family == AF_INET)
		return a->u.v4.sin_addr.s_addr == htonl(INADDR_ANY);
	return a->u.any.sa_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&a->u.v6.sin6_addr);
}

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

/* A listening socket of our own, so that what went wrong can be told apart. */
static int listen_at(struct address *a, int *ret_fd)
{
	int fd = socket(a->u.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int on = 1, r = 0;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(fd, &a->u.any, a->n) != 0 || listen(fd, 128) != 0) {
		r = -errno;
		if (r == -EADDRINUSE)
			r = SERVE_IN_USE;
	} else if (getsockname(fd, &a->u.any, &a->n) != 0) {
		r = -errno;
	}
	if (r != 0) {
		close(fd);
		return r;
	}
	*ret_fd = fd;
	return 0;
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
	s->any_literal = is_wildcard(a);
	s->hosts[s->n_hosts] = strdup(ip);
	if (!s->hosts[s->n_hosts++])
		return -ENOMEM;
	s->hosts[s->n_hosts] = strdup(a->name);
	if (!s->hosts[s->n_hosts++])
		return -ENOMEM;
	if (!is_loopback(a) && gethostname(self, sizeof self) == 0) {
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
	return r != 0 ? r : heat_new(&s->own_heat);
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

	r = parse_address(cfg->http, &a);
	if (r == 0 && cfg->token && !token_usable(cfg->token))
		r = SERVE_BAD_TOKEN;
	if (r == 0 && !cfg->token && !is_loopback(&a))
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
	r = listen_at(&a, &fd);
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
		MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request, s,
		MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, MAX_CONNECTIONS,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, MAX_CONNECTION_BYTES, MHD_OPTION_CONNECTION_TIMEOUT,
		IDLE_S, MHD_OPTION_URI_LOG_CALLBACK, on_uri, s, MHD_OPTION_NOTIFY_COMPLETED, on_completed, s,
		MHD_OPTION_UNESCAPE_CALLBACK, on_unescape, s, MHD_OPTION_END);
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
	uv_poll_start(&s->poll, UV_READABLE, on_poll);
	s->streams.feed = s->feed;
	s->streams.heartbeat_ns = (int64_t)or_default(cfg->heartbeat_ms, 15000) * 1000000;
	s->streams.slow_ns = (int64_t)or_default(cfg->slow_ms, 60000) * 1000000;
	check_ms = or_default(cfg->heartbeat_ms, 15000) / 4;
	check_ms = check_ms < 10 ? 10 : check_ms > 1000 ? 1000 : check_ms;
	uv_timer_start(&s->check_timer, on_check_timer, check_ms, check_ms);
	if (s->read_only)
		s->load_result = start_load(s); /* without memory: every picture says so */
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
}

/* Workers that still run hold requests; streams get a moment to take their bye. */
static void on_grace(uv_timer_t *handle)
{
	struct serve *s = handle->data;

	if (s->n_jobs == 0 && (s->streams.n == 0 || mono_ns() >= s->grace_end_ns))
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
		kick(s);
	s->grace_end_ns = mono_ns() + GRACE_NS;
	uv_timer_start(&s->grace_timer, on_grace, 0, 10);
}
