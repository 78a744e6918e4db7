/* A clock bounded from one side at a time. Accuracy is sim_bracket's claim. */
#include "../../collector/align/bracket.h"
#include "unit.h"

#define SECOND INT64_C(1000000000)
#define GPU0 (INT64_C(1700000000) * SECOND)
#define HOST0 (INT64_C(5000) * SECOND)

static struct bracket make(int64_t step_ns)
{
	struct bracket_config cfg = bracket_defaults;
	struct bracket b;

	cfg.step_ns = step_ns;
	bracket_init(&b, &cfg);
	return b;
}

static enum bracket_outcome after(struct bracket *b, int64_t host, int64_t gpu)
{
	return bracket_after(b, HOST0 + host, GPU0 + gpu);
}

static enum bracket_outcome before(struct bracket *b, int64_t gpu, int64_t host)
{
	return bracket_before(b, GPU0 + gpu, HOST0 + host);
}

/* Relative to HOST0 - GPU0. */
static struct bracket_point map(const struct bracket *b, int64_t gpu)
{
	struct bracket_point p;

	bracket_map(b, GPU0 + gpu, &p);
	if (p.lo_ns != -BRACKET_UNBOUNDED)
		p.lo_ns -= HOST0 - GPU0;
	if (p.hi_ns != BRACKET_UNBOUNDED)
		p.hi_ns -= HOST0 - GPU0;
	p.offset_ns -= HOST0 - GPU0;
	return p;
}

static void a_launch_and_a_completion_are_a_bracket(void **state)
{
	struct bracket b = make(1);
	struct bracket_point p;

	assert_int_equal(map(&b, 0).status, BRACKET_NOTHING);
	/* Launched at 100, ran from 5100 to 6000, seen at 7000; true offset 0. */
	assert_int_equal(after(&b, 100, 5100), BRACKET_OK);
	p = map(&b, 5100);
	assert_int_equal(p.status, BRACKET_ONE_SIDED);
	assert_true(p.hi_ns == BRACKET_UNBOUNDED && p.soft_ns == BRACKET_UNBOUNDED);
	assert_in_range(-p.lo_ns, 5001, 5003);
	assert_int_equal(before(&b, 6000, 7000), BRACKET_OK);
	p = map(&b, 6000);
	assert_int_equal(p.status, BRACKET_BOTH);
	assert_in_range(-p.lo_ns, 5001, 5003);
	assert_in_range(p.hi_ns, 1000, 1002);
	assert_in_range(p.offset_ns + 2002, 0, 4);
	assert_in_range(p.soft_ns, 3000, 3004);
}

static void a_coarse_timer_is_older_than_the_event(void **state)
{
	struct bracket b = make(1000);

	after(&b, 100, 5000); /* anywhere up to 6000 */
	before(&b, 6000, 7000);
	assert_in_range(-map(&b, 5000).lo_ns, 5900, 5902);
	assert_in_range(map(&b, 6000).hi_ns, 1000, 1002);
}

static void an_unknown_rate_opens_by_its_most(void **state)
{
	struct bracket b = make(1);
	struct bracket_point p;

	after(&b, 0, 1000);
	before(&b, 1000, 2000);
	for (int sign = -1; sign <= 1; sign += 2) {
		p = map(&b, 1000 + sign * SECOND / 2);
		assert_in_range(p.hi_ns, 101000, 101003);
		assert_in_range(-p.lo_ns, 101001, 101004);
	}
}

static void a_known_rate_opens_by_little(void **state)
{
	struct bracket b = make(1);

	/* 20 ppm fast host, brackets of ±1 us. */
	for (int64_t k = 0; k < 30; k++) {
		after(&b, k * SECOND + k * 20000 - 1000, k * SECOND);
		before(&b, k * SECOND, k * SECOND + k * 20000 + 1000);
	}
	for (int64_t k = 5; k < 35; k++) {
		struct bracket_point p = map(&b, k * SECOND);

		assert_true(p.lo_ns <= k * 20000 && k * 20000 <= p.hi_ns);
		assert_true(p.hi_ns - p.lo_ns < 20000);
	}
}

