/* data_dependent.c - mismatch.data_dependent_modules: ranks gather or reduce different
 * parameters in one call.
 *
 * What it says: the group, the first call in which the ranks' own records name
 * different parameters. Nobody is named: each rank follows its own data, and the
 * program lets the data decide which module runs.
 *
 * How it decides: a sharding library says with zero.param which parameter a call
 * was for. Two ranks that name different ones for the same call disagree, whatever
 * the sizes: equal experts have equal sizes, so the calls themselves agree until
 * much later. The record does not say the group: the members of exactly one group
 * have made that many calls, or the rule is silent about it.
 *
 * Neighbours: mismatch.op and mismatch.size are what comes of it some calls later;
 * mismatch.size_from_skipped_module (a module that did not run at all).
 */
#include "rules.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SETTLED_NS INT64_C(2000000000)

static int32_t rank_of(const struct rules *r, uint32_t proc)
{
	return r->ledger.roster->procs[proc].rank;
}

/* Do these two speak of one call and of different parameters? */
static bool disagree(const struct rules *r, const struct side_record *a, const struct side_record *b)
{
	const char *x = side_text(a, "id"), *y = side_text(b, "id");
	int64_t seq = side_number(a, "seq", -1);

	return x && y && seq >= 0 && seq == side_number(b, "seq", -2) && a->proc != b->proc &&
	       r->ledger.roster->procs[a->proc].life == r->ledger.roster->procs[b->proc].life &&
	       strcmp(x, y) != 0;
}

/* The only group that both have called so often; NULL. */
static const struct group *group_of(const struct rules *r, const struct side_record *a,
				    const struct side_record *b, uint64_t call, uint32_t *ret)
{
	const struct group *found = NULL;

	for (uint32_t i = 0; i < r->ledger.n_pages && i < r->ledger.match->n_groups; i++) {
		const struct page *p = &r->ledger.pages[i];
		unsigned n = 0;

		for (uint32_t k = 0; k < p->n_seats; k++)
			n += p->seats[k].seen &&
			     (p->seats[k].proc == a->proc || p->seats[k].proc == b->proc) &&
			     (p->seats[k].n_submitted > call || p->seats[k].n_entered > call);
		if (n < 2)
			continue;
		if (found)
			return NULL;
		found = &r->ledger.match->groups[i];
		*ret = i;
	}
	return found;
}

static int tell(struct rules *r, const struct side_record *a, const struct side_record *b)
{
	uint64_t call = (uint64_t)side_number(a, "seq", 0);
	char sentence[600], detail[200], evidence[160];
	uint32_t page = 0;
	const struct group *g = group_of(r, a, b, call, &page);
	const struct line *v = g ? ledger_line(&r->ledger.pages[page], call) : NULL;
	struct finding f = { .class_name = "mismatch.data_dependent_modules", .severity = SEVERITY_WRONG,
			     .confidence = CONFIDENCE_CERTAIN, .has_call = true, .call = call,
			     .step = v ? v->step : EVENT_STEP_UNKNOWN,
			     .onset_ns = v ? v->at_ns : FACT_NONE, .group = g ? g->name : NULL,
			     .detail = detail, .sentence = sentence, .evidence_json = evidence };

	snprintf(detail, sizeof detail, "rank %d: %.60s, rank %d: %.60s", rank_of(r, a->proc),
		 side_text(a, "id"), rank_of(r, b->proc), side_text(b, "id"));
	snprintf(sentence, sizeof sentence,
		 "In call %" PRIu64 "%s%.60s rank %d works on the parameter %.60s and rank %d on %.60s: which "
		 "module runs depends on each rank's data. The sizes may agree, the contents do not, and "
		 "later calls no longer fit together.",
		 call, g ? " of group " : "", g ? g->name : "", rank_of(r, a->proc), side_text(a, "id"),
		 rank_of(r, b->proc), side_text(b, "id"));
	snprintf(evidence, sizeof evidence,
		 "[{\"view\":\"record\",\"category\":\"zero.param\",\"rank\":%d},"
		 "{\"view\":\"record\",\"category\":\"zero.param\",\"rank\":%d}]",
		 rank_of(r, a->proc), rank_of(r, b->proc));
	f.rules_out_json = "[\"mismatch.op: calls differ only later, behind this one\"]";
	for (uint32_t i = 0; i < r->ledger.n_pages; i++) /* what follows from it */
		if (!g || i == page)
			r->ledger.pages[i].told = true;
	r->held = true;
	return rules_tell(r, &f);
}

int data_dependent_look(struct rules *r)
{
	const struct side *s = &r->side;
	const struct side_record *a = NULL, *b = NULL;
	const struct side_record *first[256] = { NULL }; /* by call, as far as slots go */

	if (r->held || (!r->finishing && r->now_ns - s->news_now_ns < SETTLED_NS))
		return 0;
	for (size_t i = 0; i < s->n; i++) {
		const struct side_record *v = &s->v[i];
		int64_t seq = v->kind == SIDE_ZERO_PARAM ? side_number(v, "seq", -1) : -1;
		const struct side_record **slot = &first[(uint64_t)seq % 256];

		if (seq < 0)
			continue;
		if (!*slot || side_number(*slot, "seq", -1) != seq) {
			*slot = v;
			continue;
		}
		if (disagree(r, *slot, v) && (!a || seq < side_number(a, "seq", -1))) {
			a = *slot;
			b = v;
		}
	}
	return a ? tell(r, a, b) : 0;
}
