#include "echo.h"

#include "clock.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define AT_ONCE 64
#define WISH 2 /* exchanges a second: a neighbour's clock is looked at, not followed */
#define RENUMBER_NS INT64_C(200000000)

void echo_init(struct echo *e)
{
	memset(e, 0, sizeof *e);
	e->fd = -1;
}

void echo_close(struct echo *e)
{
	if (e->fd >= 0)
		close(e->fd);
	echo_init(e);
}

static void bracket(struct echo *e)
{
	struct stamp_bracket b = stamp_bracket_now();

	stamp_add(&e->line, &b);
}

void echo_open(struct echo *e, int family, const char *token, const uint8_t secret[FRAME_SECRET_BYTES])
{
	struct sockaddr_storage at = { .ss_family = (sa_family_t)family };
	socklen_t n = sizeof at;

	if (e->fd >= 0 && memcmp(e->secret, secret, sizeof e->secret) == 0)
		return;
	echo_close(e);
	memcpy(e->secret, secret, sizeof e->secret);
	e->token = token;
	e->fd = socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (e->fd < 0)
		return;
	if (bind(e->fd, (struct sockaddr *)&at,
		 family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in)) != 0 ||
	    getsockname(e->fd, (struct sockaddr *)&at, &n) != 0) {
		echo_close(e);
		return;
	}
	e->port = ntohs(family == AF_INET6 ? ((struct sockaddr_in6 *)&at)->sin6_port :
					     ((struct sockaddr_in *)&at)->sin_port);
	(void)stamp_enable(e->fd);
	bracket(e);
}

static void take_stamps(struct echo *e)
{
	int64_t real_ns, raw_ns, err_ns;
	bool bracketed = false;
	uint32_t number;

	while (stamp_sent(e->fd, &number, &real_ns)) {
		for (unsigned i = 0; i < ECHO_N_PEERS && e->unnumbered_until_ns == 0; i++) {
			struct echo_peer *p = &e->peers[i];

			if (p->stream == 0 || p->number != number || p->kernel_t2 || p->seq == 0)
				continue;
			if (!bracketed)
				bracket(e);
			bracketed = true;
			switch (stamp_to_raw(&e->line, real_ns, &raw_ns, &err_ns)) {
			case STAMP_OK:
				if (raw_ns + err_ns < p->t2_ns) {
					p->t1_ns = 0; /* another packet's */
				} else if (raw_ns - err_ns > p->t2_ns) {
					p->t2_ns = raw_ns - err_ns;
				}
				p->kernel_t2 = true;
				break;
			case STAMP_UNSURE:
				p->t1_ns = 0;
				break;
			case STAMP_NO_BRACKET:
				break;
			}
		}
	}
}

/* The one of that stream, or the place of whoever was silent longest. */
static struct echo_peer *peer_of(struct echo *e, uint64_t stream)
{
	struct echo_peer *oldest = &e->peers[0];

	for (unsigned i = 0; i < ECHO_N_PEERS; i++) {
		if (e->peers[i].stream == stream)
			return &e->peers[i];
		if (e->peers[i].used_ns < oldest->used_ns)
			oldest = &e->peers[i];
	}
	return oldest;
}

/* Whose request is it? NULL: refused. A place changes hands only for who has the key. */
static struct echo_peer *admit(struct echo *e, struct ping *q, const uint8_t *data, size_t n)
{
	struct echo_peer *p;
	struct ping_key key;

	if (ping_parse(q, data, n) != PING_OK || q->kind != PING_REQUEST)
		return NULL;
	p = peer_of(e, q->stream);
	if (p->stream == q->stream)
		key = p->key;
	else
		ping_derive_key(&key, e->token, q->stream, e->secret);
	if (ping_verify(data, &key) != PING_OK)
		return NULL;
	if (p->stream != q->stream)
		*p = (struct echo_peer){ .stream = q->stream, .key = key };
	return ping_window_take(&p->window, q->seq) ? p : NULL;
}

static void answer(struct echo *e, struct echo_peer *p, const struct ping *q, const struct msghdr *m,
		   int64_t t1_ns, bool kernel)
{
	struct ping a = { .kind = PING_ANSWER, .flags = q->flags & PING_WARM_UP, .wish = WISH,
			  .stream = q->stream, .seq = q->seq };
	uint8_t bytes[PING_BYTES];

	if (p->seq != 0 && p->seq < q->seq && p->t1_ns != 0 && p->t2_ns >= p->t1_ns) {
		a.flags |= (uint8_t)(PING_HAS_REPORT | (p->kernel_t1 ? PING_KERNEL_T0 : 0) |
				     (p->kernel_t2 ? PING_KERNEL_T3 : 0));
		a.report_seq = p->seq;
		a.t0_ns = clock_bend(p->t1_ns);
		a.t3_ns = clock_bend(p->t2_ns);
	}
	if (a.flags & PING_HAS_REPORT && (a.t0_ns <= 0 || a.t3_ns < a.t0_ns))
		a.flags &= PING_WARM_UP; /* a clock that ran back meanwhile */
	ping_pack(bytes, &a, &p->key);
	p->seq = q->seq;
	p->number = e->n_numbered;
	p->t1_ns = t1_ns;
	p->kernel_t1 = kernel;
	p->kernel_t2 = false;
	p->t2_ns = p->used_ns = clock_true_raw();
	if (sendto(e->fd, bytes, sizeof bytes, MSG_DONTWAIT, m->msg_name, m->msg_namelen) == PING_BYTES) {
		e->n_numbered++;
		e->n_answered++;
		return;
	}
	p->seq = 0; /* whether the kernel counted it is not known */
	e->unnumbered_until_ns = clock_true_raw() + RENUMBER_NS;
}

static void begin_numbers_anew(struct echo *e)
{
	if (e->unnumbered_until_ns == 0 || clock_true_raw() < e->unnumbered_until_ns)
		return;
	stamp_restart(e->fd);
	e->n_numbered = 0;
	e->unnumbered_until_ns = 0;
	for (unsigned i = 0; i < ECHO_N_PEERS; i++)
		e->peers[i].number = UINT32_MAX;
}

void echo_receive(struct echo *e)
{
	if (e->fd < 0)
		return;
	begin_numbers_anew(e);
	take_stamps(e);
	bracket(e);
	for (unsigned i = 0; i < AT_ONCE; i++) {
		_Alignas(struct cmsghdr) char control[STAMP_CONTROL_BYTES];
		uint8_t data[PING_BYTES + 1];
		struct sockaddr_storage from;
		struct iovec iov = { data, sizeof data };
		struct msghdr m = { .msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &iov,
				    .msg_iovlen = 1, .msg_control = control,
				    .msg_controllen = sizeof control };
		ssize_t n = recvmsg(e->fd, &m, MSG_DONTWAIT);
		int64_t now_ns = clock_true_raw(), t1_ns;
		struct echo_peer *p;
		struct ping q;
		bool kernel;

		if (n < 0)
			break;
		t1_ns = stamp_received(&e->line, stamp_of(&m), now_ns, &kernel);
		p = admit(e, &q, data, (size_t)n);
		if (p)
			answer(e, p, &q, &m, t1_ns, kernel);
		else
			e->n_refused++;
		take_stamps(e);
	}
}
