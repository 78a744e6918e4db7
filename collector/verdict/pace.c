#include "pace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW 256
#define WINDOW_LARGE 64 /* of a world above LARGE */
#define LARGE 1024

void pace_fini(struct pace *p)
{
	free(p->cells);
	free(p->step_of);
	free(p->begin_of);
	free(p->end_of);
	free(p->fast_of);
	free(p->mid_of);
	free(p->scratch);
	free(p->ranks);
	*p = (struct pace){ 0 };
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double pace_quantile(double *v, uint32_t n, double part)
{
	qsort(v, n, sizeof *v, by_value);
	return n ? v[(uint32_t)(part * (n - 1) + 0.5)] : 0;
}

bool pace_holds(const struct pace_change *c, uint32_t rank)
{
	for (uint32_t i = 0; i < c->n_ranks; i++)
		if (c->ranks[i] == (int32_t)rank)
			return true;
	return false;
}

uint32_t pace_proc(const struct pace *p, uint32_t rank)
{
	for (uint32_t c = p->n_steps; c-- > pace_first(p);)
		if (pace_cell(p, c, rank)->self >= 0)
			return pace_cell(p, c, rank)->proc;
	return UINT32_MAX;
}

/* The world is known when the first step is told; a larger one begins anew. */
static int make_room(struct pace *p, uint32_t n_ranks)
{
	uint32_t n = n_ranks > LARGE ? WINDOW_LARGE : WINDOW;

	if (n_ranks <= p->n_ranks)
		return 0;
	pace_fini(p);
	p->cells = calloc((size_t)n * n_ranks, sizeof *p->cells);
	p->step_of = calloc(n, sizeof *p->step_of);
	p->begin_of = calloc(n, sizeof *p->begin_of);
	p->end_of = calloc(n, sizeof *p->end_of);
	p->fast_of = calloc(n, sizeof *p->fast_of);
	p->mid_of = calloc(n, sizeof *p->mid_of);
	p->scratch = calloc(4 * (size_t)(n > n_ranks ? n : n_ranks), sizeof *p->scratch);
	p->ranks = calloc(n_ranks, sizeof *p->ranks);
	if (!p->cells || !p->step_of || !p->begin_of || !p->end_of || !p->fast_of || !p->mid_of ||
	    !p->scratch || !p->ranks) {
		pace_fini(p);
		return -ENOMEM;
	}
	p->n_ranks = n_ranks;
	p->n_window = n;
	return 0;
}

int pace_step(struct pace *p, const struct fact_step *step, const struct fact_rank_step *v, size_t n,
	      uint32_t world_size)
{
	uint32_t n_ranks = world_size, at, n_there = 0;

	for (size_t i = 0; i < n; i++) {
		if (v[i].compute_ns == FACT_NONE)
			return 0;
		if ((uint32_t)v[i].rank >= n_ranks)
			n_ranks = (uint32_t)v[i].rank + 1;
	}
	if (n < 2 || 2 * n < n_ranks)
		return 0;
	if (make_room(p, n_ranks) < 0)
		return -ENOMEM;
	at = pace_slot(p, p->n_steps);
	for (uint32_t r = 0; r < p->n_ranks; r++)
		pace_cell(p, p->n_steps, r)->self = -1;
	for (size_t i = 0; i < n; i++) {
		*pace_cell(p, p->n_steps, (uint32_t)v[i].rank) = (struct pace_cell){
			.self = (float)v[i].self_ns, .compute = (float)v[i].compute_ns,
			.host = (float)v[i].host_ns, .input = (float)v[i].input_wait_ns,
			.exposed = (float)v[i].exposed_comm_ns,
			.wait = (float)v[i].wait_ns, .pause = (float)v[i].pause_ns, .dur = (float)v[i].dur_ns,
			.proc = v[i].proc, .loop_ns = v[i].loop_ns };
		p->scratch[n_there++] = (double)v[i].self_ns;
	}
	p->mid_of[at] = pace_quantile(p->scratch, n_there, 0.5);
	p->fast_of[at] = p->scratch[(n_there - 1) / 4];
	p->step_of[at] = step->step;
	p->begin_of[at] = step->begin_ns;
	p->end_of[at] = step->begin_ns + step->dur_ns;
	if (p->fast_of[at] > 0)
		p->n_steps++;
	return 0;
}
