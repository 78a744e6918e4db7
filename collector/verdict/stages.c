/* stages.c - what each rank of a pipeline did in a step, for people and their queries.
 *
 * Told once a step, of the newest laps that are whole at a look: in a job with short
 * steps some are left out.
 */
#include "pipeline.h"

#include <errno.h>
#include <stdlib.h>

static int tell_rank(struct rules *r, const struct pipeline *p, uint32_t at, const struct lap *lap,
		     int64_t step_ns)
{
	struct fact_stage *f = FACTS_PUSH(r->facts, stages);

	if (!f)
		return -ENOMEM;
	*f = (struct fact_stage){
		.step = lap->step, .stage = at % p->n_stages, .pipeline = at / p->n_stages,
		.n_stages = p->n_stages, .n_micro = (uint32_t)p->n_micro, .rank = p->ranks[at],
		.work_ns = lap->all.work_ns, .wait_ns = lap->wait_ns,
		.collective_ns = lap->all.coll_ns > lap->wait_ns ? lap->all.coll_ns - lap->wait_ns : 0,
		.message_ns = lap->all.message_ns, .rest_ns = lap->all.rest_ns, .step_ns = step_ns,
		.theory_ratio = (p->n_stages - 1) / (p->n_micro + p->n_stages - 1) };
	return 0;
}

static int tell_step(struct rules *r, const struct pipeline *p, const struct lane **lanes,
		     uint32_t step)
{
	uint32_t n = p->n_stages * p->n_chains;
	int64_t longest_ns = 0;
	int e = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct lap *lap = lanes_lap(lanes[i], step, r->finishing);

		if (!lap)
			return 0;
		if (lap->end_ns - lap->begin_ns > longest_ns)
			longest_ns = lap->end_ns - lap->begin_ns;
	}
	for (uint32_t i = 0; i < n && e == 0; i++)
		e = tell_rank(r, p, i, lanes_lap(lanes[i], step, r->finishing), longest_ns);
	return e;
}

/* By place in the pipelines. False when one is gone. */
static bool find_lanes(const struct rules *r, const struct pipeline *p, const struct lane **ret)
{
	uint32_t n = p->n_stages * p->n_chains, n_found = 0;
	struct idmap at = { 0 };

	for (uint32_t i = 0; i < n; i++)
		if (idmap_put(&at, (uint64_t)p->ranks[i], i) < 0)
			break;
	for (uint32_t i = 0; i < r->lanes.n && at.n == n; i++) {
		const struct lane *v = &r->lanes.v[i];
		uint32_t k = v->life == r->life && v->rank >= 0 ?
				     idmap_get(&at, (uint64_t)v->rank) : IDMAP_NONE;

		if (k == IDMAP_NONE)
			continue;
		n_found += !ret[k];
		ret[k] = v;
	}
	idmap_fini(&at);
	return n_found == n;
}

int stages_look(struct rules *r)
{
	const struct lane **lanes = NULL;
	struct pipeline p;
	int e = pipeline_find(r, &p);

	if (e != 1)
		return e;
	if (p.last_step != EVENT_STEP_UNKNOWN)
		lanes = calloc((size_t)p.n_stages * p.n_chains, sizeof *lanes);
	e = lanes || p.last_step == EVENT_STEP_UNKNOWN ? 0 : -ENOMEM;
	if (lanes && find_lanes(r, &p, lanes))
		for (uint32_t step = p.first_step; step <= p.last_step && e == 0; step++)
			if (step >= r->stages_below)
				e = tell_step(r, &p, lanes, step);
	if (lanes)
		r->stages_below = p.last_step + 1;
	free(lanes);
	pipeline_fini(&p);
	return e;
}
