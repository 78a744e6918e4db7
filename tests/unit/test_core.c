#include "../sim/train.h"
#include "unit.h"

#include <math.h>

#define SEED UINT64_C(20260302)
#define END_NS INT64_C(1800000000000000000)

struct fixture {
	struct train train;
	struct facts facts;
	struct core *core;
};

static void start(struct fixture *f, const struct train_config *cfg)
{
	train_make(&f->train, cfg);
	facts_init(&f->facts);
	assert_int_equal(core_new(&f->core, NULL, &f->facts), 0);
	train_introduce(&f->train, f->core, 0);
}

static void stop(struct fixture *f)
{
	core_free(f->core);
	facts_fini(&f->facts);
	train_fini(&f->train);
}

static void run(struct fixture *f, uint64_t seed, size_t n_chunk)
{
	train_feed(&f->train, f->core, seed, n_chunk, 0, UINT64_MAX);
	assert_int_equal(core_finish(f->core, (fleet_time){ END_NS }), 0);
}

/* The last word on each key. */
static const struct fact_rank_step *rank_step(const struct facts *f, uint32_t step, int32_t rank)
{
	for (size_t i = f->rank_steps.n; i-- > 0;)
		if (f->rank_steps.v[i].step == step && f->rank_steps.v[i].rank == rank)
			return &f->rank_steps.v[i];
	return NULL;
}

static const struct fact_collective *collective(const struct facts *f, uint32_t group, uint64_t seq)
{
	for (size_t i = f->collectives.n; i-- > 0;)
		if (f->collectives.v[i].group == group && f->collectives.v[i].seq == seq)
			return &f->collectives.v[i];
	return NULL;
}

static const struct train_config four_ranks = {
	.world = 4, .n_hosts = 1, .n_steps = 40, .n_buckets = 3, .seed = SEED, .noise = 0.3,
	.slow_rank = 2, .slow_from = 10, .slow_by = 0.5,
};

static void every_part_of_a_step_is_as_it_was_made(void **state)
{
	struct fixture f;

	start(&f, &four_ranks);
	run(&f, SEED, 20);
	for (uint32_t s = 0; s < 40; s++)
		for (int32_t r = 0; r < 4; r++) {
			const struct fact_rank_step *v = rank_step(&f.facts, s, r);
			const struct train_truth *t = &f.train.truth[s * 4 + (uint32_t)r];

			assert_non_null(v);
			assert_int_equal(v->begin_ns, t->begin_ns);
			assert_int_equal(v->dur_ns, t->dur_ns);
			assert_int_equal(v->exposed_comm_ns, t->exposed_ns);
			assert_int_equal(v->wait_ns, t->wait_ns);
			assert_int_equal(v->wait_err_ns, 0);
			assert_int_equal(v->self_ns, t->dur_ns - t->exposed_ns);
			assert_int_equal(v->input_wait_ns, t->data_ns);
			assert_int_equal(v->fwd_ns, t->fwd_ns);
			assert_int_equal(v->bwd_ns, t->bwd_ns);
			assert_int_equal(v->opt_ns, t->opt_ns);
			assert_int_equal(v->eval_ns, 0);
			assert_int_equal(v->n_peers, 3);
			assert_true(v->coverage == 1);
		}
	stop(&f);
}

static void excess_compares_with_the_median_of_the_others(void **state)
{
	struct fixture f;

	start(&f, &four_ranks);
	run(&f, SEED, 20);
	for (uint32_t s = 0; s < 40; s++)
		for (int32_t r = 0; r < 4; r++) {
			double v[3], median;
			int n = 0;

			for (int32_t o = 0; o < 4; o++)
				if (o != r)
					v[n++] = (double)rank_step(&f.facts, s, o)->self_ns;
			median = fmax(fmin(v[0], v[1]), fmin(fmax(v[0], v[1]), v[2]));
			assert_true(fabs((double)rank_step(&f.facts, s, r)->self_ns / median - 1 -
					 rank_step(&f.facts, s, r)->excess_ratio) < 1e-9);
		}
	stop(&f);
}

static void the_order_of_arrival_of_chunks_does_not_matter(void **state)
{
	struct fixture a, b;

	start(&a, &four_ranks);
	run(&a, 1, 1);
	for (uint64_t seed = 2; seed < 8; seed++) {
		start(&b, &four_ranks);
		run(&b, seed, seed * seed * 10);
		for (uint32_t s = 0; s < 40; s++)
			for (int32_t r = 0; r < 4; r++)
				assert_memory_equal(rank_step(&a.facts, s, r),
						    rank_step(&b.facts, s, r),
						    sizeof(struct fact_rank_step));
		stop(&b);
	}
	stop(&a);
}

static void every_collective_has_all_its_ranks(void **state)
{
	struct fixture f;

	start(&f, &four_ranks);
	run(&f, SEED, 20);
	for (uint64_t i = 0; i < 40 * 4; i++) {
		const struct fact_collective *v = collective(&f.facts, i >= 120, i % 120);

		assert_non_null(v);
		assert_int_equal(v->n_seen, 4);
		assert_false(v->mismatch);
		assert_true(v->end_ns >= v->last_arrival_ns);
		assert_int_equal(v->skew_ns, v->last_arrival_ns - v->first_arrival_ns);
		for (uint32_t k = 0; k < 4; k++)
			assert_int_equal(f.facts.arrivals.v[v->first_arrival_index + k].rank, k);
	}
	stop(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_part_of_a_step_is_as_it_was_made),
		cmocka_unit_test(excess_compares_with_the_median_of_the_others),
		cmocka_unit_test(the_order_of_arrival_of_chunks_does_not_matter),
		cmocka_unit_test(every_collective_has_all_its_ranks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
