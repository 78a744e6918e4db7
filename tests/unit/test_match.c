/* Collectives through core.h: what a group's members may do and how it is told. */
#include "../../collector/core.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#define MS INT64_C(1000000)
#define OFFSET INT64_C(1700000000000000000)

struct bed {
	struct facts facts;
	struct core *core;
	uint64_t chunk;
};

static void make_up(struct bed *b, uint32_t world, int32_t restart, uint32_t first_process)
{
	for (uint32_t r = 0; r < world; r++) {
		core_process(b->core, &(struct core_process){ .process = first_process + r, .host = 0,
							      .rank = (int32_t)r,
							      .world_size = (int32_t)world,
							      .restart_count = restart });
		core_name(b->core, first_process + r, 1, "g", 1);
		core_name(b->core, first_process + r, 2, "sub", 3);
	}
}

static void start(struct bed *b, uint32_t world)
{
	*b = (struct bed){ 0 };
	facts_init(&b->facts);
	assert_int_equal(core_new(&b->core, NULL, &b->facts), 0);
	core_host(b->core, 0, true, OFFSET);
	make_up(b, world, 0, 0);
}

static void stop(struct bed *b)
{
	core_free(b->core);
	facts_fini(&b->facts);
}

static void say(struct bed *b, uint32_t process, unsigned kind, uint32_t name, uint32_t seq,
		int64_t at_ns, unsigned flags, uint64_t bytes)
{
	struct event ev = { .tick = (uint64_t)at_ns, .kind = (uint16_t)kind,
			    .flags = (uint16_t)flags, .name = name,
			    .a = event_a(EVENT_STEP_UNKNOWN, seq), .b = bytes };

	assert_int_equal(core_events(b->core, process, 0, ++b->chunk, &ev, 1), 0);
}

static void call(struct bed *b, uint32_t process, uint32_t name, uint32_t seq, int64_t from_ns,
		 int64_t to_ns)
{
	unsigned flags = event_coll_flags(OP_ALL_REDUCE, DTYPE_F32);

	say(b, process, EVENT_COLL_BEGIN, name, seq, from_ns, flags, 64);
	if (to_ns)
		say(b, process, EVENT_COLL_END, name, seq, to_ns, flags, 64);
}

static const struct fact_collective *get(const struct bed *b, uint32_t group, uint64_t seq)
{
	for (size_t i = b->facts.collectives.n; i-- > 0;)
		if (b->facts.collectives.v[i].group == group && b->facts.collectives.v[i].seq == seq)
			return &b->facts.collectives.v[i];
	return NULL;
}

static void tick(struct bed *b, int64_t at_ns)
{
	assert_int_equal(core_tick(b->core, (fleet_time){ OFFSET + at_ns }), 0);
}

static void a_collective_is_told_when_all_have_left_it(void **state)
{
	struct bed b;
	const struct fact_collective *v;

	start(&b, 3);
	call(&b, 2, 1, 0, 5 * MS, 9 * MS); /* its end before the others' begins */
	call(&b, 0, 1, 0, 1 * MS, 9 * MS);
	assert_null(get(&b, 0, 0));
	call(&b, 1, 1, 0, 3 * MS, 10 * MS);
	v = get(&b, 0, 0);
	assert_non_null(v);
	assert_int_equal(v->first_arrival_ns, OFFSET + 1 * MS);
	assert_int_equal(v->last_arrival_ns, OFFSET + 5 * MS);
	assert_int_equal(v->end_ns, OFFSET + 10 * MS);
	assert_int_equal(v->skew_ns, 4 * MS);
	assert_int_equal(v->skew_err_ns, 0);
	assert_true(v->decided);
	assert_int_equal(v->last_rank, 2);
	assert_int_equal(v->n_seen, 3);
	stop(&b);
}

