/* decision.c - absent.decision_differs: a rank took another way through the program and
 * left out a call that the others wait in.
 *
 * What it says: the rank, the call, and the branch where the ranks parted, if one
 * was recorded.
 *
 * How it decides: certain where the rank's newest record of a branch says another
 * way than a waiting rank's record of the same passage (the same name for the same
 * time). Likely where it ended in good order without the call. A rank that left out
 * one call and made the next shows as calls that do not fit: mismatch.c finds it
 * and gives it this class.
 *
 * Neighbours: absent.uneven_input (it has nothing left to do), mismatch.op.
 */
#include "standstill.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* This process's n-th word on that branch; -1 when it has none. n is of the same name. */
static int taken(const struct rules *r, uint32_t proc, const char *name, unsigned n)
{
	for (size_t i = 0; i < r->side.n; i++) {
		const struct side_record *v = &r->side.v[i];
		const char *mine = v->kind == SIDE_BRANCH && v->proc == proc ? side_text(v, "name") :
									       NULL;

		if (mine && strcmp(mine, name) == 0 && n-- == 0)
			return side_number(v, "taken", 0) != 0;
	}
	return -1;
}

/* The branch in which it parted from one that waits; NULL. */
static const char *parted(const struct rules *r, uint32_t proc, uint32_t present)
{
	const char *found = NULL;

	for (size_t i = 0; i < r->side.n; i++) {
		const struct side_record *v = &r->side.v[i];
		const char *name = v->kind == SIDE_BRANCH && v->proc == proc ? side_text(v, "name") :
									       NULL;
		unsigned n = 0;
		int other;

		if (!name)
			continue;
		for (size_t k = 0; k < i; k++) {
			const char *before = side_text(&r->side.v[k], "name");

			n += r->side.v[k].kind == SIDE_BRANCH && r->side.v[k].proc == proc && before &&
			     strcmp(before, name) == 0;
		}
		other = taken(r, present, name, n);
		if (other >= 0 && other != (side_number(v, "taken", 0) != 0))
			found = name;
	}
	return found;
}

static bool ended(const struct rules *r, uint32_t proc)
{
	return r->ledger.roster->procs[proc].gone && !r->ledger.roster->procs[proc].died;
}

int decision_tell(struct rules *r, const struct standstill *s)
{
	const char *branch = NULL;
	char who[160], sentence[500], detail[160];
	struct finding f;

	standstill_finding(r, s, &f, ended);
	f.confidence = CONFIDENCE_LIKELY;
	for (uint32_t i = 0; i < s->n_absent && i < RULES_MAX_RANKS; i++) {
		const char *at = s->absent[i] == UINT32_MAX ? NULL : parted(r, s->absent[i], s->present);

		if (!at)
			continue;
		if (!branch)
			f.n_ranks = 0;
		branch = at;
		f.confidence = CONFIDENCE_CERTAIN;
		finding_rank(&f, r->ledger.roster->procs[s->absent[i]].rank);
	}
	if (f.n_ranks == 0)
		return 0;
	words_ranks(f.ranks, f.n_ranks, who, sizeof who);
	snprintf(detail, sizeof detail, branch ? "branch %.100s" : "it ended in good order%s",
		 branch ? branch : "");
	snprintf(sentence, sizeof sentence,
		 "%s took another way (%s) and left out call %" PRIu64 " of group %.60s, in which %u others "
		 "wait.", who, detail, s->call, f.group, s->n_present);
	f.class_name = "absent.decision_differs";
	f.detail = detail;
	f.sentence = sentence;
	f.evidence_json = "[{\"view\":\"record\",\"category\":\"loop.branch\"}]";
	f.rules_out_json = "[\"absent.crashed: the rank went on\"]";
	return rules_tell(r, &f) < 0 ? -ENOMEM : 1;
}
