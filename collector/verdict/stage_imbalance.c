/* stage_imbalance.c - slow.stage_imbalance: one stage of the pipeline sets the pace.
 *
 * What it says: the stage, how much more work a micro-batch is on it, and what
 * the step would gain if its work were that of the others.
 *
 * How it decides: every rank of that stage, in all parallel pipelines, works longer
 * on a micro-batch than the other stages do, in nearly every step; the others are idle longer than a
 * balanced pipeline of this shape by the time that this takes over all micro-batches;
 * and that is a good part of what is idle at all. A few per cent are usual: the first
 * and last stage have embeddings and the loss.
 *
 * Neighbours: slow.pipeline_bubble (few micro-batches, equal stages),
 * slow.fixed_rank (one rank of a stage, its peers in other pipelines are not slow; or
 * from a step on), slow.bubble_amplified (stages are equal on average).
 */
#include "pipeline.h"
#include "words.h"

#include <errno.h>
#include <stdio.h>

#define LEAST_RATIO 1.15
#define LEAST_SHARE 0.07 /* of the step */
#define PART_OF_IDLE 0.25
#define STEADY 0.75 /* of the steps, it is that stage */
#define MEASURED 0.33 /* of the expected idle time is really there: schedules hide some of it */

/* Idle time of the others over all micro-batches, as it must be. */
static double expected_ns(const struct pipeline *p)
{
	return p->n_micro * (p->slowest_ns - p->others_ns);
}

static bool is_imbalance(const struct pipeline *p)
{
	double excess_ns = expected_ns(p), theory_ns = (p->n_stages - 1) * p->others_ns;
	double n = p->n_stages;

	/* The mean of the idle times includes the slow stage's own, which has no excess. */
	return p->steady >= STEADY && p->slowest_ns >= LEAST_RATIO * p->others_ns && excess_ns >= LEAST_SHARE * p->step_ns &&
	       excess_ns >= PART_OF_IDLE * (excess_ns + theory_ns) &&
	       p->idle_ns - theory_ns >= MEASURED * excess_ns * (n - 1) / n;
}

static int tell(struct rules *r, const struct pipeline *p)
{
	double excess_ns = expected_ns(p);
	char sentence[900], detail[240], mine[32], others[32];
	struct finding f = {
		.class_name = "slow.stage_imbalance", .severity = SEVERITY_SLOW,
		.confidence = CONFIDENCE_CERTAIN, .has_stage = true, .stage = p->slowest,
		.step = p->first_step, .last_step = p->last_step, .onset_ns = FACT_NONE,
		.cost_ratio = excess_ns / (p->step_ns - excess_ns),
		.margin_ns = (int64_t)(p->slowest_ns - p->others_ns), .error_kind = ERROR_KIND_NONE,
		.evidence_json = "[{\"view\":\"stage_step\"}]",
		.rules_out_json = "[\"slow.pipeline_bubble: an even pipeline of this shape is idle less\","
				  "\"slow.fixed_rank: every rank of the stage has more work\"]",
	};
	struct finding who = { 0 };
	char ranks[160];

	for (uint32_t k = 0; k < p->n_chains; k++)
		finding_rank(&who, p->ranks[k * p->n_stages + p->slowest]);
	words_ranks(who.ranks, who.n_ranks, ranks, sizeof ranks);
	words_ns((int64_t)p->slowest_ns, mine, sizeof mine);
	words_ns((int64_t)p->others_ns, others, sizeof others);
	snprintf(detail, sizeof detail, "%s: %.2f times the work of the other stages", ranks,
		 p->slowest_ns / p->others_ns);
	snprintf(sentence, sizeof sentence,
		 "Stage %u of %u (%s) sets the pace of the pipeline: it works %s on a micro-batch, the "
		 "others %s, and stages are idle for %.0f %% of the step where %.3g micro-batches on equal "
		 "stages would leave %.0f %%. Move layers from it to the others; more micro-batches do not "
		 "help.", p->slowest, p->n_stages, ranks, mine, others, 100 * p->idle_ns / p->step_ns,
		 p->n_micro, 100.0 * (p->n_stages - 1) / (p->n_micro + p->n_stages - 1));
	f.detail = detail;
	f.sentence = sentence;
	return rules_tell(r, &f);
}

int stage_imbalance_look(struct rules *r)
{
	struct pipeline p;
	int e = pipeline_may_tell(r, "slow.stage_imbalance") ? pipeline_find(r, &p) : 0;

	if (e != 1)
		return e;
	e = is_imbalance(&p) ? tell(r, &p) : 0;
	pipeline_fini(&p);
	return e < 0 ? e : 0;
}
