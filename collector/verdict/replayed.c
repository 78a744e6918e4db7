/* replayed.c - slow.fixed_rank, where all operations of the job are known.
 *
 * What it says: the rank, what a step takes and what it would take if that rank's
 * operations were as the others' of their kind, and in how many steps that is so.
 *
 * How it decides: a replay of the job in virtual time (graph/whatif.h). The job loses
 * a good part of its time against ideal durations; most of that goes away when one
 * rank alone is ideal, much more than with any other; and it is so in nine of ten
 * steps. There are other ranks of its stage, or it could as well be the stage. No
 * clock is compared: durations and what comes after what decide.
 *
 * Neighbours it must not be taken for: slow.stage_imbalance (making one rank of a slow
 * stage ideal gives nothing back, its twins set the pace all the same),
 * slow.rotating_* (not in every step), slow.work_imbalance (another rank each step),
 * slow.pipeline_bubble (ideal durations have the bubble, too).
 */
#include "rules.h"
#include "words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LEAST_SLOWDOWN 1.05
#define LEAST_SHARE 0.5
#define TIMES_NEXT 2.0
#define LEAST_STEPS 3
#define CLEAR_STEPS 0.9

void replayed_note(struct replayed *p, const struct fact_what_if *v, size_t n, uint32_t first_step,
		   uint32_t last_step)
{
	*p = (struct replayed){ .worst = { .rank = -1 }, .next = { .rank = -1 },
				  .first_step = first_step, .last_step = last_step };
	for (size_t i = 0; i < n; i++) {
		struct replayed_rank me = { (int32_t)v[i].number, v[i].share, v[i].slowdown,
					    v[i].without_ns, v[i].n_clear };

		if (strcmp(v[i].scope, "job") == 0) {
			p->any = true;
			p->slowdown = v[i].slowdown;
			p->step_ns = v[i].step_ns;
			p->n_steps = v[i].n_steps;
		}
		p->n_replicas += strcmp(v[i].scope, "replica") == 0;
		if (strcmp(v[i].scope, "rank") != 0 || isnan(me.share))
			continue;
		if (p->worst.rank < 0 || me.share > p->worst.share) {
			p->next = p->worst;
			p->worst = me;
		} else if (p->next.rank < 0 || me.share > p->next.share) {
			p->next = me;
		}
	}
}

static bool is_one_rank(const struct replayed *p)
{
	return p->any && p->worst.rank >= 0 && p->n_replicas > 1 && p->slowdown >= LEAST_SLOWDOWN &&
	       p->worst.share >= LEAST_SHARE && p->n_steps >= LEAST_STEPS &&
	       (p->next.rank < 0 || p->worst.share >= TIMES_NEXT * p->next.share) &&
	       p->worst.n_clear >= CLEAR_STEPS * p->n_steps;
}

int replayed_look(struct rules *r)
{
	const struct replayed *p = &r->replayed;
	const struct replayed_rank *w = &p->worst;
	char sentence[600], evidence[120], was[32], without[32];
	struct finding f = {
		.class_name = "slow.fixed_rank", .key = "slow.fixed_rank.replay", .severity = SEVERITY_SLOW,
		.confidence = CONFIDENCE_CERTAIN, .step = p->first_step, .last_step = p->last_step,
		.onset_ns = FACT_NONE, .error_kind = ERROR_KIND_NONE, .sentence = sentence,
		.evidence_json = evidence, .detail = "its operations take longer than the others' of their kind",
		.rules_out_json = "[\"slow.stage_imbalance: other ranks of its stage are not slow\","
				  "\"slow.pipeline_bubble: the ideal pipeline has the same bubble\","
				  "\"slow.global: with this rank ideal the step is as short as it can be\"]",
	};

	if (!r->finishing || !is_one_rank(p) || rules_explained(r, w->rank))
		return 0;
	finding_rank(&f, w->rank);
	f.cost_ratio = (double)(p->step_ns - w->without_ns) / (double)w->without_ns;
	f.margin_ns = p->step_ns - w->without_ns;
	words_ns(p->step_ns, was, sizeof was);
	words_ns(w->without_ns, without, sizeof without);
	snprintf(sentence, sizeof sentence,
		 "Rank %d is slow in %u of %u steps: a step takes %s and would take %s if its operations took "
		 "what they take elsewhere, which is %.0f %% of all that the job loses. Look at its device and "
		 "its host.",
		 w->rank, w->n_clear, p->n_steps, was, without, 100 * w->share);
	snprintf(evidence, sizeof evidence, "[{\"view\":\"what_if\",\"scope\":\"rank\",\"rank\":%d}]", w->rank);
	return rules_tell(r, &f);
}
