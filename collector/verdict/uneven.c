/* uneven.c - absent.uneven_input: the others wait for a rank that has run out of batches.
 *
 * What it says: the rank, the call that it never entered, and after which step it
 * ended.
 *
 * How it decides: certain where the absent rank's loader has said that its data
 * ended and one that waits has not said so. Likely where it left in good order,
 * behind a whole step, while those that wait have begun a further one. It has not
 * submitted the call.
 *
 * Neighbours: absent.crashed (it did not end by itself), absent.decision_differs (it
 * goes on without the call), data.uneven_batch (it comes, with less work).
 */
#include "standstill.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

static bool out_of_data(const struct rules *r, uint32_t proc)
{
	for (size_t i = 0; i < r->side.n; i++)
		if (r->side.v[i].kind == SIDE_END_OF_DATA && r->side.v[i].proc == proc)
			return true;
	return false;
}

static bool ended(const struct rules *r, uint32_t proc)
{
	return r->ledger.roster->procs[proc].gone && !r->ledger.roster->procs[proc].died;
}

int uneven_tell(struct rules *r, const struct standstill *s)
{
	char who[160], sentence[500];
	struct finding f;

	standstill_finding(r, s, &f, out_of_data);
	f.confidence = CONFIDENCE_CERTAIN;
	f.detail = "its data had ended";
	if (f.n_ranks == 0 || out_of_data(r, s->present)) {
		const struct ledger_proc *a = ledger_proc(&r->ledger, s->absent[0]);
		const struct ledger_proc *b = ledger_proc(&r->ledger, s->present);

		standstill_finding(r, s, &f, ended);
		if (s->n_absent == 0 || f.n_ranks == 0 || !a || !b || a->n_steps == 0 ||
		    b->n_steps <= a->n_steps)
			return 0;
		f.confidence = CONFIDENCE_LIKELY;
		f.detail = "it ended in good order, a step before the others";
	}
	words_ranks(f.ranks, f.n_ranks, who, sizeof who);
	snprintf(sentence, sizeof sentence,
		 "%s ran out of batches: %s, and never entered call %" PRIu64 " of group %.60s, in which "
		 "%u others wait. Give every rank the same number of batches, or let the others go on "
		 "without it.", who, f.detail, s->call, f.group, s->n_present);
	f.class_name = "absent.uneven_input";
	f.sentence = sentence;
	f.evidence_json = "[{\"view\":\"record\",\"category\":\"loader.end_of_data\"}]";
	f.rules_out_json = "[\"absent.crashed: the rank ended its loop itself\"]";
	return rules_tell(r, &f) < 0 ? -ENOMEM : 1;
}
