/* route.c - init.route_asymmetry: answers leave by another interface than the one announced.
 *
 * What it says: the host whose answers take another way, the address or interface
 * it announced and the one that is seen.
 *
 * How it decides: a peer that accepted a connection saw it come from another address
 * than the rank announced; or the host's own route to the others begins with
 * another interface than the one it announced; or of two hosts that both have the
 * two interfaces each prefers the other one. Such a job has to stand at its start,
 * or in its first calls: many networks run well like this, and then it is a notice.
 * Certain when two of these, or two peers, say so of one host; likely with one.
 *
 * Neighbours: init.wrong_interface (the address itself is of no use: looked for
 * first), init.dataplane_blocked (no connection comes about at all).
 */
#include "onset.h"
#include "start.h"
#include "words.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define MAX_ROUTES 1024 /* compared with all others */

struct suspect {
	const char *host, *announced, *seen, *peer;
	unsigned n;
};

/* Addresses without their ports: "[fe80::1]:99" and "10.0.0.1:99". */
static size_t address_bytes(const char *text)
{
	const char *colon = strchr(text, ':');

	if (*text == '[')
		return strcspn(text, "]");
	return colon && !strchr(colon + 1, ':') ? (size_t)(colon - text) : strlen(text);
}

static bool same_address(const char *a, const char *b)
{
	return address_bytes(a) == address_bytes(b) && strncmp(a, b, address_bytes(a)) == 0;
}

/* The k-th interface of a route, a list or a text with commas. False when there is none. */
static bool interface_at(const struct side_record *v, size_t k, char *out, size_t n_out)
{
	const json_t *order = json_object_get(v->fields, "order");
	const char *text = json_string_value(order);

	if (json_is_array(order)) {
		text = json_string_value(json_array_get(order, k));
		return text && (size_t)snprintf(out, n_out, "%s", text) < n_out;
	}
	for (; text && k > 0; k--) {
		text = strpbrk(text, ", >");
		text += text ? strspn(text, ", >") : 0;
	}
	return text && *text &&
	       (size_t)snprintf(out, n_out, "%.*s", (int)strcspn(text, ", >"), text) < n_out;
}

/* The host that a route leads to, named or by a rank on it; NULL. */
static const char *target_of(const struct rules *r, size_t i)
{
	const char *host = start_record(r, i, SIDE_ROUTE) ? side_text(&r->side.v[i], "dst") : NULL;

	if (host || !start_record(r, i, SIDE_ROUTE))
		return host;
	return start_host_of_rank(r, side_number(&r->side.v[i], "dst", -1));
}

static bool prefers_other(const struct side_record *a, const struct side_record *b)
{
	char first[32], second[32], other[32];

	return interface_at(a, 0, first, sizeof first) && interface_at(b, 0, other, sizeof other) &&
	       strcmp(first, other) != 0 && interface_at(b, 1, second, sizeof second) &&
	       strcmp(first, second) == 0;
}

static void suspect(struct suspect *s, const char *host, const char *announced, const char *seen,
		    const char *peer)
{
	if (!host || !*host || (s->host && strcmp(s->host, host) != 0))
		return;
	if (s->n++ == 0)
		*s = (struct suspect){ host, announced, seen, peer, 1 };
}

static void hear_peers(const struct rules *r, struct suspect *s)
{
	for (size_t i = 0; i < r->side.n; i++) {
		const struct side_record *v = &r->side.v[i];
		const char *seen, *announced;

		if (!start_record(r, i, SIDE_ACCEPT))
			continue;
		seen = side_text(v, "observed");
		announced = side_text(v, "advertised");
		if (seen && announced && !same_address(seen, announced))
			suspect(s, start_host_of_rank(r, side_number(v, "from_rank", -1)), announced, seen,
				start_host(r, i));
	}
}

