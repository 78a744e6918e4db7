/* bench_ingest.c - events a second from a socket to the disk, acknowledged after
 * the commit: a real collector on a real file, fed over NNG by this process.
 *
 *   bench_ingest COLLECTOR DB [--collectives RANKS] [--seconds S] [--window W]
 *                [--url URL] [--json]
 *
 * Raw: batches of 16 encoded chunks of 1008 scope events on 8 rings.
 * --collectives N: every rank issues 64 collectives a step; arrivals matched and
 * stored are counted in the catalogue afterwards, not believed.
 */
#include "../system/fake_agent.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define N_CHUNKS 16
#define N_RINGS 8
#define N_PREPARED 64
#define COLL_PER_STEP 64
#define STEPS_PER_CHUNK 7 /* about what an agent seals at */
#define STEP_NS FAKE_STEP_NS(COLL_PER_STEP)
#define STEP_EVENTS FAKE_STEP_EVENTS(COLL_PER_STEP)
#define MAX_WINDOW 16
#define MAX_ACKS (1u << 20)

extern char **environ;

static struct {
	struct fake_agent agent;
	unsigned ranks, window;
	double seconds;
	pthread_mutex_t lock;
	uint64_t next_seq;
	int64_t until_ns;
	_Atomic uint64_t n_events, n_bytes, n_failed;
	_Atomic uint32_t n_acks;
	float ack_ms[MAX_ACKS];
	/* raw */
	unsigned char *chunks[N_PREPARED];
	size_t n_chunk[N_PREPARED];
	uint64_t first[N_RINGS];
	/* collectives */
	uint32_t step;
	int64_t at_ns;
} b;

static uint64_t rng = 88172645463325252u;
static uint64_t next_random(void)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng;
}

static void die(const char *what)
{
	fprintf(stderr, "bench_ingest: %s\n", what);
	exit(1);
}

static pid_t start_collector(const char *path, const char *db, const char *url, char *out, size_t n_out)
{
	char fd_text[16], line[800] = "", *at;
	const char *argv[] = { path, "--db", db, "--listen", url, "--http", "127.0.0.1:0",
			       "--run", "bench", "--ready-fd", fd_text, NULL };
	int fds[2];
	pid_t pid;
	ssize_t n;

	if (pipe(fds) != 0)
		die("no pipe");
	snprintf(fd_text, sizeof fd_text, "%d", fds[1]);
	if (posix_spawn(&pid, path, NULL, NULL, (char *const *)argv, environ) != 0)
		die("cannot start the collector");
	close(fds[1]);
	n = read(fds[0], line, sizeof line - 1);
	close(fds[0]);
	at = n > 0 ? strstr(line, "\"listen\":\"") : NULL;
	if (!at)
		die("the collector did not become ready");
	at += strlen("\"listen\":\"");
	snprintf(out, n_out, "%.*s", (int)strcspn(at, "\""), at);
	return pid;
}

/* Spans of a few microseconds with some jitter, as C code marks them. */
static void prepare_raw(void)
{
	static struct event ev[CHUNK_EVENTS];

	for (size_t k = 0; k < N_PREPARED; k++) {
		uint64_t t = (uint64_t)fake_now_ns();

		for (size_t i = 0; i < CHUNK_EVENTS; i++) {
			t += 2000 + next_random() % 30000;
			ev[i] = (struct event){
				.tick = t,
				.kind = i % 2 ? EVENT_SCOPE_END : EVENT_SCOPE_BEGIN,
				.name = (uint32_t)(1 + next_random() % 200),
				.a = event_a((uint32_t)(i / 100), (uint32_t)(next_random() % 100)),
				.b = next_random() % 65536,
			};
		}
		b.chunks[k] = malloc(CHUNK_MAX_BYTES(CHUNK_EVENTS));
		if (!b.chunks[k])
			die("no memory");
		b.n_chunk[k] = chunk_encode(ev, CHUNK_EVENTS, b.chunks[k]);
	}
}

/* Under the lock: which chunks, and where in their rings. */
static void next_raw(struct frame_batch *batch, struct frame_chunk *chunks)
{
	for (size_t i = 0; i < N_CHUNKS; i++) {
		uint32_t ring = (uint32_t)(i % N_RINGS);
		size_t k = next_random() % N_PREPARED;

		chunks[i] = (struct frame_chunk){ .proc = 0, .ring = ring, .first = b.first[ring],
						  .data = b.chunks[k], .n_bytes = b.n_chunk[k] };
		b.first[ring] += CHUNK_EVENTS;
	}
	batch->n_chunks = N_CHUNKS;
}

