#include "../../collector/verdict/slow_fixed_rank.h"
#include "../sim/rank_steps.h"
#include "unit.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEED UINT64_C(20260305)

static const char *host_of(void *arg, int32_t rank)
{
	return rank < 4 ? "node \"a\"\n" : "node-b";
}

/* Plays n steps; facts keep every telling. */
static void play_with(const struct slow_config *cfg, struct rank_steps *s, uint32_t n,
		      int64_t tick_err_ns, double coverage, struct facts *facts)
{
	struct fact_rank_step v[64];
	struct slow_fixed_rank *rule;

	facts_init(facts);
	rank_steps_init(s, SEED);
	assert_int_equal(slow_fixed_rank_new(&rule, cfg), 0);
	for (uint32_t i = 0; i < n; i++) {
		rank_steps_next(s, v);
		for (uint32_t r = 0; r < s->world; r++) {
			v[r].dur_err_ns = tick_err_ns;
			v[r].coverage = coverage;
		}
		assert_int_equal(slow_fixed_rank_step(rule, i, s->world, v, s->world, facts), 0);
	}
	assert_int_equal(slow_fixed_rank_finish(rule, facts), 0);
	slow_fixed_rank_free(rule);
}

static void play(struct rank_steps *s, uint32_t n, int64_t tick_err_ns, double coverage,
		 struct facts *facts)
{
	play_with(&(struct slow_config){ .host_of = host_of }, s, n, tick_err_ns, coverage, facts);
}

/* What other rules know. */
struct others {
	int32_t explained, throttled; /* ranks; -1 = none */
	uint32_t n_named;
	char class_name[32]; /* as it was named last */
};

static bool is_explained(void *arg, int32_t rank)
{
	return ((struct others *)arg)->explained == rank;
}

static bool is_throttled(void *arg, int32_t rank, char *why, size_t n_why)
{
	struct others *o = arg;

	/* Heard of once the rank has been named. */
	if (o->throttled != rank || o->n_named == 0)
		return false;
	snprintf(why, n_why, "it is \"hot\"");
	return true;
}

static void on_named(void *arg, const char *class_name, const int32_t *ranks, uint32_t n,
		     uint32_t first_step)
{
	struct others *o = arg;

	(void)ranks;
	(void)first_step;
	assert_true(n > 0);
	o->n_named++;
	snprintf(o->class_name, sizeof o->class_name, "%s", class_name);
}

static const char *small_host_of(void *arg, int32_t rank)
{
	(void)arg;
	return rank < 6 ? "large" : "small";
}

static void what_is_explained_already_is_not_told_again(void **state)
{
	struct rank_steps s = { .cause = CAUSE_SLOW, .world = 4, .rank = 2, .onset = 80, .by = 0.5 };
	struct others o = { .explained = 2, .throttled = -1 };
	struct facts f;

	(void)state;
	play_with(&(struct slow_config){ .explained = is_explained, .named = on_named, .arg = &o }, &s,
		  300, 0, 1, &f);
	assert_int_equal(f.verdicts.n, 0);
	assert_int_equal(o.n_named, 0);
	facts_fini(&f);
}

static void a_reason_heard_of_later_replaces_the_class(void **state)
{
	struct rank_steps s = { .cause = CAUSE_SLOW, .world = 4, .rank = 2, .onset = 80, .by = 0.5 };
	struct others o = { .explained = -1, .throttled = 2 };
	const struct fact_verdict *v;
	struct facts f;
	json_t *culprit;

	(void)state;
	play_with(&(struct slow_config){ .explained = is_explained, .throttled = is_throttled,
					 .named = on_named, .arg = &o }, &s, 300, 0, 1, &f);
	assert_true(f.verdicts.n > 1);
	assert_string_equal(f.verdicts.v[0].class_name, "slow.fixed_rank");
	v = &f.verdicts.v[f.verdicts.n - 1];
	assert_string_equal(v->key, f.verdicts.v[0].key);
	assert_string_equal(v->class_name, "slow.throttled");
	assert_string_equal(o.class_name, "slow.throttled");
	assert_non_null(strstr(v->sentence, "it is \"hot\""));
	culprit = json_loads(v->culprit_json, 0, NULL);
	assert_string_equal(json_string_value(json_object_get(culprit, "detail")), "it is \"hot\"");
	json_decref(culprit);
	facts_fini(&f);
}

