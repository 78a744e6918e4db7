/* What a profile's events are, whose it is, and what its device did: against lists of
 * names, and against counting instant by instant. */
#include "../../collector/import/kernel_class.h"
#include "../../collector/import/profile_breakdown.h"
#include "../../collector/import/rank_name.h"
#include "../../collector/import/stamp_range.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE 400 /* instants of a drawn device */
#define MAX_WORK 60

struct work {
	unsigned set;
	int64_t begin, end;
};

static int by_begin(const void *a, const void *b)
{
	const struct work *x = a, *y = b;

	return (x->begin > y->begin) - (x->begin < y->begin);
}

static size_t draw(uint64_t *seed, struct work *v)
{
	size_t n = unit_rand(seed) % MAX_WORK;

	for (size_t i = 0; i < n; i++) {
		v[i].set = 1u << unit_rand(seed) % SWEEP_CLASSES;
		v[i].begin = (int64_t)(unit_rand(seed) % (LINE - 50));
		v[i].end = v[i].begin + (int64_t)(unit_rand(seed) % 50);
	}
	qsort(v, n, sizeof *v, by_begin);
	return n;
}

/* What was under way at each instant of a window, counted one by one. */
static void count(const struct work *v, size_t n, int64_t from, int64_t to, int64_t sums[SWEEP_SETS])
{
	memset(sums, 0, SWEEP_SETS * sizeof *sums);
	for (int64_t at = from; at < to; at++) {
		unsigned set = 0;

		for (size_t i = 0; i < n; i++)
			set |= v[i].begin <= at && at < v[i].end ? v[i].set : 0;
		sums[set]++;
	}
}

static void assert_sums(const int64_t *got, const int64_t *want)
{
	for (unsigned set = 0; set < SWEEP_SETS; set++)
		assert_int_equal(got[set], want[set]);
}

static void test_a_sweep_counts_as_one_by_one(void **state)
{
	uint64_t seed = 5;
	struct work v[MAX_WORK];

	(void)state;
	for (unsigned round = 0; round < 3000; round++) {
		size_t n = draw(&seed, v);
		int64_t want[SWEEP_SETS], end = 0, compute = 0;
		struct sweep s = { 0 };

		for (size_t i = 0; i < n; i++) {
			sweep_add(&s, v[i].set, v[i].begin, v[i].end);
			end = v[i].end > end ? v[i].end : end;
		}
		sweep_finish(&s);
		count(v, n, n ? v[0].begin : 0, end, want);
		assert_sums(s.sum_ns, want);
		for (unsigned set = 0; set < SWEEP_SETS; set++)
			compute += set & 1 ? want[set] : 0;
		assert_int_equal(sweep_sum(&s, 1, 1), compute);
	}
}

/* Windows in any place: with gaps, next to each other, before and behind all work. */
static void test_a_breakdown_of_steps_counts_as_one_by_one(void **state)
{
	uint64_t seed = 6;
	struct work v[MAX_WORK];

	(void)state;
	for (unsigned round = 0; round < 3000; round++) {
		size_t n = draw(&seed, v), n_steps = 0, next = 0;
		int64_t from[LINE], to[LINE], at = 0;
		struct breakdown b;

		while (at < LINE - 60) {
			from[n_steps] = at + (int64_t)(unit_rand(&seed) % 20);
			to[n_steps] = from[n_steps] + 1 + (int64_t)(unit_rand(&seed) % 80);
			at = to[n_steps++];
		}
		breakdown_init(&b, INT64_MAX);
		for (size_t i = 0; i <= n; i++) {
			for (; next < n_steps && (i == n || from[next] <= v[i].begin); next++)
				breakdown_step(&b, (int64_t)next, from[next], to[next]);
			if (i < n)
				breakdown_work(&b, v[i].set, v[i].begin, v[i].end, INT64_MIN);
		}
		breakdown_end(&b);
		assert_int_equal(b.n_steps, n_steps);
		for (size_t i = 0; i < n_steps; i++) {
			int64_t want[SWEEP_SETS], n_work = 0;

			count(v, n, from[i], to[i], want);
			assert_sums(b.steps[i].sum_ns, want);
			for (size_t k = 0; k < n; k++)
				n_work += v[k].begin >= from[i] && v[k].begin < to[i];
			assert_int_equal(b.steps[i].n_work, n_work);
		}
		breakdown_fini(&b);
	}
}

