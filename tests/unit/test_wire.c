#include "../../proto/wire.h"
#include "unit.h"

#include <msgpack.h>
#include <string.h>

#define CHECK(...) \
	wire_check((const unsigned char[]){ __VA_ARGS__ }, sizeof((const unsigned char[]){ __VA_ARGS__ }))

static void whole_objects_pass(void **state)
{
	(void)state;
	assert_int_equal(CHECK(0x00), WIRE_OK);
	assert_int_equal(CHECK(0x80), WIRE_OK);
	assert_int_equal(CHECK(0x92, 0x01, 0xa1, 'x'), WIRE_OK);
	assert_int_equal(CHECK(0x81, 0xa1, 'k', 0xc4, 0x02, 1, 2), WIRE_OK);
	assert_int_equal(CHECK(0xd8, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), WIRE_OK);
	assert_int_equal(CHECK(0xc7, 0x01, 5, 9), WIRE_OK);
}

static void a_declared_size_is_never_believed(void **state)
{
	(void)state;
	assert_int_equal(CHECK(0xdd, 0xff, 0xff, 0xff, 0xff), WIRE_TRUNCATED);
	assert_int_equal(CHECK(0xdf, 0xff, 0xff, 0xff, 0xff, 0, 0), WIRE_TRUNCATED);
	assert_int_equal(CHECK(0xc6, 0xff, 0xff, 0xff, 0xff, 0), WIRE_TRUNCATED);
	assert_int_equal(CHECK(0xc9, 0xff, 0xff, 0xff, 0xff, 0), WIRE_TRUNCATED);
	assert_int_equal(CHECK(0xdb, 0, 0, 0, 9, 'x'), WIRE_TRUNCATED);
	/* Nested announcements, the case that made an unpacker reserve gigabytes. */
	assert_int_equal(CHECK(0xdd, 0x7f, 0xff, 0xff, 0xff, 0xdd, 0x7f, 0xff, 0xff, 0xff, 0xdd,
			       0x7f, 0xff, 0xff, 0xff, 0), WIRE_TRUNCATED);
}

static void what_is_not_one_object_is_named(void **state)
{
	unsigned char deep[WIRE_MAX_DEPTH + 2];

	(void)state;
	assert_int_equal(wire_check((const unsigned char *)"", 0), WIRE_TRUNCATED);
	assert_int_equal(CHECK(0xc1), WIRE_BAD_TYPE);
	assert_int_equal(CHECK(0x01, 0x02), WIRE_TRAILING);
	memset(deep, 0x91, sizeof deep);
	deep[sizeof deep - 1] = 0;
	assert_int_equal(wire_check(deep, sizeof deep), WIRE_TOO_DEEP);
	deep[WIRE_MAX_DEPTH] = 0;
	assert_int_equal(wire_check(deep, WIRE_MAX_DEPTH + 1), WIRE_OK);
}

static void a_flood_of_tiny_elements_is_refused(void **state)
{
	static unsigned char buf[5 + WIRE_MAX_ELEMENTS];

	(void)state;
	buf[0] = 0xdd;
	buf[2] = WIRE_MAX_ELEMENTS >> 16;
	assert_int_equal(wire_check(buf, sizeof buf), WIRE_TOO_MANY);
}

/* The unpacker is the judge: whatever it makes of a short random string, what
 * passes the check unpacks, and to the last byte. */
static void what_passes_unpacks_whole(void **state)
{
	uint64_t rng = 7, n_passed = 0;

	(void)state;
	for (unsigned round = 0; round < 300000; round++) {
		unsigned char buf[12];
		size_t n = 1 + unit_rand(&rng) % sizeof buf, at = 0;
		msgpack_unpacked u;

		for (size_t i = 0; i < n; i++)
			buf[i] = (unsigned char)unit_rand(&rng);
		if (round % 2)
			buf[0] = (unsigned char)(0x80 | buf[0] % 32);
		if (wire_check(buf, n) != WIRE_OK)
			continue;
		n_passed++;
		msgpack_unpacked_init(&u);
		assert_int_equal(msgpack_unpack_next(&u, (const char *)buf, n, &at),
				 MSGPACK_UNPACK_SUCCESS);
		assert_int_equal(at, n);
		msgpack_unpacked_destroy(&u);
	}
	assert_true(n_passed > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_objects_pass),
		cmocka_unit_test(a_declared_size_is_never_believed),
		cmocka_unit_test(what_is_not_one_object_is_named),
		cmocka_unit_test(a_flood_of_tiny_elements_is_refused),
		cmocka_unit_test(what_passes_unpacks_whole),
	};
	return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