/* Some steps of every rank, a chunk each. */
static void encode_steps(uint32_t step, int64_t t0, unsigned char *arena, struct frame_chunk *chunks)
{
	static _Thread_local struct event ev[STEPS_PER_CHUNK * STEP_EVENTS];

	for (uint32_t rank = 0; rank < b.ranks; rank++) {
		size_t n = 0;

		for (uint32_t k = step; k < step + STEPS_PER_CHUNK; k++)
			n += fake_step(ev + n, k, rank, COLL_PER_STEP, t0 + (k - step) * STEP_NS);
		chunks[rank] = (struct frame_chunk){ .proc = rank, .ring = 0,
						     .first = (uint64_t)step * STEP_EVENTS,
						     .data = arena };
		chunks[rank].n_bytes = chunk_encode(ev, n, arena);
		arena += (chunks[rank].n_bytes + 7) & ~(size_t)7;
	}
}

static void *sender(void *arg)
{
	struct frame_chunk chunks[64];
	struct frame_buf buf = { 0 };
	unsigned char *arena = malloc(64 * CHUNK_MAX_BYTES(STEPS_PER_CHUNK * STEP_EVENTS));
	nng_ctx ctx;

	(void)arg;
	if (!arena || nng_ctx_open(&ctx, b.agent.data) != 0)
		die("no context");
	for (;;) {
		struct frame_batch batch = { .chunks = chunks };
		uint64_t n_bytes = 0, n_events;
		uint32_t step = 0;
		int64_t t0 = 0, sent_ns;

		pthread_mutex_lock(&b.lock);
		if (fake_now_ns() >= b.until_ns) {
			pthread_mutex_unlock(&b.lock);
			break;
		}
		batch.seq = b.next_seq++;
		if (b.ranks) {
			step = b.step;
			t0 = b.at_ns;
			b.step += STEPS_PER_CHUNK;
			b.at_ns += STEPS_PER_CHUNK * STEP_NS;
		} else {
			next_raw(&batch, chunks);
		}
		pthread_mutex_unlock(&b.lock);
		if (b.ranks) {
			encode_steps(step, t0, arena, chunks);
			batch.n_chunks = b.ranks;
			n_events = (uint64_t)b.ranks * STEPS_PER_CHUNK * STEP_EVENTS;
		} else {
			n_events = N_CHUNKS * CHUNK_EVENTS;
		}
		for (uint32_t i = 0; i < batch.n_chunks; i++)
			n_bytes += chunks[i].n_bytes;
		sent_ns = fake_now_ns();
		if (fake_agent_send(&b.agent, ctx, &batch, &buf, 30000)) {
			uint32_t k = b.n_acks++;

			if (k < MAX_ACKS)
				b.ack_ms[k] = (float)(fake_now_ns() - sent_ns) / 1e6f;
			b.n_events += n_events;
			b.n_bytes += n_bytes;
		} else {
			b.n_failed++;
		}
	}
	nng_ctx_close(ctx);
	frame_buf_fini(&buf);
	free(arena);
	return NULL;
}

/* Names and members of the group, before the first step. */
static void introduce(void)
{
	char text[512] = "{\"c\":\"meta.group\",\"f\":{\"name\":\"world\",\"ranks\":[";
	struct frame_name names[64];
	struct frame_text group = { .proc = 0, .kind = 3, .at_ns = fake_now_ns(), .text = text };
	struct frame_batch batch = { .seq = b.next_seq++, .names = names, .texts = &group,
				     .n_texts = b.ranks ? 1 : 0, .n_names = b.agent.n_procs };
	struct frame_buf buf = { 0 };
	nng_ctx ctx;

	for (uint32_t i = 0; i < b.agent.n_procs; i++) {
		names[i] = (struct frame_name){ .proc = i, .id = 1, .text = "world", .n_text = 5 };
		sprintf(text + strlen(text), "%s%u", i ? "," : "", i);
	}
	strcat(text, "]}}");
	group.n_text = (uint32_t)strlen(text);
	if (nng_ctx_open(&ctx, b.agent.data) != 0 ||
	    !fake_agent_send(&b.agent, ctx, &batch, &buf, 10000))
		die("the first batch was not acknowledged");
	nng_ctx_close(ctx);
	frame_buf_fini(&buf);
}

