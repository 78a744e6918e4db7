#include "fake_agent.h"

#include <nng/protocol/reqrep0/req.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

int64_t fake_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

bool fake_agent_share_clock(struct fake_agent *a)
{
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
	struct stat st;
	bool ok = f && fgets(a->boot, sizeof a->boot, f) && stat("/proc/self/ns/time", &st) == 0;

	if (f)
		fclose(f);
	if (!ok)
		return false;
	a->boot[strcspn(a->boot, "\n")] = '\0';
	a->boot_id = a->boot;
	a->time_ns_inode = (uint64_t)st.st_ino;
	return true;
}

void fake_proc(struct frame_proc *p, uint32_t proc, int32_t rank, int32_t world_size)
{
	*p = (struct frame_proc){
		.proc = proc, .unique = 1000 + (uint64_t)rank, .started_ns = fake_now_ns(),
		.pid = 100 + proc, .rank = rank, .local_rank = (int32_t)proc,
		.world_size = world_size, .level = 2, .state = PROC_ALIVE,
		.state_at_ns = fake_now_ns(), .exit_code = -1, .signal = -1,
	};
}

size_t fake_step(struct event *ev, uint32_t step, uint32_t rank, uint32_t n_coll, int64_t t0)
{
	size_t n = 0;

	ev[n++] = (struct event){ .tick = (uint64_t)t0, .kind = EVENT_STEP_BEGIN,
				  .a = event_a(step, 0) };
	for (uint32_t i = 0; i < n_coll; i++) {
		uint64_t in = (uint64_t)t0 + 20000u * (i + 1);

		ev[n] = (struct event){
			.tick = in + rank * 37, .kind = EVENT_COLL_BEGIN,
			.flags = event_coll_flags(OP_ALL_REDUCE, DTYPE_F32), .name = 1,
			.a = event_a(step, step * n_coll + i), .b = 1 << 20,
		};
		ev[n + 1] = ev[n];
		ev[n + 1].kind = EVENT_COLL_END;
		ev[n + 1].tick = in + 9000 + rank;
		n += 2;
	}
	ev[n++] = (struct event){ .tick = (uint64_t)(t0 + FAKE_STEP_NS(n_coll)),
				  .kind = EVENT_STEP_END, .a = event_a(step, 0) };
	return n;
}

static int dial(nng_socket *s, const char *url, int resend_ms)
{
	int r = nng_req0_open(s);

	if (r == 0)
		r = nng_socket_set_ms(*s, NNG_OPT_REQ_RESENDTIME, resend_ms);
	if (r == 0)
		r = nng_socket_set_ms(*s, NNG_OPT_RECONNMINT, 10);
	if (r == 0)
		r = nng_socket_set_ms(*s, NNG_OPT_RECONNMAXT, 100);
	return r == 0 ? nng_dial(*s, url, NULL, NNG_FLAG_NONBLOCK) : r;
}

int fake_agent_open(struct fake_agent *a, const char *url, int resend_ms)
{
	char data_url[256];
	int r = frame_data_url(url, data_url, sizeof data_url);

	pthread_mutex_init(&a->hello_lock, NULL);
	if (a->retry_ms == 0)
		a->retry_ms = 50;
	if (r == 0)
		r = dial(&a->control, url, resend_ms);
	return r == 0 ? dial(&a->data, data_url, resend_ms) : r;
}

void fake_agent_close(struct fake_agent *a)
{
	nng_close(a->control);
	nng_close(a->data);
	pthread_mutex_destroy(&a->hello_lock);
}

static int round_trip(nng_ctx ctx, const struct frame_buf *out, struct frame *ret, nng_msg **ret_msg,
		      int timeout_ms)
{
	nng_msg *msg = NULL;
	nng_aio *aio;
	int r = nng_aio_alloc(&aio, NULL, NULL);

	if (r != 0)
		return r;
	nng_aio_set_timeout(aio, timeout_ms);
	r = nng_msg_alloc(&msg, 0);
	if (r == 0)
		r = nng_msg_append(msg, out->data, out->n_bytes);
	if (r == 0) {
		nng_aio_set_msg(aio, msg);
		nng_ctx_send(ctx, aio);
		nng_aio_wait(aio);
		r = nng_aio_result(aio);
	}
	if (r != 0) {
		nng_msg_free(msg);
		nng_aio_free(aio);
		return r;
	}
	nng_aio_set_msg(aio, NULL);
	nng_ctx_recv(ctx, aio);
	nng_aio_wait(aio);
	r = nng_aio_result(aio);
	msg = r == 0 ? nng_aio_get_msg(aio) : NULL;
	nng_aio_free(aio);
	if (r != 0)
		return r;
	r = frame_open(ret, nng_msg_body(msg), nng_msg_len(msg));
	if (r != 0) {
		nng_msg_free(msg);
		return NNG_EPROTO;
	}
	*ret_msg = msg;
	return 0;
}

