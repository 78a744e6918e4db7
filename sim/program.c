/* program.c - the programs of a case, unrolled into nodes and what they wait for. */
#include "play_internal.h"

#include "../proto/event.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool grow(struct play_build *b, void *v, uint32_t n, uint32_t *n_alloc, size_t size)
{
	uint32_t want = *n_alloc ? 2 * *n_alloc : 256;
	void *grown;

	if (n < *n_alloc)
		return true;
	grown = realloc(*(void **)v, want * size);
	if (!grown) {
		b->no_memory = true;
		return false;
	}
	*(void **)v = grown;
	*n_alloc = want;
	return true;
}

static bool push(struct play_build *b, struct node_list *l, uint32_t node)
{
	if (!grow(b, &l->v, l->n, &l->n_alloc, sizeof *l->v))
		return false;
	l->v[l->n++] = node;
	return true;
}

static int64_t ns_of(double ms)
{
	return (int64_t)nearbyint(ms * 1e6);
}

/* ---- nodes and edges ---- */

static struct play_node *node_at(struct play_build *b, uint32_t node)
{
	return &b->play->nodes[node];
}

static bool add_edge(struct play_build *b, uint32_t from, uint32_t to)
{
	if (from == PLAY_NONE)
		return true;
	if (!grow(b, &b->edges, b->n_edges, &b->n_edges_alloc, sizeof *b->edges))
		return false;
	b->edges[b->n_edges++] = (struct play_edge){ from, to };
	return true;
}

/* A node that begins after `after` (PLAY_NONE: at once). Its number, PLAY_NONE on failure. */
static uint32_t add_node(struct play_build *b, enum play_kind kind, uint32_t after,
			 const struct spec_op *op, const char *name, int64_t dur_ns)
{
	struct play *p = b->play;

	if (p->n_nodes == b->max_nodes) {
		play_refuse(b, "the programs come to more than %u operations", b->max_nodes);
		return PLAY_NONE;
	}
	if (!grow(b, &p->nodes, p->n_nodes, &b->n_nodes_alloc, sizeof *p->nodes))
		return PLAY_NONE;
	p->nodes[p->n_nodes] = (struct play_node){
		.kind = (uint8_t)kind, .rank = b->at.rank, .op = op, .name = name,
		.dur_ns = dur_ns, .launch = 0, .target = PLAY_NONE, .group = PLAY_NONE,
		.start_ns = 0, .end_ns = PLAY_NEVER,
	};
	return add_edge(b, after, p->n_nodes) ? p->n_nodes++ : PLAY_NONE;
}

/* The host's next piece of work. */
static bool add_host(struct play_build *b, enum play_kind kind, const struct spec_op *op,
		     const char *name, int64_t dur_ns)
{
	uint32_t node = add_node(b, kind, b->at.host, op, name, dur_ns);

	if (node == PLAY_NONE)
		return false;
	b->at.host = node;
	return true;
}

/* The node waits for one of the device, which a profiler sees where streams differ. */
static bool await(struct play_build *b, uint32_t node, uint32_t other)
{
	struct play *p = b->play;

	if (other == PLAY_NONE)
		return true;
	if (!add_edge(b, other, node))
		return false;
	if (node_at(b, other)->stream == node_at(b, node)->stream)
		return true;
	if (!grow(b, &p->waits, p->n_waits, &b->n_waits_alloc, sizeof *p->waits))
		return false;
	p->waits[p->n_waits++] = other;
	node_at(b, node)->n_waits++;
	return true;
}

/* Launch and device node together. The stream's order is the caller's to add. */
static uint32_t add_device(struct play_build *b, enum play_kind kind, uint32_t stream,
			   const struct spec_op *op, const char *name, int64_t dur_ns)
{
	struct play_node *n;
	uint32_t node, host;

	if (!add_host(b, PLAY_LAUNCH, op, name, PLAY_LAUNCH_NS))
		return PLAY_NONE;
	host = b->at.host;
	node = add_node(b, kind, host, op, name, dur_ns);
	if (node == PLAY_NONE || !push(b, &b->at.unsynced, node))
		return PLAY_NONE;
	n = node_at(b, node);
	n->stream = (uint16_t)stream;
	n->launch = node_at(b, host)->launch = ++b->at.n_launches;
	n->first_wait = b->play->n_waits;
	node_at(b, host)->target = node;
	return node;
}

