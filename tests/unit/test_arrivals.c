/* What steps would take without one rank's excess: jobs whose answer is known by hand. */
#include "../../collector/core.h"
#include "unit.h"

#include <math.h>
#include <string.h>

#define MS INT64_C(1000000)
#define T0 (1000 * MS)
#define N_STEPS 8

struct job {
	uint32_t n_ranks, n_calls;
	int64_t work_ns[4][4]; /* by rank and call: before it */
	int64_t transfer_ns;
	bool blocks, runs_ahead; /* runs_ahead: the host does not wait for a call */
	bool messages;
};

static void say(struct core *c, uint32_t rank, int64_t at_ns, enum event_kind kind, unsigned flags, uint32_t name,
		uint32_t step, uint32_t low, uint64_t b)
{
	struct event ev = { .tick = (uint64_t)at_ns, .kind = (uint16_t)kind, .flags = (uint16_t)flags,
			    .name = name, .a = event_a(step, low), .b = b };

	assert_int_equal(core_events(c, rank, 0, (uint64_t)step + 1, &ev, 1), 0);
}

/* The ranks' work and calls in one step from at_ns on; returns its end. */
static int64_t play_step(struct core *c, const struct job *j, uint32_t step, int64_t at_ns)
{
	int64_t ready_ns[4], free_ns[4], enter_ns[4], end_ns = 0;
	uint16_t flags = event_coll_flags(OP_ALL_REDUCE, DTYPE_F32);

	for (uint32_t r = 0; r < j->n_ranks; r++) {
		ready_ns[r] = free_ns[r] = at_ns;
		say(c, r, at_ns, EVENT_STEP_BEGIN, 0, 0, step, 0, 0);
	}
	for (uint32_t k = 0; k < j->n_calls; k++) {
		int64_t last_ns = 0;

		for (uint32_t r = 0; r < j->n_ranks; r++) {
			ready_ns[r] += j->work_ns[r][k];
			enter_ns[r] = ready_ns[r] > free_ns[r] ? ready_ns[r] : free_ns[r];
			last_ns = enter_ns[r] > last_ns ? enter_ns[r] : last_ns;
		}
		for (uint32_t r = 0; r < j->n_ranks; r++) {
			say(c, r, enter_ns[r], EVENT_COLL_BEGIN, flags, 1, step, step * j->n_calls + k,
			    4096 | (j->blocks ? EVENT_COLL_SYNC_BIT : 0));
			free_ns[r] = last_ns + j->transfer_ns;
			say(c, r, free_ns[r], EVENT_COLL_END, flags, 1, step, step * j->n_calls + k, 4096);
			if (!j->runs_ahead)
				ready_ns[r] = free_ns[r];
			end_ns = free_ns[r];
		}
	}
	if (j->messages)
		say(c, 0, end_ns, EVENT_COLL_BEGIN, event_coll_flags(OP_SEND, DTYPE_F32), 0, step, step, 0);
	for (uint32_t r = 0; r < j->n_ranks; r++)
		say(c, r, end_ns, EVENT_STEP_END, 0, 0, step, 0, 0);
	return end_ns;
}

static void play(struct facts *f, const struct job *j)
{
	int64_t at_ns = T0;
	struct core *c;

	facts_init(f);
	assert_int_equal(core_new(&c, NULL, f), 0);
	assert_int_equal(core_host(c, 0, true, 0), 0);
	for (uint32_t r = 0; r < j->n_ranks; r++) {
		assert_int_equal(core_process(c, &(struct core_process){ .process = r, .rank = (int32_t)r,
									  .world_size = (int32_t)j->n_ranks }),
				 0);
		assert_int_equal(core_name(c, r, 1, "dp", 2), 0);
	}
	for (uint32_t step = 0; step < N_STEPS; step++) {
		at_ns = play_step(c, j, step, at_ns);
		assert_int_equal(core_tick(c, (fleet_time){ at_ns }), 0);
	}
	assert_int_equal(core_finish(c, (fleet_time){ at_ns + 10000 * MS }), 0);
	core_free(c);
}

static const struct fact_what_if *find(const struct facts *f, const char *scope, const char *name)
{
	for (size_t i = f->what_ifs.n; i-- > 0;)
		if (strcmp(f->what_ifs.v[i].scope, scope) == 0 && strcmp(f->what_ifs.v[i].name, name) == 0)
			return &f->what_ifs.v[i];
	return NULL;
}

