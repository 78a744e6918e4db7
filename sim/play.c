/* play.c - the nodes of a case followed in time. */
#include "play_internal.h"

#include "../proto/event.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What several ranks make one: the k-th call of a group, or one message node
 * with those of its peers. Ends are known when nobody is waited for any more. */
struct join {
	uint32_t first; /* member, a chain; PLAY_NONE */
	uint32_t n_left;
	int64_t start_ns, dur_ns; /* the latest, the longest */
	bool never;
};

struct follow {
	struct play *play;
	uint32_t *first_out, *out; /* edges by their source */
	uint32_t *n_left; /* by node: what it waits for and has not ended */
	struct join *joins;
	uint32_t *join_of;   /* by node: its join; p2p nodes have one each */
	uint32_t *next;	     /* by node: the next member of its join */
	uint32_t *mate_of;   /* by pair: the peer's node, PLAY_NONE */
	uint32_t *ready, n_ready; /* ended, not followed yet */
	uint32_t n_joins;
	bool too_long;
};

bool play_refuse(struct play_build *b, const char *fmt, ...)
{
	va_list ap;

	b->refused = true;
	va_start(ap, fmt);
	vsnprintf(b->why, b->n_why, fmt, ap);
	va_end(ap);
	return false;
}

/* ---- time ---- */

static void set_end(struct follow *f, uint32_t node, int64_t start_ns, int64_t dur_ns)
{
	struct play_node *n = &f->play->nodes[node];

	if (start_ns > PLAY_MAX_NS - dur_ns) {
		f->too_long = true;
		return;
	}
	n->end_ns = start_ns + dur_ns;
	f->ready[f->n_ready++] = node;
}

static void end_join(struct follow *f, const struct join *j)
{
	for (uint32_t node = j->first; node != PLAY_NONE; node = f->next[node])
		set_end(f, node, j->start_ns, j->dur_ns);
}

static void arrive(struct follow *f, struct join *j, int64_t start_ns)
{
	if (start_ns > j->start_ns)
		j->start_ns = start_ns;
	if (--j->n_left == 0 && !j->never)
		end_join(f, j);
}

static void begin(struct follow *f, uint32_t node)
{
	struct play_node *n = &f->play->nodes[node];

	if (n->kind == PLAY_COLL) {
		arrive(f, &f->joins[f->join_of[node]], n->start_ns);
	} else if (n->kind == PLAY_P2P) {
		for (uint32_t i = n->first_pair; i < n->first_pair + n->n_pairs; i++)
			if (f->mate_of[i] != PLAY_NONE)
				arrive(f, &f->joins[f->join_of[f->mate_of[i]]], n->start_ns);
		arrive(f, &f->joins[f->join_of[node]], n->start_ns);
	} else if (n->kind != PLAY_STALL) {
		set_end(f, node, n->start_ns, n->dur_ns);
	}
}

static void follow(struct follow *f)
{
	struct play *p = f->play;

	for (uint32_t i = 0; i < p->n_nodes; i++)
		if (f->n_left[i] == 0)
			begin(f, i);
	while (f->n_ready > 0) {
		uint32_t node = f->ready[--f->n_ready];

		for (uint32_t e = f->first_out[node]; e < f->first_out[node + 1]; e++) {
			struct play_node *to = &p->nodes[f->out[e]];

			if (p->nodes[node].end_ns > to->start_ns)
				to->start_ns = p->nodes[node].end_ns;
			if (--f->n_left[f->out[e]] == 0)
				begin(f, f->out[e]);
		}
	}
	for (uint32_t i = 0; i < p->n_nodes; i++) {
		struct play_node *n = &p->nodes[i];

		if (f->n_left[i] > 0)
			n->start_ns = PLAY_NEVER;
		else if (n->end_ns == PLAY_NEVER)
			p->n_stuck++;
		if (n->start_ns != PLAY_NEVER && n->start_ns > p->end_ns)
			p->end_ns = n->start_ns;
		if (n->end_ns != PLAY_NEVER && n->end_ns > p->end_ns)
			p->end_ns = n->end_ns;
	}
}

