/* Small jobs by hand, whose critical path anybody can follow. */
#include "../../collector/core.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

#define T0 INT64_C(1000000000)
#define US INT64_C(1000)
#define MS INT64_C(1000000)

enum { HOST_RING, DEVICE_RING };
enum { DP = 1, KERNEL, P2P, WORK };

struct job {
	struct facts facts;
	struct core *core;
	uint64_t chunk;
};

static void begin(struct job *j, uint32_t world, uint32_t ranks_a_host, bool aligned)
{
	static const char *const names[] = { "dp", "gemm", "default p2p 0>1", "save" };
	int32_t ranks[8];

	facts_init(&j->facts);
	j->chunk = 0;
	assert_int_equal(core_new(&j->core, NULL, &j->facts), 0);
	for (uint32_t i = 0; i < world; i++) {
		uint32_t host = i / ranks_a_host;

		assert_int_equal(core_host(j->core, host, host == 0 || aligned, 0), 0);
		assert_int_equal(core_process(j->core, &(struct core_process){ .process = i, .host = host,
									      .rank = (int32_t)i,
									      .world_size = (int32_t)world }), 0);
		for (uint32_t n = 0; n < sizeof names / sizeof *names; n++)
			assert_int_equal(core_name(j->core, i, n + 1, names[n], strlen(names[n])), 0);
		ranks[i] = (int32_t)i;
	}
	assert_int_equal(core_group(j->core, "dp", ranks, world), 0);
	assert_int_equal(core_tick(j->core, (fleet_time){ T0 }), 0);
}

static void end(struct job *j)
{
	core_free(j->core);
	facts_fini(&j->facts);
}

static void say(struct job *j, uint32_t rank, uint32_t ring, int64_t at_ns, enum event_kind kind,
		unsigned flags, uint32_t name, uint64_t a, uint64_t b)
{
	struct event ev = { .tick = (uint64_t)(T0 + at_ns), .kind = (uint16_t)kind,
			    .flags = (uint16_t)flags, .name = name, .a = a, .b = b };

	assert_int_equal(core_events(j->core, rank, ring, ++j->chunk, &ev, 1), 0);
}

static void step_begin(struct job *j, uint32_t rank, int64_t at_ns)
{
	say(j, rank, HOST_RING, at_ns, EVENT_STEP_BEGIN, 0, 0, event_a(0, 0), 0);
}

static void step_end(struct job *j, uint32_t rank, uint32_t step, int64_t at_ns)
{
	say(j, rank, HOST_RING, at_ns, EVENT_STEP_END, 0, 0, event_a(step, 0), 0);
}

/* A call of op that blocks its rank. */
static void block(struct job *j, uint32_t rank, uint32_t step, enum event_op op, uint32_t name, uint32_t seq,
		  int64_t begin_ns, int64_t end_ns)
{
	unsigned flags = event_coll_flags(op, DTYPE_F32);

	say(j, rank, HOST_RING, begin_ns, EVENT_COLL_BEGIN, flags, name, event_a(step, seq), EVENT_COLL_SYNC_BIT | 64);
	say(j, rank, HOST_RING, end_ns, EVENT_COLL_END, flags, name, event_a(step, seq), EVENT_COLL_SYNC_BIT | 64);
}

static void launch(struct job *j, uint32_t rank, uint32_t step, uint32_t number, int64_t at_ns)
{
	say(j, rank, HOST_RING, at_ns, EVENT_LAUNCH, 1, KERNEL, event_a(step, number), 0);
}

static void kernel(struct job *j, uint32_t rank, uint32_t step, uint32_t number, int64_t begin_ns, int64_t end_ns)
{
	say(j, rank, DEVICE_RING, begin_ns, EVENT_KERNEL_BEGIN, 1, KERNEL, event_a(step, number), 0);
	say(j, rank, DEVICE_RING, end_ns, EVENT_KERNEL_END, 1, KERNEL, event_a(step, number), 0);
}

static void finish(struct job *j)
{
	assert_int_equal(core_tick(j->core, (fleet_time){ T0 + 10000 * MS }), 0);
	assert_int_equal(core_finish(j->core, (fleet_time){ T0 + 20000 * MS }), 0);
}

