/* scaling.c - nan.overflow_fp16 and nan.healthy_scaling: gradients that overflow the narrow
 * type, again and again at one place, or only until the loss scale has found its level.
 *
 * What they say: the stage (or rank) whose values overflow in step after step, so that no
 * loss scale settles; or, as a notice, how far the scale fell at the start.
 *
 * How they decide: a skipped step is nothing bad. The scale begins high and halves until
 * nothing overflows; it tries a higher one now and then. It is bad when that does not
 * end: a row of skipped steps longer than any start needs or that lasts to the end of
 * the run, an overflow at a scale of one, or three rows and more that are a fifth of
 * all steps. Told only where the overflow is at the same stage (or rank) every time,
 * while others say that they have none: then values are too large there.
 *
 * Neighbours: nan.first_source (not finite in any type: a row without end and
 * without one place), silent.scaler_disagrees (ranks act differently).
 */
#include "scaling.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#define MIN_ROUNDS 5

static bool skipped(const struct round *v)
{
	for (uint32_t i = 0; i < v->n; i++)
		if (v->v[i].w > 0 || (isnan(v->v[i].w) && v->kind == NUMBER_OVERFLOW && v->v[i].v > 0))
			return true;
	return false;
}

static double scale_of(const struct round *v)
{
	double least = (double)INFINITY;

	for (uint32_t i = 0; i < v->n && v->kind == NUMBER_SCALE; i++)
		if (v->v[i].v < least)
			least = v->v[i].v;
	return least;
}

static bool alike(const struct round *v)
{
	for (uint32_t i = 1; i < v->n; i++)
		if ((v->v[i].w > 0) != (v->v[0].w > 0) ||
		    (v->kind == NUMBER_SCALE && silent_apart(v->v[i].v, v->v[0].v)))
			return false;
	return true;
}

static int64_t stage_of(const struct rules *r, const struct sample *s)
{
	if (s->stage >= 0)
		return s->stage;
	for (size_t i = 0; i < r->side.n; i++)
		if (r->side.v[i].kind == SIDE_PARALLEL && r->side.v[i].proc == s->proc)
			return side_number(&r->side.v[i], "stage", -1);
	return -1;
}

static uint32_t n_procs(const struct rules *r)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->ledger.roster->n_procs; i++)
		n += r->ledger.roster->procs[i].life == r->life;
	return n;
}

/* Where that step's overflow was: those that say nothing of it have none. */
static void read_place(const struct rules *r, const struct round *v, struct scaling *ret)
{
	bool any = false, clean = false;

	for (uint32_t i = 0; i < v->n; i++) {
		const struct sample *s = &v->v[i];
		int32_t rank = r->ledger.roster->procs[s->proc].rank;
		int64_t stage = stage_of(r, s);

		if (!(s->v > 0)) {
			clean = true;
			continue;
		}
		if (ret->n_found == 0 && !any) {
			ret->stage = (int32_t)stage;
			ret->rank = rank;
			ret->first_ns = s->at_ns;
			ret->proc = s->proc;
		}
		ret->one_place &= stage == ret->stage && (stage >= 0 || rank == ret->rank);
		ret->last_step = s->step;
		any = true;
	}
	ret->n_found += any;
	ret->n_others_clean += any && (clean || 2 * v->n <= n_procs(r));
}

void scaling_read(const struct rules *r, struct scaling *ret)
{
	const struct round *v;
	unsigned kind = NUMBER_OVERFLOW;
	double before = (double)NAN;

	*ret = (struct scaling){ .lowest = (double)INFINITY, .alike = true, .one_place = true,
				 .first_step = EVENT_STEP_UNKNOWN, .stage = -1, .rank = -1 };
	for (uint64_t i = 0; (v = numbers_round(&r->numbers, i)); i++) {
		if (v->life != r->life)
			continue;
		if (v->kind == NUMBER_SCALE)
			kind = NUMBER_SCALE;
		if (v->kind == NUMBER_OVERFLOW)
			read_place(r, v, ret);
	}
	for (uint64_t i = 0; (v = numbers_round(&r->numbers, i)); i++) {
		double scale;

		if (v->life != r->life || v->kind != kind)
			continue;
		scale = scale_of(v);
		ret->alike &= alike(v);
		if (skipped(v)) {
			ret->n_episodes += ret->n_tail == 0;
			if (ret->n_skipped++ == 0)
				ret->first_step = v->v[0].step;
			ret->n_tail++;
			ret->n_head += ret->n_head == ret->n;
			ret->lowest = scale < ret->lowest ? scale : ret->lowest;
		} else {
			ret->n_tail = 0;
		}
		ret->fell |= scale < before && isfinite(before);
		before = scale;
		ret->n++;
	}
}

