/* Who comes last, from stays inside collectives alone: hosts do not agree on the time here. */
#include "unit.h"

#include "../../collector/verdict/latecomers.h"
#include "../../collector/verdict/transfers.h"

#include <string.h>

#define WORLD 4
#define PERIOD_NS 1000000

struct fixture {
	struct proc procs[WORLD];
	struct roster roster;
	struct group group;
	struct match match;
	int32_t ranks[WORLD];
	struct latecomers latecomers;
	struct transfers transfers;
};

static void start(struct fixture *f)
{
	*f = (struct fixture){ .group = { .n_members = WORLD, .n_expected = WORLD, .ranks = f->ranks } };
	for (int32_t i = 0; i < WORLD; i++) {
		f->ranks[i] = i;
		f->procs[i] = (struct proc){ .host = (uint32_t)i / 2, .rank = i };
	}
	f->roster = (struct roster){ .procs = f->procs, .n_procs = WORLD };
	f->match = (struct match){ .roster = &f->roster, .groups = &f->group, .n_groups = 1 };
}

static void stop(struct fixture *f)
{
	latecomers_fini(&f->latecomers);
	transfers_fini(&f->transfers);
}

/* Each host's clock is an hour from the others'. late_ns: by member. */
static void call(struct fixture *f, int64_t seq, const int64_t *late_ns, enum event_op op, int64_t transfer_ns)
{
	struct arrival v[WORLD];
	int64_t last_ns = 0;
	struct coll c = { .seq = (uint64_t)seq, .op = (uint8_t)op, .bytes = 64, .n_entered = WORLD,
			  .n_done = WORLD, .n_alloc = WORLD, .arrivals = v };

	for (int i = 0; i < WORLD; i++)
		last_ns = late_ns[i] > last_ns ? late_ns[i] : last_ns;
	for (uint32_t i = 0; i < WORLD; i++) {
		int64_t clock_ns = INT64_C(3600000000000) * f->procs[i].host + seq * PERIOD_NS;

		v[i] = (struct arrival){ clock_ns + late_ns[i], clock_ns + last_ns + transfer_ns, i };
	}
	assert_int_equal(latecomers_call(&f->latecomers, &f->match, 0, &c), 0);
	assert_int_equal(transfers_call(&f->transfers, &f->match, 0, &c), 0);
}

static bool are_late(struct fixture *f, const int32_t *ranks, uint32_t n, int64_t *ret_ns, double *ret_ratio)
{
	return latecomers_of(&f->latecomers, &f->match, ranks, n, 6, ret_ns, ret_ratio);
}

static void the_shortest_stay_is_the_last_to_come(void **state)
{
	const int64_t late_ns[WORLD] = { 0, 3000, 1000, 250000 };
	struct fixture f;
	double ratio;
	int64_t ns;

	(void)state;
	start(&f);
	for (int64_t i = 0; i < 20; i++)
		call(&f, i, late_ns, OP_ALL_REDUCE, 5000);
	assert_true(are_late(&f, (int32_t[]){ 3 }, 1, &ns, &ratio));
	assert_int_equal(ns, 247000);
	assert_true(ratio > 0.32 && ratio < 0.34);
	assert_false(are_late(&f, (int32_t[]){ 2 }, 1, &ns, &ratio));
	assert_false(are_late(&f, (int32_t[]){ 2, 3 }, 2, &ns, &ratio)); /* only one of them is */
	assert_false(are_late(&f, (int32_t[]){ 0, 1, 2, 3 }, 4, &ns, &ratio)); /* later than whom? */
	assert_int_equal(f.transfers.v[0].sum_ns / f.transfers.v[0].n, 5000);
	stop(&f);
}

static void all_of_a_set_have_to_be_late(void **state)
{
	const int64_t late_ns[WORLD] = { 200000, 0, 210000, 1000 };
	struct fixture f;
	double ratio;
	int64_t ns;

	(void)state;
	start(&f);
	for (int64_t i = 0; i < 20; i++)
		call(&f, i, late_ns, OP_ALL_GATHER, 5000);
	assert_true(are_late(&f, (int32_t[]){ 0, 2 }, 2, &ns, &ratio));
	assert_false(are_late(&f, (int32_t[]){ 2 }, 1, &ns, &ratio));
	stop(&f);
}

static void what_moves_is_small_or_rare_is_nobodys_lateness(void **state)
{
	struct fixture f;
	double ratio;
	int64_t ns;

	(void)state;
	start(&f);
	for (int64_t i = 0; i < 20; i++) {
		int64_t late_ns[WORLD] = { 0 };

		late_ns[i % WORLD] = 400000;
		call(&f, i, late_ns, OP_ALL_REDUCE, 5000);
	}
	assert_false(are_late(&f, (int32_t[]){ 3 }, 1, &ns, &ratio));
	stop(&f);

	start(&f);
	for (int64_t i = 0; i < 20; i++)
		call(&f, i, (int64_t[]){ 0, 0, 0, 50000 }, OP_ALL_REDUCE, 5000);
	assert_false(are_late(&f, (int32_t[]){ 3 }, 1, &ns, &ratio));
	stop(&f);

	start(&f);
	for (int64_t i = 0; i < 5; i++)
		call(&f, i, (int64_t[]){ 0, 0, 0, 400000 }, OP_ALL_REDUCE, 5000);
	assert_false(are_late(&f, (int32_t[]){ 3 }, 1, &ns, &ratio));
	stop(&f);
}

/* Nobody waits for the others of a broadcast. */
static void calls_in_which_not_all_wait_do_not_count(void **state)
{
	struct fixture f;
	double ratio;
	int64_t ns;

	(void)state;
	start(&f);
	for (int64_t i = 0; i < 20; i++)
		call(&f, i, (int64_t[]){ 0, 0, 0, 400000 }, OP_BROADCAST, 5000);
	assert_false(are_late(&f, (int32_t[]){ 3 }, 1, &ns, &ratio));
	stop(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_shortest_stay_is_the_last_to_come),
		cmocka_unit_test(all_of_a_set_have_to_be_late),
		cmocka_unit_test(what_moves_is_small_or_rare_is_nobodys_lateness),
		cmocka_unit_test(calls_in_which_not_all_wait_do_not_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
