/* The pickle loader's limits: each stops what it is for, before memory is taken for it, and what is shared stays
 * one. What pickles come out as is held against Python's own reading in tests/system/test_pickle.py. */
#include "../../collector/import/pickle.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

struct given {
	const unsigned char *v;
	size_t n, at, piece;
	bool breaks; /* at its end, instead of ending */
};

static ptrdiff_t read_given(void *arg, unsigned char *out, size_t n)
{
	struct given *g = arg;

	n = n < g->piece ? n : g->piece;
	n = n < g->n - g->at ? n : g->n - g->at;
	if (n == 0 && g->breaks)
		return -1;
	memcpy(out, g->v + g->at, n);
	g->at += n;
	return (ptrdiff_t)n;
}

static char why[200];

static json_t *load(const char *bytes, size_t n, const struct pickle_limits *limits)
{
	struct given g = { (const unsigned char *)bytes, n, 0, 1 << 20, false };
	enum pickle_outcome o;
	json_t *v;

	o = pickle_load(&v, read_given, &g, limits, why, sizeof why);
	assert_int_equal(o, v ? PICKLE_OK : PICKLE_REFUSED);
	assert_true(v ? !why[0] : why[0] != '\0');
	return v;
}

#define LOAD(text, limits) load(text, sizeof(text) - 1, limits)

static void refused(json_t *v, const char *by)
{
	assert_null(v);
	if (!strstr(why, by))
		fail_msg("\"%s\" does not say \"%s\"", why, by);
}

static void test_it_comes_whole_in_pieces_of_any_size(void **state)
{
	static const char bytes[] = "\x80\x02}q\x00(X\x07\0\0\0entriesq\x01]q\x02(K\x01""K\x02""eX\x01\0\0\0nG?\xf8\0\0\0\0\0\0u.";

	(void)state;
	for (size_t piece = 1; piece < 20; piece++) {
		struct given g = { (const unsigned char *)bytes, sizeof bytes - 1, 0, piece, false };
		json_t *v;

		assert_int_equal(pickle_load(&v, read_given, &g, &pickle_limits, why, sizeof why), PICKLE_OK);
		assert_int_equal(json_array_size(json_object_get(v, "entries")), 2);
		assert_true(json_real_value(json_object_get(v, "n")) == 1.5);
		json_decref(v);
	}
}

static void test_a_source_that_breaks_is_not_a_short_pickle(void **state)
{
	struct given g = { (const unsigned char *)"\x80\x02]", 3, 0, 8, true };
	json_t *v;

	(void)state;
	assert_int_equal(pickle_load(&v, read_given, &g, &pickle_limits, why, sizeof why), PICKLE_UNREAD);
	assert_null(v);
}

static void test_each_limit_stops_what_it_is_for(void **state)
{
	struct pickle_limits few = pickle_limits;

	(void)state;
	few.max_values = 3;
	json_decref(LOAD("](K\1K\2e.", &few));
	refused(LOAD("](K\1K\2K\3e.", &few), "more than 3 values");
	refused(LOAD("((((((.", &few), "more than 3 values"); /* marks are no values, but take room */
	few = pickle_limits;
	few.max_depth = 3;
	json_decref(LOAD("]]]aa.", &few));
	refused(LOAD("]]]]aaa.", &few), "deeper than 3");
	few = pickle_limits;
	few.max_text_bytes = 4;
	json_decref(LOAD("X\4\0\0\0abcd.", &few));
	refused(LOAD("X\5\0\0\0abcde.", &few), "more than 4 bytes");
	refused(LOAD("Vabcdefgh\n.", &few), "more than 4 bytes");
	few = pickle_limits;
	few.max_bytes = 5;
	json_decref(LOAD("NNNN.", &few));
	refused(LOAD("NNNNN.", &few), "more than 5 bytes");
	few = pickle_limits;
	few.max_unfolded = 10;
	json_decref(LOAD("](NNNNNNNNNe.", &few));
	refused(LOAD("](NNNNNNNNNNe.", &few), "unfolds to more than 10");
	refused(LOAD("](NNNe](hhhe.", &few), "never remembered");
	refused(LOAD("](NNNeq\0](h\0h\0h\0e.", &few), "unfolds to more than 10");
}

/* A key is copied into each dict that has it: a few bytes of pickle each, an eighth of a megabyte of memory. */
static void test_what_a_short_pickle_would_take_is_charged(void **state)
{
	size_t n_text = 1 << 17, n_dicts = 10000, n = 0;
	char *v = malloc(n_text + 16 * n_dicts + 100);

	(void)state;
	assert_non_null(v);
	memcpy(v, "X\0\0\2\0", 5);
	memset(v + 5, 'k', n_text);
	n = 5 + n_text;
	memcpy(v + n, "q\0](", 4);
	n += 4;
	for (size_t i = 0; i < n_dicts; i++) {
		memcpy(v + n, "}h\0Ns", 5);
		n += 5;
	}
	memcpy(v + n, "e.", 2);
	refused(load(v, n + 2, &pickle_limits), "too much to keep");
	free(v);
}

static void test_what_is_shared_is_one_value(void **state)
{
	json_t *v;

	(void)state;
	v = LOAD("](}q\0h\0h\0e.", &pickle_limits);
	assert_non_null(v);
	assert_ptr_equal(json_array_get(v, 0), json_array_get(v, 1));
	assert_int_equal(json_array_get(v, 0)->refcount, 3);
	assert_int_equal(v->refcount, 1);
	json_decref(v);
}

static void test_nothing_holds_itself(void **state)
{
	static const char *const loops[] = {
		"]q\1h\1a.",			 /* a list in itself */
		"]q\1]h\1aa.",			 /* in one that it holds */
		"}q\1V0\nh\1s.",		 /* a dict as its own value */
		"]q\1h\1\x85" "a.",		 /* through a tuple */
		"]q\1}q\2V0\nh\1sah\2V1\nh\1s.", /* changed once held */
	};

	(void)state;
	for (size_t i = 0; i < sizeof loops / sizeof *loops; i++)
		refused(load(loops[i], strlen(loops[i]), &pickle_limits), "holds itself");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_it_comes_whole_in_pieces_of_any_size),
		cmocka_unit_test(test_a_source_that_breaks_is_not_a_short_pickle),
		cmocka_unit_test(test_each_limit_stops_what_it_is_for),
		cmocka_unit_test(test_what_a_short_pickle_would_take_is_charged),
		cmocka_unit_test(test_what_is_shared_is_one_value),
		cmocka_unit_test(test_nothing_holds_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