/* "rank kind<from milliseconds" of each segment. */
static void spell(const struct job *j, uint32_t step, char *out, size_t n_out)
{
	size_t at = 0;

	out[0] = '\0';
	for (size_t i = 0; i < j->facts.paths.n; i++) {
		const struct fact_path *p = &j->facts.paths.v[i];

		for (size_t k = 0; p->step == step && k < p->n_segments; k++) {
			const struct fact_segment *s = &j->facts.segments.v[p->first_segment + k];
			char from[16] = "";

			if (s->from_rank >= 0)
				snprintf(from, sizeof from, "<%d", s->from_rank);
			at += (size_t)snprintf(out + at, n_out - at, "%s%d %s%s%s%s %g", k ? ", " : "", s->rank,
					       fact_segment_name(s->kind), from, s->undecided ? "?" : "",
					       s->n_joined > 1 ? "+" : "", (double)s->dur_ns / 1e6);
		}
	}
}

static void assert_path(const struct job *j, uint32_t step, const char *want)
{
	char got[2000];

	spell(j, step, got, sizeof got);
	assert_string_equal(got, want);
}

static void the_last_to_arrive_hands_the_path_over(void **state)
{
	struct job j;

	(void)state;
	begin(&j, 3, 8, true);
	for (uint32_t i = 0; i < 3; i++) {
		int64_t came = i == 1 ? 9 * MS : (3 + i) * MS;

		step_begin(&j, i, 0);
		block(&j, i, 0, OP_ALL_REDUCE, DP, 0, came, 10 * MS);
		step_end(&j, i, 0, i == 2 ? 12 * MS : 11 * MS);
	}
	finish(&j);
	assert_path(&j, 0, "1 host 9, 2 transfer<1 1, 2 host 2");
	assert_int_equal(j.facts.segments.v[1].held_ns, 4 * MS); /* rank 2 came at 5 */
	assert_int_equal(j.facts.paths.v[0].dur_ns, 12 * MS);
	end(&j);
}

static void a_root_that_went_on_waited_for_nobody(void **state)
{
	struct job j;

	(void)state;
	begin(&j, 2, 8, true);
	for (uint32_t i = 0; i < 2; i++)
		step_begin(&j, i, 0);
	block(&j, 0, 0, OP_BROADCAST, DP, 0, 2 * MS, 3 * MS);
	block(&j, 1, 0, OP_BROADCAST, DP, 0, 6 * MS, 7 * MS);
	step_end(&j, 0, 0, 20 * MS);
	step_end(&j, 1, 0, 8 * MS);
	finish(&j);
	assert_path(&j, 0, "0 host 2, 0 transfer 1, 0 host 17");
	end(&j);
}

static void a_message_is_waited_for_by_its_receiver_alone(void **state)
{
	struct job j;

	(void)state;
	begin(&j, 2, 8, true);
	for (uint32_t i = 0; i < 2; i++)
		step_begin(&j, i, 0);
	block(&j, 0, 0, OP_SEND, P2P, 0, 5 * MS, 5 * MS + 10 * US); /* handed over and forgotten */
	block(&j, 1, 0, OP_RECV, P2P, 0, 1 * MS, 6 * MS);
	block(&j, 0, 0, OP_SEND, P2P, 1, 7 * MS, 7 * MS + 10 * US);
	block(&j, 1, 0, OP_RECV, P2P, 1, 9 * MS, 9 * MS + 10 * US);
	step_end(&j, 0, 0, 8 * MS);
	step_end(&j, 1, 0, 12 * MS);
	finish(&j);
	assert_path(&j, 0, "0 host 5, 1 transfer<0 1, 1 host 3, 1 transfer 0.01, 1 host 2.99");
	end(&j);
}

static void a_device_may_be_heard_of_before_its_launches(void **state)
{
	char want[2000], got[2000];
	struct job j;

	(void)state;
	for (int early = 0; early < 2; early++) {
		begin(&j, 1, 8, true);
		step_begin(&j, 0, 0);
		for (int pass = 0; pass < 2; pass++) {
			if (pass == early)
				for (uint32_t n = 1; n <= 3; n++)
					launch(&j, 0, 0, n, n * MS);
			else
				for (uint32_t n = 1; n <= 3; n++)
					kernel(&j, 0, 0, n, (n == 1 ? 1 : 5 * n - 5) * MS, 5 * n * MS);
		}
		say(&j, 0, HOST_RING, 4 * MS, EVENT_HOST_WAIT_BEGIN, 0, 0, event_a(0, 0), 0);
		say(&j, 0, HOST_RING, 15 * MS, EVENT_HOST_WAIT_END, 0, 0, event_a(0, 0), 0);
		step_end(&j, 0, 0, 16 * MS);
		finish(&j);
		spell(&j, 0, early ? got : want, sizeof want);
		end(&j);
	}
	assert_string_equal(got, want);
	assert_string_equal(want, "0 host 1, 0 kernel 4, 0 kernel 5, 0 kernel 5, 0 host 1");
}

