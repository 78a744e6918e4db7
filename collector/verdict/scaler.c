/* scaler.c - silent.scaler_disagrees: ranks act on different overflow flags, so one skips
 * a step or takes another loss scale and the other does not.
 *
 * What it says: the first step in which they parted, which rank did what, and why if it
 * shows: a rank read the flag before the reduction of it had ended.
 *
 * How it decides: what ranks say of their scaler for one step must be the same on all
 * of them, skip and scale. Why: its last small reduction before the read, and that
 * rank left it only after the read, by its own clock. Where most agree, the others are
 * named; where they read too early, those of them that did.
 *
 * Neighbours: nan.healthy_scaling (the scale falls on all alike), nan.overflow_fp16,
 * an overflow that one rank has and all act on.
 */
#include "rules.h"
#include "words.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define SETTLED_NS INT64_C(2000000000)

/* What a rank did then: two that differ in either have parted. */
static bool same_deed(const struct sample *a, const struct sample *b, bool scale)
{
	if (!isnan(a->w) && !isnan(b->w) && (a->w > 0) != (b->w > 0))
		return false;
	return !scale || isnan(a->v) || isnan(b->v) || !silent_apart(a->v, b->v);
}

/* Numbers of a record mean nothing where one may be lost; what a scaler says itself goes
 * before what it found. */
static bool counts(const struct rules *r, const struct round *v)
{
	for (uint32_t i = 0; v->counted && i < v->n; i++) {
		const struct ledger_proc *p = ledger_proc(&r->ledger, v->v[i].proc);

		if (p && p->lost)
			return false;
	}
	return v->kind != NUMBER_OVERFLOW ||
	       !numbers_find(&r->numbers, NUMBER_SCALE, v->life, 0, v->key, v->counted);
}

/* The first round in which ranks part. */
static const struct round *parted(const struct rules *r, unsigned kind)
{
	const struct round *v, *found = NULL;

	for (uint64_t i = 0; (v = numbers_round(&r->numbers, i)); i++) {
		bool same = true;

		if (v->kind != kind || v->life != r->life || (found && found->key <= v->key) ||
		    (!r->finishing && r->now_ns - v->news_now_ns < SETTLED_NS))
			continue;
		for (uint32_t k = 1; k < v->n && same && counts(r, v); k++)
			same = same_deed(&v->v[0], &v->v[k], kind == NUMBER_SCALE);
		if (!same)
			found = v;
	}
	return found;
}

/* The smaller camp; nobody where both are as large. */
static void name_fewer(const struct rules *r, const struct round *v, struct finding *f)
{
	bool scale = v->kind == NUMBER_SCALE;
	uint32_t best = 0, n_best = 0;

	for (uint32_t i = 0; i < v->n && i < 64; i++) { /* a camp of the majority is soon found */
		uint32_t n = 0;

		for (uint32_t k = 0; k < v->n; k++)
			n += same_deed(&v->v[i], &v->v[k], scale);
		if (n > n_best) {
			n_best = n;
			best = i;
		}
	}
	for (uint32_t k = 0; 2 * n_best > v->n && k < v->n; k++)
		if (!same_deed(&v->v[best], &v->v[k], scale))
			finding_rank(f, r->ledger.roster->procs[v->v[k].proc].rank);
}

struct reads { /* reads before the flag was reduced */
	uint32_t n_reads, n_early;
	int64_t least_ns; /* by so much, the least of them */
	const struct pulse_call *call;
};

static struct reads find_early(const struct rules *r, const struct round *at, struct finding *f)
{
	const struct round *reads = numbers_find(&r->numbers, NUMBER_FLAG_READ, at->life, 0, at->key, at->counted);
	struct reads e = { .least_ns = INT64_MAX };

	for (uint32_t i = 0; reads && i < reads->n; i++) {
		const struct sample *s = &reads->v[i];
		const struct pulse_call *c = pulse_small_call(&r->pulse, s->proc, s->at_ns);

		e.n_reads++;
		if (!c || (c->left_ns != FACT_NONE && c->left_ns <= s->at_ns))
			continue;
		e.n_early++;
		e.call = c;
		finding_rank(f, r->ledger.roster->procs[s->proc].rank);
		if (c->left_ns != FACT_NONE && c->left_ns - s->at_ns < e.least_ns)
			e.least_ns = c->left_ns - s->at_ns;
	}
	return e;
}

