/* feed.h and picture.h: what is folded stays true. */
#include "unit.h"

#include "feed.h"
#include "picture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GAP_NS 250

static void the_first_event_of_a_kind_comes_out_at_once(void **state)
{
	struct feed *f;

	assert_int_equal(feed_new(&f, 100, GAP_NS), 0);
	assert_true(feed_post(f, FEED_STEP, "{\"step\":1}", 0));
	assert_true(feed_post(f, FEED_DROP, "{}", 1));
	assert_int_equal(feed_head(f), 102);
	assert_string_equal(feed_get(f, 101)->data, "{\"step\":1}");
	assert_int_equal(feed_get(f, 102)->kind, FEED_DROP);
	assert_int_equal(feed_due_ns(f), INT64_MAX);
	feed_free(f);
}

static void later_ones_wait_and_the_last_stands_for_all(void **state)
{
	struct feed *f;

	assert_int_equal(feed_new(&f, 0, GAP_NS), 0);
	feed_post(f, FEED_STEP, "{\"step\":1}", 0);
	assert_false(feed_post(f, FEED_STEP, "{\"step\":2}", 10));
	assert_false(feed_post(f, FEED_STEP, "{\"step\":3}", 249));
	assert_int_equal(feed_due_ns(f), GAP_NS);
	assert_false(feed_flush(f, 249));
	assert_true(feed_flush(f, 250));
	assert_int_equal(feed_head(f), 2);
	assert_string_equal(feed_get(f, 2)->data, "{\"step\":3,\"n\":2}");
	assert_false(feed_flush(f, 1000));
	assert_false(feed_post(f, FEED_STEP, "{}", 499));
	assert_true(feed_flush(f, 500));
	assert_string_equal(feed_get(f, 3)->data, "{}");
	feed_free(f);
}

static void nothing_posted_is_missing_from_the_sum_of_n(void **state)
{
	uint64_t rng = 7, n_posted = 0, n_told = 0;
	int64_t now = 0, last[FEED_N_KINDS];
	struct feed *f;

	for (size_t k = 0; k < FEED_N_KINDS; k++)
		last[k] = -GAP_NS;
	assert_int_equal(feed_new(&f, 0, GAP_NS), 0);
	for (unsigned i = 0; i < 20000; i++) {
		uint64_t before = feed_head(f);

		now += (int64_t)(unit_rand(&rng) % 100);
		feed_flush(f, now);
		feed_post(f, (enum feed_kind)(unit_rand(&rng) % FEED_N_KINDS), "{\"a\":1}", now);
		n_posted++;
		for (uint64_t id = before + 1; id <= feed_head(f); id++) {
			const struct feed_event *ev = feed_get(f, id);
			const char *n = strstr(ev->data, "\"n\":");
			unsigned folded = 1;

			if (n)
				assert_int_equal(sscanf(n + 4, "%u", &folded), 1);
			n_told += folded;
			assert_true(now - last[ev->kind] >= GAP_NS); /* never more than one a gap */
			last[ev->kind] = now;
		}
	}
	for (uint64_t id = feed_head(f) + 1; feed_flush(f, now + GAP_NS) && id <= feed_head(f);) {
		for (; id <= feed_head(f); id++) {
			const char *n = strstr(feed_get(f, id)->data, "\"n\":");
			unsigned folded = 1;

			if (n)
				assert_int_equal(sscanf(n + 4, "%u", &folded), 1);
			n_told += folded;
		}
	}
	assert_int_equal(n_told, n_posted);
	feed_free(f);
}

static void a_cursor_is_covered_until_it_falls_out_of_the_ring(void **state)
{
	struct feed *f;

	assert_int_equal(feed_new(&f, 1000, GAP_NS), 0);
	assert_true(feed_covers(f, 1000));
	assert_false(feed_covers(f, 999));
	assert_false(feed_covers(f, 1001));
	for (int64_t i = 1; i <= FEED_EVENTS + 5; i++)
		feed_post(f, FEED_STEP, "{}", i * GAP_NS);
	assert_true(feed_covers(f, 1005));
	assert_false(feed_covers(f, 1004));
	assert_non_null(feed_get(f, 1006));
	assert_null(feed_get(f, 1005));
	assert_null(feed_get(f, feed_head(f) + 1));
	feed_free(f);
}