static void a_tie_within_the_tick_error_is_undecided(void **state)
{
	struct bed b;

	start(&b, 0);
	for (uint32_t r = 0; r < 2; r++) {
		core_process(b.core, &(struct core_process){ .process = r, .rank = (int32_t)r,
							     .world_size = 2, .tick_error_ns = 600 });
		core_name(b.core, r, 1, "g", 1);
	}
	call(&b, 0, 1, 0, 1 * MS, 9 * MS);
	call(&b, 1, 1, 0, 1 * MS + 1200, 9 * MS);
	assert_false(get(&b, 0, 0)->decided);
	assert_int_equal(get(&b, 0, 0)->last_rank, -1);
	call(&b, 0, 1, 1, 1 * MS, 9 * MS);
	call(&b, 1, 1, 1, 1 * MS + 1201, 9 * MS);
	assert_true(get(&b, 0, 1)->decided);
	stop(&b);
}

static void two_hosts_decide_only_with_disjoint_intervals(void **state)
{
	for (int64_t gap = 9; gap <= 11; gap++) {
		struct bed b;

		start(&b, 0);
		core_host(b.core, 1, false, 0);
		/* offset OFFSET, half round trip 10 us */
		core_exchange(b.core, 1, (host_time){ 0 }, (fleet_time){ OFFSET + 10000 },
			      (fleet_time){ OFFSET + 10000 }, (host_time){ 20000 });
		for (uint32_t r = 0; r < 2; r++) {
			core_process(b.core, &(struct core_process){ .process = r, .host = r,
								     .rank = (int32_t)r,
								     .world_size = 2 });
			core_name(b.core, r, 1, "g", 1);
		}
		call(&b, 0, 1, 0, 20000, 900000);
		call(&b, 1, 1, 0, 20000 + gap * 1000, 900000);
		assert_int_equal(get(&b, 0, 0)->decided, gap > 10);
		stop(&b);
	}
}

static void start_two_hosts(struct bed *b)
{
	start(b, 0);
	for (uint32_t r = 0; r < 2; r++) {
		core_process(b->core, &(struct core_process){ .process = r, .host = r,
							      .rank = (int32_t)r, .world_size = 2 });
		core_name(b->core, r, 1, "g", 1);
	}
}

static void an_unaligned_host_decides_nothing(void **state)
{
	struct bed b;

	start_two_hosts(&b);
	call(&b, 0, 1, 0, 1 * MS, 9000 * MS);
	call(&b, 1, 1, 0, 8000 * MS, 9000 * MS);
	assert_false(get(&b, 0, 0)->decided);
	assert_true(get(&b, 0, 0)->skew_err_ns >= get(&b, 0, 0)->skew_ns);
	stop(&b);
}

static void hosts_that_no_probe_ties_are_compared_by_their_calls(void **state)
{
	const int64_t ahead_ns = 40000 * MS;
	struct bed b;

	start_two_hosts(&b);
	for (uint32_t i = 0; i < 20; i++) {
		int64_t at_ns = (i + 1) * 10 * MS;

		call(&b, 0, 1, i, at_ns, at_ns + MS);
		call(&b, 1, 1, i, at_ns + ahead_ns, at_ns + ahead_ns + MS);
		/* What the clocks are apart is nobody's lateness. */
		assert_false(get(&b, 0, i)->decided);
	}
	/* And what is more than that is. */
	call(&b, 0, 1, 20, 300 * MS, 501 * MS);
	call(&b, 1, 1, 20, 500 * MS + ahead_ns, 501 * MS + ahead_ns);
	assert_true(get(&b, 0, 20)->decided);
	assert_int_equal(get(&b, 0, 20)->last_rank, 1);
	assert_in_range(get(&b, 0, 20)->skew_ns, 199 * MS, 201 * MS);
	assert_in_range(get(&b, 0, 20)->skew_err_ns, 1, 3 * MS);
	/* A clock is set: what was known of it does not hold any longer. */
	call(&b, 0, 1, 21, 600 * MS, 601 * MS);
	call(&b, 1, 1, 21, 600 * MS + 2 * ahead_ns, 601 * MS + 2 * ahead_ns);
	assert_false(get(&b, 0, 21)->decided);
	stop(&b);
}

