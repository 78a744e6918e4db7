/* amplified.c - slow.bubble_amplified: small lateness inside stages multiplies in the pipeline.
 *
 * What it says: how much longer the pipeline is idle than its schedule makes it,
 * although no stage has more work than the others, and what varies.
 *
 * How it decides: ranks have equal work on average; the idle time beyond theory (transfers of
 * messages granted on both ways) is a good part of the step; it is not the host that
 * lets devices rest; and something varies: the ranks of a stage wait for each other
 * in their collectives, many times a step, or like pieces of work between messages differ by much. In
 * each micro-batch another one is late, and everyone behind it waits: the
 * step follows the latest of each, not the mean.
 *
 * Neighbours: slow.stage_imbalance and slow.fixed_rank (always the same), slow.pipeline_bubble
 * (theory explains it), slow.rotating_host_pause (a pause of the host before a
 * collective of the whole job).
 */
#include "pipeline.h"
#include "words.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#define BALANCED 1.15
#define LEAST_SHARE 0.12 /* of the step, idle beyond theory */
#define LEAST_SPREAD 0.1 /* of like pieces of work */
#define LEAST_PART 0.3 /* of the excess, waited for each other inside stages */
#define LEAST_WAITS 2.0 /* a lap, of those: one long one is a pause of somebody */
#define REST_PART 0.4 /* of the excess: then it is the host */

static double excess_ns(const struct pipeline *p)
{
	/* A message out and one in for each micro-batch, each way. */
	double transfers_ns = 2 * (p->n_micro + p->n_stages - 1) * p->message_ns;

	return p->idle_ns - pipeline_theory_ns(p) - transfers_ns;
}

/* Means of what varies differ by chance, too. */
static double balanced(const struct pipeline *p)
{
	return 1 + fmax(BALANCED - 1, 4 * p->spread / sqrt(p->n_micro * p->n_laps));
}

static bool is_amplified(const struct pipeline *p)
{
	double excess = excess_ns(p);

	return p->most_ns < balanced(p) * p->median_ns && excess >= LEAST_SHARE * p->step_ns &&
	       p->rest_inside_ns <= REST_PART * excess &&
	       (p->spread >= LEAST_SPREAD ||
		(p->wait_inside_ns >= LEAST_PART * excess && p->n_waits >= LEAST_WAITS));
}

static int tell(struct rules *r, const struct pipeline *p)
{
	double excess = excess_ns(p);
	char sentence[700], detail[160], waits[32];
	struct finding f = {
		.class_name = "slow.bubble_amplified", .severity = SEVERITY_SLOW,
		.confidence = CONFIDENCE_LIKELY, .step = p->first_step, .last_step = p->last_step,
		.onset_ns = FACT_NONE, .cost_ratio = excess / (p->step_ns - excess),
		.margin_ns = (int64_t)(excess - LEAST_SHARE * p->step_ns),
		.error_kind = ERROR_KIND_NONE,
		.evidence_json = "[{\"view\":\"stage_step\"},{\"view\":\"arrival\"}]",
		.rules_out_json = "[\"slow.stage_imbalance: the stages are equal on average\","
				  "\"slow.pipeline_bubble: the schedule explains less\"]",
	};

	words_ns((int64_t)p->wait_inside_ns, waits, sizeof waits);
	snprintf(detail, sizeof detail, "p=%u stages, m=%.3g micro-batches, work varies by %.0f %%",
		 p->n_stages, p->n_micro, 100 * p->spread);
	snprintf(sentence, sizeof sentence,
		 "The pipeline is idle for %.0f %% of the step, where its schedule makes %.0f %%, and no stage "
		 "has more work than the others: in each micro-batch another one is late, and the lateness "
		 "multiplies on the way. Like pieces of work differ by %.0f %%, and ranks wait %s a step for "
		 "each other inside the stages. Look for what varies (clocks, host threads, uneven "
		 "sequences); fewer collectives inside a stage help.",
		 100 * p->idle_ns / p->step_ns, 100 * pipeline_theory_ns(p) / p->step_ns, 100 * p->spread,
		 waits);
	f.detail = detail;
	f.sentence = sentence;
	return rules_tell(r, &f);
}

int amplified_look(struct rules *r)
{
	struct pipeline p;
	int e = pipeline_may_tell(r, "slow.bubble_amplified") ? pipeline_find(r, &p) : 0;

	if (e != 1)
		return e;
	e = is_amplified(&p) ? tell(r, &p) : 0;
	pipeline_fini(&p);
	return e < 0 ? e : 0;
}