static void hear_routes(const struct rules *r, struct suspect *s, char seen[32])
{
	for (size_t i = 0; i < r->side.n; i++) {
		const char *host = start_host(r, i);
		char first[32];

		if (!start_record(r, i, SIDE_ROUTE) ||
		    !interface_at(&r->side.v[i], 0, first, sizeof first))
			continue;
		for (size_t k = 0; k < r->side.n; k++) {
			const char *announced = start_record(r, k, SIDE_INTERFACE) ?
							side_text(&r->side.v[k], "if") : NULL;

			if (!announced || start_is_repeated(r, k) || strcmp(host, start_host(r, k)) != 0 ||
			    strcmp(announced, first) == 0)
				continue;
			snprintf(seen, 32, "%s", first);
			suspect(s, host, announced, seen, target_of(r, i));
			break;
		}
	}
}

/* Two hosts whose routes to each other prefer the opposite of two interfaces. */
static bool crossed(const struct rules *r, const char *ret[2])
{
	size_t n = 0;

	for (size_t i = 0; i < r->side.n && n < MAX_ROUTES; i++) {
		const char *to = target_of(r, i);

		n += to != NULL;
		for (size_t k = i + 1; to && k < r->side.n; k++) {
			const char *back = target_of(r, k);

			if (!back || strcmp(to, start_host(r, k)) != 0 ||
			    strcmp(back, start_host(r, i)) != 0 ||
			    !prefers_other(&r->side.v[i], &r->side.v[k]))
				continue;
			ret[0] = start_host(r, i);
			ret[1] = to;
			return true;
		}
	}
	return false;
}

static int tell(struct rules *r, const struct suspect *s, const char *const pair[2], bool stands)
{
	char sentence[600], detail[200], link[160];
	struct finding f = { .class_name = "init.route_asymmetry", .step = EVENT_STEP_UNKNOWN,
			     .severity = stands ? SEVERITY_STUCK : SEVERITY_NOTICE,
			     .confidence = s->n + (pair[0] != NULL) > 1 ? CONFIDENCE_CERTAIN :
									  CONFIDENCE_LIKELY,
			     .onset_ns = FACT_NONE, .host = s->host, .detail = detail,
			     .sentence = sentence };

	if (s->host)
		snprintf(detail, sizeof detail, "announced %.60s, answers by %.60s", s->announced, s->seen);
	else
		snprintf(detail, sizeof detail, "the routes of the two hosts prefer opposite interfaces");
	snprintf(link, sizeof link, "%.70s-%.70s", pair[0] ? pair[0] : s->host,
		 pair[0] ? pair[1] : s->peer && *s->peer ? s->peer : "others");
	f.link = link;
	snprintf(sentence, sizeof sentence,
		 "Answers of host %.60s leave by another way than announced (%s): they are dropped where reverse "
		 "paths are checked. %s", s->host ? s->host : pair[0], detail,
		 stands ? "Name one interface on all hosts, or give the routes the same order." :
			  "The job runs all the same.");
	f.evidence_json = "[{\"view\":\"record\",\"category\":\"net.accept\"},"
			  "{\"view\":\"record\",\"category\":\"net.route\"}]";
	f.rules_out_json = "[\"init.dataplane_blocked: connections come about\","
			   "\"init.wrong_interface: the announced addresses can be reached from outside\"]";
	return rules_tell(r, &f);
}

int route_look(struct rules *r)
{
	struct suspect s = { .n = 0 };
	const char *pair[2] = { NULL, NULL };
	struct standstill stand;
	enum onset onset;
	char seen[32];

	if (r->held || r->side.n_of_kind[SIDE_ACCEPT] + r->side.n_of_kind[SIDE_ROUTE] == 0)
		return 0;
	onset = onset_of(r, START_RETRY_NS, &stand);
	if (onset == ONSET_UNKNOWN || onset == ONSET_LATER_CALL ||
	    (r->once.n_route_seen == r->side.n && r->once.route_seen_as == (int)onset))
		return 0;
	r->once.n_route_seen = r->side.n;
	r->once.route_seen_as = (int)onset;
	hear_peers(r, &s);
	hear_routes(r, &s, seen);
	if ((!crossed(r, pair) && s.n == 0) ||
	    !once_tell(&r->once.route, r->life, onset != ONSET_RUNS))
		return 0;
	return tell(r, &s, pair, onset != ONSET_RUNS);
}
