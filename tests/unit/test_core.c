#include "../../collector/core_internal.h"
#include "../sim/train.h"
#include "unit.h"

#include <errno.h>
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

/* Field by field: padding is nobody's. */
static bool same_number(double a, double b)
{
	return a == b || (isnan(a) && isnan(b));
}

static bool same_rank_step(const struct fact_rank_step *a, const struct fact_rank_step *b)
{
	return a->step == b->step && a->rank == b->rank && a->begin_ns == b->begin_ns &&
	       a->begin_err_ns == b->begin_err_ns && a->dur_ns == b->dur_ns &&
	       a->self_ns == b->self_ns && a->exposed_comm_ns == b->exposed_comm_ns &&
	       a->wait_ns == b->wait_ns && a->wait_err_ns == b->wait_err_ns &&
	       a->input_wait_ns == b->input_wait_ns && a->fwd_ns == b->fwd_ns &&
	       a->bwd_ns == b->bwd_ns && a->opt_ns == b->opt_ns && a->eval_ns == b->eval_ns &&
	       same_number(a->excess_ratio, b->excess_ratio) && a->n_peers == b->n_peers &&
	       a->coverage == b->coverage && a->dur_err_ns == b->dur_err_ns;
}

static bool same_step(const struct fact_step *a, const struct fact_step *b)
{
	return a->step == b->step && a->begin_ns == b->begin_ns && a->dur_ns == b->dur_ns &&
	       a->dur_err_ns == b->dur_err_ns && a->n_ranks == b->n_ranks &&
	       a->slowest_rank == b->slowest_rank && a->complete == b->complete;
}

static bool same_collective(const struct fact_collective *a, const struct fact_collective *b)
{
	return a->group == b->group && a->seq == b->seq && a->op == b->op && a->dtype == b->dtype &&
	       a->bytes == b->bytes && a->step == b->step &&
	       a->first_arrival_ns == b->first_arrival_ns &&
	       a->last_arrival_ns == b->last_arrival_ns && a->end_ns == b->end_ns &&
	       a->skew_ns == b->skew_ns && a->skew_err_ns == b->skew_err_ns &&
	       a->last_rank == b->last_rank && a->decided == b->decided &&
	       a->mismatch == b->mismatch && a->n_expected == b->n_expected && a->n_seen == b->n_seen;
}

