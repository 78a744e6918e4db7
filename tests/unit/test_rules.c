/* The rules on calls and absence fed by the core itself: what the case player cannot say. */
#include "../sim/train.h"
#include "unit.h"

#include <stdio.h>

#define S INT64_C(1000000000)
#define SEED UINT64_C(20261130)

static size_t n_above_notice(const struct facts *f)
{
	size_t n = 0;

	for (size_t i = 0; i < f->verdicts.n; i++)
		n += f->verdicts.v[i].severity != SEVERITY_NOTICE;
	return n;
}

static void healthy_training_in_any_order_of_chunks(void **state)
{
	(void)state;
	for (uint64_t seed = SEED; seed < SEED + 4; seed++) {
		struct facts facts;
		struct train t;
		struct core *c;

		train_make(&t, &(struct train_config){ .world = 8, .n_hosts = 2, .n_steps = 60,
						       .n_buckets = 3, .seed = seed, .noise = 0.1,
						       .slow_rank = -1 });
		facts_init(&facts);
		assert_int_equal(core_new(&c, NULL, &facts), 0);
		train_introduce(&t, c, 0);
		train_feed(&t, c, seed, 200, 0, UINT64_MAX);
		assert_int_equal(core_finish(c, (fleet_time){ INT64_C(1800000000000000000) }), 0);
		assert_int_equal(n_above_notice(&facts), 0);
		core_free(c);
		facts_fini(&facts);
		train_fini(&t);
	}
}

struct fixture {
	struct facts facts;
	struct core *core;
};

static void start(struct fixture *f, int32_t world)
{
	facts_init(&f->facts);
	assert_int_equal(core_new(&f->core, NULL, &f->facts), 0);
	assert_int_equal(core_host(f->core, 0, true, 0), 0);
	for (int32_t rank = 0; rank < world; rank++) {
		assert_int_equal(core_process(f->core, &(struct core_process){ .process = (uint32_t)rank,
									       .rank = rank,
									       .world_size = world }), 0);
		assert_int_equal(core_name(f->core, (uint32_t)rank, 1, "g", 1), 0);
	}
}

static void stop(struct fixture *f)
{
	core_free(f->core);
	facts_fini(&f->facts);
}

static void say(struct fixture *f, uint32_t process, int64_t at_ns, enum event_kind kind, uint32_t seq,
		uint64_t bytes)
{
	struct event ev = { .tick = (uint64_t)at_ns, .kind = kind, .name = 1,
			    .flags = event_coll_flags(OP_ALL_REDUCE, DTYPE_F32),
			    .a = event_a(EVENT_STEP_UNKNOWN, seq), .b = bytes };

	assert_int_equal(core_events(f->core, process, 0, (uint64_t)at_ns, &ev, 1), 0);
}

static void pass(struct fixture *f, int64_t from_ns, int64_t to_ns)
{
	for (int64_t at_ns = from_ns; at_ns <= to_ns; at_ns += S / 4)
		assert_int_equal(core_tick(f->core, (fleet_time){ at_ns }), 0);
}

/* Two calls of three ranks, the last of which enters the first only. */
static void leave_one_out(struct fixture *f)
{
	start(f, 3);
	pass(f, 0, S);
	for (uint32_t rank = 0; rank < 3; rank++) {
		say(f, rank, S + rank, EVENT_COLL_BEGIN, 0, 64);
		say(f, rank, S + 10, EVENT_COLL_END, 0, 64);
	}
	for (uint32_t rank = 0; rank < 2; rank++)
		say(f, rank, 2 * S, EVENT_COLL_BEGIN, 1, 64);
	pass(f, 2 * S, 2 * S + S / 2);
}

static void a_death_that_others_wait_behind_is_told_within_seconds(void **state)
{
	struct fixture f;

	(void)state;
	leave_one_out(&f);
	assert_int_equal(core_process_state(f.core, 2, CORE_DIED, (host_time){ 2 * S }), 0);
	pass(&f, 3 * S, 7 * S);
	assert_int_equal(f.facts.verdicts.n, 1);
	assert_string_equal(f.facts.verdicts.v[0].class_name, "absent.crashed");
	assert_non_null(strstr(f.facts.verdicts.v[0].culprit_json, "\"ranks\":[2]"));
	stop(&f);
}

