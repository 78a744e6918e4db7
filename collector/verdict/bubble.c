/* bubble.c - slow.pipeline_bubble: idle time that the schedule itself makes.
 *
 * What it says: the shape of the pipeline, the share of the step that its stages are
 * idle beside the share that theory gives for it, and that the longest collective
 * is a wait for the pipeline to drain, not a slow network.
 *
 * How it decides: all ranks have equal work for a micro-batch; more than a quarter of the step is
 * idle; and the time to fill and drain, (p - 1) w of pipeline.h, is most of that. A
 * pipeline that is fed well (m of 4 p and more) stays far below: that is its price,
 * not a fault.
 *
 * Neighbours: slow.stage_imbalance (one stage has more work: more micro-batches do
 * not help), slow.bubble_amplified (idle beyond theory), slow.link (transfers take
 * long, not the waiting for them).
 */
#include "pipeline.h"
#include "words.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define BALANCED 1.15
#define LEAST_SHARE 0.25 /* of the step */
#define MOST_OF_IT 0.7	 /* of the idle time, by theory */

static bool is_bubble(const struct pipeline *p)
{
	return p->most_ns < BALANCED * p->median_ns && p->idle_ns >= LEAST_SHARE * p->step_ns &&
	       pipeline_theory_ns(p) >= MOST_OF_IT * p->idle_ns;
}

/* The collective that looks slow, if it is one; "" otherwise. */
static void say_longest(const struct rules *r, const struct pipeline *p, char *out, size_t n_out)
{
	const struct lane_wait *w = &r->lanes.longest;
	char wait[32], transfer[32];

	*out = '\0';
	if ((double)w->wait_ns < p->median_ns / 2 || w->wait_ns < w->transfer_ns)
		return;
	words_ns(w->wait_ns, wait, sizeof wait);
	words_ns(w->transfer_ns, transfer, sizeof transfer);
	snprintf(out, n_out,
		 " Call %" PRIu64 " of group %.60s looks slow on rank %d, but it waits there %s for rank %d "
		 "and transfers for %s.", w->seq, r->ledger.match->groups[w->group].name, w->rank, wait,
		 w->last_rank, transfer);
}

static int tell(struct rules *r, const struct pipeline *p)
{
	double theory = (p->n_stages - 1) / (p->n_micro + p->n_stages - 1);
	char sentence[800], detail[120], longest[300];
	struct finding f = {
		.class_name = "slow.pipeline_bubble", .severity = SEVERITY_SLOW,
		.confidence = CONFIDENCE_CERTAIN, .step = p->first_step, .last_step = p->last_step,
		.onset_ns = FACT_NONE, .cost_ratio = p->idle_ns / (p->step_ns - p->idle_ns),
		.margin_ns = (int64_t)(p->idle_ns - LEAST_SHARE * p->step_ns),
		.error_kind = ERROR_KIND_NONE,
		.evidence_json = "[{\"view\":\"stage_step\"},{\"view\":\"arrival\"}]",
		.rules_out_json = "[\"slow.stage_imbalance: the stages have equal work\","
				  "\"slow.bubble_amplified: theory explains the idle time\","
				  "\"slow.link: the messages and collectives wait, they do not transfer\"]",
	};

	say_longest(r, p, longest, sizeof longest);
	snprintf(detail, sizeof detail, "p=%u stages, m=%.3g micro-batches", p->n_stages, p->n_micro);
	snprintf(sentence, sizeof sentence,
		 "The pipeline is idle for %.0f %% of the step because %u stages are fed with %.3g "
		 "micro-batches only: the schedule itself makes (p-1)/(m+p-1) = %.0f %%, and the stages are "
		 "balanced.%s Use more micro-batches (%u would leave %.0f %%), or interleave the stages.",
		 100 * p->idle_ns / p->step_ns, p->n_stages, p->n_micro, 100 * theory, longest,
		 8 * p->n_stages, 100.0 * (p->n_stages - 1) / (9 * p->n_stages - 1));
	f.detail = detail;
	f.sentence = sentence;
	return rules_tell(r, &f);
}

int bubble_look(struct rules *r)
{
	struct pipeline p;
	int e = pipeline_may_tell(r, "slow.pipeline_bubble") ? pipeline_find(r, &p) : 0;

	if (e != 1)
		return e;
	e = is_bubble(&p) ? tell(r, &p) : 0;
	pipeline_fini(&p);
	return e < 0 ? e : 0;
}
