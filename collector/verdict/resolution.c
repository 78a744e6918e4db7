/* resolution.c - init.name_resolution: a peer cannot find the master by its name.
 *
 * What it says: the name and the host where it has no address, with its ranks.
 *
 * How it decides: each rank's last word on resolving the name. A host whose ranks
 * got no address, while others got one or nobody did, cannot start; a rank that
 * tried again and succeeded does not count, nor does one that joined after all.
 * Certain when it was tried more than once or joining failed.
 *
 * Neighbours: init.endpoint_differs (each finds an address, not the same one),
 * init.dataplane_blocked and init.wrong_interface (found, but not reached).
 */
#include "rules.h"
#include "start.h"

#include <stdio.h>
#include <string.h>

/* An address has a digit or a colon in it and nothing but what addresses have. */
static bool is_address(const char *res)
{
	return res && res[strspn(res, "0123456789abcdefABCDEF.:%")] == '\0' &&
	       (strchr(res, '.') || strchr(res, ':'));
}

static unsigned n_tries(const struct rules *r, uint32_t proc)
{
	unsigned n = 0;

	for (size_t i = 0; i < r->side.n; i++)
		n += r->side.v[i].kind == SIDE_RESOLVE && r->side.v[i].proc == proc;
	return n;
}

/* Its last word on joining: 1, 0, or -1 when it has said nothing. */
static int joined(const struct rules *r, uint32_t proc)
{
	int got = -1;

	for (size_t i = 0; i < r->side.n; i++)
		if (r->side.v[i].kind == SIDE_STORE_JOIN && r->side.v[i].proc == proc)
			got = side_number(&r->side.v[i], "ok", 0) != 0;
	return got;
}

int resolution_look(struct rules *r)
{
	struct finding f = { .class_name = "init.name_resolution", .severity = SEVERITY_STUCK,
			     .confidence = CONFIDENCE_LIKELY, .step = EVENT_STEP_UNKNOWN,
			     .onset_ns = FACT_NONE };
	const char *name = NULL, *res = NULL;
	char sentence[500], detail[200], who[160];
	bool one_host = true;

	if (!start_hangs(r, START_RETRY_NS))
		return 0;
	for (size_t i = 0; i < r->side.n; i++) {
		const struct side_record *v = &r->side.v[i];
		const char *host = start_host(r, i), *got;

		if (!start_record(r, i, SIDE_RESOLVE) || start_is_repeated(r, i))
			continue;
		got = side_text(v, "res");
		if (!got || is_address(got) || joined(r, v->proc) == 1)
			continue;
		one_host &= !f.host || strcmp(f.host, host) == 0;
		f.host = host;
		name = side_text(v, "name");
		res = got;
		finding_rank(&f, start_rank(r, i));
		if (n_tries(r, v->proc) > 1 || joined(r, v->proc) == 0)
			f.confidence = CONFIDENCE_CERTAIN;
	}
	if (f.n_ranks == 0)
		return 0;
	if (!one_host || !*f.host)
		f.host = NULL;
	words_ranks(f.ranks, f.n_ranks, who, sizeof who);
	snprintf(detail, sizeof detail, "%.80s: %.60s", name ? name : "the master's name", res);
	snprintf(sentence, sizeof sentence,
		 "%s%s%.80s cannot resolve %.80s (%.60s), so they cannot join the others. Give an address, or "
		 "a name that every host knows.",
		 who, f.host ? " on host " : "", f.host ? f.host : "", name ? name : "the master's name",
		 res);
	f.detail = detail;
	f.sentence = sentence;
	f.evidence_json = "[{\"view\":\"record\",\"category\":\"init.resolve\"}]";
	f.rules_out_json = "[\"init.dataplane_blocked: no connection was tried without an address\"]";
	return rules_tell(r, &f);
}
