#include "probes.h"

#include "ingest_internal.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define EXCHANGE_MAX_NS (2 * SECOND_NS) /* a longer one tells nothing */

int probes_admit(struct ingest *g, struct agent *a)
{
	struct probe_peer *p = a->probe;

	if (!p)
		p = a->probe = calloc(1, sizeof *p);
	if (!p)
		return -ENOMEM;
	if (p->stream == a->stream)
		return 0;
	memset(p, 0, sizeof *p);
	if (getrandom(p->secret, sizeof p->secret, 0) != sizeof p->secret)
		return -errno;
	p->stream = a->stream;
	ping_derive_key(&p->key, g->token, p->stream, p->secret);
	return 0;
}

void probes_free(struct agent *a)
{
	free(a->probe);
	a->probe = NULL;
}

static struct probe_slot *slot_of(struct probe_peer *p, uint64_t seq)
{
	struct probe_slot *s = &p->slots[seq % PROBES_N_OPEN];

	return seq != 0 && s->seq == seq ? s : NULL;
}

/* Authentic, so its times are the agent's word; they must still fit ours. */
static void take_report(struct ingest *g, struct agent *a, const struct ping *q, int64_t now_raw_ns)
{
	struct probe_slot *s = slot_of(a->probe, q->report_seq);
	struct ingest_exchange x;

	if (!s) {
		a->probe->n_refused++;
		return;
	}
	x = (struct ingest_exchange){
		.t0_ns = q->t0_ns, .t1_ns = s->t1_ns, .t2_ns = s->t2_ns, .t3_ns = q->t3_ns,
		.way = s->kernel_t1 && s->kernel_t2 && q->flags & PING_KERNEL_T0 &&
				       q->flags & PING_KERNEL_T3 ?
			       ROW_WAY_UDP_KERNEL :
			       ROW_WAY_UDP,
	};
	s->seq = 0; /* told once */
	if (s->t1_ns == 0 || s->t2_ns == 0 || s->warm_up)
		return;
	if (x.t2_ns < x.t1_ns || x.t3_ns - x.t0_ns < x.t2_ns - x.t1_ns ||
	    x.t3_ns - x.t0_ns > EXCHANGE_MAX_NS || !ingest_sane_raw(x.t3_ns)) {
		a->probe->n_refused++;
		return;
	}
	a->probe->n_exchanges++;
	ingest_exchange(g, a->host, &x, now_raw_ns);
}

enum probe_outcome probes_take(struct ingest *g, const void *data, size_t n_bytes, int64_t t1_ns,
			       bool kernel, int64_t now_raw_ns, uint8_t answer[PING_BYTES],
			       struct probe_ref *ret)
{
	struct probe_slot *s;
	struct probe_peer *p;
	struct agent *a;
	struct ping q;

	if (ping_parse(&q, data, n_bytes) != PING_OK || q.kind != PING_REQUEST)
		return PROBE_MALFORMED;
	a = peers_find_stream(&g->peers, q.stream);
	if (!a || !a->probe || a->probe->stream != q.stream)
		return PROBE_UNKNOWN;
	p = a->probe;
	if (ping_verify(data, &p->key) != PING_OK)
		return PROBE_FORGED;
	if (!ping_window_take(&p->window, q.seq)) {
		p->n_refused++;
		return PROBE_REPEATED;
	}
	p->n_received++;
	p->received_raw_ns = now_raw_ns;
	if (q.flags & PING_HAS_REPORT)
		take_report(g, a, &q, now_raw_ns);
	s = &p->slots[q.seq % PROBES_N_OPEN];
	if (q.seq > s->seq)
		*s = (struct probe_slot){ .seq = q.seq, .t1_ns = t1_ns,
					  .warm_up = q.flags & PING_WARM_UP, .kernel_t1 = kernel };
	ping_pack(answer,
		  &(struct ping){ .kind = PING_ANSWER, .flags = q.flags & PING_WARM_UP,
				  .wish = (uint8_t)ingest_probe_wish(g, a->host, now_raw_ns),
				  .stream = q.stream, .seq = q.seq },
		  &p->key);
	*ret = (struct probe_ref){ a->id, q.seq };
	return PROBE_ANSWER;
}

static struct probe_slot *find(struct ingest *g, const struct probe_ref *ref)
{
	struct agent *a = ref->agent < g->peers.n_agents ? g->peers.agents[ref->agent] : NULL;

	return a && a->probe ? slot_of(a->probe, ref->seq) : NULL;
}

void probes_from(struct ingest *g, const struct probe_ref *ref, const struct sockaddr_storage *from)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)from;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)from;
	struct probe_peer *p = g->peers.agents[ref->agent]->probe;
	bool mapped = from->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr);

	if (from->ss_family == AF_INET)
		memcpy(p->address, &v4->sin_addr, 4);
	else if (mapped)
		memcpy(p->address, &v6->sin6_addr.s6_addr[12], 4);
	else
		memcpy(p->address, &v6->sin6_addr, 16);
	p->n_address = from->ss_family == AF_INET || mapped ? 4 : 16;
}

void probes_sent(struct ingest *g, const struct probe_ref *ref, int64_t t2_ns, bool kernel)
{
	struct probe_slot *s = find(g, ref);

	if (!s || (kernel && t2_ns < s->t2_ns && s->t2_ns != 0))
		return; /* earlier than we ourselves gave it away: another packet's */
	s->t2_ns = t2_ns;
	s->kernel_t2 = kernel;
}

void probes_void(struct ingest *g, const struct probe_ref *ref)
{
	struct probe_slot *s = find(g, ref);

	if (s)
		s->t1_ns = s->t2_ns = 0;
}