/* The others' words come first, then the failed call's, then the one in its place. */
static void a_number_used_again_after_a_call_that_raised_is_no_mismatch(void **state)
{
	struct fixture f;

	(void)state;
	for (uint32_t first = 0; first < 2; first++) {
		start(&f, 2);
		pass(&f, 0, S);
		say(&f, first, S, EVENT_COLL_BEGIN, 0, 64);
		if (first == 1)
			say(&f, 1, S + 1, EVENT_COLL_END, 0, 64);
		say(&f, 1, S + 2, EVENT_COLL_BEGIN, 0, first == 1 ? 64 : 8);
		say(&f, !first, S + 3, EVENT_COLL_BEGIN, 0, 64);
		for (uint32_t rank = 0; rank < 2; rank++)
			say(&f, rank, S + 4, EVENT_COLL_END, 0, 64);
		pass(&f, S, 60 * S);
		assert_int_equal(n_above_notice(&f.facts), 0);
		stop(&f);
	}
}

/* As in a collector that was just started: what came in before its first look is not
 * as old as the epoch. */
static void what_was_heard_before_the_first_look_is_of_its_time(void **state)
{
	const int64_t now_ns = INT64_C(1700000000) * S;
	struct fixture f;

	(void)state;
	start(&f, 3);
	for (uint32_t rank = 0; rank < 3; rank++) {
		say(&f, rank, S + rank, EVENT_COLL_BEGIN, 0, 64);
		say(&f, rank, S + 10, EVENT_COLL_END, 0, 64);
	}
	for (uint32_t rank = 0; rank < 2; rank++)
		say(&f, rank, 2 * S, EVENT_COLL_BEGIN, 1, 64);
	pass(&f, now_ns, now_ns + 20 * S);
	assert_int_equal(f.facts.verdicts.n, 0);
	pass(&f, now_ns + 20 * S, now_ns + 60 * S);
	assert_int_equal(f.facts.verdicts.n, 1);
	assert_string_equal(f.facts.verdicts.v[0].class_name, "stuck.localised_cause_unknown");
	stop(&f);
}

static void everybody_killed_is_nobodys_absence(void **state)
{
	struct fixture f;

	(void)state;
	leave_one_out(&f);
	for (uint32_t rank = 0; rank < 3; rank++)
		assert_int_equal(core_process_state(f.core, rank, CORE_DIED, (host_time){ 3 * S }), 0);
	pass(&f, 3 * S, 100 * S);
	assert_int_equal(n_above_notice(&f.facts), 0);
	stop(&f);
}

static void silence_of_a_rank_that_lost_events_proves_nothing(void **state)
{
	struct fixture f;

	(void)state;
	leave_one_out(&f);
	assert_int_equal(core_lost(f.core, 2, (host_time){ 2 * S }, 5), 0);
	pass(&f, 3 * S, 100 * S);
	assert_int_equal(n_above_notice(&f.facts), 0);
	stop(&f);
}

static void a_verdict_says_which_ranks_and_events_it_was_reached_without(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, 3);
	assert_int_equal(core_process(f.core, &(struct core_process){ .process = 0, .rank = 0,
								      .world_size = 5 }), 0);
	assert_int_equal(core_process(f.core, &(struct core_process){ .process = 7, .rank = 2,
								      .restart_count = 0,
								      .world_size = 5 }), 0);
	assert_int_equal(core_lost(f.core, 1, (host_time){ S }, 14), 0);
	pass(&f, 0, S);
	for (uint32_t rank = 0; rank < 2; rank++)
		say(&f, rank, 2 * S, EVENT_COLL_BEGIN, 0, 64 + rank);
	assert_int_equal(core_finish(f.core, (fleet_time){ 60 * S }), 0);
	assert_true(f.facts.verdicts.n > 0);
	assert_string_equal(f.facts.verdicts.v[0].coverage_json,
			    "{\"ranks_silent\":2,\"events_lost\":14}");
	stop(&f);
}

