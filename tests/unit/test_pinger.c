#include "unit.h"

#include "../../agent/sidecar/clock.h"
#include "../../agent/sidecar/mesh.h"
#include "../../agent/sidecar/pinger.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The collector's end is this test: it takes the packets of a train when the train
 * is over and answers as it likes. Both ends have one clock, so order is certain. */
#define STREAM 42
static const uint8_t secret[PING_SECRET_BYTES] = { 9 };

static struct pinger p;
static struct sockaddr_in to;
static struct ping_key key;
static int fd;
static struct sockaddr_in from;

static int set_up(void **state)
{
	socklen_t n = sizeof to;
	struct sockaddr_storage peer = { 0 };

	(void)state;
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	to = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	assert_int_equal(bind(fd, (struct sockaddr *)&to, sizeof to), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&to, &n), 0);
	memcpy(&peer, &to, sizeof to);
	pinger_init(&p);
	pinger_aim(&p, PINGER_COLLECTOR, &peer, ntohs(to.sin_port), STREAM, "token", secret);
	assert_int_equal(p.state, PROBING);
	ping_derive_key(&key, "token", STREAM, secret);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	pinger_stop(&p);
	close(fd);
	return 0;
}

/* What has come; a train has five at most. */
static unsigned take(struct ping v[16])
{
	unsigned n = 0;

	for (;;) {
		uint8_t data[PING_BYTES + 1];
		socklen_t n_from = sizeof from;
		ssize_t n_bytes = recvfrom(fd, data, sizeof data, MSG_DONTWAIT,
					   (struct sockaddr *)&from, &n_from);

		if (n_bytes < 0)
			return n;
		assert_int_equal(ping_parse(&v[n], data, (size_t)n_bytes), PING_OK);
		assert_int_equal(ping_verify(data, &key), PING_OK);
		n++;
	}
}

static unsigned train(struct ping v[16])
{
	p.due_ns = 0;
	pinger_tick(&p);
	return take(v);
}

static void answer(uint64_t seq, uint8_t wish, const struct ping_key *with)
{
	struct ping a = { .kind = PING_ANSWER, .stream = STREAM, .seq = seq, .wish = wish };
	uint8_t data[PING_BYTES];

	ping_pack(data, &a, with);
	assert_int_equal(sendto(fd, data, sizeof data, 0, (struct sockaddr *)&from, sizeof from),
			 sizeof data);
}

static void a_train_wakes_and_then_counts(void **state)
{
	struct ping v[16];

	(void)state;
	assert_int_equal(train(v), 5);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(v[i].seq, i + 1);
		assert_int_equal(v[i].flags, i == 0 ? PING_WARM_UP : 0);
	}
	/* Not again at once. */
	pinger_tick(&p);
	assert_int_equal(take(v), 0);
	assert_true(pinger_due_in_ns(&p) > 0 && pinger_due_in_ns(&p) < 200000000);
}

static void what_it_reports_bounds_what_happened(void **state)
{
	int64_t before[8], got[8], gave[8], after;
	struct ping v[16], w[16];
	unsigned n_kernel = 0;

	(void)state;
	for (unsigned round = 0; round < 20; round++) {
		unsigned n;

		before[0] = clock_true_raw();
		assert_int_equal(train(v), 5);
		for (unsigned i = 0; i < 5; i++) {
			got[i] = clock_true_raw();
			gave[i] = clock_true_raw();
			answer(v[i].seq, 12, &key);
		}
		pinger_receive(&p);
		after = clock_true_raw();
		n = train(w);
		assert_int_equal(n, 5);
		for (unsigned i = 0; i < n; i++) {
			unsigned k = (unsigned)(w[i].report_seq - v[0].seq);

			assert_true(w[i].flags & PING_HAS_REPORT);
			assert_in_range(k, 0, 4);
			/* Sent before we had it and not before the train, received after we gave it. */
			assert_true(w[i].t0_ns <= got[k] && w[i].t0_ns >= before[0] - 1000);
			assert_true(w[i].t3_ns >= gave[k] - 1000 && w[i].t3_ns <= after + 1000);
			n_kernel += (w[i].flags & PING_KERNEL_T0) && (w[i].flags & PING_KERNEL_T3);
			answer(w[i].seq, 12, &key);
		}
		pinger_receive(&p);
	}
	/* The loopback device has software stamps wherever Linux has. */
	assert_true(!p.kernel || n_kernel > 0);
}