static void disagreement_is_flagged(void **state)
{
	static const struct { unsigned flags; uint64_t bytes; bool differs; } other[] = {
		{ OP_ALL_REDUCE << 8 | DTYPE_F32, 64, false },
		{ OP_ALL_REDUCE << 8 | DTYPE_F32, 68, true },
		{ OP_ALL_REDUCE << 8 | DTYPE_F16, 64, true },
		{ OP_BROADCAST << 8 | DTYPE_F32, 64, true },
	};
	struct bed b;

	start(&b, 2);
	for (uint32_t i = 0; i < 4; i++) {
		call(&b, 0, 1, i, i * MS, i * MS + 1000);
		say(&b, 1, EVENT_COLL_BEGIN, 1, i, i * MS, other[i].flags, other[i].bytes);
		say(&b, 1, EVENT_COLL_END, 1, i, i * MS + 1000, other[i].flags, other[i].bytes);
		assert_int_equal(get(&b, 0, i)->mismatch, other[i].differs);
	}
	/* sizes that may differ by rank */
	for (uint32_t r = 0; r < 2; r++) {
		say(&b, r, EVENT_COLL_BEGIN, 1, 4, 9 * MS, OP_ALL_GATHER << 8 | DTYPE_OBJECT, 10 + r);
		say(&b, r, EVENT_COLL_END, 1, 4, 10 * MS, OP_ALL_GATHER << 8 | DTYPE_OBJECT, 10 + r);
	}
	assert_false(get(&b, 0, 4)->mismatch);
	stop(&b);
}

static void a_missing_start_is_told_as_it_stands_and_completed_later(void **state)
{
	struct bed b;

	start(&b, 4);
	tick(&b, 0);
	for (uint32_t r = 0; r < 3; r++)
		call(&b, r, 1, 0, 1 * MS, 0);
	tick(&b, 1000 * MS);
	assert_null(get(&b, 0, 0));
	tick(&b, 2100 * MS);
	assert_non_null(get(&b, 0, 0));
	assert_int_equal(get(&b, 0, 0)->n_seen, 3);
	assert_false(get(&b, 0, 0)->decided);
	assert_int_equal(b.facts.arrivals.v[get(&b, 0, 0)->first_arrival_index].exit_ns == FACT_NONE, 1);
	tick(&b, 2400 * MS);
	assert_int_equal(b.facts.collectives.n, 1); /* nothing new: not told again */
	call(&b, 3, 1, 0, 2500 * MS, 2600 * MS);
	for (uint32_t r = 0; r < 3; r++)
		say(&b, r, EVENT_COLL_END, 1, 0, 2600 * MS, 0, 0);
	assert_int_equal(get(&b, 0, 0)->n_seen, 4);
	assert_int_equal(get(&b, 0, 0)->last_rank, 3);
	stop(&b);
}

static void a_declared_subgroup_needs_only_its_members(void **state)
{
	static const int32_t members[] = { 1, 3 };
	const struct fact_group *g;
	struct bed b;

	start(&b, 4);
	call(&b, 3, 2, 0, 1 * MS, 2 * MS);
	core_group(b.core, "sub", members, 2);
	assert_null(get(&b, 0, 0));
	call(&b, 1, 2, 0, 1 * MS, 2 * MS);
	assert_int_equal(get(&b, 0, 0)->n_expected, 2);
	assert_int_equal(get(&b, 0, 0)->n_seen, 2);
	assert_int_equal(b.facts.arrivals.v[0].rank, 1); /* by rank, not by arrival */
	assert_int_equal(b.facts.arrivals.v[1].rank, 3);
	g = &b.facts.groups.v[b.facts.groups.n - 1];
	assert_string_equal(g->name, "sub");
	assert_string_equal(g->ranks_json, "[1,3]");
	assert_true(g->ranks_known);
	stop(&b);
}

static void an_undeclared_subgroup_waits_for_whoever_may_come(void **state)
{
	struct bed b;

	start(&b, 4);
	tick(&b, 0);
	call(&b, 1, 2, 0, 1 * MS, 3 * MS);
	call(&b, 3, 2, 0, 2 * MS, 3 * MS);
	assert_null(get(&b, 0, 0));
	tick(&b, 3000 * MS);
	tick(&b, 6000 * MS);
	assert_int_equal(get(&b, 0, 0)->n_seen, 2);
	assert_int_equal(get(&b, 0, 0)->n_expected, 0); /* not known */
	stop(&b);
}

/* Ranks whose agents find us seconds apart: the first two are in later calls
 * before the others are heard of at all. */
