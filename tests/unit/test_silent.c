/* Silent divergence as live probes tell it: phases, buckets and records, without launches. */
#include "../sim/train.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>

#define MS INT64_C(1000000)
#define S INT64_C(1000000000)

struct fixture {
	struct facts facts;
	struct core *core;
	int64_t now_ns;
	uint32_t world;
};

static void start(struct fixture *f, uint32_t world)
{
	f->now_ns = S;
	f->world = world;
	facts_init(&f->facts);
	assert_int_equal(core_new(&f->core, NULL, &f->facts), 0);
	assert_int_equal(core_host(f->core, 0, true, 0), 0);
	for (uint32_t rank = 0; rank < world; rank++) {
		assert_int_equal(core_process(f->core, &(struct core_process){
						.process = rank, .rank = (int32_t)rank,
						.world_size = (int32_t)world }), 0);
		assert_int_equal(core_name(f->core, rank, 1, "g", 1), 0);
	}
	assert_int_equal(core_tick(f->core, (fleet_time){ 0 }), 0);
}

static void stop(struct fixture *f)
{
	core_free(f->core);
	facts_fini(&f->facts);
}

static void finish(struct fixture *f)
{
	assert_int_equal(core_finish(f->core, (fleet_time){ f->now_ns + 10 * S }), 0);
}

/* The first class above a notice, "" = none. */
static const char *told(const struct fixture *f)
{
	for (size_t i = 0; i < f->facts.verdicts.n; i++)
		if (f->facts.verdicts.v[i].severity != SEVERITY_NOTICE)
			return f->facts.verdicts.v[i].class_name;
	return "";
}

static void say(struct fixture *f, uint32_t rank, uint32_t ring, int64_t at_ns, enum event_kind kind,
		unsigned flags, uint64_t a, uint64_t b)
{
	struct event ev = { .tick = (uint64_t)at_ns, .kind = (uint16_t)kind, .flags = (uint16_t)flags,
			    .name = 1, .a = a, .b = b };

	assert_int_equal(core_events(f->core, rank, ring, (uint64_t)at_ns, &ev, 1), 0);
}

static void record(struct fixture *f, uint32_t rank, const char *category, const char *fields)
{
	assert_int_equal(core_record(f->core, rank, (host_time){ f->now_ns }, category, fields,
				     strlen(fields)), 0);
}

/* A step of n passes, of which that one reduces (n: none does); the thread that reduces is
 * heard of before the loop or behind it. */
static void step(struct fixture *f, uint32_t step, uint32_t n, uint32_t reducing, bool hooks_first)
{
	for (uint32_t rank = 0; rank < f->world; rank++)
		for (unsigned ring = 0; ring < 2; ring++) {
			int64_t at_ns = f->now_ns + rank * 10000;
			bool hooks = (ring == 0) == hooks_first;

			if (!hooks)
				say(f, rank, 0, at_ns, EVENT_STEP_BEGIN, 0, event_a(step, 0), 0);
			for (uint32_t i = 0; i < n; i++) {
				at_ns += 10 * MS;
				if (!hooks)
					say(f, rank, 0, at_ns, EVENT_PHASE_BEGIN, PHASE_BACKWARD,
					    event_a(step, i), 0);
				else if (i == reducing)
					say(f, rank, 1, at_ns + 5 * MS, EVENT_BUCKET_SUBMIT, 0,
					    event_a(step, 0), step);
				at_ns += (18 + (int64_t)(rank + step) % 5) * MS;
				if (!hooks)
					say(f, rank, 0, at_ns, EVENT_PHASE_END, PHASE_BACKWARD,
					    event_a(step, i), 0);
			}
			if (hooks)
				continue;
			say(f, rank, 0, at_ns + MS, EVENT_PHASE_BEGIN, PHASE_OPTIMIZER, event_a(step, 0), 0);
			say(f, rank, 0, at_ns + 3 * MS, EVENT_PHASE_END, PHASE_OPTIMIZER, event_a(step, 0), 0);
			say(f, rank, 0, at_ns + 4 * MS, EVENT_STEP_END, 0, event_a(step, 0), 0);
		}
	f->now_ns += S / 2;
	assert_int_equal(core_tick(f->core, (fleet_time){ f->now_ns }), 0);
}

static void passes_behind_the_last_bucket_are_told_from_the_loops_words(void **state)
{
	(void)state;
	for (uint32_t reducing = 0; reducing < 5; reducing++)
		for (unsigned first = 0; first < 2; first++) {
			struct fixture f;

			start(&f, 3);
			for (uint32_t i = 0; i < 12; i++)
				step(&f, i, 4, reducing, first != 0);
			finish(&f);
			assert_string_equal(told(&f), reducing < 3 ? "silent.no_sync_after_last_backward" : "");
			stop(&f);
		}
}