static double query(const char *db, const char *sql)
{
	sqlite3_stmt *q;
	sqlite3 *c;
	double v = -1;

	if (sqlite3_open_v2(db, &c, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
	    sqlite3_prepare_v2(c, sql, -1, &q, NULL) == SQLITE_OK) {
		if (sqlite3_step(q) == SQLITE_ROW)
			v = sqlite3_column_double(q, 0);
		sqlite3_finalize(q);
	}
	sqlite3_close(c);
	return v;
}

static int by_value(const void *x, const void *y)
{
	float a = *(const float *)x, c = *(const float *)y;

	return (a > c) - (a < c);
}

int main(int argc, char **argv)
{
	const char *url = "tcp://127.0.0.1:0";
	char bound[300];
	pthread_t threads[MAX_WINDOW];
	struct rusage usage;
	struct stat st;
	int64_t t0, t1;
	int status;
	double s, stored, arrivals, in_chunks;
	pid_t pid;

	b.seconds = 5;
	b.window = 4;
	if (argc < 3)
		die("usage: bench_ingest COLLECTOR DB [--collectives N] [--seconds S] [--window W] [--url U]");
	for (int i = 3; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--collectives") == 0)
			b.ranks = (unsigned)atoi(argv[i + 1]);
		else if (strcmp(argv[i], "--seconds") == 0)
			b.seconds = atof(argv[i + 1]);
		else if (strcmp(argv[i], "--window") == 0)
			b.window = (unsigned)atoi(argv[i + 1]);
		else if (strcmp(argv[i], "--url") == 0)
			url = argv[i + 1];
	}
	if (b.ranks > 64 || b.window == 0 || b.window > MAX_WINDOW)
		die("at most 64 ranks and 16 requests in flight");
	pid = start_collector(argv[1], argv[2], url, bound, sizeof bound);
	pthread_mutex_init(&b.lock, NULL);
	b.next_seq = 1;
	b.agent.run_id = "bench";
	memset(b.agent.agent_id, 7, 16);
	if (!fake_agent_share_clock(&b.agent)) /* so that no exchange is needed */
		die("cannot read /proc");
	b.agent.n_procs = b.ranks ? b.ranks : 1;
	for (uint32_t i = 0; i < b.agent.n_procs; i++)
		fake_proc(&b.agent.procs[i], i, (int32_t)i, (int32_t)b.agent.n_procs);
	if (fake_agent_open(&b.agent, bound, 60000) != 0 || !fake_agent_hello(&b.agent, 5000))
		die("no welcome");
	if (!b.ranks)
		prepare_raw();
	introduce();
	b.at_ns = fake_now_ns();
	t0 = fake_now_ns();
	b.until_ns = t0 + (int64_t)(b.seconds * 1e9);
	for (unsigned i = 0; i < b.window; i++)
		pthread_create(&threads[i], NULL, sender, NULL);
	for (unsigned i = 0; i < b.window; i++)
		pthread_join(threads[i], NULL);
	t1 = fake_now_ns();
	s = (double)(t1 - t0) / 1e9;
	kill(pid, SIGTERM);
	wait4(pid, &status, 0, &usage);
	stored = query(argv[2], "SELECT total(n_events) FROM raw_chunk");
	in_chunks = query(argv[2], "SELECT total(length(data)) FROM raw_chunk");
	arrivals = query(argv[2], "SELECT total(n_seen) FROM raw_collective");
	if (stat(argv[2], &st) != 0)
		die("no catalogue");
	printf("%-22s %9.3f M events/s acknowledged after commit, %.0f stored, %llu batches failed\n",
	       b.ranks ? "collectives" : "raw", (double)b.n_events / s / 1e6, stored,
	       (unsigned long long)b.n_failed);
	qsort(b.ack_ms, b.n_acks < MAX_ACKS ? b.n_acks : MAX_ACKS, sizeof *b.ack_ms, by_value);
	printf("%-22s %9.1f ms median, %.1f ms 99th of %u batches\n", "acknowledgement",
	       (double)b.ack_ms[b.n_acks / 2], (double)b.ack_ms[(uint64_t)b.n_acks * 99 / 100], b.n_acks);
	printf("%-22s %9.2f chunk, %.2f file\n", "bytes an event", in_chunks / stored,
	       (double)st.st_size / stored);
	if (b.ranks)
		printf("%-22s %9.3f M/s matched and stored (%.0f ranks, %.0f arrivals, %.0f complete collectives)\n",
		       "arrivals", arrivals / s / 1e6, (double)b.ranks, arrivals,
		       query(argv[2], "SELECT count(*) FROM raw_collective WHERE n_seen = n_expected"));
	printf("%-22s %9.1f ns an event, %.0f MiB resident at most, status %d\n", "collector CPU",
	       ((double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
		(double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6) /
		       (double)b.n_events * 1e9,
	       (double)usage.ru_maxrss / 1024, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	fake_agent_close(&b.agent);
	return stored == (double)b.n_events && b.n_failed == 0 ? 0 : 1;
}
