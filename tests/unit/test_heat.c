#include "../../collector/heat.h"
#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SEED UINT64_C(20260303)

static struct fact_rank_step cell(uint32_t step, int32_t rank, int64_t self_ns)
{
	return (struct fact_rank_step){ .step = step, .rank = rank, .dur_ns = 2 * self_ns,
					.self_ns = self_ns, .coverage = 1 };
}

/* world ranks x n steps of noise around 10 ms; the table is the plain truth. */
static double *fill(struct heat *h, uint32_t world, uint32_t n, uint64_t seed)
{
	double *v = malloc((size_t)world * n * sizeof *v);

	for (uint32_t s = 0; s < n; s++)
		for (uint32_t r = 0; r < world; r++) {
			int64_t ns = 10000000 + (int64_t)(unit_rand(&seed) % 3000000);
			struct fact_rank_step f = cell(s, (int32_t)r, ns);

			v[s * world + r] = (double)ns;
			assert_int_equal(heat_put(h, &f), 0);
		}
	return v;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double excess(const double *column, uint32_t world, uint32_t rank)
{
	double others[512];
	uint32_t n = 0;

	for (uint32_t r = 0; r < world; r++)
		if (r != rank)
			others[n++] = column[r];
	qsort(others, n, sizeof *others, by_value);
	return column[rank] / ((others[(n - 1) / 2] + others[n / 2]) / 2) - 1;
}

static void codes_grow_with_the_value(void **state)
{
	unsigned char last = 0;

	for (double v = -0.6; v < 4.5; v += 0.0001) {
		assert_true(heat_code_excess(v) >= last);
		last = heat_code_excess(v);
	}
	assert_int_equal(last, 252);
	assert_int_equal(heat_code_excess(-0.6), 2);
	assert_int_equal(heat_code_excess(-0.5), 3);
	assert_int_equal(heat_code_excess(4), 251);
	assert_int_equal(heat_code_excess(NAN), 254);
	last = 0;
	for (double v = 900; v < 1.1e9; v *= 1.001) {
		assert_true(heat_code_raw(v, 1e3, 1e9) >= last);
		last = heat_code_raw(v, 1e3, 1e9);
	}
	assert_int_equal(last, 252);
}

static void a_code_stands_for_its_value_within_its_width(void **state)
{
	for (unsigned c = 3; c <= 251; c++) {
		assert_int_equal(heat_code_excess(heat_excess_of_code((unsigned char)c)), c);
		assert_int_equal(heat_code_raw(heat_raw_of_code((unsigned char)c, 1e3, 1e9), 1e3, 1e9),
				 c);
	}
	/* a quarter of a percent near zero */
	assert_true(fabs(heat_excess_of_code(91) - heat_excess_of_code(90) - 0.0025) < 0.0002);
}

static void a_tile_is_what_a_plain_fold_says(void **state)
{
	static unsigned char out[HEAT_TILE_BYTES];
	static const uint32_t worlds[] = { 4, 5, 7, 300 };

	for (unsigned w = 0; w < 4; w++) {
		uint32_t world = worlds[w], n = world == 300 ? 300 : 1100, rev;
		struct heat *h;
		double *v;
		bool sealed;

		assert_int_equal(heat_new(&h), 0);
		v = fill(h, world, n, SEED + w);
		for (unsigned z = 0; z < 12; z++) {
			struct heat_key key = { .metric = HEAT_SELF, .baseline = z & 1,
						.agg = (enum heat_agg)(z % 3), .zs = z / 3 * 2,
						.zr = z % 4 };
			double lo, hi;

			assert_int_equal(heat_tile(h, &key, out, &rev, &sealed), 0);
			memcpy(&lo, out + 24, 8);
			memcpy(&hi, out + 32, 8);
			for (uint32_t row = 0; row < 256; row++)
				for (uint32_t col = 0; col < 256; col += 7) {
					double sum = 0, most = -1e9, least = 1e18, want;
					uint32_t k = 0;
					int code = out[HEAT_HEAD_BYTES + row * 256 + col], expect;

					for (uint32_t r = row << key.zr;
					     r < (row + 1) << key.zr && r < world; r++)
						for (uint32_t s = col << key.zs;
						     s < (col + 1) << key.zs && s < n; s++, k++) {
							double x = key.baseline == HEAT_RAW
									   ? v[s * world + r]
									   : excess(v + s * world,
										    world, r);

							sum += x;
							most = fmax(most, x);
							least = fmin(least, x);
						}
					if (k == 0) {
						assert_int_equal(code, 0);
						continue;
					}
					want = key.agg == HEAT_MAX    ? most
					       : key.agg == HEAT_MEAN ? sum / k
								      : least;
					expect = key.baseline == HEAT_RAW
							 ? heat_code_raw(want, lo, hi)
							 : heat_code_excess(want);
					assert_in_range(code, expect - 1, expect + 1);
				}
		}
		free(v);
		heat_free(h);
	}
}

static void one_slow_cell_is_seen_at_every_zoom(void **state)
{
	static unsigned char out[HEAT_TILE_BYTES];
	struct fact_rank_step f = cell(3000, 170, 30000000);
	struct heat *h;
	uint32_t rev;
	bool sealed;

	assert_int_equal(heat_new(&h), 0);
	free(fill(h, 256, 4096, SEED));
	assert_int_equal(heat_put(h, &f), 0);
	for (unsigned zs = 0; zs <= 12; zs++)
		for (unsigned zr = 0; zr <= 8; zr += 4) {
			struct heat_key key = { .metric = HEAT_SELF, .agg = HEAT_MAX, .zs = zs,
						.zr = zr, .x = (3000u >> zs) / 256 };
			unsigned at = ((170u >> zr) & 255) * 256 + ((3000u >> zs) & 255);

			assert_int_equal(heat_tile(h, &key, out, &rev, &sealed), 0);
			assert_true(heat_excess_of_code(out[HEAT_HEAD_BYTES + at]) > 1.3);
		}
	heat_free(h);
}

static void a_missing_rank_shows_as_missing(void **state)
{
	static unsigned char out[HEAT_TILE_BYTES];
	struct heat_key key = { .metric = HEAT_SELF };
	struct heat *h;
	uint32_t rev, before;
	bool sealed;

	assert_int_equal(heat_new(&h), 0);
	for (uint32_t s = 10; s < 20; s++)
		for (int32_t r = 0; r < 4; r++) {
			struct fact_rank_step f = cell(s, r, 1000000);

			if (r != 2 || s < 15)
				assert_int_equal(heat_put(h, &f), 0);
		}
	heat_expect(h, 4, 10, 19);
	assert_int_equal(heat_tile(h, &key, out, &before, &sealed), 0);
	assert_int_equal(out[HEAT_HEAD_BYTES + 2 * 256 + 14], heat_code_excess(0));
	assert_int_equal(out[HEAT_HEAD_BYTES + 2 * 256 + 15], 1);
	assert_int_equal(out[HEAT_HEAD_BYTES + 2 * 256 + 9], 0);
	assert_int_equal(out[HEAT_HEAD_BYTES + 4 * 256 + 15], 0);
	assert_false(sealed);
	heat_put(h, &(struct fact_rank_step){ .step = 15, .rank = 2, .self_ns = 5, .dur_ns = 9 });
	assert_int_equal(heat_tile(h, &key, out, &rev, &sealed), 0);
	assert_true(rev > before);
	heat_free(h);
}

static void waiting_within_the_clock_error_is_not_coloured(void **state)
{
	static unsigned char out[HEAT_TILE_BYTES];
	struct heat_key key = { .metric = HEAT_WAIT, .baseline = HEAT_RAW };
	struct heat *h;
	uint32_t rev;
	bool sealed;

	assert_int_equal(heat_new(&h), 0);
	for (int32_t r = 0; r < 4; r++) {
		struct fact_rank_step f = cell(0, r, 1000000);

		f.wait_ns = 1000 * (r + 1);
		f.wait_err_ns = 2500;
		heat_put(h, &f);
	}
	assert_int_equal(heat_tile(h, &key, out, &rev, &sealed), 0);
	assert_int_equal(out[HEAT_HEAD_BYTES], 253);
	assert_int_equal(out[HEAT_HEAD_BYTES + 256], 253);
	assert_in_range(out[HEAT_HEAD_BYTES + 2 * 256], 3, 251);
	heat_free(h);
}

static void a_cell_gives_back_the_exact_value(void **state)
{
	struct fact_rank_step got;
	struct heat *h;
	double *v;

	assert_int_equal(heat_new(&h), 0);
	v = fill(h, 6, 600, SEED);
	assert_true(heat_cell(h, 599, 5, &got));
	assert_int_equal(got.self_ns, (int64_t)v[599 * 6 + 5]);
	assert_false(heat_cell(h, 600, 5, &got));
	assert_false(heat_cell(h, 599, 6, &got));
	assert_false(heat_cell(h, 599, -1, &got));
	free(v);
	heat_free(h);
}

static void memory_stays_bounded(void **state)
{
	struct fact_rank_step got, f;
	struct heat *h;

	assert_int_equal(heat_new(&h), 0);
	for (uint32_t span = 0; span < 400; span++) { /* 26 million cells of room */
		f = cell(span * 256, 255, 1000);
		assert_int_equal(heat_put(h, &f), 0);
	}
	assert_false(heat_cell(h, 0, 255, &got));
	assert_true(heat_cell(h, 399 * 256, 255, &got));
	heat_free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(codes_grow_with_the_value),
		cmocka_unit_test(a_code_stands_for_its_value_within_its_width),
		cmocka_unit_test(a_tile_is_what_a_plain_fold_says),
		cmocka_unit_test(one_slow_cell_is_seen_at_every_zoom),
		cmocka_unit_test(a_missing_rank_shows_as_missing),
		cmocka_unit_test(waiting_within_the_clock_error_is_not_coloured),
		cmocka_unit_test(a_cell_gives_back_the_exact_value),
		cmocka_unit_test(memory_stays_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
