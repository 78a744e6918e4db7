/* Laps, pipelines and pauses from hand-made events. */
#include "../../collector/verdict/pipeline.h"
#include "unit.h"

#include <stdio.h>

#define MS INT64_C(1000000)

struct fixture {
	struct facts facts;
	struct roster roster;
	struct match match;
	struct rules rules;
};

static void start(struct fixture *f, uint32_t world)
{
	facts_init(&f->facts);
	f->roster = (struct roster){ 0 };
	match_init(&f->match, &f->roster, &f->facts, 64, MS);
	rules_init(&f->rules, &f->roster, &f->match);
	clock_init(&roster_host(&f->roster, 0)->clock, true, 0);
	for (uint32_t i = 0; i < world; i++) {
		struct proc *p = roster_proc(&f->roster, i);

		p->rank = (int32_t)i;
		p->world_size = (int32_t)world;
		p->life = 1;
		p->cur_step = EVENT_STEP_UNKNOWN;
	}
	f->rules.life = 1;
	f->rules.world_size = world;
	f->rules.finishing = true;
}

static void stop(struct fixture *f)
{
	rules_fini(&f->rules);
	match_fini(&f->match);
	roster_fini(&f->roster);
	facts_fini(&f->facts);
}

static void say(struct fixture *f, uint32_t rank, int64_t at_ms, enum event_kind kind, uint16_t flags,
		uint32_t name, uint32_t step)
{
	struct event ev = { .tick = (uint64_t)(at_ms * MS), .kind = (uint16_t)kind, .flags = flags,
			    .name = name, .a = event_a(step, 1) };

	assert_int_equal(rules_event(&f->rules, &f->roster.procs[rank], &ev, 0), 0);
}

static void work(struct fixture *f, uint32_t rank, int64_t from_ms, int64_t to_ms, uint32_t step)
{
	say(f, rank, from_ms, EVENT_KERNEL_BEGIN, 1, 0, step);
	say(f, rank, to_ms, EVENT_KERNEL_END, 1, 0, step);
}

static void message(struct fixture *f, uint32_t rank, uint32_t peer, bool send, int64_t from_ms,
		    int64_t to_ms, uint32_t step)
{
	struct proc *p = &f->roster.procs[rank];
	uint32_t name = 1 + 2 * peer + send;
	uint16_t flags = event_coll_flags(send ? OP_SEND : OP_RECV, DTYPE_UNKNOWN);
	char text[32];
	int n = snprintf(text, sizeof text, "g p2p %u>%u", send ? rank : peer, send ? peer : rank);

	assert_int_equal(roster_name(&f->roster, p, name, text, (size_t)n), 0);
	say(f, rank, from_ms, EVENT_COLL_BEGIN, flags, name, step);
	say(f, rank, to_ms, EVENT_COLL_END, flags, name, step);
}

static void time_of_a_lap_is_work_messages_and_rest(void **state)
{
	struct fixture f;
	const struct lap *lap;

	(void)state;
	start(&f, 2);
	work(&f, 0, 0, 10, 0);
	message(&f, 0, 1, true, 10, 13, 0);
	work(&f, 0, 15, 20, 0);
	message(&f, 0, 1, false, 20, 30, 0);
	work(&f, 0, 30, 34, 0);
	work(&f, 0, 40, 41, 1);
	lap = lanes_lap(&f.rules.lanes.v[0], 0, false);
	assert_non_null(lap);
	assert_int_equal(lap->all.work_ns, 19 * MS);
	assert_int_equal(lap->all.message_ns, 13 * MS);
	assert_int_equal(lap->all.rest_ns, 2 * MS);
	assert_int_equal(lap->inside.work_ns, 5 * MS);
	assert_int_equal(lap->end_ns - lap->begin_ns, 34 * MS);
	assert_int_equal(lap->n_peers, 1);
	assert_int_equal(lap->peers[0].least_ns, 3 * MS);
	assert_true(lap->peers[0].sends_first);
	assert_null(lanes_lap(&f.rules.lanes.v[0], 1, true)); /* no messages in it */
	stop(&f);
}

static void several_tensors_are_one_micro_batch(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, 2);
	for (uint32_t k = 0; k < 3; k++) {
		work(&f, 0, 10 * k, 10 * k + 5, 0);
		message(&f, 0, 1, true, 10 * k + 5, 10 * k + 6, 0);
		message(&f, 0, 1, true, 10 * k + 6, 10 * k + 7, 0);
	}
	assert_int_equal(f.rules.lanes.v[0].now.peers[0].n_sent, 3);
	stop(&f);
}

/* Both pass on and get back; rank 5 is first, then 2, then 0. */
static void feed_chain(struct fixture *f, uint32_t step)
{
	static const uint32_t chain[] = { 5, 2, 0 };
	int64_t at = 1000 * step;

	for (uint32_t s = 0; s < 3; s++)
		for (uint32_t m = 0; m < 4; m++) {
			int64_t t = at + 100 * m;

			if (s > 0)
				message(f, chain[s], chain[s - 1], false, t, t + 1, step);
			work(f, chain[s], t + 1, t + 11, step);
			if (s < 2) {
				message(f, chain[s], chain[s + 1], true, t + 11, t + 12, step);
				message(f, chain[s], chain[s + 1], false, t + 40, t + 50, step);
			}
			work(f, chain[s], t + 50, t + 70, step);
			if (s > 0)
				message(f, chain[s], chain[s - 1], true, t + 70, t + 71, step);
		}
}