int fake_agent_ask(struct fake_agent *a, const struct frame *f, struct frame *ret, nng_msg **ret_msg,
		   int timeout_ms)
{
	struct frame_buf buf = { 0 };
	nng_ctx ctx;
	int r = frame_pack(&buf, f);

	/* frame_pack() only writes what it speaks: a later release is made by hand. */
	for (size_t i = 0; r == 0 && f->protocol > FRAME_PROTOCOL && i + 3 < buf.n_bytes; i++)
		if (memcmp(buf.data + i, "\xa1v\x01", 3) == 0)
			buf.data[i + 2] = (unsigned char)f->protocol;
	if (r == 0)
		r = nng_ctx_open(&ctx, a->control);
	if (r == 0) {
		r = round_trip(ctx, &buf, ret, ret_msg, timeout_ms);
		nng_ctx_close(ctx);
	}
	frame_buf_fini(&buf);
	return r;
}

static void note_refusal(struct fake_agent *a, const struct frame *f)
{
	snprintf(a->why, sizeof a->why, "%s", f->refuse.text);
	a->refused = f->refuse.code;
}

bool fake_agent_hello(struct fake_agent *a, int timeout_ms)
{
	struct timespec real;
	struct frame f = { .type = FRAME_HELLO };
	struct frame reply;
	nng_msg *msg;
	bool welcome;

	clock_gettime(CLOCK_REALTIME, &real);
	f.protocol = a->protocol ? a->protocol : FRAME_PROTOCOL;
	f.hello = (struct frame_hello){
		.protocol = a->protocol ? a->protocol : FRAME_PROTOCOL, .run_id = a->run_id ? a->run_id : "",
		.host = a->host ? a->host : "host0", .boot_id = a->boot_id ? a->boot_id : "elsewhere",
		.token = a->token ? a->token : "", .version = "0.1.0",
		.time_ns_inode = a->time_ns_inode, .raw_ns = fake_now_ns(),
		.real_ns = (int64_t)real.tv_sec * 1000000000 + real.tv_nsec,
		.n_procs = a->n_procs, .procs = a->procs,
	};
	memcpy(f.hello.agent_id, a->agent_id, sizeof a->agent_id);
	if (fake_agent_ask(a, &f, &reply, &msg, timeout_ms) != 0)
		return false;
	welcome = reply.type == FRAME_WELCOME;
	if (welcome)
		a->stream = reply.welcome.stream;
	else if (reply.type == FRAME_REFUSE)
		note_refusal(a, &reply);
	frame_close(&reply);
	nng_msg_free(msg);
	return welcome;
}

static void pause_ms(int ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = (long)ms * 1000000 }, NULL);
}

bool fake_agent_send(struct fake_agent *a, nng_ctx ctx, struct frame_batch *b, struct frame_buf *buf,
		     int timeout_ms)
{
	int64_t until = fake_now_ns() + (int64_t)timeout_ms * 1000000;

	memcpy(b->agent_id, a->agent_id, sizeof a->agent_id);
	while (fake_now_ns() < until) {
		struct frame f = { .type = FRAME_BATCH, .protocol = FRAME_PROTOCOL };
		enum frame_type type;
		uint32_t code = 0;
		struct frame reply;
		nng_msg *msg;
		bool ok;

		b->stream = a->stream;
		f.batch = *b;
		if (frame_pack(buf, &f) != 0)
			return false;
		if (round_trip(ctx, buf, &reply, &msg, timeout_ms) != 0)
			return false;
		type = reply.type;
		ok = type == FRAME_ACK && reply.ack.seq == b->seq;
		if (type == FRAME_REFUSE) {
			code = reply.refuse.code;
			pthread_mutex_lock(&a->hello_lock);
			note_refusal(a, &reply);
			pthread_mutex_unlock(&a->hello_lock);
		}
		frame_close(&reply);
		nng_msg_free(msg);
		if (ok)
			return true;
		if (type == FRAME_REHELLO) {
			bool again = true;

			pthread_mutex_lock(&a->hello_lock);
			if (a->stream == b->stream)
				again = fake_agent_hello(a, timeout_ms);
			pthread_mutex_unlock(&a->hello_lock);
			if (!again)
				return false;
		} else if (type == FRAME_REFUSE && code == REFUSE_BUSY) {
			pause_ms(a->retry_ms);
		} else {
			return false;
		}
	}
	return false;
}
