/* port.c - init.port_in_use: the end point that ranks want to meet at belongs to someone else.
 *
 * What it says: the rank that could not open it, and the end point.
 *
 * How it decides: an error of that rank has the operating system's words for an
 * address that is in use, and nobody has left start-up. Likely: another listener
 * of the same process could have failed; certain where joining the store failed on
 * that rank too.
 *
 * Neighbours: init.endpoint_differs (nobody is there), init.missing_rank.
 */
#include "rules.h"
#include "start.h"
#include "words.h"

#include <stdio.h>

int port_look(struct rules *r)
{
	struct finding f = { .class_name = "init.port_in_use", .severity = SEVERITY_STUCK,
			     .confidence = CONFIDENCE_LIKELY, .step = EVENT_STEP_UNKNOWN,
			     .onset_ns = FACT_NONE };
	const char *endpoint = NULL;
	char sentence[400], who[160];

	if (!start_hangs(r, START_RETRY_NS))
		return 0;
	for (size_t i = 0; i < r->side.n; i++) {
		const char *text = start_record(r, i, SIDE_LOG) ? side_text(&r->side.v[i], "text") : NULL;

		if (words_has(text, "address already in use") || words_has(text, "EADDRINUSE"))
			finding_rank(&f, start_rank(r, i));
	}
	if (f.n_ranks == 0)
		return 0;
	for (size_t i = 0; i < r->side.n; i++) {
		const char *at = start_record(r, i, SIDE_STORE_JOIN) ||
						 start_record(r, i, SIDE_RENDEZVOUS) ?
					 side_text(&r->side.v[i], "endpoint") : NULL;

		if (r->side.v[i].kind == SIDE_STORE_JOIN && start_record(r, i, SIDE_STORE_JOIN) &&
		    start_rank(r, i) == f.ranks[0] && side_number(&r->side.v[i], "ok", 1) == 0)
			f.confidence = CONFIDENCE_CERTAIN;
		if (at && (!endpoint || start_rank(r, i) == f.ranks[0]))
			endpoint = at;
	}
	words_ranks(f.ranks, f.n_ranks, who, sizeof who);
	snprintf(sentence, sizeof sentence,
		 "%s could not open the meeting point%s%.80s: the address is in use already, by another job or a "
		 "process left over. Choose another port or end that process.", who, endpoint ? " " : "",
		 endpoint ? endpoint : "");
	f.detail = endpoint;
	f.sentence = sentence;
	f.evidence_json = "[{\"view\":\"log\"}]";
	f.rules_out_json = "[\"init.missing_rank: the rank is there and says why it fails\"]";
	return rules_tell(r, &f);
}
