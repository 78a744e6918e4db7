/* inbox.c - see inbox.h. The only file in which NNG's threads and the loop meet. */
#include "inbox.h"

#include "clk.h"
#include "../proto/frame.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <nng/nng.h>
#include <nng/protocol/reqrep0/rep.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A turn stays short enough that a heartbeat waits for little. */
#define DATA_PER_TURN 4

enum place_state {
	PLACE_RECEIVING, /* NNG has it */
	PLACE_WAITING,	 /* in the queue, for the loop */
	PLACE_DELIVERED, /* the loop owes an answer */
	PLACE_SENDING,	 /* NNG has it */
	PLACE_IDLE,	 /* closed */
};

struct place {
	struct inbox_msg msg; /* first: a message is its place */
	struct inbox *in;
	nng_ctx ctx;
	nng_aio *aio;
	bool has_ctx;
	nng_msg *owned;	    /* the request */
	struct place *next; /* in the queue */
	enum place_state state; /* handed over with the place itself */
};

struct queue {
	struct place *first, **tail;
};

struct inbox {
	/* loop thread only */
	struct inbox_config cfg;
	uv_async_t *wakeup; /* owned until its close callback */
	unsigned n_busy;    /* data places delivered and not answered */
	bool paused;

	/* set before the first receive, then read-only */
	nng_socket control, data;
	bool has_control, has_data;
	struct place *places; /* owned */
	unsigned n_places;
	char url[INBOX_MAX_URL];
	nng_sockaddr address; /* of the control listener */

	/* any thread */
	atomic_bool ending; /* no more receives are armed */
	atomic_uint n_sending;

	/* shared, under lock */
	uv_mutex_t lock;
	struct queue control_queue, data_queue;
};

static void queue_push(struct queue *q, struct place *p)
{
	p->next = NULL;
	*q->tail = p;
	q->tail = &p->next;
}

static struct place *queue_pop(struct queue *q)
{
	struct place *p = q->first;

	if (p) {
		q->first = p->next;
		if (!q->first)
			q->tail = &q->first;
	}
	return p;
}

static void receive(struct place *p)
{
	if (atomic_load(&p->in->ending)) {
		p->state = PLACE_IDLE;
		return;
	}
	p->state = PLACE_RECEIVING;
	nng_ctx_recv(p->ctx, p->aio);
}

/* NNG thread. Park the message and wake the loop; never do work here. */
static void on_aio(void *arg)
{
	struct place *p = arg;
	struct inbox *in = p->in;
	int r = nng_aio_result(p->aio);
	bool was_empty;

	if (p->state == PLACE_SENDING) {
		if (r != 0) /* the peer is gone: it asks again, the answer is not news */
			nng_msg_free(nng_aio_get_msg(p->aio));
		nng_aio_set_msg(p->aio, NULL);
		atomic_fetch_sub(&in->n_sending, 1);
		if (r == NNG_ECLOSED || r == NNG_ECANCELED)
			p->state = PLACE_IDLE;
		else
			receive(p);
		return;
	}
	if (r == NNG_ECLOSED || r == NNG_ECANCELED) {
		p->state = PLACE_IDLE;
		return;
	}
	if (r != 0) {
		receive(p);
		return;
	}
	p->msg.at_raw_ns = clk_raw_ns();
	p->owned = nng_aio_get_msg(p->aio);
	nng_aio_set_msg(p->aio, NULL);
	p->msg.data = nng_msg_body(p->owned);
	p->msg.n_bytes = nng_msg_len(p->owned);
	p->state = PLACE_WAITING;

	uv_mutex_lock(&in->lock);
	was_empty = !in->control_queue.first && !in->data_queue.first;
	queue_push(p->msg.control ? &in->control_queue : &in->data_queue, p);
	if (was_empty)
		uv_async_send(in->wakeup);
	uv_mutex_unlock(&in->lock);
}

