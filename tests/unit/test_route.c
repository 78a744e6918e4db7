/* route.h: hostile addresses are named, never believed. */
#include "unit.h"

#include "route.h"

#include <string.h>

static enum route_outcome parse(const char *uri, struct route_request *ret)
{
	return route_parse(uri, strlen(uri), ret);
}

static void every_plain_path_has_its_route(void **state)
{
	static const struct {
		const char *uri;
		enum route route;
	} cases[] = {
		{ "/api/v1/boot", ROUTE_BOOT },		{ "/api/v1/run", ROUTE_RUN },
		{ "/api/v1/ranks", ROUTE_RANKS },	{ "/api/v1/findings", ROUTE_FINDINGS },
		{ "/api/v1/steps", ROUTE_STEPS },	{ "/api/v1/step/7", ROUTE_STEP },
		{ "/api/v1/clocks/history", ROUTE_CLOCK_HISTORY },
		{ "/api/v1/clocks/steps", ROUTE_CLOCK_STEPS },
		{ "/api/v1/clocks", ROUTE_CLOCKS },	{ "/api/v1/drops", ROUTE_DROPS },
		{ "/api/v1/logs", ROUTE_LOGS },		{ "/api/v1/events", ROUTE_EVENTS },
		{ "/api/v1/since", ROUTE_SINCE },	{ "/api/v1/login", ROUTE_LOGIN },
		{ "/healthz", ROUTE_HEALTHZ },		{ "/readyz", ROUTE_READYZ },
		{ "/metrics", ROUTE_METRICS },		{ "/", ROUTE_FILE },
		{ "/assets/x.js", ROUTE_FILE },		{ "/%61pi/v1/%62oot?x", ROUTE_BOOT },
	};
	struct route_request r;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(parse(cases[i].uri, &r), ROUTE_OK);
		assert_int_equal(r.route, cases[i].route);
	}
	assert_int_equal(parse("/", &r), ROUTE_OK);
	assert_string_equal(r.path, "index.html");
	assert_int_equal(parse("/a%20b", &r), ROUTE_OK);
	assert_string_equal(r.path, "a b");
}

static void a_tile_is_its_seven_numbers(void **state)
{
	struct route_request r;

	assert_int_equal(parse("/api/v1/heat/bwd/raw/min/3-2/17/5?rev=9&metric=self", &r), ROUTE_OK);
	assert_int_equal(r.route, ROUTE_TILE);
	assert_int_equal(r.key.metric, HEAT_BWD);
	assert_int_equal(r.key.baseline, HEAT_RAW);
	assert_int_equal(r.key.agg, HEAT_MIN);
	assert_int_equal(r.key.zs, 3);
	assert_int_equal(r.key.zr, 2);
	assert_int_equal(r.key.x, 17);
	assert_int_equal(r.key.y, 5);
	assert_int_equal(r.rev, 9);
}

static void no_tile_starts_past_the_last_step_or_rank(void **state)
{
	static const char *const bad[] = {
		"/api/v1/heat/self/peers/max/0-0/16777216/0", "/api/v1/heat/self/peers/max/1-0/8388608/0",
		"/api/v1/heat/self/peers/max/24-0/1/0",	      "/api/v1/heat/self/peers/max/0-0/0/256",
		"/api/v1/heat/self/peers/max/0-24/0/1",	      "/api/v1/heat/self/peers/max/25-0/0/0",
		"/api/v1/heat/self/peers/max/0-25/0/0",	      "/api/v1/heat/self/peers/max/00/0/0",
		"/api/v1/heat/self/peers/max/-/0/0",	      "/api/v1/heat/self/peers/max/0-0/-1/0",
		"/api/v1/heat/self/peers/max/0-0/0/+0",	      "/api/v1/heat/self/peers/max/0-0//0",
		"/api/v1/heat/self/peers/max/0-0/0",	      "/api/v1/heat/self/peers/max",
		"/api/v1/heat/self/peers/MAX/0-0/0/0",	      "/api/v1/heat/selfish/peers/max/0-0/0/0",
	};
	struct route_request r;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(parse(bad[i], &r), ROUTE_BAD_VALUE);
		assert_non_null(r.bad);
	}
	assert_int_equal(parse("/api/v1/heat/self/peers/max/0-0/16777215/255", &r), ROUTE_OK);
	assert_int_equal(parse("/api/v1/heat/self/peers/max/24-8/0/0", &r), ROUTE_OK);
}

