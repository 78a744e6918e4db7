/* NNG 1.5.2: sockets are opened once, a request is a context with one aio, every
 * aio is stopped before its socket closes. Callbacks run on NNG's threads and
 * only move a slot from out to answered. */
#include "link.h"

#include "clock.h"

#include <errno.h>
#include <netinet/in.h>
#include <nng/nng.h>
#include <nng/protocol/reqrep0/req.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define MAX_ANSWER_BYTES (64u << 10)
#define SEND_MS 5000
#define CONTROL_MS 2000
#define RESEND_MS 3000
#define RECONNECT_MIN_MS 100
#define RENEW_NS INT64_C(10000000000) /* longer than any pause between two tries */
#define N_SLOTS (LINK_MAX_WINDOW + 1)

enum slot_state { IDLE, SENDING, RECEIVING, ANSWERED };

struct slot {
	struct link *link;
	enum link_channel channel;
	nng_ctx ctx;
	nng_aio *aio;
	uint64_t tag;
	enum slot_state state; /* under lock */
	/* set by the callback before ANSWERED, then the agent's */
	int result;
	int64_t at_ns;
	nng_msg *msg;
};

struct link {
	nng_socket sock[LINK_N_CHANNELS];
	bool open[LINK_N_CHANNELS];
	nng_dialer dialer[LINK_N_CHANNELS];
	int64_t away_since_ns[LINK_N_CHANNELS]; /* RAW; 0 = connected */
	char *url[LINK_N_CHANNELS];		/* owned */
	struct slot slots[N_SLOTS];
	unsigned n_slots;
	int fd;
	pthread_mutex_t lock;
	int n_pipes[LINK_N_CHANNELS]; /* under lock */
	nng_sockaddr peer;	      /* under lock */
};

/* NNG thread. */
static void answered(struct slot *s, int result, nng_msg *msg)
{
	struct link *l = s->link;
	uint64_t one = 1;

	pthread_mutex_lock(&l->lock);
	s->result = result;
	s->at_ns = raw_now();
	s->msg = msg;
	s->state = ANSWERED;
	pthread_mutex_unlock(&l->lock);
	(void)!write(l->fd, &one, sizeof one);
}

/* NNG thread. */
static void on_aio(void *arg)
{
	struct slot *s = arg;
	enum slot_state state;
	int r = nng_aio_result(s->aio);

	pthread_mutex_lock(&s->link->lock);
	state = s->state;
	if (state == SENDING && r == 0)
		s->state = RECEIVING;
	pthread_mutex_unlock(&s->link->lock);

	if (r != 0) {
		nng_msg *msg = state == SENDING ? nng_aio_get_msg(s->aio) : NULL;

		if (msg) { /* not sent: still ours */
			nng_aio_set_msg(s->aio, NULL);
			nng_msg_free(msg);
		}
		answered(s, r == NNG_ETIMEDOUT ? -ETIMEDOUT : -EIO, NULL);
	} else if (state == SENDING) {
		nng_aio_set_timeout(s->aio, s->channel == LINK_CONTROL ? CONTROL_MS :
									 NNG_DURATION_INFINITE);
		nng_ctx_recv(s->ctx, s->aio);
	} else {
		nng_msg *msg = nng_aio_get_msg(s->aio);

		nng_aio_set_msg(s->aio, NULL);
		answered(s, 0, msg);
	}
}

/* NNG thread. A pipe that is closed before it is used is removed without having been
 * added: only the first and the last event come in pairs. */
static void on_pipe(nng_pipe pipe, nng_pipe_ev ev, void *arg)
{
	struct slot *s = arg; /* the first one of its channel */
	nng_sockaddr peer;
	bool has_peer = ev == NNG_PIPE_EV_ADD_PRE && s->channel == LINK_CONTROL &&
			nng_pipe_get_addr(pipe, NNG_OPT_REMADDR, &peer) == 0;

	pthread_mutex_lock(&s->link->lock);
	if (has_peer)
		s->link->peer = peer;
	s->link->n_pipes[s->channel] += ev == NNG_PIPE_EV_ADD_PRE ? 1 : -1;
	pthread_mutex_unlock(&s->link->lock);
}