static void a_rank_that_comes_after_all_turns_the_finding_into_a_notice(void **state)
{
	struct fixture f;

	(void)state;
	leave_one_out(&f);
	pass(&f, 3 * S, 50 * S);
	assert_int_equal(f.facts.verdicts.n, 1);
	assert_string_equal(f.facts.verdicts.v[0].class_name, "stuck.localised_cause_unknown");
	say(&f, 2, 50 * S, EVENT_COLL_BEGIN, 1, 64);
	pass(&f, 50 * S, 55 * S);
	assert_int_equal(f.facts.verdicts.n, 2);
	assert_string_equal(f.facts.verdicts.v[1].key, f.facts.verdicts.v[0].key);
	assert_string_equal(f.facts.verdicts.v[1].class_name, "timeout.peer_busy");
	assert_int_equal(f.facts.verdicts.v[1].severity, SEVERITY_NOTICE);
	stop(&f);
}

static int record(struct fixture *f, uint32_t process, const char *category, const char *fields, size_t n)
{
	return core_record(f->core, process, (host_time){ S }, category, fields, n);
}

static void records_of_strangers_are_limited(void **state)
{
	static const char *const bad[] = { "",
					   "{",
					   "[]",
					   "7",
					   "null",
					   "{\"endpoint\":{}}",
					   "{\"seq\":1e99}",
					   "{\"seq\":\"x\",\"id\":[]}",
					   "\xff\xfe",
					   "{\"a\":1,\"a\":2}",
					   "{\"bytes\":-1e300,\"release_delay_layers\":9e18,\"nics\":-5,"
					   "\"order\":[1,{}],\"dst\":[],\"peer\":1e12,\"status\":{},"
					   "\"gid_index\":\"x\",\"observed\":\"[\",\"advertised\":\":::\","
					   "\"from_rank\":-7,\"class\":[],\"text\":5,\"nccl\":[],\"gpu\":{},"
					   "\"NCCL_ALGO\":null,\"module\":1,\"host\":2,\"after_bytes\":true}",
					   "{\"count\":1e300,\"peer\":[],\"bytes\":-1}",
					   "{\"node\":{},\"ring_nic\":[[],{},[null]],\"nics\":-7}",
					   "{\"width\":\"x\",\"speed\":-1,\"kind\":4,\"peer\":1e18}",
					   "{\"nic\":\"\",\"host\":\"nobody\",\"dev\":1,\"acs\":[],\"iommu\":2}" };
	static const char *const kinds[] = { "init.rendezvous", "init.resolve", "init.store_join",
					     "init.backend", "net.connect", "nccl.bootstrap_if",
					     "loader.end_of_data", "loop.branch", "zero.param",
					     "proc.state", "log.line", "meta.versions", "meta.env",
					     "meta.device", "net.route", "net.accept",
					     "net.bootstrap_error", "nccl.error", "nccl.net",
					     "nccl.ib_conn", "ib.qp", "ib.wc_error",
					     "mem.alloc_failed", "mem.free_deferred", "mem.unit",
					     "topo.gpu_nic", "topo.link", "host.pci", "nccl.graph",
					     "ib.port", "meta.parallel", "dev.xid", "dev.ecc",
					     "memcpy.bulk", "net.drops", "net.pause_frames",
					     "net.retransmits", "nobody.asks" };
	struct fixture f;
	char *huge = malloc(1 << 20);

	(void)state;
	assert_non_null(huge);
	memset(huge, '[', 1 << 20);
	start(&f, 2);
	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
		for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
			for (uint32_t n = 0; n < 100; n++)
				assert_int_equal(record(&f, n % 3, kinds[k], bad[i], strlen(bad[i])), 0);
		assert_int_equal(record(&f, 0, kinds[k], huge, 1 << 20), 0);
	}
	pass(&f, 0, 60 * S);
	assert_int_equal(n_above_notice(&f.facts), 0);
	free(huge);
	stop(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(healthy_training_in_any_order_of_chunks),
		cmocka_unit_test(a_death_that_others_wait_behind_is_told_within_seconds),
		cmocka_unit_test(a_number_used_again_after_a_call_that_raised_is_no_mismatch),
		cmocka_unit_test(what_was_heard_before_the_first_look_is_of_its_time),
		cmocka_unit_test(everybody_killed_is_nobodys_absence),
		cmocka_unit_test(silence_of_a_rank_that_lost_events_proves_nothing),
		cmocka_unit_test(a_verdict_says_which_ranks_and_events_it_was_reached_without),
		cmocka_unit_test(a_rank_that_comes_after_all_turns_the_finding_into_a_notice),
		cmocka_unit_test(records_of_strangers_are_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