/* A model that reduces and steps, then one of this rank's own. */
static void another_model_behind_the_optimizer_is_not_left_out(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, 2);
	for (uint32_t i = 0; i < 12; i++) {
		for (uint32_t rank = 0; rank < 2; rank++) {
			say(&f, rank, 0, f.now_ns, EVENT_STEP_BEGIN, 0, event_a(i, 0), 0);
			say(&f, rank, 1, f.now_ns + 15 * MS, EVENT_BUCKET_SUBMIT, 0, event_a(i, 0), i);
			for (uint32_t k = 0; k < 2; k++) {
				int64_t at_ns = f.now_ns + (10 + 40 * k) * MS;

				say(&f, rank, 0, at_ns, EVENT_PHASE_BEGIN, PHASE_BACKWARD, event_a(i, k), 0);
				say(&f, rank, 0, at_ns + 20 * MS, EVENT_PHASE_END, PHASE_BACKWARD, event_a(i, k), 0);
				say(&f, rank, 0, at_ns + 21 * MS, EVENT_PHASE_BEGIN, PHASE_OPTIMIZER, event_a(i, k), 0);
				say(&f, rank, 0, at_ns + 24 * MS, EVENT_PHASE_END, PHASE_OPTIMIZER, event_a(i, k), 0);
			}
			say(&f, rank, 0, f.now_ns + 90 * MS, EVENT_STEP_END, 0, event_a(i, 0), 0);
		}
		f.now_ns += S;
		assert_int_equal(core_tick(f.core, (fleet_time){ f.now_ns }), 0);
	}
	finish(&f);
	assert_string_equal(told(&f), "");
	stop(&f);
}

static void averaging_now_and_then_is_nobodys_fault(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, 3);
	for (uint32_t i = 0; i < 24; i++)
		step(&f, i, 2, i % 4 == 3 ? 1 : 2, false);
	finish(&f);
	assert_string_equal(told(&f), "");
	stop(&f);
}

/* A job's calls, so that its ranks are of one group that reduces. */
static void reduce(struct fixture *f, uint32_t seq)
{
	for (uint32_t rank = 0; rank < f->world; rank++) {
		uint64_t a = event_a(seq, seq);
		unsigned flags = event_coll_flags(OP_ALL_REDUCE, DTYPE_F32);

		say(f, rank, 0, f->now_ns, EVENT_STEP_BEGIN, 0, event_a(seq, 0), 0);
		say(f, rank, 0, f->now_ns + MS, EVENT_COLL_BEGIN, flags, a, 4096);
		say(f, rank, 0, f->now_ns + 2 * MS, EVENT_COLL_END, flags, a, 4096);
		say(f, rank, 0, f->now_ns + 3 * MS, EVENT_STEP_END, 0, event_a(seq, 0), 0);
	}
	f->now_ns += S;
}

static void check(struct fixture *f, const char *category, uint32_t rank, uint32_t step, double v)
{
	char fields[80];

	snprintf(fields, sizeof fields, "{\"step\":%u,\"v\":%.12g}", step, v);
	record(f, rank, category, fields);
}

static void long_runs_are_told_when_they_part(void **state)
{
	struct fixture f;
	const struct fact_verdict *v;
	size_t n;

	(void)state;
	start(&f, 4);
	for (uint32_t i = 0; i < 3000; i++) {
		reduce(&f, i);
		for (uint32_t rank = 0; rank < 4; rank++)
			check(&f, "check.param_sum", rank, i, 2 + 1e-3 * i + (rank == 1 && i >= 2980 ? 0.01 : 0));
		assert_int_equal(core_tick(f.core, (fleet_time){ f.now_ns }), 0);
		if (i == 2979)
			assert_string_equal(told(&f), "");
	}
	assert_string_equal(told(&f), "silent.replica_desync");
	for (n = 0; f.facts.verdicts.v[n].severity == SEVERITY_NOTICE; n++)
		;
	v = &f.facts.verdicts.v[n];
	assert_non_null(strstr(v->culprit_json, "\"ranks\":[1]"));
	assert_int_equal(v->first_step, 2980);
	assert_true(v->detected_ns <= (2980 + 12) * S);
	stop(&f);
}

