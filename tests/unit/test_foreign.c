/* Offsets from collectives alone: right, or refused with the reason. */
#include "../../collector/align/foreign.h"
#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define N_RANKS 6
#define MAX_CALLS 512
#define US INT64_C(1000)
#define MS INT64_C(1000000)
#define T0 INT64_C(1694128201000000000)

/* local = true - offset - drift * (true - T0) */
struct job {
	uint64_t rng;
	size_t n_calls;
	int64_t period_ns, jitter_ns;
	bool one_kind, is_proof;
	int64_t offset_ns[N_RANKS];
	double drift[N_RANKS];
	double wave_ns[N_RANKS], wave_s; /* sine on top, of this period */
	struct foreign_call calls[N_RANKS][MAX_CALLS];
	struct foreign_rank ranks[N_RANKS];
	struct foreign_clock clocks[N_RANKS];
	size_t reference;
};

static int64_t below(struct job *j, int64_t n)
{
	return n > 0 ? (int64_t)(unit_rand(&j->rng) % (uint64_t)n) : 0;
}

static int64_t local(const struct job *j, size_t rank, int64_t true_ns)
{
	double t = (double)(true_ns - T0);

	return true_ns - j->offset_ns[rank] - llround(j->drift[rank] * t) -
	       (j->wave_s > 0 ? llround(j->wave_ns[rank] * sin(t * 1e-9 * 2 * M_PI / j->wave_s))
			      : 0);
}

static void make(struct job *j)
{
	int64_t t = T0, busy[N_RANKS] = { 0 };

	for (size_t i = 0; i < j->n_calls; i++) {
		int64_t enter[N_RANKS], last = 0;

		t += j->period_ns + below(j, j->jitter_ns);
		for (size_t r = 0; r < N_RANKS; r++) {
			enter[r] = t + below(j, j->period_ns / 4);
			if (enter[r] < busy[r])
				enter[r] = busy[r];
			last = enter[r] > last ? enter[r] : last;
		}
		for (size_t r = 0; r < N_RANKS; r++) {
			busy[r] = last + 20 * US + below(j, 5 * US);
			j->calls[r][i] = (struct foreign_call){
				.enter_ns = local(j, r, enter[r]),
				.exit_ns = local(j, r, busy[r]),
				.kind = j->one_kind ? 1 : 1 + i * i % 7,
				.proves = j->is_proof,
			};
		}
	}
	for (size_t r = 0; r < N_RANKS; r++)
		j->ranks[r] = (struct foreign_rank){ j->calls[r], j->n_calls };
}

static void offsets(struct job *j, int64_t most_ns, double most_rate)
{
	for (size_t r = 0; r < N_RANKS; r++) {
		j->offset_ns[r] = below(j, 2 * most_ns) - most_ns;
		j->drift[r] = most_rate * ((double)below(j, 2001) / 1000 - 1);
	}
}

static int64_t align(struct job *j)
{
	return foreign_align(j->ranks, N_RANKS, &foreign_defaults, j->clocks, &j->reference);
}

/* reference = local + true offset, at the clock's own instant. */
static int64_t error_of(const struct job *j, size_t rank)
{
	const struct foreign_clock *c = &j->clocks[rank];
	int64_t true_ns = c->at_ns + j->offset_ns[rank];

	true_ns += llround(j->drift[rank] * (double)(true_ns - T0));
	return c->offset_ns - (local(j, j->reference, true_ns) - c->at_ns);
}

static struct job *job(uint64_t seed)
{
	struct job *j = calloc(1, sizeof *j);

	assert_non_null(j);
	j->rng = seed;
	j->n_calls = 8;
	j->period_ns = MS;
	j->jitter_ns = MS;
	j->is_proof = true;
	return j;
}

static void remove_call(struct job *j, size_t rank, size_t at)
{
	struct foreign_rank *r = &j->ranks[rank];

	memmove(&j->calls[rank][at], &j->calls[rank][at + 1],
		(r->n_calls - at - 1) * sizeof *r->calls);
	r->n_calls--;
}

