#include "unit.h"

#include "../../collector/ingest_internal.h"
#include "../../collector/probes.h"
#include "../../proto/frame.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Agents on hosts with clocks of their own, one network between. No socket, no
 * clock: packets are carried by hand, and every time is known. */
#define RAW0 INT64_C(1000000000000)
#define REAL0 INT64_C(1700000000000000000)
#define HOST_AHEAD INT64_C(5000000000) /* host RAW - collector RAW */
#define SECOND SECOND_NS

static struct world {
	struct core *core;
	struct ingest *ingest;
	struct store_job *jobs[4096];
	unsigned n_jobs;
	struct frame_welcome welcome;
	int64_t now_ns;
	struct ping_key key;
	uint64_t seq;
} w;

static void on_reply(void *arg, struct inbox_msg *m, const void *data, size_t n)
{
	struct frame f;

	(void)arg;
	(void)m;
	assert_non_null(data);
	assert_int_equal(frame_open(&f, data, n), FRAME_OK);
	if (f.type == FRAME_WELCOME)
		w.welcome = f.welcome;
	frame_close(&f);
}
static void on_submit(void *arg, struct store_job *j)
{
	(void)arg;
	w.jobs[w.n_jobs++] = j;
}
static int no_trouble(void *arg)
{
	(void)arg;
	return 0;
}
static unsigned n_free(void *arg)
{
	(void)arg;
	return 60;
}

static void give(const struct frame *f, bool control)
{
	struct frame_buf b = { 0 };
	struct inbox_msg m = { .at_raw_ns = w.now_ns, .control = control };

	assert_int_equal(frame_pack(&b, f), 0);
	m.data = b.data;
	m.n_bytes = b.n_bytes;
	ingest_message(w.ingest, &m, w.now_ns);
	frame_buf_fini(&b);
}

static void say_hello(const char *boot)
{
	struct frame f = { .type = FRAME_HELLO };

	f.hello = (struct frame_hello){ .protocol = 1, .run_id = "job", .host = "far", .boot_id = boot,
					.token = "secret", .version = "1", .time_ns_inode = 5,
					.raw_ns = w.now_ns + HOST_AHEAD, .real_ns = REAL0 };
	memset(f.hello.agent_id, 7, 16);
	give(&f, true);
}

static int set_up(void **state)
{
	(void)state;
	memset(&w, 0, sizeof w);
	w.now_ns = RAW0;
	assert_int_equal(core_new(&w.core, NULL, NULL), 0);
	assert_int_equal(ingest_new(&w.ingest,
				    &(struct ingest_config){
					    .core = w.core, .run_id = "job", .token = "secret",
					    .boot_id = "boot", .time_ns_inode = 5, .raw_ns = RAW0,
					    .real_ns = REAL0, .reply = on_reply, .submit = on_submit,
					    .trouble = no_trouble, .n_free = n_free }),
			 0);
	ingest_set_probe_port(w.ingest, 7788);
	say_hello("another boot");
	assert_int_equal(w.welcome.probe_port, 7788);
	ping_derive_key(&w.key, "secret", w.welcome.stream, w.welcome.probe_secret);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	ingest_free(w.ingest);
	for (unsigned i = 0; i < w.n_jobs; i++)
		job_free(w.jobs[i]);
	core_free(w.core);
	return 0;
}

/* Rows of one kind that the store has been given. */
#define COUNT(ret, field)                                                                      \
	do {                                                                                   \
		(ret) = 0;                                                                     \
		for (unsigned i_ = 0; i_ < w.n_jobs; i_++)                                     \
			(ret) += w.jobs[i_]->field.n;                                          \
	} while (0)
static size_t n_exchanges(void)
{
	size_t n;

	COUNT(n, exchanges);
	return n;
}
static size_t n_steps(void)
{
	size_t n;

	COUNT(n, clock_steps);
	return n;
}
static size_t n_snapshots(void)
{
	size_t n;

	COUNT(n, snapshots);
	return n;
}

static enum probe_outcome send_ping(const struct ping *q, const struct ping_key *key)
{
	uint8_t bytes[PING_BYTES], answer[PING_BYTES];
	enum probe_outcome o;
	struct probe_ref ref;
	struct ping a;