static void the_order_of_stages_is_that_of_the_messages(void **state)
{
	struct fixture f;
	struct pipeline p;

	(void)state;
	start(&f, 6);
	for (uint32_t step = 0; step < 4; step++)
		feed_chain(&f, step);
	assert_int_equal(pipeline_find(&f.rules, &p), 1);
	assert_int_equal(p.n_stages, 3);
	assert_int_equal(p.n_chains, 1);
	assert_int_equal(p.ranks[0], 5);
	assert_int_equal(p.ranks[1], 2);
	assert_int_equal(p.ranks[2], 0);
	assert_true(p.n_micro > 3.99 && p.n_micro < 4.01);
	assert_true(p.work_ns[1] > 29.9e6 && p.work_ns[1] < 30.1e6);
	pipeline_fini(&p);
	assert_int_equal(ledger_lost(&f.rules.ledger, &f.roster.procs[2]), 0);
	assert_int_equal(pipeline_find(&f.rules, &p), 0); /* what was lost is not summed up */
	stop(&f);
}

static void an_exchange_of_halves_is_no_pipeline(void **state)
{
	struct fixture f;
	struct pipeline p;

	(void)state;
	start(&f, 2);
	for (uint32_t k = 0; k < 4; k++)
		for (uint32_t rank = 0; rank < 2; rank++) {
			work(&f, rank, 100 * k, 100 * k + 20, 0);
			message(&f, rank, !rank, true, 100 * k + 20, 100 * k + 30, 0);
			message(&f, rank, !rank, false, 100 * k + 30, 100 * k + 40, 0);
		}
	assert_int_equal(pipeline_find(&f.rules, &p), 0);
	stop(&f);
}

static void events_out_of_order_are_not_believed(void **state)
{
	struct fixture f;
	struct pipeline p;

	(void)state;
	start(&f, 6);
	feed_chain(&f, 0);
	work(&f, 2, 100, 200, 0);
	assert_int_equal(pipeline_find(&f.rules, &p), 0);
	stop(&f);
}

/* Scopes and calls of one group, four ranks, without a device. */
static void call(struct fixture *f, struct lateness *late, uint64_t seq, const int64_t enter_ms[4])
{
	struct coll c = { .seq = seq, .op = OP_ALL_REDUCE, .n_entered = 4, .n_alloc = 4 };
	struct arrival v[4];

	for (uint32_t i = 0; i < 4; i++) {
		v[i] = (struct arrival){ .enter_ns = enter_ms[i] * MS, .ready_ns = FACT_NONE, .proc = i };
		say(f, i, enter_ms[i], EVENT_COLL_BEGIN, event_coll_flags(OP_ALL_REDUCE, DTYPE_F32), 0, 0);
	}
	c.arrivals = v;
	assert_int_equal(lateness_of(&f->match, 0, &c, &f->rules.places, true, late), 0);
	pauses_call(&f->rules.pauses, &f->match, &c, late);
	pauses_settle(&f->rules.pauses, true);
}

static void make_group(struct fixture *f)
{
	int32_t ranks[4] = { 0, 1, 2, 3 };

	assert_int_equal(match_declare(&f->match, "g", 0, ranks, 4), 0);
}

static void scope(struct fixture *f, uint32_t rank, int64_t from_ms, int64_t to_ms)
{
	say(f, rank, from_ms, EVENT_WORK_BEGIN, 0, 0, 0);
	say(f, rank, to_ms, EVENT_WORK_END, 0, 0, 0);
}

static void pauses_at_once_cost_what_those_without_waited(void **state)
{
	const struct late_pause *v;
	struct lateness late;
	struct fixture f;

	(void)state;
	start(&f, 4);
	make_group(&f);
	call(&f, &late, 0, (int64_t[]){ 100, 100, 100, 100 });
	scope(&f, 1, 110, 150);
	scope(&f, 3, 110, 140);
	scope(&f, 0, 110, 111);
	call(&f, &late, 1, (int64_t[]){ 201, 240, 200, 230 });
	assert_int_equal(late.v[0].rank, 1);
	assert_int_equal(late.v[1].behind.ns, 10 * MS);
	assert_int_equal(f.rules.pauses.n_late, 2);
	v = pauses_late(&f.rules.pauses, 0);
	assert_int_equal(v->rank, 1);
	assert_in_range(v->cost_ns + pauses_late(&f.rules.pauses, 1)->cost_ns, 39 * MS - 2, 39 * MS);
	stop(&f);
}

static void a_pause_is_charged_once_and_only_where_it_is_long_enough(void **state)
{
	struct lateness late;
	struct fixture f;

	(void)state;
	start(&f, 4);
	make_group(&f);
	call(&f, &late, 0, (int64_t[]){ 100, 100, 100, 100 });
	scope(&f, 2, 110, 115);
	call(&f, &late, 1, (int64_t[]){ 200, 200, 240, 200 }); /* 40 ms for a pause of 5 */
	assert_int_equal(f.rules.pauses.n_late, 0);
	scope(&f, 2, 250, 290);
	call(&f, &late, 2, (int64_t[]){ 300, 300, 340, 300 });
	call(&f, &late, 3, (int64_t[]){ 400, 400, 440, 400 });
	assert_int_equal(f.rules.pauses.n_late, 1);
	stop(&f);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(time_of_a_lap_is_work_messages_and_rest),
		cmocka_unit_test(several_tensors_are_one_micro_batch),
		cmocka_unit_test(the_order_of_stages_is_that_of_the_messages),
		cmocka_unit_test(an_exchange_of_halves_is_no_pipeline),
		cmocka_unit_test(events_out_of_order_are_not_believed),
		cmocka_unit_test(pauses_at_once_cost_what_those_without_waited),
		cmocka_unit_test(a_pause_is_charged_once_and_only_where_it_is_long_enough),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