static void ranks_that_turn_up_late_are_waited_for(void **state)
{
	struct bed b;

	(void)state;
	start(&b, 4);
	for (uint32_t seq = 0; seq < 6; seq++)
		call(&b, 0, 1, seq, (10 + seq) * MS, (20 + seq) * MS);
	tick(&b, 100 * MS);
	tick(&b, 2200 * MS);
	assert_non_null(get(&b, 0, 5)); /* told as it stands */
	assert_int_equal(get(&b, 0, 5)->n_seen, 1);
	for (uint32_t seq = 0; seq < 2; seq++)
		call(&b, 1, 1, seq, (10 + seq) * MS, (20 + seq) * MS);
	tick(&b, 2300 * MS);
	for (uint32_t seq = 2; seq < 6; seq++)
		call(&b, 1, 1, seq, (10 + seq) * MS, (20 + seq) * MS);
	tick(&b, 7000 * MS);
	for (uint32_t rank = 2; rank < 4; rank++)
		for (uint32_t seq = 0; seq < 6; seq++)
			call(&b, rank, 1, seq, (10 + seq) * MS, (20 + seq) * MS);
	tick(&b, 7100 * MS);
	for (uint32_t seq = 0; seq < 6; seq++)
		assert_int_equal(get(&b, 0, seq)->n_seen, 4);
	stop(&b);
}

static const char *name_of_group(const struct bed *b, uint32_t group)
{
	for (size_t i = b->facts.groups.n; i-- > 0;)
		if (b->facts.groups.v[i].group == group)
			return b->facts.groups.v[i].name;
	return "";
}

static void groups_of_one_name_are_told_apart_by_their_members(void **state)
{
	static const int32_t low[] = { 0, 1 }, high[] = { 2, 3 };
	struct bed b;

	(void)state;
	start(&b, 4);
	assert_int_equal(core_group(b.core, "sub", low, 2), 0);
	call(&b, 0, 2, 0, 1 * MS, 4 * MS);
	call(&b, 2, 2, 0, 11 * MS, 14 * MS); /* before anybody said who is in it */
	assert_int_equal(core_group(b.core, "sub", high, 2), 0);
	call(&b, 3, 2, 0, 12 * MS, 14 * MS);
	call(&b, 1, 2, 0, 2 * MS, 4 * MS);
	assert_int_equal(get(&b, 0, 0)->n_seen, 2);
	assert_int_equal(get(&b, 0, 0)->last_rank, 1);
	assert_int_equal(get(&b, 1, 0)->n_seen, 2);
	assert_int_equal(get(&b, 1, 0)->last_rank, 3);
	assert_string_equal(name_of_group(&b, 0), "sub");
	assert_string_equal(name_of_group(&b, 1), "sub@2");
	stop(&b);
}

static void groups_of_one_name_are_told_apart_after_a_restart(void **state)
{
	static const int32_t low[] = { 0, 1 }, high[] = { 2, 3 };
	unsigned char saved[4096];
	struct bed b;
	size_t n;

	(void)state;
	start(&b, 4);
	assert_int_equal(core_group(b.core, "sub", low, 2), 0);
	assert_int_equal(core_group(b.core, "sub", high, 2), 0);
	n = core_save(b.core, saved, sizeof saved);
	assert_true(n <= sizeof saved);
	core_free(b.core);
	assert_int_equal(core_new(&b.core, NULL, &b.facts), 0);
	assert_int_equal(core_load(b.core, saved, n), 0);
	core_host(b.core, 0, true, OFFSET);
	make_up(&b, 4, 0, 0);
	for (uint32_t r = 4; r-- > 0;)
		call(&b, r, 2, 0, (1 + r) * MS, 8 * MS);
	assert_int_equal(get(&b, 0, 0)->last_rank, 1);
	assert_int_equal(get(&b, 1, 0)->last_rank, 3);
	assert_int_equal(get(&b, 1, 0)->n_expected, 2);
	stop(&b);
}

