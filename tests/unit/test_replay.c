/* Jobs whose time is known by hand, replayed as they were and as they could be. */
#include "../../collector/graph/whatif.h"
#include "unit.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define MAX_STAGES 8
#define MAX_MICRO 16

static int64_t measured(const void *arg, uint32_t i, const struct replay_op *op)
{
	(void)arg;
	(void)i;
	return op->ns;
}

static uint32_t add(struct replay *r, struct replay_op op)
{
	uint32_t i;

	assert_int_equal(replay_add(r, &op, &i), 0);
	return i;
}

static void after(struct replay *r, uint32_t op, uint32_t before)
{
	assert_int_equal(replay_after(r, op, before), 0);
}

static void test_what_is_joined_begins_when_the_last_is_there(void **state)
{
	struct replay *r;
	uint32_t a, b, c, d, e;

	(void)state;
	assert_int_equal(replay_new(&r), 0);
	a = add(r, (struct replay_op){ .ns = 10, .join = REPLAY_ALONE });
	b = add(r, (struct replay_op){ .ns = 25, .place = 1, .join = REPLAY_ALONE });
	c = add(r, (struct replay_op){ .ns = 5, .join = 0 });
	d = add(r, (struct replay_op){ .ns = 7, .place = 1, .join = 0 });
	e = add(r, (struct replay_op){ .ns = 100, .join = REPLAY_ALONE });
	after(r, c, a);
	after(r, d, b);
	after(r, e, c);
	assert_int_equal(replay_order(r), REPLAY_OK);
	assert_int_equal(replay_run(r, measured, NULL, NULL), 25 + 5 + 100);
	replay_free(r);
}

static void test_steps_are_replayed_apart_and_added(void **state)
{
	struct replay *r;
	int64_t steps[2];

	(void)state;
	assert_int_equal(replay_new(&r), 0);
	add(r, (struct replay_op){ .ns = 10, .step = 1, .join = REPLAY_ALONE });
	add(r, (struct replay_op){ .ns = 30, .step = 0, .join = REPLAY_ALONE });
	add(r, (struct replay_op){ .ns = 20, .step = 0, .place = 1, .join = REPLAY_ALONE });
	assert_int_equal(replay_order(r), REPLAY_OK);
	assert_int_equal(replay_run(r, measured, NULL, steps), 40);
	assert_int_equal(steps[0], 30);
	assert_int_equal(steps[1], 10);
	replay_free(r);
}

static void test_a_circle_is_refused(void **state)
{
	struct replay *r;
	uint32_t a, b, c, d;

	(void)state;
	/* Two calls in opposite order on two ranks. */
	assert_int_equal(replay_new(&r), 0);
	a = add(r, (struct replay_op){ .ns = 1, .join = 0 });
	b = add(r, (struct replay_op){ .ns = 1, .join = 1 });
	c = add(r, (struct replay_op){ .ns = 1, .place = 1, .join = 1 });
	d = add(r, (struct replay_op){ .ns = 1, .place = 1, .join = 0 });
	after(r, b, a);
	after(r, d, c);
	assert_int_equal(replay_order(r), REPLAY_CYCLE);
	replay_free(r);
}

static void test_nothing_takes_no_time(void **state)
{
	struct replay *r;

	(void)state;
	assert_int_equal(replay_new(&r), 0);
	assert_int_equal(replay_order(r), REPLAY_OK);
	assert_int_equal(replay_run(r, measured, NULL, NULL), 0);
	replay_free(r);
}

/* ---- a pipeline ---- */

enum { FORWARD, BACKWARD, MESSAGE, REDUCE, N_KINDS };

struct pipeline {
	uint32_t n_stages, n_micro, n_replicas, n_steps;
	int64_t forward_ns[2][MAX_STAGES], backward_ns[2][MAX_STAGES], message_ns, reduce_ns;
};