static bool same_arrival(const struct fact_arrival *a, const struct fact_arrival *b)
{
	return a->rank == b->rank && a->enter_ns == b->enter_ns && a->exit_ns == b->exit_ns &&
	       a->err_ns == b->err_ns;
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
				assert_true(same_rank_step(rank_step(&a.facts, s, r),
							   rank_step(&b.facts, s, r)));
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

/* ---- restart ---- */

struct last_word { /* facts by key after any number of tellings */
	struct fact_rank_step rank_steps[300 * 4];
	struct fact_step steps[300];
	struct fact_collective collectives[2][300 * 3];
	struct fact_arrival arrivals[2][300 * 3][4];
	bool has_step[300], has_coll[2][300 * 3];
	uint32_t n_buckets[300 * 4];
	char verdict[96], culprit[160];
	uint32_t first_step;
	char groups[2][32];
};

static void remember(struct last_word *w, struct facts *f)
{
	for (size_t i = 0; i < f->rank_steps.n; i++)
		w->rank_steps[f->rank_steps.v[i].step * 4 + (uint32_t)f->rank_steps.v[i].rank] =
			f->rank_steps.v[i];
	for (size_t i = 0; i < f->steps.n; i++) {
		w->steps[f->steps.v[i].step] = f->steps.v[i];
		w->has_step[f->steps.v[i].step] = true;
	}
	for (size_t i = 0; i < f->collectives.n; i++) {
		const struct fact_collective *v = &f->collectives.v[i];

		w->collectives[v->group][v->seq] = *v;
		w->collectives[v->group][v->seq].first_arrival_index = 0;
		w->has_coll[v->group][v->seq] = true;
		memcpy(w->arrivals[v->group][v->seq], &f->arrivals.v[v->first_arrival_index],
		       v->n_seen * sizeof(struct fact_arrival));
	}
	for (size_t i = 0; i < f->buckets.n; i++)
		w->n_buckets[f->buckets.v[i].step * 4 + (uint32_t)f->buckets.v[i].rank] |=
			1u << f->buckets.v[i].bucket;
	for (size_t i = 0; i < f->verdicts.n; i++) {
		memcpy(w->verdict, f->verdicts.v[i].key, sizeof w->verdict);
		strncpy(w->culprit, f->verdicts.v[i].culprit_json, sizeof w->culprit - 1);
		w->first_step = f->verdicts.v[i].first_step;
	}
	for (size_t i = 0; i < f->groups.n; i++)
		strncpy(w->groups[f->groups.v[i].group], f->groups.v[i].name, 31);
	facts_clear(f);
}

static void exchanges(struct core *c, const struct train *t)
{
	for (int64_t i = 0; i < 40; i++) {
		int64_t fleet = INT64_C(1700000000000000000) + i * 250000000;

		core_exchange(c, 1, (host_time){ fleet - t->offset_ns[1] },
			      (fleet_time){ fleet + 30000 }, (fleet_time){ fleet + 40000 },
			      (host_time){ fleet - t->offset_ns[1] + 60000 });
	}
}

/* Two words on one truth: within their bounds of each other. Then they count as one. */
static void meet(int64_t a_ns, int64_t a_err_ns, int64_t *b_ns, int64_t *b_err_ns)
{
	if (a_ns - *b_ns > a_err_ns + *b_err_ns || *b_ns - a_ns > a_err_ns + *b_err_ns)
		fail_msg("%lld +- %lld, then %lld +- %lld", (long long)a_ns, (long long)a_err_ns,
			 (long long)*b_ns, (long long)*b_err_ns);
	*b_ns = a_ns;
	*b_err_ns = a_err_ns;
}

/* What collectives taught about clocks is learned anew. */
static void meet_all(const struct last_word *a, struct last_word *b)
{
	for (uint32_t i = 0; i < 300; i++) {
		int64_t err_ns = 0;

		for (uint32_t r = 0; r < 4; r++) /* the earliest of them, whoever that is */
			if (b->rank_steps[4 * i + r].begin_err_ns > err_ns)
				err_ns = b->rank_steps[4 * i + r].begin_err_ns;
		meet(a->steps[i].begin_ns, err_ns, &b->steps[i].begin_ns, &err_ns);
		meet(a->steps[i].dur_ns, a->steps[i].dur_err_ns, &b->steps[i].dur_ns,
		     &b->steps[i].dur_err_ns);
	}
	for (uint32_t i = 0; i < 1200; i++) {
		const struct fact_rank_step *v = &a->rank_steps[i];

		meet(v->begin_ns, v->begin_err_ns, &b->rank_steps[i].begin_ns,
		     &b->rank_steps[i].begin_err_ns);
		meet(v->wait_ns, v->wait_err_ns, &b->rank_steps[i].wait_ns,
		     &b->rank_steps[i].wait_err_ns);
	}
	for (uint32_t i = 0; i < 2 * 900; i++) {
		const struct fact_collective *v = &a->collectives[i / 900][i % 900];
		struct fact_collective *w = &b->collectives[i / 900][i % 900];

		assert_true(!v->decided || !w->decided || v->last_rank == w->last_rank);
		meet(v->skew_ns, v->skew_err_ns, &w->skew_ns, &w->skew_err_ns);
		w->first_arrival_ns = v->first_arrival_ns; /* met as arrivals */
		w->last_arrival_ns = v->last_arrival_ns;
		w->end_ns = v->end_ns;
		w->decided = v->decided;
		w->last_rank = v->last_rank;
	}
	for (uint32_t i = 0; i < 2 * 900 * 4; i++) {
		const struct fact_arrival *v = &a->arrivals[i / 3600][i / 4 % 900][i % 4];
		struct fact_arrival *w = &b->arrivals[i / 3600][i / 4 % 900][i % 4];
		int64_t err_ns = w->err_ns;

		meet(v->enter_ns, v->err_ns, &w->enter_ns, &err_ns);
		meet(v->exit_ns, v->err_ns, &w->exit_ns, &w->err_ns);
	}
}

static void restart_by_replay(uint32_t n_hosts)
{
	struct train_config cfg = { .world = 4, .n_hosts = n_hosts, .n_steps = 300,
				    .n_buckets = 2, .seed = SEED, .noise = 0.1,
				    .slow_rank = 1, .slow_from = 60, .slow_by = 2,
				    .max_offset_ns = 1000000000 };
	struct last_word *whole = calloc(1, sizeof *whole);
	struct facts facts;
	struct train t;
	struct core *c;
	uint64_t n_chunks;

	train_make(&t, &cfg);
	facts_init(&facts);
	assert_int_equal(core_new(&c, NULL, &facts), 0);
	train_introduce(&t, c, 100);
	if (n_hosts > 1)
		exchanges(c, &t);
	n_chunks = train_feed(&t, c, SEED, 30, 0, UINT64_MAX);
	assert_int_equal(core_finish(c, (fleet_time){ END_NS }), 0);
	remember(whole, &facts);
	core_free(c);
	assert_string_equal(whole->verdict, "slow.fixed_rank/1/60");

	for (uint64_t cut = 2; cut < n_chunks; cut += n_chunks / 23) {
		struct last_word *parts = calloc(1, sizeof *parts);
		unsigned char saved[4096];
		size_t n_saved, n_rows = 0;
		uint64_t low;

		assert_int_equal(core_new(&c, NULL, &facts), 0);
		train_introduce(&t, c, 100);
		if (n_hosts > 1)
			exchanges(c, &t);
		train_feed(&t, c, SEED, 30, 0, cut);
		remember(parts, &facts);
		low = core_low_water(c);
		n_saved = core_save(c, saved, sizeof saved);
		assert_true(n_saved <= sizeof saved);
		core_free(c);

		assert_int_equal(core_new(&c, NULL, &facts), 0);
		assert_int_equal(core_load(c, saved, n_saved), 0);
		while (n_rows < 1200 && parts->has_step[n_rows / 4] && parts->rank_steps[n_rows].n_peers)
			n_rows++;
		if (cut % 2) /* all at once, or as a cursor gives them */
			assert_int_equal(core_restore_rank_steps(c, parts->rank_steps, n_rows), 0);
		for (size_t i = 0; i < n_rows && cut % 2 == 0; i++)
			assert_int_equal(core_restore_rank_steps(c, &parts->rank_steps[i], 1), 0);
		train_introduce(&t, c, 100);
		if (n_hosts > 1)
			exchanges(c, &t);
		facts_clear(&facts);
		train_feed(&t, c, SEED, 30, low, UINT64_MAX);
		assert_int_equal(core_finish(c, (fleet_time){ END_NS }), 0);
		remember(parts, &facts);
		core_free(c);

		if (n_hosts > 1)
			meet_all(whole, parts);
		for (uint32_t i = 0; i < 1200; i++)
			if (!same_rank_step(&whole->rank_steps[i], &parts->rank_steps[i]))
				fail_msg("cut at chunk %llu of %llu, replayed from %llu: step %u rank %u differs",
					 (unsigned long long)cut, (unsigned long long)n_chunks,
					 (unsigned long long)low, i / 4, i % 4);
		for (uint32_t i = 0; i < 300; i++)
			assert_true(same_step(&whole->steps[i], &parts->steps[i]));
		assert_memory_equal(whole->has_coll, parts->has_coll, sizeof whole->has_coll);
		for (uint32_t i = 0; i < 2 * 900; i++)
			assert_true(same_collective(&whole->collectives[i / 900][i % 900],
						    &parts->collectives[i / 900][i % 900]));
		for (uint32_t i = 0; i < 2 * 900 * 4; i++)
			assert_true(same_arrival(&whole->arrivals[i / 3600][i / 4 % 900][i % 4],
						 &parts->arrivals[i / 3600][i / 4 % 900][i % 4]));
		assert_memory_equal(whole->n_buckets, parts->n_buckets, sizeof whole->n_buckets);
		assert_memory_equal(whole->groups, parts->groups, sizeof whole->groups);
		assert_string_equal(whole->verdict, parts->verdict);
		assert_string_equal(whole->culprit, parts->culprit);
		free(parts);
	}
	train_fini(&t);
	facts_fini(&facts);
	free(whole);
}

static void a_restart_by_replay_tells_the_same(void **state)
{
	restart_by_replay(1);
}

static void a_restart_by_replay_of_two_hosts_tells_the_same_within_its_bounds(void **state)
{
	restart_by_replay(2);
}

static void a_saved_core_that_is_damaged_is_refused(void **state)
{
	struct fixture f;
	unsigned char saved[4096];
	size_t n;

	start(&f, &four_ranks);
	run(&f, SEED, 20);
	n = core_save(f.core, saved, sizeof saved);
	assert_true(core_save(f.core, NULL, 0) == n);
	for (size_t cut = 0; cut < n; cut++) {
		struct core *c;

		assert_int_equal(core_new(&c, NULL, &f.facts), 0);
		assert_int_equal(core_load(c, saved, cut), -EINVAL);
		core_free(c);
	}
	stop(&f);
}

/* ---- what may go wrong with a step ---- */

static struct core *core_of_one_host(struct facts *facts)
{
	struct core *c;

	facts_init(facts);
	assert_int_equal(core_new(&c, NULL, facts), 0);
	core_host(c, 0, true, 0);
	return c;
}

static const struct event one_step[2] = { { .tick = 1000000, .kind = EVENT_STEP_BEGIN },
					  { .tick = 9000000, .kind = EVENT_STEP_END } };

static void three_of_four_end(struct core *c)
{
	for (uint32_t r = 0; r < 4; r++) {
		core_process(c, &(struct core_process){ .process = r, .rank = (int32_t)r, .world_size = 4 });
		core_events(c, r, 0, r + 1, one_step, r == 3 ? 1 : 2);
	}
}

static void a_rank_that_never_ends_a_step_is_waited_for_two_seconds(void **state)
{
	struct facts facts;
	struct core *c = core_of_one_host(&facts);

	three_of_four_end(c);
	core_tick(c, (fleet_time){ 10000000 });
	core_tick(c, (fleet_time){ 1000000000 });
	assert_int_equal(facts.steps.n, 0);
	core_tick(c, (fleet_time){ 2100000000 });
	assert_int_equal(facts.steps.n, 1);
	assert_int_equal(facts.steps.v[0].n_ranks, 3);
	assert_false(facts.steps.v[0].complete);
	/* the late rank completes it: told again */
	core_events(c, 3, 0, 9, &one_step[1], 1);
	core_tick(c, (fleet_time){ 2200000000 });
	assert_int_equal(facts.steps.n, 2);
	assert_true(facts.steps.v[1].complete);
	core_free(c);
	facts_fini(&facts);
}

static void a_dead_rank_is_not_waited_for(void **state)
{
	struct facts facts;
	struct core *c = core_of_one_host(&facts);

	three_of_four_end(c);
	core_process_state(c, 3, CORE_DIED, (host_time){ 5000000 });
	core_tick(c, (fleet_time){ 10000000 });
	core_tick(c, (fleet_time){ 260000000 });
	assert_int_equal(facts.steps.n, 1);
	assert_int_equal(facts.steps.v[0].n_ranks, 3);
	core_free(c);
	facts_fini(&facts);
}

static void lost_events_lower_the_coverage_of_their_step(void **state)
{
	struct event ev[] = { { .tick = 10, .kind = EVENT_STEP_BEGIN, .a = event_a(0, 0) },
			      { .tick = 20, .kind = EVENT_PHASE_BEGIN, .flags = PHASE_FORWARD },
			      { .tick = 90, .kind = EVENT_STEP_END, .a = event_a(0, 0) },
			      { .tick = 150, .kind = EVENT_STEP_END, .a = event_a(1, 0) } };
	struct facts facts;
	struct core *c = core_of_one_host(&facts);

	core_process(c, &(struct core_process){ .process = 7, .rank = 0, .world_size = 1 });
	core_events(c, 7, 0, 1, ev, 2);
	core_lost(c, 7, (host_time){ 30 }, 3);
	core_events(c, 7, 0, 2, ev + 2, 2);
	core_finish(c, (fleet_time){ 200 });
	assert_int_equal(facts.rank_steps.n, 2);
	assert_true(facts.rank_steps.v[0].coverage == 0.5);
	assert_int_equal(facts.rank_steps.v[0].fwd_ns, 0); /* its end is lost */
	assert_true(facts.rank_steps.v[1].coverage == 1);
	assert_int_equal(facts.rank_steps.v[1].dur_ns, 60); /* begun by the end before it */
	core_free(c);
	facts_fini(&facts);
}

static void evaluation_is_not_the_ranks_own_time(void **state)
{
	struct event ev[] = {
		{ .tick = 0, .kind = EVENT_STEP_BEGIN },
		{ .tick = 10, .kind = EVENT_PHASE_BEGIN, .flags = PHASE_EVAL },
		/* a blocking call and a nested forward inside of it */
		{ .tick = 20, .kind = EVENT_COLL_BEGIN, .name = 1, .b = EVENT_COLL_SYNC_BIT },
		{ .tick = 50, .kind = EVENT_COLL_END, .name = 1, .b = EVENT_COLL_SYNC_BIT },
		{ .tick = 60, .kind = EVENT_PHASE_BEGIN, .flags = PHASE_FORWARD },
		{ .tick = 70, .kind = EVENT_PHASE_END, .flags = PHASE_FORWARD },
		{ .tick = 100, .kind = EVENT_PHASE_END, .flags = PHASE_EVAL },
		{ .tick = 1000, .kind = EVENT_STEP_END },
	};
	const struct fact_rank_step *v;
	struct facts facts;
	struct core *c = core_of_one_host(&facts);

	core_process(c, &(struct core_process){ .process = 7, .rank = 0, .world_size = 1 });
	core_name(c, 7, 1, "g", 1);
	core_events(c, 7, 0, 1, ev, sizeof ev / sizeof *ev);
	core_finish(c, (fleet_time){ 2000 });
	v = &facts.rank_steps.v[0];
	assert_int_equal(v->exposed_comm_ns, 30);
	assert_int_equal(v->eval_ns, 60);
	assert_int_equal(v->self_ns, 910);
	assert_int_equal(v->fwd_ns, 0); /* of nested phases the outermost counts */
	assert_true(isnan(v->excess_ratio));
	core_free(c);
	facts_fini(&facts);
}

static void events_before_the_rank_is_known_are_kept(void **state)
{
	struct event ev[2] = { { .tick = 1000, .kind = EVENT_STEP_BEGIN },
			       { .tick = 9000, .kind = EVENT_STEP_END } };
	struct facts facts;
	struct core *c = core_of_one_host(&facts);

	core_process(c, &(struct core_process){ .process = 7, .rank = -1 });
	core_events(c, 7, 0, 33, ev, 1);
	assert_true(core_low_water(c) == 33);
	core_process(c, &(struct core_process){ .process = 7, .rank = 0, .world_size = 1 });
	core_events(c, 7, 0, 34, ev + 1, 1);
	core_finish(c, (fleet_time){ 10000 });
	assert_int_equal(facts.rank_steps.n, 1);
	assert_int_equal(facts.rank_steps.v[0].dur_ns, 8000);
	core_free(c);
	facts_fini(&facts);
}

/* ---- restarted jobs ---- */

/* A rank of that life: its process is the life's number, times 10, and the rank. */
static void announce(struct core *c, uint32_t life, int32_t rank, int32_t world)
{
	core_process(c, &(struct core_process){ .process = 10 * life + (uint32_t)rank, .rank = rank,
						.world_size = world, .restart_count = (int32_t)life });
}

/* Its own steps [from, to), each 100 ns long, 10000 ns times life from the start. */
static void steps_of(struct core *c, uint32_t life, int32_t rank, uint64_t chunk, uint32_t from,
		     uint32_t to)
{
	for (uint32_t s = from; s < to; s++) {
		uint64_t at = 1000 + 10000 * (uint64_t)life + 100 * (uint64_t)s;
		struct event ev[2] = { { .tick = at, .kind = EVENT_STEP_BEGIN, .a = event_a(s, 0) },
				       { .tick = at + 100, .kind = EVENT_STEP_END,
					 .a = event_a(s, 0) } };

		core_events(c, 10 * life + (uint32_t)rank, 0, chunk, ev + (s > 0), 2 - (s > 0));
	}
}

/* Every number from 0 once, each with a rank's step of the time line it is of. */
static void assert_goes_on(const struct facts *f, const uint32_t *n_steps, uint32_t n_lives)
{
	uint32_t step = 0;

	for (uint32_t life = 0; life < n_lives; life++)
		for (uint32_t s = 0; s < n_steps[life]; s++, step++) {
			const struct fact_rank_step *v = rank_step(f, step, 0);

			if (!v)
				fail_msg("step %u (%u of life %u) was not told", step, s, life);
			assert_int_equal(v->begin_ns, 1000 + 10000 * life + 100 * s);
		}
	assert_int_equal(f->rank_steps.n, step);
}

static uint64_t n_late(const struct core *c)
{
	struct core_stats st;

	core_stats(c, &st);
	return st.n_late_events;
}

static void the_steps_of_a_restarted_job_go_on_counting(void **state)
{
	struct facts facts;
	struct core *c = core_of_one_host(&facts);

	for (uint32_t life = 0; life < 2; life++) {
		announce(c, life, 0, 1);
		steps_of(c, life, 0, life + 1, 0, 30);
	}
	core_finish(c, (fleet_time){ 1000000 });
	assert_goes_on(&facts, (uint32_t[]){ 30, 30 }, 2);
	core_free(c);
	facts_fini(&facts);
}

/* Whichever is announced or speaks first, with or without time between them. */
static void lives_are_numbered_by_restart_count_not_by_arrival(void **state)
{
	for (unsigned order = 0; order < 16; order++) {
		uint32_t first = order & 1, speaks = order >> 1 & 1;
		struct facts facts;
		struct core *c = core_of_one_host(&facts);

		announce(c, first, 0, 1);
		if (order & 8) /* all of the first before the other is heard of */
			steps_of(c, first, 0, 1, 0, first ? 30 : 20);
		announce(c, !first, 0, 1);
		core_process_state(c, 0, CORE_DIED, (host_time){ 9000 });
		for (uint32_t i = 0; i < 2; i++) {
			uint32_t life = i ? !speaks : speaks;

			if (!(order & 8) || life != first)
				steps_of(c, life, 0, 2 + i, 0, life ? 30 : 20);
			if (order & 4)
				core_tick(c, (fleet_time){ 10000 + i * 250000000 });
		}
		core_finish(c, (fleet_time){ 1000000000 });
		assert_goes_on(&facts, (uint32_t[]){ 20, 30 }, 2);
		assert_int_equal(n_late(c), 0);
		core_free(c);
		facts_fini(&facts);
	}
}

static void a_restart_is_seen_as_soon_as_the_life_before_is_over(void **state)
{
	struct facts facts;
	struct core *c = core_of_one_host(&facts);

	announce(c, 0, 0, 1);
	steps_of(c, 0, 0, 1, 0, 20);
	core_tick(c, (fleet_time){ 10000 });
	announce(c, 1, 0, 1);
	steps_of(c, 1, 0, 2, 0, 30);
	core_tick(c, (fleet_time){ 1100000000 });
	assert_int_equal(facts.rank_steps.n, 20); /* the first may be in a long step */
	core_process_state(c, 0, CORE_DIED, (host_time){ 9000 });
	core_tick(c, (fleet_time){ 2200000000 });
	core_tick(c, (fleet_time){ 2400000000 });
	assert_goes_on(&facts, (uint32_t[]){ 20, 30 }, 2);
	core_free(c);
	facts_fini(&facts);
}

/* Facts that were told stay, the earlier life comes behind, and the later one
 * goes on behind that: every step has a number of its own. */
static void an_earlier_life_that_comes_too_late_takes_no_number_of_another(void **state)
{
	struct facts facts;
	struct core *c = core_of_one_host(&facts);
	bool seen[2][40] = { { false } };
	struct fact_rank_step told;

	announce(c, 1, 0, 1);
	steps_of(c, 1, 0, 1, 0, 10);
	core_tick(c, (fleet_time){ 0 });
	core_tick(c, (fleet_time){ 1200000000 });
	core_tick(c, (fleet_time){ 1500000000 });
	assert_int_equal(facts.rank_steps.n, 10);
	told = *rank_step(&facts, 3, 0);
	announce(c, 0, 0, 1);
	for (uint32_t i = 0; i < 20; i++) { /* both speak */
		steps_of(c, 0, 0, 2 + 2 * i, i, i + 1);
		steps_of(c, 1, 0, 3 + 2 * i, 10 + i, 11 + i);
		core_tick(c, (fleet_time){ 2000000000 + i * INT64_C(1000000000) });
	}
	core_finish(c, (fleet_time){ 100000000000 });
	assert_true(same_rank_step(&told, rank_step(&facts, 3, 0)));
	for (size_t i = 0; i < facts.rank_steps.n; i++) {
		int64_t at = facts.rank_steps.v[i].begin_ns - 1000;

		assert_false(seen[at / 10000][at % 10000 / 100]);
		seen[at / 10000][at % 10000 / 100] = true;
		assert_true(rank_step(&facts, facts.rank_steps.v[i].step, 0) == &facts.rank_steps.v[i]);
	}
	for (uint32_t s = 0; s < 30; s++)
		assert_true((s >= 20 || seen[0][s]) && seen[1][s]);
	assert_int_equal(n_late(c), 0);
	core_free(c);
	facts_fini(&facts);
}

static void a_step_that_only_some_ranks_ended_keeps_its_number(void **state)
{
	struct facts facts;
	struct core *c = core_of_one_host(&facts);

	for (uint32_t life = 0; life < 2; life++)
		for (int32_t r = 0; r < 2; r++) {
			announce(c, life, r, 2);
			steps_of(c, life, r, 1 + 2 * life + (uint32_t)r, 0, life || r ? 5 : 6);
		}
	core_finish(c, (fleet_time){ 1000000 });
	assert_int_equal(facts.steps.n, 11);
	for (uint32_t i = 0; i < 11; i++)
		assert_int_equal(facts.steps.v[i].complete, i != 5);
	core_free(c);
	facts_fini(&facts);
}

/* A large job's step is tens of megabytes: not one for each of the many that may be open. */
static void open_steps_keep_memory_only_for_those_that_are_open(void **state)
{
	struct facts facts;
	struct core *c = core_of_one_host(&facts);
	uint32_t n_with_items = 0;

	announce(c, 0, 0, 1);
	for (uint32_t s = 0; s < 200; s++) {
		struct event ev[2] = {
			{ .tick = s * 1000 + 100, .kind = EVENT_PHASE_BEGIN, .flags = PHASE_FORWARD,
			  .a = event_a(s, 0) },
			{ .tick = s * 1000 + 200, .kind = EVENT_PHASE_END, .flags = PHASE_FORWARD,
			  .a = event_a(s, 0) } };

		steps_of(c, 0, 0, 2 * s + 1, s, s + 1);
		core_events(c, 0, 0, 2 * s + 2, ev, 2);
		core_tick(c, (fleet_time){ (int64_t)s * 1000000000 });
	}
	for (uint32_t i = 0; i < c->steps.n_slots; i++)
		n_with_items += c->steps.v[i].items != NULL;
	assert_in_range(n_with_items, 1, 8);
	core_free(c);
	facts_fini(&facts);
}

/* Two lives, cut at every chunk: the unfinished step is in the replay, too. */
static void a_restarted_job_survives_a_restart_by_replay(void **state)
{
	for (uint64_t cut = 0; cut <= 12; cut++) {
		struct facts facts;
		struct core *c = core_of_one_host(&facts);
		unsigned char saved[4096];
		uint64_t low = 0;

		for (unsigned part = 0; part < 2; part++) {
			announce(c, 1, 0, 1);
			announce(c, 0, 0, 1);
			core_process_state(c, 0, CORE_DIED, (host_time){ 9000 });
			for (uint64_t k = low; k < (part ? 12 : cut); k++) {
				uint32_t life = k >= 4, s = (uint32_t)(life ? k - 4 : k) * 5;

				steps_of(c, life, 0, k + 1, s, s + 5);
				core_tick(c, (fleet_time){ (int64_t)k * 300000000 });
			}
			if (part == 0) {
				size_t n = core_save(c, saved, sizeof saved);

				low = core_low_water(c);
				low = low > cut ? cut : low ? low - 1 : 0;
				core_free(c);
				assert_int_equal(core_new(&c, NULL, &facts), 0);
				assert_int_equal(core_load(c, saved, n), 0);
				core_host(c, 0, true, 0);
			}
		}
		core_finish(c, (fleet_time){ 100000000000 });
		for (uint32_t s = 0; s < 60; s++) {
			const struct fact_rank_step *v = rank_step(&facts, s, 0);

			if (!v)
				fail_msg("cut at %u: step %u is missing", (unsigned)cut, s);
			assert_int_equal(v->begin_ns,
					 s < 20 ? 1000 + 100 * s : 11000 + 100 * (s - 20));
			assert_true(v->coverage == 1);
		}
		assert_null(rank_step(&facts, 60, 0));
		assert_int_equal(n_late(c), 0);
		core_free(c);
		facts_fini(&facts);
	}
}

static void events_of_a_closed_step_are_counted_and_lower_the_coverage(void **state)
{
	struct event ev[] = { { .tick = 1010, .kind = EVENT_PHASE_BEGIN, .flags = PHASE_FORWARD,
				.a = event_a(0, 0) } };
	struct facts facts;
	struct core *c = core_of_one_host(&facts);

	announce(c, 0, 0, 1);
	steps_of(c, 0, 0, 1, 0, 4);
	core_tick(c, (fleet_time){ 0 });
	core_tick(c, (fleet_time){ 1000000000 });
	core_tick(c, (fleet_time){ 4000000000 });
	core_events(c, 0, 1, 2, ev, 1);
	assert_int_equal(n_late(c), 1);
	steps_of(c, 0, 0, 3, 4, 6);
	core_finish(c, (fleet_time){ 5000000000 });
	assert_true(rank_step(&facts, 4, 0)->coverage < 1);
	assert_true(rank_step(&facts, 5, 0)->coverage == 1);
	core_free(c);
	facts_fini(&facts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_part_of_a_step_is_as_it_was_made),
		cmocka_unit_test(excess_compares_with_the_median_of_the_others),
		cmocka_unit_test(the_order_of_arrival_of_chunks_does_not_matter),
		cmocka_unit_test(every_collective_has_all_its_ranks),
		cmocka_unit_test(a_restart_by_replay_tells_the_same),
		cmocka_unit_test(a_restart_by_replay_of_two_hosts_tells_the_same_within_its_bounds),
		cmocka_unit_test(a_saved_core_that_is_damaged_is_refused),
		cmocka_unit_test(a_rank_that_never_ends_a_step_is_waited_for_two_seconds),
		cmocka_unit_test(a_dead_rank_is_not_waited_for),
		cmocka_unit_test(lost_events_lower_the_coverage_of_their_step),
		cmocka_unit_test(evaluation_is_not_the_ranks_own_time),
		cmocka_unit_test(events_before_the_rank_is_known_are_kept),
		cmocka_unit_test(the_steps_of_a_restarted_job_go_on_counting),
		cmocka_unit_test(lives_are_numbered_by_restart_count_not_by_arrival),
		cmocka_unit_test(a_restart_is_seen_as_soon_as_the_life_before_is_over),
		cmocka_unit_test(an_earlier_life_that_comes_too_late_takes_no_number_of_another),
		cmocka_unit_test(a_step_that_only_some_ranks_ended_keeps_its_number),
		cmocka_unit_test(open_steps_keep_memory_only_for_those_that_are_open),
		cmocka_unit_test(a_restarted_job_survives_a_restart_by_replay),
		cmocka_unit_test(events_of_a_closed_step_are_counted_and_lower_the_coverage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