/* Loop thread. Control first, always; a bounded number of data messages. */
static void on_wakeup(uv_async_t *handle)
{
	struct inbox *in = handle->data;
	unsigned n_data = 0;
	bool more;

	if (!in)
		return;
	for (;;) {
		struct place *p;

		uv_mutex_lock(&in->lock);
		p = in->paused ? NULL : queue_pop(&in->control_queue);
		if (!p && !in->paused && n_data < DATA_PER_TURN)
			p = queue_pop(&in->data_queue);
		uv_mutex_unlock(&in->lock);
		if (!p)
			break;
		p->state = PLACE_DELIVERED;
		if (!p->msg.control) {
			n_data++;
			in->n_busy++;
		}
		in->cfg.deliver(in->cfg.arg, &p->msg);
	}
	in->cfg.turn_over(in->cfg.arg);

	/* on_aio() wakes us only on the way from empty: what is left is ours to mind. */
	uv_mutex_lock(&in->lock);
	more = !in->paused && (in->control_queue.first || in->data_queue.first);
	if (more)
		uv_async_send(in->wakeup);
	uv_mutex_unlock(&in->lock);
}

static void take_back(struct place *p)
{
	nng_msg_free(p->owned);
	p->owned = NULL;
	p->msg.data = NULL;
	p->msg.n_bytes = 0;
	if (!p->msg.control)
		p->in->n_busy--;
}

void inbox_reply(struct inbox *in, struct inbox_msg *m, const void *data, size_t n_bytes)
{
	struct place *p = (struct place *)m;
	nng_msg *reply;

	assert(p->in == in && p->state == PLACE_DELIVERED);
	if (nng_msg_alloc(&reply, 0) != 0) {
		inbox_drop(in, m);
		return;
	}
	if (nng_msg_append(reply, data, n_bytes) != 0) {
		nng_msg_free(reply);
		inbox_drop(in, m);
		return;
	}
	take_back(p);
	nng_aio_set_msg(p->aio, reply);
	p->state = PLACE_SENDING;
	atomic_fetch_add(&in->n_sending, 1);
	nng_ctx_send(p->ctx, p->aio);
}

void inbox_drop(struct inbox *in, struct inbox_msg *m)
{
	struct place *p = (struct place *)m;

	assert(p->in == in && p->state == PLACE_DELIVERED);
	take_back(p);
	receive(p); /* a new receive on a context forgets the request it owed */
}

static int outcome_of(int nng_error)
{
	switch (nng_error) {
	case 0:
		return 0;
	case NNG_EADDRINUSE:
		return INBOX_IN_USE;
	case NNG_EPERM:
	case NNG_ENOENT:
	case NNG_EADDRINVAL:
	case NNG_ENOTSUP:
		return INBOX_DENIED;
	case NNG_ENOMEM:
		return -ENOMEM;
	case NNG_EINVAL:
		return INBOX_BAD_URL;
	default:
		/* NNG_ESYSERR | errno */
		if (nng_error & NNG_ESYSERR && (nng_error & ~NNG_ESYSERR) < 4096)
			return INBOX_DENIED;
		return -EIO;
	}
}

static int open_socket(nng_socket *s, bool *has)
{
	int r = nng_rep0_open(s);

	*has = r == 0;
	/* Before any listener: 1.5.2 would take any size by default. */
	if (r == 0)
		r = nng_socket_set_size(*s, NNG_OPT_RECVMAXSZ, FRAME_MAX_BYTES);
	return outcome_of(r);
}

static int listen_on(nng_socket s, const char *url, nng_sockaddr *ret, uint16_t *ret_port)
{
	nng_listener l;
	nng_sockaddr sa = { 0 };
	int r = nng_listener_create(&l, s, url);

	if (r != 0)
		return outcome_of(r);
	if (strncmp(url, "ipc:", 4) == 0)
		(void)nng_listener_set_int(l, NNG_OPT_IPC_PERMISSIONS, 0660);
	r = nng_listener_start(l, 0);
	if (r != 0) {
		nng_listener_close(l);
		return outcome_of(r);
	}
	*ret_port = 0;
	if (nng_listener_get_addr(l, NNG_OPT_LOCADDR, &sa) == 0) {
		if (sa.s_family == NNG_AF_INET)
			*ret_port = ntohs(sa.s_in.sa_port);
		else if (sa.s_family == NNG_AF_INET6)
			*ret_port = ntohs(sa.s_in6.sa_port);
	}
	*ret = sa;
	return 0;
}

