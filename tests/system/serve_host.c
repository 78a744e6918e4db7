/* serve_host.c - serve on a loop of its own, led by lines on stdin.
 *
 * The tests' stand-in for the collector around serve: it fills the heat from the
 * catalogue at start, tells the live facts and notifies what a line says:
 *
 *   step N | finding ID CLASS SEVERITY | rank R STATE | drop N | clock NS
 *   event NOW LAST     fleet times of now and of the newest event
 *   put STEP RANK SELF_NS EXCESS   one more cell
 *   release            what `hold` holds: the workers, and so the load of a read-only file
 *   quit               (or the end of stdin)
 *
 * Answers "ok" to each, so that a test knows it happened. First line out: the URL.
 */
#include "heat.h"
#include "query.h"
#include "serve.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

struct host {
	uv_loop_t loop;
	uv_pipe_t in;
	uv_work_t held;
	uv_sem_t release;
	struct serve *serve;
	struct heat *heat;
	int64_t now_ns, last_event_ns;
	char line[256];
	size_t n_line;
};

static void on_live(void *arg, struct serve_live *ret)
{
	struct host *h = arg;

	ret->now_ns = h->now_ns;
	ret->last_event_ns = h->last_event_ns;
	ret->listen = "tcp://127.0.0.1:7788";
	ret->n_agents = 1;
	ret->n_ranks = ret->n_ranks_seen = ret->n_ranks_expected = 4;
	ret->n_events = 1000;
	ret->clock_error_ns = 250;
	ret->n_hosts = 2;
	ret->n_hosts_unaligned = 1;
	ret->agent_cpu_ratio = 0.004;
}

static void on_held(uv_work_t *work)
{
	struct host *h = work->data;

	uv_sem_wait(&h->release);
}

static void hold(struct host *h)
{
	uv_sem_init(&h->release, 0);
	h->held.data = h;
	uv_queue_work(&h->loop, &h->held, on_held, NULL);
}

static void on_stopped(void *arg)
{
	struct host *h = arg;

	h->serve = NULL;
	uv_close((uv_handle_t *)&h->in, NULL);
}

static void stop(struct host *h)
{
	uv_read_stop((uv_stream_t *)&h->in);
	serve_stop(h->serve, on_stopped, h);
}

static bool obey(struct host *h, const char *line)
{
	char a[64], b[64];
	int64_t n, m;
	uint32_t step;
	int rank;
	double excess;

	if (strcmp(line, "quit") == 0)
		return false;
	if (strcmp(line, "release") == 0)
		uv_sem_post(&h->release);
	else if (sscanf(line, "step %u", &step) == 1)
		serve_notify_step(h->serve, step);
	else if (sscanf(line, "finding %" SCNd64 " %63s %63s", &n, a, b) == 3)
		serve_notify_finding(h->serve, n, a, b);
	else if (sscanf(line, "rank %d %63s", &rank, a) == 2)
		serve_notify_rank(h->serve, rank, a);
	else if (sscanf(line, "drop %" SCNd64, &n) == 1)
		serve_notify_drop(h->serve, (uint64_t)n);
	else if (sscanf(line, "clock %" SCNd64, &n) == 1)
		serve_notify_clock(h->serve, n);
	else if (sscanf(line, "event %" SCNd64 " %" SCNd64, &n, &m) == 2)
		h->now_ns = n, h->last_event_ns = m;
	else if (sscanf(line, "put %u %d %" SCNd64 " %lf", &step, &rank, &n, &excess) == 4)
		(void)heat_put(h->heat, &(struct fact_rank_step){
			.step = step, .rank = rank, .self_ns = n, .dur_ns = n, .excess_ratio = excess,
			.n_peers = 4, .coverage = 1 });
	puts("ok");
	fflush(stdout);
	return true;
}

static void on_alloc(uv_handle_t *handle, size_t hint, uv_buf_t *ret)
{
	struct host *h = handle->data;

	(void)hint;
	*ret = uv_buf_init(h->line + h->n_line, (unsigned)(sizeof h->line - 1 - h->n_line));
}

static void on_line(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct host *h = stream->data;
	char *end;

	(void)buf;
	if (n < 0) {
		stop(h);
		return;
	}
	h->n_line += (size_t)n;
	while ((end = memchr(h->line, '\n', h->n_line))) {
		*end = '\0';
		if (!obey(h, h->line)) {
			stop(h);
			return;
		}
		h->n_line -= (size_t)(end + 1 - h->line);
		memmove(h->line, end + 1, h->n_line);
	}
}

/* serve_host DB ADDR:PORT [read-only] [token=T] [host=NAME] [gap_ms=N] [heartbeat_ms=N]
 * [slow_ms=N] [query_ms=N] [hold] */
int main(int argc, char **argv)
{
	static struct host h = { .now_ns = 2000000000, .last_event_ns = 1999000000 };
	struct serve_config cfg = { .live = on_live, .arg = &h };
	char error[512], why[160] = "";
	const char *name;
	bool held = false;
	int r;

	if (argc < 3)
		return 2;
	cfg.db_path = argv[1];
	cfg.http = argv[2];
	for (int i = 3; i < argc; i++) {
		if (strcmp(argv[i], "read-only") == 0)
			cfg.read_only = true;
		else if (strcmp(argv[i], "hold") == 0)
			held = true;
		else if (strncmp(argv[i], "token=", 6) == 0)
			cfg.token = argv[i] + 6;
		else if (strncmp(argv[i], "host=", 5) == 0)
			name = argv[i] + 5, cfg.hosts = &name, cfg.n_hosts = 1;
		else if (sscanf(argv[i], "gap_ms=%u", &cfg.event_gap_ms) != 1 &&
			 sscanf(argv[i], "heartbeat_ms=%u", &cfg.heartbeat_ms) != 1 &&
			 sscanf(argv[i], "slow_ms=%u", &cfg.slow_ms) != 1 &&
			 sscanf(argv[i], "query_ms=%u", &cfg.query_ms) != 1)
			return 2;
	}
	uv_loop_init(&h.loop);
	if (held) {
		setenv("UV_THREADPOOL_SIZE", "1", 1);
		hold(&h);
	}
	if (!cfg.read_only) {
		struct query *q;
		struct serve_live live;
		char *told = NULL;

		if (heat_new(&h.heat) != 0 || query_new(&q, cfg.db_path, false, 1000) != 0)
			return 3;
		r = query_load(q, &live, &told, h.heat, why);
		query_free(q);
		free(told);
		if (r != 0)
			fprintf(stderr, "%s\n", why);
		cfg.heat = h.heat;
	}
	r = serve_start(&h.serve, &h.loop, &cfg, error, sizeof error);
	if (r != 0) {
		fprintf(stderr, "%s\n", error);
		heat_free(h.heat);
		uv_loop_close(&h.loop);
		return 3;
	}
	uv_pipe_init(&h.loop, &h.in, 0);
	h.in.data = &h;
	uv_pipe_open(&h.in, 0);
	uv_read_start((uv_stream_t *)&h.in, on_alloc, on_line);
	puts(serve_url(h.serve));
	fflush(stdout);
	uv_run(&h.loop, UV_RUN_DEFAULT);
	r = uv_loop_close(&h.loop);
	heat_free(h.heat);
	return r == 0 ? 0 : 1; /* a handle that is still open is a leak */
}
