/* job.c - answers that need the catalogue: the request sleeps while a worker reads. */
#include "serve_internal.h"

#include "answer.h"
#include "pack.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_JOBS 64

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

void serve_job_free(struct job *job)
{
	if (!job)
		return;
	free(job->facts.finished);
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
	serve_kick(s);
}

enum MHD_Result serve_start_job(struct request *rq)
{
	struct serve *s = rq->s;
	struct job *job;

	if (s->n_jobs >= MAX_JOBS)
		return serve_refuse(rq, 503, "Too many questions are waiting for the catalogue.",
				    "Ask again in a second.");
	job = calloc(1, sizeof *job);
	if (!job)
		return MHD_NO;
	job->work.data = job;
	job->rq = rq;
	job->query = s->query;
	job->route = rq->route;
	job->gzip = rq->gzip;
	serve_facts(s, &job->facts);
	if (s->told && (job->route.route == ROUTE_BOOT || job->route.route == ROUTE_RUN)) {
		job->facts.finished = strdup(s->told);
		if (!job->facts.finished) {
			serve_job_free(job);
			return MHD_NO;
		}
	}
	if (uv_queue_work(s->loop, &job->work, on_work, on_work_done) != 0) {
		serve_job_free(job);
		return serve_refuse(rq, 503, "No worker can be started.", "Ask again in a second.");
	}
	s->n_jobs++;
	MHD_suspend_connection(rq->conn);
	return MHD_YES;
}

enum MHD_Result serve_finish_job(struct request *rq)
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
		return serve_refuse(rq, 503, detail, "Check the file with `syncline doctor`.");
	}
	switch (job->result) {
	case QUERY_OK:
		break;
	case QUERY_NONE:
		return serve_refuse(rq, 404, "The catalogue has no such row.",
				    "api/v1/steps and api/v1/ranks list what there is.");
	case QUERY_BUSY:
		snprintf(detail, sizeof detail, "The catalogue cannot be read now: %s.", job->why);
		return serve_refuse(rq, 503, detail, "Ask again in a second.");
	case QUERY_LATE:
		return serve_refuse(rq, 503, "The question took longer than a reader may.",
				    "Ask for a smaller range, or use `syncline sql` on the file.");
	default:
		snprintf(detail, sizeof detail, "The catalogue could not be read: %s.",
			 job->result < 0 ? uv_strerror(job->result) : job->why);
		return serve_refuse(rq, 500, detail, "Check the file with `syncline doctor`.");
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
