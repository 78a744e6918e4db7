/* Display repair: every order that can be made is made, inside the bars, and
 * nothing moves that need not. */
#include "../../collector/align/repair.h"
#include "unit.h"

#include <stdbool.h>
#include <stdlib.h>

#define N_SEEDS 4000

static bool holds(const int64_t *slack, size_t n, const int64_t *h)
{
	for (size_t a = 0; a < n; a++)
		for (size_t b = 0; b < n; b++)
			if (a != b && slack[a * n + b] != REPAIR_FREE &&
			    h[b] - h[a] > slack[a * n + b])
				return false;
	return true;
}

static void what_is_in_order_stays(void **state)
{
	int64_t slack[9], soft[] = { 100, 100, 100 }, scratch[12], h[3];
	int64_t enter[] = { 10, 20, 30 }, exit[] = { 40, 41, 30 };

	repair_start(slack, 3);
	repair_call(slack, 3, enter, exit);
	assert_int_equal(repair(slack, 3, soft, scratch, h), REPAIR_NOT_NEEDED);
	for (int i = 0; i < 3; i++)
		assert_int_equal(h[i], 0);
}

static void both_sides_move_half_and_others_not(void **state)
{
	/* 0 left at 100, 1 entered at 110; 2 has room. */
	int64_t slack[9], soft[] = { 50, 50, 50 }, scratch[12], h[3];
	int64_t enter[] = { 10, 110, 30 }, exit[] = { 100, 150, 150 };

	repair_start(slack, 3);
	repair_call(slack, 3, enter, exit);
	assert_int_equal(repair(slack, 3, soft, scratch, h), REPAIR_DONE);
	assert_int_equal(h[0], 5);
	assert_int_equal(h[1], -5);
	assert_int_equal(h[2], 0);
}

static void a_sure_side_lets_the_other_move(void **state)
{
	int64_t slack[4], soft[] = { 1, 50 }, scratch[8], h[2];
	int64_t enter[] = { 10, 110 }, exit[] = { 100, 150 };

	repair_start(slack, 2);
	repair_call(slack, 2, enter, exit);
	assert_int_equal(repair(slack, 2, soft, scratch, h), REPAIR_DONE);
	assert_true(h[0] >= 0 && h[0] <= 1);
	assert_true(holds(slack, 2, h));
}

static void what_the_bars_forbid_is_left_alone(void **state)
{
	int64_t slack[4], soft[] = { 4, 5 }, scratch[8], h[2];
	int64_t enter[] = { 10, 110 }, exit[] = { 100, 150 };

	repair_start(slack, 2);
	repair_call(slack, 2, enter, exit);
	assert_int_equal(repair(slack, 2, soft, scratch, h), REPAIR_IMPOSSIBLE);
	assert_int_equal(h[0], 0);
	assert_int_equal(h[1], 0);
	soft[0] = 5;
	assert_int_equal(repair(slack, 2, soft, scratch, h), REPAIR_DONE);
}

static void a_circle_is_impossible(void **state)
{
	int64_t slack[] = { REPAIR_FREE, -1, -1, REPAIR_FREE };
	int64_t soft[] = { REPAIR_FREE, REPAIR_FREE }, scratch[8], h[2];

	assert_int_equal(repair(slack, 2, soft, scratch, h), REPAIR_IMPOSSIBLE);
}

/* Every shift inside small bars is tried: the answer exists exactly when one fits. */
static bool any_fits(const int64_t *slack, const int64_t *soft)
{
	int64_t h[3];

	for (h[0] = -soft[0]; h[0] <= soft[0]; h[0]++)
		for (h[1] = -soft[1]; h[1] <= soft[1]; h[1]++)
			for (h[2] = -soft[2]; h[2] <= soft[2]; h[2]++)
				if (holds(slack, 3, h))
					return true;
	return false;
}

static void it_agrees_with_trying_everything(void **state)
{
	unsigned n_done = 0, n_impossible = 0;

	for (uint64_t seed = 1; seed <= N_SEEDS; seed++) {
		int64_t slack[9], soft[3], scratch[12], h[3];
		uint64_t rng = seed;
		enum repair_outcome r;

		for (int i = 0; i < 9; i++)
			slack[i] = unit_rand(&rng) % 3 ? (int64_t)(unit_rand(&rng) % 17) - 6
						       : REPAIR_FREE;
		for (int i = 0; i < 3; i++)
			soft[i] = (int64_t)(unit_rand(&rng) % 6);
		r = repair(slack, 3, soft, scratch, h);
		if ((r != REPAIR_IMPOSSIBLE) != any_fits(slack, soft))
			fail_msg("seed %llu: outcome %d", (unsigned long long)seed, (int)r);
		n_done += r == REPAIR_DONE;
		n_impossible += r == REPAIR_IMPOSSIBLE;
		if (r == REPAIR_IMPOSSIBLE)
			continue;
		if (!holds(slack, 3, h))
			fail_msg("seed %llu: an order is still wrong", (unsigned long long)seed);
		for (int i = 0; i < 3; i++)
			if (llabs(h[i]) > soft[i])
				fail_msg("seed %llu: outside the bars", (unsigned long long)seed);
	}
	assert_true(n_done > N_SEEDS / 20 && n_impossible > N_SEEDS / 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_in_order_stays),
		cmocka_unit_test(both_sides_move_half_and_others_not),
		cmocka_unit_test(a_sure_side_lets_the_other_move),
		cmocka_unit_test(what_the_bars_forbid_is_left_alone),
		cmocka_unit_test(a_circle_is_impossible),
		cmocka_unit_test(it_agrees_with_trying_everything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