	ping_pack(bytes, q, key);
	o = probes_take(w.ingest, bytes, sizeof bytes, w.now_ns, true, w.now_ns, answer, &ref);
	if (o != PROBE_ANSWER)
		return o;
	assert_int_equal(ping_parse(&a, answer, sizeof answer), PING_OK);
	assert_int_equal(a.kind, PING_ANSWER);
	assert_int_equal(a.seq, q->seq);
	assert_int_equal(ping_verify(answer, &w.key), PING_OK);
	probes_sent(w.ingest, &ref, w.now_ns + 5000, false);
	probes_sent(w.ingest, &ref, w.now_ns + 6000, true);
	return o;
}

/* The next request; there and back are the delays of the one before. */
static enum probe_outcome ping(bool report, int64_t t0_ns, int64_t t3_ns)
{
	struct ping q = { .kind = PING_REQUEST, .stream = w.welcome.stream, .seq = ++w.seq };

	if (report) {
		q.flags = PING_HAS_REPORT | PING_KERNEL_T0 | PING_KERNEL_T3;
		q.report_seq = q.seq - 1;
		q.t0_ns = t0_ns;
		q.t3_ns = t3_ns;
	}
	return send_ping(&q, &w.key);
}

/* One whole exchange that arrives now. */
static void exchange(int64_t there_ns, int64_t back_ns)
{
	int64_t t1 = w.now_ns;

	assert_int_equal(ping(false, 0, 0), PROBE_ANSWER);
	w.now_ns += 100000;
	assert_int_equal(ping(true, t1 - there_ns + HOST_AHEAD, t1 + 6000 + back_ns + HOST_AHEAD),
			 PROBE_ANSWER);
}

static void beat(void)
{
	give(&(struct frame){ .type = FRAME_HEARTBEAT,
			      .heartbeat = { .stream = w.welcome.stream,
					     .probing = { PROBING, w.seq, w.seq, 0 } } },
	     true);
}

static void pass(int64_t ns)
{
	for (int64_t end = w.now_ns + ns; w.now_ns < end;) {
		w.now_ns += 50000000;
		ingest_tick(w.ingest, w.now_ns);
	}
}

static void an_exchange_is_whole_when_its_agent_reports_it(void **state)
{
	struct fleet_point at;
	const struct row_exchange *x = NULL;

	(void)state;
	exchange(20000, 30000);
	assert_int_equal(core_map(w.core, 0, (host_time){ w.now_ns + HOST_AHEAD }, &at), 0);
	/* rtt 50 us, so the bound is half of it and the truth lies inside. */
	assert_in_range(at.err_ns, 24000, 26000);
	assert_true(llabs(at.at.ns - (w.now_ns + REAL0 - RAW0)) <= at.err_ns);
	pass(3 * SECOND);
	for (unsigned i = 0; i < w.n_jobs; i++)
		if (w.jobs[i]->exchanges.n > 0)
			x = &w.jobs[i]->exchanges.v[0];
	assert_non_null(x);
	assert_int_equal(x->way, ROW_WAY_UDP_KERNEL);
	assert_int_equal(x->t2_ns - x->t1_ns, 6000); /* the kernel's word for leaving */
}

static void what_is_forged_or_foreign_gets_no_answer(void **state)
{
	struct ping q = { .kind = PING_REQUEST, .stream = w.welcome.stream, .seq = 1 };
	struct ping_key other = w.key;

	(void)state;
	other.bytes[31] ^= 1;
	assert_int_equal(send_ping(&q, &other), PROBE_FORGED);
	q.stream ^= UINT64_C(1) << 40;
	assert_int_equal(send_ping(&q, &w.key), PROBE_UNKNOWN);
	q.stream = w.welcome.stream;
	q.kind = PING_ANSWER; /* our own answer thrown back at us */
	assert_int_equal(send_ping(&q, &w.key), PROBE_MALFORMED);
	/* None of them used up the number. */
	q.kind = PING_REQUEST;
	assert_int_equal(send_ping(&q, &w.key), PROBE_ANSWER);
}

static void a_repeat_counts_once_and_disorder_does_not_matter(void **state)
{
	static const uint64_t order[] = { 3, 1, 2, 5, 4, 70, 8 };
	struct ping q = { .kind = PING_REQUEST, .stream = w.welcome.stream };

	(void)state;
	for (unsigned i = 0; i < 7; i++) {
		q.seq = order[i];
		assert_int_equal(send_ping(&q, &w.key), PROBE_ANSWER);
		assert_int_equal(send_ping(&q, &w.key), PROBE_REPEATED);
	}
	q.seq = 6; /* 64 before the newest: too old to tell */
	assert_int_equal(send_ping(&q, &w.key), PROBE_REPEATED);
}