/* One forward, one backward: stage s first computes n_stages - s forwards. */
static void add_replica(struct replay *r, const struct pipeline *p, uint32_t step, uint32_t replica,
			uint32_t *join)
{
	uint32_t forward[MAX_STAGES][MAX_MICRO], backward[MAX_STAGES][MAX_MICRO];
	uint32_t reduce_join = step * p->n_stages;

	for (uint32_t s = 0; s < p->n_stages; s++) {
		uint32_t place = replica * p->n_stages + s, n_f = 0, n_b = 0, last = UINT32_MAX, op;

		while (n_b < p->n_micro) {
			bool is_forward = n_f < p->n_micro && n_f - n_b < p->n_stages - s;

			op = add(r, (struct replay_op){
					    .ns = is_forward ? p->forward_ns[replica][s]
							     : p->backward_ns[replica][s],
					    .step = step, .place = place,
					    .kind = is_forward ? FORWARD : BACKWARD, .join = REPLAY_ALONE });
			if (last != UINT32_MAX)
				after(r, op, last);
			last = op;
			if (is_forward)
				forward[s][n_f++] = op;
			else
				backward[s][n_b++] = op;
		}
		op = add(r, (struct replay_op){ .ns = p->reduce_ns, .step = step, .place = place, .kind = REDUCE,
						.join = reduce_join + s });
		after(r, op, last);
	}
	for (uint32_t s = 0; s + 1 < p->n_stages; s++)
		for (uint32_t m = 0; m < 2 * p->n_micro; m++) {
			bool is_forward = m < p->n_micro;
			uint32_t n = m % p->n_micro, at = replica * p->n_stages + s;
			struct replay_op op = { .ns = p->message_ns, .step = step, .kind = MESSAGE,
						.join = (*join)++ };
			uint32_t from, to;

			op.place = is_forward ? at : at + 1;
			from = add(r, op);
			op.place = is_forward ? at + 1 : at;
			to = add(r, op);
			after(r, from, is_forward ? forward[s][n] : backward[s + 1][n]);
			after(r, is_forward ? forward[s + 1][n] : backward[s][n], to);
		}
}

static void make(struct replay **ret, const struct pipeline *p)
{
	uint32_t join = p->n_steps * p->n_stages;

	assert_int_equal(replay_new(ret), 0);
	for (uint32_t step = 0; step < p->n_steps; step++)
		for (uint32_t i = 0; i < p->n_replicas; i++)
			add_replica(*ret, p, step, i, &join);
	assert_int_equal(replay_order(*ret), REPLAY_OK);
}

static void ask(struct what_if *ret, struct replay *r, const struct pipeline *p)
{
	static const enum what_if_ideal ideals[N_KINDS] = { WHAT_IF_MEAN, WHAT_IF_MEAN, WHAT_IF_MEDIAN,
							    WHAT_IF_MEDIAN };
	struct what_if_place places[2 * MAX_STAGES];

	for (uint32_t i = 0; i < p->n_replicas * p->n_stages; i++)
		places[i] = (struct what_if_place){ i % p->n_stages, i / p->n_stages };
	assert_int_equal(what_if_make(ret, r, &(struct what_if_config){
						      .n_places = p->n_replicas * p->n_stages,
						      .n_stages = p->n_stages, .n_replicas = p->n_replicas,
						      .n_kinds = N_KINDS, .places = places,
						      .ideals = ideals }),
			 0);
}

static struct pipeline even(uint32_t n_replicas)
{
	struct pipeline p = { .n_stages = 4, .n_micro = 8, .n_replicas = n_replicas, .n_steps = 3,
			      .reduce_ns = 1000 };

	for (uint32_t i = 0; i < 2; i++)
		for (uint32_t s = 0; s < MAX_STAGES; s++) {
			p.forward_ns[i][s] = 100000;
			p.backward_ns[i][s] = 200000;
		}
	return p;
}

static void test_an_even_pipeline_takes_what_theory_says_and_loses_nothing(void **state)
{
	struct pipeline p = even(1);
	struct what_if w;
	struct replay *r;

	(void)state;
	make(&r, &p);
	ask(&w, r, &p);
	/* (micro-batches + stages - 1) (forward + backward) + the collective */
	assert_int_equal(w.measured_ns, 3 * ((8 + 4 - 1) * 300000 + 1000));
	assert_int_equal(w.ideal_ns, w.measured_ns);
	assert_true(w.slowdown == 1);
	for (uint32_t s = 0; s < 4; s++) {
		assert_true(w.stages[s].slowdown == 1);
		assert_true(isnan(w.stages[s].share)); /* there is no gap to have a share of */
	}
	what_if_fini(&w);
	replay_free(r);
}

static void test_one_slow_worker_is_the_worst_and_has_the_whole_gap(void **state)
{
	struct pipeline p = even(2);
	struct what_if w;
	struct replay *r;

	(void)state;
	p.forward_ns[1][2] *= 2;
	p.backward_ns[1][2] *= 2;
	make(&r, &p);
	ask(&w, r, &p);
	/* It sets the pace: 8 of its pairs, two forwards before and two backwards behind,
	 * and once it waits for the last stage's first pair, 100 us longer than its second
	 * forward takes. */
	assert_int_equal(w.measured_ns, 3 * (8 * 600000 + 200000 + 400000 + 100000 + 1000));
	assert_int_equal(w.n_worst, 1);
	assert_int_equal(w.worst[0], 4 + 2);
	assert_true(w.of_worst.share > 0.95 && w.of_worst.share < 1.1);
	assert_true(w.places[6].share > 0.95);
	assert_true(w.replicas[1].slowdown > w.replicas[0].slowdown);
	/* Its stage holds it, the last one does not. */
	assert_true(w.stages[2].share > 0.95);
	assert_true(fabs(w.of_last_stage.share) < 0.05);
	what_if_fini(&w);
	replay_free(r);
}

