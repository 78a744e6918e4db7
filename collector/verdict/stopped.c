/* stopped.c - absent.stopped: the others wait for a rank whose process exists and does not run.
 *
 * What it says: the rank, its state, and the call that it has not entered.
 *
 * How it decides: the last record of the process's state says that it is stopped
 * (a signal, a debugger). A process that merely sleeps is waiting for something,
 * which this rule does not know.
 *
 * Neighbours: absent.crashed (it is gone), timeout.peer_busy (it runs).
 */
#include "standstill.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool is_stopped(const struct rules *r, uint32_t proc)
{
	bool stopped = false;

	for (size_t i = 0; i < r->side.n; i++) {
		const struct side_record *v = &r->side.v[i];
		const char *state = v->kind == SIDE_PROC_STATE && v->proc == proc ?
					    side_text(v, "state") : NULL;

		if (state)
			stopped = strcmp(state, "stopped") == 0;
	}
	return stopped && !r->ledger.roster->procs[proc].gone;
}

int stopped_tell(struct rules *r, const struct standstill *s)
{
	char who[160], sentence[400];
	struct finding f;

	standstill_finding(r, s, &f, is_stopped);
	if (f.n_ranks == 0)
		return 0;
	words_ranks(f.ranks, f.n_ranks, who, sizeof who);
	snprintf(sentence, sizeof sentence,
		 "%s is stopped: the process exists and does not run. %u others wait for it in call %" PRIu64
		 " of group %.60s.", who, s->n_present, s->call, f.group);
	f.class_name = "absent.stopped";
	f.confidence = CONFIDENCE_CERTAIN;
	f.detail = "the process is stopped";
	f.sentence = sentence;
	f.evidence_json = "[{\"view\":\"record\",\"category\":\"proc.state\"}]";
	f.rules_out_json = "[\"absent.crashed: the process is there\"]";
	return rules_tell(r, &f) < 0 ? -ENOMEM : 1;
}