/* A call of device work; a trace may have it begin on all ranks at once. */
static void device_call(struct job *j, uint32_t rank, uint32_t number, int64_t launch_ns, int64_t begin_ns,
			int64_t end_ns)
{
	unsigned flags = event_coll_flags(OP_ALL_REDUCE, DTYPE_F32);

	say(j, rank, HOST_RING, launch_ns, EVENT_LAUNCH, 2, 0, event_a(0, number), 0);
	say(j, rank, HOST_RING, launch_ns, EVENT_STREAM_WAIT, 2, 0, event_a(0, number), number - 1);
	say(j, rank, HOST_RING, launch_ns, EVENT_COLL_SUBMIT, flags, DP, event_a(0, 0), event_submit_b(-1, number));
	say(j, rank, DEVICE_RING, begin_ns, EVENT_COLL_BEGIN, flags, DP, event_a(0, 0), 64);
	say(j, rank, DEVICE_RING, end_ns, EVENT_COLL_END, flags, DP, event_a(0, 0), 64);
}

static void a_wait_may_be_a_gap_before_the_call(void **state)
{
	struct job j;

	(void)state;
	begin(&j, 3, 8, true);
	for (uint32_t i = 0; i < 3; i++) {
		step_begin(&j, i, 0);
		launch(&j, i, 0, 1, MS);
		kernel(&j, i, 0, 1, MS, i == 1 ? 9 * MS : 4 * MS);
		device_call(&j, i, 2, 2 * MS, 9 * MS + 5 * US, 12 * MS);
		step_end(&j, i, 0, 3 * MS);
	}
	finish(&j);
	assert_path(&j, 0, "1 host 1, 1 kernel 8, 0 queue<1 0.005, 0 transfer? 2.995");
	end(&j);
}

static void a_device_that_lags_behind_is_waited_for(void **state)
{
	struct job j;

	(void)state;
	begin(&j, 1, 8, true);
	step_begin(&j, 0, 0);
	for (uint32_t s = 0; s < 3; s++) {
		launch(&j, 0, s, s + 1, s * MS + MS / 2);
		step_end(&j, 0, s, (s + 1) * MS);
	}
	assert_int_equal(core_tick(j.core, (fleet_time){ T0 + 3000 * MS }), 0);
	assert_true(j.facts.steps.n >= 3);
	assert_int_equal(j.facts.paths.n, 0);
	for (uint32_t s = 0; s < 3; s++)
		kernel(&j, 0, s, s + 1, s == 0 ? MS / 2 : 4000 * s * MS, 4000 * (s + 1) * MS);
	assert_int_equal(core_tick(j.core, (fleet_time){ T0 + 12001 * MS }), 0);
	assert_int_equal(j.facts.paths.n, 3);
	assert_path(&j, 0, "0 host 0.5, 0 kernel 3999.5");
	assert_path(&j, 1, "0 kernel 4000");
	assert_path(&j, 2, "0 kernel 4000");
	end(&j);
}

static void a_launch_that_never_ends_holds_up_no_later_step(void **state)
{
	struct job j;

	(void)state;
	begin(&j, 1, 8, true);
	step_begin(&j, 0, 0);
	for (uint32_t s = 0; s < 2; s++) {
		launch(&j, 0, s, s + 1, 10 * s * MS + MS);
		if (s == 1)
			kernel(&j, 0, s, s + 1, 12 * MS, 19 * MS);
		step_end(&j, 0, s, (s + 1) * 10 * MS);
	}
	finish(&j);
	assert_int_equal(j.facts.paths.n, 2);
	assert_path(&j, 1, "0 host 10");
	end(&j);

	begin(&j, 1, 8, true); /* without a later one it is the end of the job */
	step_begin(&j, 0, 0);
	launch(&j, 0, 0, 1, MS);
	step_end(&j, 0, 0, 10 * MS);
	finish(&j);
	assert_int_equal(j.facts.paths.n, 0);
	end(&j);
}

