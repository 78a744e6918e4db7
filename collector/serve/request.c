/* request.c - a request from its first byte: admitted, authorised, given to whoever
 * answers it.
 */
#include "serve_internal.h"

#include "answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_BODY_BYTES ((size_t)64 << 10)

/* ---- refusals */

enum MHD_Result serve_refuse(struct request *rq, unsigned status, const char *detail,
			     const char *hint)
{
	struct answer a;

	answer_problem(&a, status, detail, hint);
	if (status == 503)
		a.retry_after_s = 1;
	return answer_send(rq->conn, &a);
}

enum MHD_Result serve_not_there(struct request *rq)
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
	return serve_refuse(rq, 404, detail,
			    "docs/api.md lists the paths; the page itself is at /.");
}

static enum MHD_Result bad_request(struct request *rq)
{
	char detail[128];

	switch (rq->outcome) {
	case ROUTE_TOO_LONG:
		return serve_refuse(rq, 414, "The address is longer than 8 kB.",
				    "Ask for less at once.");
	case ROUTE_BAD_ESCAPE:
		return serve_refuse(
			rq, 400,
			"The address has a % that is not followed by two hexadecimal digits.",
			"Encode % itself as %25.");
	case ROUTE_BAD_VALUE:
		snprintf(detail, sizeof detail, "The value of `%s` is not one that can be asked for.",
			 rq->route.bad);
		return serve_refuse(
			rq, 400, detail,
			"docs/api.md lists the names and ranges; api/v1/boot what exists.");
	case ROUTE_MISSING:
		snprintf(detail, sizeof detail, "`%s` is missing.", rq->route.bad);
		return serve_refuse(rq, 400, detail,
				    "Add it to the query; docs/api.md has the whole line.");
	case ROUTE_UNKNOWN:
	case ROUTE_OK:
		break;
	}
	return serve_not_there(rq);
}

static enum MHD_Result method_refused(struct request *rq, const char *allow)
{
	struct answer a;

	answer_problem(&a, 405, "This path does not take that method.", "See the Allow header.");
	a.allow = allow;
	return answer_send(rq->conn, &a);
}

/* ---- who may ask */

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
		return serve_refuse(rq, 421, "This collector does not answer to that name.",
				    "Use localhost or its address, or start it with --http-host NAME.");
	if (rq->post && origin && !(host && origin_matches(origin, host)))
		return serve_refuse(rq, 403, "The request comes from a page of another origin.",
				    "Send it from the dashboard itself, or without an Origin header.");
	if (rq->post && length && (strlen(length) > 9 || strtoul(length, NULL, 10) > MAX_BODY_BYTES))
		return serve_refuse(rq, 413, "The body is longer than 64 kB.", "Send less.");
	*ret_go = true;
	return MHD_YES;
}

/* ---- who answers */

static enum MHD_Result dispatch(struct request *rq)
{
	struct serve *s = rq->s;
	const struct web_file *file;
	bool is_login = rq->outcome == ROUTE_OK && rq->route.route == ROUTE_LOGIN;
	struct answer a;

	if (rq->n_body > MAX_BODY_BYTES)
		return serve_refuse(rq, 413, "The body is longer than 64 kB.", "Send less.");
	if (s->stopping)
		return serve_refuse(rq, 503, "The collector is stopping.",
				    "Start it again, then reload.");
	if (is_login != rq->post)
		return method_refused(rq, is_login ? "POST" : "GET, HEAD");
	if (is_login)
		return serve_log_in(rq);
	/* The page is no secret, and it must load to present the token. */
	if (rq->outcome == ROUTE_OK && rq->route.route == ROUTE_FILE) {
		file = serve_find_file(rq->route.path);
		return file ? serve_send_file(rq, file) : serve_not_there(rq);
	}
	if (rq->outcome == ROUTE_OK && rq->route.route == ROUTE_HEALTHZ)
		return answer_send(rq->conn, &(struct answer){ .status = 200, .type = "text/plain",
							       .data = "ok\n", .n = 3 });
	if (rq->outcome == ROUTE_OK && rq->route.route == ROUTE_READYZ)
		return s->heat ? serve_start_job(rq) : serve_no_heat(rq);
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
		return serve_send_tile(rq);
	case ROUTE_COLS:
		return serve_send_cols(rq);
	case ROUTE_EVENTS:
		return serve_send_events(rq);
	case ROUTE_SINCE:
		return serve_send_since(rq);
	case ROUTE_BOOT:
	case ROUTE_RUN:
	case ROUTE_METRICS:
		return s->heat ? serve_start_job(rq) : serve_no_heat(rq); /* not of an unread run */
	case ROUTE_RANKS:
	case ROUTE_FINDINGS:
	case ROUTE_STEPS:
	case ROUTE_STEP:
	case ROUTE_CELL:
	case ROUTE_CLOCKS:
	case ROUTE_CLOCK_HISTORY:
	case ROUTE_CLOCK_STEPS:
	case ROUTE_DROPS:
	case ROUTE_LOGS:
		return serve_start_job(rq);
	case ROUTE_FILE:
	case ROUTE_LOGIN:
	case ROUTE_HEALTHZ:
	case ROUTE_READYZ:
		break;
	}
	return serve_not_there(rq);
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

/* ---- the daemon's calls */

enum MHD_Result serve_on_request(void *cls, struct MHD_Connection *conn, const char *url,
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
	return rq->job ? serve_finish_job(rq) : dispatch(rq);
}

void *serve_on_uri(void *cls, const char *uri, struct MHD_Connection *conn)
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

void serve_on_completed(void *cls, struct MHD_Connection *conn, void **state,
			enum MHD_RequestTerminationCode how)
{
	struct request *rq = *state;

	(void)cls;
	(void)conn;
	(void)how;
	if (!rq)
		return;
	serve_job_free(rq->job);
	free(rq->body);
	free(rq);
	*state = NULL;
}

size_t serve_on_unescape(void *cls, struct MHD_Connection *conn, char *text)
{
	(void)cls;
	(void)conn;
	return strlen(text);
}
