#include "../../sim/calls.h"
#include "../../sim/tale.h"
#include "../../sim/twister.h"
#include "../../proto/shm.h"
#include "unit.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory that runs out: the n-th allocation from now fails ---- */

static long fail_at = -1; /* -1: never */
static bool failed;

static bool is_out(void)
{
	if (fail_at < 0 || fail_at-- > 0)
		return false;
	failed = true;
	fail_at = -1;
	return true;
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);

void *__wrap_malloc(size_t n)
{
	return is_out() ? NULL : __real_malloc(n);
}
void *__wrap_calloc(size_t n, size_t size)
{
	return is_out() ? NULL : __real_calloc(n, size);
}
void *__wrap_realloc(void *p, size_t n)
{
	return is_out() ? NULL : __real_realloc(p, n);
}

/* ---- a case from its text ---- */

static char why[400];

static struct spec *parse(const char *text)
{
	struct spec *s = NULL;
	int r = spec_parse(&s, text, strlen(text), why, sizeof why);

	if (r != SPEC_OK)
		fail_msg("refused: %s", why);
	return s;
}

static struct play *play(const struct spec *s)
{
	struct play *p = NULL;

	if (play_run(&p, s, 0, why, sizeof why) != PLAY_OK)
		fail_msg("refused: %s", why);
	return p;
}

static const char *const everything =
	"{\"id\":\"all\",\"world\":3,\"pg\":{\"a\":\"0,1\",\"b\":\"*\"},\"hosts\":{\"x\":\"0-1\",\"y\":2},"
	"\"clock\":{\"2\":[3,4]},\"wd_ms\":5,\"probes\":1,\"colour\":1,\"prog\":{"
	"\"*\":[[\"step\"],[\"cpu\",1,\"c\"],[\"k\",2,\"k\"],[\"rep\",3,[[\"coll\",\"b\",\"allreduce\",4,\"f32\",1]]],"
	"[\"wait\",\"b\",2],[\"only\",\"0\",[[\"gauge\",\"g\",1]]],[\"sync\"]],"
	"\"0\":[[\"p2p\",[[\"s\",1,4],[\"r\",1,4]],1,{\"block\":1}]],"
	"\"1\":[[\"p2p\",[[\"s\",0,4],[\"r\",0,4]],1]],"
	"\"*\":[[\"1f1b\",[0,1,2],2,1,[1,1,1],8],[\"ev\",\"loss\",\"value\",{\"v\":1}],"
	"[\"ev\",\"log\",\"line\",{\"text\":\"t\",\"level\":\"warn\"}]],"
	"\"2\":[[\"coll\",\"dp\",\"barrier\",1,\"u8\",1,{\"name\":\"n\",\"on\":\"z\"}],[\"stall\",\"s\"]]}}";

/* ---- claims ---- */

static void the_generator_is_pythons(void **state)
{
	/* random.Random(seed).random(), twice */
	static const struct {
		uint64_t seed;
		double first, second;
	} known[] = {
		{ 0, 0.8444218515250481, 0.7579544029403025 },
		{ 7, 0.32383276483316237, 0.15084917392450192 },
		{ UINT64_C(4294967301), 0.15727238718789782, 0.2824866316461999 },
		{ UINT64_MAX, 0.021825695401270107, 0.3380953268613758 },
	};
	struct twister t;

	(void)state;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		twister_seed(&t, known[i].seed);
		assert_true(twister_unit(&t) == known[i].first);
		assert_true(twister_unit(&t) == known[i].second);
	}
	for (unsigned i = 0; i < 5000; i++) { /* several refills */
		double u = twister_unit(&t);

		assert_true(u >= 0 && u < 1);
	}
}

static void operations_and_types_have_many_spellings(void **state)
{
	(void)state;
	assert_int_equal(call_op("allreduce"), OP_ALL_REDUCE);
	assert_int_equal(call_op("All_Reduce"), OP_ALL_REDUCE);
	assert_int_equal(call_op("reduce"), OP_REDUCE);
	assert_int_equal(call_op("reduce-scatter"), OP_REDUCE_SCATTER);
	assert_int_equal(call_op("all"), OP_UNKNOWN);
	assert_int_equal(call_op(""), OP_UNKNOWN);
	assert_int_equal(call_dtype("f32"), DTYPE_F32);
	assert_int_equal(call_dtype("bfloat16"), DTYPE_BF16);
	assert_int_equal(call_dtype("float16"), DTYPE_F16);
	assert_int_equal(call_dtype("16"), DTYPE_UNKNOWN);
	assert_int_equal(call_dtype_bytes(DTYPE_I64), 8);
	assert_int_equal(call_dtype_bytes(DTYPE_UNKNOWN), 1);
}

static void a_key_that_is_there_twice_is_two_programs(void **state)
{
	struct spec *s = parse("{\"world\":1,\"prog\":{\"0\":[[\"cpu\",1,\"a\"]],\"*\":[[\"cpu\",2,\"b\"]],"
			       "\"0\":[[\"cpu\",3,\"c\"]]}}");

	(void)state;
	assert_int_equal(s->n_progs, 3);
	assert_string_equal(s->progs[0].ops.v[0].name, "a");
	assert_string_equal(s->progs[2].ops.v[0].name, "c");
	assert_true(s->progs[0].is_first && !s->progs[2].is_first);
	assert_int_equal(s->progs[0].last, 2);
	spec_free(s);
}