static void numbers_are_digits_within_their_range(void **state)
{
	static const char *const bad[] = {
		"/api/v1/step/", "/api/v1/step/4294967295", "/api/v1/step/0x1", "/api/v1/step/1e3",
		"/api/v1/step/99999999999999999999999", "/api/v1/step/ 1", "/api/v1/steps?from=-1",
		"/api/v1/steps?from=18446744073709551616", "/api/v1/steps?from=2&to=1",
		"/api/v1/logs?limit=1001", "/api/v1/since?cursor=9223372036854775808",
		"/api/v1/cell?step=1&rank=65536",
		"/api/v1/logs?limit=0000000000000000000000000000000000000000000000000000000000000000000001",
	};
	struct route_request r;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(parse(bad[i], &r), ROUTE_BAD_VALUE);
	assert_int_equal(parse("/api/v1/step/4294967294", &r), ROUTE_OK);
	assert_int_equal(r.step, 4294967294u);
	assert_int_equal(parse("/api/v1/steps?from=&to=+", &r), ROUTE_BAD_VALUE);
	assert_int_equal(parse("/api/v1/steps?from=&to&&=&=x&y", &r), ROUTE_OK);
}

static void an_answer_of_columns_is_bounded(void **state)
{
	struct route_request r;

	assert_int_equal(parse("/api/v1/heat/cols?from=0&to=2047&rows=2048", &r), ROUTE_OK);
	assert_int_equal(parse("/api/v1/heat/cols?from=0&to=2047&rows=2049", &r), ROUTE_BAD_VALUE);
	assert_int_equal(parse("/api/v1/heat/cols?from=0&to=2048&rows=1", &r), ROUTE_BAD_VALUE);
	assert_int_equal(parse("/api/v1/heat/cols?from=0&to=4294967294&rows=1", &r), ROUTE_BAD_VALUE);
	assert_int_equal(parse("/api/v1/heat/cols?from=0&to=1&rows=4097", &r), ROUTE_BAD_VALUE);
	assert_int_equal(parse("/api/v1/heat/cols?from=0&to=1", &r), ROUTE_MISSING);
	assert_string_equal(r.bad, "rows");
	assert_int_equal(parse("/api/v1/cell?rank=1", &r), ROUTE_MISSING);
	assert_string_equal(r.bad, "step");
}

static void what_is_not_there_is_unknown(void **state)
{
	static const char *const bad[] = { "", "*", "x", "http://a/", "?", "/api/v1/", "/api/v1/boot/",
					   "/api/v1/heat", "/api/v1/heat/self/peers/max/0-0/0/0/" };
	char long_path[600] = "/";
	struct route_request r;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(parse(bad[i], &r), ROUTE_UNKNOWN);
	memset(long_path + 1, 'a', sizeof long_path - 2);
	assert_int_equal(parse(long_path, &r), ROUTE_UNKNOWN);
}

static void broken_escapes_are_refused(void **state)
{
	static const char *const bad[] = { "/%", "/%4", "/%zz", "/%00", "/a%0", "/api/v1/steps?from=%",
					   "/api/v1/steps?%4=1" };
	struct route_request r;
	char out[4];
	size_t n;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(parse(bad[i], &r), ROUTE_BAD_ESCAPE);
	assert_int_equal(url_decode("%41b+", 5, true, out, sizeof out, &n), ROUTE_OK);
	assert_string_equal(out, "Ab ");
	assert_int_equal(url_decode("%41b+", 5, false, out, sizeof out, &n), ROUTE_OK);
	assert_string_equal(out, "Ab+");
	assert_int_equal(url_decode("abcd", 4, false, out, sizeof out, &n), ROUTE_TOO_LONG);
}

static void an_address_over_8_kb_is_too_long(void **state)
{
	static char uri[ROUTE_MAX_URI + 1] = "/api/v1/boot?";
	struct route_request r;

	memset(uri + 13, 'x', sizeof uri - 13);
	assert_int_equal(route_parse(uri, ROUTE_MAX_URI, &r), ROUTE_OK);
	assert_int_equal(route_parse(uri, ROUTE_MAX_URI + 1, &r), ROUTE_TOO_LONG);
}

