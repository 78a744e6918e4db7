/* The agent's link to a collector, over real sockets. */
#include "unit.h"

#include "../../agent/sidecar/link.h"

#include <nng/nng.h>
#include <nng/protocol/reqrep0/rep.h>
#include <nng/supplemental/util/platform.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)
#define PATIENCE_MS 20000

struct peer {
	char folder[64], url[2][128];
	nng_socket sock[2];
};

static void make_place(struct peer *p)
{
	strcpy(p->folder, "/tmp/syncline-link-XXXXXX");
	assert_non_null(mkdtemp(p->folder));
	for (int i = 0; i < 2; i++)
		snprintf(p->url[i], sizeof p->url[i], "ipc://%s/%d", p->folder, i);
}

static void serve(struct peer *p)
{
	for (int i = 0; i < 2; i++) {
		assert_int_equal(nng_rep0_open(&p->sock[i]), 0);
		assert_int_equal(nng_socket_set_ms(p->sock[i], NNG_OPT_RECVTIMEO, PATIENCE_MS), 0);
		assert_int_equal(nng_listen(p->sock[i], p->url[i], NULL, 0), 0);
	}
}

static void stop(struct peer *p)
{
	for (int i = 0; i < 2; i++)
		nng_close(p->sock[i]);
}

static void clear_place(struct peer *p)
{
	for (int i = 0; i < 2; i++)
		unlink(p->url[i] + strlen("ipc://"));
	assert_int_equal(rmdir(p->folder), 0);
}

static void wait_for(struct link *l, bool connected)
{
	for (int ms = 0; ms < PATIENCE_MS; ms += 10) {
		if (link_connected(l, LINK_CONTROL) == connected && link_connected(l, LINK_DATA) == connected)
			return;
		nng_msleep(10);
	}
	fail_msg("the link did not get %s", connected ? "connected" : "disconnected");
}

/* A request on that channel comes back as it was sent. */
static void assert_answers(struct link *l, struct peer *p, enum link_channel c)
{
	struct pollfd fd = { .fd = link_fd(l), .events = POLLIN };
	struct link_answer a;
	nng_msg *msg;

	assert_int_equal(link_ask(l, c, 7, "hello", 5), 0);
	assert_int_equal(nng_recvmsg(p->sock[c], &msg, 0), 0);
	assert_int_equal(nng_msg_len(msg), 5);
	assert_int_equal(nng_sendmsg(p->sock[c], msg, 0), 0);
	assert_int_equal(poll(&fd, 1, PATIENCE_MS), 1);
	assert_true(link_next(l, &a));
	assert_int_equal(a.channel, c);
	assert_int_equal(a.tag, 7);
	assert_int_equal(a.result, 0);
	assert_memory_equal(a.data, "hello", 5);
	link_answer_free(&a);
}

static void a_link_that_was_dialled_anew_again_and_again_still_connects(void **state)
{
	struct peer p;
	struct link *l;
	unsigned n = 0;

	(void)state;
	make_place(&p);
	assert_int_equal(link_open(&l, p.url[0], p.url[1], 2), 0);
	/* Nobody is there for an hour. */
	for (int64_t s = 1; s < 3600; s++)
		n += link_tend(l, s * SECOND);
	assert_in_range(n, 2 * 300, 2 * 360); /* both channels, each ten seconds or a little later */
	assert_false(link_connected(l, LINK_CONTROL));
	serve(&p);
	wait_for(l, true);
	assert_answers(l, &p, LINK_CONTROL);
	assert_answers(l, &p, LINK_DATA);
	link_close(l);
	stop(&p);
	clear_place(&p);
}

static void a_connection_that_lives_is_left_alone(void **state)
{
	struct peer p;
	struct link *l;

	(void)state;
	make_place(&p);
	serve(&p);
	assert_int_equal(link_open(&l, p.url[0], p.url[1], 2), 0);
	wait_for(l, true);
	for (int64_t s = 1; s < 3600; s++) {
		assert_int_equal(link_tend(l, s * SECOND), 0);
		assert_true(link_connected(l, LINK_CONTROL) && link_connected(l, LINK_DATA));
	}
	assert_answers(l, &p, LINK_DATA);
	link_close(l);
	stop(&p);
	clear_place(&p);
}

static void a_collector_that_comes_back_is_connected_again_each_time(void **state)
{
	struct peer p;
	struct link *l;
	int64_t now_ns = SECOND;

	(void)state;
	make_place(&p);
	assert_int_equal(link_open(&l, p.url[0], p.url[1], 2), 0);
	for (int i = 0; i < 5; i++) {
		serve(&p);
		wait_for(l, true);
		link_tend(l, now_ns += SECOND);
		assert_answers(l, &p, LINK_DATA);
		stop(&p);
		wait_for(l, false);
		for (int s = 0; s < 25; s++)
			link_tend(l, now_ns += SECOND);
	}
	link_close(l);
	clear_place(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_link_that_was_dialled_anew_again_and_again_still_connects),
		cmocka_unit_test(a_connection_that_lives_is_left_alone),
		cmocka_unit_test(a_collector_that_comes_back_is_connected_again_each_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
