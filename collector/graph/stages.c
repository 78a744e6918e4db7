/* stages.c - a call of a device as a gradient bucket goes through it: ready (G) when the
 * kernel that it waited for had ended, submitted (S) by the host, started (Q) on its
 * stream, reduced (R), applied (U) when the work that waited for it had ended.
 *
 * Every rank's where that is not much; of large steps those of the ranks that held
 * or led the critical path, which are the ones a person asks for.
 */
#include "graph_internal.h"

#include <errno.h>
#include <stdlib.h>

#define MAX_ROWS 16384 /* of a step */

struct ends { /* by node: the last kernel that it waited for, the first work that waited for it */
	int64_t ready_ns, applied_ns;
};

/* The waits of a rank, each looked at once. Launches of a step are numbered without
 * holes. NULL without memory. */
static struct ends *follow_waits(const struct rank_work *w)
{
	struct ends *v = malloc(((size_t)w->n_nodes + 1) * sizeof *v);
	uint32_t lo = UINT32_MAX, hi = 0, *of_launch;
	uint64_t n;

	for (uint32_t i = 0; i < w->n_nodes; i++) {
		if (v)
			v[i] = (struct ends){ FACT_NONE, FACT_NONE };
		if (w->nodes[i].launch && w->nodes[i].launch < lo)
			lo = w->nodes[i].launch;
		if (w->nodes[i].launch > hi)
			hi = w->nodes[i].launch;
	}
	n = hi >= lo ? (uint64_t)hi - lo + 1 : 0;
	if (!v || n == 0 || n > 4 * (uint64_t)w->n_nodes)
		return v;
	of_launch = calloc(n, sizeof *of_launch);
	for (uint32_t i = 0; of_launch && i < w->n_nodes; i++)
		if (w->nodes[i].launch && node_ran(&w->nodes[i]))
			of_launch[w->nodes[i].launch - lo] = i + 1;
	for (uint32_t i = 0; of_launch && i < w->n_waits; i++) {
		uint32_t l = w->waits[i].launch - lo, o = w->waits[i].other - lo;
		uint32_t late = l < n ? of_launch[l] : 0, early = o < n ? of_launch[o] : 0;

		if (!late || !early)
			continue;
		if (w->nodes[early - 1].kind == NODE_KERNEL &&
		    w->nodes[early - 1].end_ns > v[late - 1].ready_ns)
			v[late - 1].ready_ns = w->nodes[early - 1].end_ns;
		if (v[early - 1].applied_ns == FACT_NONE)
			v[early - 1].applied_ns = w->nodes[late - 1].end_ns;
	}
	free(of_launch);
	return v;
}

static int64_t moved(int64_t ns, int64_t offset_ns)
{
	return ns == FACT_NONE ? ns : ns + offset_ns;
}

/* The stages of all calls of the rank. */
static int put_rank(struct graph *g, uint32_t step, int32_t rank, const struct rank_work *w)
{
	const struct proc *p = &g->roster->procs[w->proc];
	struct ends *ends = follow_waits(w);
	uint32_t n = 0;

	if (!ends)
		return -ENOMEM;
	roster_compare(g->roster);
	for (uint32_t i = 0; i < w->n_nodes; i++) {
		const struct node *v = &w->nodes[i];
		struct fact_bucket *f;
		struct fleet_point at;
		int64_t offset_ns;
		uint64_t seq;

		if (v->kind != NODE_CALL || !(v->flags & NODE_DEVICE) || !node_ran(v))
			continue;
		f = FACTS_PUSH(g->facts, buckets);
		if (!f)
			break;
		at = roster_place(g->roster, p, v->begin_ns);
		offset_ns = at.at.ns - v->begin_ns;
		seq = match_seq(g->match, v->group - 1, v->seq);
		*f = (struct fact_bucket){
			.step = step, .ddp = FACT_NO_DDP, .bucket = n++, .rank = rank,
			.group = v->group, .seq = seq,
			.bytes = match_bytes(g->match, v->group - 1, seq),
			.ready_ns = moved(ends[i].ready_ns, offset_ns),
			.submitted_ns = moved(v->launch_ns, offset_ns),
			.started_ns = at.at.ns, .reduced_ns = v->end_ns + offset_ns,
			.applied_ns = moved(ends[i].applied_ns, offset_ns), .err_ns = at.err_ns };
	}
	free(ends);
	return 0;
}

static bool on_path(const struct graph *g, int32_t rank)
{
	for (size_t i = 0; i < g->path->v.n; i++)
		if (g->path->v.v[i].rank == rank)
			return true;
	return false;
}

int stages_tell(struct graph *g, const struct graph_step *gs)
{
	uint64_t n_calls = 0;
	size_t n_before = g->facts->buckets.n;
	int r = 0;

	for (uint32_t i = 0; i < gs->n_ranks; i++)
		n_calls += gs->ranks[i] && gs->ranks[i]->device_ns != INT64_MIN ? gs->ranks[i]->n_nodes : 0;
	for (uint32_t i = 0; r == 0 && n_calls > 0 && i < gs->n_ranks; i++) {
		if (g->facts->buckets.n - n_before >= MAX_ROWS)
			break;
		if (gs->ranks[i] && (n_calls <= MAX_ROWS || on_path(g, (int32_t)i)))
			r = put_rank(g, gs->step, (int32_t)i, gs->ranks[i]);
	}
	return r;
}
