/* replica_desync.c - silent.replica_desync: parameters or gradients of replicas differ by more
 * than rounding, although they are synchronised.
 *
 * What it says: the first step (and bucket or parameter) in which members of a group
 * differ, and who differs from the rest.
 *
 * How it decides: members of a group that reduces gradients (all-reduce: all have the
 * same result) are compared where they spoke of the same step. They are known to be
 * replicas by having agreed before, in other buckets of that step, or by most of
 * three or more agreeing now; a tensor-parallel group never does. A difference counts
 * in a step in which the group reduced, and only if it is there in the newest round
 * too: who averages every k-th step drifts and comes together again.
 *
 * Neighbours: silent.group_without_sync, silent.no_sync_after_last_backward,
 * silent.scaler_disagrees, mismatch.* (what makes replicas differ; told first),
 * silent.parameter_outside_sync (one parameter differs and is in no bucket; told from here where
 * gradients agree and parameters drift further apart since the first check).
 */
#include "rules.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#define SETTLED_NS INT64_C(5000000000) /* who comes together again has done so by then */
#define LOOK_NS INT64_C(2000000000)
#define DRIFTS 1.2

/* Had the group reduced in the step of that round, as far as that is known? */
static bool reduced(const struct rules *r, uint32_t group, const struct round *v)
{
	const struct silent_group *g = &r->silent.groups[group];

	if (v->v[0].own == EVENT_STEP_UNKNOWN || g->n_steps == 0)
		return true;
	for (uint32_t i = 0; i < g->n_steps && i < SILENT_STEPS; i++)
		if (g->steps[i] == v->v[0].own)
			return true;
	return false;
}

/* The value that most members have: index of one of them, and how many. */
static uint32_t most(const struct rules *r, uint32_t group, const struct round *v, uint32_t *ret_n,
		     uint32_t *ret_members)
{
	uint32_t best = 0;

	*ret_n = *ret_members = 0;
	for (uint32_t i = 0; i < v->n; i++) {
		uint32_t n = 0;

		if (!isfinite(v->v[i].v) || !silent_is_member(r, v->v[i].proc, group))
			continue;
		++*ret_members;
		if (i > 64 && *ret_n > 1)
			continue;
		for (uint32_t k = 0; k < v->n; k++)
			n += silent_is_member(r, v->v[k].proc, group) && !silent_apart(v->v[i].v, v->v[k].v);
		if (n > *ret_n) {
			*ret_n = n;
			best = i;
		}
	}
	return best;
}

/* Did other buckets of that step agree? */
static bool others_agree(const struct rules *r, uint32_t group, const struct round *at)
{
	const struct round *v;

	for (uint64_t i = 0; (v = numbers_round(&r->numbers, i)); i++) {
		uint32_t n, n_members;

		if (v == at || v->kind != at->kind || v->life != at->life || v->key != at->key || v->n < 2)
			continue;
		most(r, group, v, &n, &n_members);
		if (n_members >= 2 && n == n_members)
			return true;
	}
	return false;
}

/* Everything that is in a bucket agrees, and the parameters drift further apart: it is what
 * is in none. One that was damaged once keeps its distance. */
static bool is_outside(const struct rules *r, uint32_t group, const struct compared *c)
{
	double first = fabs(c->values[0] - c->values[1]), last = first;
	struct compared norms;
	const struct round *v;

	silent_compare(r, group, NUMBER_GRAD_NORM, UINT32_MAX, &norms);
	if (norms.n_apart > 0 || norms.n_equal == 0 || c->first->kind != NUMBER_PARAM_SUM || c->equal_before)
		return false;
	for (uint64_t i = 0; (v = numbers_round(&r->numbers, i)); i++) {
		double low = (double)INFINITY, high = -low;

		for (uint32_t k = 0; v == c->newest && k < v->n; k++)
			if (isfinite(v->v[k].v) && silent_is_member(r, v->v[k].proc, group)) {
				low = fmin(low, v->v[k].v);
				high = fmax(high, v->v[k].v);
			}
		if (v == c->newest)
			last = high - low;
	}
	return last > first * DRIFTS;
}

