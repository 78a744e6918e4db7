/* path_tell.c - a path as facts: tiled over the step, and no finer than its clocks.
 *
 * Lengths are those of the ranks' own clocks, set end to end from the step's end, so
 * that nothing is counted twice or left out; what clocks of two hosts do not agree
 * in lies in the transfer between them, and in its error. Neighbours that are each
 * shorter than the error of where they begin and end cannot be told apart: they
 * are one segment.
 */
#include "graph_internal.h"

#include <errno.h>
#include <stdio.h>

/* The last names told, so that a path of two kernels makes two strings. */
struct names {
	struct facts *facts;
	struct { const char *from, *copy; } v[16];
	unsigned next;
};

static const char *keep(struct names *k, const char *text)
{
	for (unsigned i = 0; i < 16; i++)
		if (k->v[i].from == text)
			return k->v[i].copy;
	k->next = (k->next + 1) % 16;
	k->v[k->next].from = text;
	k->v[k->next].copy = facts_string(k->facts, text);
	return k->v[k->next].copy;
}

static const char *text_of(const struct graph *g, uint32_t text)
{
	return text && text <= g->roster->n_texts ? g->roster->texts[text - 1] : "";
}

static const char *name_of(const struct graph *g, const struct stretch *s)
{
	if (s->kind == SEGMENT_KERNEL || s->kind == SEGMENT_WORK)
		return text_of(g, s->name);
	if (s->kind == SEGMENT_HOST || s->kind == SEGMENT_INPUT)
		return s->phase ? event_phase_name(s->phase) : "";
	if (s->node && s->node->kind == NODE_MESSAGE)
		return text_of(g, s->node->group & ~GRAPH_MESSAGE);
	return s->node ? text_of(g, s->node->name) : "";
}

static int put_segment(struct graph *g, struct names *names, const struct stretch *s,
		       int64_t begin_ns)
{
	struct fact_segment *f = FACTS_PUSH(g->facts, segments);
	const struct proc *p = &g->roster->procs[s->w->proc];

	if (!f)
		return -ENOMEM;
	*f = (struct fact_segment){ .kind = (enum fact_segment_kind)s->kind, .rank = s->rank,
				    .from_rank = s->from, .host = g->roster->hosts[p->host].id,
				    .name = keep(names, name_of(g, s)), .group = UINT32_MAX,
				    .begin_ns = begin_ns, .dur_ns = s->dur_ns, .err_ns = s->err_ns,
				    .excess_ns = s->excess_ns, .held_ns = s->held_ns,
				    .held_err_ns = s->held_err_ns, .undecided = s->undecided,
				    .n_joined = s->n_joined };
	if (s->node && s->node->kind == NODE_CALL) {
		f->group = s->node->group - 1;
		f->seq = match_seq(g->match, f->group, s->node->seq);
	} else if (s->node && s->node->kind == NODE_MESSAGE) {
		f->seq = s->node->seq;
	}
	return 0;
}

/* Of where it begins: known to the clocks' error where the path came from elsewhere. */
static int64_t begin_error(const struct stretch *s)
{
	return s->from >= 0 && s->err_ns != CLOCK_UNBOUNDED ? s->err_ns : 0;
}

/* v is newest first: the one after v[i] in time is v[i - 1]. */
static bool is_short(const struct stretch *v, size_t i)
{
	int64_t after = i > 0 ? begin_error(&v[i - 1]) : 0;

	return v[i].dur_ns < begin_error(&v[i]) || v[i].dur_ns < after;
}

/* v[first..last] as one, named as the longest of them. */
static struct stretch joined(const struct stretch *v, size_t first, size_t last)
{
	struct stretch one = v[first];
	int64_t dur_ns = 0, err_ns = 0, excess_ns = FACT_NONE;

	for (size_t i = first; i <= last; i++) {
		if (v[i].dur_ns > one.dur_ns)
			one = v[i];
		dur_ns += v[i].dur_ns;
		err_ns = begin_error(&v[i]) > err_ns ? begin_error(&v[i]) : err_ns;
		if (v[i].excess_ns != FACT_NONE)
			excess_ns = (excess_ns == FACT_NONE ? 0 : excess_ns) + v[i].excess_ns;
	}
	if (first == last)
		return one;
	one.dur_ns = dur_ns;
	one.err_ns = err_ns > one.err_ns ? err_ns : one.err_ns;
	one.excess_ns = excess_ns;
	one.held_ns = one.held_err_ns = FACT_NONE;
	one.from = v[last].from;
	one.undecided = true;
	one.n_joined = (uint32_t)(last - first + 1);
	return one;
}

int path_put(struct graph *g, const struct graph_step *gs, const struct rank_work *w, int32_t rank,
	     const struct instant *begin, const struct instant *end)
{
	size_t n = g->path->v.n, first_segment = g->facts->segments.n;
	const struct stretch *v = g->path->v.v;
	int64_t begin_ns = begin->at.at.ns, at_ns = end->at.at.ns;
	struct names names = { .facts = g->facts };
	struct fact_path *f;
	int r = 0;

	for (size_t i = 0; i < n; i++)
		at_ns -= v[i].dur_ns;
	if (at_ns < begin_ns)
		begin_ns = at_ns;
	if (at_ns > begin_ns)
		r = put_segment(g, &names,
				&(struct stretch){ .w = w, .rank = rank, .from = -1,
						   .kind = SEGMENT_CARRY, .n_joined = 1,
						   .dur_ns = at_ns - begin_ns,
						   .excess_ns = FACT_NONE, .held_ns = FACT_NONE,
						   .held_err_ns = FACT_NONE },
				begin_ns);
	for (size_t i = n; r == 0 && i-- > 0;) {
		size_t last = i;
		struct stretch one;

		while (is_short(v, last) && i > 0 && is_short(v, i - 1))
			i--;
		one = joined(v, i, last);
		r = put_segment(g, &names, &one, at_ns);
		at_ns += one.dur_ns;
	}
	f = r == 0 ? FACTS_PUSH(g->facts, paths) : NULL;
	if (!f)
		return -ENOMEM;
	*f = (struct fact_path){ .step = gs->step, .begin_ns = begin_ns, .dur_ns = at_ns - begin_ns,
				 .dur_err_ns = match_between(g->match, end, begin).err_ns,
				 .complete = !g->path->cut, .first_segment = first_segment,
				 .n_segments = g->facts->segments.n - first_segment };
	return blame_put(g, f);
}