/* In the background: a collector that is not there yet is no error. */
static int dial(struct link *l, enum link_channel c)
{
	if (nng_dialer_create(&l->dialer[c], l->sock[c], l->url[c]) != 0)
		return -EINVAL;
	return nng_dialer_start(l->dialer[c], NNG_FLAG_NONBLOCK) != 0 ? -EIO : 0;
}

static int open_socket(struct link *l, enum link_channel c, const char *url, unsigned n_slots)
{
	nng_socket sock;
	struct slot *first = &l->slots[l->n_slots];
	int r = nng_req0_open(&sock);

	if (r != 0)
		return -EIO;
	l->sock[c] = sock;
	l->open[c] = true;
	l->url[c] = strdup(url);
	if (!l->url[c])
		return -ENOMEM;
	if (nng_socket_set_size(sock, NNG_OPT_RECVMAXSZ, MAX_ANSWER_BYTES) != 0 ||
	    nng_socket_set_ms(sock, NNG_OPT_SENDTIMEO, SEND_MS) != 0 ||
	    nng_socket_set_ms(sock, NNG_OPT_RECONNMINT, RECONNECT_MIN_MS) != 0 ||
	    nng_socket_set_ms(sock, NNG_OPT_RECONNMAXT, c == LINK_CONTROL ? 1000 : 5000) != 0 ||
	    nng_socket_set_ms(sock, NNG_OPT_REQ_RESENDTIME,
			      c == LINK_CONTROL ? NNG_DURATION_INFINITE : RESEND_MS) != 0)
		return -EIO;
	for (unsigned i = 0; i < n_slots; i++) {
		struct slot *s = &l->slots[l->n_slots];

		s->link = l;
		s->channel = c;
		if (nng_ctx_open(&s->ctx, sock) != 0 || nng_aio_alloc(&s->aio, on_aio, s) != 0)
			return -EIO;
		l->n_slots++;
	}
	if (nng_pipe_notify(sock, NNG_PIPE_EV_ADD_PRE, on_pipe, first) != 0 ||
	    nng_pipe_notify(sock, NNG_PIPE_EV_REM_POST, on_pipe, first) != 0)
		return -EIO;
	return dial(l, c);
}

unsigned link_tend(struct link *l, int64_t now_ns)
{
	unsigned n = 0;

	for (int c = 0; c < LINK_N_CHANNELS; c++) {
		if (link_connected(l, c)) {
			l->away_since_ns[c] = 0;
		} else if (l->away_since_ns[c] == 0 || now_ns < l->away_since_ns[c]) {
			l->away_since_ns[c] = now_ns;
		} else if (now_ns - l->away_since_ns[c] > RENEW_NS) {
			l->away_since_ns[c] = now_ns;
			nng_dialer_close(l->dialer[c]);
			(void)dial(l, c); /* what fails now is tried again then */
			n++;
		}
	}
	return n;
}

int link_open(struct link **ret, const char *control_url, const char *data_url, unsigned n_window)
{
	struct link *l = calloc(1, sizeof *l);
	int r;

	if (!l)
		return -ENOMEM;
	if (n_window > LINK_MAX_WINDOW)
		n_window = LINK_MAX_WINDOW;
	pthread_mutex_init(&l->lock, NULL);
	l->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	r = l->fd < 0 ? -errno : 0;
	if (r == 0)
		r = open_socket(l, LINK_CONTROL, control_url, 1);
	if (r == 0)
		r = open_socket(l, LINK_DATA, data_url, n_window);
	if (r != 0) {
		link_close(l);
		return r;
	}
	*ret = l;
	return 0;
}

