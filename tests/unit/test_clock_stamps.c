/* Clocks that nothing ties together, told by the calls that their hosts make. */
#include "../../collector/core.h"
#include "unit.h"

#include <string.h>

#define MS INT64_C(1000000)
#define S (1000 * MS)
#define WALL (1700000000 * S)
#define MAX_HOSTS 6

struct bed {
	struct facts facts;
	struct core *core;
	uint32_t n;
	uint64_t chunk;
	int64_t ahead_ns[MAX_HOSTS], late_ns[MAX_HOSTS];
	uint64_t rng;
};

static void start(struct bed *b, uint32_t n_hosts, bool anchored, int64_t word_ns)
{
	*b = (struct bed){ .n = n_hosts, .rng = 7 };
	facts_init(&b->facts);
	assert_int_equal(core_new(&b->core, NULL, &b->facts), 0);
	for (uint32_t i = 0; i < n_hosts; i++) {
		char name[2] = { (char)('a' + i), '\0' };

		core_host(b->core, i, anchored && i == 0, anchored && i == 0 ? WALL : word_ns);
		core_host_name(b->core, i, name);
		core_process(b->core, &(struct core_process){ .process = i, .host = i, .rank = (int32_t)i,
							      .world_size = (int32_t)n_hosts });
		core_name(b->core, i, 1, "g", 1);
	}
	core_tick(b->core, (fleet_time){ WALL });
}

static void stop(struct bed *b)
{
	core_free(b->core);
	facts_fini(&b->facts);
}

static void say(struct bed *b, uint32_t host, unsigned kind, uint32_t seq, int64_t at_ns)
{
	struct event ev = { .tick = (uint64_t)at_ns, .kind = (uint16_t)kind, .name = 1,
			    .flags = event_coll_flags(OP_ALL_REDUCE, DTYPE_F32),
			    .a = event_a(EVENT_STEP_UNKNOWN, seq), .b = 4096 };

	assert_int_equal(core_events(b->core, host, 0, ++b->chunk, &ev, 1), 0);
}

/* All begin within some us of `at_ns`, apart from who is late, and end together 1 ms behind. */
static void call(struct bed *b, uint32_t seq, int64_t at_ns)
{
	int64_t end_ns = at_ns + MS;

	for (uint32_t i = 0; i < b->n; i++)
		if (b->late_ns[i] + MS + at_ns > end_ns)
			end_ns = at_ns + b->late_ns[i] + MS;
	for (uint32_t i = 0; i < b->n; i++) {
		int64_t jitter_ns = (int64_t)(unit_rand(&b->rng) % 20000);

		say(b, i, EVENT_COLL_BEGIN, seq, at_ns + b->late_ns[i] + b->ahead_ns[i] + jitter_ns);
		say(b, i, EVENT_COLL_END, seq, end_ns + b->ahead_ns[i] + jitter_ns / 4);
	}
}

static void calls(struct bed *b, uint32_t first, uint32_t n)
{
	for (uint32_t i = first; i < first + n; i++)
		call(b, i, (int64_t)(i + 1) * 10 * MS + 10 * S);
}

static void finish(struct bed *b)
{
	assert_int_equal(core_finish(b->core, (fleet_time){ WALL + 30 * S }), 0);
}

/* The newest of these classes; NULL when there is none. */
static const struct fact_verdict *told(const struct bed *b)
{
	for (size_t i = b->facts.verdicts.n; i-- > 0;)
		if (strncmp(b->facts.verdicts.v[i].key, "clock.stamps", 12) == 0)
			return &b->facts.verdicts.v[i];
	return NULL;
}

static void expect(const struct bed *b, const char *class_name, const char *ranks)
{
	const struct fact_verdict *v = told(b);

	assert_non_null(v);
	assert_string_equal(v->class_name, class_name);
	assert_int_equal(v->severity, SEVERITY_WRONG);
	assert_non_null(strstr(v->culprit_json, ranks));
}

static void the_clock_that_is_off_is_named_and_bounded(void **state)
{
	struct bed b;

	(void)state;
	start(&b, 4, true, WALL);
	b.ahead_ns[2] = -3 * S;
	calls(&b, 0, 40);
	finish(&b);
	expect(&b, "clock.offset", "\"ranks\":[2],\"host\":\"c\"");
	assert_int_equal(told(&b)->confidence, CONFIDENCE_CERTAIN);
	assert_in_range(told(&b)->margin_ns, 3 * S - 2 * MS, 3 * S + 2 * MS);
	assert_in_range(told(&b)->error_ns, 1, 3 * MS);
	stop(&b);
}

static void most_ranks_are_right_even_against_the_collectors_clock(void **state)
{
	struct bed b;

	(void)state;
	start(&b, 4, true, WALL);
	for (uint32_t i = 1; i < 4; i++)
		b.ahead_ns[i] = 5 * S;
	calls(&b, 0, 40);
	finish(&b);
	expect(&b, "clock.offset", "\"ranks\":[0]");
	stop(&b);
}

static void of_two_loose_clocks_nobody_is_named(void **state)
{
	struct bed b;

	(void)state;
	start(&b, 2, false, WALL);
	b.ahead_ns[1] = 2 * S;
	calls(&b, 0, 40);
	finish(&b);
	expect(&b, "clock.offset", "\"ranks\":[]");
	stop(&b);
}

static void a_drift_that_cannot_be_known_is_not_told(void **state)
{
	struct bed b;

	(void)state;
	start(&b, 3, true, WALL);
	b.ahead_ns[1] = 2 * S;
	calls(&b, 0, 4);
	finish(&b);
	expect(&b, "clock.offset", "\"ranks\":[1]");
	assert_non_null(strstr(told(&b)->sentence, "cannot be known"));
	stop(&b);
}