static void offsets_come_back_and_a_short_window_has_no_drift(void **state)
{
	for (uint64_t seed = 1; seed <= 100; seed++) {
		struct job *j = job(seed);

		offsets(j, 50 * MS, 0);
		make(j);
		assert_int_equal(align(j), N_RANKS);
		for (size_t r = 0; r < N_RANKS; r++) {
			int64_t err = error_of(j, r);

			if (llabs(err) > 5 * US || llabs(err) > j->clocks[r].soft_ns ||
			    (r != j->reference && j->clocks[r].drift_known))
				fail_msg("seed %llu rank %zu: off by %lld ns",
					 (unsigned long long)seed, r, (long long)err);
			assert_true(j->clocks[r].lo_ns <= j->clocks[r].offset_ns - err &&
				    j->clocks[r].offset_ns - err <= j->clocks[r].hi_ns);
		}
		free(j);
	}
}

static void a_long_window_knows_the_drift(void **state)
{
	for (uint64_t seed = 1; seed <= 30; seed++) {
		struct job *j = job(seed);

		j->n_calls = 300;
		j->period_ns = 100 * MS;
		offsets(j, 50 * MS, 50e-6);
		make(j);
		assert_int_equal(align(j), N_RANKS);
		for (size_t r = 0; r < N_RANKS; r++) {
			double drift = j->drift[r] - j->drift[j->reference];

			if (r == j->reference)
				continue;
			assert_true(j->clocks[r].drift_known);
			if (fabs(j->clocks[r].drift - drift) > 4 * j->clocks[r].drift_sd + 5e-9)
				fail_msg("seed %llu rank %zu: %g instead of %g",
					 (unsigned long long)seed, r, j->clocks[r].drift, drift);
			assert_true(llabs(error_of(j, r)) < 5 * US);
			assert_true(j->clocks[r].drift_sd < 1e-6);
		}
		free(j);
	}
}

static void clocks_that_bend_are_matched_and_their_error_says_so(void **state)
{
	for (uint64_t seed = 1; seed <= 15; seed++) {
		struct job *j = job(seed);

		j->n_calls = 500;
		j->one_kind = seed % 2;
		j->period_ns = 300 * MS;
		j->jitter_ns = 10 * MS;
		j->wave_s = 100;
		offsets(j, 50 * MS, 20e-6);
		for (size_t r = 0; r < N_RANKS; r++)
			j->wave_ns[r] = (double)below(j, 400000);
		make(j);
		assert_int_equal(align(j), N_RANKS);
		for (size_t r = 0; r < N_RANKS; r++)
			for (size_t i = 0; i < j->n_calls; i += 7) {
				const struct foreign_clock *c = &j->clocks[r];
				int64_t at = j->calls[r][i].exit_ns, err;

				/* An exit is 20..25 us behind one moment on every clock. */
				err = at + c->offset_ns +
				      llround(c->drift * (double)(at - c->at_ns)) -
				      j->calls[j->reference][i].exit_ns;
				if (llabs(err) >
				    foreign_error_ns(c, &foreign_defaults, at) + 5 * US)
					fail_msg("seed %llu rank %zu: off by %lld ns",
						 (unsigned long long)seed, r, (long long)err);
			}
		free(j);
	}
}

static void a_missing_call_is_no_bend(void **state)
{
	for (uint64_t seed = 1; seed <= 15; seed++) {
		struct job *j = job(seed);

		j->n_calls = 400;
		j->one_kind = true;
		j->period_ns = MS * (1 + (int64_t)(seed % 5) * 20);
		j->jitter_ns = (int64_t)(seed % 3) * 50 * US;
		offsets(j, 50 * MS, 20e-6);
		make(j);
		remove_call(j, 2, 100 + seed);
		align(j);
		assert_int_not_equal(j->clocks[2].outcome, FOREIGN_OK);
		free(j);
	}
}

