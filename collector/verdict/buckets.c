/* buckets.c - silent.bucket_layout and silent.parameter_outside_sync: which parameters the ranks
 * reduce together, and which none of them reduces.
 *
 * What they say: the bucket that holds other parameters (or the same in another order)
 * on some ranks, so that the reduction adds what does not belong together; the
 * parameter that some or all ranks keep out of the reduction.
 *
 * How they decide: ranks that share a group which reduces, and a stage where stages are
 * said, list their buckets (bucket.add) when they have settled. The same set of
 * parameters put otherwise is a layout that differs: certain. A parameter that other
 * ranks have and some do not is outside for these: certain. One that is in nobody's
 * list, while its own sums differ between replicas and every listed one agrees, is
 * outside for all. Rebuildings that say other counts are a likely difference.
 *
 * Neighbours: mismatch.size (comes of it where sizes differ: not told again),
 * mismatch.data_dependent_modules (another parameter in one call only),
 * silent.replica_desync (a parameter that is in a bucket).
 */
#include "rules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SETTLED_NS INT64_C(2000000000)
#define LOOK_NS INT64_C(2000000000)
#define APART_NS INT64_C(5000000000)

static const struct layout *layout_of(const struct rules *r, uint32_t proc)
{
	return proc < r->numbers.n_procs && r->ledger.roster->procs[proc].life == r->life
		       ? &r->numbers.procs[proc].layout
		       : NULL;
}

/* The stage that the process said it is of; -1. */
static int64_t stage_of(const struct rules *r, uint32_t proc)
{
	for (size_t i = 0; i < r->side.n; i++)
		if (r->side.v[i].kind == SIDE_PARALLEL && r->side.v[i].proc == proc)
			return side_number(&r->side.v[i], "stage", side_number(&r->side.v[i], "pp", -1));
	return -1;
}

static bool same(const struct layout *a, const struct layout *b)
{
	return a->n == b->n && (a->n == 0 || memcmp(a->v, b->v, a->n * sizeof *a->v) == 0);
}

static int by_bucket(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;

	return x->bucket < y->bucket ? -1 : x->bucket > y->bucket;
}

/* In the order of buckets, each as it was told: stable, as lists are nearly sorted. */
static void sort(struct layout *l)
{
	bool sorted = true;

	for (size_t i = 1; i < l->n; i++)
		sorted &= l->v[i - 1].bucket <= l->v[i].bucket;
	for (size_t i = 1; !sorted && i < l->n; i++)
		for (size_t k = i; k > 0 && by_bucket(&l->v[k - 1], &l->v[k]) > 0; k--) {
			struct placed v = l->v[k];

			l->v[k] = l->v[k - 1];
			l->v[k - 1] = v;
		}
}

/* A parameter of a that b lacks; 0. */
static uint32_t lacks(const struct layout *a, const struct layout *b)
{
	for (size_t i = 0; i < a->n; i++) {
		size_t k = 0;

		while (k < b->n && b->v[k].param != a->v[i].param)
			k++;
		if (k == b->n)
			return a->v[i].param;
	}
	return 0;
}

static uint32_t bucket_of(const struct layout *l, uint32_t param)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i].param == param)
			return l->v[i].bucket;
	return UINT32_MAX;
}

static void put_bucket(const struct rules *r, const struct layout *l, uint32_t bucket, char *out, size_t n_out)
{
	size_t at = 0;
	uint32_t n = 0;

	out[0] = '\0';
	for (size_t i = 0; i < l->n && at < n_out; i++)
		if (l->v[i].bucket == bucket && n++ < 4)
			at += (size_t)snprintf(out + at, n_out - at, "%s%.40s", n > 1 ? " " : "",
					       numbers_word(&r->numbers, l->v[i].param));
	if (n > 4 && at < n_out)
		snprintf(out + at, n_out - at, " and %u more", n - 4);
	if (n == 0)
		snprintf(out, n_out, "nothing");
}

