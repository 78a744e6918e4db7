/* Closed collectives reach the clocks: who, when, and what they prove. */
#include "../../collector/match/evidence.h"
#include "unit.h"

#include <string.h>

#define T0 INT64_C(1700000000000000000)

struct bed {
	struct roster roster;
	struct match match;
	struct facts facts;
	struct evidence *evidence;
	uint32_t group;
	unsigned n_proofs, n_lifted;
	uint32_t proof_group;
};

static int on_doubt(void *arg, uint32_t group, bool lifted, const struct pairs_proof *proof)
{
	struct bed *b = arg;

	b->n_lifted += lifted;
	b->n_proofs += !lifted;
	b->proof_group = group;
	assert_true(proof->impossible_ns > 0);
	return 0;
}

/* Ranks 0 and 1 on host 0, rank 2 on host 1. */
static void start(struct bed *b)
{
	static const int32_t ranks[] = { 0, 1, 2 };

	memset(b, 0, sizeof *b);
	facts_init(&b->facts);
	for (uint32_t h = 0; h < 2; h++)
		assert_non_null(roster_host(&b->roster, h));
	for (uint32_t r = 0; r < 3; r++) {
		struct proc *p = roster_proc(&b->roster, 100 + r);

		assert_non_null(p);
		p->rank = (int32_t)r;
		p->host = r / 2;
		p->tick_error_ns = 10;
	}
	match_init(&b->match, &b->roster, &b->facts, 64, 1000000000);
	assert_int_equal(evidence_new(&b->evidence, &b->roster), 0);
	b->match.closed = evidence_closed;
	b->match.closed_arg = b->evidence;
	b->group = (uint32_t)match_declare(&b->match, "dp", 0, ranks, 3);
	for (uint32_t h = 0; h < 2; h++)
		assert_int_equal(evidence_probe(b->evidence, h,
						&(struct pairs_probe){ .host_ns = T0,
								       .lo_ns = -1000000,
								       .hi_ns = 1000000,
								       .soft_ns = 200000 }),
				 0);
}

static void stop(struct bed *b)
{
	evidence_free(b->evidence);
	match_fini(&b->match);
	roster_fini(&b->roster);
	facts_fini(&b->facts);
}

static void call(struct bed *b, uint32_t seq, uint8_t op, const int64_t *enter, const int64_t *exit,
		 uint32_t n)
{
	for (uint32_t r = 0; r < n; r++) {
		struct match_call c = { .group = b->group, .member = r, .proc = r, .seq_low = seq,
					.op = op, .dtype = DTYPE_F32, .bytes = 64 };
		uint64_t whole;

		c.at_ns = T0 + enter[r];
		assert_int_equal(match_begin(&b->match, &c, &whole), 0);
		c.at_ns = T0 + exit[r];
		assert_int_equal(match_end(&b->match, &c), 0);
	}
}

static struct pairs_answer ask(const struct bed *b)
{
	struct pairs_answer a;

	assert_int_equal(evidence_ask(b->evidence, 0, 1, T0 + 10000, &a), 0);
	return a;
}

static const int64_t in[] = { 100, 200, 300 }, out[] = { 1000, 1100, 1200 };

static void a_closed_call_bounds_its_hosts(void **state)
{
	struct bed b;

	start(&b);
	call(&b, 0, OP_ALL_REDUCE, in, out, 3);
	/* Host 0 left first at 1000, 2 had entered at 300; 2 left at 1200, host 0's
	 * last entered at 200. Ticks loosen by 10 each. */
	assert_in_range(ask(&b).hi_ns, 720, 722);
	assert_in_range(-ask(&b).lo_ns, 1020, 1022);
	stop(&b);
}

static void what_proves_nothing_says_nothing(void **state)
{
	static const uint8_t ops[] = { OP_ALL_TO_ALL, OP_BROADCAST, OP_REDUCE, OP_SEND, OP_UNKNOWN };
	struct bed b;

	start(&b);
	for (uint32_t i = 0; i < sizeof ops; i++)
		call(&b, i, ops[i], in, out, 3);
	assert_true(ask(&b).hi_ns >= 2000000);
	stop(&b);
}

static void a_call_that_somebody_missed_says_nothing(void **state)
{
	struct bed b;

	start(&b);
	call(&b, 0, OP_ALL_REDUCE, in, out, 2);
	assert_int_equal(match_finish(&b.match), 0);
	assert_true(ask(&b).hi_ns >= 2000000);
	stop(&b);
}

