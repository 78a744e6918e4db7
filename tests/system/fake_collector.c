/* fake_collector.c - a collector that only notes what it was given, and misbehaves on request.
 *
 * Speaks the real frames over NNG. What it "commits" goes to a file, one line a
 * fact, which a next start reads: so a killed and restarted one knows what it
 * has, as a real one does. The test reads the same file.
 *
 *   batch AGENT SEQ GIVEN_UP          committed
 *   again AGENT SEQ                   came once more, not committed
 *   proc AGENT SEQ UNIQUE RANK STATE EXIT SIGNAL DROPPED ERROR_NS PID
 *   name AGENT SEQ UNIQUE ID TEXT
 *   chunk AGENT SEQ UNIQUE RING FIRST N A_FIRST A_LAST CONTIGUOUS T_MIN T_MAX N_BYTES
 *   text AGENT SEQ UNIQUE KIND LEVEL TEXT
 *   gauge NAME VALUE PROC
 *   unknown AGENT SEQ                 a chunk names a process or name never stated
 *   hello RUN HOST N_PROCS TOKEN      beat T0 N_INFLIGHT GROUP PHASE STEP SPOOLED CPU_NS RSS
 */
#include "../../proto/chunk.h"
#include "../../proto/frame.h"
#include "../../proto/shm.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <nng/nng.h>
#include <nng/protocol/reqrep0/rep.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define N_DATA 16
#define MAX_BATCHES 65536

