#include "answer.h"

#include "route.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Scripts and styles only from files of ours; nothing is ever loaded from, sent
 * to or framed by another origin. Popups may keep their opener: that is how a
 * trace is handed to another tool. */
static const struct {
	const char *name, *value;
} always[] = {
	{ "Content-Security-Policy",
	  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
	  "img-src 'self' blob: data:; worker-src 'self'; base-uri 'none'; form-action 'none'; "
	  "frame-ancestors 'self'" },
	{ "X-Content-Type-Options", "nosniff" },
	{ "Referrer-Policy", "no-referrer" },
	{ "Cross-Origin-Opener-Policy", "same-origin-allow-popups" },
};

void answer_headers(struct MHD_Response *response)
{
	for (size_t i = 0; i < sizeof always / sizeof *always; i++)
		MHD_add_response_header(response, always[i].name, always[i].value);
}

const char *answer_request_header(struct MHD_Connection *conn, const char *name)
{
	return MHD_lookup_connection_value(conn, MHD_HEADER_KIND, name);
}

static const char *title_of(unsigned status)
{
	switch (status) {
	case 400:
		return "Bad request";
	case 401:
		return "Token wanted";
	case 403:
		return "Not allowed";
	case 404:
		return "Not found";
	case 405:
		return "Method not allowed";
	case 413:
		return "Body too large";
	case 414:
		return "Address too long";
	case 421:
		return "Wrong host";
	case 503:
		return "Not now";
	default:
		return "Internal error";
	}
}

void answer_problem(struct answer *ret, unsigned status, const char *detail, const char *hint)
{
	json_t *json = json_pack("{s:s,s:s,s:i,s:s,s:s}", "type", "about:blank", "title",
				 title_of(status), "status", (int)status, "detail", detail, "hint", hint);
	char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;

	json_decref(json);
	*ret = (struct answer){ .status = status, .type = "application/problem+json" };
	if (text) {
		ret->data = text;
		ret->n = strlen(text);
		ret->release = free;
		ret->release_arg = text;
	}
}

enum MHD_Result answer_send(struct MHD_Connection *conn, struct answer *a)
{
	const char *known = a->etag[0] ? answer_request_header(conn, "If-None-Match") : NULL;
	struct MHD_Response *response;
	enum MHD_Result result;
	char text[16];

	if (known && a->status == 200 && etag_listed(known, a->etag)) {
		if (a->release)
			a->release(a->release_arg);
		a->release = NULL;
		a->data = NULL;
		a->n = 0;
		a->status = 304;
	}
	if (a->release)
		response = MHD_create_response_from_buffer_with_free_callback_cls(
			a->n, (void *)(uintptr_t)a->data, a->release, a->release_arg);
	else
		response = MHD_create_response_from_buffer(a->n, (void *)(uintptr_t)a->data,
							   MHD_RESPMEM_PERSISTENT);
	if (!response) {
		if (a->release)
			a->release(a->release_arg);
		return MHD_NO; /* without memory: the connection closes */
	}
	answer_headers(response);
	if (a->type && a->status != 304 && a->status != 204)
		MHD_add_response_header(response, "Content-Type", a->type);
	MHD_add_response_header(response, "Cache-Control", a->cache ? a->cache : "no-store");
	if (a->gzip && a->status != 304)
		MHD_add_response_header(response, "Content-Encoding", "gzip");
	if (a->varies)
		MHD_add_response_header(response, "Vary", "Accept-Encoding");
	if (a->etag[0])
		MHD_add_response_header(response, "ETag", a->etag);
	if (a->allow)
		MHD_add_response_header(response, "Allow", a->allow);
	if (a->cookie)
		MHD_add_response_header(response, "Set-Cookie", a->cookie);
	if (a->ask_token)
		MHD_add_response_header(response, "WWW-Authenticate", "Bearer realm=\"syncline\"");
	if (a->retry_after_s) {
		snprintf(text, sizeof text, "%u", a->retry_after_s);
		MHD_add_response_header(response, "Retry-After", text);
	}
	result = MHD_queue_response(conn, a->status, response);
	MHD_destroy_response(response);
	return result;
}