static void all_ranks_of_a_host_are_the_host(void **state)
{
	struct rank_steps s = { .cause = CAUSE_TWO, .world = 8, .rank = 6, .onset = 60, .by = 0.6 };
	const struct fact_verdict *v;
	struct facts f;

	(void)state;
	play_with(&(struct slow_config){ .host_of = small_host_of }, &s, 400, 0, 1, &f);
	assert_true(f.verdicts.n > 0);
	v = &f.verdicts.v[f.verdicts.n - 1];
	assert_string_equal(v->class_name, "slow.fixed_host");
	assert_non_null(strstr(v->culprit_json, "{\"ranks\":[],\"host\":\"small\""));
	facts_fini(&f);
}

static void the_verdict_says_who_where_since_when_and_how_much(void **state)
{
	struct rank_steps s = { .cause = CAUSE_SLOW, .world = 4, .rank = 2, .onset = 80, .by = 0.5,
				.phase = 1 };
	const struct fact_verdict *v;
	json_t *culprit, *ranks;
	struct facts f;

	play(&s, 200, 0, 1, &f);
	assert_true(f.verdicts.n > 1);
	v = &f.verdicts.v[f.verdicts.n - 1];
	for (size_t i = 0; i < f.verdicts.n; i++)
		assert_string_equal(f.verdicts.v[i].key, v->key); /* updated in place */
	assert_string_equal(v->class_name, "slow.fixed_rank");
	assert_int_equal(v->severity, SEVERITY_SLOW);
	assert_int_equal(v->confidence, CONFIDENCE_CERTAIN);
	assert_int_equal(v->error_kind, ERROR_KIND_NONE);
	assert_int_equal(v->first_step, 80);
	assert_int_equal(v->last_step, 199);
	assert_true(v->margin_ns > v->error_ns && v->error_ns > 0);
	assert_in_range(v->margin_ns, 17000000, 23000000); /* of 20 ms */
	assert_in_range((int)(v->cost_ratio * 100), 38, 52);
	assert_true(v->onset_ns > 0 && v->detected_ns > v->onset_ns);
	assert_non_null(strstr(v->sentence, "Rank 2 on"));
	assert_non_null(strstr(v->sentence, "forward"));
	assert_non_null(strstr(v->sentence, "from step 80 on"));

	culprit = json_loads(v->culprit_json, 0, NULL); /* the host's quotes are escaped */
	assert_non_null(culprit);
	ranks = json_object_get(culprit, "ranks");
	assert_int_equal(json_array_size(ranks), 1);
	assert_int_equal(json_integer_value(json_array_get(ranks, 0)), 2);
	assert_string_equal(json_string_value(json_object_get(culprit, "host")), "node \"a\"\n");
	assert_string_equal(json_string_value(json_object_get(culprit, "detail")), "forward");
	json_decref(culprit);
	for (int i = 0; i < 3; i++) {
		json_t *j = json_loads(i == 0	? v->evidence_json
				       : i == 1 ? v->rules_out_json
						: v->coverage_json,
				       0, NULL);

		assert_non_null(j);
		assert_true(json_array_size(j) + json_object_size(j) > 0);
		json_decref(j);
	}
	facts_fini(&f);
}

static void each_phase_is_named_when_it_grew(void **state)
{
	static const char *const names[] = { "\"input\"", "\"forward\"", "\"backward\"",
					     "\"optimizer\"" };

	for (int p = 0; p < 4; p++) {
		struct rank_steps s = { .cause = CAUSE_SLOW, .world = 4, .rank = 1, .onset = 60,
					.by = 0.6, .phase = p };
		struct facts f;

		play(&s, 200, 0, 1, &f);
		assert_true(f.verdicts.n > 0);
		assert_non_null(strstr(f.verdicts.v[f.verdicts.n - 1].culprit_json, names[p]));
		facts_fini(&f);
	}
}

