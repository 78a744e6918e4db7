/* Wait and transfer of each rank, and classes of transfers, through core.h. */
#include "../../collector/core.h"
#include "../../sim/large.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS INT64_C(1000000)
#define OFFSET INT64_C(1700000000000000000)

struct bed {
	struct facts facts;
	struct core *core;
	uint64_t chunk;
};

static void start(struct bed *b, uint32_t world, uint32_t n_hosts)
{
	*b = (struct bed){ 0 };
	facts_init(&b->facts);
	assert_int_equal(core_new(&b->core, NULL, &b->facts), 0);
	for (uint32_t h = 0; h < n_hosts; h++)
		core_host(b->core, h, true, OFFSET);
	for (uint32_t r = 0; r < world; r++) {
		char message[32];

		core_process(b->core, &(struct core_process){ .process = r, .host = r * n_hosts / world,
							      .rank = (int32_t)r, .world_size = (int32_t)world });
		core_name(b->core, r, 1, "g", 1);
		snprintf(message, sizeof message, "pp p2p %u>%u", r & ~1u, r | 1u);
		core_name(b->core, r, 2, message, strlen(message));
	}
}

static void stop(struct bed *b)
{
	core_free(b->core);
	facts_fini(&b->facts);
}

static void say(struct bed *b, uint32_t process, unsigned kind, unsigned flags, uint32_t name, uint32_t seq,
		int64_t at_ns, uint64_t bytes)
{
	struct event ev = { .tick = (uint64_t)at_ns, .kind = (uint16_t)kind, .flags = (uint16_t)flags,
			    .name = name, .a = event_a(EVENT_STEP_UNKNOWN, seq), .b = bytes };

	assert_int_equal(core_events(b->core, process, 0, ++b->chunk, &ev, 1), 0);
}

static void call(struct bed *b, uint32_t process, enum event_op op, uint32_t seq, int64_t from_ns, int64_t to_ns,
		 uint64_t bytes)
{
	unsigned flags = event_coll_flags(op, DTYPE_F32);

	say(b, process, EVENT_COLL_BEGIN, flags, 1, seq, from_ns, bytes);
	say(b, process, EVENT_COLL_END, flags, 1, seq, to_ns, bytes);
}

/* The last word on it; its arrivals by rank. */
static const struct fact_collective *get(const struct bed *b, uint64_t seq, const struct fact_arrival **ret)
{
	for (size_t i = b->facts.collectives.n; i-- > 0;)
		if (b->facts.collectives.v[i].seq == seq) {
			*ret = &b->facts.arrivals.v[b->facts.collectives.v[i].first_arrival_index];
			return &b->facts.collectives.v[i];
		}
	fail();
	return NULL;
}

static const struct fact_comm_class *class_of(const struct bed *b, uint8_t op, int64_t group)
{
	for (size_t i = b->facts.comm_classes.n; i-- > 0;)
		if (b->facts.comm_classes.v[i].op == op && b->facts.comm_classes.v[i].group == group)
			return &b->facts.comm_classes.v[i];
	return NULL;
}

static void finish(struct bed *b)
{
	assert_int_equal(core_finish(b->core, (fleet_time){ OFFSET + 100000 * MS }), 0);
}