/* In whole microseconds, begins rounded up and ends down; without what the last step launched. */
static void test_the_whole_is_counted_as_it_is_elsewhere(void **state)
{
	struct breakdown b;

	(void)state;
	breakdown_init(&b, 100000);
	breakdown_work(&b, CLASS_COMPUTE, 1001, 4999, 500);		/* 2 to 4 */
	breakdown_work(&b, CLASS_COMMUNICATION, 3000, 7000, 600);	/* 3 to 7 */
	breakdown_work(&b, CLASS_COMPUTE, 7200, 7900, 700);		/* none: shorter than one */
	breakdown_work(&b, CLASS_MEMORY, 9000, 11000, INT64_MIN);	/* says no launch: counts */
	breakdown_work(&b, CLASS_COMPUTE, 12000, 20000, 100000);	/* the last step's */
	breakdown_work(&b, CLASS_COMPUTE, 12000, 20000, INT64_MAX);	/* of a launch that is not there */
	breakdown_end(&b);
	assert_int_equal(b.whole.n_work, 4);
	assert_int_equal(b.whole.from_ns, 2000);
	assert_int_equal(b.whole.to_ns, 11000);
	assert_int_equal(b.whole.sum_ns[0], 2000);
	assert_int_equal(b.whole.sum_ns[CLASS_COMPUTE], 1000);
	assert_int_equal(b.whole.sum_ns[CLASS_COMPUTE | CLASS_COMMUNICATION], 1000);
	assert_int_equal(b.whole.sum_ns[CLASS_COMMUNICATION], 3000);
	assert_int_equal(b.whole.sum_ns[CLASS_MEMORY], 2000);
	breakdown_fini(&b);
}