static void data_that_is_too_long_becomes_an_empty_object(void **state)
{
	char text[FEED_MAX_DATA + 2];
	struct feed *f;

	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	assert_int_equal(feed_new(&f, 0, GAP_NS), 0);
	feed_post(f, FEED_RANK, text, 0);
	assert_string_equal(feed_get(f, 1)->data, "{}");
	feed_post(f, FEED_RANK, text, 1);
	feed_post(f, FEED_RANK, text, 2);
	feed_flush(f, GAP_NS);
	assert_string_equal(feed_get(f, 2)->data, "{\"n\":2}");
	feed_free(f);
}

static unsigned char fold(const char *codes, size_t n, enum heat_agg agg)
{
	return picture_fold((const unsigned char *)codes, n, agg, HEAT_RAW, 1e3, 1e9);
}

static void a_fold_keeps_the_outlier_and_the_order_of_reasons(void **state)
{
	assert_int_equal(fold("\x10\x90\x20", 3, HEAT_MAX), 0x90);
	assert_int_equal(fold("\x10\x90\x20", 3, HEAT_MIN), 0x10);
	assert_int_equal(fold("\x00\x01\xfd\xfe\x05", 5, HEAT_MIN), 0x05);
	assert_int_equal(fold("\x00\x01\xfd\xfe", 4, HEAT_MAX), 0xfd);
	assert_int_equal(fold("\x00\x01\xfe", 3, HEAT_MAX), 0xfe);
	assert_int_equal(fold("\x00\x01", 2, HEAT_MAX), 1);
	assert_int_equal(fold("\x00\x00", 2, HEAT_MEAN), 0);
	assert_int_equal(fold("\x50\x50\x01", 3, HEAT_MEAN), 0x50);
	/* 1 µs and 1 ms: the mean is half a millisecond. */
	assert_int_equal(fold("\x03\x7f", 2, HEAT_MEAN), heat_code_raw(500.5e3, 1e3, 1e9));
}

static void folded_columns_are_the_fold_of_the_cells(void **state)
{
	struct route_request all = { .key = { .metric = HEAT_SELF, .baseline = HEAT_RAW } };
	unsigned char *whole, *folded;
	uint64_t rng = 11;
	struct heat *h;
	size_t n;

	assert_int_equal(heat_new(&h), 0);
	for (uint32_t step = 200; step < 300; step++) {
		for (int32_t rank = 0; rank < 700; rank++) {
			if (unit_rand(&rng) % 8 == 0)
				continue;
			assert_int_equal(heat_put(h, &(struct fact_rank_step){
				.step = step, .rank = rank, .n_peers = 4, .coverage = 1,
				.self_ns = 1000 + (int64_t)(unit_rand(&rng) % 1000000), .dur_ns = 5 }), 0);
		}
	}
	all.from = 240;
	all.to = 270;
	for (unsigned agg = 0; agg < HEAT_N_AGGS; agg++) {
		if (agg == HEAT_MEAN)
			continue;
		all.key.agg = (enum heat_agg)agg;
		all.rows = 700;
		assert_int_equal(picture_cols(h, &all, &whole, &n), 0);
		assert_int_equal(n, HEAT_HEAD_BYTES + 31 * 700);
		all.rows = 100;
		assert_int_equal(picture_cols(h, &all, &folded, &n), 0);
		for (size_t col = 0; col < 31; col++) {
			for (size_t row = 0; row < 100; row++) {
				unsigned char got = folded[HEAT_HEAD_BYTES + col * 100 + row];
				const unsigned char *cells = whole + HEAT_HEAD_BYTES + col * 700;
				/* Cells of four ranks may straddle two rows of seven: both show them. */
				size_t lo = row * 7 / 4 * 4, hi = ((row + 1) * 7 + 3) / 4 * 4;

				hi = hi > 700 ? 700 : hi;
				assert_int_equal(got, picture_fold(cells + lo, hi - lo, all.key.agg,
								   HEAT_RAW, 1, 1e9));
			}
		}
		free(whole);
		free(folded);
	}
	heat_free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_event_of_a_kind_comes_out_at_once),
		cmocka_unit_test(later_ones_wait_and_the_last_stands_for_all),
		cmocka_unit_test(nothing_posted_is_missing_from_the_sum_of_n),
		cmocka_unit_test(a_cursor_is_covered_until_it_falls_out_of_the_ring),
		cmocka_unit_test(data_that_is_too_long_becomes_an_empty_object),
		cmocka_unit_test(a_fold_keeps_the_outlier_and_the_order_of_reasons),
		cmocka_unit_test(folded_columns_are_the_fold_of_the_cells),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