static void rounding_is_no_difference(void **state)
{
	struct fixture f;
	uint64_t seed = 7;

	(void)state;
	start(&f, 4);
	for (uint32_t i = 0; i < 200; i++) {
		reduce(&f, i);
		for (uint32_t rank = 0; rank < 4; rank++)
			check(&f, i % 2 ? "check.param_sum" : "check.grad_norm", rank, i,
			      (i % 3 ? -1 : 1) * exp(0.05 * i) * (1 + 1e-6 * (double)(unit_rand(&seed) % 16)));
		assert_int_equal(core_tick(f.core, (fleet_time){ f.now_ns }), 0);
	}
	finish(&f);
	assert_string_equal(told(&f), "");
	stop(&f);
}

/* Ranks' words come in any order and some not at all: what is missing is no other value. */
static void scalers_of_which_some_words_are_missing_agree(void **state)
{
	struct fixture f;
	uint64_t seed = 11;
	char fields[80];

	(void)state;
	start(&f, 5);
	for (uint32_t i = 0; i < 300; i++) {
		reduce(&f, i);
		for (uint32_t k = 0; k < 5; k++) {
			uint32_t rank = (k * 3 + i) % 5;

			if (unit_rand(&seed) % 4 == 0)
				continue;
			snprintf(fields, sizeof fields, "{\"step\":%u,\"scale\":%u,\"skip\":%u}", i,
				 65536u >> (i / 90), i % 90 == 89);
			record(&f, rank, "scaler.update", fields);
		}
		assert_int_equal(core_tick(f.core, (fleet_time){ f.now_ns }), 0);
	}
	finish(&f);
	assert_string_equal(told(&f), "");
	stop(&f);
}

static void records_of_strangers_are_taken_for_what_they_are(void **state)
{
	static const char *const bad[] = {
		"", "{", "[]", "null", "{\"v\":{}}", "{\"v\":[1]}", "{\"v\":1e308,\"step\":-1}", "{\"seq\":1e99,\"pg\":\"g\",\"nonfinite\":0}",
		"{\"id\":-7,\"param\":\"a\"}", "{\"id\":1e18,\"param\":\"a\"}", "{\"id\":3}", "{\"param\":\"a\"}",
		"{\"step\":4294967295,\"v\":1}", "{\"step\":1e300,\"v\":1,\"bucket\":-2}", "{\"stage\":1e12,\"found\":0}",
		"{\"pg\":7,\"seq\":\"x\",\"nonfinite\":0}", "{\"count\":-1}", "{\"scale\":\"many\",\"skip\":\"\"}", "\xff\xfe",
	};
	static const char *const kinds[] = {
		"check.param_sum", "check.grad_norm", "scaler.update", "scaler.overflow", "memcpy.found_inf_to_host",
		"finite.coll_input", "finite.coll_output", "finite.module", "loss.value", "bucket.add", "bucket.rebuilt",
		"meta.parallel", "dev.xid", "dev.ecc",
	};
	struct fixture f;

	(void)state;
	start(&f, 3);
	for (uint32_t i = 0; i < 30; i++) {
		reduce(&f, i);
		for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
			for (size_t n = 0; n < sizeof bad / sizeof *bad; n++)
				for (uint32_t rank = 0; rank < 4; rank++) /* the last is nobody's */
					record(&f, rank, kinds[k], bad[n]);
		assert_int_equal(core_tick(f.core, (fleet_time){ f.now_ns }), 0);
	}
	finish(&f);
	assert_string_equal(told(&f), "");
	stop(&f);
}

static void healthy_training_has_no_silent_fault(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed < 4; seed++) {
		struct facts facts;
		struct train t;
		struct core *c;

		train_make(&t, &(struct train_config){ .world = 6, .n_hosts = 2, .n_steps = 50, .n_buckets = 4,
						       .seed = seed, .noise = 0.3, .slow_rank = -1 });
		facts_init(&facts);
		assert_int_equal(core_new(&c, NULL, &facts), 0);
		train_introduce(&t, c, 0);
		train_feed(&t, c, seed, 100, 0, UINT64_MAX);
		assert_int_equal(core_finish(c, (fleet_time){ INT64_C(1800000000000000000) }), 0);
		for (size_t i = 0; i < facts.verdicts.n; i++)
			assert_null(strstr(facts.verdicts.v[i].class_name, "silent."));
		core_free(c);
		facts_fini(&facts);
		train_fini(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(passes_behind_the_last_bucket_are_told_from_the_loops_words),
		cmocka_unit_test(another_model_behind_the_optimizer_is_not_left_out),
		cmocka_unit_test(averaging_now_and_then_is_nobodys_fault),
		cmocka_unit_test(long_runs_are_told_when_they_part),
		cmocka_unit_test(rounding_is_no_difference),
		cmocka_unit_test(scalers_of_which_some_words_are_missing_agree),
		cmocka_unit_test(records_of_strangers_are_taken_for_what_they_are),
		cmocka_unit_test(healthy_training_has_no_silent_fault),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