static void encoding_is_cut_at_a_whole_character(void **state)
{
	char out[8];

	assert_int_equal(url_encode("a b", 3, out, sizeof out), 5);
	assert_string_equal(out, "a%20b");
	assert_int_equal(url_encode("abcdef\n", 7, out, sizeof out), 6);
	assert_string_equal(out, "abcdef");
	assert_int_equal(url_encode("\n\n\n", 3, out, sizeof out), 6);
	assert_string_equal(out, "%0A%0A");
}

static void only_our_own_names_are_hosts(void **state)
{
	static const char *const ours[] = { "dash.example", "10.1.2.3" };
	static const char *const good[] = { "localhost", "LocalHost:80", "127.0.0.1:1", "127.255.0.1",
					    "[::1]", "[::1]:80", "dash.example:443", "10.1.2.3:9" };
	static const char *const bad[] = { "", ":80", "[::1", "[::1]x", "evil", "localhost.evil",
					   "127.0.0.1.evil", "128.0.0.1", "10.1.2.4", "[::2]", "127.1",
					   "2130706433", "::1" };

	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		assert_true(host_allowed(good[i], ours, 2, false));
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(host_allowed(bad[i], ours, 2, false));
	assert_true(host_allowed("10.1.2.4:80", ours, 2, true));
	assert_true(host_allowed("[fe80::1]:80", ours, 2, true));
	assert_false(host_allowed("evil:80", ours, 2, true));
}

static void an_origin_must_be_the_host_itself(void **state)
{
	assert_true(origin_matches("http://localhost:80", "localhost:80"));
	assert_true(origin_matches("https://Dash.example", "dash.example"));
	assert_false(origin_matches("http://localhost:81", "localhost:80"));
	assert_false(origin_matches("http://localhost:80.evil", "localhost:80"));
	assert_false(origin_matches("null", "null"));
	assert_false(origin_matches("", ""));
}

static void a_token_is_equal_or_not(void **state)
{
	assert_true(token_equal("abc", "abc"));
	assert_false(token_equal("abd", "abc"));
	assert_false(token_equal("", "abc"));
	assert_false(token_equal("ab", "abc"));
	assert_false(token_equal("abcd", "abc"));
	assert_false(token_equal("abcabc", "abc"));
}

static void entity_tags_are_found_in_lists(void **state)
{
	assert_true(etag_listed("\"a\"", "\"a\""));
	assert_true(etag_listed("\"b\", W/\"a\"", "\"a\""));
	assert_true(etag_listed("*", "\"a\""));
	assert_false(etag_listed("", "\"a\""));
	assert_false(etag_listed("\"ab\", \"b\"", "\"a\""));
	assert_false(etag_listed("\"a\"b", "\"a\""));
}

static void gzip_is_used_only_when_it_is_allowed(void **state)
{
	assert_true(accepts_gzip("gzip"));
	assert_true(accepts_gzip("br, GZIP;q=0.5"));
	assert_true(accepts_gzip("deflate , *"));
	assert_false(accepts_gzip(""));
	assert_false(accepts_gzip("br"));
	assert_false(accepts_gzip("gzip;q=0"));
	assert_false(accepts_gzip("gzip; q=0.000, *"));
	assert_false(accepts_gzip("*;q=0"));
	assert_false(accepts_gzip("xgzip, gzipx"));
	assert_true(accepts_gzip(",,gzip"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_plain_path_has_its_route),
		cmocka_unit_test(a_tile_is_its_seven_numbers),
		cmocka_unit_test(no_tile_starts_past_the_last_step_or_rank),
		cmocka_unit_test(numbers_are_digits_within_their_range),
		cmocka_unit_test(an_answer_of_columns_is_bounded),
		cmocka_unit_test(what_is_not_there_is_unknown),
		cmocka_unit_test(broken_escapes_are_refused),
		cmocka_unit_test(an_address_over_8_kb_is_too_long),
		cmocka_unit_test(encoding_is_cut_at_a_whole_character),
		cmocka_unit_test(only_our_own_names_are_hosts),
		cmocka_unit_test(an_origin_must_be_the_host_itself),
		cmocka_unit_test(a_token_is_equal_or_not),
		cmocka_unit_test(entity_tags_are_found_in_lists),
		cmocka_unit_test(gzip_is_used_only_when_it_is_allowed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
