#include "../../collector/align/clock.h"
#include "unit.h"

#include <stdio.h>

#define SEED UINT64_C(20260304)
#define N_SEEDS 400

static double unit(uint64_t *rng)
{
	return (double)(unit_rand(rng) >> 11) * 0x1p-53;
}

/* A host whose clock is up to 150 ppm off and wanders by the hundredth of it, asked
 * at 4 Hz over paths that are slow, asymmetric and sometimes very late. */
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
		w->ppm += 0.01 * (unit(&w->rng) - 0.5);
		ns -= piece;
	}
}

static int64_t path_ns(struct world *w)
{
	int64_t ns = 20000 + (int64_t)(unit(&w->rng) * 100000);

	return unit(&w->rng) < 0.2 ? ns * 50 : ns;
}

static int ask(struct clock *c, struct world *w)
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
	unsigned n_steps = 0;

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
			if (i % 3 == 0) {
				int r = ask(&c, &w);

				assert_int_not_equal(r, CLOCK_REFUSED);
				n_steps += r == CLOCK_STEPPED;
			}
			pass(&w, (int64_t)(unit(&w.rng) * 200000000));
			host[i].ns = w.host_ns;
			fleet[i] = w.fleet_ns;
			/* now, and everything before it in hindsight */
			for (int k = i % 50 == 49 ? 0 : i; k <= i; k++) {
				struct fleet_point at;

				assert_int_equal(clock_map(&c, host[k], &at), 0);
				if (at.at.ns - at.err_ns > fleet[k] || at.at.ns + at.err_ns < fleet[k])
					fail_msg("seed %llu: instant %d (asked at %d, status %d) is off by %lld ns, bound %lld ns",
						 (unsigned long long)seed, k, i, (int)at.status,
						 (long long)(at.at.ns - fleet[k]), (long long)at.err_ns);
			}
		}
		clock_fini(&c);
	}
	/* The jitter is twice the floor: once in an hour it looks like a step. */
	assert_in_range(n_steps, 0, 8);
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

static void ask_evenly(struct clock *c, int64_t from_s, int64_t to_s, int64_t offset_ns)
{
	for (int64_t t = from_s * 1000000000; t < to_s * 1000000000; t += 100000000)
		clock_exchange(c, (host_time){ t }, (fleet_time){ t + offset_ns + 50000 },
			       (fleet_time){ t + offset_ns + 50000 }, (host_time){ t + 100000 });
}

static void both_errors_grow_where_nobody_looks(void **state)
{
	struct fleet_point near, far;
	struct clock c;

	clock_init(&c, false, 0);
	ask_evenly(&c, 0, 60, 7000);
	clock_map(&c, (host_time){ INT64_C(60000000000) }, &near);
	clock_map(&c, (host_time){ INT64_C(660000000000) }, &far);
	assert_int_equal(near.at.ns, INT64_C(60000000000) + 7000);
	assert_in_range(near.err_ns, 50000, 51000);
	assert_true(near.soft_ns < near.err_ns);
	assert_true(far.err_ns > near.err_ns + 600 * 1000); /* 1 ppm at the least */
	assert_true(far.soft_ns > near.soft_ns);
	assert_int_equal(near.status, FLEET_ANCHORED);
	assert_int_equal(far.status, FLEET_COASTING);
	clock_fini(&c);
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
	assert_false(clock_is_aligned(&c));
	clock_fini(&c);
}

static void around_a_step_nothing_is_decided(void **state)
{
	struct fleet_point before, in, after;
	struct clock c;

	clock_init(&c, false, 0);
	ask_evenly(&c, 0, 30, 0);
	ask_evenly(&c, 30, 60, 90000000);
	clock_map(&c, (host_time){ INT64_C(29500000000) }, &before);
	clock_map(&c, (host_time){ INT64_C(29950000000) }, &in);
	clock_map(&c, (host_time){ INT64_C(31000000000) }, &after);
	assert_int_equal(before.at.ns, INT64_C(29500000000));
	assert_int_equal(after.at.ns, INT64_C(31000000000) + 90000000);
	assert_true(clock_decides(before.status));
	assert_false(clock_decides(in.status));
	assert_true(clock_decides(after.status));
	clock_fini(&c);
}

static void one_line_keeps_the_order_of_a_host(void **state)
{
	struct world w = { .rng = SEED, .fleet_ns = INT64_C(1700000000000000000), .ppm = -140 };
	struct clock_line line;
	struct fleet_point last, at;
	struct clock c;

	clock_init(&c, false, 0);
	for (int i = 0; i < 300; i++) {
		ask(&c, &w);
		pass(&w, 200000000);
	}
	line = clock_choose(&c, (host_time){ w.host_ns - INT64_C(5000000000) });
	clock_place(&c, &line, (host_time){ w.host_ns - INT64_C(30000000000) }, &last);
	for (int i = 0; i < 100000; i++) {
		int64_t t = w.host_ns - INT64_C(30000000000) + i * INT64_C(400000) + (i & 1);

		clock_place(&c, &line, (host_time){ t }, &at);
		assert_true(at.at.ns >= last.at.ns);
		last = at;
	}
	clock_fini(&c);
}

static void a_view_tells_the_rate(void **state)
{
	struct clock_view v;
	struct clock c;

	clock_init(&c, false, 5);
	clock_view(&c, (host_time){ 0 }, &v);
	assert_true(v.hi_ns == CLOCK_UNBOUNDED && v.lo_ns == -CLOCK_UNBOUNDED);
	assert_int_equal(v.offset_ns, 5);
	ask_evenly(&c, 0, 60, 7000);
	clock_view(&c, (host_time){ INT64_C(50000000000) }, &v);
	assert_int_equal(v.offset_ns, 7000);
	assert_in_range(v.hi_ns, 57000, 57200);
	assert_in_range(v.lo_ns + 1000000, 1000000 - 43200, 1000000 - 43000);
	assert_true(v.rate < 1e-8 && v.rate > -1e-8);
	assert_true(v.rate_bound >= 1e-6 && v.rate_bound < 3e-6);
	clock_fini(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_truth_lies_within_the_bound),
		cmocka_unit_test(the_same_clock_is_exact),
		cmocka_unit_test(a_host_without_an_exchange_is_unbounded),
		cmocka_unit_test(both_errors_grow_where_nobody_looks),
		cmocka_unit_test(times_that_run_backwards_are_refused),
		cmocka_unit_test(around_a_step_nothing_is_decided),
		cmocka_unit_test(one_line_keeps_the_order_of_a_host),
		cmocka_unit_test(a_view_tells_the_rate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
