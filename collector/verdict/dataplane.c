/* dataplane.c - init.dataplane_blocked: ranks meet, but the ways for their data are closed.
 *
 * What it says: the pairs of hosts between which connections do not come about,
 * and a port of each.
 *
 * How it decides: connections to the ports that the library chose at run time end
 * with a time-out or no route, in this life, between ranks of different hosts, and
 * none between these hosts has succeeded. Somebody has joined the store, so names
 * and the master's port are fine. Nobody has left start-up. Certain from two
 * failures on; a refused connection is no closed way: there nobody listens.
 *
 * Neighbours: init.wrong_interface (the address leads nowhere: looked for first),
 * init.name_resolution, init.missing_rank (nobody to connect to).
 */
#include "rules.h"
#include "start.h"

#include <stdio.h>
#include <string.h>

/* The hosts of both ends, in order of their names. False when they are not known or one. */
static bool ends_of(const struct rules *r, size_t i, const char *ret[2])
{
	const char *from = start_host_of_rank(r, side_number(&r->side.v[i], "src", start_rank(r, i)));
	const char *to = start_host_of_rank(r, side_number(&r->side.v[i], "dst", -1));
	int order = from && to ? strcmp(from, to) : 0;

	ret[0] = order < 0 ? from : to;
	ret[1] = order < 0 ? to : from;
	return order != 0;
}

static bool ends_with(const struct rules *r, size_t i, const char *a, const char *b)
{
	const char *res = side_text(&r->side.v[i], "res");

	return res && (strcmp(res, a) == 0 || strcmp(res, b) == 0);
}

/* Has any connection between these two hosts come about? */
static bool is_open(const struct rules *r, const char *const pair[2])
{
	for (size_t i = 0; i < r->side.n; i++) {
		const char *other[2];

		if (start_record(r, i, SIDE_CONNECT) && ends_with(r, i, "ok", "refused") &&
		    ends_of(r, i, other) && strcmp(pair[0], other[0]) == 0 &&
		    strcmp(pair[1], other[1]) == 0)
			return true;
	}
	return false;
}

static bool anyone_joined(const struct rules *r)
{
	for (size_t i = 0; i < r->side.n; i++)
		if (start_record(r, i, SIDE_STORE_JOIN) && side_number(&r->side.v[i], "ok", 0))
			return true;
	return false;
}

int dataplane_look(struct rules *r)
{
	char sentence[500], detail[200];
	struct finding f = { .class_name = "init.dataplane_blocked", .severity = SEVERITY_STUCK,
			     .confidence = CONFIDENCE_LIKELY, .step = EVENT_STEP_UNKNOWN,
			     .onset_ns = FACT_NONE, .detail = detail, .sentence = sentence };
	const char *named[2] = { NULL, NULL };
	unsigned n = 0, n_pairs = 0;
	int64_t port = 0;

	if (!start_hangs(r, START_RETRY_NS) || !anyone_joined(r))
		return 0;
	for (size_t i = 0; i < r->side.n; i++) {
		const char *pair[2];

		if (!start_record(r, i, SIDE_CONNECT) || !ends_with(r, i, "timeout", "unreachable") ||
		    !ends_of(r, i, pair) || is_open(r, pair))
			continue;
		if (n++ == 0)
			port = side_number(&r->side.v[i], "port", 0);
		if (!named[0] || strcmp(named[0], pair[0]) != 0 || strcmp(named[1], pair[1]) != 0)
			n_pairs++;
		named[0] = pair[0];
		named[1] = pair[1];
	}
	if (n == 0)
		return 0;
	if (n > 1)
		f.confidence = CONFIDENCE_CERTAIN;
	snprintf(detail, sizeof detail, "hosts %.60s and %.60s%s, ports chosen at run time (such as %lld)",
		 named[0], named[1], n_pairs > 1 ? " and others" : "", (long long)port);
	snprintf(sentence, sizeof sentence,
		 "The ranks have met, but connections between %s do not come about, while those within a host "
		 "do not fail. A firewall that opens only the master's port does this.", detail);
	f.evidence_json = "[{\"view\":\"record\",\"category\":\"net.connect\"}]";
	f.rules_out_json = "[\"init.name_resolution: the store was joined\","
			   "\"init.wrong_interface: the announced addresses can be reached from outside\"]";
	return rules_tell(r, &f);
}
