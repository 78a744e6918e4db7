/* memory.c - answers from memory: files, the picture, the feed, the log-in. */
#include "serve_internal.h"

#include "answer.h"
#include "pack.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Kept by browsers for a year: the name or the revision changes with the content. */
#define CACHE_FOR_EVER "private, max-age=31536000, immutable"

const struct web_file *serve_find_file(const char *name)
{
	for (size_t i = 0; i < web_n_files; i++) {
		if (strcmp(web_files[i].name, name) == 0)
			return &web_files[i];
	}
	return NULL;
}

enum MHD_Result serve_send_file(struct request *rq, const struct web_file *w)
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

enum MHD_Result serve_no_heat(struct request *rq)
{
	char detail[256];

	if (rq->s->load_result == 0)
		return serve_refuse(rq, 503, "Reading the catalogue.",
				    "Ask again in a second; a large run takes longer.");
	if (rq->s->load_result == QUERY_BUSY) {
		snprintf(detail, sizeof detail, "The catalogue cannot be read now: %s.",
			 rq->s->load_why);
		return serve_refuse(rq, 503, detail, "It is tried again every 2 s.");
	}
	snprintf(detail, sizeof detail, "The run's picture could not be read: %s.",
		 rq->s->load_result < 0 ? uv_strerror(rq->s->load_result) : rq->s->load_why);
	return serve_refuse(rq, 500, detail, "Check the file with `syncline doctor`.");
}

static void release_tile(void *tile)
{
	picture_unref(tile);
}

enum MHD_Result serve_send_tile(struct request *rq)
{
	struct serve *s = rq->s;
	struct picture_tile *t;
	struct answer a;

	if (!s->heat)
		return serve_no_heat(rq);
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

enum MHD_Result serve_send_cols(struct request *rq)
{
	struct serve *s = rq->s;
	unsigned char *cols, *packed;
	size_t n, n_packed;
	struct answer a;

	if (!s->heat)
		return serve_no_heat(rq);
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
	snprintf(a.etag, sizeof a.etag, "\"c%" PRIx64 "%s\"", serve_rev(s), a.gzip ? "z" : "");
	return answer_send(rq->conn, &a);
}

/* {"cursor":M,"events":[…],"reset":bool} */
enum MHD_Result serve_send_since(struct request *rq)
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

enum MHD_Result serve_send_events(struct request *rq)
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
	return streams_open(&rq->s->streams, rq->conn, has_cursor, cursor, serve_mono_ns());
}

enum MHD_Result serve_log_in(struct request *rq)
{
	struct serve *s = rq->s;
	json_t *json = json_loadb(rq->body ? rq->body : "", rq->n_body, JSON_REJECT_DUPLICATES, NULL);
	const char *given = json_string_value(json_object_get(json, "token"));
	char cookie[MAX_TOKEN + 64];
	struct answer a = { .status = 204 };
	bool right;

	if (!given) {
		json_decref(json);
		return serve_refuse(rq, 400, "The body is not {\"token\":\"T\"}.",
				    "Send the token that the collector was started with as JSON.");
	}
	right = !s->token || token_equal(given, s->token);
	json_decref(json);
	if (!right)
		return serve_refuse(rq, 403, "This is not the token.",
				    "Take it from the file named by --http-token-file on the collector's host.");
	if (s->token) {
		snprintf(cookie, sizeof cookie, "syncline=%s; HttpOnly; SameSite=Strict; Path=/", s->token);
		a.cookie = cookie;
	}
	return answer_send(rq->conn, &a);
}
