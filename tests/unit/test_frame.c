#include "../../proto/frame.h"
#include "../../proto/chunk.h"
#include "unit.h"

#include <msgpack.h>
#include <stdlib.h>
#include <string.h>

static const struct frame_proc proc = {
	.proc = 3, .unique = UINT64_MAX, .started_ns = 12, .pid = 77, .rank = 2, .local_rank = 2,
	.world_size = 4, .restart_count = 1, .tick_error_ns = 40, .level = 2, .state = PROC_DIED,
	.state_at_ns = 99, .exit_code = -1, .signal = 9, .n_dropped = 5,
};

/* One of each type, with every list filled. */
static struct frame sample(enum frame_type type)
{
	static const unsigned char chunk[] = "not looked into";
	static const struct frame_chunk chunks[] = { { 3, 1, 4711, chunk, sizeof chunk } };
	static const struct frame_name names[] = { { 3, 1, "default_pg", 10 } };
	static const struct frame_text texts[] = { { 3, 1, 20, -5, "root\thello", 10 } };
	static const struct frame_gauge gauges[] = { { FRAME_HOST_PROC, 7, "host.cpu_util", 0.25 } };
	static const struct frame_inflight inflight[] = { { 3, 2, 40, 3, "default_pg", 9, 1, 50, 60 } };
	static const struct frame_snapshot snapshots[] = { { 1, 2, 3, 4, 50, 1, UINT64_MAX } };
	static const struct frame_peer_exchange peer_exchanges[] = { { 3, 1, 2, 3, 4 } };
	struct frame f = { .type = type, .protocol = FRAME_PROTOCOL };

	switch (type) {
	case FRAME_HELLO:
		f.hello = (struct frame_hello){ .protocol = FRAME_PROTOCOL, .agent_id = "0123456789abcde",
			.run_id = "run", .host = "h", .boot_id = "boot", .token = "secret",
			.version = "0.1.0", .time_ns_inode = 4026531834, .raw_ns = 1, .real_ns = 2,
			.n_procs = 1, .procs = &proc };
		break;
	case FRAME_HEARTBEAT:
		f.heartbeat = (struct frame_heartbeat){ .stream = 9, .t0_ns = 1, .real_ns = 2,
			.probing = { PROBING, 5, 4, 1, 4711 }, .last = { 1, 2, 3, 4 },
			.n_spooled_bytes = 5, .oldest_seq = 8, .cpu_ns = 6, .rss_bytes = 7,
			.n_inflight = 1, .inflight = inflight };
		break;
	case FRAME_BATCH:
		f.batch = (struct frame_batch){ .stream = 9, .seq = 10, .agent_id = "0123456789abcde",
			.n_given_up = 1, .n_procs = 1, .procs = &proc, .n_names = 1, .names = names,
			.n_chunks = 1, .chunks = chunks, .n_texts = 1, .texts = texts,
			.n_gauges = 1, .gauges = gauges, .n_snapshots = 1, .snapshots = snapshots,
			.n_peer_exchanges = 1, .peer_exchanges = peer_exchanges };
		break;
	case FRAME_WELCOME:
		f.welcome = (struct frame_welcome){ 9, 2, "run", "0.1.0", "", 7788, { 1, 2 }, { 3 } };
		break;
	case FRAME_BEAT:
		f.beat = (struct frame_beat){ 1, 2, 2, 64, "a notice", 1,
			{ { 3, 4711, 4, { 10, 0, 0, 1 } } } };
		break;
	case FRAME_ACK:
		f.ack = (struct frame_ack){ 10, 64 };
		break;
	case FRAME_REHELLO:
		f.rehello.stream = 9;
		break;
	case FRAME_REFUSE:
		f.refuse = (struct frame_refuse){ REFUSE_TOKEN, "why" };
		break;
	}
	return f;
}

static const enum frame_type types[] = { FRAME_HELLO, FRAME_HEARTBEAT, FRAME_BATCH, FRAME_WELCOME,
					 FRAME_BEAT, FRAME_ACK, FRAME_REHELLO, FRAME_REFUSE };
#define N_TYPES (sizeof types / sizeof *types)

static void every_type_comes_back_to_the_byte(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_TYPES; i++) {
		struct frame_buf one = { 0 }, two = { 0 };
		struct frame f = sample(types[i]), g;

		assert_int_equal(frame_pack(&one, &f), 0);
		assert_int_equal(frame_open(&g, one.data, one.n_bytes), FRAME_OK);
		assert_int_equal(g.type, types[i]);
		assert_int_equal(frame_pack(&two, &g), 0);
		assert_int_equal(one.n_bytes, two.n_bytes);
		assert_memory_equal(one.data, two.data, one.n_bytes);
		frame_close(&g);
		frame_buf_fini(&one);
		frame_buf_fini(&two);
	}
}