static void times_that_cannot_be_are_no_exchange(void **state)
{
	struct fleet_point at;

	(void)state;
	assert_int_equal(ping(false, 0, 0), PROBE_ANSWER);
	/* The whole journey is shorter than we kept the packet. */
	assert_int_equal(ping(true, w.now_ns + HOST_AHEAD, w.now_ns + HOST_AHEAD + 5000), PROBE_ANSWER);
	/* It took hours. */
	assert_int_equal(ping(true, 5, w.now_ns + HOST_AHEAD), PROBE_ANSWER);
	assert_int_equal(core_map(w.core, 0, (host_time){ w.now_ns }, &at), 1);
}

static void an_exchange_around_a_moved_wall_clock_is_dropped(void **state)
{
	uint8_t bytes[PING_BYTES], answer[PING_BYTES];
	struct ping q = { .kind = PING_REQUEST, .stream = w.welcome.stream, .seq = 1 };
	struct probe_ref ref;
	struct fleet_point at;

	(void)state;
	ping_pack(bytes, &q, &w.key);
	assert_int_equal(probes_take(w.ingest, bytes, sizeof bytes, w.now_ns, true, w.now_ns, answer, &ref),
			 PROBE_ANSWER);
	probes_sent(w.ingest, &ref, w.now_ns + 5000, false);
	probes_void(w.ingest, &ref);
	w.seq = 1;
	assert_int_equal(ping(true, w.now_ns + HOST_AHEAD - 20000, w.now_ns + HOST_AHEAD + 20000),
			 PROBE_ANSWER);
	assert_int_equal(core_map(w.core, 0, (host_time){ w.now_ns }, &at), 1);
}

static void the_one_that_wakes_tells_no_time(void **state)
{
	struct ping q = { .kind = PING_REQUEST, .flags = PING_WARM_UP, .stream = w.welcome.stream,
			  .seq = ++w.seq };
	struct fleet_point at;

	(void)state;
	assert_int_equal(send_ping(&q, &w.key), PROBE_ANSWER);
	assert_int_equal(ping(true, w.now_ns + HOST_AHEAD - 20000, w.now_ns + HOST_AHEAD + 30000),
			 PROBE_ANSWER);
	assert_int_equal(core_map(w.core, 0, (host_time){ w.now_ns }, &at), 1);
}

static void of_a_second_the_best_of_each_direction_are_kept(void **state)
{
	uint64_t rng = 3;
	int64_t best_there = INT64_MAX, best_back = INT64_MAX;
	bool has_there = false, has_back = false;
	size_t n;

	(void)state;
	w.now_ns = RAW0 + 500000000;
	for (int i = 0; i < 12; i++) {
		int64_t there = 20000 + (int64_t)(unit_rand(&rng) % 100000);
		int64_t back = 20000 + (int64_t)(unit_rand(&rng) % 100000);

		best_there = there < best_there ? there : best_there;
		best_back = back < best_back ? back : best_back;
		exchange(there, back);
	}
	pass(4 * SECOND);
	n = n_exchanges();
	assert_in_range(n, 1, 2);
	for (unsigned i = 0; i < w.n_jobs; i++)
		for (size_t k = 0; k < w.jobs[i]->exchanges.n; k++) {
			const struct row_exchange *x = &w.jobs[i]->exchanges.v[k];

			has_there |= x->t1_ns - REAL0 + RAW0 - (x->t0_ns - HOST_AHEAD) == best_there;
			has_back |= x->t3_ns - HOST_AHEAD - (x->t2_ns - REAL0 + RAW0) == best_back;
		}
	assert_true(has_there && has_back);
}

static const char *last_why(enum row_way *ret_way)
{
	const char *why = NULL;

	for (unsigned i = 0; i < w.n_jobs; i++)
		for (size_t k = 0; k < w.jobs[i]->clock_paths.n; k++) {
			why = w.jobs[i]->clock_paths.v[k].why;
			*ret_way = w.jobs[i]->clock_paths.v[k].way;
		}
	assert_non_null(why);
	return why;
}

