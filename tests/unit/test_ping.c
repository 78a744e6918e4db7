#include "unit.h"

#include "../../proto/ping.h"
#include "../../proto/stamp.h"

#include <string.h>

static const uint8_t secret[PING_SECRET_BYTES] = { 1, 2, 3 };

static struct ping_key key_of(const char *token, uint64_t stream)
{
	struct ping_key k;

	ping_derive_key(&k, token, stream, secret);
	return k;
}

static const struct ping request = {
	.kind = PING_REQUEST, .flags = PING_HAS_REPORT | PING_KERNEL_T0, .stream = 77, .seq = 9,
	.report_seq = 8, .t0_ns = 1000, .t3_ns = 2000,
};

static void a_packet_comes_back_as_it_was(void **state)
{
	struct ping_key k = key_of("token", 77);
	uint8_t bytes[PING_BYTES];
	struct ping p;

	(void)state;
	ping_pack(bytes, &request, &k);
	assert_int_equal(ping_parse(&p, bytes, sizeof bytes), PING_OK);
	assert_int_equal(ping_verify(bytes, &k), PING_OK);
	assert_memory_equal(&p, &request, sizeof p);
	/* The layout is a contract: magic, then little-endian fields in their places. */
	assert_memory_equal(bytes, "SYLP\x01\x01\x06\x00\x4d", 9);
	assert_int_equal(bytes[16], 9);
	assert_int_equal(bytes[33], 1000 >> 8);
}

/* Made by another implementation of HMAC-SHA-256 from the words of ping.h. */
static void the_digest_is_the_one_that_the_contract_says(void **state)
{
	static const uint8_t want[16] = { 0x5f, 0xc5, 0x5a, 0x48, 0xd0, 0xe1, 0x92, 0x93,
					  0xec, 0x98, 0x2e, 0x2d, 0xf8, 0xbb, 0x81, 0x63 };
	struct ping_key k = key_of("token", 77);
	uint8_t bytes[PING_BYTES];

	(void)state;
	ping_pack(bytes, &request, &k);
	assert_memory_equal(bytes + 48, want, sizeof want);
}

static void every_changed_bit_is_refused(void **state)
{
	struct ping_key k = key_of("token", 77);
	uint8_t bytes[PING_BYTES];
	struct ping p;

	(void)state;
	for (unsigned bit = 0; bit < 8 * PING_BYTES; bit++) {
		ping_pack(bytes, &request, &k);
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_true(ping_parse(&p, bytes, sizeof bytes) != PING_OK ||
			    ping_verify(bytes, &k) == PING_FORGED);
	}
}

static void another_token_stream_or_secret_is_another_key(void **state)
{
	struct ping_key k = key_of("token", 77), other;
	uint8_t bytes[PING_BYTES], secret2[PING_SECRET_BYTES] = { 1, 2, 4 };

	(void)state;
	ping_pack(bytes, &request, &k);
	other = key_of("tokem", 77);
	assert_int_equal(ping_verify(bytes, &other), PING_FORGED);
	other = key_of("token", 78);
	assert_int_equal(ping_verify(bytes, &other), PING_FORGED);
	ping_derive_key(&other, "token", 77, secret2);
	assert_int_equal(ping_verify(bytes, &other), PING_FORGED);
}

static enum ping_outcome try(struct ping p)
{
	struct ping_key k = key_of("", 77);
	uint8_t bytes[PING_BYTES];
	struct ping got;

	ping_pack(bytes, &p, &k);
	return ping_parse(&got, bytes, sizeof bytes);
}

static void times_and_numbers_that_cannot_be_are_refused(void **state)
{
	struct ping p, got;
	uint8_t bytes[PING_BYTES + 1] = { 0 };

	(void)state;
	assert_int_equal(try(request), PING_OK);
#define REFUSED(change) do { p = request; change; assert_int_equal(try(p), PING_MALFORMED); } while (0)
	REFUSED(p.seq = 0);
	REFUSED(p.stream = 0);
	REFUSED(p.report_seq = 9);
	REFUSED(p.report_seq = 0);
	REFUSED(p.t3_ns = 999);
	REFUSED(p.t0_ns = 0);
	REFUSED(p.t0_ns = -5);
	REFUSED(p.t3_ns = PING_MAX_NS);
	REFUSED(p.wish = 3);
	REFUSED(p.kind = 3);
	REFUSED(p.flags = 16);
	REFUSED(p.flags = PING_KERNEL_T0);
#undef REFUSED
	for (size_t n = 0; n <= sizeof bytes; n++)
		assert_int_equal(ping_parse(&got, bytes, n), PING_MALFORMED);
}

static void a_number_counts_once_in_any_order(void **state)
{
	struct ping_window w = { 0 };
	uint64_t rng = 7;
	bool taken[400] = { false };

	(void)state;
	for (unsigned i = 0; i < 20000; i++) {
		uint64_t base = 1 + i / 60, seq = base + unit_rand(&rng) % 40;
		bool took = ping_window_take(&w, seq);

		assert_true(seq < 400);
		assert_false(took && taken[seq]);
		/* Within the window nothing is refused that did not come before. */
		assert_true(took || taken[seq] || w.newest - seq >= PING_WINDOW);
		taken[seq] |= took;
	}
	assert_true(ping_window_take(&w, UINT64_MAX));
	assert_false(ping_window_take(&w, 399));
	assert_true(ping_window_take(&w, UINT64_MAX - 63));
	assert_false(ping_window_take(&w, UINT64_MAX - 64));
}