static void a_restarted_job_counts_anew_in_another_group(void **state)
{
	struct bed b;

	start(&b, 2);
	for (uint32_t r = 0; r < 2; r++)
		call(&b, r, 1, 0, 1 * MS, 2 * MS);
	make_up(&b, 2, 1, 10);
	for (uint32_t r = 0; r < 2; r++)
		call(&b, 10 + r, 1, 0, 1001 * MS, 1002 * MS);
	assert_int_equal(get(&b, 0, 0)->first_arrival_ns, OFFSET + MS);
	assert_int_equal(get(&b, 1, 0)->first_arrival_ns, OFFSET + 1001 * MS);
	assert_string_equal(b.facts.groups.v[b.facts.groups.n - 1].name, "g#1");
	stop(&b);
}

static void lost_ends_do_not_hold_the_group_up(void **state)
{
	struct bed b;

	start(&b, 2);
	tick(&b, 0);
	call(&b, 0, 1, 0, 1 * MS, 2 * MS);
	call(&b, 1, 1, 0, 1 * MS, 0); /* this end never comes */
	for (uint32_t i = 1; i < 5; i++)
		for (uint32_t r = 0; r < 2; r++)
			call(&b, r, 1, i, 1000 * MS * i, 1000 * MS * i + MS);
	tick(&b, 4500 * MS);
	tick(&b, 9000 * MS);
	for (uint32_t i = 0; i < 5; i++)
		assert_non_null(get(&b, 0, i));
	assert_true(core_low_water(b.core) == UINT64_MAX);
	stop(&b);
}

static void a_wild_sequence_costs_neither_time_nor_memory(void **state)
{
	struct core_stats st;
	struct bed b;

	start(&b, 2);
	for (uint32_t i = 0; i < 20000; i++)
		call(&b, i % 2, 1, i * 2654435761u, i, 0);
	assert_int_equal(core_finish(b.core, (fleet_time){ OFFSET }), 0);
	core_stats(b.core, &st);
	assert_int_equal(st.n_events, 20000);
	stop(&b);
}

static void nonsense_is_counted_not_believed(void **state)
{
	struct event ev = { .tick = UINT64_MAX, .kind = EVENT_STEP_BEGIN };
	struct core_stats st;
	struct bed b;

	start(&b, 2);
	assert_int_equal(core_events(b.core, 0, 0, 1, &ev, 1), 0);
	ev = (struct event){ .tick = 1, .kind = EVENT_COLL_END, .name = 77 };
	assert_int_equal(core_events(b.core, 0, 5000, 1, &ev, 1), 0);
	assert_int_equal(core_events(b.core, 999, 0, 1, &ev, 1), 0);
	ev = (struct event){ .tick = 1, .kind = 40 };
	assert_int_equal(core_events(b.core, 0, 0, 1, &ev, 1), 0);
	for (unsigned k = 0; k < 12; k++) {
		ev = (struct event){ .tick = 5, .kind = (uint16_t)k, .flags = 0xffff, .name = 9999,
				     .a = UINT64_MAX - k, .b = UINT64_MAX };
		assert_int_equal(core_events(b.core, 0, 0, 1, &ev, 1), 0);
	}
	core_stats(b.core, &st);
	assert_int_equal(st.n_bad_events, 3);
	assert_true(st.n_unknown_kind >= 1);
	stop(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_collective_is_told_when_all_have_left_it),
		cmocka_unit_test(a_tie_within_the_tick_error_is_undecided),
		cmocka_unit_test(two_hosts_decide_only_with_disjoint_intervals),
		cmocka_unit_test(an_unaligned_host_decides_nothing),
		cmocka_unit_test(hosts_that_no_probe_ties_are_compared_by_their_calls),
		cmocka_unit_test(disagreement_is_flagged),
		cmocka_unit_test(ranks_that_turn_up_late_are_waited_for),
		cmocka_unit_test(a_missing_start_is_told_as_it_stands_and_completed_later),
		cmocka_unit_test(a_declared_subgroup_needs_only_its_members),
		cmocka_unit_test(an_undeclared_subgroup_waits_for_whoever_may_come),
		cmocka_unit_test(groups_of_one_name_are_told_apart_by_their_members),
		cmocka_unit_test(groups_of_one_name_are_told_apart_after_a_restart),
		cmocka_unit_test(a_restarted_job_counts_anew_in_another_group),
		cmocka_unit_test(lost_ends_do_not_hold_the_group_up),
		cmocka_unit_test(a_wild_sequence_costs_neither_time_nor_memory),
		cmocka_unit_test(nonsense_is_counted_not_believed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
