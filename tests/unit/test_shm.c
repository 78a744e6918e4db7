#include "../../proto/shm.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

static struct shm_header sound(void)
{
	struct shm_header h = { .magic = SHM_MAGIC, .version = SHM_VERSION,
				.header_bytes = sizeof h, .file_bytes = 1 << 20, .n_rings = 4,
				.ring_slots = 1024, .max_strings = 512, .max_string_bytes = 4096,
				.text_bytes = 1 << 16 };

	h.ring_headers_at = (sizeof h + 63) / 64 * 64;
	h.ring_slots_at = h.ring_headers_at + 4 * sizeof(struct shm_ring);
	h.string_index_at = h.ring_slots_at + 4 * 1024 * sizeof(struct event);
	h.string_bytes_at = h.string_index_at + 512 * 8;
	h.text_at = h.string_bytes_at + 4096;
	return h;
}

static void a_sound_layout_passes(void **state)
{
	struct shm_header h = sound(), out;

	(void)state;
	assert_int_equal(shm_check(&h, 1 << 20, &out), SHM_OK);
	assert_int_equal(out.ring_slots, 1024);
}

static void each_lie_has_its_name(void **state)
{
	struct shm_header h = sound(), out;

	(void)state;
	assert_int_equal(shm_check(&h, sizeof h - 1, &out), SHM_TOO_SHORT);
	assert_int_equal(shm_check(&h, (1 << 20) - 1, &out), SHM_TOO_SHORT);
	h.magic++;
	assert_int_equal(shm_check(&h, 1 << 20, &out), SHM_BAD_MAGIC);
	h = sound();
	h.version++;
	assert_int_equal(shm_check(&h, 1 << 20, &out), SHM_BAD_VERSION);
}

/* Whatever one 32-bit word of the layout says, a header that passes points
 * inside the file. */
static void what_passes_points_inside_the_file(void **state)
{
	static const uint32_t lies[] = { 0, 1, 63, 64, 1u << 20, (1u << 20) + 64, 1u << 31, UINT32_MAX };
	size_t n_words = offsetof(struct shm_header, reserved) / 4;

	(void)state;
	for (size_t w = 0; w < n_words; w++) {
		for (size_t l = 0; l < sizeof lies / sizeof *lies; l++) {
			struct shm_header h = sound(), out;

			memcpy((char *)&h + 4 * w, &lies[l], 4);
			if (shm_check(&h, 1 << 20, &out) != SHM_OK)
				continue;
			assert_true(out.n_rings >= 1 && out.n_rings <= SHM_MAX_RINGS);
			assert_true(out.ring_headers_at + out.n_rings * sizeof(struct shm_ring) <= 1 << 20);
			assert_true(out.ring_slots_at + (uint64_t)out.n_rings * out.ring_slots * 32 <= 1 << 20);
			assert_true(out.string_index_at + out.max_strings * UINT64_C(8) <= 1 << 20);
			assert_true(out.string_bytes_at + out.max_string_bytes <= 1 << 20);
			assert_true(out.text_at + out.text_bytes <= 1 << 20);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sound_layout_passes),
		cmocka_unit_test(each_lie_has_its_name),
		cmocka_unit_test(what_passes_points_inside_the_file),
	};
	return cmocka_run_group_tests_name("shm", tests, NULL, NULL);
}