/* It has reduced, or would if its calls fitted together. */
static bool reduces(const struct rules *r, uint32_t group)
{
	const struct page *p = group < r->ledger.n_pages ? &r->ledger.pages[group] : NULL;

	if (group < r->silent.n_groups && r->silent.groups[group].n > 0)
		return true;
	for (uint64_t i = p && p->any ? p->first : 0; p && p->any && i < p->next && i < p->first + 8; i++) {
		const struct line *v = ledger_line(p, i);

		if (v && pulse_reduces(v->shape.op) && v->shape.sized && v->shape.bytes > PULSE_SMALL_BYTES)
			return true;
	}
	return false;
}

struct camp { /* the members of a group that list buckets */
	uint32_t group;
	uint32_t usual, other; /* processes: of the most; one that differs */
	uint32_t n, n_usual;
	struct finding who; /* those that differ, where they are fewer */
};

static bool is_peer(const struct rules *r, uint32_t proc, uint32_t other, uint32_t group)
{
	const struct layout *l = layout_of(r, proc);

	return l && (l->n > 0 || l->n_rebuilt > 0) && silent_is_member(r, proc, group) &&
	       (other == UINT32_MAX || stage_of(r, proc) == stage_of(r, other));
}

static uint32_t n_like(const struct rules *r, uint32_t proc, uint32_t group, uint32_t *ret_n, uint32_t *ret_other)
{
	uint32_t n = 0;

	*ret_n = 0;
	*ret_other = UINT32_MAX;
	for (uint32_t i = 0; i < r->numbers.n_procs && i < r->ledger.roster->n_procs; i++) {
		if (!is_peer(r, i, proc, group))
			continue;
		++*ret_n;
		if (same(layout_of(r, i), layout_of(r, proc)) &&
		    layout_of(r, i)->n_rebuilt == layout_of(r, proc)->n_rebuilt)
			n++;
		else if (*ret_other == UINT32_MAX)
			*ret_other = i;
	}
	return n;
}

/* A group whose members differ. */
static bool find_camps(struct rules *r, struct camp *c)
{
	for (c->group = 0; c->group < r->ledger.match->n_groups; c->group++) {
		uint32_t first = 0, n_first;

		if (!reduces(r, c->group))
			continue;
		while (first < r->numbers.n_procs && first < r->ledger.roster->n_procs &&
		       !is_peer(r, first, UINT32_MAX, c->group))
			first++;
		if (first == r->numbers.n_procs || first == r->ledger.roster->n_procs)
			continue;
		n_first = n_like(r, first, c->group, &c->n, &c->other);
		if (c->other == UINT32_MAX)
			continue;
		c->usual = first;
		c->n_usual = n_first;
		if (2 * n_first < c->n) { /* the others may be of one mind */
			uint32_t other, n, n_other = n_like(r, c->other, c->group, &n, &other);

			if (n_other > n_first) {
				c->usual = c->other;
				c->other = first;
				c->n_usual = n_other;
			}
		}
		c->who.n_ranks = 0;
		for (uint32_t i = 0; 2 * c->n_usual > c->n && i < r->numbers.n_procs &&
				     i < r->ledger.roster->n_procs; i++)
			if (is_peer(r, i, c->usual, c->group) && !same(layout_of(r, i), layout_of(r, c->usual)))
				finding_rank(&c->who, r->ledger.roster->procs[i].rank);
		return true;
	}
	return false;
}