static void windows_that_begin_at_other_calls_are_matched(void **state)
{
	struct job *j = job(5);

	j->n_calls = 30;
	offsets(j, 50 * MS, 0);
	make(j);
	remove_call(j, 1, 0);
	remove_call(j, 1, 0);
	j->ranks[2].n_calls -= 3;
	assert_int_equal(align(j), N_RANKS);
	assert_int_equal(j->clocks[1].shift, -2);
	for (size_t r = 0; r < N_RANKS; r++)
		assert_true(llabs(error_of(j, r)) < 5 * US);
	free(j);
}

static void sampled_traces_are_refused(void **state)
{
	for (uint64_t seed = 1; seed <= 100; seed++) {
		struct job *j = job(seed);

		j->n_calls = 30;
		j->one_kind = true;
		offsets(j, 50 * MS, 0);
		make(j);
		for (size_t r = 0; r < N_RANKS; r++)
			for (size_t i = j->ranks[r].n_calls; i-- > 0;)
				if (unit_rand(&j->rng) % 3 == 0)
					remove_call(j, r, i);
		if (align(j) != 0)
			fail_msg("seed %llu", (unsigned long long)seed);
		free(j);
	}
}

static void one_missing_call_refuses_its_rank_and_no_other(void **state)
{
	for (uint64_t seed = 1; seed <= 100; seed++) {
		struct job *j = job(seed);

		j->n_calls = 30;
		j->one_kind = seed % 2;
		offsets(j, 50 * MS, 0);
		make(j);
		remove_call(j, 3, 5 + seed % 20);
		if (align(j) != N_RANKS - 1 || j->clocks[3].outcome == FOREIGN_OK)
			fail_msg("seed %llu: outcome %d", (unsigned long long)seed,
				 (int)j->clocks[3].outcome);
		free(j);
	}
}

static void equal_steps_leave_the_offset_open(void **state)
{
	struct job *j = job(9);

	j->n_calls = 40;
	j->one_kind = true;
	j->jitter_ns = 0;
	offsets(j, 50 * MS, 0);
	make(j);
	/* Exits follow the last entry, so give each step the same one. */
	for (size_t r = 0; r < N_RANKS; r++)
		for (size_t i = 0; i < j->n_calls; i++) {
			int64_t t = T0 + (int64_t)i * MS;

			j->calls[r][i].enter_ns = local(j, r, t + below(j, 100 * US));
			j->calls[r][i].exit_ns = local(j, r, t + 120 * US + below(j, 3 * US));
		}
	assert_int_equal(align(j), 0);
	assert_int_equal(j->clocks[1].outcome, FOREIGN_AMBIGUOUS);
	free(j);
}

static void other_kinds_of_calls_are_another_order(void **state)
{
	struct job *j = job(10);

	make(j);
	j->calls[2][4].kind = 99;
	assert_int_equal(align(j), N_RANKS - 1);
	assert_int_equal(j->clocks[2].outcome, FOREIGN_ORDER);
	free(j);
}

static void an_entry_after_the_exit_that_needed_it_is_impossible(void **state)
{
	struct job *j = job(11);

	offsets(j, 50 * MS, 0);
	make(j);
	/* Rank 2 enters one call after 0 left it, and leaves another just when 0 enters:
	 * little for exits, but it would have to be both earlier and later. */
	j->calls[2][3].exit_ns += 45 * US;
	j->calls[2][3].enter_ns = j->calls[2][3].exit_ns - US;
	j->calls[0][5].enter_ns = j->calls[0][5].exit_ns - 20 * US;
	j->calls[2][5].exit_ns -= 15 * US;
	assert_int_equal(align(j), N_RANKS - 1);
	assert_int_equal(j->clocks[2].outcome, FOREIGN_IMPOSSIBLE);
	/* Where pieces may be empty it proves nothing. */
	for (size_t r = 0; r < N_RANKS; r++)
		for (size_t i = 0; i < j->n_calls; i++)
			j->calls[r][i].proves = false;
	assert_int_equal(align(j), N_RANKS);
	assert_true(j->clocks[2].hi_ns == FOREIGN_UNBOUNDED);
	assert_true(llabs(error_of(j, 2)) < 5 * US);
	free(j);
}

