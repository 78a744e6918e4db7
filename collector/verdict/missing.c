/* missing.c - init.missing_rank: fewer processes joined than the world has ranks.
 *
 * What it says: which ranks are missing.
 *
 * How it decides: those that wait name a world and one end point; of that world
 * some ranks have no process at all, or have one that never came to the meeting.
 * Nobody says that all have joined, nobody has left start-up, and half a minute
 * has gone by since the last word. Never certain: a rank may still be starting.
 *
 * Neighbours: init.endpoint_differs (they are there, elsewhere: looked for first),
 * init.name_resolution and init.port_in_use (known why they could not join).
 */
#include "rules.h"
#include "start.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The world that all who wait agree on; 0 when they do not, or someone has seen all join. */
static int64_t world_of(const struct rules *r)
{
	int64_t world = 0;

	for (size_t i = 0; i < r->side.n; i++) {
		int64_t mine;

		if (!start_record(r, i, SIDE_RENDEZVOUS) || start_is_repeated(r, i))
			continue;
		mine = side_number(&r->side.v[i], "world", 0);
		if (mine < 2 || mine > FACT_MAX_RANKS || (world && world != mine) ||
		    side_number(&r->side.v[i], "joined", 0) >= mine)
			return 0;
		world = mine;
	}
	return world;
}

int missing_look(struct rules *r)
{
	int64_t world = start_hangs(r, START_RETRY_NS) ? world_of(r) : 0;
	struct finding f = { .class_name = "init.missing_rank", .severity = SEVERITY_STUCK,
			     .confidence = CONFIDENCE_LIKELY, .step = EVENT_STEP_UNKNOWN,
			     .onset_ns = FACT_NONE };
	char sentence[400], detail[80], who[160];
	uint32_t n_here = 0;
	bool *here;

	if (world == 0)
		return 0;
	here = calloc((size_t)world, sizeof *here);
	if (!here)
		return -ENOMEM;
	for (size_t i = 0; i < r->side.n; i++)
		if ((start_record(r, i, SIDE_RENDEZVOUS) || start_record(r, i, SIDE_STORE_JOIN)) &&
		    start_rank(r, i) < world && !here[start_rank(r, i)]) {
			here[start_rank(r, i)] = true;
			n_here++;
		}
	for (int64_t k = 0; k < world; k++)
		if (!here[k])
			finding_rank(&f, (int32_t)k);
	free(here);
	/* More missing than here: it is the meeting that failed, not they. */
	if (f.n_ranks == 0 || 2 * (uint64_t)n_here < (uint64_t)world)
		return 0;
	words_ranks(f.ranks, f.n_ranks, who, sizeof who);
	snprintf(detail, sizeof detail, "%u of %lld joined", n_here, (long long)world);
	snprintf(sentence, sizeof sentence,
		 "%s did not come to the meeting of %lld ranks; the %u others wait. Look whether those processes "
		 "were started, and at their logs.", who, (long long)world, n_here);
	f.detail = detail;
	f.sentence = sentence;
	f.evidence_json = "[{\"view\":\"record\",\"category\":\"init.rendezvous\"}]";
	f.rules_out_json = "[\"init.endpoint_differs: those who wait name one end point\"]";
	return rules_tell(r, &f);
}
