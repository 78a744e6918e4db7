/* answer.h - one HTTP answer, with the headers that every one of ours carries. */
#pragma once

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>

struct answer {
	unsigned status;
	const char *type;
	const void *data;
	size_t n;
	void (*release)(void *arg); /* NULL: data is constant */
	void *release_arg;
	bool gzip;   /* data is packed */
	bool varies; /* with Accept-Encoding */
	const char *cache; /* NULL: no-store */
	char etag[48];     /* "" = none */
	const char *allow, *cookie; /* NULL = none */
	bool ask_token;
	unsigned retry_after_s; /* 0 = none */
};

/* A problem document; the texts are copied. */
void answer_problem(struct answer *ret, unsigned status, const char *detail, const char *hint);

/* Queues it, or 304 when the client has it already; releases data once it is out,
 * whatever comes. */
enum MHD_Result answer_send(struct MHD_Connection *conn, struct answer *a);

void answer_headers(struct MHD_Response *response);
const char *answer_request_header(struct MHD_Connection *conn, const char *name);
