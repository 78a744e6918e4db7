#include "responder.h"

#include "clk.h"
#include "../proto/stamp.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define N_AT_ONCE 32
#define N_NUMBERED 4096 /* answers whose time of leaving may still be told */
#define MAX_ROUNDS 8	/* of N_AT_ONCE a turn: a flood leaves the loop its time */
#define CONTROL_BYTES 384
#define RENUMBER_NS INT64_C(200000000)
#define TICK_NS INT64_C(20000000)
#define ROOM_BYTES (1 << 20)

struct packet {
	uint8_t data[PING_BYTES + 1]; /* one more, so that a longer one shows */
	struct sockaddr_storage from;
	_Alignas(struct cmsghdr) char control[CONTROL_BYTES];
	struct iovec iov;
};

struct numbered {
	uint32_t number;
	struct probe_ref ref; /* seq 0 = none */
	int64_t gone_ns;      /* our own time before it was sent */
};

struct responder {
	uv_poll_t poll;
	struct ingest *ingest;
	int fd;
	uint16_t port;
	struct stamp_line line;
	struct packet packets[N_AT_ONCE];
	struct mmsghdr heads[N_AT_ONCE];
	struct numbered numbered[N_NUMBERED]; /* by number */
	uint32_t n_numbered;
	int64_t unnumbered_until_ns; /* 0 = numbers mean what they say */
	struct responder_stats stats;
};

/* ---- times */

static void bracket(struct responder *r)
{
	struct stamp_bracket b = stamp_bracket_now();

	stamp_add(&r->line, &b);
}

void responder_tick(struct responder *r)
{
	const struct stamp_line *l = &r->line;
	const struct stamp_bracket *last =
		&l->v[(l->next + STAMP_N_BRACKETS - 1) % STAMP_N_BRACKETS];

	if (l->n == 0 || clk_raw_ns() - last->raw_ns > TICK_NS)
		bracket(r);
	if (r->unnumbered_until_ns != 0 && clk_raw_ns() > r->unnumbered_until_ns) {
		stamp_restart(r->fd);
		r->n_numbered = 0;
		r->unnumbered_until_ns = 0;
	}
}

static void take_stamps(struct responder *r)
{
	bool bracketed = false;
	int64_t real_ns;
	uint32_t number;

	while (stamp_sent(r->fd, &number, &real_ns)) {
		struct numbered *v = &r->numbered[number % N_NUMBERED];
		int64_t raw_ns, err_ns;

		if (r->unnumbered_until_ns != 0 || v->number != number || v->ref.seq == 0)
			continue;
		if (!bracketed)
			bracket(r);
		bracketed = true;
		switch (stamp_to_raw(&r->line, real_ns, &raw_ns, &err_ns)) {
		case STAMP_OK:
			if (raw_ns + err_ns < v->gone_ns)
				probes_void(r->ingest, &v->ref);
			else
				probes_sent(r->ingest, &v->ref,
					    raw_ns - err_ns > v->gone_ns ? raw_ns - err_ns : v->gone_ns,
					    true);
			break;
		case STAMP_UNSURE:
			probes_void(r->ingest, &v->ref);
			break;
		case STAMP_NO_BRACKET: /* what we took ourselves stays */
			break;
		}
		v->ref.seq = 0;
	}
}

/* ---- packets */

/* From the address that it was sent to: a host may have several. */
static size_t copy_local(const struct msghdr *m, char *out)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR((struct msghdr *)m, c)) {
		bool v4 = c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO;
		bool v6 = c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO;
		size_t n = v4 ? sizeof(struct in_pktinfo) : sizeof(struct in6_pktinfo);
		struct cmsghdr *to = (struct cmsghdr *)out;
		struct in_pktinfo v;

		if ((!v4 && !v6) || c->cmsg_len < CMSG_LEN(n))
			continue;
		to->cmsg_level = c->cmsg_level;
		to->cmsg_type = c->cmsg_type;
		to->cmsg_len = CMSG_LEN(n);
		memcpy(CMSG_DATA(to), CMSG_DATA(c), n);
		if (v4) { /* the way out is the routing table's to say */
			memcpy(&v, CMSG_DATA(c), sizeof v);
			v.ipi_ifindex = 0;
			memcpy(CMSG_DATA(to), &v, sizeof v);
		}
		return CMSG_SPACE(n);
	}
	return 0;
}

static void answer(struct responder *r, const struct msghdr *m, uint8_t bytes[PING_BYTES],
		   const struct probe_ref *ref)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct in6_pktinfo))] = { 0 };
	struct iovec iov = { bytes, PING_BYTES };
	struct msghdr out = { .msg_name = m->msg_name, .msg_namelen = m->msg_namelen,
			      .msg_iov = &iov, .msg_iovlen = 1 };
	struct numbered *v = &r->numbered[r->n_numbered % N_NUMBERED];

	out.msg_controllen = copy_local(m, control);
	out.msg_control = out.msg_controllen ? control : NULL;
	*v = (struct numbered){ .number = r->n_numbered, .ref = *ref, .gone_ns = clk_raw_ns() };
	probes_sent(r->ingest, ref, v->gone_ns, false);
	if (sendmsg(r->fd, &out, MSG_DONTWAIT) == PING_BYTES) {
		r->n_numbered++;
		return;
	}
	/* Whether the kernel counted it is not known: count anew, in a while. */
	r->stats.n_unsent++;
	probes_void(r->ingest, ref);
	r->unnumbered_until_ns = clk_raw_ns() + RENUMBER_NS;
}

