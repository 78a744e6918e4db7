/* Training logs: lines whatever their length, who says how many stages there are, names of files. */
#include "../../collector/import/et.h"
#include "../../collector/import/lines.h"
#include "../../collector/import/megatron.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

static int64_t stages_after(const char *const *v)
{
	struct megatron m = { 0 };

	for (; *v; v++)
		megatron_take_argument(&m, *v);
	return m.numbers[MEGATRON_PP];
}

static void test_arguments_count_more_than_the_command_line(void **state)
{
	static const char *const command[] = { "python x.py --pipeline-model-parallel-size '4' --no-pipeline-parallel", NULL };
	static const char *const list[] = { "['x.py', '--pipeline-model-parallel-size', '8', '--y']", NULL };
	static const char *const all[] = { "--pipeline-model-parallel-size 2",
					   "using world size: 64, data-parallel-size: 1, pipeline-model-parallel size: 16",
					   "  transformer_pipeline_model_parallel_size ........ 1",
					   "node-1:   pipeline_model_parallel_size .................... 4",
					   "  pipeline_model_parallel_size .................... 5", NULL };
	static const char *const none[] = { "pipeline_model_parallel_size 4", "--pipeline-model-parallel-size-x 3",
					    "virtual_pipeline_model_parallel_size ............ None",
					    "pipeline_model_parallel_size .................... -3",
					    "pipeline_model_parallel_size .................... 99999999999999999999", NULL };

	(void)state;
	assert_int_equal(stages_after(command), 4);
	assert_int_equal(stages_after(list), 8);
	assert_int_equal(stages_after(all), 4);
	assert_int_equal(stages_after(none), 0);
}

static void test_a_rank_is_in_the_name_of_an_execution_trace(void **state)
{
	static const struct {
		const char *name;
		int64_t rank;
	} v[] = {
		{ "a/dlrm_eg_2.json", 2 }, { "chakra.0.json", 0 }, { "custom_allreduce.7.et.gz", 7 }, { "rank-34.Jul_15.json", 34 },
		{ "et_rank3_17.json.gz", 3 }, { "resnet50.json", -1 }, { "x_99999999999.json", -1 }, { "et.json", -1 }, { "5", -1 },
		{ ".gz", -1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof v / sizeof *v; i++)
		if (et_rank_of(v[i].name) != v[i].rank)
			fail_msg("%s: %lld", v[i].name, (long long)et_rank_of(v[i].name));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arguments_count_more_than_the_command_line),
		cmocka_unit_test(test_a_rank_is_in_the_name_of_an_execution_trace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
