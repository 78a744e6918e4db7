/* crashed.c - absent.crashed: the others wait for a rank whose process is gone.
 *
 * What it says: the rank, and the call that it has not entered. The rank that the
 * others wait for, not the one whose watchdog reports it.
 *
 * How it decides: the agent saw the process die (it ended without saying so), or a
 * record of its state says gone, zombie, or names a signal; the others are alive
 * and inside a call that it never entered.
 *
 * Neighbours: absent.uneven_input and absent.decision_differs (it ended by itself),
 * absent.stopped (it is there and does not run).
 */
#include "standstill.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool is_dead(const struct rules *r, uint32_t proc)
{
	bool dead = r->ledger.roster->procs[proc].died;

	for (size_t i = 0; i < r->side.n; i++) {
		const struct side_record *v = &r->side.v[i];
		const char *state;

		if (v->kind != SIDE_PROC_STATE || v->proc != proc)
			continue;
		state = side_text(v, "state");
		dead = (state && (strcmp(state, "gone") == 0 || strcmp(state, "zombie") == 0)) ||
		       (state && strcmp(state, "stopped") != 0 && side_number(v, "signal", 0) > 0) ||
		       side_number(v, "exit", 0) != 0;
	}
	return dead;
}

int crashed_tell(struct rules *r, const struct standstill *s)
{
	char who[160], sentence[400];
	struct finding f;

	standstill_finding(r, s, &f, is_dead);
	if (f.n_ranks == 0)
		return 0;
	words_ranks(f.ranks, f.n_ranks, who, sizeof who);
	snprintf(sentence, sizeof sentence,
		 "%s died and never entered call %" PRIu64 " of group %.60s, in which %u others wait for it.",
		 who, s->call, f.group, s->n_present);
	f.class_name = "absent.crashed";
	f.confidence = CONFIDENCE_CERTAIN;
	f.detail = "the process is gone";
	f.sentence = sentence;
	f.evidence_json = "[{\"view\":\"process\"}]";
	f.rules_out_json = "[\"slow.fixed_rank: it will not come\"]";
	return rules_tell(r, &f) < 0 ? -ENOMEM : 1;
}
