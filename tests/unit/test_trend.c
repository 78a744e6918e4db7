/* What is a steady rise, and what only looks like one. */
#include "unit.h"

#include "../../collector/verdict/trend.h"

#include <math.h>
#include <stdio.h>

#define N 48

static uint64_t rng;

static double draw(void) /* -1 .. 1 */
{
	rng = rng * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (double)(rng >> 11) / (double)(UINT64_C(1) << 52) - 1;
}

/* shape: of x in 0 .. N - 1; noise in its units */
static bool is_steady(double (*shape)(double), double noise, uint64_t seed, struct trend *ret)
{
	double x[N], y[N];

	rng = seed * 7919 + 1;
	for (unsigned i = 0; i < N; i++) {
		x[i] = i;
		y[i] = shape(i) + noise * draw();
	}
	assert_true(trend_of(x, y, N, ret));
	return ret->steady;
}

static double leak(double x) { return 10 + 0.2 * x; }
static double plateau(double x) { return 10 + 0.4 * fmin(x, 18); }
static double late_start(double x) { return 10 + 0.6 * fmax(x - 36, 0); }
static double saw(double x) { return 10 + 0.5 * fmod(x, 9); }
static double jump(double x) { return x < 20 ? 10 : 16; }
static double flat(double x) { (void)x; return 10; }
static double fall(double x) { return 20 - 0.2 * x; }

static void a_leak_is_steady_and_its_slope_is_in_its_interval(void **state)
{
	unsigned n_outside = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 1000; seed++) {
		struct trend t;

		if (!is_steady(leak, 0.1, seed, &t) || fabs(t.slope - 0.2) > 0.02) {
			fprintf(stderr, "seed %llu: %g in %g .. %g\n", (unsigned long long)seed, t.slope, t.low, t.high);
			fail();
		}
		n_outside += t.low > 0.2 || t.high < 0.2;
	}
	assert_true(n_outside <= 5); /* 1 is expected */
}

static void what_levels_out_falls_back_or_jumps_is_not_steady(void **state)
{
	static double (*const shapes[])(double) = { plateau, late_start, saw, jump, flat, fall };

	(void)state;
	for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++)
		for (uint64_t seed = 1; seed <= 200; seed++)
			for (int noisy = 0; noisy < 3; noisy++) {
				struct trend t;

				if (is_steady(shapes[k], noisy * 0.3, seed, &t)) {
					fprintf(stderr, "shape %zu, seed %llu, noise %d\n", k,
						(unsigned long long)seed, noisy);
					fail();
				}
			}
}

/* A third of the readings are peaks. */
static void wild_values_do_not_move_the_slope(void **state)
{
	double x[N], y[N];
	struct trend t;

	(void)state;
	for (unsigned i = 0; i < N; i++) {
		x[i] = i;
		y[i] = 10 + 0.2 * i + (i % 4 == 1 ? 50 : 0);
	}
	assert_true(trend_of(x, y, N, &t));
	assert_true(fabs(t.slope - 0.2) < 0.1);
}

static void too_few_or_too_many_points_are_no_series(void **state)
{
	double x[TREND_MAX + 1] = { 0 }, y[TREND_MAX + 1] = { 0 };
	struct trend t;

	(void)state;
	assert_false(trend_of(x, y, TREND_MIN - 1, &t));
	assert_false(trend_of(x, y, TREND_MAX + 1, &t));
	assert_false(trend_of(x, y, TREND_MAX, &t)); /* all at one x */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_leak_is_steady_and_its_slope_is_in_its_interval),
		cmocka_unit_test(what_levels_out_falls_back_or_jumps_is_not_steady),
		cmocka_unit_test(wild_values_do_not_move_the_slope),
		cmocka_unit_test(too_few_or_too_many_points_are_no_series),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