/* ---- edges by source ---- */

static bool index_edges(struct follow *f, const struct play_build *b)
{
	uint32_t n = f->play->n_nodes, sum = 0;

	f->first_out = calloc((size_t)n + 1, sizeof *f->first_out);
	f->out = calloc((size_t)b->n_edges + 1, sizeof *f->out);
	f->n_left = calloc((size_t)n + 1, sizeof *f->n_left);
	f->ready = calloc((size_t)n + 1, sizeof *f->ready);
	if (!f->first_out || !f->out || !f->n_left || !f->ready)
		return false;
	for (uint32_t e = 0; e < b->n_edges; e++) {
		f->first_out[b->edges[e].from]++;
		f->n_left[b->edges[e].to]++;
	}
	for (uint32_t i = 0; i <= n; i++) { /* the ends first: filling moves them back */
		sum += i < n ? f->first_out[i] : 0;
		f->first_out[i] = sum;
	}
	for (uint32_t e = b->n_edges; e-- > 0;)
		f->out[--f->first_out[b->edges[e].from]] = b->edges[e].to;
	return true;
}

/* ---- collectives ---- */

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_call(const struct play_node *a, const struct play_node *b)
{
	return a->count == b->count && same_text(a->name, b->name) &&
	       same_text(a->op->coll.dtype, b->op->coll.dtype) &&
	       same_text(a->op->coll.tensor, b->op->coll.tensor);
}

/* All that call it are in the join; what does it lack? */
static void judge_call(struct follow *f, struct join *j, const struct spec_group *g)
{
	const struct play_node *nodes = f->play->nodes;
	uint32_t n_members = 0;
	bool differ = false, complete = false, never = false;

	for (uint32_t i = j->first; i != PLAY_NONE; i = f->next[i]) {
		n_members += spec_has(&g->ranks, nodes[i].rank);
		never |= !spec_has(&g->ranks, nodes[i].rank) || nodes[i].op->coll.never;
		complete |= nodes[i].op->coll.complete;
		differ |= !same_call(&nodes[i], &nodes[j->first]);
		if (nodes[i].dur_ns > j->dur_ns)
			j->dur_ns = nodes[i].dur_ns;
		j->n_left++;
	}
	j->never = never || n_members != g->ranks.n || (differ && !complete);
}

static bool join_calls(struct follow *f)
{
	struct play *p = f->play;
	const struct spec *s = p->spec;
	uint32_t *first = calloc(s->n_groups, sizeof *first), n = 0, at = 0;

	if (!first)
		return false;
	for (uint32_t g = 0; g < s->n_groups; g++) {
		first[g] = n;
		n += p->n_calls[g];
	}
	for (uint32_t i = 0; i < n; i++)
		f->joins[i] = (struct join){ .first = PLAY_NONE };
	for (uint32_t i = 0; i < p->n_nodes; i++) {
		const struct play_node *v = &p->nodes[i];

		if (v->kind != PLAY_COLL)
			continue;
		f->join_of[i] = first[v->group] + v->call - 1;
		f->next[i] = f->joins[f->join_of[i]].first;
		f->joins[f->join_of[i]].first = i;
	}
	for (uint32_t g = 0; g < s->n_groups; g++)
		for (uint32_t k = 0; k < p->n_calls[g]; k++)
			judge_call(f, &f->joins[at++], &s->groups[g]);
	f->n_joins = n;
	free(first);
	return true;
}

/* ---- messages ---- */

struct half {
	uint32_t source, target, number, pair, node;
	bool send;
};

static int by_message(const void *a, const void *b)
{
	const struct half *x = a, *y = b;

	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	if (x->target != y->target)
		return x->target < y->target ? -1 : 1;
	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return x->send - y->send;
}