static void two_slow_ranks_are_one_verdict(void **state)
{
	struct rank_steps s = { .cause = CAUSE_TWO, .world = 8, .rank = 4, .onset = 60, .by = 0.6 };
	const struct fact_verdict *v;
	struct facts f;

	play(&s, 400, 0, 1, &f);
	assert_true(f.verdicts.n > 0);
	v = &f.verdicts.v[f.verdicts.n - 1];
	assert_string_equal(v->key, f.verdicts.v[0].key);
	assert_non_null(strstr(v->culprit_json, "\"ranks\":[4,5],\"host\":\"node-b\""));
	facts_fini(&f);
}

static void the_last_step_stops_when_the_slowness_does(void **state)
{
	struct rank_steps s = { .cause = CAUSE_ENDS, .world = 4, .rank = 2, .onset = 60, .by = 0.6 };
	struct facts f;

	play(&s, 600, 0, 1, &f);
	assert_true(f.verdicts.n > 0);
	assert_in_range(f.verdicts.v[f.verdicts.n - 1].last_step, 209, 215);
	facts_fini(&f);
}

static void fewer_than_three_peers_is_insufficient(void **state)
{
	struct rank_steps s = { .cause = CAUSE_SLOW, .world = 3, .rank = 1, .onset = 60, .by = 1 };
	struct facts f;

	play(&s, 400, 0, 1, &f);
	assert_true(f.verdicts.n > 0);
	for (size_t i = 0; i < f.verdicts.n; i++) {
		assert_int_equal(f.verdicts.v[i].severity, SEVERITY_NOTICE);
		assert_int_equal(f.verdicts.v[i].confidence, CONFIDENCE_INSUFFICIENT);
	}
	facts_fini(&f);
}

static void lost_events_make_it_insufficient(void **state)
{
	struct rank_steps s = { .cause = CAUSE_SLOW, .world = 4, .rank = 1, .onset = 60, .by = 1 };
	struct facts f;

	play(&s, 300, 0, 0.5, &f);
	assert_true(f.verdicts.n > 0);
	for (size_t i = 0; i < f.verdicts.n; i++)
		assert_int_equal(f.verdicts.v[i].confidence, CONFIDENCE_INSUFFICIENT);
	facts_fini(&f);
}

static void slowness_within_the_conversion_error_is_nobodys(void **state)
{
	struct rank_steps s = { .cause = CAUSE_SLOW, .world = 4, .rank = 1, .onset = 60, .by = 0.5 };
	struct facts f;

	play(&s, 400, 15000000, 1, &f); /* 20 ms slower, each clock to 15 ms */
	assert_int_equal(f.verdicts.n, 0);
	facts_fini(&f);
}

static void a_slow_rank_that_nobody_waits_for_is_not_named(void **state)
{
	struct rank_steps s = { .cause = CAUSE_SLOW, .world = 4, .rank = 1, .onset = 60, .by = 0.5 };
	struct fact_rank_step v[4];
	struct slow_fixed_rank *rule;
	struct facts f;

	facts_init(&f);
	rank_steps_init(&s, SEED);
	assert_int_equal(slow_fixed_rank_new(&rule, NULL), 0);
	for (uint32_t i = 0; i < 400; i++) {
		rank_steps_next(&s, v);
		for (uint32_t r = 0; r < 4; r++) {
			v[r].exposed_comm_ns = 0;
			v[r].dur_ns = v[r].self_ns;
		}
		assert_int_equal(slow_fixed_rank_step(rule, i, 4, v, 4, &f), 0);
	}
	assert_int_equal(f.verdicts.n, 0);
	slow_fixed_rank_free(rule);
	facts_fini(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_verdict_says_who_where_since_when_and_how_much),
		cmocka_unit_test(what_is_explained_already_is_not_told_again),
		cmocka_unit_test(a_reason_heard_of_later_replaces_the_class),
		cmocka_unit_test(all_ranks_of_a_host_are_the_host),
		cmocka_unit_test(each_phase_is_named_when_it_grew),
		cmocka_unit_test(two_slow_ranks_are_one_verdict),
		cmocka_unit_test(the_last_step_stops_when_the_slowness_does),
		cmocka_unit_test(fewer_than_three_peers_is_insufficient),
		cmocka_unit_test(lost_events_make_it_insufficient),
		cmocka_unit_test(slowness_within_the_conversion_error_is_nobodys),
		cmocka_unit_test(a_slow_rank_that_nobody_waits_for_is_not_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
