/* Quantiles of a sketch against those of the sorted values. */
#include "../../collector/sketch.h"
#include "unit.h"

#include <math.h>
#include <stdlib.h>

#define N 20000

static const double shares[] = { 0, 0.01, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 1 };

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void check(const struct sketch *s, int64_t *v, size_t n)
{
	qsort(v, n, sizeof *v, by_value);
	assert_int_equal(s->n, n);
	assert_int_equal(s->min, v[0]);
	assert_int_equal(s->max, v[n - 1]);
	for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
		size_t rank = (size_t)ceil(shares[i] * (double)n);
		int64_t truth = v[rank > 0 ? rank - 1 : 0];
		int64_t got = sketch_quantile(s, shares[i]);

		assert_true(fabs((double)(got - truth)) <= SKETCH_ERROR * (double)truth + 1);
	}
}

/* From 10 ns to 10^13 ns, the logarithm even, or two heaps. */
static int64_t draw(uint64_t *seed, unsigned shape)
{
	double u = (double)(unit_rand(seed) >> 11) * 0x1p-53;

	if (shape == 0)
		return (int64_t)pow(10, 1 + 12 * u);
	return (int64_t)((unit_rand(seed) % 20 == 0 ? 5e6 : 1e5) * (1 + u));
}

static void every_quantile_is_within_the_stated_error(void **state)
{
	static int64_t v[N];

	(void)state;
	for (uint64_t seed = 1; seed < 9; seed++) {
		struct sketch s = { 0 };
		uint64_t rng = seed;

		for (size_t i = 0; i < N; i++) {
			v[i] = draw(&rng, (unsigned)seed % 2);
			assert_int_equal(sketch_add(&s, v[i]), 0);
		}
		check(&s, v, N);
		assert_true(s.n_slots * sizeof *s.v < 8192);
		sketch_fini(&s);
	}
}

static void two_merged_are_the_sketch_of_both(void **state)
{
	static int64_t v[N];
	struct sketch parts[3] = { { 0 } }, all = { 0 };
	uint64_t rng = 7;

	(void)state;
	for (size_t i = 0; i < N; i++) {
		v[i] = draw(&rng, i % 3 == 0);
		assert_int_equal(sketch_add(&parts[i % 3], v[i]), 0);
	}
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(sketch_merge(&all, &parts[i]), 0);
	check(&all, v, N);
	for (size_t i = 0; i < 3; i++)
		sketch_fini(&parts[i]);
	sketch_fini(&all);
}

static void nothing_and_no_time_at_all_are_fine(void **state)
{
	struct sketch s = { 0 }, empty = { 0 };

	(void)state;
	assert_int_equal(sketch_quantile(&s, 0.5), 0);
	assert_int_equal(sketch_add(&s, -5), 0);
	assert_int_equal(sketch_add(&s, 0), 0);
	assert_int_equal(sketch_merge(&s, &empty), 0);
	assert_int_equal(sketch_quantile(&s, 0.99), 1);
	assert_int_equal(sketch_add(&s, INT64_MAX), 0);
	assert_int_equal(sketch_quantile(&s, 1), INT64_MAX);
	sketch_fini(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_quantile_is_within_the_stated_error),
		cmocka_unit_test(two_merged_are_the_sketch_of_both),
		cmocka_unit_test(nothing_and_no_time_at_all_are_fine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