static void lost_probes_are_told_apart_and_the_stream_takes_over(void **state)
{
	enum row_way way;

	(void)state;
	beat();
	pass(SECOND);
	assert_non_null(strstr(last_why(&way), "do not arrive"));
	assert_int_equal(way, ROW_WAY_STREAM);
	exchange(20000, 20000);
	beat();
	pass(SECOND);
	assert_string_equal(last_why(&way), "");
	assert_int_equal(way, ROW_WAY_UDP_KERNEL);
	/* Requests still come, answers are lost: no report. */
	for (int i = 0; i < 40; i++) {
		assert_int_equal(ping(false, 0, 0), PROBE_ANSWER);
		w.now_ns += 100000000;
	}
	beat();
	pass(SECOND);
	assert_non_null(strstr(last_why(&way), "do not get back"));
	assert_int_equal(way, ROW_WAY_STREAM);
	pass(3 * SECOND);
	beat();
	pass(SECOND);
	assert_non_null(strstr(last_why(&way), "do not arrive"));
}

static void a_change_asks_for_more_and_a_calm_clock_for_less(void **state)
{
	(void)state;
	assert_int_equal(ingest_probe_wish(w.ingest, 0, w.now_ns), 12);
	exchange(20000, 20000);
	assert_int_equal(ingest_probe_wish(w.ingest, 0, w.now_ns), 50);
	pass(6 * SECOND);
	assert_int_equal(ingest_probe_wish(w.ingest, 0, w.now_ns), 12);
	pass(60 * SECOND);
	assert_int_equal(ingest_probe_wish(w.ingest, 0, w.now_ns), 2);
}

static void a_host_of_our_own_clock_is_not_probed(void **state)
{
	(void)state;
	say_hello("boot");
	assert_int_equal(w.welcome.probe_port, 0);
}

/* --- agents that probe each other ------------------------------------------ */

/* Many agents on hosts of their own, each with an address of its own. */
static void populate(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct sockaddr_in from = { .sin_family = AF_INET, .sin_addr.s_addr = 1000 + i };
		struct sockaddr_storage at = { 0 };
		struct frame f = { .type = FRAME_HELLO };
		char host[16];

		memcpy(&at, &from, sizeof from);
		snprintf(host, sizeof host, "host%u", i);
		f.hello = (struct frame_hello){ .protocol = 1, .run_id = "job", .host = host,
						.boot_id = host, .token = "secret", .version = "1",
						.raw_ns = 1, .real_ns = REAL0 };
		memset(f.hello.agent_id, (int)i + 10, 16);
		give(&f, true);
		ping_derive_key(&w.key, "secret", w.welcome.stream, w.welcome.probe_secret);
		w.seq = 0;
		assert_int_equal(ping(false, 0, 0), PROBE_ANSWER);
		probes_from(w.ingest, &(struct probe_ref){ i + 1, 1 }, &at);
		w.ingest->peers.agents[i + 1]->probing.peer_port = 5000 + i;
	}
	ingest_tick(w.ingest, w.now_ns);
}

static void each_has_as_many_others_and_is_had_by_as_many(void **state)
{
	unsigned n_of[40] = { 0 };
	struct frame_peer v[FRAME_MAX_PEERS], again[FRAME_MAX_PEERS];

	(void)state;
	assert_int_equal(ingest_set_peers(w.ingest, 3), 0);
	w.now_ns += 10 * SECOND; /* the first one is silent meanwhile and takes no part */
	populate(40);
	for (unsigned i = 1; i <= 40; i++) {
		const struct agent *a = w.ingest->peers.agents[i];

		assert_int_equal(ingest_peers_of(w.ingest, a, v), 3);
		for (unsigned k = 0; k < 3; k++) {
			unsigned other = v[k].port - 5000;

			assert_true(other < 40 && other != i - 1);
			assert_int_equal(v[k].host, w.ingest->peers.agents[other + 1]->host);
			assert_int_equal(v[k].n_address, 4);
			n_of[other]++;
		}
	}
	for (unsigned i = 0; i < 40; i++)
		assert_int_equal(n_of[i], 3);
	/* Others after ten minutes; nobody while none is asked for. */
	ingest_peers_of(w.ingest, w.ingest->peers.agents[5], v);
	w.now_ns += 600 * SECOND;
	for (unsigned i = 1; i <= 40; i++)
		w.ingest->peers.agents[i]->seen_raw_ns = w.now_ns;
	ingest_tick(w.ingest, w.now_ns);
	assert_int_equal(ingest_peers_of(w.ingest, w.ingest->peers.agents[5], again), 3);
	assert_memory_not_equal(v, again, 3 * sizeof *v);
	assert_int_equal(ingest_set_peers(w.ingest, 0), 0);
	assert_int_equal(ingest_peers_of(w.ingest, w.ingest->peers.agents[5], v), 0);
}