bool scaling_skipped(const struct rules *r, const struct bad *b)
{
	const struct round *v;
	const struct sample *next = NULL;

	for (uint64_t i = 0; (v = numbers_round(&r->numbers, i)); i++) {
		const struct sample *s;

		if ((v->kind != NUMBER_SCALE && v->kind != NUMBER_OVERFLOW) || v->life != r->life)
			continue;
		if (b->step != EVENT_STEP_UNKNOWN && v->v[0].own != EVENT_STEP_UNKNOWN) {
			if (v->v[0].own == b->step && skipped(v))
				return true;
			continue;
		}
		s = numbers_of(v, b->proc); /* its next word on it */
		if (s && s->at_ns >= b->at_ns && (!next || s->at_ns < next->at_ns))
			next = s;
	}
	return next && next->w > 0;
}

static int tell_overflow(struct rules *r, const struct scaling *s)
{
	char sentence[600], where[60], detail[200], scale[60] = "";
	struct finding f = { .class_name = "nan.overflow_fp16", .severity = SEVERITY_WRONG,
			     .confidence = s->lowest <= 1 || s->n_tail > SCALING_ENDLESS ? CONFIDENCE_CERTAIN
											 : CONFIDENCE_LIKELY,
			     .step = s->first_step, .last_step = s->last_step, .detail = detail,
			     .sentence = sentence };

	f.onset_ns = roster_place(r->ledger.roster, &r->ledger.roster->procs[s->proc], s->first_ns).at.ns;
	if (s->stage >= 0) {
		f.has_stage = true;
		f.stage = (uint32_t)s->stage;
		snprintf(where, sizeof where, "stage %d", s->stage);
	} else {
		finding_rank(&f, s->rank);
		snprintf(where, sizeof where, "rank %d", s->rank);
	}
	for (size_t i = 0; i < r->numbers.n_bads; i++)
		if (r->numbers.bads[i].kind == BAD_MODULE && r->numbers.bads[i].module && !f.module &&
		    r->numbers.bads[i].proc == s->proc)
			f.module = numbers_word(&r->numbers, r->numbers.bads[i].module);
	if (isfinite(s->lowest))
		snprintf(scale, sizeof scale, ", down to a scale of %.9g", s->lowest);
	snprintf(detail, sizeof detail, "%s overflows in %u of %u steps%s", where, s->n_found, s->n, scale);
	snprintf(sentence, sizeof sentence,
		 "Gradients overflow at %s in step after step (%u of %u%s) while the others have none, and the loss "
		 "scale cannot settle. Values there are too large for the narrow type: use bf16, or keep that "
		 "part in fp32; look at its initialisation and its norms.",
		 where, s->n_found, s->n, scale);
	f.evidence_json = "[{\"view\":\"record\",\"category\":\"scaler.overflow\"},"
			  "{\"view\":\"record\",\"category\":\"scaler.update\"}]";
	f.rules_out_json = "[\"nan.healthy_scaling: it does not end\","
			   "\"silent.scaler_disagrees: all ranks act alike\"]";
	r->silent.overflow = true;
	return rules_tell(r, &f);
}

static int tell_healthy(struct rules *r, const struct scaling *s)
{
	char sentence[300];
	struct finding f = { .class_name = "nan.healthy_scaling", .severity = SEVERITY_NOTICE,
			     .confidence = CONFIDENCE_CERTAIN, .step = s->first_step, .sentence = sentence,
			     .onset_ns = FACT_NONE };

	if (f.step != EVENT_STEP_UNKNOWN)
		f.last_step = f.step + s->n_head - 1;
	snprintf(sentence, sizeof sentence,
		 "The loss scale found its level: the first %u step%s skipped on all ranks while it fell, and "
		 "none since. Nothing to do.", s->n_head, s->n_head == 1 ? " was" : "s were");
	f.evidence_json = "[{\"view\":\"record\",\"category\":\"scaler.update\"}]";
	f.rules_out_json = "[\"nan.overflow_fp16: it has ended\",\"silent.scaler_disagrees: all ranks act alike\"]";
	r->silent.healthy = true;
	return rules_tell(r, &f);
}

int scaling_look(struct rules *r)
{
	struct scaling s;
	bool endless, often;

	if (r->silent.overflow || r->numbers.n_notes == 0 || r->silent.scaler)
		return 0;
	scaling_read(r, &s);
	endless = s.n_tail > SCALING_ENDLESS || (r->finishing && s.n_tail >= MIN_ROUNDS);
	often = s.n_episodes >= 3 && s.n_skipped * 5 >= s.n;
	if (s.alike && s.one_place && s.n_found >= MIN_ROUNDS && 2 * s.n_others_clean > s.n_found &&
	    (endless || often || s.lowest <= 1))
		return tell_overflow(r, &s);
	if (!r->silent.healthy && s.alike && s.n_head > 0 && s.n_head < s.n && s.fell && s.n_episodes == 1 &&
	    s.n_tail == 0)
		return tell_healthy(r, &s);
	return 0;
}