static void close_sockets(struct inbox *in)
{
	if (in->has_control)
		nng_close(in->control);
	if (in->has_data)
		nng_close(in->data);
	in->has_control = in->has_data = false;
}

/* Port 0: whatever is free, as long as the next one is free as well. */
static int listen_both(struct inbox *in, const char *url)
{
	char data_url[INBOX_MAX_URL];
	size_t n = strlen(url);
	bool any_port = strncmp(url, "tcp://", 6) == 0 && n > 2 && strcmp(url + n - 2, ":0") == 0;
	int r = 0;

	if (!any_port && frame_data_url(url, data_url, sizeof data_url) != 0)
		return INBOX_BAD_URL;
	for (int tries = 0; tries < 16; tries++) {
		nng_sockaddr data_address;
		uint16_t port;

		r = open_socket(&in->control, &in->has_control);
		if (r == 0)
			r = open_socket(&in->data, &in->has_data);
		if (r == 0)
			r = listen_on(in->control, url, &in->address, &port);
		if (r != 0)
			break;
		if (any_port)
			snprintf(in->url, sizeof in->url, "%.*s:%u", (int)(n - 2), url, port);
		else
			snprintf(in->url, sizeof in->url, "%s", url);
		if (frame_data_url(in->url, data_url, sizeof data_url) != 0)
			r = any_port ? INBOX_IN_USE : INBOX_BAD_URL;
		else
			r = listen_on(in->data, data_url, &data_address, &port);
		if (r != INBOX_IN_USE || !any_port)
			break;
		close_sockets(in);
	}
	return r;
}

static void on_wakeup_closed(uv_handle_t *handle)
{
	free(handle);
}

int inbox_open(struct inbox **ret, const struct inbox_config *cfg)
{
	struct inbox *in;
	int r;

	if (strlen(cfg->url) + 8 > INBOX_MAX_URL)
		return INBOX_BAD_URL;
	in = calloc(1, sizeof *in);
	if (!in)
		return -ENOMEM;
	in->cfg = *cfg;
	in->control_queue.tail = &in->control_queue.first;
	in->data_queue.tail = &in->data_queue.first;
	if (!in->cfg.n_data)
		in->cfg.n_data = INBOX_DATA_PLACES;
	if (!in->cfg.n_control)
		in->cfg.n_control = INBOX_CONTROL_PLACES;
	if (uv_mutex_init(&in->lock) != 0)
		abort(); /* libuv fails this only when out of memory at start */
	in->wakeup = malloc(sizeof *in->wakeup);
	if (!in->wakeup) {
		r = -ENOMEM;
		goto fail;
	}
	r = uv_async_init(cfg->loop, in->wakeup, on_wakeup);
	if (r != 0) {
		free(in->wakeup);
		in->wakeup = NULL;
		goto fail;
	}
	in->wakeup->data = in;
	r = listen_both(in, cfg->url);
	if (r != 0)
		goto fail;
	in->n_places = in->cfg.n_data + in->cfg.n_control;
	in->places = calloc(in->n_places, sizeof *in->places);
	if (!in->places) {
		r = -ENOMEM;
		goto fail;
	}
	for (unsigned i = 0; i < in->n_places; i++) {
		struct place *p = &in->places[i];

		p->in = in;
		p->state = PLACE_IDLE;
		p->msg.control = i < in->cfg.n_control;
		r = outcome_of(nng_ctx_open(&p->ctx, p->msg.control ? in->control : in->data));
		p->has_ctx = r == 0;
		if (r == 0)
			r = outcome_of(nng_aio_alloc(&p->aio, on_aio, p));
		if (r != 0)
			goto fail;
	}
	*ret = in;
	return 0;

fail:
	inbox_close(in); /* copes with a half-built inbox */
	return r;
}