static const struct row_peer_exchange *check_of(struct frame_peer_exchange x)
{
	const struct row_peer_exchange *row = NULL;

	ingest_peer_exchange(w.ingest, w.ingest->peers.agents[0], &x);
	ingest_turn_over(w.ingest);
	for (unsigned i = 0; i < w.n_jobs; i++)
		if (w.jobs[i]->peer_exchanges.n > 0)
			row = &w.jobs[i]->peer_exchanges.v[w.jobs[i]->peer_exchanges.n - 1];
	return row;
}

static void what_two_hosts_find_is_held_against_both_bounds(void **state)
{
	const struct row_peer_exchange *row;
	struct frame_peer_exchange x;
	int64_t t;

	(void)state;
	exchange(20000, 20000); /* host 0, placed to 20 us; host 1 is not placed */
	populate(1);
	t = w.now_ns;
	x = (struct frame_peer_exchange){ 1, t + HOST_AHEAD, t + 30000, t + 40000, t + HOST_AHEAD + 70000 };
	row = check_of(x);
	assert_non_null(row);
	assert_true(row->surplus_ns == FACT_NONE && !row->contradicts);
	/* The second host's clock is the collector's RAW: place it, to 20 us. */
	assert_int_equal(core_exchange(w.core, 1, (host_time){ t - 20000 },
				       (fleet_time){ t + REAL0 - RAW0 }, (fleet_time){ t + REAL0 - RAW0 },
				       (host_time){ t + 20000 }), 0);
	row = check_of(x);
	assert_true(llabs(row->surplus_ns) < 1000); /* 30 us each way */
	assert_in_range(row->err_ns, 38000, 45000);
	assert_false(row->contradicts);
	x.t1_ns -= 60000; /* 30 us before it was sent: within what both bounds allow */
	x.t2_ns -= 60000;
	assert_false(check_of(x)->contradicts);
	x.t1_ns -= 60000;
	x.t2_ns -= 60000;
	assert_true(check_of(x)->contradicts);
}

static void what_peers_cannot_have_found_is_left_out(void **state)
{
	struct frame_peer_exchange good = { 1, 1000, 5, 6, 2000 }, x;

	(void)state;
	populate(1);
#define LEFT_OUT(change) do { x = good; change; assert_null(check_of(x)); } while (0)
	LEFT_OUT(x.host = 0); /* oneself */
	LEFT_OUT(x.host = 2);
	LEFT_OUT(x.host = UINT32_MAX);
	LEFT_OUT(x.t2_ns = 4);
	LEFT_OUT(x.t2_ns = 5 + 1001);
	LEFT_OUT(x.t0_ns = -1);
	LEFT_OUT(x.t3_ns = INT64_MAX);
	LEFT_OUT(x.t3_ns = 3 * SECOND);
#undef LEFT_OUT
	assert_non_null(check_of(good));
}

/* --- snapshots ------------------------------------------------------------ */

static uint64_t batch_seq;

static void snapshot(int64_t raw, int64_t mono, int64_t real, int64_t boot)
{
	struct frame_snapshot v = { raw, mono, real, boot, 50, FRAME_NO_TICK, 0 };
	struct frame f = { .type = FRAME_BATCH };

	f.batch = (struct frame_batch){ .stream = w.welcome.stream, .seq = ++batch_seq,
					.n_snapshots = 1, .snapshots = &v };
	memset(f.batch.agent_id, 7, 16);
	give(&f, false);
}

static struct row_clock_step only_step(void)
{
	struct row_clock_step s = { 0 };

	ingest_turn_over(w.ingest);
	assert_int_equal(n_steps(), 1);
	for (unsigned i = 0; i < w.n_jobs; i++)
		if (w.jobs[i]->clock_steps.n > 0)
			s = w.jobs[i]->clock_steps.v[0];
	return s;
}