static bool add_block(struct play_build *b, uint32_t node)
{
	if (!add_host(b, PLAY_BLOCK, NULL, "", 0))
		return false;
	node_at(b, b->at.host)->target = node;
	return add_edge(b, node, b->at.host);
}

/* ---- operations ---- */

static bool add_kernel(struct play_build *b, const struct spec_op *op, const char *name, double ms)
{
	struct play_rank *r = &b->at;
	uint32_t node = add_device(b, PLAY_KERNEL, SPEC_STREAM_COMPUTE, op, name, ns_of(ms));

	if (node == PLAY_NONE || !await(b, node, r->tails[SPEC_STREAM_COMPUTE]))
		return false;
	for (uint32_t i = 0; i < r->pending.n; i++)
		if (!await(b, node, r->pending.v[i]))
			return false;
	r->pending.n = 0;
	r->tails[SPEC_STREAM_COMPUTE] = node;
	return true;
}

static bool add_coll(struct play_build *b, const struct spec_op *op)
{
	const struct spec_coll *c = &op->coll;
	struct play_rank *r = &b->at;
	struct node_list *calls = &r->calls[c->group];
	uint32_t node = add_device(b, PLAY_COLL, c->stream, op, op->name, ns_of(op->ms));

	if (node == PLAY_NONE || !push(b, calls, node))
		return false;
	node_at(b, node)->group = c->group;
	node_at(b, node)->call = calls->n;
	node_at(b, node)->count = c->count;
	if (!await(b, node, r->tails[c->stream]) ||
	    (!c->nowait && c->stream != SPEC_STREAM_COMPUTE &&
	     !await(b, node, r->tails[SPEC_STREAM_COMPUTE])))
		return false;
	if (calls->n > b->play->n_calls[c->group])
		b->play->n_calls[c->group] = calls->n;
	r->tails[c->stream] = node;
	return !c->block || add_block(b, node);
}

static bool add_p2p(struct play_build *b, const struct spec_op *op, const struct spec_pair *pairs,
		    uint32_t n_pairs, double ms, bool block)
{
	struct play_rank *r = &b->at;
	struct play *p = b->play;
	uint32_t node = add_device(b, PLAY_P2P, SPEC_STREAM_P2P, op, "", ns_of(ms));

	if (node == PLAY_NONE)
		return false;
	node_at(b, node)->first_pair = p->n_pairs;
	node_at(b, node)->n_pairs = n_pairs;
	for (uint32_t i = 0; i < n_pairs; i++) {
		uint32_t peer = pairs[i].peer;

		if (p->n_pairs == b->max_nodes)
			return play_refuse(b, "the programs come to more than %u messages",
					   b->max_nodes);
		if (!grow(b, &p->pairs, p->n_pairs, &b->n_pairs_alloc, sizeof *p->pairs))
			return false;
		p->pairs[p->n_pairs++] = (struct play_pair){
			.send = pairs[i].send, .peer = peer, .count = pairs[i].count,
			.number = pairs[i].send ? ++r->n_sent[peer] : ++r->n_received[peer],
		};
	}
	if (!await(b, node, r->tails[SPEC_STREAM_P2P]) ||
	    (r->tails[SPEC_STREAM_COMPUTE] != r->tails[SPEC_STREAM_P2P] &&
	     !await(b, node, r->tails[SPEC_STREAM_COMPUTE])))
		return false;
	r->tails[SPEC_STREAM_P2P] = r->tails[SPEC_STREAM_COMPUTE] = node;
	return !block || add_block(b, node);
}

static bool add_sync(struct play_build *b)
{
	struct node_list *l = &b->at.unsynced;

	if (!add_host(b, PLAY_SYNC, NULL, "", 0))
		return false;
	for (uint32_t i = 0; i < l->n; i++)
		if (!add_edge(b, l->v[i], b->at.host))
			return false;
	l->n = 0; /* the next sync comes after this one */
	return true;
}

static bool add_wait(struct play_build *b, const struct spec_op *op)
{
	const struct node_list *calls = &b->at.calls[op->wait.group];
	uint32_t call = op->wait.call ? op->wait.call : calls->n;

	if (call == 0 || call > calls->n)
		return play_refuse(b, "rank %u waits for call %u of group \"%s\", which it has not made",
				   b->at.rank, call ? call : 1,
				   b->play->spec->groups[op->wait.group].name);
	return push(b, &b->at.pending, calls->v[call - 1]);
}

