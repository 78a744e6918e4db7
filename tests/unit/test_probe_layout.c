#include "unit.h"

#include "layout.h"

#include <stdlib.h>
#include <string.h>

static enum shm_outcome check(size_t budget, struct shm_header *ret)
{
	struct shm_header h = { .magic = SHM_MAGIC, .version = SHM_VERSION };

	assert_true(layout_plan(budget, &h));
	return shm_check(&h, h.file_bytes, ret);
}

static void every_size_is_one_that_readers_accept(void **state)
{
	for (size_t n = SHM_MIN_BYTES; n <= SHM_MAX_BYTES + 8192; n += 1234) {
		struct shm_header h;

		assert_int_equal(check(n, &h), SHM_OK);
		assert_true(h.file_bytes <= n && h.file_bytes <= SHM_MAX_BYTES);
	}
}

static void areas_do_not_overlap(void **state)
{
	for (size_t n = SHM_MIN_BYTES; n <= SHM_MAX_BYTES; n += 4096) {
		struct shm_header h;

		assert_int_equal(check(n, &h), SHM_OK);
		assert_true(h.string_index_at >= sizeof h);
		assert_true(h.string_bytes_at >= h.string_index_at + h.max_strings * 8u);
		assert_true(h.text_at >= h.string_bytes_at + h.max_string_bytes);
		assert_true(h.ring_headers_at >= h.text_at + h.text_bytes);
		assert_true(h.ring_slots_at >=
			    h.ring_headers_at + h.n_rings * sizeof(struct shm_ring));
		assert_true(h.file_bytes >= h.ring_slots_at + (uint64_t)h.n_rings * h.ring_slots *
								      sizeof(struct event));
	}
}

static void less_than_the_minimum_is_refused(void **state)
{
	struct shm_header h = { 0 };

	assert_false(layout_plan(SHM_MIN_BYTES - 1, &h));
	assert_false(layout_plan(0, &h));
}

static void a_small_file_still_has_rings_for_a_training_process(void **state)
{
	struct shm_header h;

	assert_int_equal(check(SHM_MIN_BYTES, &h), SHM_OK);
	assert_true(h.n_rings >= 12);
	assert_int_equal(check(SHM_MAX_BYTES, &h), SHM_OK);
	assert_true(h.n_rings >= 24);
	assert_int_equal(h.ring_slots, 8192);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_size_is_one_that_readers_accept),
		cmocka_unit_test(areas_do_not_overlap),
		cmocka_unit_test(less_than_the_minimum_is_refused),
		cmocka_unit_test(a_small_file_still_has_rings_for_a_training_process),
	};
	return cmocka_run_group_tests_name("probe_layout", tests, NULL, NULL);
}
