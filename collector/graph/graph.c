/* graph.c - which steps are open, who did what in them, and when one is told. */
#include "graph_internal.h"
#include "steps_internal.h"

#include <string.h>

void graph_init(struct graph *g, struct roster *r, struct match *m, struct steps *s,
		int64_t late_ns)
{
	*g = (struct graph){ .roster = r, .match = m, .steps = s, .late_ns = late_ns,
			     .now_ns = INT64_MIN, .edges_of = EVENT_STEP_UNKNOWN };
}

static void free_work(struct rank_work *w)
{
	free(w->nodes);
	free(w->slots);
	free(w->items);
	free(w->waits);
	free(w);
}

static void close_step(struct graph *g, struct graph_step *gs);

void graph_fini(struct graph *g)
{
	for (; g->v && g->base < g->next_step; g->base++)
		if (g->v[g->base % GRAPH_MAX_STEPS])
			close_step(g, g->v[g->base % GRAPH_MAX_STEPS]);
	while (g->free_steps) {
		struct graph_step *next = g->free_steps->next_free;

		free(g->free_steps->ranks);
		free(g->free_steps);
		g->free_steps = next;
	}
	while (g->free_works) {
		struct rank_work *next = g->free_works->next_free;

		free_work(g->free_works);
		g->free_works = next;
	}
	free(g->v);
	free(g->done);
	free(g->channels);
	path_free(g->path);
}

/* ---- steps open and close ---- */

/* How far its device has come, for the step after it. */
static void note_done(struct graph *g, uint32_t rank, const struct rank_work *w)
{
	if (rank < g->n_done &&
	    (g->done[rank].proc != w->proc || g->done[rank].device_ns < w->device_ns)) {
		g->done[rank].proc = w->proc;
		g->done[rank].device_ns = w->device_ns;
	}
}

static void close_step(struct graph *g, struct graph_step *gs)
{
	for (uint32_t i = 0; i < gs->n_ranks; i++) {
		struct rank_work *w = gs->ranks[i];

		if (!w)
			continue;
		note_done(g, i, w);
		g->n_nodes -= w->n_nodes;
		w->next_free = g->free_works;
		g->free_works = w;
		gs->ranks[i] = NULL;
	}
	g->v[gs->step % GRAPH_MAX_STEPS] = NULL;
	gs->next_free = g->free_steps;
	g->free_steps = gs;
	g->last = NULL;
}

/* Room goes to what comes: the oldest is told if it can be, or given up. */
int graph_close_oldest(struct graph *g)
{
	struct graph_step *gs = g->v[g->base % GRAPH_MAX_STEPS];
	int r = 0;

	g->base++;
	if (!gs)
		return 0;
	if (gs->told && gs->n_pending == 0)
		r = path_tell(g, gs);
	else
		g->n_dropped++;
	close_step(g, gs);
	return r < 0 ? r : 0;
}

/* Slots of what was closed long ago are another step's by now. */
static int make_room(struct graph *g, uint32_t step)
{
	if (g->base == g->next_step && g->steps->told_below > g->base)
		g->base = g->next_step = g->steps->told_below;
	while ((uint64_t)g->base + GRAPH_MAX_STEPS <= step) {
		int r = graph_close_oldest(g);

		if (r < 0)
			return r;
		if (g->base >= g->next_step)
			g->base = g->next_step = step;
	}
	if (step >= g->next_step)
		g->next_step = step + 1;
	return 0;
}

/* *ret NULL: it is closed. */
static int open_step(struct graph *g, uint32_t step, struct graph_step **ret)
{
	struct graph_step *gs;
	int r;

	*ret = NULL;
	if (!g->v && !(g->v = calloc(GRAPH_MAX_STEPS, sizeof *g->v)))
		return -ENOMEM;
	gs = g->v[step % GRAPH_MAX_STEPS];
	if (gs && gs->step == step) {
		*ret = gs;
		return 0;
	}
	if (step < g->base || step < g->steps->base)
		return 0;
	r = make_room(g, step);
	if (r < 0)
		return r;
	gs = g->free_steps;
	if (gs)
		g->free_steps = gs->next_free;
	else if (!(gs = calloc(1, sizeof *gs)))
		return -ENOMEM;
	*gs = (struct graph_step){ .step = step, .ranks = gs->ranks, .n_ranks = gs->n_ranks };
	g->v[step % GRAPH_MAX_STEPS] = gs;
	*ret = gs;
	return 0;
}

static bool reach_rank(struct graph_step *gs, uint32_t rank, uint32_t world_size)
{
	uint32_t want = rank < world_size ? world_size : rank + 1;
	struct rank_work **grown;

	if (rank < gs->n_ranks)
		return true;
	grown = realloc(gs->ranks, want * sizeof *grown);
	if (!grown)
		return false;
	memset(grown + gs->n_ranks, 0, (want - gs->n_ranks) * sizeof *grown);
	gs->ranks = grown;
	gs->n_ranks = want;
	return true;
}

static struct rank_work *new_work(struct graph *g, uint32_t proc)
{
	struct rank_work *w = g->free_works;