static void test_events_are_known_by_category_and_name(void **state)
{
	static const struct {
		const char *category, *name;
		enum profile_role role;
	} v[] = {
		{ "kernel", "gemm", ROLE_WORK }, { "Kernel", "gemm", ROLE_WORK },
		{ "gpu_memcpy", "Memcpy HtoD", ROLE_WORK }, { "Memcpy", "Memcpy HtoD", ROLE_WORK },
		{ "Memset", "Memset (Device)", ROLE_WORK }, { "mtia_ccp_events", "matmul", ROLE_WORK },
		{ "cuda_runtime", "cudaLaunchKernel", ROLE_LAUNCH }, { "Runtime", "cudaLaunchKernel", ROLE_LAUNCH },
		{ "cuda_driver", "cuLaunchKernelEx", ROLE_LAUNCH }, { "hip_runtime", "hipLaunchKernel", ROLE_LAUNCH },
		{ "xpu_runtime", "urEnqueueKernelLaunch", ROLE_LAUNCH }, { "mtia_runtime", "launch", ROLE_LAUNCH },
		{ "cuda_runtime", "hipDeviceSynchronize", ROLE_WAIT },
		{ "cuda_sync", "Stream Wait Event", ROLE_NONE },
		{ "user_annotation", "ProfilerStep#7", ROLE_STEP }, { "cpu_op", "ProfilerStep#7", ROLE_STEP },
		{ "Operator", "ProfilerStep#7", ROLE_STEP }, { "gpu_user_annotation", "ProfilerStep#7", ROLE_DEVICE_RANGE },
		{ "user_annotation", "nccl:all_reduce", ROLE_NOTE }, { "user_annotation", "xccl:all_reduce", ROLE_NOTE },
		{ "gpu_user_annotation", "nccl:all_reduce", ROLE_DEVICE_RANGE },
		{ "user_annotation", "gloo:all_reduce", ROLE_HOST_CALL },
		{ "user_annotation", "Optimizer.step#SGD.step", ROLE_RANGE },
		{ "cpu_op", "record_param_comms", ROLE_PARAMS }, { "cpu_op", "aten::add", ROLE_NONE },
		{ "python_function", "forward", ROLE_NONE }, { "Trace", "PyTorch Profiler (0)", ROLE_NONE },
		{ "", "", ROLE_NONE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof v / sizeof *v; i++)
		if (profile_role(v[i].category, v[i].name) != v[i].role)
			fail_msg("%s %s: %d", v[i].category, v[i].name, profile_role(v[i].category, v[i].name));
}

static void test_kernels_are_known_by_name(void **state)
{
	static const struct {
		const char *name;
		unsigned class;
		bool call;
	} v[] = {
		{ "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)", CLASS_COMMUNICATION, true },
		{ "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", CLASS_COMMUNICATION, true },
		{ "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)", CLASS_COMMUNICATION, true },
		{ "rcclKernel_AllGather", CLASS_COMMUNICATION, true },
		{ "void ncclDevKernel_Generic_4<4096>(ncclDevKernelArgsStorage<4096ul>)", CLASS_COMMUNICATION, true },
		{ "void deep_ep::intranode::dispatch<8, 768, 8192>(int4*, float*)", CLASS_COMMUNICATION, false },
		{ "void deep_ep::internode_ll::combine<false, 7168>(void*)", CLASS_COMMUNICATION, false },
		{ "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)", CLASS_COMMUNICATION, false },
		{ "Memcpy DtoD (Device -> Device)", CLASS_MEMORY, false },
		{ "Memset (Device)", CLASS_MEMORY, false }, { "hipMemcpyAsync", CLASS_MEMORY, false },
		{ "volta_sgemm_128x32_tn", CLASS_COMPUTE, false },
		{ "void at::native::reduce_kernel<512, 1>", CLASS_COMPUTE, false },
		{ "hipblaslt_gemm", CLASS_COMPUTE, false },
		{ "Stream Wait Event", 0, false }, { "Context Sync", 0, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof v / sizeof *v; i++)
		if (kernel_class(v[i].name) != v[i].class || kernel_is_call(v[i].name) != v[i].call)
			fail_msg("%s: %u", v[i].name, kernel_class(v[i].name));
	assert_true(kernel_is_copy("gpu_memset"));
	assert_true(kernel_is_copy("Memcpy"));
	assert_false(kernel_is_copy("kernel"));
}

static void test_a_rank_is_told_by_names_that_mean_it(void **state)
{
	static const struct {
		const char *path;
		int rank;
	} v[] = {
		{ "rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz", 34 }, { "rank0.json", 0 }, { "a/rank_3/trace.json", 3 },
		{ "worker4_step_12.1694128201547.pt.trace.json", 4 }, { "inference_rank_1.json.gz", 1 },
		{ "sampled_rank-0.json.gz", 0 }, { "kineto_ddp_rank7.json.gz", 7 }, { "RANK=12.json", 12 },
		{ "global_rank5.json", 5 }, { "globalrank5.json", 5 }, { "myRank6.json", 6 },
		{ "rank2/worker9.json", 9 }, { "rank0_of_job/rank1.json", 1 }, { "tp_rank0_rank9.json", 9 },
		{ "rank65535.json", 65535 },
		/* not the job's, or no number, or two */
		{ "local_rank_1.json", -1 }, { "tp_rank0.json", -1 }, { "localRank3.json", -1 }, { "frank3.json", -1 },
		{ "rank0_to_rank7.json", -1 }, { "rank_not_found.json", -1 }, { "trace.json", -1 }, { "rank", -1 },
		{ "rank-", -1 }, { "rank65536.json", -1 }, { "rank99999999999999999999.json", -1 }, { "", -1 },
		{ "/", -1 }, { "rank7/a/b/c/d/trace.json", -1 }, { "ranking3.json", -1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof v / sizeof *v; i++)
		if (rank_of_path(v[i].path) != v[i].rank)
			fail_msg("%s: %d", v[i].path, (int)rank_of_path(v[i].path));
}

static void test_stamps_lie_where_most_are_whatever_their_order(void **state)
{
	const int64_t second = INT64_C(1000000000), base = INT64_C(1700000000) * second;
	uint64_t seed = 7;

	(void)state;
	for (unsigned round = 0; round < 200; round++) {
		struct stamp_ranges r = { .n = 0 };
		struct stamp_range most;

		for (unsigned i = 0; i < 100; i++) {
			int64_t at_ns = unit_rand(&seed) % 10 == 0 ? (int64_t)(unit_rand(&seed) % 3) * 1000 * 3600 * second
								   : base + (int64_t)(unit_rand(&seed) % 3600) * second;

			stamp_ranges_add(&r, at_ns);
		}
		stamp_ranges_add(&r, base);
		stamp_ranges_add(&r, base + 3600 * second);
		assert_true(stamp_most(&r, &most));
		assert_int_equal(most.lo_ns, base);
		assert_int_equal(most.hi_ns, base + 3600 * second);
		assert_true(most.n > 50);
	}
}

/* Two that something between them makes one. */
static void test_ranges_grow_together(void **state)
{
	struct stamp_ranges r = { .n = 0 };
	struct stamp_range most;

	(void)state;
	assert_false(stamp_most(&r, &most));
	stamp_ranges_add(&r, 0);
	stamp_ranges_add(&r, 2 * STAMP_GAP_NS);
	assert_int_equal(r.n, 2);
	stamp_ranges_add(&r, STAMP_GAP_NS);
	assert_int_equal(r.n, 1);
	assert_true(stamp_most(&r, &most));
	assert_int_equal(most.n, 3);
	for (int64_t i = 10; i < 100; i++) /* more places than are kept: the full one stays */
		stamp_ranges_add(&r, i * 10 * STAMP_GAP_NS);
	assert_true(stamp_most(&r, &most));
	assert_int_equal(most.lo_ns, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_sweep_counts_as_one_by_one),
		cmocka_unit_test(test_a_breakdown_of_steps_counts_as_one_by_one),
		cmocka_unit_test(test_the_whole_is_counted_as_it_is_elsewhere),
		cmocka_unit_test(test_events_are_known_by_category_and_name),
		cmocka_unit_test(test_kernels_are_known_by_name),
		cmocka_unit_test(test_a_rank_is_told_by_names_that_mean_it),
		cmocka_unit_test(test_stamps_lie_where_most_are_whatever_their_order),
		cmocka_unit_test(test_ranges_grow_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
