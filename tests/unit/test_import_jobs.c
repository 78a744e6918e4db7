/* Files that are read at once: what comes of them is what one after the other gives, in their order. */
#include "../../collector/import/import.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define N_FILES 40

static char folder[] = "/tmp/syncline-jobs-XXXXXX";
static char paths[N_FILES][64];
static struct trace_input inputs[N_FILES];

static void write_file(unsigned i, const char *name, const char *text)
{
	FILE *f;

	snprintf(paths[i], sizeof paths[i], "%s/%s", folder, name);
	f = fopen(paths[i], "wb");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	fclose(f);
}

/* A profile of rank i with a kernel for each number up to n, in a group whose name is everyone's. */
static void write_profile(unsigned i, const char *name, int rank, unsigned n)
{
	char *text = malloc(400 * (n + 2)), *at = text;

	at += sprintf(at, "{\"distributedInfo\":{\"rank\":%d,\"world_size\":64},\"traceEvents\":[{}", rank);
	for (unsigned k = 0; k < n; k++)
		at += sprintf(at,
			      ",{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclDevKernel_AllReduce\",\"ts\":%u,\"dur\":1.5,"
			      "\"args\":{\"stream\":7,\"correlation\":%u,\"Collective name\":\"allreduce\",\"Group size\":2,"
			      "\"In msg nelems\":4,\"dtype\":\"Float\",\"Process Group Name\":\"1\","
			      "\"Process Group Ranks\":\"[%d, %d]\"}}",
			      1000 + 10 * k, k + 1, rank / 2 * 2, rank / 2 * 2 + 1);
	strcpy(at, "]}");
	write_file(i, name, text);
	free(text);
}

static void write_all(void)
{
	char name[32];

	for (unsigned i = 0; i < N_FILES; i++) {
		snprintf(name, sizeof name, "f%u.json", i);
		if (i == 3)
			write_file(i, name, "not json");
		else if (i == 8)
			write_profile(i, name, 5, 10); /* again */
		else if (i == 12)
			write_file(i, name, "{\"traceEvents\":[{\"ph\":\"X\"");
		else if (i == 20)
			write_file(i, name, "{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"ts\":5,\"dur\":1}]}");
		else
			write_profile(i, name, (int)i, i % 5 == 0 ? 2000 : 10);
	}
	strcpy(paths[30], "/nonexistent");
}

static void import(struct trace *t, unsigned n_jobs)
{
	static const struct import_progress none;

	trace_init(t);
	for (unsigned i = 0; i < N_FILES; i++)
		inputs[i] = (struct trace_input){ .path = paths[i] };
	assert_true(import_files(t, inputs, N_FILES, n_jobs, &none));
}

static void test_any_number_of_jobs_gives_the_same(void **state)
{
	struct trace_input first[N_FILES];
	struct trace a, b;

	(void)state;
	import(&a, 1);
	memcpy(first, inputs, sizeof first);
	assert_int_equal(a.n_ranks, N_FILES - 5);
	for (unsigned n_jobs = 0; n_jobs < 9; n_jobs += 2) {
		import(&b, n_jobs);
		for (unsigned i = 0; i < N_FILES; i++) {
			assert_string_equal(inputs[i].outcome, first[i].outcome);
			assert_true(inputs[i].fine == first[i].fine && inputs[i].rank == first[i].rank &&
				    inputs[i].n_events == first[i].n_events);
		}
		assert_int_equal(b.n_ranks, a.n_ranks);
		assert_int_equal(b.n_groups, a.n_groups);
		for (unsigned i = 0; i < a.n_ranks; i++) {
			assert_int_equal(b.ranks[i].rank, a.ranks[i].rank);
			assert_int_equal(b.ranks[i].clock, a.ranks[i].clock);
			assert_int_equal(b.ranks[i].n_names, a.ranks[i].n_names);
		}
		trace_fini(&b);
	}
	trace_fini(&a);
}

static void test_each_file_s_outcome_is_what_it_would_be_in_turn(void **state)
{
	static const struct {
		unsigned i;
		const char *outcome;
	} v[] = {
		{ 0, "ok" }, { 3, "is of no format that this release reads" },
		{ 8, "is of rank 5, and so was a file before it" },
		{ 12, "is no JSON: it ends too early, near byte 25" },
		{ 20, "does not say which rank it is, neither inside nor in its name" },
		{ 30, "cannot be read: No such file or directory" },
	};
	struct trace t;

	(void)state;
	import(&t, 4);
	for (size_t k = 0; k < sizeof v / sizeof *v; k++)
		assert_string_equal(inputs[v[k].i].outcome, v[k].outcome);
	assert_int_equal(inputs[8].rank, -1);
	trace_fini(&t);
}

static bool has_name(const struct trace_rank *r, const char *name)
{
	for (uint32_t i = 0; i < r->n_names; i++)
		if (strcmp(r->names[i], name) == 0)
			return true;
	return false;
}

/* "1" is the first file's; other ranks' "1" are other groups. */
static void test_one_name_of_two_groups_becomes_two(void **state)
{
	struct trace t;

	(void)state;
	import(&t, 4);
	assert_true(has_name(trace_find_rank(&t, 0), "1") && has_name(trace_find_rank(&t, 1), "1"));
	assert_true(has_name(trace_find_rank(&t, 6), "1 of ranks 6 to 7"));
	assert_true(has_name(trace_find_rank(&t, 7), "1 of ranks 6 to 7"));
	assert_false(has_name(trace_find_rank(&t, 6), "1"));
	assert_true(trace_has_group(&t, "1 of ranks 6 to 7"));
	trace_fini(&t);
}

static void on_progress(void *arg, const char *path, double share)
{
	double *last = arg;

	assert_true(share >= *last && share <= 1.001 && path);
	*last = share;
}

static void test_progress_is_of_all_and_only_grows(void **state)
{
	double last = 0;
	const struct import_progress progress = { on_progress, &last };
	struct trace_input in[2] = { { .path = paths[0] }, { .path = paths[1] } };
	char *text = malloc(10u << 20);
	struct trace t;

	(void)state;
	memset(text, ' ', (10u << 20) - 1);
	text[(10u << 20) - 1] = '\0';
	memcpy(text, "{\"traceEvents\":[", 16);
	write_file(1, "f1.json", text);
	trace_init(&t);
	assert_true(import_files(&t, in, 2, 2, &progress));
	assert_true(last > 0.3);
	trace_fini(&t);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_number_of_jobs_gives_the_same),
		cmocka_unit_test(test_each_file_s_outcome_is_what_it_would_be_in_turn),
		cmocka_unit_test(test_one_name_of_two_groups_becomes_two),
		cmocka_unit_test(test_progress_is_of_all_and_only_grows),
	};
	char command[64];
	int failed;

	if (!mkdtemp(folder))
		return 1;
	write_all();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	snprintf(command, sizeof command, "rm -rf %s", folder);
	return system(command) != 0 || failed;
}
