#include "stamp.h"

#include <time.h>

#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <string.h>
#include <sys/socket.h>

#define RATE_OVER_NS INT64_C(500000000)
#define FLAGS                                                                                  \
	(SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_TX_SOFTWARE |                         \
	 SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_OPT_TSONLY)

static int64_t ahead_ns(const struct stamp_bracket *b)
{
	return b->real_ns - b->raw_ns;
}

static int64_t size_of(int64_t v)
{
	return v < 0 ? -v : v;
}

/* A rate over half a second is good to a tenth of a ppm. What a step makes of it
 * is no rate: it is forgotten with the next anchor. */
static void measure_rate(struct stamp_line *l, const struct stamp_bracket *b)
{
	int64_t over_ns = b->raw_ns - l->anchor.raw_ns;

	if (l->n == 0 || over_ns < 0) {
		l->anchor = *b;
		l->has_rate = false;
		return;
	}
	if (over_ns < RATE_OVER_NS)
		return;
	l->rate = (double)(ahead_ns(b) - ahead_ns(&l->anchor)) / (double)over_ns;
	l->has_rate = l->rate > -1e-3 && l->rate < 1e-3;
	l->anchor = *b;
}

void stamp_add(struct stamp_line *l, const struct stamp_bracket *b)
{
	measure_rate(l, b);
	l->v[l->next] = *b;
	l->next = (l->next + 1) % STAMP_N_BRACKETS;
	if (l->n < STAMP_N_BRACKETS)
		l->n++;
}

/* How far the two brackets are from one line: negative where REALTIME was set back. */
static int64_t bend_ns(const struct stamp_line *l, const struct stamp_bracket *before,
		       const struct stamp_bracket *after)
{
	int64_t over_ns = after->raw_ns - before->raw_ns;
	int64_t ahead = ahead_ns(after) - ahead_ns(before);

	if (over_ns < 0)
		return -INT64_MAX;
	return ahead - (int64_t)((double)over_ns * (l->has_rate ? l->rate : 0));
}

/* From the newest back to the first bracket that is not after it. A clock that was
 * set back on that way showed the same times twice. */
enum stamp_outcome stamp_to_raw(const struct stamp_line *l, int64_t real_ns, int64_t *ret_raw_ns,
				int64_t *ret_err_ns)
{
	const struct stamp_bracket *after = NULL;

	for (unsigned i = 1; i <= l->n; i++) {
		const struct stamp_bracket *b =
			&l->v[(l->next + STAMP_N_BRACKETS - i) % STAMP_N_BRACKETS];
		int64_t bend, ahead, half;

		if (!after && b->real_ns <= real_ns)
			break;
		bend = after ? bend_ns(l, b, after) : 0;
		if (bend < -STAMP_MAX_BEND_NS)
			return STAMP_UNSURE;
		if (b->real_ns > real_ns) {
			after = b;
			continue;
		}
		if (bend > STAMP_MAX_BEND_NS)
			return STAMP_UNSURE;
		half = b->half_ns > after->half_ns ? b->half_ns : after->half_ns;
		bend = size_of(bend) - b->half_ns - after->half_ns;
		ahead = (int64_t)((double)(ahead_ns(after) - ahead_ns(b)) *
				  ((double)(real_ns - b->real_ns) / (double)(after->real_ns - b->real_ns)));
		*ret_raw_ns = real_ns - ahead_ns(b) - ahead;
		*ret_err_ns = half + (bend > 0 ? bend : 0) + 1;
		return STAMP_OK;
	}
	return STAMP_NO_BRACKET;
}

static int64_t read_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

struct stamp_bracket stamp_bracket_now(void)
{
	struct stamp_bracket best = { .half_ns = INT64_MAX };
	int64_t before = read_ns(CLOCK_MONOTONIC_RAW);

	for (int i = 0; i < STAMP_N_TRIES; i++) {
		int64_t real = read_ns(CLOCK_REALTIME);
		int64_t after = read_ns(CLOCK_MONOTONIC_RAW);
		int64_t half = (after - before) / 2 + 1;

		if (half < best.half_ns)
			best = (struct stamp_bracket){ before + (after - before) / 2, real, half };
		before = after;
	}
	return best;
}

int64_t stamp_received(struct stamp_line *l, int64_t real_ns, int64_t now_ns, bool *ret_kernel)
{
	struct stamp_bracket now;
	int64_t raw_ns, err_ns;

	*ret_kernel = false;
	for (int i = 0; i < 2 && real_ns != 0; i++) {
		switch (stamp_to_raw(l, real_ns, &raw_ns, &err_ns)) {
		case STAMP_OK:
			if (raw_ns - err_ns > now_ns)
				return 0;
			*ret_kernel = true;
			return raw_ns + err_ns < now_ns ? raw_ns + err_ns : now_ns;
		case STAMP_UNSURE:
			return 0;
		case STAMP_NO_BRACKET:
			now = stamp_bracket_now();
			stamp_add(l, &now);
			break;
		}
	}
	return now_ns;
}

bool stamp_enable(int fd)
{
	int flags = FLAGS | SOF_TIMESTAMPING_OPT_ID, one = 1, tos = IPTOS_DSCP_EF;

	/* What only helps may fail; the first two hold for one family each. */
	(void)setsockopt(fd, IPPROTO_IP, IP_TOS, &tos, sizeof tos);
	(void)setsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &tos, sizeof tos);
	(void)setsockopt(fd, SOL_SOCKET, SO_SELECT_ERR_QUEUE, &one, sizeof one);
	return setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof flags) == 0;
}

void stamp_restart(int fd)
{
	int flags = FLAGS;

	(void)setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof flags);
	flags |= SOF_TIMESTAMPING_OPT_ID;
	(void)setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof flags);
}

static int64_t software_ns(const struct cmsghdr *c)
{
	struct scm_timestamping v;

	memcpy(&v, CMSG_DATA(c), sizeof v);
	return (int64_t)v.ts[0].tv_sec * 1000000000 + v.ts[0].tv_nsec;
}

static bool is_stamp(const struct cmsghdr *c)
{
	return c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPING &&
	       c->cmsg_len >= CMSG_LEN(sizeof(struct scm_timestamping));
}

int64_t stamp_of(struct msghdr *m)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
		if (is_stamp(c))
			return software_ns(c);
	return 0;
}

bool stamp_sent(int fd, uint32_t *ret_number, int64_t *ret_real_ns)
{
	for (;;) {
		_Alignas(struct cmsghdr) char control[STAMP_CONTROL_BYTES];
		char data[64];
		struct iovec iov = { data, sizeof data };
		struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
				    .msg_controllen = sizeof control };
		bool has_number = false;

		if (recvmsg(fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
			return false;
		for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
			struct sock_extended_err e;

			if (!((c->cmsg_level == SOL_IP && c->cmsg_type == IP_RECVERR) ||
			      (c->cmsg_level == SOL_IPV6 && c->cmsg_type == IPV6_RECVERR)))
				continue;
			memcpy(&e, CMSG_DATA(c), sizeof e);
			has_number = e.ee_origin == SO_EE_ORIGIN_TIMESTAMPING;
			*ret_number = e.ee_data;
		}
		*ret_real_ns = stamp_of(&m);
		if (has_number && *ret_real_ns > 0)
			return true;
	}
}