static void clocks_that_count_from_a_boot_mean_nothing(void **state)
{
	struct bed b;

	(void)state;
	start(&b, 3, false, 0);
	b.ahead_ns[1] = 200000 * S;
	calls(&b, 0, 40);
	finish(&b);
	assert_null(told(&b));
	stop(&b);
}

static void less_than_a_millisecond_is_not_told(void **state)
{
	struct bed b;

	(void)state;
	start(&b, 3, true, WALL);
	b.ahead_ns[1] = 700000;
	calls(&b, 0, 40);
	finish(&b);
	assert_null(told(&b));
	stop(&b);
}

static void a_rank_that_is_late_in_every_call_has_no_wrong_clock(void **state)
{
	struct bed b;

	(void)state;
	start(&b, 4, true, WALL);
	b.late_ns[3] = 4 * MS;
	calls(&b, 0, 60);
	finish(&b);
	assert_null(told(&b));
	stop(&b);
}

static void a_late_start_is_told_apart_from_the_offset(void **state)
{
	struct bed b;

	(void)state;
	start(&b, 4, true, WALL);
	b.ahead_ns[1] = 7 * S;
	b.late_ns[2] = 400 * MS;
	call(&b, 0, 9 * S);
	b.late_ns[2] = 0;
	calls(&b, 1, 40);
	finish(&b);
	expect(&b, "clock.offset_and_launch_skew", "\"ranks\":[1,2]");
	stop(&b);
}

static void a_clock_that_is_set_is_told_with_the_calls_around(void **state)
{
	struct bed b;

	(void)state;
	for (int back = 0; back < 2; back++) {
		start(&b, 3, true, WALL);
		calls(&b, 0, 150);
		b.ahead_ns[2] = back ? -250 * MS : 250 * MS;
		calls(&b, 150, 150);
		finish(&b);
		expect(&b, "clock.step", "\"ranks\":[2],\"host\":\"c\"");
		assert_int_equal(told(&b)->confidence, CONFIDENCE_CERTAIN);
		assert_non_null(strstr(told(&b)->sentence, "between calls 149 and 150"));
		stop(&b);
	}
}

static void the_clock_that_all_others_jump_against_was_set(void **state)
{
	struct bed b;

	(void)state;
	start(&b, 4, true, WALL);
	calls(&b, 0, 40);
	b.ahead_ns[0] = 90 * MS;
	calls(&b, 40, 40);
	finish(&b);
	expect(&b, "clock.step", "\"ranks\":[0]");
	stop(&b);
}

static void what_probes_tie_later_is_taken_back(void **state)
{
	struct bed b;

	(void)state;
	start(&b, 2, true, WALL);
	b.ahead_ns[1] = 5 * S;
	calls(&b, 0, 40);
	for (int64_t at_ns = S; at_ns <= 15 * S; at_ns += S)
		core_tick(b.core, (fleet_time){ WALL + at_ns });
	expect(&b, "clock.offset", "\"ranks\":[1]");
	for (int64_t at_ns = 16 * S; at_ns <= 20 * S; at_ns += S / 4) {
		int64_t here_ns = at_ns + 5 * S;

		core_exchange(b.core, 1, (host_time){ here_ns }, (fleet_time){ WALL + at_ns + 20000 },
			      (fleet_time){ WALL + at_ns + 30000 }, (host_time){ here_ns + 50000 });
		core_tick(b.core, (fleet_time){ WALL + at_ns });
	}
	finish(&b);
	assert_int_equal(told(&b)->severity, SEVERITY_NOTICE);
	stop(&b);
}

static void a_host_that_probes_tie_meanwhile_has_not_jumped(void **state)
{
	struct bed b;

	(void)state;
	start(&b, 3, false, WALL);
	b.ahead_ns[0] = 4 * S;
	calls(&b, 0, 40);
	for (int64_t at_ns = S; at_ns <= 5 * S; at_ns += S / 4) {
		int64_t here_ns = at_ns + 4 * S;

		core_exchange(b.core, 0, (host_time){ here_ns }, (fleet_time){ WALL + at_ns + 20000 },
			      (fleet_time){ WALL + at_ns + 30000 }, (host_time){ here_ns + 50000 });
	}
	calls(&b, 40, 40);
	for (int64_t at_ns = 6 * S; at_ns <= 20 * S; at_ns += S)
		core_tick(b.core, (fleet_time){ WALL + at_ns });
	finish(&b);
	assert_true(!told(&b) || told(&b)->severity == SEVERITY_NOTICE);
	stop(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_clock_that_is_off_is_named_and_bounded),
		cmocka_unit_test(most_ranks_are_right_even_against_the_collectors_clock),
		cmocka_unit_test(of_two_loose_clocks_nobody_is_named),
		cmocka_unit_test(a_drift_that_cannot_be_known_is_not_told),
		cmocka_unit_test(clocks_that_count_from_a_boot_mean_nothing),
		cmocka_unit_test(less_than_a_millisecond_is_not_told),
		cmocka_unit_test(a_rank_that_is_late_in_every_call_has_no_wrong_clock),
		cmocka_unit_test(a_late_start_is_told_apart_from_the_offset),
		cmocka_unit_test(a_clock_that_is_set_is_told_with_the_calls_around),
		cmocka_unit_test(the_clock_that_all_others_jump_against_was_set),
		cmocka_unit_test(what_probes_tie_later_is_taken_back),
		cmocka_unit_test(a_host_that_probes_tie_meanwhile_has_not_jumped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