static void take(struct responder *r, const struct msghdr *m, size_t n_bytes, int64_t real_ns)
{
	const struct packet *p = (const struct packet *)(const void *)m->msg_iov->iov_base;
	int64_t now_ns = clk_raw_ns(), t1_ns;
	uint8_t bytes[PING_BYTES];
	enum probe_outcome o;
	struct probe_ref ref;
	bool kernel;

	t1_ns = stamp_received(&r->line, real_ns, now_ns, &kernel);
	o = probes_take(r->ingest, p->data, n_bytes, t1_ns, kernel, now_ns, bytes, &ref);
	r->stats.n[o]++;
	if (o != PROBE_ANSWER)
		return;
	probes_from(r->ingest, &ref, m->msg_name);
	answer(r, m, bytes, &ref);
}

static int receive(struct responder *r)
{
	int n;

	for (unsigned i = 0; i < N_AT_ONCE; i++) {
		struct packet *p = &r->packets[i];

		p->iov = (struct iovec){ p->data, sizeof p->data };
		r->heads[i].msg_hdr = (struct msghdr){
			.msg_name = &p->from, .msg_namelen = sizeof p->from, .msg_iov = &p->iov,
			.msg_iovlen = 1, .msg_control = p->control, .msg_controllen = sizeof p->control,
		};
	}
	n = recvmmsg(r->fd, r->heads, N_AT_ONCE, MSG_DONTWAIT, NULL);
	if (n > 0)
		bracket(r);
	for (int i = 0; i < n; i++)
		take(r, &r->heads[i].msg_hdr, r->heads[i].msg_len, stamp_of(&r->heads[i].msg_hdr));
	return n;
}

static void on_poll(uv_poll_t *handle, int status, int events)
{
	struct responder *r = handle->data;

	(void)status;
	(void)events;
	take_stamps(r);
	for (int round = 0; round < MAX_ROUNDS; round++) {
		int n = receive(r);

		take_stamps(r); /* most are there as soon as the packet is out */
		if (n < N_AT_ONCE)
			break;
	}
	if (!uv_is_active((uv_handle_t *)handle))
		(void)uv_poll_start(handle, UV_READABLE | UV_PRIORITIZED, on_poll);
}

/* ---- life */

static void set_port(struct sockaddr_storage *a, uint16_t port)
{
	if (a->ss_family == AF_INET6)
		((struct sockaddr_in6 *)a)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)a)->sin_port = htons(port);
}

static int open_socket(struct responder *r, const struct sockaddr_storage *control, uint16_t port)
{
	struct sockaddr_storage at = *control;
	socklen_t n = at.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
						 sizeof(struct sockaddr_in);
	int one = 1, room = ROOM_BYTES;

	r->fd = socket(at.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (r->fd < 0)
		return -errno;
	if (port != 0)
		set_port(&at, port);
	if (bind(r->fd, (struct sockaddr *)&at, n) != 0) {
		set_port(&at, 0);
		if (port != 0 || errno != EADDRINUSE || bind(r->fd, (struct sockaddr *)&at, n) != 0)
			return -errno;
	}
	if (getsockname(r->fd, (struct sockaddr *)&at, &n) != 0)
		return -errno;
	r->port = ntohs(at.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&at)->sin6_port :
						   ((struct sockaddr_in *)&at)->sin_port);
	/* Packets and stamps of a busy moment; the system may give less. */
	(void)setsockopt(r->fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
	/* Each is for one family; without, the system picks the address. */
	(void)setsockopt(r->fd, IPPROTO_IP, IP_PKTINFO, &one, sizeof one);
	(void)setsockopt(r->fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &one, sizeof one);
	(void)stamp_enable(r->fd);
	return 0;
}

int responder_open(struct responder **ret, uv_loop_t *loop, struct ingest *g,
		   const struct sockaddr_storage *control, uint16_t port)
{
	struct responder *r = calloc(1, sizeof *r);
	int e;

	if (!r)
		return -ENOMEM;
	r->ingest = g;
	r->fd = -1;
	e = open_socket(r, control, port);
	if (e == 0)
		e = uv_poll_init_socket(loop, &r->poll, r->fd);
	if (e != 0) {
		if (r->fd >= 0)
			close(r->fd);
		free(r);
		return e;
	}
	r->poll.data = r;
	bracket(r);
	(void)uv_poll_start(&r->poll, UV_READABLE | UV_PRIORITIZED, on_poll);
	*ret = r;
	return 0;
}

uint16_t responder_port(const struct responder *r)
{
	return r->port;
}

void responder_stats(const struct responder *r, struct responder_stats *ret)
{
	*ret = r->stats;
}

static void on_closed(uv_handle_t *handle)
{
	struct responder *r = handle->data;

	close(r->fd);
	free(r);
}

void responder_close(struct responder *r)
{
	if (!r)
		return;
	uv_poll_stop(&r->poll);
	uv_close((uv_handle_t *)&r->poll, on_closed);
}
