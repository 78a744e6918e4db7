/* timers.c - slow.pipeline_bubble by the timers of a training log.
 *
 * What it says: the shape of the pipeline, the share of the step that a stage is idle by
 * the log beside the share that theory gives, and that the all-reduce of the
 * embedding, where the log shows the wait, is not slow: it waits for the first stage.
 *
 * How it decides: the record pipeline.timers has the numbers of the steady steps of the
 * last stage alone, or the most and least over all ranks. More than a quarter of the
 * step is idle; theory, with the work that the log measured and this number of stages
 * and micro-batches, gives the step within an eighth; the waits that the log times are not
 * longer than theory's by more than a quarter; and where the log knows the least, no rank
 * works half as long again as another. A log of one stage does not tell whether
 * the stages are equal, but with this step they must be: a slower one would make it longer.
 *
 * Neighbours: bubble.c (the same from what each rank did), slow.stage_imbalance, slow.link
 * (the waits are longer than the schedule makes them).
 */
#include "pipeline.h"
#include "words.h"

#include <stdio.h>

#define LEAST_SHARE 0.25 /* of the step */
#define FITS 0.125	 /* of the step, between theory and log */
#define LONGER 1.25	 /* a wait, than theory */
#define BALANCED 1.15

struct timers {
	int64_t p, m, v, first_step, last_step;
	double step_ms, forward_ms, backward_ms, least_forward_ms, least_backward_ms, optimizer_ms, recv_ms, embedding_ms;
	double step_theory_ms, recv_theory_ms, embedding_theory_ms, idle, idle_theory;
};

static bool read_record(const struct side_record *v, struct timers *ret)
{
	double units, rest;

	*ret = (struct timers){
		.p = side_number(v, "stages", 0), .m = side_number(v, "micro_batches", 0), .v = side_number(v, "chunks", 1),
		.first_step = side_number(v, "first_step", -1), .last_step = side_number(v, "last_step", -1),
		.step_ms = side_real(v, "step_ms", 0), .forward_ms = side_real(v, "forward_ms", 0),
		.backward_ms = side_real(v, "backward_ms", 0), .least_forward_ms = side_real(v, "least_forward_ms", -1),
		.least_backward_ms = side_real(v, "least_backward_ms", -1), .optimizer_ms = side_real(v, "optimizer_ms", 0),
		.recv_ms = side_real(v, "receive_wait_ms", -1), .embedding_ms = side_real(v, "embedding_ms", -1),
	};
	if (ret->p < 2 || ret->p > 65536 || ret->m < 1 || ret->m > 1000000000 || ret->v < 1 || ret->v > 65536 ||
	    !(ret->step_ms > 0) || !(ret->forward_ms > 0) || !(ret->backward_ms > 0) || ret->first_step < 0 ||
	    ret->last_step < ret->first_step || ret->last_step >= EVENT_STEP_UNKNOWN)
		return false;
	units = (double)ret->m * (double)ret->v;
	rest = (double)(ret->p - 1);
	ret->recv_theory_ms = rest * ret->forward_ms / units;
	ret->embedding_theory_ms = rest * ret->backward_ms / units;
	ret->step_theory_ms = (units + rest) * (ret->forward_ms + ret->backward_ms) / units + ret->optimizer_ms;
	ret->idle = (ret->step_ms - ret->forward_ms - ret->backward_ms - ret->optimizer_ms) / ret->step_ms;
	ret->idle_theory = rest / (units + rest);
	return true;
}

static bool is_bubble(const struct timers *t)
{
	double off_ms = t->step_ms - t->step_theory_ms;

	if (t->least_forward_ms >= 0 && t->forward_ms > BALANCED * t->least_forward_ms)
		return false;
	if (t->least_backward_ms >= 0 && t->backward_ms > BALANCED * t->least_backward_ms)
		return false;
	return t->idle >= LEAST_SHARE && off_ms <= FITS * t->step_ms && off_ms >= -FITS * t->step_ms &&
	       t->recv_ms <= LONGER * t->recv_theory_ms && t->embedding_ms <= LONGER * t->embedding_theory_ms;
}

static void say_embedding(const struct timers *t, char *out, size_t n_out)
{
	*out = '\0';
	if (t->embedding_ms > 0)
		snprintf(out, n_out,
			 " The all-reduce of the embedding looks slow (%.0f ms), but it is where the last stage waits for "
			 "the first: (p-1) backwards of a micro-batch are %.0f ms.", t->embedding_ms, t->embedding_theory_ms);
}

static int tell(struct rules *r, const struct timers *t, int32_t rank)
{
	char sentence[900], detail[160], embedding[260];
	struct finding f = {
		.class_name = "slow.pipeline_bubble", .severity = SEVERITY_SLOW, .confidence = CONFIDENCE_LIKELY,
		.step = (uint32_t)t->first_step, .last_step = (uint32_t)t->last_step, .onset_ns = FACT_NONE,
		.cost_ratio = t->idle / (1 - t->idle), .margin_ns = (int64_t)((t->idle - LEAST_SHARE) * t->step_ms * 1e6),
		.error_kind = ERROR_KIND_NONE,
		.evidence_json = "[{\"view\":\"megatron_pipeline\"},{\"view\":\"record\",\"category\":\"pipeline.timers\"}]",
		.rules_out_json = "[\"slow.link: the waits are no longer than the schedule makes them\","
				  "\"slow.stage_imbalance: a slower stage would make the step longer than theory\"]",
	};

	say_embedding(t, embedding, sizeof embedding);
	snprintf(detail, sizeof detail, "p=%lld stages, m=%lld micro-batches; only what rank %d logged", (long long)t->p,
		 (long long)t->m, rank);
	snprintf(sentence, sizeof sentence,
		 "By the timers of the log the pipeline is idle for %.0f %% of the step because %lld stages are fed with "
		 "%lld micro-batches only: the schedule itself makes (p-1)/(m+p-1) = %.0f %%, and a step of %.0f ms where the "
		 "log has %.0f ms.%s Use more micro-batches (%lld would leave %.0f %%), or interleave the stages. Known are "
		 "only %s.", 100 * t->idle, (long long)t->p, (long long)t->m, 100 * t->idle_theory, t->step_theory_ms, t->step_ms,
		 embedding, (long long)(8 * t->p), 100.0 * (double)(t->p - 1) / (double)(8 * t->p * t->v + t->p - 1),
		 t->least_forward_ms >= 0 ? "the least and the most of all ranks" : "the last stage's timers");
	f.detail = detail;
	f.sentence = sentence;
	return rules_tell(r, &f);
}

int timers_look(struct rules *r)
{
	struct timers t;

	if (r->side.n_of_kind[SIDE_TIMERS] == 0 || !r->finishing || !pipeline_may_tell(r, "slow.pipeline_bubble") ||
	    rules_n_told(r, "slow.pipeline_bubble") > 0)
		return 0;
	for (size_t i = 0; i < r->side.n; i++) {
		const struct side_record *v = &r->side.v[i];

		if (v->kind == SIDE_TIMERS && read_record(v, &t) && is_bubble(&t))
			return tell(r, &t, r->ledger.roster->procs[v->proc].rank);
	}
	return 0;
}