/* The wall clock is set between a train and its answers: no stamp of it can be placed. */
static void a_moved_wall_clock_drops_what_it_touched(void **state)
{
	struct ping v[16];

	(void)state;
	if (!p.kernel)
		skip();
	for (int forward = 0; forward < 2; forward++) {
		assert_int_equal(train(v), 5);
		p.n_reports = 0; /* of before: a train may leave one for the next */
		for (unsigned i = 0; i < STAMP_N_BRACKETS; i++) /* then it showed another time */
			p.line.v[i].real_ns += forward ? -3000000 : 3000000;
		for (unsigned i = 0; i < 5; i++)
			answer(v[i].seq, 12, &key);
		pinger_receive(&p);
		assert_int_equal(p.n_answered, 5 * (forward + 1));
		for (unsigned i = 0; i < p.n_reports; i++)
			assert_false(p.reports[(p.first_report + i) % PINGER_N_OUT].flags & PING_KERNEL_T3);
	}
	assert_int_equal(train(v), 5);
	for (unsigned i = 0; i < 5; i++)
		answer(v[i].seq, 12, &key);
	pinger_receive(&p);
	assert_in_range(p.n_reports, 5, 15); /* it goes on */
}

static void only_an_answer_that_is_waited_for_counts_and_once(void **state)
{
	struct ping_key other = { { 1 } };
	struct ping v[16];

	(void)state;
	assert_int_equal(train(v), 5);
	answer(v[1].seq, 12, &other); /* forged */
	answer(v[4].seq + 1, 12, &key); /* to nothing */
	assert_int_equal(sendto(fd, "x", 1, 0, (struct sockaddr *)&from, sizeof from), 1);
	pinger_receive(&p);
	assert_int_equal(p.n_answered, 0);
	assert_int_equal(p.n_refused, 3);
	answer(v[1].seq, 12, &key);
	answer(v[1].seq, 12, &key);
	pinger_receive(&p);
	assert_int_equal(p.n_answered, 1);
	assert_int_equal(p.n_refused, 4);
	p.out[v[2].seq % PINGER_N_OUT].t0_ns -= 2000000000; /* as if it had taken two seconds */
	answer(v[2].seq, 12, &key);
	pinger_receive(&p);
	assert_int_equal(p.n_answered, 1);
	assert_int_equal(p.n_refused, 5);
}

static void it_sends_as_many_as_are_wanted(void **state)
{
	struct ping v[16];

	(void)state;
	p.n_trains = 1000; /* past the start */
	assert_int_equal(train(v), 5);
	answer(v[0].seq, 2, &key);
	pinger_receive(&p);
	assert_int_equal(train(v), 3);
	assert_true(pinger_due_in_ns(&p) > 400000000 && pinger_due_in_ns(&p) < 1600000000);
	answer(v[0].seq, 255, &key); /* more than is sensible */
	pinger_receive(&p);
	assert_int_equal(train(v), 5);
	assert_true(pinger_due_in_ns(&p) > 30000000 && pinger_due_in_ns(&p) < 130000000);
}

static void nobody_there_is_no_path_and_is_tried_more_slowly(void **state)
{
	struct ping v[16];

	(void)state;
	close(fd);
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	train(v); /* the refusal comes back to the next use of the socket */
	p.answered_ns -= INT64_C(6000000000);
	train(v);
	assert_int_equal(p.state, PROBING_NO_PATH);
	assert_int_equal(p.n_answered, 0);
	assert_true(pinger_due_in_ns(&p) > 900000000);
}

static void the_same_welcome_changes_nothing_and_another_begins_anew(void **state)
{
	struct sockaddr_storage peer = { 0 };
	struct ping v[16];
	int was;

	(void)state;
	memcpy(&peer, &to, sizeof to);
	assert_int_equal(train(v), 5);
	was = p.fd;
	pinger_aim(&p, PINGER_COLLECTOR, &peer, ntohs(to.sin_port), STREAM, "token", secret);
	assert_int_equal(p.fd, was);
	assert_int_equal(p.seq, 5);
	pinger_aim(&p, PINGER_COLLECTOR, &peer, ntohs(to.sin_port), STREAM + 1, "token", secret);
	assert_int_equal(p.seq, 0);
	pinger_aim(&p, PINGER_COLLECTOR, NULL, ntohs(to.sin_port), STREAM + 2, "token", secret);
	assert_int_equal(p.fd, -1);
	assert_int_equal(p.state, PROBING_NOT);
	assert_true(pinger_due_in_ns(&p) == INT64_MAX);
}

