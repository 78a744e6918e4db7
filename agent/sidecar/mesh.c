#include "mesh.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

void mesh_init(struct mesh *m)
{
	memset(m, 0, sizeof *m);
	echo_init(&m->echo);
	for (unsigned i = 0; i < FRAME_MAX_PEERS; i++)
		pinger_init(&m->others[i].pinger);
}

void mesh_aim(struct mesh *m, int family, uint64_t stream, const char *token,
	      const uint8_t secret[FRAME_SECRET_BYTES])
{
	static const uint8_t none[FRAME_SECRET_BYTES];

	m->stream = stream;
	m->token = token;
	if ((family == AF_INET || family == AF_INET6) && memcmp(secret, none, sizeof none) != 0)
		echo_open(&m->echo, family, token, secret);
	else
		echo_close(&m->echo);
}

static bool address_of(const struct frame_peer *v, struct sockaddr_storage *ret)
{
	memset(ret, 0, sizeof *ret);
	if (v->n_address == 4) {
		ret->ss_family = AF_INET;
		memcpy(&((struct sockaddr_in *)ret)->sin_addr, v->address, 4);
		return true;
	}
	ret->ss_family = AF_INET6;
	memcpy(&((struct sockaddr_in6 *)ret)->sin6_addr, v->address, 16);
	return v->n_address == 16;
}

static bool same(const struct frame_peer *a, const struct frame_peer *b)
{
	return a->host == b->host && a->port == b->port && a->n_address == b->n_address &&
	       memcmp(a->address, b->address, a->n_address) == 0;
}

void mesh_peers(struct mesh *m, const struct frame_peer *v, uint32_t n)
{
	for (uint32_t i = 0; i < FRAME_MAX_PEERS; i++) {
		struct pinger *p = &m->others[i].pinger;
		struct sockaddr_storage to;

		if (i >= n || m->echo.fd < 0 || !address_of(&v[i], &to)) {
			pinger_stop(p);
			continue;
		}
		if (p->fd >= 0 && !same(&m->others[i].peer, &v[i]))
			pinger_stop(p);
		m->others[i].peer = v[i];
		pinger_aim(p, PINGER_PEER, &to, v[i].port, m->stream, m->token, m->echo.secret);
	}
}

int64_t mesh_due_in_ns(const struct mesh *m)
{
	int64_t least_ns = INT64_MAX;

	for (unsigned i = 0; i < FRAME_MAX_PEERS; i++) {
		int64_t in_ns = pinger_due_in_ns(&m->others[i].pinger);

		least_ns = in_ns < least_ns ? in_ns : least_ns;
	}
	return least_ns;
}

void mesh_tick(struct mesh *m)
{
	for (unsigned i = 0; i < FRAME_MAX_PEERS; i++)
		pinger_tick(&m->others[i].pinger);
}

void mesh_fds(const struct mesh *m, int fds[MESH_N_FDS])
{
	fds[0] = m->echo.fd;
	for (unsigned i = 0; i < FRAME_MAX_PEERS; i++)
		fds[1 + i] = m->others[i].pinger.fd;
}

void mesh_receive(struct mesh *m, unsigned which)
{
	if (which == 0)
		echo_receive(&m->echo);
	else
		pinger_receive(&m->others[which - 1].pinger);
}

bool mesh_next(struct mesh *m, struct frame_peer_exchange *ret)
{
	struct pinger_report r;

	for (unsigned i = 0; i < FRAME_MAX_PEERS; i++) {
		if (!pinger_next(&m->others[i].pinger, &r))
			continue;
		*ret = (struct frame_peer_exchange){ m->others[i].peer.host, r.t0_ns, r.t1_ns, r.t2_ns,
						     r.t3_ns };
		return true;
	}
	return false;
}
