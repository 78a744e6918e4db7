/* Records in the order of their keys, whatever does not fit into memory: checked against a sort of the same
 * records, with every allocation counted. */
#include "../../collector/import/runs.h"
#include "unit.h"

#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static size_t used_bytes, most_bytes;
static unsigned long n_left = ~0ul; /* allocations that do not fail */

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *v, size_t n);
void __real_free(void *v);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *v, size_t n);
void __wrap_free(void *v);
char *__wrap_strdup(const char *text);

static void *count(void *v)
{
	used_bytes += v ? malloc_usable_size(v) : 0;
	most_bytes = used_bytes > most_bytes ? used_bytes : most_bytes;
	return v;
}

static bool may(void)
{
	if (n_left == 0)
		return false;
	n_left--;
	return true;
}

void *__wrap_malloc(size_t n)
{
	return may() ? count(__real_malloc(n)) : NULL;
}

void *__wrap_calloc(size_t n, size_t size)
{
	return may() ? count(__real_calloc(n, size)) : NULL;
}

void *__wrap_realloc(void *v, size_t n)
{
	size_t before = v ? malloc_usable_size(v) : 0;
	void *grown = may() ? __real_realloc(v, n) : NULL;

	if (grown)
		used_bytes -= before;
	return count(grown);
}

char *__wrap_strdup(const char *text)
{
	size_t n = strlen(text) + 1;
	char *v = __wrap_malloc(n);

	return v ? memcpy(v, text, n) : NULL;
}

void __wrap_free(void *v)
{
	used_bytes -= v ? malloc_usable_size(v) : 0;
	__real_free(v);
}

struct record {
	uint64_t hi, lo;
	uint32_t at;
	unsigned char rest[12];
};

static struct runs_key key_of(const void *record)
{
	const struct record *v = record;

	return (struct runs_key){ v->hi, v->lo };
}

static int in_order(const void *a, const void *b)
{
	const struct record *x = a, *y = b;

	if (x->hi != y->hi)
		return x->hi < y->hi ? -1 : 1;
	if (x->lo != y->lo)
		return x->lo < y->lo ? -1 : 1;
	return x->at < y->at ? -1 : 1;
}

enum shape { RANDOM, FEW_KEYS, ALMOST_SORTED, SORTED, FALLING, N_SHAPES };

static struct record make(enum shape shape, uint32_t i, uint32_t n, uint64_t *seed)
{
	struct record v = { .at = i };

	v.hi = shape == RANDOM	      ? unit_rand(seed)
	       : shape == FEW_KEYS    ? unit_rand(seed) % 3
	       : shape == ALMOST_SORTED ? i * UINT64_C(1000) + unit_rand(seed) % 50000
	       : shape == SORTED      ? i / 2
				      : n - i;
	v.lo = unit_rand(seed) % 2 << 63;
	memset(v.rest, (int)i, sizeof v.rest);
	return v;
}

static void check_read(struct runs *r, const struct record *want, uint32_t n)
{
	struct runs_reader *in = runs_read(r);
	const struct record *v;
	uint32_t i = 0;

	assert_non_null(in);
	for (; (v = runs_next(in)); i++) {
		assert_true(i < n);
		assert_memory_equal(v, &want[i], sizeof *v);
	}
	assert_int_equal(i, n);
	assert_null(runs_next(in));
	assert_false(in->failed);
	runs_read_end(in);
}

static void check(enum shape shape, uint32_t n, size_t memory_bytes, uint64_t *seed)
{
	struct spill *s = spill_new("/tmp", memory_bytes);
	struct runs *r = runs_new(s, sizeof(struct record), key_of);
	struct record *want = malloc((n + 1) * sizeof *want);
	uint32_t half = n ? (uint32_t)(unit_rand(seed) % n) : 0;

	assert_non_null(r);
	for (uint32_t i = 0; i < n; i++) {
		want[i] = make(shape, i, n, seed);
		assert_true(runs_append(r, &want[i]));
		if (i == half) /* more may come */
			assert_true(runs_finish(r));
	}
	assert_true(runs_finish(r) && runs_finish(r));
	assert_int_equal(runs_count(r), n);
	qsort(want, n, sizeof *want, in_order);
	check_read(r, want, n);
	check_read(r, want, n);
	runs_free(r);
	spill_unref(s);
	free(want);
}

static void test_they_come_as_sorted(void **state)
{
	uint64_t seed = 5;

	(void)state;
	for (int shape = 0; shape < N_SHAPES; shape++) {
		for (uint32_t n = 0; n < 4; n++)
			check((enum shape)shape, n, 0, &seed);
		for (int i = 0; i < 6; i++)
			check((enum shape)shape, (uint32_t)(unit_rand(&seed) % 200000), (size_t)(unit_rand(&seed) % 6000000),
			      &seed);
	}
}

