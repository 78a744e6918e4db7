/* Readings over time: what is kept of them, and what is let go. */
#include "unit.h"

#include "../../collector/verdict/gauges.h"

#include <math.h>
#include <stdio.h>

static const struct gauge_of rank_0 = { 0, 0 };

static void note(struct gauges *g, const struct gauge_of *of, const char *name, int64_t i, double value)
{
	assert_int_equal(gauges_note(g, of, name,
				     &(struct gauge_sample){ .at_ns = i, .now_ns = i,
							     .step = (uint32_t)i, .value = value }), 0);
}

static void a_long_series_is_thinned_evenly_and_keeps_its_ends(void **state)
{
	const int64_t n = 100000;
	const struct gauge_series *s;
	struct gauges g = { 0 };

	(void)state;
	for (int64_t i = 0; i < n; i++)
		note(&g, &rank_0, "x", i, (double)i);
	s = gauges_find(&g, &rank_0, "x");
	assert_non_null(s);
	assert_int_equal(s->n_seen, n);
	assert_true(s->n >= GAUGE_KEEP / 2 && s->n <= GAUGE_KEEP);
	assert_int_equal(s->v[0].at_ns, 0);
	for (uint32_t i = 1; i < s->n; i++) {
		int64_t gap = s->v[i].at_ns - s->v[i - 1].at_ns;

		assert_true(gap == s->every);
	}
	assert_true(n - 1 - s->v[s->n - 1].at_ns <= s->every);
	assert_true(s->first.value == 0 && s->last.value == (double)(n - 1));
	gauges_fini(&g);
}

static void the_extremes_are_those_of_all_readings(void **state)
{
	struct gauges g = { 0 };
	const struct gauge_series *s;

	(void)state;
	for (int64_t i = 0; i < 5000; i++)
		note(&g, &rank_0, "x", i, i == 777 ? 1e9 : i == 1333 ? -1e9 : 5);
	s = gauges_find(&g, &rank_0, "x");
	assert_true(s->high.value == 1e9 && s->high.at_ns == 777);
	assert_true(s->low.value == -1e9 && s->low.at_ns == 1333);
	gauges_fini(&g);
}

static void series_of_hosts_processes_and_names_are_apart(void **state)
{
	struct gauges g = { 0 };
	char name[16];

	(void)state;
	for (uint32_t host = 0; host < 5; host++)
		for (uint32_t proc = 0; proc < 40; proc++)
			for (int k = 0; k < 3; k++) {
				const struct gauge_of of = { host, proc == 39 ? GAUGE_OF_HOST : proc };

				snprintf(name, sizeof name, "g%d", k);
				note(&g, &of, name, 0, host * 1000 + proc + k / 10.0);
			}
	assert_int_equal(g.n, 5 * 40 * 3);
	for (uint32_t host = 0; host < 5; host++)
		for (uint32_t proc = 0; proc < 40; proc++) {
			const struct gauge_of of = { host, proc == 39 ? GAUGE_OF_HOST : proc };

			assert_true(gauges_find(&g, &of, "g2")->last.value ==
				    host * 1000 + proc + 2 / 10.0);
		}
	assert_null(gauges_find(&g, &rank_0, "g3"));
	assert_null(gauges_find(&g, &(struct gauge_of){ 5, 0 }, "g0"));
	gauges_fini(&g);
}

static void nothing_is_found_where_nothing_was_read(void **state)
{
	struct gauges g = { 0 };

	(void)state;
	assert_null(gauges_find(&g, &rank_0, "x"));
	gauges_fini(&g);
}

static void what_is_not_finite_is_counted_and_let_go(void **state)
{
	static const double bad[] = { (double)NAN, (double)INFINITY, -(double)INFINITY };
	struct gauges g = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		note(&g, &rank_0, "x", 0, bad[i]);
	assert_int_equal(g.n_dropped, 3);
	assert_null(gauges_find(&g, &rank_0, "x"));
	gauges_fini(&g);
}

static void strangers_names_and_series_are_limited(void **state)
{
	struct gauges g = { 0 };
	char name[16];

	(void)state;
	for (int i = 0; i < 400; i++) {
		snprintf(name, sizeof name, "n%d", i);
		note(&g, &rank_0, name, 0, 1);
	}
	assert_int_equal(g.n_names, 256);
	assert_int_equal(g.n_dropped, 400 - 256);
	for (uint32_t i = 1; i < 20000; i++)
		note(&g, &(struct gauge_of){ 0, i }, "n0", 0, 1);
	assert_int_equal(g.n, 16384);
	assert_non_null(gauges_find(&g, &(struct gauge_of){ 0, 100 }, "n0"));
	assert_null(gauges_find(&g, &(struct gauge_of){ 0, 19999 }, "n0"));
	gauges_fini(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_long_series_is_thinned_evenly_and_keeps_its_ends),
		cmocka_unit_test(the_extremes_are_those_of_all_readings),
		cmocka_unit_test(series_of_hosts_processes_and_names_are_apart),
		cmocka_unit_test(nothing_is_found_where_nothing_was_read),
		cmocka_unit_test(what_is_not_finite_is_counted_and_let_go),
		cmocka_unit_test(strangers_names_and_series_are_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