/* Steps are contiguous where a live probe counts them: a number that goes back
 * or stays is the next one. */
static bool add_step(struct play_build *b, const struct spec_op *op)
{
	uint32_t next = b->at.step + 1; /* of EVENT_STEP_UNKNOWN: 0 */

	if (op->step.has_number && op->step.number > next)
		next = op->step.number;
	b->at.step = next;
	return add_host(b, PLAY_MARK, op, "", 0);
}

/* ---- one forward, one backward ---- */

struct stage {
	const struct spec_op *op;
	uint32_t up, down; /* ranks, PLAY_NONE at the ends */
	double fwd_ms, bwd_ms;
	uint32_t n_fwd, n_bwd; /* micro-batches begun */
};

/* Messages with the neighbours that are there, as one node. */
static bool exchange(struct play_build *b, const struct stage *s, bool send_1, uint32_t peer_1,
		     bool send_2, uint32_t peer_2)
{
	struct spec_pair pairs[2];
	uint32_t n = 0;

	if (peer_1 != PLAY_NONE)
		pairs[n++] = (struct spec_pair){ send_1, peer_1, s->op->f1b.count };
	if (peer_2 != PLAY_NONE)
		pairs[n++] = (struct spec_pair){ send_2, peer_2, s->op->f1b.count };
	return n == 0 || add_p2p(b, NULL, pairs, n, s->op->ms, false);
}

static bool compute(struct play_build *b, struct stage *s, bool forward)
{
	uint32_t at = b->play->n_nodes;

	if (!add_kernel(b, NULL, forward ? "fwd" : "bwd", forward ? s->fwd_ms : s->bwd_ms))
		return false;
	for (; at < b->play->n_nodes; at++) { /* launch and kernel */
		b->play->nodes[at].phase = forward ? PHASE_FORWARD : PHASE_BACKWARD;
		b->play->nodes[at].micro = forward ? s->n_fwd : s->n_bwd;
	}
	*(forward ? &s->n_fwd : &s->n_bwd) += 1;
	return true;
}

static bool run_stage(struct play_build *b, struct stage *s, uint32_t n_micro, uint32_t n_warm)
{
	for (uint32_t i = 0; i < n_warm; i++)
		if (!exchange(b, s, false, s->up, false, PLAY_NONE) || !compute(b, s, true) ||
		    !exchange(b, s, true, s->down, false, PLAY_NONE))
			return false;
	if (n_micro > n_warm && !exchange(b, s, false, s->up, false, PLAY_NONE))
		return false;
	for (uint32_t i = n_warm; i < n_micro; i++)
		if (!compute(b, s, true) || !exchange(b, s, true, s->down, false, s->down) ||
		    !compute(b, s, false) ||
		    !exchange(b, s, true, s->up, false, i + 1 < n_micro ? s->up : PLAY_NONE))
			return false;
	for (uint32_t i = 0; i < n_warm; i++)
		if (!exchange(b, s, false, s->down, false, PLAY_NONE) || !compute(b, s, false) ||
		    !exchange(b, s, true, s->up, false, PLAY_NONE))
			return false;
	return true;
}

static bool add_1f1b(struct play_build *b, const struct spec_op *op)
{
	const struct spec_1f1b *f = &op->f1b;
	uint32_t at = 0, n_behind;
	struct stage s = { .op = op };

	while (at < f->n_peers && f->peers[at] != b->at.rank)
		at++;
	if (at == f->n_peers)
		return play_refuse(b, "rank %u runs a 1f1b in which it is no stage", b->at.rank);
	n_behind = f->n_peers - 1 - at;
	s.up = at > 0 ? f->peers[at - 1] : PLAY_NONE;
	s.down = n_behind > 0 ? f->peers[at + 1] : PLAY_NONE;
	s.fwd_ms = f->fwd_ms[f->n_fwd > 1 ? at : 0];
	s.bwd_ms = f->bwd_ms[f->n_bwd > 1 ? at : 0];
	return run_stage(b, &s, f->n_micro, n_behind < f->n_micro ? n_behind : f->n_micro);
}

/* ---- programs ---- */

static bool expand(struct play_build *b, const struct spec_list *list);

