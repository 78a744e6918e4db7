/* Begins and ends put together: nested, unmatched, in any order of the file. */
#include "../../collector/import/span_pairs.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#define N(v) (sizeof(v) / sizeof *(v))

static struct pair found[64];
static struct pair_count count;

static void find(struct pair_mark *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		v[i].tag = (uint32_t)i;
	assert_true(pairs_find(v, n, found, &count));
}

static void test_ends_close_the_newest_begin(void **state)
{
	struct pair_mark v[] = { { .at_ns = 1, .name = 1 }, { .at_ns = 2, .name = 2 }, { .at_ns = 3, .ends = true },
				 { .at_ns = 4, .name = 2 }, { .at_ns = 5, .name = 2, .ends = true },
				 { .at_ns = 6, .name = 1, .ends = true } };
	static const struct pair want[] = { { 2, 3, 0, 1, 1, 2 }, { 4, 5, 0, 1, 3, 4 }, { 1, 6, 0, 0, 0, 5 } };

	(void)state;
	find(v, N(v));
	assert_int_equal(count.n, 3);
	assert_int_equal(count.n_without_end + count.n_without_begin, 0);
	for (size_t i = 0; i < N(want); i++) {
		assert_int_equal(found[i].begin_ns, want[i].begin_ns);
		assert_int_equal(found[i].end_ns, want[i].end_ns);
		assert_int_equal(found[i].depth, want[i].depth);
		assert_int_equal(found[i].begin_tag, want[i].begin_tag);
		assert_int_equal(found[i].end_tag, want[i].end_tag);
	}
}

static void test_what_has_no_other_end_is_counted(void **state)
{
	/* An end of nobody; a begin inside of another that never ends; one that stays open. */
	struct pair_mark v[] = { { .at_ns = 1, .name = 9, .ends = true }, { .at_ns = 2, .name = 1 }, { .at_ns = 3, .name = 2 },
				 { .at_ns = 4, .name = 1, .ends = true }, { .at_ns = 5, .name = 3 },
				 { .at_ns = 6, .name = 1, .ends = true } };

	(void)state;
	find(v, N(v));
	assert_int_equal(count.n, 1);
	assert_int_equal(found[0].begin_ns, 2);
	assert_int_equal(count.n_without_end, 2);
	assert_int_equal(count.n_without_begin, 2);
}

static void test_threads_are_apart_and_order_is_that_of_time(void **state)
{
	struct pair_mark v[] = { { .at_ns = 9, .lane = 1, .ends = true }, { .at_ns = 7, .lane = 2, .ends = true },
				 { .at_ns = 2, .lane = 1, .name = 1 }, { .at_ns = 3, .lane = 2, .name = 1 } };

	(void)state;
	find(v, N(v));
	assert_int_equal(count.n, 2);
	assert_int_equal(found[0].lane, 1);
	assert_int_equal(found[0].end_ns, 9);
	assert_int_equal(found[1].lane, 2);
	assert_int_equal(found[1].end_ns, 7);
}

static void test_at_one_time_the_file_s_order_counts(void **state)
{
	struct pair_mark v[] = { { .at_ns = 1, .name = 1 }, { .at_ns = 5, .name = 1, .ends = true }, { .at_ns = 5, .name = 1 },
				 { .at_ns = 5, .name = 1, .ends = true } };

	(void)state;
	find(v, N(v));
	assert_int_equal(count.n, 2);
	assert_int_equal(found[0].end_ns - found[0].begin_ns, 4);
	assert_int_equal(found[1].end_ns - found[1].begin_ns, 0);
}

static void test_deep_nesting_takes_no_time(void **state)
{
	size_t n = 400000;
	struct pair_mark *v = calloc(n, sizeof *v);
	struct pair *pairs = calloc(n / 2 + 1, sizeof *pairs);

	(void)state;
	assert_non_null(v);
	assert_non_null(pairs);
	/* Ends of a name that none of a hundred thousand open begins has. */
	for (size_t i = 0; i < n; i++)
		v[i] = (struct pair_mark){ (int64_t)i, 0, i < n / 2 ? 1 : 2, (uint32_t)i, i >= n / 2 };
	assert_true(pairs_find(v, n, pairs, &count));
	assert_int_equal(count.n, 0);
	assert_int_equal(count.n_without_end, n / 2);
	assert_int_equal(count.n_without_begin, n / 2);
	free(v);
	free(pairs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ends_close_the_newest_begin),
		cmocka_unit_test(test_what_has_no_other_end_is_counted),
		cmocka_unit_test(test_threads_are_apart_and_order_is_that_of_time),
		cmocka_unit_test(test_at_one_time_the_file_s_order_counts),
		cmocka_unit_test(test_deep_nesting_takes_no_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