static int tell_outside(struct rules *r, const struct camp *c, uint32_t param)
{
	const struct layout *l = layout_of(r, c->other);
	bool other_lacks = bucket_of(l, param) == UINT32_MAX;
	uint32_t without = other_lacks ? c->other : c->usual;
	const char *name = numbers_word(&r->numbers, param);
	char sentence[600], who[160], detail[160];
	struct finding f = c->who;

	f.class_name = "silent.parameter_outside_sync";
	f.severity = SEVERITY_WRONG;
	f.confidence = CONFIDENCE_CERTAIN;
	f.group = r->ledger.match->groups[c->group].name;
	f.module = name;
	f.step = EVENT_STEP_UNKNOWN;
	f.onset_ns = FACT_NONE;
	if (!other_lacks || f.n_ranks == 0)
		f.n_ranks = 0, finding_rank(&f, r->ledger.roster->procs[without].rank);
	words_ranks(f.ranks, f.n_ranks, who, sizeof who);
	snprintf(detail, sizeof detail, "%.80s is in no bucket there", name);
	snprintf(sentence, sizeof sentence,
		 "%s %s the parameter %.80s out of the reduction, the other ranks of group %.60s reduce it: it drifts "
		 "apart, and what lies behind it in the buckets is added to something else. Make the parameters and "
		 "their requires_grad the same on all ranks before the model is wrapped.",
		 who, f.n_ranks == 1 ? "leaves" : "leave", name, f.group);
	f.detail = detail;
	f.sentence = sentence;
	f.evidence_json = "[{\"view\":\"record\",\"category\":\"bucket.add\"}]";
	f.rules_out_json = "[\"silent.bucket_layout: the sets of parameters differ, not only their order\"]";
	r->silent.told = r->silent.outside = true;
	return rules_tell(r, &f);
}

/* Calls that no longer fit are what comes of it. */
static void own_the_page(struct rules *r, uint32_t group)
{
	if (group < r->ledger.n_pages) {
		r->held |= r->ledger.pages[group].first_odd != UINT64_MAX;
		r->ledger.pages[group].told = true;
	}
}

static int tell_layout(struct rules *r, const struct camp *c)
{
	const struct layout *a = layout_of(r, c->usual), *b = layout_of(r, c->other);
	char sentence[1000], detail[400], holds[2][150], who[160];
	struct finding f = c->who;
	size_t i = 0;

	while (i < a->n && i < b->n && memcmp(&a->v[i], &b->v[i], sizeof *a->v) == 0)
		i++;
	f.class_name = "silent.bucket_layout";
	f.severity = SEVERITY_WRONG;
	f.confidence = i < a->n && i < b->n ? CONFIDENCE_CERTAIN : CONFIDENCE_LIKELY;
	f.group = r->ledger.match->groups[c->group].name;
	f.step = EVENT_STEP_UNKNOWN;
	f.onset_ns = FACT_NONE;
	f.has_bucket = f.confidence == CONFIDENCE_CERTAIN;
	f.bucket = f.has_bucket ? (a->v[i].bucket < b->v[i].bucket ? a->v[i].bucket : b->v[i].bucket) : 0;
	put_bucket(r, a, f.bucket, holds[0], sizeof holds[0]);
	put_bucket(r, b, f.bucket, holds[1], sizeof holds[1]);
	words_ranks(f.ranks, f.n_ranks, who, sizeof who);
	if (f.has_bucket)
		snprintf(detail, sizeof detail, "rank %d: %s; rank %d: %s",
			 r->ledger.roster->procs[c->usual].rank, holds[0], r->ledger.roster->procs[c->other].rank,
			 holds[1]);
	else
		snprintf(detail, sizeof detail, "buckets were rebuilt of %lld parameters on rank %d, of %lld on rank %d",
			 (long long)a->n_rebuilt - 1, r->ledger.roster->procs[c->usual].rank,
			 (long long)b->n_rebuilt - 1, r->ledger.roster->procs[c->other].rank);
	snprintf(sentence, sizeof sentence,
		 "Ranks of group %.60s put their parameters into buckets differently%s%s, so that gradients of "
		 "different parameters are added up (%s). Build the model and register its parameters in the "
		 "same order on all ranks, and wrap it once.",
		 f.group, f.n_ranks ? ", others than most: " : "", f.n_ranks ? who : "", detail);
	f.detail = detail;
	f.sentence = sentence;
	f.evidence_json = "[{\"view\":\"record\",\"category\":\"bucket.add\"},"
			  "{\"view\":\"record\",\"category\":\"bucket.rebuilt\"}]";
	f.rules_out_json = "[\"silent.parameter_outside_sync: the sets of parameters are the same\"]";
	r->silent.told = r->silent.layout = true;
	return rules_tell(r, &f);
}

