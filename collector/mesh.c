/* mesh.c - which agents probe each other, and what their clocks make of it.
 *
 * Agents are put in a circle by a seeded order that changes every ten minutes;
 * each probes the next few. An agent that comes or goes changes its neighbours'
 * lists and nobody else's.
 *
 * Two hosts' own exchange is a check that no estimate went into: placed on the
 * fleet's line, a packet must not arrive before it left. Where it does, beyond
 * both hosts' bounds, a bound is wrong, and that is kept and shown.
 */
#include "ingest_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define EPOCH_NS (600 * SECOND_NS)
#define ORDER_NS (2 * SECOND_NS)

int ingest_set_peers(struct ingest *g, unsigned n)
{
	g->n_peers = n < FRAME_MAX_PEERS ? n : FRAME_MAX_PEERS;
	if (g->n_peers == 0)
		return 0;
	return getrandom(g->peer_secret, sizeof g->peer_secret, 0) == sizeof g->peer_secret ? 0 : -errno;
}

/* --- who probes whom ------------------------------------------------------ */

static uint64_t mix(uint64_t z)
{
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static int by_key(const void *a, const void *b)
{
	const struct mesh_place *x = a, *y = b;

	return x->key != y->key ? (x->key < y->key ? -1 : 1) : (x->agent > y->agent) - (x->agent < y->agent);
}

static bool takes_part(const struct ingest *g, const struct agent *a, int64_t now_raw_ns)
{
	return a->probe && a->probe->n_address != 0 && a->probing.peer_port != 0 &&
	       a->host != PEER_NONE && !g->peers.hosts[a->host].same_clock &&
	       now_raw_ns - a->seen_raw_ns < CONNECTED_NS;
}

void ingest_order_peers(struct ingest *g, int64_t now_raw_ns)
{
	uint64_t epoch = (uint64_t)(now_raw_ns / EPOCH_NS);

	if (g->n_peers == 0 || now_raw_ns - g->ordered_raw_ns < ORDER_NS)
		return;
	g->ordered_raw_ns = now_raw_ns;
	if (g->n_circle_alloc < g->peers.n_agents) {
		struct mesh_place *grown = realloc(g->circle, g->peers.n_agents * 2 * sizeof *grown);

		if (!grown)
			return; /* as they were */
		g->circle = grown;
		g->n_circle_alloc = g->peers.n_agents * 2;
	}
	g->n_circle = 0;
	for (uint32_t i = 0; i < g->peers.n_agents; i++) {
		g->peers.agents[i]->place = PEER_NONE;
		if (takes_part(g, g->peers.agents[i], now_raw_ns))
			g->circle[g->n_circle++] = (struct mesh_place){
				mix(mix(epoch + 1) ^ (uint64_t)(i + 1)), i };
	}
	if (g->n_circle > 0)
		qsort(g->circle, g->n_circle, sizeof *g->circle, by_key);
	for (uint32_t i = 0; i < g->n_circle; i++)
		g->peers.agents[g->circle[i].agent]->place = i;
}

uint32_t ingest_peers_of(const struct ingest *g, const struct agent *a,
			 struct frame_peer ret[FRAME_MAX_PEERS])
{
	uint32_t n = 0;

	if (g->n_peers == 0 || a->place >= g->n_circle)
		return 0;
	for (uint32_t i = 1; i < g->n_circle && n < g->n_peers; i++) {
		const struct agent *b =
			g->peers.agents[g->circle[(a->place + i) % g->n_circle].agent];

		if (b->host == a->host)
			continue;
		ret[n] = (struct frame_peer){ .host = b->host, .port = b->probing.peer_port,
					      .n_address = b->probe->n_address };
		memcpy(ret[n++].address, b->probe->address, b->probe->n_address);
	}
	return n;
}

/* --- what they found ------------------------------------------------------ */

static bool is_sound(const struct ingest *g, const struct agent *a, const struct frame_peer_exchange *x)
{
	return x->host < g->peers.n_hosts && x->host != a->host && ingest_sane_raw(x->t0_ns) &&
	       ingest_sane_raw(x->t1_ns) && ingest_sane_raw(x->t2_ns) && ingest_sane_raw(x->t3_ns) &&
	       x->t2_ns >= x->t1_ns && x->t3_ns - x->t0_ns >= x->t2_ns - x->t1_ns &&
	       x->t3_ns - x->t0_ns < 2 * SECOND_NS;
}

void ingest_peer_exchange(struct ingest *g, const struct agent *a, const struct frame_peer_exchange *x)
{
	struct fleet_point p[4];
	struct row_peer_exchange *row;
	int64_t err_ns = 0, there_ns, back_ns;

	if (!is_sound(g, a, x))
		return;
	ingest_place(g, a->host, x->t0_ns, &p[0]);
	ingest_place(g, x->host, x->t1_ns, &p[1]);
	ingest_place(g, x->host, x->t2_ns, &p[2]);
	ingest_place(g, a->host, x->t3_ns, &p[3]);
	row = JOB_PUSH(g->job, peer_exchanges);
	if (!row) {
		ingest_fail(g, -ENOMEM);
		return;
	}
	*row = (struct row_peer_exchange){
		.host = a->host, .peer = x->host, .t0_ns = x->t0_ns, .t1_ns = x->t1_ns,
		.t2_ns = x->t2_ns, .t3_ns = x->t3_ns, .at_ns = p[0].at.ns, .surplus_ns = FACT_NONE,
		.err_ns = FACT_NONE,
	};
	for (int i = 0; i < 4; i++) {
		if (p[i].err_ns >= INT64_MAX / 8)
			return; /* not placed: nothing to hold it against */
		err_ns += p[i].err_ns;
	}
	there_ns = p[1].at.ns - p[0].at.ns;
	back_ns = p[3].at.ns - p[2].at.ns;
	row->surplus_ns = (there_ns - back_ns) / 2;
	row->err_ns = err_ns / 2 + 1;
	row->contradicts = there_ns < -(p[0].err_ns + p[1].err_ns) ||
			   back_ns < -(p[2].err_ns + p[3].err_ns);
}