static void a_step_of_the_wall_clock_is_known_exactly(void **state)
{
	int64_t steps[] = { -1, -3000000, 5000, SECOND * 86400 * 365 };

	for (unsigned i = 0; i < 4; i++) {
		int64_t r = RAW0;

		batch_seq = 0;
		if (i > 0)
			set_up(state);
		/* NTP slews by 40 ppm meanwhile: MONOTONIC and REALTIME alike. */
		snapshot(r, r + 7, REAL0, r + 7);
		snapshot(r + SECOND, r + 7 + SECOND + 40000, REAL0 + SECOND + 40000, r + 7 + SECOND + 40000);
		snapshot(r + 2 * SECOND, r + 7 + 2 * SECOND + 80000,
			 REAL0 + 2 * SECOND + 80000 + steps[i] + 30, r + 7 + 2 * SECOND + 80000);
		ingest_turn_over(w.ingest);
		if (llabs(steps[i]) < 1000) {
			assert_int_equal(n_steps(), 0);
		} else {
			struct row_clock_step s = only_step();

			assert_string_equal(s.kind, "wall");
			assert_true(llabs(s.step_ns - steps[i]) <= s.err_ns);
			assert_true(s.err_ns <= 200);
			assert_int_equal(s.from_ns, r + SECOND);
		}
		assert_int_equal(n_snapshots(), 3);
		if (i < 3)
			tear_down(state);
	}
}

static void sleep_is_not_a_step_of_the_wall_clock(void **state)
{
	struct row_clock_step s;
	int64_t slept = 30 * SECOND;

	(void)state;
	batch_seq = 0;
	snapshot(RAW0, RAW0, REAL0, RAW0);
	snapshot(RAW0 + SECOND, RAW0 + SECOND, REAL0 + SECOND + slept, RAW0 + SECOND + slept);
	s = only_step();
	assert_string_equal(s.kind, "suspend");
	assert_int_equal(s.step_ns, slept);
}

static void raw_that_leaves_the_other_clocks_is_told(void **state)
{
	struct row_clock_step s;

	(void)state;
	batch_seq = 0;
	snapshot(RAW0, RAW0, REAL0, RAW0);
	snapshot(RAW0 + SECOND + 2000000, RAW0 + SECOND, REAL0 + SECOND, RAW0 + SECOND);
	s = only_step();
	assert_string_equal(s.kind, "raw");
	assert_true(llabs(s.step_ns - 2000000) <= s.err_ns);
	assert_true(s.err_ns < 700000);
}

static void snapshots_that_cannot_be_are_left_out(void **state)
{
	(void)state;
	batch_seq = 0;
	snapshot(-1, 1, 1, 1);
	snapshot(INT64_MAX, 1, 1, 1);
	snapshot(1, INT64_MIN, 1, 1);
	snapshot(RAW0, RAW0, REAL0, RAW0);
	snapshot(RAW0 - SECOND, 5, 5, 5); /* all of them ran back: no time between them is known */
	snapshot(RAW0, SECOND + 5, SECOND + 5, SECOND + 5);
	ingest_turn_over(w.ingest);
	assert_int_equal(n_snapshots(), 3);
	assert_int_equal(n_steps(), 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	static const struct CMUnitTest tests[] = {
		T(an_exchange_is_whole_when_its_agent_reports_it),
		T(what_is_forged_or_foreign_gets_no_answer),
		T(a_repeat_counts_once_and_disorder_does_not_matter),
		T(times_that_cannot_be_are_no_exchange),
		T(an_exchange_around_a_moved_wall_clock_is_dropped),
		T(the_one_that_wakes_tells_no_time),
		T(of_a_second_the_best_of_each_direction_are_kept),
		T(lost_probes_are_told_apart_and_the_stream_takes_over),
		T(a_change_asks_for_more_and_a_calm_clock_for_less),
		T(a_host_of_our_own_clock_is_not_probed),
		T(each_has_as_many_others_and_is_had_by_as_many),
		T(what_two_hosts_find_is_held_against_both_bounds),
		T(what_peers_cannot_have_found_is_left_out),
		T(a_step_of_the_wall_clock_is_known_exactly),
		T(sleep_is_not_a_step_of_the_wall_clock),
		T(raw_that_leaves_the_other_clocks_is_told),
		T(snapshots_that_cannot_be_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
