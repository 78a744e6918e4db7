/* Names in Flight Recorder dumps: of files, operations, types, shapes. What dumps lead to is in tests/system/test_flight.py. */
#include "../../collector/import/flight.h"
#include "unit.h"

static void test_the_rank_of_a_file_s_name(void **state)
{
	static const struct {
		const char *name;
		int32_t rank;
	} cases[] = {
		{ "_dump_7", 7 }, { "fr_x_rank1.pkl", 1 }, { "nccl_trace_rank_3", 3 }, { "node12_rank_3", 3 },
		{ "rank_3_node12", 3 }, { "comm_lib_trace_rank_15", 15 }, { "frank9_dump_2", 2 }, { "Rank-4.json", 4 },
		{ "12.pickle", 12 }, { "gpu8_5.pkl.gz", 5 }, { "trace", -1 }, { "", -1 }, { "rank_", -1 },
		{ "rank_99999999999999", -1 }, { "dump.7", 7 }, { "host3.site2.rank=6", 6 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		if (flight_rank_of_name(cases[i].name) != cases[i].rank)
			fail_msg("%s is not of rank %d", cases[i].name, flight_rank_of_name(cases[i].name));
}

static void test_what_operations_are_called(void **state)
{
	static const struct {
		const char *name;
		struct flight_words want;
	} cases[] = {
		{ "nccl:all_reduce", { OP_ALL_REDUCE, -1, -1 } }, { "nccl:all_reduce_barrier", { OP_BARRIER, -1, -1 } },
		{ "nccl:allreduce_coalesced", { OP_ALL_REDUCE, -1, -1 } }, { "nccl:_all_gather_base", { OP_ALL_GATHER, -1, -1 } },
		{ "nccl:ALLGATHER_coalesced", { OP_ALL_GATHER, -1, -1 } }, { "nccl:_reduce_scatter_base", { OP_REDUCE_SCATTER, -1, -1 } },
		{ "nccl:_reduce_oop", { OP_REDUCE, -1, -1 } }, { "nccl:_broadcast_oop", { OP_BROADCAST, -1, -1 } },
		{ "nccl:alltoall_base", { OP_ALL_TO_ALL, -1, -1 } }, { "nccl:all_to_all", { OP_ALL_TO_ALL, -1, -1 } },
		{ "xccl:gather", { OP_GATHER, -1, -1 } }, { "scatter", { OP_SCATTER, -1, -1 } },
		{ "nccl:send 0->3", { OP_SEND, 0, 3 } }, { "nccl:recv 1<-0", { OP_RECV, 0, 1 } }, { "nccl:send 9->", { OP_SEND, -1, -1 } },
		{ "nccl:coalesced", { OP_UNKNOWN, -1, -1 } }, { "", { OP_UNKNOWN, -1, -1 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct flight_words w = flight_words(cases[i].name);

		if (w.op != cases[i].want.op || w.from != cases[i].want.from || w.to != cases[i].want.to)
			fail_msg("%s is read as %s %d %d", cases[i].name, event_op_name(w.op), w.from, w.to);
	}
}

static void test_types_and_shapes(void **state)
{
	uint64_t bytes;
	size_t n;
	json_t *v;

	(void)state;
	assert_int_equal(flight_dtype("BFloat16", &bytes), DTYPE_BF16);
	assert_int_equal(bytes, 2);
	assert_int_equal(flight_dtype("torch.float32", &bytes), DTYPE_F32);
	assert_int_equal(bytes, 4);
	assert_int_equal(flight_dtype("Float8_e4m3fn", &bytes), DTYPE_F8);
	assert_int_equal(flight_dtype("QInt32", &bytes), DTYPE_UNKNOWN);
	v = json_loads("[[2048, 1, 5120], [3], []]", 0, NULL);
	assert_int_equal(flight_elements(v, &n), 2048 * 5120 + 3 + 1);
	assert_int_equal(n, 3);
	json_decref(v);
	v = json_loads("[[4611686018427387904, 4611686018427387904], [-5], [\"7\"]]", 0, NULL);
	assert_int_equal(flight_elements(v, &n), 7);
	json_decref(v);
	assert_int_equal(flight_elements(NULL, &n), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_rank_of_a_file_s_name),
		cmocka_unit_test(test_what_operations_are_called),
		cmocka_unit_test(test_types_and_shapes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