static void test_a_heavy_last_stage_is_the_stage_s_and_no_worker_s(void **state)
{
	struct pipeline p = even(2);
	struct what_if w;
	struct replay *r;

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		p.forward_ns[i][3] += 60000;
		p.backward_ns[i][3] += 120000;
	}
	make(&r, &p);
	ask(&w, r, &p);
	assert_true(w.of_last_stage.share > 0.9);
	assert_true(fabs(w.of_worst.share) < 0.1); /* its twin sets the pace without it */
	assert_true(w.stages[3].slowdown > 1.05);
	assert_true(w.kinds[BACKWARD].share > w.kinds[FORWARD].share);
	assert_true(fabs(w.kinds[MESSAGE].share) < 1e-9);
	what_if_fini(&w);
	replay_free(r);
}

static void test_a_place_that_is_none_is_refused(void **state)
{
	static const struct what_if_place place = { 0, 0 };
	static const enum what_if_ideal ideal = WHAT_IF_MEAN;
	struct what_if_config cfg = { 1, 1, 1, 1, &place, &ideal };
	struct what_if w;
	struct replay *r;

	(void)state;
	assert_int_equal(replay_new(&r), 0);
	add(r, (struct replay_op){ .ns = 1, .place = 1, .join = REPLAY_ALONE });
	assert_int_equal(replay_order(r), REPLAY_OK);
	assert_int_equal(what_if_make(&w, r, &cfg), -EINVAL);
	replay_free(r);
}

/* What was simulated with random durations comes out of the replay again. */
static void test_a_replay_of_what_was_is_what_was(void **state)
{
	uint64_t rng = 7;

	(void)state;
	for (unsigned seed = 0; seed < 50; seed++) {
		uint32_t n = 200, join_of[200], last_of[8];
		int64_t ns[200], end_ns[200] = { 0 }, at_ns[8] = { 0 }, makespan_ns = 0;
		struct replay *r;

		assert_int_equal(replay_new(&r), 0);
		for (uint32_t i = 0; i < 8; i++)
			last_of[i] = UINT32_MAX;
		for (uint32_t i = 0; i < n; i++) {
			/* Two places at once meet in every fourth pair. */
			uint32_t place = (uint32_t)(unit_rand(&rng) % 8), k;
			bool joined = i % 4 == 0 && i + 1 < n;
			int64_t begin_ns = at_ns[place];

			ns[i] = (int64_t)(unit_rand(&rng) % 1000);
			join_of[i] = joined ? i : REPLAY_ALONE;
			k = add(r, (struct replay_op){ .ns = ns[i], .place = place, .join = join_of[i] });
			if (last_of[place] != UINT32_MAX)
				after(r, k, last_of[place]);
			last_of[place] = k;
			if (joined) {
				uint32_t other = (place + 1 + (uint32_t)(unit_rand(&rng) % 7)) % 8, m;

				if (at_ns[other] > begin_ns)
					begin_ns = at_ns[other];
				m = add(r, (struct replay_op){ .ns = ns[i], .place = other, .join = join_of[i] });
				if (last_of[other] != UINT32_MAX)
					after(r, m, last_of[other]);
				last_of[other] = m;
				at_ns[other] = begin_ns + ns[i];
			}
			end_ns[i] = at_ns[place] = begin_ns + ns[i];
			makespan_ns = end_ns[i] > makespan_ns ? end_ns[i] : makespan_ns;
		}
		assert_int_equal(replay_order(r), REPLAY_OK);
		assert_int_equal(replay_run(r, measured, NULL, NULL), makespan_ns);
		replay_free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_joined_begins_when_the_last_is_there),
		cmocka_unit_test(test_steps_are_replayed_apart_and_added),
		cmocka_unit_test(test_a_circle_is_refused),
		cmocka_unit_test(test_nothing_takes_no_time),
		cmocka_unit_test(test_an_even_pipeline_takes_what_theory_says_and_loses_nothing),
		cmocka_unit_test(test_one_slow_worker_is_the_worst_and_has_the_whole_gap),
		cmocka_unit_test(test_a_heavy_last_stage_is_the_stage_s_and_no_worker_s),
		cmocka_unit_test(test_a_place_that_is_none_is_refused),
		cmocka_unit_test(test_a_replay_of_what_was_is_what_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