static void put_deed(const struct rules *r, const struct sample *s, char *out, size_t n_out)
{
	int n = snprintf(out, n_out, "rank %d", r->ledger.roster->procs[s->proc].rank);

	if (!isnan(s->w))
		n += snprintf(out + n, n_out - (size_t)n, s->w > 0 ? " skips the step" : " makes the step");
	if (!isnan(s->v))
		snprintf(out + n, n_out - (size_t)n, ", scale %.9g", s->v);
}

static int tell(struct rules *r, const struct round *v)
{
	const struct sample *a = &v->v[0], *b = a;
	char sentence[700], why[240] = "", detail[320], deeds[2][100], by[40];
	struct finding named = { 0 };
	struct finding f = { .class_name = "silent.scaler_disagrees", .severity = SEVERITY_WRONG,
			     .confidence = CONFIDENCE_CERTAIN, .step = a->step, .detail = detail,
			     .sentence = sentence };
	struct reads e = find_early(r, v, &named);

	f.onset_ns = roster_place(r->ledger.roster, &r->ledger.roster->procs[a->proc], a->at_ns).at.ns;
	for (uint32_t k = 1; k < v->n && b == a; k++)
		if (!same_deed(a, &v->v[k], v->kind == NUMBER_SCALE))
			b = &v->v[k];
	put_deed(r, a, deeds[0], sizeof deeds[0]);
	put_deed(r, b, deeds[1], sizeof deeds[1]);
	if (e.n_early > 0) {
		const char *group = r->ledger.match->groups[e.call->group].name;

		f.group = group;
		f.has_call = true;
		f.call = e.call->seq;
		if (e.least_ns != INT64_MAX)
			f.margin_ns = e.least_ns;
		words_ns(f.margin_ns, by, sizeof by);
		snprintf(why, sizeof why, " The flag was read%s%s before call %" PRIu64 " of group %.60s, which "
			 "reduces it, had ended: wait for that call before the copy to the host.",
			 f.margin_ns ? " " : "", f.margin_ns ? by : "", f.call, group);
		if (e.n_early < e.n_reads)
			for (uint32_t i = 0; i < named.n_ranks; i++)
				finding_rank(&f, named.ranks[i]);
	} else {
		name_fewer(r, v, &f);
		snprintf(why, sizeof why, " Reduce the flag over all ranks, and let each wait for it before it "
			 "decides.");
	}
	snprintf(detail, sizeof detail, "%s%s; %s", e.n_early ? "read before the collective's end: " : "",
		 deeds[0], deeds[1]);
	if (f.step == EVENT_STEP_UNKNOWN)
		snprintf(sentence, sizeof sentence, "Ranks act on different overflow flags: %s, but %s.%s",
			 deeds[0], deeds[1], why);
	else
		snprintf(sentence, sizeof sentence,
			 "Ranks act on different overflow flags from step %u on: %s, but %s.%s", f.step, deeds[0],
			 deeds[1], why);
	f.evidence_json = e.n_early ? "[{\"view\":\"record\",\"category\":\"scaler.update\"},"
				      "{\"view\":\"record\",\"category\":\"memcpy.found_inf_to_host\"},"
				      "{\"view\":\"arrival\"}]"
				    : "[{\"view\":\"record\",\"category\":\"scaler.update\"}]";
	f.rules_out_json = "[\"nan.healthy_scaling: the scale does not change on all alike\"]";
	r->silent.told = r->silent.scaler = true;
	return rules_tell(r, &f);
}

int scaler_look(struct rules *r)
{
	const struct round *v;

	if (r->silent.told || r->silent.scaler)
		return 0;
	v = parted(r, NUMBER_SCALE);
	if (!v)
		v = parted(r, NUMBER_OVERFLOW);
	return v ? tell(r, v) : 0;
}