	if (w)
		g->free_works = w->next_free;
	else if (!(w = calloc(1, sizeof *w)))
		return NULL;
	w->proc = proc;
	w->from_ns = w->to_ns = FACT_NONE;
	w->device_ns = INT64_MIN;
	w->n_nodes = w->n_items = w->n_waits = w->n_pending = 0;
	w->cut = false;
	if (w->slots)
		memset(w->slots, 0, w->n_slots * sizeof *w->slots);
	return w;
}

/* Where an event of that process belongs; *ret NULL when its step is closed. */
int graph_work(struct graph *g, struct proc *p, uint32_t own, struct rank_work **ret)
{
	uint32_t proc = (uint32_t)(p - g->roster->procs), rank = (uint32_t)p->rank;
	struct number at = { .step = p->cur_step };
	struct graph_step *gs;
	int r;

	if (g->last && g->last_proc == proc && g->last_own == own && own != EVENT_STEP_UNKNOWN) {
		*ret = g->last;
		return 0;
	}
	*ret = NULL;
	if (own != EVENT_STEP_UNKNOWN &&
	    !steps_number(g->steps, g->steps->lives[p->life - 1].restart_count, own, &at))
		return 0;
	if (at.step == EVENT_STEP_UNKNOWN)
		return 0;
	r = open_step(g, at.step, &gs);
	if (r < 0 || !gs)
		return r;
	if (!reach_rank(gs, rank, g->steps->world_size))
		return -ENOMEM;
	if (!gs->ranks[rank] && !(gs->ranks[rank] = new_work(g, proc)))
		return -ENOMEM;
	if (gs->ranks[rank]->proc != proc)
		return 0; /* of the start before */
	gs->news_now_ns = g->now_ns;
	g->last = *ret = gs->ranks[rank];
	g->last_step = gs;
	g->last_proc = proc;
	g->last_own = own;
	return 0;
}

struct instant graph_instant(const struct graph *g, const struct rank_work *w, int64_t host_ns)
{
	return (struct instant){ w->proc, host_ns,
				 roster_place(g->roster, &g->roster->procs[w->proc], host_ns) };
}

/* ---- telling ---- */

static bool reach_done(struct graph *g, uint32_t n)
{
	void *grown;

	if (n <= g->n_done)
		return true;
	grown = realloc(g->done, n * sizeof *g->done);
	if (!grown)
		return false;
	g->done = grown;
	for (; g->n_done < n; g->n_done++) {
		g->done[g->n_done].proc = UINT32_MAX;
		g->done[g->n_done].device_ns = INT64_MIN;
	}
	return true;
}

int graph_step_told(struct graph *g, const struct fact_step *step)
{
	const struct step *st = steps_at(g->steps, step->step);
	struct graph_step *gs;
	int r = open_step(g, step->step, &gs);

	if (r < 0 || !gs || !st)
		return r;
	if (!reach_rank(gs, st->n_ranks - 1, g->steps->world_size) || !reach_done(g, gs->n_ranks))
		return -ENOMEM;
	gs->told = true;
	gs->complete = step->complete;
	gs->news_now_ns = g->now_ns;
	gs->begin_ns = step->begin_ns;
	gs->dur_ns = step->dur_ns;
	for (uint32_t i = 0; i < st->n_ranks; i++) {
		const struct rank_step *rs = &st->ranks[i];
		struct rank_work *w = gs->ranks[i];

		if (rs->begin_ns == FACT_NONE || rs->end_ns == FACT_NONE)
			continue;
		if (!w && !(w = gs->ranks[i] = new_work(g, rs->proc)))
			return -ENOMEM;
		if (w->proc != rs->proc)
			continue;
		w->from_ns = rs->begin_ns;
		w->to_ns = rs->end_ns;
	}
	return 0;
}

/* A later one is complete: what this one lacks is lost. */
static bool is_overtaken(const struct graph *g, const struct graph_step *gs)
{
	const struct graph_step *next = g->v[(gs->step + 1) % GRAPH_MAX_STEPS];

	return next && next->step == gs->step + 1 && next->told && next->n_pending == 0;
}

static int tell_ready(struct graph *g, bool all)
{
	for (; g->v && g->base < g->next_step; g->base++) {
		struct graph_step *gs = g->v[g->base % GRAPH_MAX_STEPS];
		int r = 0;

		if (gs && gs->told) {
			bool over = is_overtaken(g, gs);

			if (!all && !gs->complete && g->base >= g->steps->base)
				return 0;

			over |= gs->n_pending == gs->n_on_host;
			if (gs->news_now_ns == INT64_MIN) /* it came before the first time was told */
				gs->news_now_ns = g->now_ns;
			if (!all && gs->n_pending > 0 &&
			    (!over || g->now_ns - gs->news_now_ns < g->late_ns))
				return 0;
			if (gs->n_pending == 0 || over)
				r = path_tell(g, gs);
			else
				g->n_dropped++; /* its device never came to an end */
		} else if (!all && g->base >= g->steps->told_below) {
			return 0;
		}
		if (gs)
			close_step(g, gs);
		if (r < 0)
			return r;
	}
	return 0;
}

int graph_tick(struct graph *g, int64_t now_ns)
{
	g->now_ns = now_ns;
	return tell_ready(g, false);
}

int graph_finish(struct graph *g)
{
	return tell_ready(g, true);
}