static void one_impossible_event_is_refused_and_three_are_a_step(void **state)
{
	struct bracket b = make(1);

	for (int64_t k = 0; k < 5; k++) {
		after(&b, k * SECOND, k * SECOND + 1000);
		before(&b, k * SECOND + 2000, k * SECOND + 3000);
	}
	/* Launched 1 ms after it started? */
	assert_int_equal(after(&b, 4 * SECOND + 1010000, 4 * SECOND + 10000), BRACKET_REFUSED);
	assert_int_equal(map(&b, 4 * SECOND).status, BRACKET_UNDECIDED);
	assert_int_equal(after(&b, 4 * SECOND + 20000, 4 * SECOND + 21000), BRACKET_OK);
	assert_int_equal(map(&b, 4 * SECOND).status, BRACKET_BOTH);
	for (int64_t k = 1; k <= 3; k++)
		assert_int_equal(
			after(&b, 4 * SECOND + 1010000 + k * 10000, 4 * SECOND + 10000 + k * 10000),
			k < 3 ? BRACKET_REFUSED : BRACKET_STEPPED);
	assert_in_range(map(&b, 4 * SECOND + 40000).lo_ns, 999900, 1000000);
	assert_int_equal(b.n_restarts, 1);
	assert_int_equal(b.n_contradictions, 4);
}

static void what_cannot_be_is_refused(void **state)
{
	struct bracket b = make(1);
	struct bracket_point p;

	assert_int_equal(bracket_after(&b, INT64_MAX, 0), BRACKET_REFUSED);
	assert_int_equal(bracket_before(&b, INT64_MIN, 0), BRACKET_REFUSED);
	after(&b, 0, 1000);
	bracket_map(&b, INT64_MIN, &p);
	assert_int_equal(p.status, BRACKET_NOTHING);
	/* Long before everything that is kept. */
	for (int64_t k = 1; k < 200; k++)
		after(&b, k * SECOND, k * SECOND + 1000);
	assert_int_equal(after(&b, 0, 1000), BRACKET_REFUSED);
}

static void hostile_numbers_leave_bounds_in_order(void **state)
{
	static const int64_t worst[] = { INT64_MIN, -BRACKET_MAX_NS + 1, -1,	   0,
					 1,	    BRACKET_MAX_NS - 1,	 INT64_MAX };

	for (uint64_t seed = 1; seed <= 50; seed++) {
		struct bracket b = make(32);
		uint64_t rng = seed;

		for (int k = 0; k < 3000; k++) {
			int64_t v[2];
			struct bracket_point p;

			for (int i = 0; i < 2; i++)
				v[i] = unit_rand(&rng) % 3 ? (int64_t)(unit_rand(&rng) >>
								       (unit_rand(&rng) % 63))
							   : worst[unit_rand(&rng) % 7];
			if (unit_rand(&rng) % 2)
				bracket_after(&b, v[0], v[1]);
			else
				bracket_before(&b, v[0], v[1]);
			bracket_map(&b, v[0], &p);
			assert_true(p.lo_ns <= p.hi_ns);
			if (p.status >= BRACKET_UNDECIDED)
				assert_true(p.lo_ns <= p.offset_ns && p.offset_ns <= p.hi_ns);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_launch_and_a_completion_are_a_bracket),
		cmocka_unit_test(a_coarse_timer_is_older_than_the_event),
		cmocka_unit_test(an_unknown_rate_opens_by_its_most),
		cmocka_unit_test(a_known_rate_opens_by_little),
		cmocka_unit_test(one_impossible_event_is_refused_and_three_are_a_step),
		cmocka_unit_test(what_cannot_be_is_refused),
		cmocka_unit_test(hostile_numbers_leave_bounds_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