/* Two agents of one machine, in turn: what they find of each other is in order. */
static void two_agents_find_whole_exchanges_of_each_other(void **state)
{
	static struct mesh one, two;
	static const uint8_t shared[FRAME_SECRET_BYTES] = { 5 };
	struct frame_peer v = { .host = 3, .n_address = 4, .address = { 127, 0, 0, 1 } };
	struct frame_peer_exchange x;
	unsigned n = 0;
	int64_t begin = clock_true_raw();

	(void)state;
	mesh_init(&one);
	mesh_init(&two);
	mesh_aim(&one, AF_INET, 11, "token", shared);
	mesh_aim(&two, AF_INET, 12, "token", shared);
	assert_int_not_equal(two.echo.port, 0);
	v.port = two.echo.port;
	mesh_peers(&one, &v, 1);
	for (unsigned i = 0; i < 10; i++) {
		one.others[0].pinger.due_ns = 0;
		mesh_tick(&one);
		echo_receive(&two.echo); /* three requests, three answers */
		mesh_receive(&one, 1);
		while (mesh_next(&one, &x)) {
			n++;
			assert_int_equal(x.host, 3);
			assert_true(begin - 1000 <= x.t0_ns && x.t0_ns <= x.t1_ns && x.t1_ns <= x.t2_ns &&
				    x.t2_ns <= x.t3_ns);
		}
	}
	/* Two of each train but the newest one, whose answer tells of the one before. */
	assert_in_range(n, 17, 19);
	assert_int_equal(two.echo.n_refused, 0);
	/* Without the shared secret there is no answer. */
	one.echo.secret[0] ^= 1;
	mesh_peers(&one, NULL, 0);
	mesh_peers(&one, &v, 1);
	one.others[0].pinger.due_ns = 0;
	mesh_tick(&one);
	echo_receive(&two.echo);
	mesh_receive(&one, 1);
	assert_int_equal(two.echo.n_refused, 3);
	assert_int_equal(one.others[0].pinger.n_answered, 0);
	mesh_peers(&one, NULL, 0);
	echo_close(&one.echo);
	echo_close(&two.echo);
}

static void an_echo_remembers_so_many_and_forgets_the_oldest(void **state)
{
	static struct echo e;
	static const uint8_t shared[FRAME_SECRET_BYTES] = { 5 };
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	uint8_t data[PING_BYTES];

	(void)state;
	echo_init(&e);
	echo_open(&e, AF_INET, "token", shared);
	at.sin_port = htons(e.port);
	for (uint64_t stream = 1; stream <= 3 * ECHO_N_PEERS; stream++) {
		struct ping q = { .kind = PING_REQUEST, .stream = stream, .seq = 1 }, a;
		struct ping_key k;

		ping_derive_key(&k, "token", stream, shared);
		ping_pack(data, &q, &k);
		for (unsigned twice = 0; twice < 2; twice++) {
			assert_int_equal(sendto(fd, data, sizeof data, 0, (struct sockaddr *)&at, sizeof at),
					 sizeof data);
			echo_receive(&e);
		}
		assert_int_equal(recv(fd, data, sizeof data, MSG_DONTWAIT), PING_BYTES);
		assert_int_equal(ping_parse(&a, data, sizeof data), PING_OK);
		assert_int_equal(ping_verify(data, &k), PING_OK);
		assert_int_equal(a.kind, PING_ANSWER);
		assert_true(recv(fd, data, sizeof data, MSG_DONTWAIT) < 0); /* a repeat gets none */
	}
	assert_int_equal(e.n_answered, 3 * ECHO_N_PEERS);
	assert_int_equal(e.n_refused, 3 * ECHO_N_PEERS);
	echo_close(&e);
}

static void one_snapshot_is_one_instant(void **state)
{
	struct frame_snapshot a = clock_snapshot(FRAME_NO_TICK), b = clock_snapshot(FRAME_NO_TICK);

	(void)state;
	assert_true(b.raw_ns > a.raw_ns && b.half_ns < 1000000);
	/* What lies between two is the same on both clocks, but for the readers' moments. */
	assert_true(llabs((b.mono_ns - a.mono_ns) - (b.raw_ns - a.raw_ns)) <=
		    2 * ((int64_t)a.half_ns + b.half_ns) + 1000);
}

/* Last: it bends the clock of this process for good. */
static void a_test_clock_is_what_its_words_say(void **state)
{
	int64_t raw;

	(void)state;
	assert_false(clock_bend_by("offset"));
	assert_false(clock_bend_by("offset=x"));
	assert_false(clock_bend_by("offset=1;ppb=2"));
	assert_false(clock_bend_by("step=5"));
	assert_false(clock_bend_by("speed=5"));
	assert_false(clock_is_bent());
	assert_true(clock_bend_by("offset=1000,ppb=-2000,origin=5000000000,step=6000000000:70"));
	assert_int_equal(clock_bend(5000000000), 5000001000);
	assert_int_equal(clock_bend(5500000000), 5500001000 - 1000);
	assert_int_equal(clock_bend(6000000000), 6000001000 - 2000 + 70);
	raw = clock_true_raw();
	assert_true(raw_now() - raw >= clock_bend(raw) - raw);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	static const struct CMUnitTest tests[] = {
		T(a_train_wakes_and_then_counts),
		T(what_it_reports_bounds_what_happened),
		T(a_moved_wall_clock_drops_what_it_touched),
		T(only_an_answer_that_is_waited_for_counts_and_once),
		T(it_sends_as_many_as_are_wanted),
		T(nobody_there_is_no_path_and_is_tried_more_slowly),
		T(the_same_welcome_changes_nothing_and_another_begins_anew),
		T(two_agents_find_whole_exchanges_of_each_other),
		T(an_echo_remembers_so_many_and_forgets_the_oldest),
		cmocka_unit_test(one_snapshot_is_one_instant),
		cmocka_unit_test(a_test_clock_is_what_its_words_say),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