static void calls_whose_end_is_hidden_are_not_waited_for_for_ever(void **state)
{
	unsigned flags = event_coll_flags(OP_ALL_REDUCE, DTYPE_F32);
	struct job j;

	(void)state;
	begin(&j, 1, 8, true);
	step_begin(&j, 0, 0);
	for (uint32_t s = 0; s < 3; s++) {
		say(&j, 0, HOST_RING, (10 * s + 4) * MS, EVENT_COLL_BEGIN, flags, DP, event_a(s, s), 64);
		step_end(&j, 0, s, 10 * (s + 1) * MS);
	}
	assert_int_equal(core_tick(j.core, (fleet_time){ T0 + 1000 * MS }), 0);
	assert_int_equal(j.facts.paths.n, 0); /* it may be on its way */
	assert_int_equal(core_tick(j.core, (fleet_time){ T0 + 8000 * MS }), 0);
	assert_int_equal(core_tick(j.core, (fleet_time){ T0 + 16000 * MS }), 0);
	assert_int_equal(j.facts.paths.n, 3);
	assert_path(&j, 2, "0 host 10");
	end(&j);
}

static void work_that_the_program_names_is_named(void **state)
{
	struct job j;

	(void)state;
	begin(&j, 2, 8, true);
	for (uint32_t i = 0; i < 2; i++) {
		step_begin(&j, i, 0);
		say(&j, i, HOST_RING, 0, EVENT_PHASE_BEGIN, PHASE_DATA, 0, event_a(0, 0), 0);
		say(&j, i, HOST_RING, 2 * MS, EVENT_PHASE_END, PHASE_DATA, 0, event_a(0, 0), 0);
		if (i == 1) {
			say(&j, i, HOST_RING, 3 * MS, EVENT_WORK_BEGIN, 0, WORK, event_a(0, 0), 0);
			say(&j, i, HOST_RING, 8 * MS, EVENT_WORK_END, 0, WORK, event_a(0, 0), 0);
		}
		block(&j, i, 0, OP_ALL_REDUCE, DP, 0, i == 1 ? 9 * MS : 4 * MS, 10 * MS);
		step_end(&j, i, 0, 10 * MS + (1 - i) * MS);
	}
	finish(&j);
	assert_path(&j, 0, "1 input 2, 1 host 1, 1 work 5, 1 host 1, 0 transfer<1 1, 0 host 1");
	assert_string_equal(j.facts.segments.v[0].name, "data");
	assert_string_equal(j.facts.segments.v[2].name, "save");
	end(&j);
}

static void who_begins_late_was_still_in_the_step_before(void **state)
{
	struct job j;

	(void)state;
	begin(&j, 2, 8, true);
	step_begin(&j, 0, 0);
	step_begin(&j, 1, 3 * MS);
	for (uint32_t i = 0; i < 2; i++) {
		block(&j, i, 0, OP_ALL_REDUCE, DP, 0, i == 1 ? 9 * MS : 4 * MS, 10 * MS);
		step_end(&j, i, 0, 10 * MS);
	}
	finish(&j);
	assert_int_equal(j.facts.paths.v[0].dur_ns, 10 * MS);
	assert_path(&j, 0, "1 carry 3, 1 host 6, 0 transfer<1 1");
	end(&j);
}

/* Two hosts, one of which is known to within 50 us. */
static void exchange(struct job *j, int64_t at_ns)
{
	for (int i = 0; i < 20; i++) {
		int64_t t = T0 + at_ns + i * 50 * MS;

		assert_int_equal(core_exchange(j->core, 1, (host_time){ t }, (fleet_time){ t + 50 * US },
					       (fleet_time){ t + 51 * US }, (host_time){ t + 101 * US }), 0);
	}
}

static void what_clocks_cannot_tell_apart_is_said_so(void **state)
{
	static const int64_t late_us[] = { 20, 400 };

	(void)state;
	for (int far = 0; far < 2; far++) {
		struct job j;

		begin(&j, 2, 1, false);
		exchange(&j, -1000 * MS);
		for (uint32_t i = 0; i < 2; i++) {
			step_begin(&j, i, 0);
			block(&j, i, 0, OP_ALL_REDUCE, DP, 0, 5 * MS + (i == 1 ? late_us[far] * US : 0), 8 * MS);
			step_end(&j, i, 0, i == 0 ? 10 * MS : 9 * MS);
		}
		finish(&j);
		assert_int_equal(j.facts.paths.n, 1);
		for (size_t k = 0; k < j.facts.segments.n; k++) {
			const struct fact_segment *s = &j.facts.segments.v[k];

			if (s->kind == SEGMENT_TRANSFER)
				assert_int_equal(s->undecided, !far);
			if (s->from_rank >= 0)
				assert_true(s->err_ns > 20 * US && s->err_ns < 400 * US);
		}
		end(&j);
	}
}