static void test_a_late_rank_s_excess_is_what_the_step_would_lose(void **state)
{
	struct job j = { .n_ranks = 4, .n_calls = 2, .transfer_ns = MS, .blocks = true };
	const struct fact_what_if *v;
	struct facts f;

	(void)state;
	for (uint32_t r = 0; r < 4; r++)
		for (uint32_t k = 0; k < 2; k++)
			j.work_ns[r][k] = 20 * MS;
	j.work_ns[2][0] += 6 * MS;
	j.work_ns[2][1] += 4 * MS; /* blocked ranks get nothing ahead: this is lost, too */
	play(&f, &j);
	v = find(&f, "job", "job");
	assert_non_null(v);
	assert_int_equal(v->step_ns, 52 * MS);
	assert_int_equal(v->without_ns, 42 * MS);
	assert_int_equal(v->n_steps, N_STEPS);
	assert_int_equal(v->err_ns, 0); /* durations of one clock each, exact here */
	v = find(&f, "rank", "2");
	assert_int_equal(v->without_ns, 42 * MS);
	assert_true(fabs(v->share - 1) < 1e-9);
	assert_true(fabs(v->slowdown - 52.0 / 42) < 1e-9);
	assert_int_equal(find(&f, "rank", "0")->without_ns, 52 * MS);
	facts_fini(&f);
}

static void test_two_late_ranks_hide_each_other(void **state)
{
	struct job j = { .n_ranks = 4, .n_calls = 1, .transfer_ns = MS, .blocks = true };
	struct facts f;

	(void)state;
	for (uint32_t r = 0; r < 4; r++)
		j.work_ns[r][0] = (r == 1 ? 30 : r == 3 ? 27 : 20) * MS;
	play(&f, &j);
	assert_int_equal(find(&f, "job", "job")->without_ns, 21 * MS);
	assert_int_equal(find(&f, "rank", "1")->without_ns, 28 * MS); /* then the other one is last */
	assert_int_equal(find(&f, "rank", "3")->without_ns, 31 * MS); /* nobody waits for it now */
	facts_fini(&f);
}

static void test_what_a_rank_got_done_while_it_waited_is_nobody_s_excess(void **state)
{
	struct job j = { .n_ranks = 2, .n_calls = 3, .transfer_ns = MS, .runs_ahead = true };
	struct facts f;

	(void)state;
	/* Rank 1 is late once. Behind it rank 0 comes at once each time: its work was
	 * done while it waited. The job would take 31 ms and not less. */
	for (uint32_t r = 0; r < 2; r++)
		for (uint32_t k = 0; k < 3; k++)
			j.work_ns[r][k] = 10 * MS;
	j.work_ns[1][0] += 30 * MS;
	play(&f, &j);
	assert_int_equal(find(&f, "job", "job")->step_ns, 61 * MS);
	assert_int_equal(find(&f, "rank", "1")->without_ns, 31 * MS);
	assert_int_equal(find(&f, "rank", "0")->without_ns, 61 * MS);
	facts_fini(&f);
}

static void test_even_ranks_lose_nothing(void **state)
{
	struct job j = { .n_ranks = 3, .n_calls = 2, .transfer_ns = MS };
	struct facts f;

	(void)state;
	for (uint32_t r = 0; r < 3; r++)
		for (uint32_t k = 0; k < 2; k++)
			j.work_ns[r][k] = (int64_t)(5 + k) * MS;
	play(&f, &j);
	assert_true(find(&f, "job", "job")->slowdown == 1);
	assert_null(find(&f, "rank", "0"));
	facts_fini(&f);
}

static void test_a_job_with_messages_is_not_replayed_from_its_collectives(void **state)
{
	struct job j = { .n_ranks = 3, .n_calls = 1, .transfer_ns = MS, .messages = true };
	struct facts f;

	(void)state;
	for (uint32_t r = 0; r < 3; r++)
		j.work_ns[r][0] = (int64_t)(5 + r) * MS;
	play(&f, &j);
	assert_int_equal(f.what_ifs.n, 0);
	facts_fini(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_late_rank_s_excess_is_what_the_step_would_lose),
		cmocka_unit_test(test_two_late_ranks_hide_each_other),
		cmocka_unit_test(test_what_a_rank_got_done_while_it_waited_is_nobody_s_excess),
		cmocka_unit_test(test_even_ranks_lose_nothing),
		cmocka_unit_test(test_a_job_with_messages_is_not_replayed_from_its_collectives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
