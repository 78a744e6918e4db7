#include "../../collector/align/beam.h"
#include "../../collector/align/hindsight.h"
#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define S INT64_C(1000000000)
#define US INT64_C(1000)
#define FLEET INT64_C(1790000000000000000)
#define N_KNOTS 256
#define N_SEGMENTS 16

/* A host whose clock is fleet + offset and runs ppb fast, asked ten times a second. */
struct rig {
	struct beam b;
	struct beam_knot knots[N_KNOTS];
	struct beam_segment segments[N_SEGMENTS];
	uint64_t rng;
	int64_t now_ns, offset_ns; /* fleet since the start; host - fleet */
	int64_t ppb;
};

static void set_up(struct rig *r)
{
	memset(r, 0, sizeof *r);
	r->rng = 20260814;
	r->ppb = 12000;
	beam_init(&r->b, NULL, r->knots, N_KNOTS, r->segments, N_SEGMENTS);
}

static int64_t host_ns(const struct rig *r, int64_t now_ns)
{
	return FLEET + now_ns + r->offset_ns + now_ns / 1000000 * r->ppb / 1000;
}

static int64_t way_ns(struct rig *r)
{
	int64_t ns = 25 * US + (int64_t)(unit_rand(&r->rng) % 2000);

	return unit_rand(&r->rng) % 5 == 0 ? ns + (int64_t)(unit_rand(&r->rng) % 100000) : ns;
}

static enum beam_outcome ask(struct rig *r)
{
	int64_t t1 = r->now_ns + (int64_t)(unit_rand(&r->rng) % (20 * 1000000)), t2 = t1 + way_ns(r);
	int64_t t3 = t2 + 8 * US, t4 = t3 + way_ns(r);

	r->now_ns += S / 10;
	return beam_exchange(&r->b, (host_time){ host_ns(r, t1) }, (fleet_time){ FLEET + t2 },
			     (fleet_time){ FLEET + t3 }, (host_time){ host_ns(r, t4) });
}

static void run(struct rig *r, int seconds)
{
	for (int i = 0; i < seconds * 10; i++)
		ask(r);
}

static double error_ns(const struct rig *r, int64_t now_ns, struct beam_point *p)
{
	int64_t host = host_ns(r, now_ns);

	beam_place(&r->b, (host_time){ host }, p);
	return p->theta - (double)(FLEET + now_ns - host - p->theta0_ns);
}

static void assert_right(const struct rig *r, int64_t now_ns, double within_ns)
{
	struct beam_point p;
	double e = error_ns(r, now_ns, &p);

	if (fabs(e) > within_ns || p.hi - p.theta + e < 0 || p.theta - p.lo - e < 0)
		fail_msg("off by %.0f ns, bounds %.0f %.0f, status %d", e, p.lo - p.theta, p.hi - p.theta,
			 (int)p.status);
}

static void an_instant_is_placed_within_a_microsecond(void **state)
{
	struct rig r;

	set_up(&r);
	run(&r, 60);
	for (int64_t t = 20 * S; t < 60 * S; t += S / 3)
		assert_right(&r, t, 300);
	assert_right(&r, 60 * S, 300);
}

/* Whatever the jump, a second later no answer is wrong and believed: undecided, or
 * right; after ten seconds it is right. */
static void a_clock_that_runs_back_once_is_found_soon(void **state)
{
	static const int64_t by_ns[] = { 60 * 1000000, S / 2, 3 * S, 20 * S, 45 * S, 3600 * S };

	(void)state;
	for (size_t i = 0; i < sizeof by_ns / sizeof *by_ns; i++)
		for (int before = 5; before <= 60; before += 55) {
			struct rig r;

			set_up(&r);
			run(&r, before);
			r.offset_ns -= by_ns[i];
			run(&r, 1);
			for (int k = 0; k < 100; k++) {
				struct beam_point p;
				double e = error_ns(&r, r.now_ns, &p);

				if ((p.hi - p.theta + e < 0 || p.theta - p.lo - e < 0) &&
				    p.status < FLEET_UNDECIDED)
					fail_msg("back by %lld ms after %d s, %d.%d s later: off by %.0f ns, status %d",
						 (long long)(by_ns[i] / 1000000), before, 1 + k / 10, k % 10, e,
						 (int)p.status);
				ask(&r);
			}
			assert_right(&r, r.now_ns, 30e3);
		}
}

static void before_the_first_exchange_nothing_is_known(void **state)
{
	struct beam_point p;
	struct rig r;

	set_up(&r);
	beam_place(&r.b, (host_time){ FLEET }, &p);
	assert_int_equal(p.status, FLEET_VOID);
	assert_true(isinf(p.hi) && isinf(p.lo));
	ask(&r);
	error_ns(&r, S, &p);
	assert_int_equal(p.status, FLEET_UNANCHORED);
	assert_right(&r, S, 100e3);
}

