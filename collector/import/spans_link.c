/* spans_link.c - the messages that the stages of a pipeline must have sent.
 *
 * A forward of a micro-batch comes after the same one on the stage before, a backward after
 * that on the stage behind. Traces of spans tell neither the sending nor the waiting: the
 * message is there at the end of the one at the earliest and at the begin of the
 * other at the latest, and the gap before that is the wait. From the last stage back to the
 * first, between the chunks of an interleaved schedule, there are messages as well; they are
 * not told, so that one on each edge is one micro-batch of a chunk.
 *
 * Where processes only seem to be stages - replicas of one another, or with clocks
 * apart - forwards do not come one after the other: then there is no pipeline.
 */
#include "spans_internal.h"

#include <stdlib.h>
#include <string.h>

#define MOST_EARLY 20 /* one in so many may begin too soon */

struct unit { /* a forward or backward */
	uint32_t step, dp, tp, stage, op;
	int32_t micro, chunk;
	bool backward;
};

struct link {
	uint32_t from, to; /* operations */
	uint32_t worker, other;
	int64_t at_ns;
};

static int compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int by_batch(const void *a, const void *b)
{
	const struct unit *x = a, *y = b;
	int c = compare(x->step, y->step);

	c = c ? c : compare(x->dp, y->dp);
	c = c ? c : compare(x->tp, y->tp);
	c = c ? c : compare(x->backward, y->backward);
	c = c ? c : compare((uint32_t)(x->chunk + 1), (uint32_t)(y->chunk + 1));
	c = c ? c : compare((uint32_t)x->micro, (uint32_t)y->micro);
	c = c ? c : compare(x->stage, y->stage);
	return c ? c : compare(x->op, y->op);
}

static bool same_batch(const struct unit *x, const struct unit *y)
{
	return x->step == y->step && x->dp == y->dp && x->tp == y->tp && x->backward == y->backward &&
	       x->chunk == y->chunk && x->micro == y->micro;
}

/* Operations of a worker are in the order of time. What has no number is the next one. */
static size_t find_units(const struct timeline *l, struct unit *v)
{
	uint32_t *seen = calloc(2 * ((size_t)l->n_workers + 1), sizeof *seen);
	uint32_t *steps = calloc((size_t)l->n_workers + 1, sizeof *steps);
	size_t n = 0;

	for (uint32_t i = 0; seen && steps && i < l->n_ops; i++) {
		const struct op *op = &l->ops[i];
		const struct worker *w = &l->workers[op->worker];
		bool backward = l->kinds[op->kind].role == ROLE_BACKWARD;

		if (!backward && l->kinds[op->kind].role != ROLE_FORWARD)
			continue;
		if (steps[op->worker] != op->step)
			seen[2 * op->worker] = seen[2 * op->worker + 1] = 0;
		steps[op->worker] = op->step;
		v[n++] = (struct unit){ op->step, w->dp, w->tp, w->pp, i,
					op->micro >= 0 ? op->micro : (int32_t)seen[2 * op->worker + backward], op->chunk,
					backward };
		seen[2 * op->worker + backward]++;
	}
	l->trace->no_memory |= !seen || !steps;
	free(seen);
	free(steps);
	return n;
}

static size_t find_links(struct spans *s, struct unit *v, size_t n, struct link *ret)
{
	const struct timeline *l = &s->l;
	size_t n_links = 0;

	if (n > 1)
		qsort(v, n, sizeof *v, by_batch);
	s->n_early = 0;
	for (size_t i = 1; i < n; i++) {
		const struct unit *low = &v[i - 1], *high = &v[i];
		uint32_t from = high->backward ? high->op : low->op, to = high->backward ? low->op : high->op;

		if (!same_batch(low, high) || high->stage != low->stage + 1)
			continue;
		s->n_early += l->ops[to].begin_ns < l->ops[from].end_ns;
		ret[n_links++] = (struct link){ from, to, l->ops[from].worker, l->ops[to].worker, l->ops[from].end_ns };
	}
	return n_links;
}

static int by_edge(const void *a, const void *b)
{
	const struct link *x = a, *y = b;
	int c = compare(x->worker, y->worker);

	c = c ? c : compare(x->other, y->other);
	c = c ? c : compare((uint64_t)x->at_ns, (uint64_t)y->at_ns);
	return c ? c : compare(x->from, y->from);
}

static bool add_end(struct timeline *l, uint32_t op, const char *kind, int64_t begin_ns, int64_t seq)
{
	struct op end = l->ops[op];

	if (!timeline_kind(l, kind, &end.kind))
		return false;
	end.begin_ns = begin_ns;
	end.end_ns = begin_ns + 1;
	end.seq = (int32_t)seq;
	return timeline_add(l, &end);
}

static bool add_links(struct spans *s, struct link *v, size_t n)
{
	struct timeline *l = &s->l;
	int64_t seq = 0;

	if (n > 1)
		qsort(v, n, sizeof *v, by_edge);
	for (size_t i = 0; i < n; i++) {
		bool backward = l->kinds[l->ops[v[i].from].kind].role == ROLE_BACKWARD;
		int64_t there_ns = l->ops[v[i].to].begin_ns - 1;
		int64_t sent_ns = l->ops[v[i].from].end_ns;

		seq = i > 0 && v[i].worker == v[i - 1].worker && v[i].other == v[i - 1].other ? seq + 1 : 0;
		if (there_ns < 0)
			continue;
		if (!add_end(l, v[i].from, backward ? "backward-send" : "forward-send", sent_ns < there_ns ? sent_ns : there_ns,
			     seq) ||
		    !add_end(l, v[i].to, backward ? "backward-recv" : "forward-recv", there_ns, seq))
			return false;
	}
	l->linked = true;
	return true;
}

bool spans_link(struct spans *s)
{
	struct unit *units = calloc((size_t)s->l.n_ops + 1, sizeof *units);
	struct link *links = calloc((size_t)s->l.n_ops + 1, sizeof *links);
	bool fine = units && links, early;
	size_t n = fine ? find_links(s, units, find_units(&s->l, units), links) : 0;

	s->l.trace->no_memory |= !fine;
	fine = !s->l.trace->no_memory;
	early = n == 0 || s->n_early * MOST_EARLY > n;
	if (fine && early && !s->told) {
		s->pipeline = false;
		s->n_early = 0;
	} else if (fine && !early) {
		s->n_early = 0;
		fine = add_links(s, links, n);
	}
	free(units);
	free(links);
	return fine;
}
