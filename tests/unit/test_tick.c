#include "../../agent/sidecar/tick.h"
#include "../../proto/shm.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

/* A simulated host: RAW is exact, the counter runs at a rate of its own. */
struct host {
	double ticks_per_ns;
	uint64_t first_tick;
};

static uint64_t ticks_at(const struct host *h, int64_t raw_ns)
{
	return h->first_tick + (uint64_t)((double)raw_ns * h->ticks_per_ns);
}

/* A pair whose midpoint is wrong by anything its bracket allows. */
static struct tick_pair pair_at(const struct host *h, int64_t raw_ns, int64_t err_ns, uint64_t *rng)
{
	int64_t off = (int64_t)(unit_rand(rng) % (uint64_t)(2 * err_ns + 1)) - err_ns;

	return (struct tick_pair){ .tick = ticks_at(h, raw_ns + off), .raw_ns = raw_ns,
				   .err_ns = err_ns + (int64_t)(1 / h->ticks_per_ns) + 1 };
}

static void check_host(uint64_t seed, double ghz, int64_t max_err_ns)
{
	struct host h = { ghz, seed % 3 == 0 ? UINT64_MAX - 1000000000 : seed << 40 };
	struct tick t;
	uint64_t rng = seed;
	int64_t last_ns = INT64_MIN, at_ns = 1000000;

	tick_init(&t, SHM_TICK_TSC);
	for (int i = 0; i < 120; i++) {
		int64_t err_ns = 20 + (int64_t)(unit_rand(&rng) % (uint64_t)max_err_ns);
		int64_t next_ns = at_ns + (i == 0 ? 20000000 : 1000000000 + (int64_t)(unit_rand(&rng) %
										   400000000));
		struct tick_pair p = pair_at(&h, at_ns, err_ns, &rng);

		tick_add_pair(&t, &p);
		for (int k = 0; tick_ready(&t) && k < 50; k++) {
			int64_t truth_ns = at_ns + (next_ns - at_ns) * k / 50;
			uint64_t tick = ticks_at(&h, truth_ns);
			int64_t ns = tick_to_ns(&t, tick), bound_ns = tick_error_ns(&t, tick);

			if (llabs(ns - truth_ns) > bound_ns || ns < last_ns) {
				fprintf(stderr,
					"seed=%llu ghz=%g pair %d: off by %lld, said %lld; %lld before\n",
					(unsigned long long)seed, ghz, i, (long long)(ns - truth_ns),
					(long long)bound_ns, (long long)(last_ns - ns));
				fail();
			}
			last_ns = ns;
		}
		at_ns = next_ns;
	}
}

static void the_truth_lies_inside_the_bound_and_time_rises(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		check_host(seed, 2.1, 60);
		check_host(seed, 0.024, 100); /* a slow arm64 counter */
		check_host(seed, 5.0, 20000); /* brackets that a hypervisor tore open */
	}
}

/* As the agent does it: the first pairs know their brackets in ticks alone, and the
 * next one is due when the line says so. The bound holds and stays small. */
static void the_first_seconds_are_as_good_as_their_brackets(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct host h = { seed % 2 ? 2.9 : 1.0, seed << 40 };
		struct tick t;
		uint64_t rng = seed;
		int64_t at_ns = 1000000;

		tick_init(&t, SHM_TICK_TSC);
		for (int i = 0; i < 16; i++) {
			struct tick_pair p = pair_at(&h, at_ns, 25, &rng);
			int64_t next_ns;

			p.err_ticks = (uint64_t)(26 * h.ticks_per_ns) + 1;
			if (!tick_ready(&t))
				p.err_ns = 1;
			tick_add_pair(&t, &p);
			next_ns = at_ns + tick_next_pair_ns(&t) * 5 / 4;
			for (int k = 0; tick_ready(&t) && k < 50; k++) {
				int64_t truth_ns = at_ns + (next_ns - at_ns) * k / 50;
				uint64_t tick = ticks_at(&h, truth_ns);
				int64_t bound_ns = tick_error_ns(&t, tick);

				assert_true(llabs(tick_to_ns(&t, tick) - truth_ns) <= bound_ns);
				assert_true(bound_ns < 300);
			}
			at_ns = next_ns;
		}
	}
}

static void an_event_keeps_its_time_whenever_it_is_converted(void **state)
{
	struct host h = { 2.1, 77 };
	struct tick t;
	uint64_t rng = 5;
	int64_t at_early_ns;

	(void)state;
	tick_init(&t, SHM_TICK_TSC);
	for (int64_t s = 1; s <= 10; s++) {
		struct tick_pair p = pair_at(&h, s * 1000000000, 50, &rng);

		tick_add_pair(&t, &p);
	}
	at_early_ns = tick_to_ns(&t, ticks_at(&h, 9500000000));
	for (int64_t s = 11; s <= 20; s++) {
		struct tick_pair p = pair_at(&h, s * 1000000000, 50, &rng);

		tick_add_pair(&t, &p);
		assert_int_equal(tick_to_ns(&t, ticks_at(&h, 9500000000)), at_early_ns);
	}
}

static void a_suspended_host_begins_a_new_line(void **state)
{
	struct host h = { 2.0, 1 };
	struct tick t;
	uint64_t rng = 9;

	(void)state;
	tick_init(&t, SHM_TICK_TSC);
	for (int64_t s = 1; s <= 5; s++) {
		struct tick_pair p = pair_at(&h, s * 1000000000, 30, &rng);

		tick_add_pair(&t, &p);
	}
	h.first_tick -= 2000000000; /* the counter stood still for a second */
	for (int64_t s = 6; s <= 9; s++) {
		struct tick_pair p = pair_at(&h, s * 1000000000, 30, &rng);

		tick_add_pair(&t, &p);
	}
	assert_int_equal(t.n_jumps, 1);
	assert_true(llabs(tick_to_ns(&t, ticks_at(&h, 9400000000)) - 9400000000) <=
		    tick_error_ns(&t, ticks_at(&h, 9400000000)));
}

static void raw_ticks_are_left_alone(void **state)
{
	struct tick t;

	(void)state;
	tick_init(&t, SHM_TICK_RAW);
	assert_true(tick_ready(&t));
	assert_int_equal(tick_to_ns(&t, 123456789), 123456789);
	assert_int_equal(tick_error_ns(&t, 123456789), 0);
	assert_true(tick_to_ns(&t, UINT64_MAX) > 0);
}

static void any_tick_gives_some_time(void **state)
{
	struct host h = { 2.1, 1000 };
	struct tick t;
	uint64_t rng = 3;

	(void)state;
	tick_init(&t, SHM_TICK_TSC);
	for (int64_t s = 1; s <= 3; s++) {
		struct tick_pair p = pair_at(&h, s * 1000000000, 30, &rng);

		tick_add_pair(&t, &p);
	}
	for (int i = 0; i < 100000; i++) { /* the sanitizers say if one overflows */
		uint64_t tick = unit_rand(&rng) >> (unit_rand(&rng) % 64);

		(void)tick_to_ns(&t, tick);
		assert_true(tick_error_ns(&t, tick) >= 0);
		(void)tick_to_ns(&t, ~tick);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_truth_lies_inside_the_bound_and_time_rises),
		cmocka_unit_test(the_first_seconds_are_as_good_as_their_brackets),
		cmocka_unit_test(an_event_keeps_its_time_whenever_it_is_converted),
		cmocka_unit_test(a_suspended_host_begins_a_new_line),
		cmocka_unit_test(raw_ticks_are_left_alone),
		cmocka_unit_test(any_tick_gives_some_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
