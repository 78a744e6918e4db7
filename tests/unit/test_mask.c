/* Names of people and machines: found wherever they stand, and nothing else touched. */
#include "../../collector/import/mask.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

static struct mask *m;

static int begin(void **state)
{
	(void)state;
	m = mask_new();
	return m ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	mask_free(m);
	return 0;
}

static void is_kept(const char *text)
{
	char *out = mask_text(m, text);

	assert_string_equal(out, text);
	free(out);
}

/* What is left of text around the marks: "*" for each. */
static void becomes(const char *text, const char *want)
{
	static const char *const sorts[] = { "host-", "user-", "addr-" };
	char *out = mask_text(m, text), got[512];
	size_t n = 0;

	for (const char *p = out; *p;) {
		size_t used = 0;

		for (size_t i = 0; i < 3; i++)
			if (strncmp(p, sorts[i], 5) == 0 && strspn(p + 5, "0123456789abcdef") == 8)
				used = 13;
		got[n++] = used ? '*' : *p;
		p += used ? used : 1;
	}
	got[n] = '\0';
	assert_string_equal(got, want);
	free(out);
}

static void test_what_looks_like_a_name_is_masked_unlearned(void **state)
{
	(void)state;
	becomes("/home/alice/x.py(12): forward", "/home/*/x.py(12): forward");
	becomes("\"/Users/alice b\"", "\"/Users/* b\"");
	becomes("C:\\Users\\alice\\x.py", "C:\\Users\\*\\x.py");
	becomes("[0]eth0:10.1.2.3<0>", "[0]eth0:*<0>");
	becomes("10.1.2.3", "*");
	becomes("at 10.1.2.3.", "at *.");
	becomes("trace_10.1.2.3_rank0.json", "trace_*_rank0.json");
	becomes("tcp://[fd00:1:2::3]:29500", "tcp://[*]:29500");
	becomes("mail alice@trainer.example now", "mail *@* now");
}

static void test_what_is_no_name_is_kept(void **state)
{
	static const char *const kept[] = {
		"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >",
		"c10::add", "c10::BFloat16", "memcpy@GLIBC_2.14", "memcpy@@GLIBC_2.14", "NCCL 2.21.5+cuda12.4",
		"12:34:56", "127.0.0.1", "0.0.0.0", "2026-11-30T20:42:58", "1.2.3.4.5", "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
		"1 (default_pg)", "/homeless/x", "sm__90", "...", "a..b", "rank 3", "x@y", "\xff\xfe", "",
	};

	(void)state;
	mask_learn(m, MASK_HOST, "trainer-a.corp.example");
	for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
		is_kept(kept[i]);
}

static void test_a_learned_name_is_found_in_whole_words(void **state)
{
	(void)state;
	mask_learn(m, MASK_HOST, "Trainer-A.corp.example");
	mask_learn(m, MASK_USER, "alice");
	becomes("trainer-a.corp.example:12:34 [0] NCCL", "*:12:34 [0] NCCL");
	becomes("trainer-a of it", "* of it");
	becomes("trainer-b.corp.example, corp.example", "*, *");
	becomes("trainer-a_4711.1700.pt.trace.json", "*_4711.1700.pt.trace.json");
	becomes("x-trainer-a-0.json", "x-*-0.json");
	becomes("/scratch/alice/run", "/scratch/*/run");
	is_kept("malice trainer-ab xtrainer-a alicem");
}

static void test_the_same_name_has_the_same_mark(void **state)
{
	char *whole, *brief, *field, *other;

	(void)state;
	mask_learn(m, MASK_HOST, "trainer-a.corp.example");
	whole = mask_name(m, MASK_HOST, "trainer-a.corp.example");
	brief = mask_text(m, "trainer-a");
	field = mask_text(m, "TRAINER-A.CORP.EXAMPLE");
	other = mask_name(m, MASK_HOST, "trainer-b.corp.example");
	assert_string_equal(whole, brief);
	assert_string_equal(whole, field);
	assert_string_not_equal(whole, other);
	free(whole);
	free(brief);
	free(field);
	free(other);
}

static void test_marks_of_two_imports_are_not_the_same(void **state)
{
	struct mask *again = mask_new();
	char *a = mask_name(m, MASK_HOST, "node-7"), *b = mask_name(again, MASK_HOST, "node-7");

	(void)state;
	assert_string_not_equal(a, b);
	free(a);
	free(b);
	mask_free(again);
}

static void test_words_that_anybody_uses_are_no_names(void **state)
{
	(void)state;
	mask_learn(m, MASK_USER, "root");
	mask_learn(m, MASK_USER, "ubuntu");
	mask_learn(m, MASK_HOST, "localhost");
	mask_learn(m, MASK_HOST, "trainer");
	mask_learn(m, MASK_HOST, "rank 3");
	mask_learn(m, MASK_HOST, "42");
	mask_learn(m, MASK_HOST, "");
	is_kept("root of ubuntu on localhost, trainer of rank 3 at 42");
}

static void test_fields_are_masked_by_their_keys(void **state)
{
	static const char json[] = "{\"hostname\":\"trainer\",\"user\":\"bob\",\"version\":\"8.9.7.29\",\"n\":1.5,"
				   "\"peers\":[{\"ip\":\"10.1.2.3\"}],\"file\":\"/home/carol/x.py\"}";
	static const char plain[] = "{ \"op\" : \"allreduce\", \"n\": 1 }";
	char *out, *kept;

	(void)state;
	mask_learn_fields(m, json);
	out = mask_fields(m, json);
	assert_null(strstr(out, "trainer"));
	assert_null(strstr(out, "bob"));
	assert_null(strstr(out, "carol"));
	assert_null(strstr(out, "10.1.2.3"));
	assert_non_null(strstr(out, "\"version\":\"8.9.7.29\""));
	assert_non_null(strstr(out, "\"n\":1.5"));
	assert_non_null(strstr(out, "{\"hostname\":\"host-"));
	kept = mask_fields(m, plain);
	assert_string_equal(kept, plain);
	free(out);
	free(kept);
}

static void test_a_profilers_file_name_says_its_host(void **state)
{
	(void)state;
	mask_learn_path(m, "/data/gpu01_4711.1700000000.pt.trace.json.gz");
	becomes("gpu01 and gpu01.x", "* and *.x");
	mask_learn_path(m, "rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz");
	is_kept("rank-34 Jul_15");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_what_looks_like_a_name_is_masked_unlearned, begin, end),
		cmocka_unit_test_setup_teardown(test_what_is_no_name_is_kept, begin, end),
		cmocka_unit_test_setup_teardown(test_a_learned_name_is_found_in_whole_words, begin, end),
		cmocka_unit_test_setup_teardown(test_the_same_name_has_the_same_mark, begin, end),
		cmocka_unit_test_setup_teardown(test_marks_of_two_imports_are_not_the_same, begin, end),
		cmocka_unit_test_setup_teardown(test_words_that_anybody_uses_are_no_names, begin, end),
		cmocka_unit_test_setup_teardown(test_fields_are_masked_by_their_keys, begin, end),
		cmocka_unit_test_setup_teardown(test_a_profilers_file_name_says_its_host, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