static void a_contradiction_is_told_with_its_group(void **state)
{
	static const int64_t late_in[] = { 2000, 2000, 9000000 }, late_out[] = { 3000, 3000, 9100000 };
	struct bed b;

	start(&b);
	call(&b, 0, OP_ALL_REDUCE, in, out, 3);
	call(&b, 1, OP_ALL_REDUCE, late_in, late_out, 3);
	for (int i = 0; i < 2; i++)
		assert_int_equal(evidence_look(b.evidence, on_doubt, &b), 0);
	assert_int_equal(b.n_proofs, 1);
	assert_int_equal(b.proof_group, b.group);
	assert_int_equal(b.n_lifted, 0);
	assert_true(ask(&b).hi_ns >= 2000000);
	stop(&b);
}

static void a_step_explains_a_contradiction(void **state)
{
	static const int64_t late_in[] = { 2000, 2000, 9000000 }, late_out[] = { 3000, 3000, 9100000 };
	struct bed b;

	start(&b);
	call(&b, 0, OP_ALL_REDUCE, late_in, late_out, 3);
	assert_int_equal(evidence_look(b.evidence, on_doubt, &b), 0);
	assert_int_equal(b.n_proofs, 1);
	evidence_step(b.evidence, 1);
	for (int i = 0; i < 2; i++)
		assert_int_equal(evidence_look(b.evidence, on_doubt, &b), 0);
	assert_int_equal(b.n_proofs, 1);
	assert_int_equal(b.n_lifted, 1);
	stop(&b);
}

static void instants_before_a_step_are_not_compared_with_those_after(void **state)
{
	struct pairs_answer a;
	struct bed b;

	start(&b);
	call(&b, 0, OP_ALL_REDUCE, in, out, 3);
	assert_int_equal(evidence_between(b.evidence, 0, T0 + 500, 1, T0 + 400, &a), 0);
	assert_in_range(a.offset_ns - a.lo_ns, 0, 2000);
	assert_in_range(a.hi_ns - a.offset_ns, 0, 2000);
	assert_true(a.lo_ns <= 100 && a.hi_ns >= 100);
	assert_int_equal(evidence_between(b.evidence, 0, T0 - 500, 1, T0 + 400, &a), PAIRS_REFUSED);
	evidence_step(b.evidence, 1);
	assert_int_equal(evidence_between(b.evidence, 0, T0 + 500, 1, T0 + 400, &a), PAIRS_REFUSED);
	/* The clock was set back by a second. */
	assert_int_equal(evidence_probe(b.evidence, 1,
					&(struct pairs_probe){ .host_ns = T0 - 999990000,
							       .offset_ns = 1000000000,
							       .lo_ns = 1000000000 - 1000,
							       .hi_ns = 1000000000 + 1000,
							       .soft_ns = 200 }),
			 0);
	assert_int_equal(evidence_between(b.evidence, 0, T0 + 500, 1, T0 - 999990000 - 1, &a),
			 PAIRS_REFUSED);
	/* Stamps from before the step may still be on their way. */
	assert_int_equal(evidence_between(b.evidence, 0, T0 + 20000, 1, T0 - 999980000, &a),
			 PAIRS_REFUSED);
	assert_int_equal(evidence_tick(b.evidence, (fleet_time){ T0 }), 0);
	assert_int_equal(evidence_between(b.evidence, 0, T0 + 20000, 1, T0 - 999980000, &a), 0);
	assert_true(a.lo_ns <= 0 && a.hi_ns >= 0);
	stop(&b);
}

static void a_rank_that_moved_makes_another_communicator(void **state)
{
	static const int64_t in_2[] = { 2000, 2000, 2000 }, out_2[] = { 3000, 3000, 3000 };
	struct bed b;

	start(&b);
	call(&b, 0, OP_ALL_REDUCE, in, out, 3);
	b.roster.procs[1].host = 1;
	call(&b, 1, OP_ALL_REDUCE, in_2, out_2, 3);
	/* Still true, and the first call's bound is still the narrower one. */
	assert_in_range(ask(&b).hi_ns, 720, 722);
	assert_int_equal(evidence_look(b.evidence, on_doubt, &b), 0);
	assert_int_equal(b.n_proofs, 0);
	stop(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_closed_call_bounds_its_hosts),
		cmocka_unit_test(what_proves_nothing_says_nothing),
		cmocka_unit_test(a_call_that_somebody_missed_says_nothing),
		cmocka_unit_test(a_contradiction_is_told_with_its_group),
		cmocka_unit_test(a_step_explains_a_contradiction),
		cmocka_unit_test(instants_before_a_step_are_not_compared_with_those_after),
		cmocka_unit_test(a_rank_that_moved_makes_another_communicator),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