int bucket_layout_look(struct rules *r)
{
	struct numbers *n = &r->numbers;
	struct camp c = { 0 };
	uint32_t param;

	if (r->silent.told || r->held || n->n_layout_notes == r->silent.layouts ||
	    (!r->finishing && r->now_ns - n->layout_now_ns < SETTLED_NS))
		return 0;
	r->silent.layouts = n->n_layout_notes;
	for (uint32_t i = 0; i < n->n_procs; i++)
		sort(&n->procs[i].layout);
	if (!find_camps(r, &c))
		return 0;
	own_the_page(r, c.group);
	param = lacks(layout_of(r, c.usual), layout_of(r, c.other));
	if (!param)
		param = lacks(layout_of(r, c.other), layout_of(r, c.usual));
	if (layout_of(r, c.usual)->n == 0 || layout_of(r, c.other)->n == 0)
		param = 0;
	return param ? tell_outside(r, &c, param) : tell_layout(r, &c);
}

/* ---- outside on all ranks ---- */

/* Is it in a list of a member? -1: no member has a list. */
static int is_listed(const struct rules *r, uint32_t group, uint32_t param)
{
	int listed = -1;

	for (uint32_t i = 0; i < r->numbers.n_procs && i < r->ledger.roster->n_procs && listed < 1; i++)
		if (is_peer(r, i, UINT32_MAX, group) && layout_of(r, i)->n > 0)
			listed = bucket_of(layout_of(r, i), param) != UINT32_MAX;
	return listed;
}

static int tell_unlisted(struct rules *r, uint32_t group, const struct compared *c)
{
	char sentence[600], values[120], detail[240], evidence[400];
	const char *name = numbers_word(&r->numbers, c->first->sub & ~NUMBERS_NAMED);
	struct finding f = { .class_name = "silent.parameter_outside_sync", .severity = SEVERITY_WRONG,
			     .confidence = CONFIDENCE_CERTAIN, .group = r->ledger.match->groups[group].name,
			     .module = name, .detail = detail, .sentence = sentence, .onset_ns = FACT_NONE,
			     .step = c->first->counted ? EVENT_STEP_UNKNOWN : (uint32_t)c->first->key };

	silent_words(c, values, sizeof values);
	snprintf(detail, sizeof detail, "%.80s is in no bucket; %s", name, values);
	snprintf(sentence, sizeof sentence,
		 "The parameter %.80s is in no bucket of group %.60s and is never reduced: its replicas differ (%s). "
		 "It was added after the model was wrapped, or is on the list of what to ignore.",
		 name, f.group, values);
	silent_evidence(c, f.group, UINT64_MAX, evidence, sizeof evidence);
	f.evidence_json = evidence;
	f.rules_out_json = "[\"silent.replica_desync: parameters that are in buckets agree\"]";
	r->silent.told = r->silent.outside = true;
	return rules_tell(r, &f);
}

int outside_sync_look(struct rules *r)
{
	const struct round *v;

	if (r->silent.told || r->numbers.n_layout_notes == 0 || r->numbers.n_notes == 0 ||
	    (!r->finishing && r->now_ns - r->silent.outside_ns < LOOK_NS))
		return 0;
	r->silent.outside_ns = r->now_ns;
	for (uint32_t g = 0; g < r->silent.n_groups && g < r->ledger.match->n_groups; g++) {
		struct compared found = { 0 };
		bool listed_apart = false;

		for (uint64_t i = 0; r->silent.groups[g].n > 0 && (v = numbers_round(&r->numbers, i)); i++) {
			struct compared c;

			if (v->kind != NUMBER_PARAM_SUM || v->life != r->life || !(v->sub & NUMBERS_NAMED))
				continue;
			silent_compare(r, g, NUMBER_PARAM_SUM, v->sub, &c);
			if (c.first != v || !c.apart_last ||
			    (!r->finishing && r->now_ns - v->news_now_ns < APART_NS))
				continue;
			if (is_listed(r, g, v->sub & ~NUMBERS_NAMED) == 0)
				found = found.first ? found : c;
			else
				listed_apart = true;
		}
		if (found.first && !listed_apart)
			return tell_unlisted(r, g, &found);
	}
	return 0;
}