static void the_longest_call_is_the_one_that_waited(void **state)
{
	const struct fact_arrival *a = NULL;
	struct bed b;

	(void)state;
	start(&b, 3, 1);
	call(&b, 0, OP_ALL_REDUCE, 0, 1 * MS, 9 * MS, 64);
	call(&b, 1, OP_ALL_REDUCE, 0, 3 * MS, 9 * MS, 64);
	call(&b, 2, OP_ALL_REDUCE, 0, 5 * MS, 10 * MS, 64);
	assert_false(get(&b, 0, &a)->gap);
	assert_int_equal(a[0].wait_ns, 4 * MS);
	assert_int_equal(a[1].wait_ns, 2 * MS);
	assert_int_equal(a[2].wait_ns, 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(a[i].wait_err_ns, 0);
	stop(&b);
}

static void who_leaves_a_broadcast_before_the_last_comes_did_not_wait_for_it(void **state)
{
	const struct fact_arrival *a = NULL;
	struct bed b;

	(void)state;
	start(&b, 2, 1);
	call(&b, 0, OP_BROADCAST, 0, 1 * MS, 2 * MS, 64);
	call(&b, 1, OP_BROADCAST, 0, 5 * MS, 6 * MS, 64);
	get(&b, 0, &a);
	assert_true(a[0].wait_ns == FACT_NONE);
	assert_int_equal(a[1].wait_ns, 0);
	stop(&b);
}

/* As traces of some trainers are: work ends at its own time, the collective begins at
 * once everywhere. */
static void waits_before_a_common_begin_are_charged_to_who_was_ready_last(void **state)
{
	const struct fact_collective *c;
	const struct fact_arrival *a = NULL;
	struct bed b;

	(void)state;
	start(&b, 3, 1);
	for (uint32_t seq = 0; seq < 5; seq++) {
		int64_t at_ns = (10 + 20 * (int64_t)seq) * MS;

		for (uint32_t r = 0; r < 3; r++) {
			int64_t ready_ns = at_ns - (r == 1 ? 1 : 4 + r) * MS;

			say(&b, r, EVENT_KERNEL_BEGIN, 0, 0, seq, ready_ns - MS, 0);
			say(&b, r, EVENT_KERNEL_END, 0, 0, seq, ready_ns, 0);
			call(&b, r, OP_ALL_REDUCE, seq, at_ns, at_ns + 2 * MS, 64);
		}
	}
	assert_false(get(&b, 0, &a)->gap); /* might be chance */
	c = get(&b, 4, &a);
	assert_true(c->gap);
	assert_true(c->decided);
	assert_int_equal(c->last_rank, 1);
	assert_int_equal(c->skew_ns, 5 * MS);
	assert_int_equal(a[0].wait_ns, 3 * MS);
	assert_int_equal(a[1].wait_ns, 0);
	assert_int_equal(a[2].wait_ns, 5 * MS);
	finish(&b);
	/* 8 ms of the last calls' gaps, beside 6 ms inside each. */
	assert_true(class_of(&b, OP_ALL_REDUCE, -1)->wait_ns == 8e6 * 2);
	assert_true(class_of(&b, OP_ALL_REDUCE, -1)->inside_ns == 5 * 6e6 + 2 * 8e6);
	stop(&b);
}

static void a_common_begin_after_common_work_has_no_gaps(void **state)
{
	const struct fact_arrival *a = NULL;
	struct bed b;

	(void)state;
	start(&b, 2, 1);
	for (uint32_t seq = 0; seq < 6; seq++)
		for (uint32_t r = 0; r < 2; r++) {
			int64_t at_ns = (10 + 20 * (int64_t)seq) * MS;

			say(&b, r, EVENT_KERNEL_END, 0, 0, seq, at_ns - 50, 0);
			call(&b, r, OP_ALL_REDUCE, seq, at_ns, at_ns + 2 * MS, 64);
		}
	for (uint32_t seq = 0; seq < 6; seq++) {
		assert_false(get(&b, seq, &a)->gap);
		assert_int_equal(a[0].wait_ns, 0);
	}
	stop(&b);
}

static void a_class_has_transfers_without_waits_whoever_is_late(void **state)
{
	const struct fact_comm_class *c;
	struct bed b;

	(void)state;
	start(&b, 4, 2);
	for (uint32_t seq = 0; seq < 200; seq++)
		for (uint32_t r = 0; r < 4; r++) {
			int64_t at_ns = (10 + 50 * (int64_t)seq) * MS, late_ns = (r == seq % 4 ? 30 : r) * MS;

			/* transfers of 1.00 to 2.99 ms */
			call(&b, r, OP_ALL_REDUCE, seq, at_ns + late_ns,
			     at_ns + 30 * MS + MS + 10000 * (int64_t)seq, 4096);
		}
	finish(&b);
	c = class_of(&b, OP_ALL_REDUCE, -1);
	assert_non_null(c);
	assert_int_equal(c->n, 200);
	assert_int_equal(c->n_ranks, 4);
	assert_int_equal(c->n_hosts, 2);
	assert_int_equal(c->n_groups, 1);
	assert_int_equal(c->size, 12);
	assert_true(c->bytes == 200 * 4096.0);
	assert_int_equal(c->min_ns, MS);
	assert_int_equal(c->max_ns, MS + 10000 * 199);
	assert_in_range(c->p50_ns, 1970000, 2010000);
	assert_in_range(c->p95_ns, 2860000, 2930000);
	assert_in_range(c->p99_ns, 2930000, 2990000);
	/* Three of four wait about 28 of 30 ms. */
	assert_true(c->wait_ns / c->inside_ns > 0.85 && c->wait_ns / c->inside_ns < 0.95);
	assert_non_null(class_of(&b, OP_ALL_REDUCE, 0));
	stop(&b);
}

static void a_message_takes_what_the_later_side_takes(void **state)
{
	const struct fact_comm_class *c;
	struct bed b;

	(void)state;
	start(&b, 2, 1);
	for (uint32_t k = 0; k < 50; k++) {
		int64_t at_ns = (10 + 50 * (int64_t)k) * MS, end_ns = at_ns + 7 * MS;
		unsigned send = event_coll_flags(OP_SEND, 0), recv = event_coll_flags(OP_RECV, 0);

		say(&b, 1, EVENT_COLL_BEGIN, recv, 2, k, at_ns, 500);
		say(&b, 1, EVENT_COLL_END, recv, 2, k, end_ns, 500);
		say(&b, 0, EVENT_COLL_BEGIN, send, 2, k, at_ns + 4 * MS, 500);
		say(&b, 0, EVENT_COLL_END, send, 2, k, end_ns, 500);
	}
	finish(&b);
	c = class_of(&b, OP_SEND, -1);
	assert_non_null(c);
	assert_int_equal(c->n, 50);
	assert_int_equal(c->min_ns, 3 * MS);
	assert_int_equal(c->max_ns, 3 * MS);
	assert_true(c->wait_ns == 50 * 4e6);
	stop(&b);
}

static void record(struct bed *b, uint32_t process, int64_t at_ns, const char *category, const char *fields)
{
	assert_int_equal(core_record(b->core, process, (host_time){ at_ns }, category, fields, strlen(fields)), 0);
}

static void copies_count_with_the_call_behind_them_told_early_or_late(void **state)
{
	const struct fact_comm_class *c;
	struct bed b;

	(void)state;
	start(&b, 2, 1);
	record(&b, 0, 9 * MS, "memcpy.bulk", "{\"kind\":\"d2d\",\"bytes\":1000,\"layout\":\"nhwc\"}");
	for (uint32_t seq = 0; seq < 2; seq++)
		for (uint32_t r = 0; r < 2; r++)
			call(&b, r, seq ? OP_ALL_GATHER : OP_ALL_REDUCE, seq, (10 + 20 * (int64_t)seq) * MS,
			     (12 + 20 * (int64_t)seq) * MS, 4096);
	record(&b, 1, 25 * MS, "memcpy.bulk", "{\"kind\":\"d2d\",\"bytes\":7}");
	record(&b, 1, 9000 * MS, "memcpy.bulk", "{\"kind\":\"d2d\",\"bytes\":9}");
	finish(&b);
	c = class_of(&b, OP_ALL_REDUCE, -1);
	assert_int_equal(c->n_copies, 1);
	assert_int_equal(c->copy_bytes, 1000);
	assert_int_equal(c->n_layouts, 1);
	c = class_of(&b, OP_ALL_GATHER, -1);
	assert_int_equal(c->n_copies, 1);
	assert_int_equal(c->copy_bytes, 7);
	assert_int_equal(c->n_layouts, 0);
	stop(&b);
}

static void the_peak_is_that_of_the_link_that_the_group_uses(void **state)
{
	struct bed b;

	(void)state;
	start(&b, 2, 1);
	record(&b, 0, 0, "topo.link", "{\"kind\":\"pcie\",\"width\":16,\"speed\":16}");
	record(&b, 0, 0, "topo.link", "{\"kind\":\"nvlink\",\"width\":4,\"speed\":25}");
	record(&b, 0, 0, "ib.port", "{\"dev\":\"ib0\",\"speed\":400}");
	for (uint32_t r = 0; r < 2; r++)
		call(&b, r, OP_ALL_REDUCE, 0, 10 * MS, 12 * MS, 4096);
	finish(&b);
	assert_true(class_of(&b, OP_ALL_REDUCE, -1)->peak_gbs == 100);
	stop(&b);
}

/* ---- a large job with its truth ---- */

struct truth {
	char group[24];
	uint64_t seq;
	int64_t last_ns, end_ns;
};

static struct truth *truths;
static size_t n_truths, n_truths_alloc;

static void on_call(void *arg, const char *group, uint64_t seq, int32_t last_rank, int64_t first_ns, int64_t last_ns,
		    int64_t end_ns)
{
	(void)arg;
	(void)last_rank;
	(void)first_ns;
	assert_true(facts_reserve((void **)&truths, &n_truths, &n_truths_alloc, sizeof *truths));
	snprintf(truths[n_truths - 1].group, sizeof truths->group, "%s", group);
	truths[n_truths - 1].seq = seq;
	truths[n_truths - 1].last_ns = last_ns;
	truths[n_truths - 1].end_ns = end_ns;
}

static int by_call(const void *a, const void *b)
{
	const struct truth *x = a, *y = b;
	int r = strcmp(x->group, y->group);

	return r ? r : (x->seq > y->seq) - (x->seq < y->seq);
}

static const char *group_name(const struct facts *f, uint32_t group)
{
	for (size_t i = f->groups.n; i-- > 0;)
		if (f->groups.v[i].group == group)
			return f->groups.v[i].name;
	return "?";
}

/* The truth of each transfer lies within the error that is stated for it. */
static void check_split(const struct facts *f, bool exact, size_t *ret_bounded)
{
	*ret_bounded = 0;
	qsort(truths, n_truths, sizeof *truths, by_call);
	for (size_t i = 0; i < f->collectives.n; i++) {
		const struct fact_collective *c = &f->collectives.v[i];
		struct truth key = { .seq = c->seq }, *t;

		snprintf(key.group, sizeof key.group, "%s", group_name(f, c->group));
		t = bsearch(&key, truths, n_truths, sizeof *truths, by_call);
		for (size_t k = 0; t && c->n_seen == c->n_expected && k < c->n_seen; k++) {
			const struct fact_arrival *a = &f->arrivals.v[c->first_arrival_index + k];
			int64_t off_ns = a->exit_ns - a->enter_ns - a->wait_ns - (t->end_ns - t->last_ns);

			if (a->exit_ns == FACT_NONE || a->wait_err_ns == FACT_UNBOUNDED)
				continue;
			++*ret_bounded;
			assert_true(llabs(off_ns) <= (exact ? 0 : a->wait_err_ns));
		}
	}
}

static void transfers_of_a_large_job_are_the_truth_within_their_error(void **state)
{
	(void)state;
	for (int64_t offset_ns = 0; offset_ns <= 50 * MS; offset_ns += 50 * MS) {
		struct large_config cfg = { .dp = 4, .pp = 2, .tp = 4, .n_calls = 40, .n_micro = 4,
					    .compute_ns = 2 * MS, .transfer_ns = MS / 4, .noise = 0.05, .seed = 5,
					    .device = true, .max_offset_ns = offset_ns, .on_call = on_call };
		struct large_step step;
		struct facts facts;
		struct core *core;
		struct large *l;
		size_t n_bounded;

		n_truths = 0;
		facts_init(&facts);
		assert_int_equal(large_new(&l, &cfg), 0);
		assert_int_equal(core_new(&core, NULL, &facts), 0);
		assert_int_equal(large_introduce(l, core), 0);
		for (int i = 0; i < 12; i++) {
			assert_int_equal(large_next(l, &step), 0);
			assert_int_equal(large_feed(l, core), 0);
		}
		assert_int_equal(core_finish(core, (fleet_time){ step.end_ns + 60000 * MS }), 0);
		check_split(&facts, offset_ns == 0, &n_bounded);
		assert_true(n_bounded > 4000);
		core_free(core);
		large_free(l);
		facts_fini(&facts);
	}
	free(truths);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_longest_call_is_the_one_that_waited),
		cmocka_unit_test(who_leaves_a_broadcast_before_the_last_comes_did_not_wait_for_it),
		cmocka_unit_test(waits_before_a_common_begin_are_charged_to_who_was_ready_last),
		cmocka_unit_test(a_common_begin_after_common_work_has_no_gaps),
		cmocka_unit_test(a_class_has_transfers_without_waits_whoever_is_late),
		cmocka_unit_test(a_message_takes_what_the_later_side_takes),
		cmocka_unit_test(copies_count_with_the_call_behind_them_told_early_or_late),
		cmocka_unit_test(the_peak_is_that_of_the_link_that_the_group_uses),
		cmocka_unit_test(transfers_of_a_large_job_are_the_truth_within_their_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