static int tell(struct rules *r, uint32_t group, const struct compared *c, bool before)
{
	const struct round *v = c->first;
	bool norm = v->kind == NUMBER_GRAD_NORM;
	char sentence[700], values[120], who[160] = "Ranks", where[120] = "", detail[200], evidence[400];
	uint32_t n = 0, n_members = 0, best = most(r, group, v, &n, &n_members);
	struct finding f = { .class_name = "silent.replica_desync", .severity = SEVERITY_WRONG,
			     .confidence = before ? CONFIDENCE_CERTAIN : CONFIDENCE_LIKELY,
			     .group = r->ledger.match->groups[group].name,
			     .step = v->counted ? EVENT_STEP_UNKNOWN : (uint32_t)v->key, .detail = detail,
			     .sentence = sentence };

	f.onset_ns = roster_place(r->ledger.roster, &r->ledger.roster->procs[v->v[0].proc], v->v[0].at_ns).at.ns;
	for (uint32_t k = 0; 2 * n > n_members && k < v->n; k++)
		if (silent_is_member(r, v->v[k].proc, group) && silent_apart(v->v[best].v, v->v[k].v))
			finding_rank(&f, r->ledger.roster->procs[v->v[k].proc].rank);
	silent_words(c, values, sizeof values);
	if (f.n_ranks > 0)
		words_ranks(f.ranks, f.n_ranks, who, sizeof who);
	if (v->sub & NUMBERS_NAMED) {
		f.module = numbers_word(&r->numbers, v->sub & ~NUMBERS_NAMED);
		snprintf(where, sizeof where, " of %.80s", f.module);
	} else if (v->sub > 0) {
		f.has_bucket = true;
		f.bucket = v->sub - 1;
		snprintf(where, sizeof where, " of bucket %u", f.bucket);
	}
	snprintf(detail, sizeof detail, "%s%s: %s", norm ? "gradients" : "parameters", where, values);
	snprintf(sentence, sizeof sentence,
		 "%s%s %s from %s %s%s (%s), by more than rounding, %s %llu. Look at what each rank does by itself "
		 "between reduction and update (dropout of a replicated layer, clipping, an optimizer on one "
		 "rank only, a bad device), and load one rank's state on all.",
		 who, f.n_ranks > 0 ? "" : " of the same group", f.n_ranks == 1 ? "differs" : "differ",
		 f.n_ranks > 0 ? "the other replicas in" : "each other in", norm ? "gradients" : "parameters",
		 where, values, v->counted ? "from check" : "from step", (unsigned long long)v->key);
	silent_evidence(c, f.group, UINT64_MAX, evidence, sizeof evidence);
	f.evidence_json = evidence;
	if (is_outside(r, group, c)) {
		f.class_name = "silent.parameter_outside_sync";
		f.confidence = CONFIDENCE_LIKELY;
		f.n_ranks = 0;
		snprintf(sentence, sizeof sentence,
			 "Gradients of all buckets of group %.60s agree, yet the parameters drift apart (%s), from step "
			 "%u on: a parameter is in no bucket and is never reduced. Look for one that was added after "
			 "the model was wrapped, or that is on the list of what to ignore.", f.group, values, f.step);
	}
	f.rules_out_json = "[\"silent.group_without_sync: the group reduces\","
			   "\"averaging every k-th step: it reduced in this step, and they did not come together\"]";
	r->silent.told = r->silent.desync = true;
	return rules_tell(r, &f);
}

/* The first round in a step that reduced, behind all in which they agreed. */
static bool find_first(const struct rules *r, uint32_t group, struct compared *c, unsigned kind, uint32_t sub)
{
	const struct round *v, *first = NULL;

	for (uint64_t i = 0; (v = numbers_round(&r->numbers, i)); i++)
		if (v->kind == kind && v->sub == sub && v->life == r->life &&
		    (!c->last_equal || v->key > c->last_equal->key) && (!first || v->key < first->key) &&
		    reduced(r, group, v) && silent_range(r, group, v, c))
			first = v;
	return first && silent_range(r, group, first, c);
}

static int look_at(struct rules *r, uint32_t group, unsigned kind, uint32_t sub)
{
	struct compared c;
	uint32_t n, n_members;
	bool before;

	silent_compare(r, group, kind, sub, &c);
	if (!c.first || !c.apart_last || !find_first(r, group, &c, kind, sub) ||
	    (!r->finishing && r->now_ns - c.first->news_now_ns < SETTLED_NS))
		return 0;
	c.equal_before |= c.last_equal != NULL;
	before = c.equal_before || others_agree(r, group, c.first) || is_outside(r, group, &c);
	most(r, group, c.first, &n, &n_members);
	if (!before && (kind == NUMBER_GRAD_NORM || n_members < 3 || 2 * n <= n_members || n < 2))
		return 0;
	return tell(r, group, &c, before);
}

/* The buckets and parameters that were spoken of, the earliest difference first. */
static int look_at_kind(struct rules *r, uint32_t group, unsigned kind)
{
	const struct round *v, *first = NULL;

	for (uint64_t i = 0; (v = numbers_round(&r->numbers, i)); i++) {
		struct compared c;
		bool known = false;

		if (v->kind != kind || v->life != r->life || v->n < 2)
			continue;
		for (uint64_t k = 0; k < i && !known; k++) {
			const struct round *w = numbers_round(&r->numbers, k);

			known = w->kind == kind && w->life == r->life && w->sub == v->sub && w->n >= 2;
		}
		if (known)
			continue;
		silent_compare(r, group, kind, v->sub, &c);
		if (c.first && (!first || c.first->key < first->key))
			first = c.first;
	}
	return first ? look_at(r, group, kind, first->sub) : 0;
}

static bool any_mismatch(const struct rules *r)
{
	for (uint32_t i = 0; i < r->ledger.n_pages; i++)
		if (r->ledger.pages[i].told)
			return true;
	return false;
}

int replica_desync_look(struct rules *r)
{
	struct silent *s = &r->silent;

	if (s->told || s->desync || r->held || any_mismatch(r) || r->numbers.n_notes == 0 ||
	    (!r->finishing && r->now_ns - s->compared_ns < LOOK_NS))
		return 0;
	s->compared_ns = r->now_ns;
	for (uint32_t i = 0; i < s->n_groups && i < r->ledger.match->n_groups && !s->desync; i++) {
		int e = 0;

		if (s->groups[i].n == 0 || r->ledger.match->groups[i].life != silent_restart_count(r))
			continue;
		e = look_at_kind(r, i, NUMBER_GRAD_NORM);
		if (e == 0 && !s->desync)
			e = look_at_kind(r, i, NUMBER_PARAM_SUM);
		if (e < 0)
			return e;
	}
	return 0;
}