static void a_host_that_falls_silent_coasts_and_the_bounds_open(void **state)
{
	struct beam_point near, far;
	struct rig r;

	set_up(&r);
	run(&r, 60);
	error_ns(&r, 61 * S, &near);
	error_ns(&r, 660 * S, &far);
	assert_int_equal(near.status, FLEET_ANCHORED);
	assert_int_equal(far.status, FLEET_COASTING);
	assert_true(far.hi - far.lo > near.hi - near.lo + 2 * 599 * 1000);
	assert_right(&r, 660 * S, 100e3);
	run(&r, 1); /* and then it is back */
	assert_int_equal(r.b.n_segments, 1);
}

static void a_step_is_a_new_segment_and_the_time_around_it_is_undecided(void **state)
{
	struct beam_point p;
	struct rig r;

	set_up(&r);
	run(&r, 60);
	r.offset_ns = 3000000;
	run(&r, 60);
	assert_int_equal(r.b.n_segments, 2);
	assert_right(&r, 100 * S, 500);
	beam_place(&r.b, (host_time){ r.segments[1].begin_ns - 1 }, &p);
	assert_int_equal(p.status, FLEET_UNDECIDED);
	r.offset_ns = 0;
	assert_right(&r, 50 * S, 300);
}

static void queues_are_no_steps(void **state)
{
	struct rig r;

	set_up(&r);
	run(&r, 60);
	for (int i = 0; i < 400; i++) { /* all that goes out stands in a queue */
		int64_t t1 = r.now_ns, t2 = t1 + way_ns(&r) + 300 * US + (int64_t)(unit_rand(&r.rng) % 500000);

		r.now_ns += S / 10;
		beam_exchange(&r.b, (host_time){ host_ns(&r, t1) }, (fleet_time){ FLEET + t2 },
			      (fleet_time){ FLEET + t2 + 8 * US },
			      (host_time){ host_ns(&r, t2 + 8 * US + way_ns(&r)) });
		if (i > 50)
			assert_right(&r, t1, 2000);
	}
	run(&r, 60);
	assert_int_equal(r.b.n_segments, 1);
	assert_right(&r, r.now_ns, 500);
}

/* One exchange a second or less: buckets of one direction, or of none. */
static void rare_exchanges_and_steps_leave_a_number(void **state)
{
	for (uint64_t seed = 1; seed <= 100; seed++) {
		struct beam_point p;
		struct rig r;

		set_up(&r);
		r.rng = seed;
		for (int i = 0; i < 400; i++) {
			if (unit_rand(&r.rng) % 40 == 0)
				r.offset_ns += (int64_t)(unit_rand(&r.rng) % 400000) - 200000;
			ask(&r);
			r.now_ns += (int64_t)(unit_rand(&r.rng) % (uint64_t)(2 * S));
			error_ns(&r, r.now_ns, &p);
			assert_true(p.theta == p.theta && p.hi >= p.theta && p.theta >= p.lo);
		}
	}
}

static void stamps_that_cannot_be_are_refused(void **state)
{
	static const int64_t bad[][4] = {
		{ 10, 5, 5, 9 },		/* back before it was sent */
		{ 10, 9, 5, 20 },		/* answered before it came */
		{ 10, 5, 50, 20 },		/* took longer there than here */
		{ 10, 5, 15, 20 },		/* no time for the way */
		{ INT64_MIN, 0, 0, INT64_MAX }, /* nobody's clock */
		{ 0, INT64_MIN, INT64_MAX, 1 },
	};
	struct rig r;

	set_up(&r);
	run(&r, 30);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(beam_exchange(&r.b, (host_time){ bad[i][0] }, (fleet_time){ bad[i][1] },
					       (fleet_time){ bad[i][2] }, (host_time){ bad[i][3] }),
				 BEAM_REFUSED);
	assert_int_equal(r.b.n_refused, sizeof bad / sizeof *bad);
	assert_right(&r, 30 * S, 300);
}

static void a_clock_that_stands_still_or_runs_backwards_is_void(void **state)
{
	struct beam_point p;
	struct rig r;

	for (int backwards = 0; backwards < 2; backwards++) {
		set_up(&r);
		run(&r, 30);
		for (int i = 0; i < 50; i++) {
			int64_t t = host_ns(&r, 30 * S) - backwards * i * S / 10, f = FLEET + 30 * S + i * S / 10;

			assert_int_equal(beam_exchange(&r.b, (host_time){ t }, (fleet_time){ f },
						       (fleet_time){ f + 8 * US },
						       (host_time){ t - backwards * 60 * US }),
					 BEAM_REFUSED);
		}
		beam_place(&r.b, (host_time){ host_ns(&r, 31 * S) }, &p);
		assert_int_equal(p.status, FLEET_VOID);
		assert_int_equal(r.b.n_segments, 1);
	}
}

