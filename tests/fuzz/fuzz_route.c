/* Any bytes as a request target and as header values. What route_parse() accepts
 * is in range; decoding never grows and encode(decode(x)) is its own fixed point. */
#include "../../collector/serve/route.h"

#include <stdlib.h>
#include <string.h>

#define CHECK(claim)             \
	do {                     \
		if (!(claim))    \
			abort(); \
	} while (0)

static void check_request(const struct route_request *r, enum route_outcome o)
{
	if (o == ROUTE_BAD_VALUE || o == ROUTE_MISSING)
		CHECK(r->bad && r->bad[0]);
	if (o != ROUTE_OK)
		return;
	CHECK(memchr(r->path, '\0', sizeof r->path));
	CHECK(r->key.metric < HEAT_N_METRICS && r->key.baseline < HEAT_N_BASELINES &&
	      r->key.agg < HEAT_N_AGGS);
	switch (r->route) {
	case ROUTE_TILE:
		CHECK(r->key.zs <= ROUTE_MAX_ZOOM && r->key.zr <= ROUTE_MAX_ZOOM);
		CHECK((uint64_t)r->key.x << (8 + r->key.zs) <= UINT32_MAX);
		CHECK((uint64_t)r->key.y << (8 + r->key.zr) < FACT_MAX_RANKS);
		break;
	case ROUTE_COLS:
		CHECK(r->from <= r->to && r->to < UINT32_MAX && r->rows > 0);
		CHECK(((uint64_t)r->to - r->from + 1) * r->rows <= ROUTE_MAX_CELLS);
		break;
	case ROUTE_CELL:
		CHECK(r->rank >= 0 && r->rank < FACT_MAX_RANKS && r->step < UINT32_MAX);
		break;
	case ROUTE_STEP:
		CHECK(r->step < UINT32_MAX);
		break;
	case ROUTE_STEPS:
		CHECK(r->from <= r->to);
		break;
	case ROUTE_LOGS:
		CHECK(r->limit <= ROUTE_MAX_LOGS);
		break;
	case ROUTE_FILE:
		CHECK(r->path[0]);
		break;
	case ROUTE_BOOT:
	case ROUTE_RUN:
	case ROUTE_RANKS:
	case ROUTE_FINDINGS:
	case ROUTE_CLOCKS:
	case ROUTE_CLOCK_HISTORY:
	case ROUTE_CLOCK_STEPS:
	case ROUTE_DROPS:
	case ROUTE_EVENTS:
	case ROUTE_SINCE:
	case ROUTE_LOGIN:
	case ROUTE_HEALTHZ:
	case ROUTE_READYZ:
	case ROUTE_METRICS:
		CHECK(r->cursor <= INT64_MAX && r->rev <= INT64_MAX);
		break;
	}
}

static void check_codec(const char *text, size_t n, bool query)
{
	char *plain = malloc(n + 1), *wire = malloc(3 * n + 1), *again = malloc(n + 1),
	     *wire2 = malloc(3 * n + 1);
	size_t n_plain, n_wire, n_again, n_wire2;

	CHECK(plain && wire && again && wire2);
	if (url_decode(text, n, query, plain, n + 1, &n_plain) == ROUTE_OK) {
		CHECK(n_plain <= n && plain[n_plain] == '\0' && strlen(plain) == n_plain);
		n_wire = url_encode(plain, n_plain, wire, 3 * n + 1);
		CHECK(n_wire <= 3 * n_plain && wire[n_wire] == '\0');
		CHECK(url_decode(wire, n_wire, query, again, n + 1, &n_again) == ROUTE_OK);
		CHECK(n_again == n_plain && memcmp(again, plain, n_plain) == 0);
		n_wire2 = url_encode(again, n_again, wire2, 3 * n + 1);
		CHECK(n_wire2 == n_wire && memcmp(wire2, wire, n_wire) == 0);
	}
	free(plain);
	free(wire);
	free(again);
	free(wire2);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
	static const char *const ours[] = { "dash.example" };
	char small[4], *text = malloc(n + 1);
	struct route_request r;
	size_t n_small;

	CHECK(text);
	memcpy(text, data, n);
	text[n] = '\0';
	check_request(&r, route_parse(text, n, &r));
	check_codec(text, n, false);
	check_codec(text, n, true);
	(void)url_decode(text, n, true, small, sizeof small, &n_small);
	CHECK(url_encode(text, n, small, sizeof small) < sizeof small);
	(void)host_allowed(text, ours, 1, true);
	(void)origin_matches(text, "localhost");
	(void)accepts_gzip(text);
	(void)etag_listed(text, "\"a\"");
	CHECK(token_equal(text, text));
	CHECK(!token_equal("", "x"));
	free(text);
	return 0;
}
