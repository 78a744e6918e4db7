#include "../../proto/chunk.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#define SEED UINT64_C(20260301)

/* Events of a shape: 0 a training loop's, 1 anything at all, 2 all the same, 3 a device's. */
static void make(struct event *ev, size_t n, unsigned shape, uint64_t *rng)
{
	uint64_t t = unit_rand(rng) >> 2;

	for (size_t i = 0; i < n; i++) {
		uint64_t r = unit_rand(rng);

		t += shape == 2 ? 0 : r % 200000;
		ev[i] = (struct event){ .tick = t, .kind = 5 };
		if (shape == 0) {
			ev[i].kind = (uint16_t)(1 + r % 9);
			ev[i].flags = event_coll_flags(OP_ALL_REDUCE, DTYPE_F32);
			ev[i].name = (uint32_t)(r >> 8) % 4;
			ev[i].a = event_a((uint32_t)(1000 + i / 40), (uint32_t)(r >> 16) % 5000);
			ev[i].b = (r >> 32) % (64u << 20) | (r & EVENT_COLL_SYNC_BIT);
		} else if (shape == 3) {
			ev[i].kind = (uint16_t)(EVENT_LAUNCH + r % 5);
			ev[i].flags = (uint16_t)((r >> 8) % 5);
			ev[i].name = (uint32_t)(r >> 16) % 9;
			ev[i].a = event_a((uint32_t)(i / 60), (uint32_t)(1 + i / 3));
			ev[i].b = ev[i].kind == EVENT_STREAM_WAIT ? i / 4 : 0;
		} else if (shape == 1) {
			ev[i].kind = (uint16_t)(r % EVENT_N_KINDS);
			ev[i].flags = (uint16_t)(r >> 8);
			ev[i].name = (uint32_t)(r >> 24);
			ev[i].a = unit_rand(rng);
			ev[i].b = unit_rand(rng);
		}
	}
}

static void what_is_encoded_is_decoded(void **state)
{
	static struct event ev[CHUNK_MAX_EVENTS], out[CHUNK_MAX_EVENTS];
	static unsigned char buf[CHUNK_MAX_BYTES(CHUNK_MAX_EVENTS)];
	uint64_t rng = SEED;

	(void)state;
	for (unsigned round = 0; round < 600; round++) {
		size_t n = 1 + unit_rand(&rng) % (round % 10 ? CHUNK_EVENTS : CHUNK_MAX_EVENTS);
		struct chunk_info info;
		size_t n_bytes, n_out;

		make(ev, n, round % 4, &rng);
		n_bytes = chunk_encode(ev, n, buf);
		assert_true(n_bytes <= CHUNK_MAX_BYTES(n));
		assert_int_equal(chunk_peek(buf, n_bytes, &info), CHUNK_OK);
		assert_int_equal(info.n_events, n);
		assert_int_equal(chunk_decode(buf, n_bytes, out, CHUNK_MAX_EVENTS, &n_out), CHUNK_OK);
		assert_int_equal(n_out, n);
		assert_memory_equal(out, ev, n * sizeof *ev);
	}
}

static void a_kind_is_known_by_its_name(void **state)
{
	(void)state;
	for (unsigned kind = 0; kind < EVENT_N_KINDS; kind++)
		assert_int_equal(event_kind_is_known(kind),
				 strcmp(event_kind_name(kind), "unknown") != 0);
}

static void a_loops_event_takes_at_most_sixteen_bytes(void **state)
{
	static struct event ev[CHUNK_EVENTS];
	static unsigned char buf[CHUNK_MAX_BYTES(CHUNK_EVENTS)];
	uint64_t rng = SEED;

	(void)state;
	make(ev, CHUNK_EVENTS, 0, &rng);
	assert_true(chunk_encode(ev, CHUNK_EVENTS, buf) <= 16 * CHUNK_EVENTS);
}

static void a_cut_chunk_is_refused_at_every_length(void **state)
{
	static struct event ev[60], out[60];
	static unsigned char buf[CHUNK_MAX_BYTES(60)];
	uint64_t rng = SEED;
	size_t n_bytes, n;

	(void)state;
	make(ev, 60, 0, &rng);
	n_bytes = chunk_encode(ev, 60, buf);
	for (size_t cut = 0; cut < n_bytes; cut++) {
		unsigned char *exact = malloc(cut ? cut : 1); /* the sanitizer sees the edge */

		assert_non_null(exact);
		memcpy(exact, buf, cut);
		assert_int_not_equal(chunk_decode(exact, cut, out, 60, &n), CHUNK_OK);
		free(exact);
	}
}

static void a_flipped_bit_never_decodes_to_a_lying_head(void **state)
{
	static struct event ev[60], out[60];
	static unsigned char buf[CHUNK_MAX_BYTES(60)], bent[CHUNK_MAX_BYTES(60)];
	uint64_t rng = SEED;
	size_t n_bytes, n;

	(void)state;
	make(ev, 60, 0, &rng);
	n_bytes = chunk_encode(ev, 60, buf);
	for (size_t bit = 0; bit < CHUNK_HEAD_BYTES * 8; bit++) {
		memcpy(bent, buf, n_bytes);
		bent[bit / 8] ^= (unsigned char)(1u << bit % 8);
		assert_int_not_equal(chunk_decode(bent, n_bytes, out, 60, &n), CHUNK_OK);
	}
}

static void more_events_than_the_caller_has_room_for_are_refused(void **state)
{
	static struct event ev[60], out[60];
	static unsigned char buf[CHUNK_MAX_BYTES(60)];
	uint64_t rng = SEED;
	size_t n_bytes, n = 77;

	(void)state;
	make(ev, 60, 0, &rng);
	n_bytes = chunk_encode(ev, 60, buf);
	assert_int_equal(chunk_decode(buf, n_bytes, out, 59, &n), CHUNK_TOO_MANY);
	assert_int_equal(n, 77);
}

static void raw_kinds_alone_need_no_decoding(void **state)
{
	struct event ev[2] = { { .tick = 1, .kind = EVENT_SCOPE_BEGIN }, { .tick = 2, .kind = EVENT_COUNTER } };
	unsigned char buf[CHUNK_MAX_BYTES(2)];
	struct chunk_info info;

	(void)state;
	assert_int_equal(chunk_peek(buf, chunk_encode(ev, 2, buf), &info), CHUNK_OK);
	assert_false(chunk_has_domain(&info));
	ev[1].kind = EVENT_STEP_END;
	assert_int_equal(chunk_peek(buf, chunk_encode(ev, 2, buf), &info), CHUNK_OK);
	assert_true(chunk_has_domain(&info));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_encoded_is_decoded),
		cmocka_unit_test(a_kind_is_known_by_its_name),
		cmocka_unit_test(a_loops_event_takes_at_most_sixteen_bytes),
		cmocka_unit_test(a_cut_chunk_is_refused_at_every_length),
		cmocka_unit_test(a_flipped_bit_never_decodes_to_a_lying_head),
		cmocka_unit_test(more_events_than_the_caller_has_room_for_are_refused),
		cmocka_unit_test(raw_kinds_alone_need_no_decoding),
	};
	return cmocka_run_group_tests_name("chunk", tests, NULL, NULL);
}