void inbox_start(struct inbox *in)
{
	for (unsigned i = 0; i < in->n_places; i++)
		receive(&in->places[i]);
}

const char *inbox_url(const struct inbox *in)
{
	return in->url;
}

bool inbox_address(const struct inbox *in, struct sockaddr_storage *ret)
{
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;
	struct sockaddr_in *v4 = (struct sockaddr_in *)ret;
	const nng_sockaddr *a = &in->address;

	memset(ret, 0, sizeof *ret);
	if (a->s_family == NNG_AF_INET) {
		v4->sin_family = AF_INET;
		v4->sin_port = a->s_in.sa_port;
		v4->sin_addr.s_addr = a->s_in.sa_addr;
		return true;
	}
	if (a->s_family == NNG_AF_INET6) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = a->s_in6.sa_port;
		memcpy(&v6->sin6_addr, a->s_in6.sa_addr, sizeof v6->sin6_addr);
		v6->sin6_scope_id = a->s_in6.sa_scope;
		return true;
	}
	return false;
}

unsigned inbox_n_free(const struct inbox *in)
{
	return in->cfg.n_data - in->n_busy;
}

void inbox_pause(struct inbox *in)
{
	in->paused = true;
	atomic_store(&in->ending, true);
}

void inbox_drain(struct inbox *in, unsigned deadline_ms)
{
	uint64_t until = uv_hrtime() + (uint64_t)deadline_ms * 1000000;

	while (atomic_load(&in->n_sending) > 0 && uv_hrtime() < until)
		uv_sleep(1);
}

void inbox_close(struct inbox *in)
{
	if (!in)
		return;
	/* First end every operation, then free what they used: closing a socket
	 * under a running operation is where 1.5.2 is weak. */
	for (unsigned i = 0; in->places && i < in->n_places; i++)
		if (in->places[i].aio)
			nng_aio_stop(in->places[i].aio);
	for (unsigned i = 0; in->places && i < in->n_places; i++) {
		struct place *p = &in->places[i];

		if (p->has_ctx)
			nng_ctx_close(p->ctx);
		if (p->aio)
			nng_aio_free(p->aio);
		nng_msg_free(p->owned);
	}
	close_sockets(in);
	if (in->wakeup) {
		in->wakeup->data = NULL;
		uv_close((uv_handle_t *)in->wakeup, on_wakeup_closed);
	}
	uv_mutex_destroy(&in->lock);
	free(in->places);
	free(in);
}

bool inbox_is_local(const char *url)
{
	static const char *const hosts[] = { "tcp://127.", "tcp://localhost:", "tcp://[::1]:" };

	if (strncmp(url, "ipc://", 6) == 0)
		return true;
	for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
		if (strncmp(url, hosts[i], strlen(hosts[i])) == 0)
			break;
		else if (i + 1 == sizeof hosts / sizeof *hosts)
			return false;
	/* 127.evil.example is a name, not an address. */
	if (strncmp(url, "tcp://127.", 10) == 0)
		return strspn(url + 6, "0123456789.") == strcspn(url + 6, ":");
	return true;
}

void inbox_explain(char *out, size_t n_out, int outcome, const char *url)
{
	switch (outcome) {
	case INBOX_OK:
		snprintf(out, n_out, "Listening on %s.", url);
		return;
	case INBOX_BAD_URL:
		snprintf(out, n_out,
			 "%s is no address to listen on. Write tcp://ADDRESS:PORT or ipc:///PATH.", url);
		return;
	case INBOX_IN_USE:
		snprintf(out, n_out,
			 "%s is in use (it takes that port and the next one). Stop what listens there, "
			 "or choose another with --listen; port 0 picks a free pair.",
			 url);
		return;
	case INBOX_DENIED:
		snprintf(out, n_out,
			 "The system does not let this user listen on %s. Check the address, the "
			 "directory and the rights.",
			 url);
		return;
	default:
		snprintf(out, n_out, "Cannot listen on %s: %s.", url, uv_strerror(outcome));
		return;
	}
}
