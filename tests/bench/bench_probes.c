/* What a clock probe costs the collector: the digest alone, and a whole answer on
 * its loop through the loopback device, kernel stamps read, both ends' system calls
 * in one thread (the client's are measured apart and taken off). */
#include "../../collector/core.h"
#include "../../collector/ingest.h"
#include "../../collector/responder.h"
#include "../../proto/frame.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define N 100000
#define AT_ONCE 5 /* as a train brings them */

static struct frame_welcome welcome;

static void on_reply(void *arg, struct inbox_msg *m, const void *data, size_t n)
{
	struct frame f;

	if (frame_open(&f, data, n) == FRAME_OK && f.type == FRAME_WELCOME)
		welcome = f.welcome;
	frame_close(&f);
}
static void on_submit(void *arg, struct store_job *j)
{
	job_clear(j);
	job_free(j);
}
static int no_trouble(void *arg)
{
	return 0;
}
static unsigned n_free(void *arg)
{
	return 60;
}

static double cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static int64_t raw_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void say_hello(struct ingest *g)
{
	struct frame f = { .type = FRAME_HELLO };
	struct inbox_msg m = { .control = true };
	struct frame_buf b = { 0 };

	f.hello = (struct frame_hello){ .protocol = 1, .run_id = "bench", .host = "far",
					.boot_id = "another", .token = "", .version = "1",
					.time_ns_inode = 7, .raw_ns = 1, .real_ns = 1 };
	frame_pack(&b, &f);
	m.data = b.data;
	m.n_bytes = b.n_bytes;
	ingest_message(g, &m, raw_ns());
	frame_buf_fini(&b);
}

/* Sends, lets the loop answer unless it is NULL, and takes the answers. */
static double exchange(int fd, const struct sockaddr_in *to, uv_loop_t *loop, const struct ping_key *key)
{
	struct ping q = { .kind = PING_REQUEST, .stream = welcome.stream };
	static uint64_t seq;
	uint8_t bytes[PING_BYTES];
	unsigned n_answers = 0;
	double begin = cpu_ns();

	for (unsigned i = 0; i < N; i += AT_ONCE) {
		for (unsigned k = 0; k < AT_ONCE; k++) {
			q.seq = ++seq;
			ping_pack(bytes, &q, key);
			(void)!sendto(fd, bytes, sizeof bytes, 0, (const struct sockaddr *)to, sizeof *to);
		}
		if (loop)
			uv_run(loop, UV_RUN_NOWAIT);
		for (unsigned k = 0; k < AT_ONCE; k++)
			n_answers += recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) == PING_BYTES;
	}
	if (loop && n_answers < N)
		fprintf(stderr, "%u of %u were answered\n", n_answers, N);
	return (cpu_ns() - begin) / N;
}

int main(void)
{
	struct sockaddr_storage at = { 0 };
	struct sockaddr_in *v4 = (struct sockaddr_in *)&at, nobody;
	struct ingest_config cfg = { .run_id = "bench", .boot_id = "boot", .time_ns_inode = 5,
				     .raw_ns = raw_ns(), .real_ns = 1, .reply = on_reply,
				     .submit = on_submit, .trouble = no_trouble, .n_free = n_free };
	int fd = socket(AF_INET, SOCK_DGRAM, 0), sink = socket(AF_INET, SOCK_DGRAM, 0);
	socklen_t n = sizeof nobody;
	struct responder *r;
	struct ingest *g;
	struct ping_key key;
	uint8_t bytes[PING_BYTES];
	uv_loop_t loop;
	double begin, whole, client;

	v4->sin_family = AF_INET;
	v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	nobody = *v4;
	uv_loop_init(&loop);
	if (core_new(&cfg.core, NULL, NULL) != 0)
		return 3;
	if (ingest_new(&g, &cfg) != 0 || responder_open(&r, &loop, g, &at, 0) != 0 ||
	    bind(sink, (struct sockaddr *)&nobody, sizeof nobody) != 0 ||
	    getsockname(sink, (struct sockaddr *)&nobody, &n) != 0)
		return 3;
	ingest_set_probe_port(g, responder_port(r));
	say_hello(g);
	ping_derive_key(&key, "", welcome.stream, welcome.probe_secret);
	v4->sin_port = htons(responder_port(r));

	begin = cpu_ns();
	for (unsigned i = 0; i < N; i++) {
		ping_pack(bytes, &(struct ping){ .kind = PING_REQUEST, .stream = 1, .seq = i + 1 }, &key);
		if (ping_verify(bytes, &key) != PING_OK)
			return 3;
	}
	printf("digest made and checked: %.0f ns\n", (cpu_ns() - begin) / N);
	whole = exchange(fd, v4, &loop, &key);
	client = exchange(fd, &nobody, NULL, &key);
	printf("a probe answered: %.1f us of CPU, %.0f a second on one core\n", (whole - client) / 1e3,
	       1e9 / (whole - client));
	return 0;
}
