/* Whose wall clock is off, and when nobody's can be said to be. */
#include "../../collector/verdict/clock_offset.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

#define S INT64_C(1000000000)
#define MS INT64_C(1000000)
#define NOW (INT64_C(1700000000) * S)

struct bed {
	struct clock_offset *rule;
	struct facts facts;
	int64_t now_ns;
};

static const char *name_of(void *arg, uint32_t host)
{
	static char name[32];

	(void)arg;
	if (host == 77)
		return "a\"b\\c";
	snprintf(name, sizeof name, "node%u", host);
	return name;
}

static void start(struct bed *b)
{
	*b = (struct bed){ .now_ns = NOW };
	assert_int_equal(clock_offset_new(&b->rule), 0);
	facts_init(&b->facts);
}

static void stop(struct bed *b)
{
	clock_offset_free(b->rule);
	facts_fini(&b->facts);
}

/* A second in which each of n hosts tells its wall clock. */
static void second(struct bed *b, const int64_t *wall_ns, const int64_t *err_ns, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(clock_offset_wall(b->rule, i, b->now_ns, wall_ns[i],
						   err_ns ? err_ns[i] : 20000), 0);
	b->now_ns += S;
	assert_int_equal(clock_offset_look(b->rule, b->now_ns, 40, name_of, NULL, &b->facts), 0);
}

static void clocks_that_agree_are_no_news(void **state)
{
	static const int64_t wall[4] = { 3 * MS, -40 * MS, 0, 55 * MS };
	struct bed b;

	(void)state;
	start(&b);
	for (int i = 0; i < 30; i++)
		second(&b, wall, NULL, 4);
	assert_int_equal(b.facts.verdicts.n, 0);
	stop(&b);
}

static void the_one_that_is_off_is_named_once(void **state)
{
	static const int64_t wall[4] = { 0, 11560 * MS, 2 * MS, -MS };
	const struct fact_verdict *v;
	struct bed b;

	(void)state;
	start(&b);
	second(&b, wall, NULL, 4);
	second(&b, wall, NULL, 4);
	assert_int_equal(b.facts.verdicts.n, 0); /* it may be being set */
	for (int i = 0; i < 30; i++)
		second(&b, wall, NULL, 4);
	assert_int_equal(b.facts.verdicts.n, 1);
	v = b.facts.verdicts.v;
	assert_string_equal(v->class_name, "clock.offset");
	assert_string_equal(v->key, "clock.offset/1");
	assert_int_equal(v->severity, SEVERITY_NOTICE);
	assert_int_equal(v->confidence, CONFIDENCE_CERTAIN);
	assert_int_equal(v->error_kind, ERROR_KIND_HARD);
	assert_string_equal(v->culprit_json, "{\"ranks\":[],\"host\":\"node1\",\"detail\":\"wall clock +11.6 s\"}");
	assert_non_null(strstr(v->sentence, "node1 is 11.6 s"));
	assert_non_null(strstr(v->sentence, "ahead of"));
	assert_true(v->margin_ns > 11550 * MS && v->margin_ns < 11560 * MS);
	assert_int_equal(v->onset_ns, NOW);
	stop(&b);
}

static void it_is_told_again_when_it_has_changed_much(void **state)
{
	int64_t wall[3] = { 0, 0, -400 * MS };
	struct bed b;

	(void)state;
	start(&b);
	for (int i = 0; i < 5; i++)
		second(&b, wall, NULL, 3);
	wall[2] = -500 * MS;
	for (int i = 0; i < 5; i++)
		second(&b, wall, NULL, 3);
	assert_int_equal(b.facts.verdicts.n, 1);
	wall[2] = -2000 * MS;
	for (int i = 0; i < 5; i++)
		second(&b, wall, NULL, 3);
	assert_int_equal(b.facts.verdicts.n, 2);
	assert_string_equal(b.facts.verdicts.v[0].key, b.facts.verdicts.v[1].key);
	assert_non_null(strstr(b.facts.verdicts.v[1].sentence, "2.00 s"));
	assert_non_null(strstr(b.facts.verdicts.v[1].sentence, "behind"));
	stop(&b);
}

static void what_the_error_hides_is_not_told(void **state)
{
	static const int64_t wall[3] = { 0, 300 * MS, 0 };
	static const int64_t wide[3] = { 110 * MS, 150 * MS, 110 * MS };
	static const int64_t none[3] = { 1000, FACT_UNBOUNDED, 1000 };
	struct bed b;

	(void)state;
	start(&b);
	for (int i = 0; i < 20; i++)
		second(&b, wall, wide, 3);
	for (int i = 0; i < 20; i++)
		second(&b, wall, none, 3);
	assert_int_equal(b.facts.verdicts.n, 0);
	stop(&b);
}

static void of_two_hosts_neither_is_blamed(void **state)
{
	static const int64_t wall[2] = { 0, 4000 * MS };
	struct bed b;

	(void)state;
	start(&b);
	for (int i = 0; i < 20; i++)
		second(&b, wall, NULL, 2);
	assert_int_equal(b.facts.verdicts.n, 1);
	assert_non_null(strstr(b.facts.verdicts.v[0].sentence, "cannot be known whose is wrong"));
	stop(&b);
}

static void an_old_word_is_none(void **state)
{
	static const int64_t wall[3] = { 0, 0, 9000 * MS };
	struct bed b;

	(void)state;
	start(&b);
	second(&b, wall, NULL, 3);
	second(&b, wall, NULL, 2); /* the odd one tells no more */
	b.now_ns += 20 * S;
	for (int i = 0; i < 30; i++)
		second(&b, wall, NULL, 2);
	assert_int_equal(b.facts.verdicts.n, 0);
	stop(&b);
}

static void a_strangers_name_stays_inside_its_quotes(void **state)
{
	int64_t wall[78] = { 0 };
	struct bed b;

	(void)state;
	start(&b);
	wall[77] = 5 * S;
	for (int i = 0; i < 5; i++)
		second(&b, wall, NULL, 78);
	assert_int_equal(b.facts.verdicts.n, 1);
	assert_non_null(strstr(b.facts.verdicts.v[0].culprit_json, "a\\\"b\\\\c"));
	stop(&b);
}

static void a_number_of_no_host_is_nothing(void **state)
{
	struct bed b;

	(void)state;
	start(&b);
	assert_int_equal(clock_offset_wall(b.rule, UINT32_MAX, NOW, 0, 0), 0);
	assert_int_equal(clock_offset_look(b.rule, NOW, 0, name_of, NULL, &b.facts), 0);
	assert_int_equal(b.facts.verdicts.n, 0);
	stop(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clocks_that_agree_are_no_news),
		cmocka_unit_test(the_one_that_is_off_is_named_once),
		cmocka_unit_test(it_is_told_again_when_it_has_changed_much),
		cmocka_unit_test(what_the_error_hides_is_not_told),
		cmocka_unit_test(of_two_hosts_neither_is_blamed),
		cmocka_unit_test(an_old_word_is_none),
		cmocka_unit_test(a_strangers_name_stays_inside_its_quotes),
		cmocka_unit_test(a_number_of_no_host_is_nothing),
	};
	return cmocka_run_group_tests_name("clock_offset", tests, NULL, NULL);
}