static struct {
	const char *listen, *out;
	int delay_ms, n_mute, n_forget, n_busy, refuse, refuse_hello, level, credit, die_after;
	uint64_t malformed_seq;
	bool garbage;
} opt = { .level = 2, .credit = 8 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *out;
static struct {
	uint8_t agent[16];
	uint64_t stream;
} streams[64];
static unsigned n_streams;
static uint64_t first_stream;
static struct {
	uint8_t agent[16];
	uint64_t seq;
} done[MAX_BATCHES];
static size_t n_done;

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static const char *hex(const uint8_t id[16], char buf[33])
{
	for (int i = 0; i < 16; i++)
		snprintf(buf + 2 * i, 3, "%02x", id[i]);
	return buf;
}

static bool is_done(const uint8_t agent[16], uint64_t seq)
{
	for (size_t i = n_done; i-- > 0;)
		if (done[i].seq == seq && memcmp(done[i].agent, agent, 16) == 0)
			return true;
	return false;
}

static void remember(const uint8_t agent[16], uint64_t seq)
{
	assert(n_done < MAX_BATCHES);
	memcpy(done[n_done].agent, agent, 16);
	done[n_done++].seq = seq;
}

static void read_back(void)
{
	FILE *f = fopen(opt.out, "r");
	char id[33], line[8192];
	uint64_t seq;

	while (f && fgets(line, sizeof line, f)) {
		uint8_t agent[16];

		if (sscanf(line, "batch %32s %" SCNu64, id, &seq) != 2)
			continue;
		for (int i = 0; i < 16; i++) {
			unsigned v;

			sscanf(id + 2 * i, "%2x", &v);
			agent[i] = (uint8_t)v;
		}
		remember(agent, seq);
	}
	if (f)
		fclose(f);
}

/* A stream speaks for one agent. 0 = not one of this start. */
static uint64_t stream_of(const uint8_t agent[16], bool make)
{
	for (unsigned i = 0; i < n_streams; i++)
		if (memcmp(streams[i].agent, agent, 16) == 0)
			return streams[i].stream;
	if (!make)
		return 0;
	assert(n_streams < 64);
	memcpy(streams[n_streams].agent, agent, 16);
	streams[n_streams].stream = first_stream + n_streams;
	return streams[n_streams++].stream;
}

static bool known_stream(uint64_t stream)
{
	return stream - first_stream < n_streams;
}

static uint64_t unique_of(const struct frame_batch *b, uint32_t proc)
{
	for (uint32_t i = 0; i < b->n_procs; i++)
		if (b->procs[i].proc == proc)
			return b->procs[i].unique;
	return 0;
}

static void note_chunk(const struct frame_batch *b, const struct frame_chunk *c, const char *id)
{
	static struct event ev[CHUNK_MAX_EVENTS];
	struct chunk_info info;
	size_t n = 0;
	int contiguous = 1;

	if (chunk_peek(c->data, c->n_bytes, &info) != CHUNK_OK ||
	    chunk_decode(c->data, c->n_bytes, ev, CHUNK_MAX_EVENTS, &n) != CHUNK_OK || n == 0) {
		fprintf(out, "unreadable %s %" PRIu64 "\n", id, b->seq);
		return;
	}
	for (size_t i = 1; i < n; i++)
		contiguous &= ev[i].a == ev[i - 1].a + 1 && ev[i].tick >= ev[i - 1].tick;
	fprintf(out,
		"chunk %s %" PRIu64 " %016" PRIx64 " %u %" PRIu64 " %zu %" PRIu64 " %" PRIu64
		" %d %" PRId64 " %" PRId64 " %zu\n",
		id, b->seq, unique_of(b, c->proc), c->ring, c->first, n, ev[0].a, ev[n - 1].a,
		contiguous, info.t_min_ns, info.t_max_ns, c->n_bytes);
}

static void commit(const struct frame_batch *b)
{
	char id[33];

	hex(b->agent_id, id);
	if (is_done(b->agent_id, b->seq)) {
		fprintf(out, "again %s %" PRIu64 "\n", id, b->seq);
		return;
	}
	for (uint32_t i = 0; i < b->n_procs; i++) {
		const struct frame_proc *p = &b->procs[i];

		fprintf(out, "proc %s %" PRIu64 " %016" PRIx64 " %d %u %d %d %" PRIu64 " %u %u\n",
			id, b->seq, p->unique, p->rank, p->state, p->exit_code, p->signal,
			p->n_dropped, p->tick_error_ns, p->pid);
	}
	for (uint32_t i = 0; i < b->n_names; i++)
		fprintf(out, "name %s %" PRIu64 " %016" PRIx64 " %u %.*s\n", id, b->seq,
			unique_of(b, b->names[i].proc), b->names[i].id, (int)b->names[i].n_text,
			b->names[i].text);
	for (uint32_t i = 0; i < b->n_chunks; i++) {
		if (unique_of(b, b->chunks[i].proc) == 0)
			fprintf(out, "unknown %s %" PRIu64 "\n", id, b->seq);
		note_chunk(b, &b->chunks[i], id);
	}
	for (uint32_t i = 0; i < b->n_texts; i++)
		fprintf(out, "text %s %" PRIu64 " %016" PRIx64 " %u %u %.*s\n", id, b->seq,
			unique_of(b, b->texts[i].proc), b->texts[i].kind, b->texts[i].level,
			(int)strcspn(b->texts[i].text, "\n") < (int)b->texts[i].n_text ?
				(int)strcspn(b->texts[i].text, "\n") :
				(int)b->texts[i].n_text,
			b->texts[i].text);
	for (uint32_t i = 0; i < b->n_gauges; i++)
		fprintf(out, "gauge %s %.9g %u\n", b->gauges[i].name, b->gauges[i].value,
			b->gauges[i].proc);
	/* Last, as a transaction's commit: without it a next start takes it again. */
	fprintf(out, "batch %s %" PRIu64 " %" PRIu64 "\n", id, b->seq, b->n_given_up);
	fflush(out);
	remember(b->agent_id, b->seq);
}

/* What to answer to a batch; FRAME_BATCH = nothing at all. */
static struct frame on_batch(const struct frame_batch *b)
{
	static int n_seen;
	struct frame r = { .type = FRAME_ACK };

	if (!known_stream(b->stream)) {
		r.type = FRAME_REHELLO;
		r.rehello.stream = b->stream;
		return r;
	}
	if (stream_of(b->agent_id, false) != b->stream) {
		r.type = FRAME_REFUSE;
		r.refuse.code = REFUSE_MALFORMED;
		r.refuse.text = "the batch does not belong to the agent of its stream";
		return r;
	}
	if (opt.n_mute > 0) { /* as if it had never arrived */
		opt.n_mute--;
		r.type = FRAME_BATCH;
		return r;
	}
	if (opt.n_busy > 0) {
		opt.n_busy--;
		r.type = FRAME_REFUSE;
		r.refuse.code = REFUSE_BUSY;
		r.refuse.text = "the disk is full";
		return r;
	}
	if (opt.refuse || b->seq == opt.malformed_seq) {
		r.type = FRAME_REFUSE;
		r.refuse.code = opt.refuse ? (uint32_t)opt.refuse : REFUSE_MALFORMED;
		r.refuse.text = "as the test asked for";
		return r;
	}
	commit(b);
	if (opt.die_after > 0 && ++n_seen == opt.die_after)
		_exit(9); /* after the commit, before its answer */
	if (opt.n_forget > 0) { /* committed, but the answer is lost */
		opt.n_forget--;
		r.type = FRAME_BATCH;
		return r;
	}
	r.ack.seq = b->seq;
	r.ack.credit = (uint32_t)opt.credit;
	return r;
}

static struct frame on_control(const struct frame *f, int64_t t1_ns)
{
	struct frame r = { .type = FRAME_BEAT };

	if (f->type == FRAME_HELLO) {
		const struct frame_hello *h = &f->hello;

		fprintf(out, "hello %s %s %u %s\n", h->run_id[0] ? h->run_id : "-", h->host,
			h->n_procs, h->token[0] ? h->token : "-");
		fflush(out);
		if (opt.refuse_hello) {
			r.type = FRAME_REFUSE;
			r.refuse.code = (uint32_t)opt.refuse_hello;
			r.refuse.text = "as the test asked for";
			return r;
		}
		r.type = FRAME_WELCOME;
		r.welcome = (struct frame_welcome){ .stream = stream_of(h->agent_id, true),
						    .level = (uint32_t)opt.level,
						    .run_id = h->run_id,
						    .version = "fake",
						    .notice = "" };
		return r;
	}
	if (!known_stream(f->heartbeat.stream)) {
		r.type = FRAME_REHELLO;
		r.rehello.stream = f->heartbeat.stream;
		return r;
	}
	for (uint32_t i = 0; i < f->heartbeat.n_inflight; i++) {
		const struct frame_inflight *v = &f->heartbeat.inflight[i];

		fprintf(out, "inflight %d %u %u %s %u\n", v->rank, v->step, v->phase,
			v->group[0] ? v->group : "-", v->seq);
	}
	fprintf(out,
		"beat %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRIu64 " %" PRIu64
		" %" PRIu64 " %" PRIu64 "\n",
		f->heartbeat.last.t0_ns, f->heartbeat.last.t1_ns, f->heartbeat.last.t2_ns,
		f->heartbeat.last.t3_ns, f->heartbeat.n_spooled_bytes,
		f->heartbeat.n_spool_dropped, f->heartbeat.cpu_ns, f->heartbeat.rss_bytes);
	fflush(out);
	r.beat = (struct frame_beat){ .t1_ns = t1_ns,
				      .t2_ns = now_ns(),
				      .level = (uint32_t)opt.level,
				      .credit = (uint32_t)opt.credit,
				      .notice = "" };
	return r;
}

struct worker {
	nng_ctx ctx;
	bool data;
};

static void *serve(void *arg)
{
	struct worker *w = arg;
	struct frame_buf buf = { 0 };
	nng_aio *aio;

	if (nng_aio_alloc(&aio, NULL, NULL) != 0)
		abort();
	for (;;) {
		struct frame f, r = { .type = FRAME_REFUSE };
		int64_t t1_ns;
		nng_msg *msg;

		nng_ctx_recv(w->ctx, aio);
		nng_aio_wait(aio);
		if (nng_aio_result(aio) != 0)
			continue;
		t1_ns = now_ns();
		msg = nng_aio_get_msg(aio);
		nng_aio_set_msg(aio, NULL);
		if (w->data && opt.delay_ms > 0)
			usleep((useconds_t)opt.delay_ms * 1000);
		pthread_mutex_lock(&lock);
		if (frame_open(&f, nng_msg_body(msg), nng_msg_len(msg)) == FRAME_OK) {
			r = w->data ? on_batch(&f.batch) : on_control(&f, t1_ns);
			if (frame_pack(&buf, &r) != 0)
				abort();
			frame_close(&f);
		} else {
			fprintf(out, "unreadable - 0\n");
			fflush(out);
			r.refuse.code = REFUSE_MALFORMED;
			r.refuse.text = "not a frame";
			if (frame_pack(&buf, &r) != 0)
				abort();
		}
		pthread_mutex_unlock(&lock);
		nng_msg_clear(msg);
		if (r.type == FRAME_BATCH) {
			nng_msg_free(msg);
			continue;
		}
		if (nng_msg_append(msg, opt.garbage ? (const void *)"?" : buf.data,
				   opt.garbage ? 1 : buf.n_bytes) != 0)
			abort();
		nng_aio_set_msg(aio, msg);
		nng_ctx_send(w->ctx, aio);
		nng_aio_wait(aio);
		if (nng_aio_result(aio) != 0)
			nng_msg_free(nng_aio_get_msg(aio));
	}
	return NULL;
}

static void start(const char *url, bool data, unsigned n)
{
	nng_socket sock;
	pthread_t thread;

	if (nng_rep0_open(&sock) != 0 ||
	    nng_socket_set_size(sock, NNG_OPT_RECVMAXSZ, FRAME_MAX_BYTES) != 0)
		abort();
	for (unsigned i = 0; i < n; i++) {
		struct worker *w = calloc(1, sizeof *w);

		w->data = data;
		if (nng_ctx_open(&w->ctx, sock) != 0 ||
		    pthread_create(&thread, NULL, serve, w) != 0)
			abort();
	}
	if (nng_listen(sock, url, NULL, 0) != 0) {
		fprintf(stderr, "fake_collector: cannot listen on %s\n", url);
		exit(3);
	}
}

int main(int argc, char **argv)
{
	struct {
		const char *name;
		int *to;
	} ints[] = { { "--delay-ms", &opt.delay_ms }, { "--mute", &opt.n_mute },
		     { "--forget", &opt.n_forget },   { "--busy", &opt.n_busy },
		     { "--refuse", &opt.refuse },     { "--refuse-hello", &opt.refuse_hello },
		     { "--level", &opt.level },	      { "--credit", &opt.credit },
		     { "--die-after", &opt.die_after } };
	char data_url[512];

	for (int i = 1; i + 1 < argc; i += 2) {
		for (size_t k = 0; k < sizeof ints / sizeof *ints; k++)
			if (strcmp(argv[i], ints[k].name) == 0)
				*ints[k].to = atoi(argv[i + 1]);
		if (strcmp(argv[i], "--listen") == 0)
			opt.listen = argv[i + 1];
		else if (strcmp(argv[i], "--out") == 0)
			opt.out = argv[i + 1];
		else if (strcmp(argv[i], "--malformed") == 0)
			opt.malformed_seq = strtoull(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--garbage") == 0)
			opt.garbage = true;
	}
	if (!opt.listen || !opt.out || frame_data_url(opt.listen, data_url, sizeof data_url) != 0)
		return 2;
	read_back();
	out = fopen(opt.out, "a");
	if (!out)
		return 3;
	first_stream = (uint64_t)now_ns() | 1;
	start(opt.listen, false, 2);
	start(data_url, true, N_DATA);
	printf("ready\n");
	fflush(stdout);
	for (;;)
		pause();
}