static void times_that_cannot_be_are_refused(void **state)
{
	struct job *j = job(12);

	make(j);
	j->calls[1][3].exit_ns = j->calls[1][3].enter_ns - 1;
	j->calls[2][3].exit_ns = INT64_MAX;
	j->calls[4][3].enter_ns = INT64_MIN;
	assert_int_equal(align(j), 3);
	assert_int_equal(j->clocks[1].outcome, FOREIGN_BAD_TIMES);
	assert_int_equal(j->clocks[2].outcome, FOREIGN_BAD_TIMES);
	assert_int_equal(j->clocks[4].outcome, FOREIGN_BAD_TIMES);
	for (size_t r = 0; r < N_RANKS; r++)
		j->ranks[r].n_calls = r == 0 ? 0 : 2;
	assert_int_equal(align(j), 0);
	assert_int_equal(j->clocks[0].outcome, FOREIGN_TOO_FEW);
	free(j);
}

static void hostile_times_are_no_trouble(void **state)
{
	for (uint64_t seed = 1; seed <= 100; seed++) {
		struct job *j = job(seed);

		j->n_calls = 12;
		make(j);
		for (int k = 0; k < 6; k++) {
			size_t r = (size_t)below(j, N_RANKS), i = (size_t)below(j, 2) * 11;
			int64_t far = i ? FOREIGN_MAX_NS - 1 - below(j, 9)
					: 1 - FOREIGN_MAX_NS + below(j, 9);

			j->calls[r][i].enter_ns = j->calls[r][i].exit_ns = far;
		}
		assert_true(align(j) >= 0);
		free(j);
	}
}

/* Whatever was done to the calls: who is called aligned is aligned. */
static void nobody_is_aligned_wrongly(void **state)
{
	unsigned n_ok = 0, n_refused = 0;

	for (uint64_t seed = 1; seed <= 600; seed++) {
		struct job *j = job(seed * 1000);
		int64_t n;

		j->n_calls = (size_t)(4 + below(j, 60));
		j->period_ns = 100 * US + below(j, 20 * MS);
		j->jitter_ns = 50 * US + below(j, 5 * MS);
		j->one_kind = below(j, 2);
		j->is_proof = below(j, 2);
		offsets(j, 50 * MS, (double)below(j, 2) * 30e-6);
		make(j);
		for (int64_t k = below(j, 6); k-- > 0;) {
			size_t r = (size_t)below(j, N_RANKS);

			if (j->ranks[r].n_calls > 2)
				remove_call(j, r, (size_t)below(j, (int64_t)j->ranks[r].n_calls));
		}
		n = align(j);
		assert_true(n >= 0);
		for (size_t r = 0; r < N_RANKS; r++) {
			bool ok = j->clocks[r].outcome == FOREIGN_OK;

			n_ok += ok;
			n_refused += !ok;
			if (ok && llabs(error_of(j, r)) > 10 * US)
				fail_msg("seed %llu rank %zu of %zu calls: off by %lld ns",
					 (unsigned long long)seed, r, j->ranks[r].n_calls,
					 (long long)error_of(j, r));
		}
		free(j);
	}
	assert_true(n_ok > 1200 && n_refused > 350);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(offsets_come_back_and_a_short_window_has_no_drift),
		cmocka_unit_test(a_long_window_knows_the_drift),
		cmocka_unit_test(clocks_that_bend_are_matched_and_their_error_says_so),
		cmocka_unit_test(a_missing_call_is_no_bend),
		cmocka_unit_test(windows_that_begin_at_other_calls_are_matched),
		cmocka_unit_test(sampled_traces_are_refused),
		cmocka_unit_test(one_missing_call_refuses_its_rank_and_no_other),
		cmocka_unit_test(equal_steps_leave_the_offset_open),
		cmocka_unit_test(other_kinds_of_calls_are_another_order),
		cmocka_unit_test(an_entry_after_the_exit_that_needed_it_is_impossible),
		cmocka_unit_test(times_that_cannot_be_are_refused),
		cmocka_unit_test(hostile_times_are_no_trouble),
		cmocka_unit_test(nobody_is_aligned_wrongly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
