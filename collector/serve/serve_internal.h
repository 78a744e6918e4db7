/* serve_internal.h - what the files of serve share. Loop thread only, but for what
 * a worker is given in a job.
 */
#pragma once

#include "serve.h"

#include "feed.h"
#include "picture.h"
#include "query.h"
#include "route.h"
#include "stream.h"
#include "web.h"

#include <microhttpd.h>
#include <uv.h>

#define MAX_TOKEN 256
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
	uv_timer_t load_timer; /* read-only: look whether the file was written */
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
	char *told; /* read-only: boot's part of the catalogue, as of the heat; owned */
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

/* serve.c */
int64_t serve_mono_ns(void);
/* A connection was resumed outside of the daemon: let it run soon. */
void serve_kick(struct serve *s);
uint64_t serve_rev(const struct serve *s);
void serve_facts(struct serve *s, struct query_facts *f);

/* request.c: the daemon's calls. */

/* Called once with the head, then for each piece of a body, then to be answered;
 * and once more after a suspension. */
enum MHD_Result serve_on_request(void *cls, struct MHD_Connection *conn, const char *url,
				 const char *method, const char *version, const char *upload,
				 size_t *n_upload, void **state);
/* Before anything else of a request: its target, untouched. */
void *serve_on_uri(void *cls, const char *uri, struct MHD_Connection *conn);
void serve_on_completed(void *cls, struct MHD_Connection *conn, void **state,
			enum MHD_RequestTerminationCode how);
/* The address is decoded by route.c; MHD's own view of it is not used. */
size_t serve_on_unescape(void *cls, struct MHD_Connection *conn, char *text);

enum MHD_Result serve_refuse(struct request *rq, unsigned status, const char *detail,
			     const char *hint);
enum MHD_Result serve_not_there(struct request *rq);

/* job.c */
enum MHD_Result serve_start_job(struct request *rq);
enum MHD_Result serve_finish_job(struct request *rq);
void serve_job_free(struct job *job);

/* memory.c */
const struct web_file *serve_find_file(const char *name);
enum MHD_Result serve_send_file(struct request *rq, const struct web_file *w);
enum MHD_Result serve_no_heat(struct request *rq);
enum MHD_Result serve_send_tile(struct request *rq);
enum MHD_Result serve_send_cols(struct request *rq);
enum MHD_Result serve_send_since(struct request *rq);
enum MHD_Result serve_send_events(struct request *rq);
enum MHD_Result serve_log_in(struct request *rq);