/* The k-th send from one rank to another meets the k-th receive there. */
static bool join_messages(struct follow *f)
{
	struct play *p = f->play;
	struct half *v = calloc((size_t)p->n_pairs + 1, sizeof *v);
	uint32_t n = 0;

	if (!v)
		return false;
	for (uint32_t i = 0; i < p->n_nodes; i++) {
		const struct play_node *node = &p->nodes[i];

		if (node->kind != PLAY_P2P)
			continue;
		f->join_of[i] = f->n_joins;
		f->next[i] = PLAY_NONE;
		f->joins[f->n_joins++] = (struct join){ .first = i, .n_left = 1 + node->n_pairs,
							.dur_ns = node->dur_ns };
		for (uint32_t k = node->first_pair; k < node->first_pair + node->n_pairs; k++) {
			const struct play_pair *pair = &p->pairs[k];

			v[n++] = (struct half){ pair->send ? node->rank : pair->peer,
						pair->send ? pair->peer : node->rank,
						pair->number, k, i, pair->send };
		}
	}
	qsort(v, n, sizeof *v, by_message);
	for (uint32_t i = 0; i < n; i++)
		f->mate_of[v[i].pair] = PLAY_NONE;
	for (uint32_t i = 0; i + 1 < n; i++) {
		if (v[i].source != v[i + 1].source || v[i].target != v[i + 1].target ||
		    v[i].number != v[i + 1].number)
			continue;
		f->mate_of[v[i].pair] = v[i + 1].node;
		f->mate_of[v[i + 1].pair] = v[i].node;
	}
	free(v);
	return true;
}

/* ---- all of it ---- */

static bool prepare(struct follow *f, const struct play_build *b)
{
	size_t n = (size_t)f->play->n_nodes + 1;

	/* Calls of a group can leave holes in nobody's list: the most that a member
	 * makes is made by one, so joins are fewer than nodes. */
	f->joins = calloc(n, sizeof *f->joins);
	f->join_of = calloc(n, sizeof *f->join_of);
	f->next = calloc(n, sizeof *f->next);
	f->mate_of = calloc((size_t)f->play->n_pairs + 1, sizeof *f->mate_of);
	return f->joins && f->join_of && f->next && f->mate_of && index_edges(f, b) &&
	       join_calls(f) && join_messages(f);
}

static int run(struct play_build *b)
{
	struct follow f = { .play = b->play };
	int r = -ENOMEM;

	if (prepare(&f, b)) {
		follow(&f);
		r = PLAY_OK;
	}
	if (f.too_long) {
		play_refuse(b, "the case lasts longer than 30 days");
		r = PLAY_REFUSED;
	}
	free(f.first_out);
	free(f.out);
	free(f.n_left);
	free(f.ready);
	free(f.joins);
	free(f.join_of);
	free(f.next);
	free(f.mate_of);
	return r;
}

int play_run(struct play **ret, const struct spec *s, uint32_t max_nodes, char *why, size_t n_why)
{
	struct play_build b = { .why = why, .n_why = n_why,
				.max_nodes = max_nodes ? max_nodes : PLAY_MAX_NODES };
	struct play *p = calloc(1, sizeof *p);
	int r;

	if (!p)
		return -ENOMEM;
	b.play = p;
	p->spec = s;
	p->first_node = calloc((size_t)s->world + 1, sizeof *p->first_node);
	p->n_calls = calloc(s->n_groups, sizeof *p->n_calls);
	if (!p->first_node || !p->n_calls)
		r = -ENOMEM;
	else if (!program_expand(&b))
		r = b.refused ? PLAY_REFUSED : -ENOMEM;
	else
		r = run(&b);
	free(b.edges);
	if (r == PLAY_OK)
		*ret = p;
	else
		play_free(p);
	return r;
}

void play_free(struct play *p)
{
	if (!p)
		return;
	free(p->nodes);
	free(p->first_node);
	free(p->pairs);
	free(p->waits);
	free(p->n_calls);
	free(p);
}
