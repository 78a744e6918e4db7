/* pipeline.h - which ranks make a pipeline, and where its time goes.
 *
 * Found from messages alone: a rank passes on to the peer to which its first message
 * of a lap goes, and hands gradients back to the one from which the first came.
 * Chains of equal length with messages both ways are the pipelines of a job; the
 * place in the chain is the stage. A micro-batch is one message on each edge and
 * way, so with interleaved stages it is a part of one.
 *
 * With p stages, m micro-batches and w of work for each on every stage, a step
 * takes (m + p - 1) w: each stage is idle for (p - 1) w, whatever the order of
 * forwards and backwards. What is idle beyond that has another cause.
 *
 * Only durations on each rank's own clock are compared. The step is as long as the
 * longest lap of a rank. Waits inside collectives are told from transfers by their
 * members' arrivals.
 */
#pragma once

#include "rules.h"

struct pipeline {
	uint32_t n_stages, n_chains, n_laps; /* laps that are summed up */
	uint32_t first_step, last_step; /* EVENT_STEP_UNKNOWN */
	double n_micro; /* a lap */
	int32_t *ranks;	/* chain by chain, by stage */
	double *work_ns; /* of each, for a micro-batch: kernels and transfers, no waiting */
	double *stage_ns; /* median over the chains; by stage */
	double *least_ns; /* least over the chains */
	double median_ns; /* over the stages */
	double most_ns;	  /* of any rank */
	uint32_t slowest; /* the stage with the most work, even on its least busy rank */
	double slowest_ns, others_ns; /* its work; the median of the others' */
	double steady; /* the part of the laps in which it has half of that more, at least */
	/* a lap, the last four means over all ranks */
	double step_ns, idle_ns, wait_inside_ns, rest_inside_ns, message_ns; /* message: one transfer */
	double n_waits; /* inside, a lap, of all ranks: as many of one length would sum up alike */
	double spread; /* deviation of like pieces of work, of their mean: median over the ranks */
};

/* 1, 0 when there is none or too little is known, -ENOMEM. Free what is found. */
int pipeline_find(const struct rules *r, struct pipeline *ret);
void pipeline_fini(struct pipeline *p);

/* The idle time that a balanced pipeline of this shape cannot do without, of a lap. */
double pipeline_theory_ns(const struct pipeline *p);
/* May a rule of this class speak now? Nothing else explains it, and it has not spoken or
 * nothing more will come. */
bool pipeline_may_tell(const struct rules *r, const char *class_name);