static void a_jump_by_years_begins_a_new_time_line(void **state)
{
	static const int64_t jumps[] = { 5 * 365 * 86400 * S, -(5 * 365 * 86400 * S), -(3600 * S) };

	for (size_t i = 0; i < sizeof jumps / sizeof *jumps; i++) {
		struct rig r;

		set_up(&r);
		run(&r, 30);
		r.offset_ns = jumps[i];
		run(&r, 30);
		assert_int_equal(r.b.n_restarts, 1);
		assert_right(&r, 60 * S, 500);
	}
}

static void one_exchange_from_another_time_is_a_slip(void **state)
{
	struct rig r;

	set_up(&r);
	run(&r, 30);
	for (int i = 0; i < 20; i++) {
		r.offset_ns = i % 2 ? 86400 * S : -86400 * S;
		assert_int_equal(ask(&r), BEAM_REFUSED);
		r.offset_ns = 0;
		assert_int_equal(ask(&r), BEAM_OK);
	}
	assert_int_equal(r.b.n_segments, 1);
	assert_right(&r, r.now_ns, 300);
}

static void exchanges_that_come_again_or_late_do_no_harm(void **state)
{
	struct beam_sample kept[600];
	struct rig r;

	set_up(&r);
	for (int i = 0; i < 600; i++) {
		ask(&r);
		kept[i] = r.b.recent[(r.b.n_samples - 1) % BEAM_N_RECENT];
		if (i % 7 == 0)
			beam_take(&r.b, &kept[unit_rand(&r.rng) % (unsigned)(i + 1)]);
		if (i % 11 == 0)
			beam_take(&r.b, &kept[i]);
	}
	assert_int_equal(r.b.n_segments, 1);
	assert_int_equal(r.b.n_restarts, 0);
	assert_right(&r, 60 * S, 300);
}

static int64_t wild(uint64_t *rng)
{
	uint64_t z = unit_rand(rng);

	return (int64_t)(unit_rand(rng) >> (z % 64)) * (z & 64 ? 1 : -1);
}

static void anything_at_all_is_survived(void **state)
{
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct hindsight *h;
		struct beam_sample *v = calloc(400, sizeof *v);
		struct beam_point p;
		struct rig r;

		set_up(&r);
		r.rng = seed;
		for (int i = 0; i < 400; i++) {
			uint64_t kind = unit_rand(&r.rng) % 4;

			if (kind == 0)
				v[i] = (struct beam_sample){ wild(&r.rng), wild(&r.rng), wild(&r.rng),
							     wild(&r.rng) };
			else if (kind == 1) /* sane, anywhere */
				v[i] = (struct beam_sample){ wild(&r.rng) >> 5, 0, wild(&r.rng) >> 5, 0 };
			else if (r.b.n_samples > 0)
				v[i] = r.b.recent[(r.b.n_samples - 1) % BEAM_N_RECENT];
			if (kind == 1) {
				v[i].t4_ns = v[i].t1_ns + 50 * US;
				v[i].g_ns = v[i].f_ns - 40 * US;
			}
			beam_take(&r.b, &v[i]);
			ask(&r);
			beam_place(&r.b, (host_time){ wild(&r.rng) }, &p);
			assert_true(p.theta == p.theta);
		}
		assert_int_equal(hindsight_new(&h, NULL, v, 400), 0);
		for (int i = 0; i < 400; i++) {
			hindsight_place(h, (host_time){ wild(&r.rng) }, &p);
			assert_true(p.theta == p.theta);
		}
		hindsight_free(h);
		free(v);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_instant_is_placed_within_a_microsecond),
		cmocka_unit_test(a_clock_that_runs_back_once_is_found_soon),
		cmocka_unit_test(before_the_first_exchange_nothing_is_known),
		cmocka_unit_test(a_host_that_falls_silent_coasts_and_the_bounds_open),
		cmocka_unit_test(a_step_is_a_new_segment_and_the_time_around_it_is_undecided),
		cmocka_unit_test(queues_are_no_steps),
		cmocka_unit_test(rare_exchanges_and_steps_leave_a_number),
		cmocka_unit_test(stamps_that_cannot_be_are_refused),
		cmocka_unit_test(a_clock_that_stands_still_or_runs_backwards_is_void),
		cmocka_unit_test(a_jump_by_years_begins_a_new_time_line),
		cmocka_unit_test(one_exchange_from_another_time_is_a_slip),
		cmocka_unit_test(exchanges_that_come_again_or_late_do_no_harm),
		cmocka_unit_test(anything_at_all_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