static void a_batch_keeps_its_values(void **state)
{
	struct frame f = sample(FRAME_BATCH), g;
	struct frame_buf b = { 0 };

	(void)state;
	assert_int_equal(frame_pack(&b, &f), 0);
	assert_int_equal(frame_open(&g, b.data, b.n_bytes), FRAME_OK);
	assert_int_equal(g.batch.seq, 10);
	assert_int_equal(g.batch.procs[0].unique, UINT64_MAX);
	assert_int_equal(g.batch.procs[0].rank, 2);
	assert_int_equal(g.batch.procs[0].exit_code, -1);
	assert_int_equal(g.batch.procs[0].n_dropped, 5);
	assert_int_equal(g.batch.chunks[0].first, 4711);
	assert_int_equal(g.batch.texts[0].at_ns, -5);
	assert_memory_equal(g.batch.names[0].text, "default_pg", 10);
	assert_string_equal(g.batch.gauges[0].name, "host.cpu_util");
	assert_true(g.batch.snapshots[0].tick == UINT64_MAX);
	assert_int_equal(g.batch.peer_exchanges[0].t3_ns, 4);
	frame_close(&g);
	frame_buf_fini(&b);
}

static void a_cut_message_is_refused_at_every_length(void **state)
{
	(void)state;
	for (size_t i = 0; i < N_TYPES; i++) {
		struct frame_buf b = { 0 };
		struct frame f = sample(types[i]), g;

		assert_int_equal(frame_pack(&b, &f), 0);
		for (size_t cut = 0; cut < b.n_bytes; cut++) {
			unsigned char *exact = malloc(cut ? cut : 1);

			memcpy(exact, b.data, cut);
			assert_int_equal(frame_open(&g, exact, cut), FRAME_BAD_SHAPE);
			free(exact);
		}
		frame_buf_fini(&b);
	}
}

static void a_bent_byte_is_refused_or_opens_to_something_sound(void **state)
{
	struct frame f = sample(FRAME_BATCH), g;
	struct frame_buf b = { 0 }, again = { 0 };

	(void)state;
	assert_int_equal(frame_pack(&b, &f), 0);
	for (size_t i = 0; i < b.n_bytes; i++) {
		for (unsigned v = 1; v < 256; v += 7) {
			b.data[i] = (unsigned char)(b.data[i] + v);
			if (frame_open(&g, b.data, b.n_bytes) == FRAME_OK) {
				assert_int_equal(frame_pack(&again, &g), 0);
				frame_close(&g);
			}
			b.data[i] = (unsigned char)(b.data[i] - v);
		}
	}
	frame_buf_fini(&b);
	frame_buf_fini(&again);
}

static void a_newer_protocol_is_told_apart_from_garbage(void **state)
{
	/* {"t": 1, "v": 2} */
	const unsigned char newer[] = { 0x82, 0xa1, 't', 1, 0xa1, 'v', FRAME_PROTOCOL + 1 };
	const unsigned char typeless[] = { 0x82, 0xa1, 't', 99, 0xa1, 'v', FRAME_PROTOCOL };
	struct frame g;

	(void)state;
	assert_int_equal(frame_open(&g, newer, sizeof newer), FRAME_NEWER);
	assert_int_equal(g.protocol, FRAME_PROTOCOL + 1);
	assert_int_equal(frame_open(&g, typeless, sizeof typeless), FRAME_BAD_TYPE);
}

static void ranks_outside_their_world_are_refused(void **state)
{
	struct frame f = sample(FRAME_HELLO), g;
	struct frame_proc bad = proc;
	struct frame_buf b = { 0 };

	(void)state;
	bad.rank = bad.world_size;
	f.hello.procs = &bad;
	assert_int_equal(frame_pack(&b, &f), 0);
	assert_int_equal(frame_open(&g, b.data, b.n_bytes), FRAME_BAD_FIELD);
	bad.rank = -1; /* not known yet: fine in any world */
	bad.world_size = 0;
	assert_int_equal(frame_pack(&b, &f), 0);
	assert_int_equal(frame_open(&g, b.data, b.n_bytes), FRAME_OK);
	frame_close(&g);
	frame_buf_fini(&b);
}

static void the_data_url_is_the_next_port_or_a_sibling_file(void **state)
{
	char out[64];

	(void)state;
	assert_int_equal(frame_data_url("tcp://127.0.0.1:7788", out, sizeof out), 0);
	assert_string_equal(out, "tcp://127.0.0.1:7789");
	assert_int_equal(frame_data_url("tcp://[::1]:80", out, sizeof out), 0);
	assert_string_equal(out, "tcp://[::1]:81");
	assert_int_equal(frame_data_url("ipc:///tmp/s", out, sizeof out), 0);
	assert_string_equal(out, "ipc:///tmp/s.data");
	assert_true(frame_data_url("tcp://h", out, sizeof out) < 0);
	assert_true(frame_data_url("tcp://h:", out, sizeof out) < 0);
	assert_true(frame_data_url("tcp://h:65535", out, sizeof out) < 0);
	assert_true(frame_data_url("tcp://h:7x", out, sizeof out) < 0);
	assert_true(frame_data_url("http://h:1", out, sizeof out) < 0);
	assert_true(frame_data_url("tcp://127.0.0.1:7788", out, 10) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_type_comes_back_to_the_byte),
		cmocka_unit_test(a_batch_keeps_its_values),
		cmocka_unit_test(a_cut_message_is_refused_at_every_length),
		cmocka_unit_test(a_bent_byte_is_refused_or_opens_to_something_sound),
		cmocka_unit_test(a_newer_protocol_is_told_apart_from_garbage),
		cmocka_unit_test(ranks_outside_their_world_are_refused),
		cmocka_unit_test(the_data_url_is_the_next_port_or_a_sibling_file),
	};
	return cmocka_run_group_tests_name("frame", tests, NULL, NULL);
}
