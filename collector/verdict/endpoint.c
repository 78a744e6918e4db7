/* endpoint.c - init.endpoint_differs: ranks meet at different addresses or ports.
 *
 * What it says: how many end points there are and which; the ranks of the smaller
 * part where most agree, nobody where none has a majority: then it is a setting.
 *
 * How it decides: each rank's own record of where it goes to. They must differ as
 * texts, at least one rank must say that it has not been joined by all, and no rank
 * may have left start-up (called anything) in this life: who trains has met, by
 * whatever names. A difference of ports is certain; of host names only likely, for
 * one machine may have two names.
 *
 * Neighbours: init.missing_rank (one end point, too few at it), init.port_in_use,
 * init.name_resolution (a rank cannot even find the address).
 */
#include "rules.h"
#include "start.h"

#include <stdio.h>
#include <string.h>

#define MAX_ENDPOINTS 16

struct endpoint {
	const char *text;
	uint32_t n;
};

static const char *port_of(const char *endpoint)
{
	const char *colon = strrchr(endpoint, ':');

	return colon ? colon + 1 : "";
}

static int tell(struct rules *r, const struct endpoint *v, unsigned n, uint32_t n_ranks,
		bool ports, const struct finding *ranks)
{
	char sentence[700], detail[300], who[160];
	struct finding f = *ranks;
	size_t at = 0;

	for (unsigned i = 0; i < n && i < 4; i++)
		at += (size_t)snprintf(detail + at, sizeof detail - at, "%s%.60s", i ? ", " : "",
				       v[i].text);
	words_ranks(f.ranks, f.n_ranks, who, sizeof who);
	snprintf(sentence, sizeof sentence,
		 "%u ranks wait for each other at %s%u different end points (%s%s): they never meet. %s%s",
		 n_ranks, n == MAX_ENDPOINTS ? "at least " : "", n, detail, n > 4 ? ", …" : "",
		 f.n_ranks ? who : "Give every process the same address and port",
		 f.n_ranks ? " differ from the others." : ".");
	f.class_name = "init.endpoint_differs";
	f.severity = SEVERITY_STUCK;
	f.confidence = ports ? CONFIDENCE_CERTAIN : CONFIDENCE_LIKELY;
	f.setting = "master address and port";
	f.detail = detail;
	f.sentence = sentence;
	f.evidence_json = "[{\"view\":\"record\",\"category\":\"init.rendezvous\"}]";
	f.rules_out_json = "[\"init.dataplane_blocked: nobody has tried to send data yet\"]";
	f.step = EVENT_STEP_UNKNOWN;
	return rules_tell(r, &f);
}

int endpoint_look(struct rules *r)
{
	struct endpoint v[MAX_ENDPOINTS];
	struct finding f = { .onset_ns = FACT_NONE };
	uint32_t n_ranks = 0;
	unsigned n = 0, best = 0;
	bool alone = false, ports = false;

	if (!start_hangs(r, START_FIXED_NS))
		return 0;
	for (size_t i = 0; i < r->side.n; i++) {
		const char *text = start_record(r, i, SIDE_RENDEZVOUS) ?
					   side_text(&r->side.v[i], "endpoint") : NULL;
		unsigned k = 0;

		if (!text || start_is_repeated(r, i))
			continue;
		alone |= side_number(&r->side.v[i], "joined", 0) <
			 side_number(&r->side.v[i], "world", 2);
		while (k < n && strcmp(v[k].text, text) != 0)
			k++;
		n_ranks++;
		if (k == MAX_ENDPOINTS)
			continue;
		if (k == n)
			v[n++] = (struct endpoint){ .text = text };
		v[k].n++;
		ports |= strcmp(port_of(text), port_of(v[0].text)) != 0;
		if (v[k].n > v[best].n)
			best = k;
	}
	if (n < 2 || !alone)
		return 0;
	for (size_t i = 0; i < r->side.n && 2 * v[best].n > n_ranks; i++) {
		const char *text = start_record(r, i, SIDE_RENDEZVOUS) ?
					   side_text(&r->side.v[i], "endpoint") : NULL;

		if (text && !start_is_repeated(r, i) && strcmp(text, v[best].text) != 0)
			finding_rank(&f, start_rank(r, i));
	}
	return tell(r, v, n, n_ranks, ports, &f);
}