static bool visit(struct play_build *b)
{
	if (b->n_visits++ < (uint64_t)b->max_nodes * PLAY_VISITS_A_NODE)
		return true;
	return play_refuse(b, "the programs repeat themselves too often");
}

static bool expand_op(struct play_build *b, const struct spec_op *op)
{
	switch (op->kind) {
	case SPEC_STEP:
		return add_step(b, op);
	case SPEC_CPU:
		return add_host(b, PLAY_CPU, op, op->name, ns_of(op->ms));
	case SPEC_KERNEL:
		return add_kernel(b, op, op->name, op->ms);
	case SPEC_REPEAT:
		for (uint32_t i = 0; i < op->repeat.n; i++) {
			if (!visit(b) || !expand(b, &op->repeat.body))
				return false;
		}
		return true;
	case SPEC_ONLY:
		return !spec_has(&op->only.ranks, b->at.rank) || expand(b, &op->only.body);
	case SPEC_STALL:
		return add_host(b, PLAY_STALL, op, op->name, PLAY_NEVER);
	case SPEC_SYNC:
		return add_sync(b);
	case SPEC_COLL:
		return add_coll(b, op);
	case SPEC_WAIT:
		return add_wait(b, op);
	case SPEC_P2P:
		return add_p2p(b, op, op->p2p.pairs, op->p2p.n_pairs, op->ms, op->p2p.block);
	case SPEC_1F1B:
		return add_1f1b(b, op);
	case SPEC_RECORD:
	case SPEC_GAUGE:
		return add_host(b, PLAY_MARK, op, op->name, 0);
	case SPEC_N_KINDS:
		break;
	}
	return true;
}

static bool expand(struct play_build *b, const struct spec_list *list)
{
	for (uint32_t i = 0; i < list->n; i++) {
		uint32_t from = b->play->n_nodes;

		if (!visit(b) || !expand_op(b, &list->v[i]))
			return false;
		if (list->v[i].kind == SPEC_REPEAT || list->v[i].kind == SPEC_ONLY)
			continue;
		for (; from < b->play->n_nodes; from++)
			b->play->nodes[from].step = b->at.step;
	}
	return true;
}

static void begin_rank(struct play_build *b, uint32_t rank)
{
	const struct spec *s = b->play->spec;
	struct play_rank *r = &b->at;

	r->rank = rank;
	r->host = PLAY_NONE;
	r->n_launches = 0;
	r->step = EVENT_STEP_UNKNOWN;
	r->pending.n = r->unsynced.n = 0;
	for (uint32_t i = 0; i < s->n_streams; i++)
		r->tails[i] = PLAY_NONE;
	for (uint32_t i = 0; i < s->n_groups; i++)
		r->calls[i].n = 0;
	memset(r->n_sent, 0, s->world * sizeof *r->n_sent);
	memset(r->n_received, 0, s->world * sizeof *r->n_received);
}

static bool expand_rank(struct play_build *b, uint32_t rank)
{
	const struct spec *s = b->play->spec;

	begin_rank(b, rank);
	b->play->first_node[rank] = b->play->n_nodes;
	for (uint32_t i = 0; i < s->n_progs; i++)
		if (spec_has(&s->progs[i].ranks, rank) && !expand(b, &s->progs[i].ops))
			return false;
	if (!add_host(b, PLAY_EXIT, NULL, "", 0))
		return false;
	node_at(b, b->at.host)->step = b->at.step;
	return true;
}

bool program_expand(struct play_build *b)
{
	const struct spec *s = b->play->spec;
	struct play_rank *r = &b->at;
	bool fine;

	*r = (struct play_rank){
		.tails = calloc(s->n_streams, sizeof *r->tails),
		.calls = calloc(s->n_groups, sizeof *r->calls),
		.n_sent = calloc(s->world, sizeof *r->n_sent),
		.n_received = calloc(s->world, sizeof *r->n_received),
	};
	fine = r->tails && r->calls && r->n_sent && r->n_received;
	b->no_memory |= !fine;
	for (uint32_t rank = 0; rank < s->world && fine; rank++)
		fine = expand_rank(b, rank);
	b->play->first_node[s->world] = b->play->n_nodes;
	for (uint32_t i = 0; r->calls && i < s->n_groups; i++)
		free(r->calls[i].v);
	free(r->pending.v);
	free(r->unsynced.v);
	free(r->tails);
	free(r->calls);
	free(r->n_sent);
	free(r->n_received);
	return fine;
}