/* REALTIME that runs ppb against RAW and is stepped at an instant. */
static int64_t real_at(int64_t raw_ns, int64_t ppb, int64_t step_at_ns, int64_t step_ns)
{
	return INT64_C(1700000000000000000) + raw_ns + (int64_t)((double)raw_ns * (double)ppb / 1e9) +
	       (raw_ns >= step_at_ns ? step_ns : 0);
}

static void a_kernel_stamp_is_placed_within_its_stated_error(void **state)
{
	(void)state;
	for (int64_t ppb = -50000; ppb <= 50000; ppb += 10000) {
		struct stamp_line l = { 0 };
		uint64_t rng = 11 + (uint64_t)(ppb + 50000);

		for (int64_t raw = 1000000; raw < INT64_C(20000000000); raw += 50000000) {
			int64_t half = 40 + (int64_t)(unit_rand(&rng) % 60), got, err, at;
			int64_t off = (int64_t)(unit_rand(&rng) % (uint64_t)(2 * half)) - half;
			enum stamp_outcome o;

			stamp_add(&l, &(struct stamp_bracket){ raw, real_at(raw + off, ppb, INT64_MAX, 0),
							       half });
			if (raw < 700000000)
				continue;
			at = raw - (int64_t)(unit_rand(&rng) % 45000000) - 1000;
			o = stamp_to_raw(&l, real_at(at, ppb, INT64_MAX, 0), &got, &err);
			assert_int_equal(o, STAMP_OK);
			assert_true(got - at <= err && at - got <= err);
			assert_true(err < 300);
		}
	}
}

static void a_stamp_beside_a_step_of_the_wall_clock_is_refused(void **state)
{
	int64_t steps[] = { -1000000000, -5000, 1500, 3000000 };

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct stamp_line l = { 0 };
		int64_t step_at = 2025000000, got, err;

		for (int64_t raw = 1000000; raw < 2100000000; raw += 50000000)
			stamp_add(&l, &(struct stamp_bracket){
					      raw, real_at(raw, 0, step_at, steps[i]), 50 });
		/* In the interval of the step nothing counts, at its side everything. */
		assert_int_not_equal(stamp_to_raw(&l, real_at(2010000000, 0, step_at, steps[i]), &got, &err),
				     STAMP_OK);
		if (steps[i] > 0) {
			assert_int_equal(stamp_to_raw(&l, real_at(1960000000, 0, step_at, steps[i]), &got, &err),
					 STAMP_OK);
			assert_in_range(got, 1960000000 - 60, 1960000000 + 60);
		}
	}
}

/* Set back by a little, the clock shows some times twice: none of them is placed. */
static void a_time_that_was_shown_twice_is_refused(void **state)
{
	int64_t step_at = 2025000000, step = -30000000, got, err;
	struct stamp_line l = { 0 };

	(void)state;
	for (int64_t raw = 1000000; raw < 2045000000; raw += 10000000)
		stamp_add(&l, &(struct stamp_bracket){ raw, real_at(raw, 0, step_at, step), 50 });
	for (int64_t at = 2025000000; at < 2041000000; at += 1000000)
		if (stamp_to_raw(&l, real_at(at, 0, step_at, step), &got, &err) == STAMP_OK)
			assert_true(at - got <= err && got - at <= err);
	assert_int_equal(stamp_to_raw(&l, real_at(2026000000, 0, step_at, step), &got, &err), STAMP_UNSURE);
	assert_int_equal(stamp_to_raw(&l, real_at(2000000000, 0, step_at, step), &got, &err), STAMP_UNSURE);
}

static void a_stamp_outside_the_brackets_is_refused(void **state)
{
	struct stamp_line l = { 0 };
	int64_t got, err;

	(void)state;
	assert_int_equal(stamp_to_raw(&l, 5, &got, &err), STAMP_NO_BRACKET);
	for (int64_t raw = 0; raw < 40 * 1000000; raw += 1000000)
		stamp_add(&l, &(struct stamp_bracket){ raw, real_at(raw, 0, INT64_MAX, 0), 50 });
	assert_int_equal(stamp_to_raw(&l, real_at(2000000, 0, INT64_MAX, 0), &got, &err), STAMP_NO_BRACKET);
	assert_int_equal(stamp_to_raw(&l, real_at(39000001, 0, INT64_MAX, 0), &got, &err), STAMP_NO_BRACKET);
	assert_int_equal(stamp_to_raw(&l, real_at(38500000, 0, INT64_MAX, 0), &got, &err), STAMP_OK);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_packet_comes_back_as_it_was),
		cmocka_unit_test(the_digest_is_the_one_that_the_contract_says),
		cmocka_unit_test(every_changed_bit_is_refused),
		cmocka_unit_test(another_token_stream_or_secret_is_another_key),
		cmocka_unit_test(times_and_numbers_that_cannot_be_are_refused),
		cmocka_unit_test(a_number_counts_once_in_any_order),
		cmocka_unit_test(a_kernel_stamp_is_placed_within_its_stated_error),
		cmocka_unit_test(a_stamp_beside_a_step_of_the_wall_clock_is_refused),
		cmocka_unit_test(a_time_that_was_shown_twice_is_refused),
		cmocka_unit_test(a_stamp_outside_the_brackets_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
