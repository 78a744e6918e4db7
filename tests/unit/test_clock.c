#include "../../collector/align/clock.h"
#include "unit.h"

#include <stdio.h>

#define SEED UINT64_C(20260304)
#define N_SEEDS 400

static double unit(uint64_t *rng)
{
	return (double)(unit_rand(rng) >> 11) * 0x1p-53;
}

/* A host whose clock wanders within ±150 ppm of the fleet's, asked at 4 Hz over
 * paths that are slow, asymmetric and sometimes very late. */
struct world {
	uint64_t rng;
	int64_t fleet_ns, host_ns;
	double ppm;
};

static void pass(struct world *w, int64_t ns)
{
	while (ns > 0) {
		int64_t piece = ns < 50000000 ? ns : 50000000;

		w->fleet_ns += piece;
		w->host_ns += piece + (int64_t)((double)piece * w->ppm * 1e-6);
		w->ppm += 4 * (unit(&w->rng) - 0.5);
		w->ppm = w->ppm > 150 ? 150 : w->ppm < -150 ? -150 : w->ppm;
		ns -= piece;
	}
}

static int64_t path_ns(struct world *w)
{
	int64_t ns = 20000 + (int64_t)(unit(&w->rng) * 100000);

	return unit(&w->rng) < 0.2 ? ns * 50 : ns;
}

static enum clock_outcome ask(struct clock *c, struct world *w)
{
	host_time t0, t3;
	fleet_time t1, t2;

	t0.ns = w->host_ns;
	pass(w, path_ns(w));
	t1.ns = w->fleet_ns;
	pass(w, 5000);
	t2.ns = w->fleet_ns;
	pass(w, 3 * path_ns(w));
	t3.ns = w->host_ns;
	return clock_exchange(c, t0, t1, t2, t3);
}

static void the_truth_lies_within_the_bound(void **state)
{
	for (uint64_t seed = SEED; seed < SEED + N_SEEDS; seed++) {
		struct world w = { .rng = seed };
		host_time host[600];
		int64_t fleet[600];
		struct clock c;

		w.fleet_ns = INT64_C(1700000000000000000) + (int64_t)(unit_rand(&w.rng) >> 8);
		w.host_ns = (int64_t)(unit_rand(&w.rng) >> 14);
		w.ppm = 300 * (unit(&w.rng) - 0.5);
		clock_init(&c, false, 0);
		for (int i = 0; i < 600; i++) {
			if (i % 3 == 0 && ask(&c, &w) != CLOCK_OK)
				fail_msg("seed %llu: an honest exchange was refused",
					 (unsigned long long)seed);
			pass(&w, (int64_t)(unit(&w.rng) * 200000000));
			host[i].ns = w.host_ns;
			fleet[i] = w.fleet_ns;
			/* now, and everything before it in hindsight */
			for (int k = i % 50 == 49 ? 0 : i; k <= i; k++) {
				struct fleet_point at;

				assert_int_equal(clock_map(&c, host[k], &at), 0);
				if (at.at.ns - at.err_ns > fleet[k] || at.at.ns + at.err_ns < fleet[k])
					fail_msg("seed %llu: instant %d is off by %lld ns, bound %lld ns",
						 (unsigned long long)seed, k,
						 (long long)(at.at.ns - fleet[k]), (long long)at.err_ns);
			}
		}
	}
}

static void the_same_clock_is_exact(void **state)
{
	struct fleet_point at;
	struct clock c;

	clock_init(&c, true, 12345);
	assert_int_equal(clock_exchange(&c, (host_time){ 0 }, (fleet_time){ 7 }, (fleet_time){ 8 },
					(host_time){ 9 }),
			 CLOCK_OK);
	assert_int_equal(clock_map(&c, (host_time){ 1000 }, &at), 0);
	assert_int_equal(at.at.ns, 13345);
	assert_int_equal(at.err_ns, 0);
}

static void a_host_without_an_exchange_is_unbounded(void **state)
{
	struct fleet_point at;
	struct clock c;

	clock_init(&c, false, 500);
	assert_int_equal(clock_map(&c, (host_time){ 1000 }, &at), 1);
	assert_int_equal(at.at.ns, 1500);
	assert_true(at.err_ns == CLOCK_UNBOUNDED);
}

static void the_bound_grows_by_200_ppm(void **state)
{
	struct fleet_point near, far;
	struct clock c;

	clock_init(&c, false, 0);
	clock_exchange(&c, (host_time){ 1000 }, (fleet_time){ 51000 }, (fleet_time){ 51000 },
		       (host_time){ 1200 });
	clock_map(&c, (host_time){ 1200 }, &near);
	clock_map(&c, (host_time){ 1000000001200 }, &far);
	assert_int_equal(near.at.ns, 1200 + 49900);
	assert_in_range(near.err_ns, 100, 102);
	assert_in_range(far.err_ns - near.err_ns, 199999999, 200000001);
}

static void times_that_run_backwards_are_refused(void **state)
{
	static const int64_t bad[][4] = {
		{ 10, 5, 5, 9 },	      /* back before sent */
		{ 10, 9, 5, 20 },	      /* answered before asked */
		{ 10, 5, 50, 20 },	      /* took longer there than here */
		{ INT64_MIN, 0, 0, INT64_MAX }, /* nobody's clock */
		{ 0, INT64_MIN, INT64_MAX, 1 },
	};
	struct clock c;

	clock_init(&c, false, 0);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(clock_exchange(&c, (host_time){ bad[i][0] }, (fleet_time){ bad[i][1] },
						(fleet_time){ bad[i][2] }, (host_time){ bad[i][3] }),
				 CLOCK_REFUSED);
	assert_int_equal(c.n_refused, sizeof bad / sizeof *bad);
	assert_false(clock_is_aligned(&c));
}

static void a_step_of_the_clock_drops_what_was_known(void **state)
{
	struct fleet_point at;
	struct clock c;

	clock_init(&c, false, 0);
	for (int64_t t = 0; t < 20; t++)
		clock_exchange(&c, (host_time){ t * 1000000 }, (fleet_time){ t * 1000000 + 50 },
			       (fleet_time){ t * 1000000 + 50 }, (host_time){ t * 1000000 + 100 });
	assert_int_equal(clock_exchange(&c, (host_time){ 20000000 }, (fleet_time){ 90000050 },
					(fleet_time){ 90000050 }, (host_time){ 20000100 }),
			 CLOCK_STEPPED);
	clock_map(&c, (host_time){ 20000050 }, &at);
	assert_int_equal(at.at.ns, 90000050);
	assert_int_equal(c.n_contradictions, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_truth_lies_within_the_bound),
		cmocka_unit_test(the_same_clock_is_exact),
		cmocka_unit_test(a_host_without_an_exchange_is_unbounded),
		cmocka_unit_test(the_bound_grows_by_200_ppm),
		cmocka_unit_test(times_that_run_backwards_are_refused),
		cmocka_unit_test(a_step_of_the_clock_drops_what_was_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