static void what_has_no_meaning_is_remarked_once(void **state)
{
	struct spec *s = parse("{\"world\":1,\"colour\":1,\"prog\":{\"0\":[[\"coll\",\"dp\",\"fly\",1,\"q4\",1]]}}");

	(void)state;
	assert_non_null(strstr(s->remark, "colour"));
	spec_free(s);
	s = parse("{\"world\":1,\"prog\":{\"0\":[[\"coll\",\"dp\",\"allreduce\",1,\"q4\",1]]}}");
	assert_non_null(strstr(s->remark, "q4"));
	spec_free(s);
}

static void a_play_has_at_most_the_nodes_it_may(void **state)
{
	struct spec *s = parse("{\"world\":1,\"prog\":{\"0\":[[\"rep\",10,[[\"cpu\",1,\"a\"]]]]}}");
	struct play *p = NULL;

	(void)state;
	assert_int_equal(play_run(&p, s, 10, why, sizeof why), PLAY_REFUSED); /* and the exit */
	assert_non_null(strstr(why, "more than 10"));
	assert_int_equal(play_run(&p, s, 11, why, sizeof why), PLAY_OK);
	assert_int_equal(p->n_nodes, 11);
	assert_int_equal(p->end_ns, 10000000);
	play_free(p);
	spec_free(s);
}

static void a_cycle_never_ends(void **state)
{
	struct spec *s = parse("{\"world\":2,\"prog\":{"
			       "\"0\":[[\"p2p\",[[\"r\",1,1]],1],[\"p2p\",[[\"s\",1,1]],1]],"
			       "\"1\":[[\"p2p\",[[\"r\",0,1]],1],[\"p2p\",[[\"s\",0,1]],1]]}}");
	struct play *p = play(s);

	(void)state;
	assert_int_equal(p->n_stuck, 2); /* both receive; no send has begun */
	play_free(p);
	spec_free(s);
}

static void what_a_probe_would_say_is_in_order(void **state)
{
	struct spec *s = parse(everything);
	struct play *p = play(s);
	struct tale t;

	(void)state;
	for (uint32_t rank = 0; rank < s->world; rank++) {
		unsigned n_begun = 0, n_ended = 0;

		assert_int_equal(tale_tell(&t, p, rank), 0);
		for (size_t i = 0; i < t.n_events[TALE_DEVICE]; i++) {
			unsigned kind = t.events[TALE_DEVICE][i].kind;

			n_begun += kind == EVENT_COLL_BEGIN || kind == EVENT_KERNEL_BEGIN;
			n_ended += kind == EVENT_COLL_END || kind == EVENT_KERNEL_END;
			assert_true(n_ended <= n_begun);
		}
		assert_true(n_begun > 0);
		tale_fini(&t);
	}
	play_free(p);
	spec_free(s);
}

/* Parse, noise, play and tell. True when all of it came through. */
static bool whole_life(void)
{
	struct spec *s;
	struct play *p;
	bool fine = true;
	int r = spec_parse(&s, everything, strlen(everything), why, sizeof why);

	if (r != SPEC_OK) {
		/* The JSON parser may take lack of memory for bad JSON. */
		assert_true(failed && (r == -ENOMEM || r == SPEC_REFUSED));
		return false;
	}
	spec_add_noise(s, 0.1, 3);
	r = play_run(&p, s, 0, why, sizeof why);
	if (r != PLAY_OK) {
		assert_true(failed && r == -ENOMEM);
		spec_free(s);
		return false;
	}
	for (uint32_t rank = 0; rank < s->world; rank++) {
		struct tale t;

		r = tale_tell(&t, p, rank);
		assert_true(r == 0 || (failed && r == -ENOMEM));
		fine &= r == 0;
		tale_fini(&t);
	}
	play_free(p);
	spec_free(s);
	return fine;
}

static void memory_may_run_out_anywhere(void **state)
{
	long n = 0;

	(void)state;
	json_set_alloc_funcs(__wrap_malloc, free);
	for (;; n++) {
		bool fine;

		failed = false;
		fail_at = n;
		fine = whole_life();
		fail_at = -1;
		if (!failed) {
			assert_true(fine);
			break;
		}
		if (fine) /* what was lost must be told */
			fail_msg("allocation %ld failed and nobody said so", n);
	}
	assert_true(n > 300);
	printf("%ld allocations failed, one a life\n", n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_generator_is_pythons),
		cmocka_unit_test(operations_and_types_have_many_spellings),
		cmocka_unit_test(a_key_that_is_there_twice_is_two_programs),
		cmocka_unit_test(what_has_no_meaning_is_remarked_once),
		cmocka_unit_test(a_play_has_at_most_the_nodes_it_may),
		cmocka_unit_test(a_cycle_never_ends),
		cmocka_unit_test(what_a_probe_would_say_is_in_order),
		cmocka_unit_test(memory_may_run_out_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