static void a_clock_of_which_nothing_is_known_hands_nothing_over(void **state)
{
	struct job j;

	(void)state;
	begin(&j, 2, 1, false);
	for (uint32_t i = 0; i < 2; i++) {
		step_begin(&j, i, 0);
		block(&j, i, 0, OP_ALL_REDUCE, DP, 0, i == 1 ? 7 * MS : 5 * MS, 8 * MS);
		step_end(&j, i, 0, i == 0 ? 10 * MS : 9 * MS);
	}
	assert_int_equal(core_tick(j.core, (fleet_time){ T0 + 200 * MS }), 0);
	finish(&j);
	assert_int_equal(j.facts.paths.n, 1);
	for (size_t k = 0; k < j.facts.segments.n; k++)
		if (j.facts.segments.v[k].err_ns == FACT_UNBOUNDED)
			fail_msg("a hand-over rests on a clock that nobody knows");
	end(&j);
}

static void what_is_shorter_than_the_clocks_error_is_one_segment(void **state)
{
	struct job j;
	int64_t sum_ns = 0;
	uint32_t most = 0;

	(void)state;
	begin(&j, 2, 1, false);
	exchange(&j, -1000 * MS);
	for (uint32_t i = 0; i < 2; i++) {
		step_begin(&j, i, 0);
		/* By turns each is half a microsecond late. How long a call takes bounds what it
		 * says of the clocks. */
		for (uint32_t n = 0; n < 10; n++) {
			int64_t at = 5 * MS + n * 7 * US;

			block(&j, i, 0, OP_ALL_REDUCE, DP, n, n % 2 == i ? at + 500 : at, at + 6500);
		}
		step_end(&j, i, 0, 10 * MS);
	}
	finish(&j);
	assert_int_equal(j.facts.paths.n, 1);
	for (size_t k = 0; k < j.facts.segments.n; k++) {
		sum_ns += j.facts.segments.v[k].dur_ns;
		most = j.facts.segments.v[k].n_joined > most ? j.facts.segments.v[k].n_joined : most;
	}
	assert_int_equal(sum_ns, j.facts.paths.v[0].dur_ns);
	assert_true(most >= 5);
	end(&j);
}

static void a_rank_that_does_too_much_is_cut_and_said_so(void **state)
{
	struct job j;

	(void)state;
	begin(&j, 1, 8, true);
	step_begin(&j, 0, 0);
	for (uint32_t n = 1; n <= 70000; n++)
		kernel(&j, 0, 0, n, n * US, (n + 1) * US);
	step_end(&j, 0, 0, 80 * MS);
	finish(&j);
	assert_int_equal(j.facts.paths.n, 1);
	assert_false(j.facts.paths.v[0].complete);
	assert_int_equal(j.facts.paths.v[0].dur_ns, 80 * MS);
	end(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_to_arrive_hands_the_path_over),
		cmocka_unit_test(a_root_that_went_on_waited_for_nobody),
		cmocka_unit_test(a_message_is_waited_for_by_its_receiver_alone),
		cmocka_unit_test(a_device_may_be_heard_of_before_its_launches),
		cmocka_unit_test(a_wait_may_be_a_gap_before_the_call),
		cmocka_unit_test(a_device_that_lags_behind_is_waited_for),
		cmocka_unit_test(a_launch_that_never_ends_holds_up_no_later_step),
		cmocka_unit_test(calls_whose_end_is_hidden_are_not_waited_for_for_ever),
		cmocka_unit_test(work_that_the_program_names_is_named),
		cmocka_unit_test(who_begins_late_was_still_in_the_step_before),
		cmocka_unit_test(what_clocks_cannot_tell_apart_is_said_so),
		cmocka_unit_test(a_clock_of_which_nothing_is_known_hands_nothing_over),
		cmocka_unit_test(what_is_shorter_than_the_clocks_error_is_one_segment),
		cmocka_unit_test(a_rank_that_does_too_much_is_cut_and_said_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