void link_close(struct link *l)
{
	if (!l)
		return;
	for (unsigned i = 0; i < l->n_slots; i++)
		nng_aio_stop(l->slots[i].aio);
	for (int c = 0; c < LINK_N_CHANNELS; c++) {
		if (l->open[c])
			nng_close(l->sock[c]);
		free(l->url[c]);
	}
	for (unsigned i = 0; i < l->n_slots; i++) {
		nng_aio_free(l->slots[i].aio);
		if (l->slots[i].msg)
			nng_msg_free(l->slots[i].msg);
	}
	if (l->fd >= 0)
		close(l->fd);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

int link_ask(struct link *l, enum link_channel c, uint64_t tag, const void *data, size_t n_bytes)
{
	struct slot *s = NULL;
	nng_msg *msg;

	pthread_mutex_lock(&l->lock);
	for (unsigned i = 0; i < l->n_slots && !s; i++)
		if (l->slots[i].channel == c && l->slots[i].state == IDLE)
			s = &l->slots[i];
	pthread_mutex_unlock(&l->lock);
	if (!s)
		return -EBUSY;
	if (nng_msg_alloc(&msg, n_bytes) != 0)
		return -ENOMEM;
	memcpy(nng_msg_body(msg), data, n_bytes);

	pthread_mutex_lock(&l->lock);
	s->tag = tag;
	s->state = SENDING;
	pthread_mutex_unlock(&l->lock);
	nng_aio_set_msg(s->aio, msg);
	nng_aio_set_timeout(s->aio, c == LINK_CONTROL ? CONTROL_MS : SEND_MS);
	nng_ctx_send(s->ctx, s->aio);
	return 0;
}

int link_fd(const struct link *l)
{
	return l->fd;
}

bool link_next(struct link *l, struct link_answer *ret)
{
	struct slot *s = NULL;
	uint64_t n;

	(void)!read(l->fd, &n, sizeof n); /* before the look: nothing is missed */
	pthread_mutex_lock(&l->lock);
	for (unsigned i = 0; i < l->n_slots; i++)
		if (l->slots[i].state == ANSWERED && (!s || l->slots[i].at_ns < s->at_ns))
			s = &l->slots[i];
	if (s) {
		*ret = (struct link_answer){
			.channel = s->channel,
			.tag = s->tag,
			.result = s->result,
			.at_ns = s->at_ns,
		};
		if (s->msg && nng_msg_len(s->msg) > 0) {
			ret->n_bytes = nng_msg_len(s->msg);
			ret->data = malloc(ret->n_bytes);
			if (ret->data)
				memcpy(ret->data, nng_msg_body(s->msg), ret->n_bytes);
			else
				ret->n_bytes = 0;
		}
		if (s->msg)
			nng_msg_free(s->msg);
		s->msg = NULL;
		s->state = IDLE;
	}
	pthread_mutex_unlock(&l->lock);
	return s != NULL;
}

void link_answer_free(struct link_answer *a)
{
	free(a->data);
	a->data = NULL;
}

bool link_connected(struct link *l, enum link_channel c)
{
	bool yes;

	pthread_mutex_lock(&l->lock);
	yes = l->n_pipes[c] > 0;
	pthread_mutex_unlock(&l->lock);
	return yes;
}

bool link_peer(struct link *l, struct sockaddr_storage *ret)
{
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;
	struct sockaddr_in *v4 = (struct sockaddr_in *)ret;
	nng_sockaddr peer;

	pthread_mutex_lock(&l->lock);
	peer = l->peer;
	pthread_mutex_unlock(&l->lock);
	memset(ret, 0, sizeof *ret);
	if (peer.s_family == NNG_AF_INET) {
		v4->sin_family = AF_INET;
		v4->sin_addr.s_addr = peer.s_in.sa_addr;
		return true;
	}
	if (peer.s_family == NNG_AF_INET6) {
		v6->sin6_family = AF_INET6;
		memcpy(&v6->sin6_addr, peer.s_in6.sa_addr, sizeof v6->sin6_addr);
		v6->sin6_scope_id = peer.s_in6.sa_scope;
		return true;
	}
	return false;
}