static void test_without_a_key_they_come_as_they_were_appended(void **state)
{
	struct spill *s = spill_new("/tmp", 0);
	struct runs *r = runs_new(s, sizeof(uint32_t), NULL);
	struct runs_reader *in;
	const uint32_t *v;
	uint32_t n = 0;

	(void)state;
	for (uint32_t i = 0; i < 500000; i++)
		assert_true(runs_append(r, &i));
	assert_true(runs_finish(r));
	assert_true(spill_written_bytes(s) > 0);
	in = runs_read(r);
	while ((v = runs_next(in)))
		assert_int_equal(*v, n++);
	assert_int_equal(n, 500000);
	runs_read_end(in);
	runs_free(r);
	spill_unref(s);
}

/* More runs than are merged at once, and eight of them one after the other, as of eight ranks. */
static void test_memory_does_not_go_with_their_number(void **state)
{
	enum { N = 300000, RANKS = 8 };
	const size_t memory_bytes = 2u << 20;
	size_t before = used_bytes;
	struct spill *s = spill_new("/tmp", memory_bytes);
	struct runs *r[RANKS];
	struct runs_reader *in[RANKS];
	uint64_t seed = 7;

	(void)state;
	most_bytes = before;
	for (int k = 0; k < RANKS; k++) {
		r[k] = runs_new(s, sizeof(struct record), key_of);
		for (uint32_t i = 0; i < N; i++) {
			struct record v = make(RANDOM, i, N, &seed);

			assert_true(runs_append(r[k], &v));
		}
		assert_true(runs_finish(r[k]));
	}
	for (int k = 0; k < RANKS; k++)
		in[k] = runs_read(r[k]);
	for (uint32_t i = 0; i < N; i++)
		for (int k = 0; k < RANKS; k++)
			assert_non_null(runs_next(in[k]));
	for (int k = 0; k < RANKS; k++) {
		assert_null(runs_next(in[k]));
		runs_read_end(in[k]);
		runs_free(r[k]);
	}
	spill_unref(s);
	/* What is sorted needs its keys beside it; 96 MB were appended. */
	assert_in_range(most_bytes - before, memory_bytes / 2, 3 * memory_bytes);
	assert_int_equal(used_bytes, before);
}

static bool use(struct spill *s, uint32_t n)
{
	struct runs *r = runs_new(s, sizeof(struct record), key_of);
	struct runs_reader *in = NULL;
	uint64_t seed = 1, n_read = 0;
	bool fine = r != NULL;

	for (uint32_t i = 0; i < n && fine; i++) {
		struct record v = make(RANDOM, i, n, &seed);

		fine = runs_append(r, &v);
	}
	fine = fine && runs_finish(r) && (in = runs_read(r));
	while (fine && runs_next(in))
		n_read++;
	fine = fine && !in->failed && n_read == n;
	runs_read_end(in);
	runs_free(r);
	return fine;
}

static void test_an_allocation_that_fails_is_told_and_leaves_nothing(void **state)
{
	size_t before = used_bytes;
	unsigned long n = 0;
	bool fine = false;

	(void)state;
	for (; !fine; n++) {
		struct spill *s = spill_new("/tmp", 0);

		n_left = n;
		fine = use(s, 30000);
		n_left = ~0ul;
		spill_unref(s);
		assert_int_equal(used_bytes, before);
		assert_true(n < 1000);
	}
	assert_true(n > 5);
}

/* A disk that is full: the limit of a file's size fails as early. */
static void test_a_full_disk_is_told(void **state)
{
	pid_t child = fork();
	int status;

	(void)state;
	if (child == 0) {
		struct rlimit limit = { 1u << 20, 1u << 20 };
		struct spill *s = spill_new("/tmp", 0);
		char why[300] = "";
		bool fine;

		signal(SIGXFSZ, SIG_IGN);
		setrlimit(RLIMIT_FSIZE, &limit);
		fine = !use(s, 100000) && spill_explain(s, why, sizeof why) && strstr(why, "/tmp: File too large");
		spill_unref(s);
		_exit(fine ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void test_a_folder_that_is_not_there_is_told(void **state)
{
	struct spill *s = spill_new("/tmp/none/such", 1u << 20);
	char why[300] = "";

	(void)state;
	assert_true(use(s, 100)); /* no need of it */
	assert_false(spill_explain(s, why, sizeof why));
	assert_false(use(s, 100000));
	assert_true(spill_explain(s, why, sizeof why));
	assert_non_null(strstr(why, "/tmp/none/such: No such file or directory"));
	spill_unref(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_they_come_as_sorted),
		cmocka_unit_test(test_without_a_key_they_come_as_they_were_appended),
		cmocka_unit_test(test_memory_does_not_go_with_their_number),
		cmocka_unit_test(test_an_allocation_that_fails_is_told_and_leaves_nothing),
		cmocka_unit_test(test_a_full_disk_is_told),
		cmocka_unit_test(test_a_folder_that_is_not_there_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
