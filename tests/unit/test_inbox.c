#include "unit.h"

#include "../../collector/inbox.h"
#include "../../proto/frame.h"

#include <nng/nng.h>
#include <nng/protocol/reqrep0/req.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct world {
	uv_loop_t loop;
	struct inbox *inbox;
	nng_socket control, data;
	struct inbox_msg *got[64];
	unsigned n_got, n_control, n_turns;
	bool echo_data;
	char url[100], folder[64];
} w;

static void on_deliver(void *arg, struct inbox_msg *m)
{
	(void)arg;
	if (m->control) {
		w.n_control++;
		inbox_reply(w.inbox, m, m->data, m->n_bytes);
	} else if (w.echo_data) {
		inbox_reply(w.inbox, m, m->data, m->n_bytes);
	} else {
		w.got[w.n_got++] = m;
	}
}
static void on_turn_over(void *arg)
{
	(void)arg;
	w.n_turns++;
}

static int set_up(void **state)
{
	char data_url[120];

	(void)state;
	memset(&w, 0, sizeof w);
	strcpy(w.folder, "/tmp/syncline-inbox-XXXXXX");
	assert_non_null(mkdtemp(w.folder));
	snprintf(w.url, sizeof w.url, "ipc://%s/s", w.folder);
	uv_loop_init(&w.loop);
	assert_int_equal(inbox_open(&w.inbox, &(struct inbox_config){
						      .loop = &w.loop, .url = w.url, .n_data = 4,
						      .n_control = 2, .deliver = on_deliver,
						      .turn_over = on_turn_over }),
			 0);
	inbox_start(w.inbox);
	assert_int_equal(frame_data_url(w.url, data_url, sizeof data_url), 0);
	assert_int_equal(nng_req0_open(&w.control), 0);
	assert_int_equal(nng_req0_open(&w.data), 0);
	nng_socket_set_ms(w.data, NNG_OPT_RECONNMINT, 5);
	assert_int_equal(nng_dial(w.control, w.url, NULL, 0), 0);
	assert_int_equal(nng_dial(w.data, data_url, NULL, 0), 0);
	return 0;
}

static int tear_down(void **state)
{
	char name[100];

	(void)state;
	nng_close(w.control);
	nng_close(w.data);
	inbox_close(w.inbox);
	uv_run(&w.loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&w.loop), 0);
	snprintf(name, sizeof name, "%s/s", w.folder);
	unlink(name);
	strcat(name, ".data");
	unlink(name);
	rmdir(w.folder);
	return 0;
}

struct call {
	nng_ctx ctx;
	nng_aio *aio;
	bool receiving;
	_Atomic bool done;
	int result;
	size_t n_back;
};

static void on_call(void *arg)
{
	struct call *c = arg;
	int r = nng_aio_result(c->aio);

	if (r == 0 && !c->receiving) {
		c->receiving = true;
		nng_aio_set_msg(c->aio, NULL);
		nng_ctx_recv(c->ctx, c->aio);
		return;
	}
	if (r == 0) {
		c->n_back = nng_msg_len(nng_aio_get_msg(c->aio));
		nng_msg_free(nng_aio_get_msg(c->aio));
	} else if (!c->receiving) {
		nng_msg_free(nng_aio_get_msg(c->aio));
	}
	c->result = r;
	c->done = true;
}

static void call(struct call *c, nng_socket s, size_t n, int timeout_ms)
{
	nng_msg *m;

	memset(c, 0, sizeof *c);
	assert_int_equal(nng_ctx_open(&c->ctx, s), 0);
	assert_int_equal(nng_aio_alloc(&c->aio, on_call, c), 0);
	nng_aio_set_timeout(c->aio, timeout_ms);
	assert_int_equal(nng_msg_alloc(&m, n), 0);
	memset(nng_msg_body(m), 'x', n);
	nng_aio_set_msg(c->aio, m);
	nng_ctx_send(c->ctx, c->aio);
}

static void end_call(struct call *c)
{
	nng_aio_stop(c->aio);
	nng_ctx_close(c->ctx);
	nng_aio_free(c->aio);
}

static void run_until(struct call *c)
{
	while (!c->done)
		uv_run(&w.loop, UV_RUN_NOWAIT);
}

static void test_a_request_is_answered_with_what_the_loop_says(void **state)
{
	struct call c;

	(void)state;
	call(&c, w.control, 100, 5000);
	run_until(&c);
	assert_int_equal(c.result, 0);
	assert_int_equal(c.n_back, 100);
	assert_int_equal(w.n_control, 1);
	end_call(&c);
}

static void test_with_all_places_taken_data_waits_and_control_does_not(void **state)
{
	struct call data[6], control;

	(void)state;
	for (int i = 0; i < 6; i++)
		call(&data[i], w.data, 10, 20000);
	while (w.n_got < 4)
		uv_run(&w.loop, UV_RUN_NOWAIT);
	assert_int_equal(inbox_n_free(w.inbox), 0);
	call(&control, w.control, 10, 5000);
	run_until(&control);
	assert_int_equal(control.result, 0);
	assert_int_equal(w.n_got, 4); /* the other two are not even received */
	for (int i = 0; i < 6; i++) {
		while (w.n_got <= (unsigned)i)
			uv_run(&w.loop, UV_RUN_NOWAIT);
		inbox_reply(w.inbox, w.got[i], "ok", 2);
	}
	for (int i = 0; i < 6; i++) {
		run_until(&data[i]);
		assert_int_equal(data[i].result, 0);
		end_call(&data[i]);
	}
	assert_int_equal(inbox_n_free(w.inbox), 4);
	end_call(&control);
}

static void test_a_message_taken_back_is_sent_again_by_its_peer(void **state)
{
	struct call c;

	(void)state;
	nng_socket_set_ms(w.data, NNG_OPT_REQ_RESENDTIME, 20);
	call(&c, w.data, 10, 20000);
	while (w.n_got < 1)
		uv_run(&w.loop, UV_RUN_NOWAIT);
	w.echo_data = true;
	inbox_drop(w.inbox, w.got[0]);
	run_until(&c);
	assert_int_equal(c.result, 0);
	end_call(&c);
}

/* Reads until the peer closes; the number of bytes that came. */
static size_t read_to_end(int fd)
{
	char buf[64];
	size_t n = 0;
	ssize_t r;

	while ((r = read(fd, buf, sizeof buf)) > 0)
		n += (size_t)r;
	return n;
}

static void test_a_forged_length_ends_its_connection_before_a_byte_of_it_is_taken(void **state)
{
	static const unsigned char greeting[8] = { 0, 'S', 'P', 0, 0, 0x30, 0, 0 };
	/* ipc: a one, then the length: one more than the limit. */
	static const unsigned char head[9] = { 1, 0, 0, 0, 0, 0, 0x10, 0, 1 };
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	struct call small;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	snprintf(at.sun_path, sizeof at.sun_path, "%s/s.data", w.folder);
	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
	assert_int_equal(write(fd, greeting, sizeof greeting), sizeof greeting);
	assert_int_equal(write(fd, head, sizeof head), sizeof head);
	assert_int_equal(read_to_end(fd), sizeof greeting); /* theirs, then the end */
	close(fd);
	w.echo_data = true;
	call(&small, w.data, 1000, 20000);
	run_until(&small);
	assert_int_equal(small.result, 0);
	end_call(&small);
}

static void test_after_a_pause_nothing_is_delivered_and_owed_answers_still_leave(void **state)
{
	struct call first, second;

	(void)state;
	call(&first, w.data, 10, 5000);
	while (w.n_got < 1)
		uv_run(&w.loop, UV_RUN_NOWAIT);
	inbox_pause(w.inbox);
	call(&second, w.data, 10, 100);
	while (!second.done)
		uv_run(&w.loop, UV_RUN_NOWAIT);
	assert_int_not_equal(second.result, 0);
	assert_int_equal(w.n_got, 1);
	inbox_reply(w.inbox, w.got[0], "ok", 2);
	inbox_drain(w.inbox, 2000);
	run_until(&first);
	assert_int_equal(first.result, 0);
	end_call(&first);
	end_call(&second);
}

static void test_an_address_in_use_or_wrong_has_its_own_outcome(void **state)
{
	struct inbox_config cfg = { .loop = &w.loop, .deliver = on_deliver, .turn_over = on_turn_over };
	struct inbox *a, *b;
	char why[600];

	(void)state;
	cfg.url = "tcp://127.0.0.1:0";
	assert_int_equal(inbox_open(&a, &cfg), 0);
	cfg.url = inbox_url(a);
	assert_null(strstr(cfg.url, ":0"));
	assert_int_equal(inbox_open(&b, &cfg), INBOX_IN_USE);
	inbox_explain(why, sizeof why, INBOX_IN_USE, cfg.url);
	assert_non_null(strstr(why, "--listen"));
	inbox_close(a);
	cfg.url = "nonsense";
	assert_int_equal(inbox_open(&a, &cfg), INBOX_BAD_URL);
	cfg.url = "tcp://127.0.0.1:99999";
	assert_int_equal(inbox_open(&a, &cfg), INBOX_BAD_URL);
	cfg.url = "ipc:///nowhere/at/all";
	assert_int_equal(inbox_open(&a, &cfg), INBOX_DENIED);
}

static void test_only_this_host_s_own_addresses_are_local(void **state)
{
	(void)state;
	assert_true(inbox_is_local("tcp://127.0.0.1:7788"));
	assert_true(inbox_is_local("tcp://127.1.2.3:0"));
	assert_true(inbox_is_local("tcp://[::1]:7788"));
	assert_true(inbox_is_local("tcp://localhost:7788"));
	assert_true(inbox_is_local("ipc:///run/x"));
	assert_false(inbox_is_local("tcp://0.0.0.0:7788"));
	assert_false(inbox_is_local("tcp://127.0.0.1.example.org:7788"));
	assert_false(inbox_is_local("tcp://127.evil.example:7788"));
	assert_false(inbox_is_local("tcp://localhost.example:7788"));
	assert_false(inbox_is_local("tcp://10.0.0.1:7788"));
	assert_false(inbox_is_local("tcp://*:7788"));
	assert_false(inbox_is_local("tcp://:7788"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		T(test_a_request_is_answered_with_what_the_loop_says),
		T(test_with_all_places_taken_data_waits_and_control_does_not),
		T(test_a_message_taken_back_is_sent_again_by_its_peer),
		T(test_a_forged_length_ends_its_connection_before_a_byte_of_it_is_taken),
		T(test_after_a_pause_nothing_is_delivered_and_owed_answers_still_leave),
		T(test_an_address_in_use_or_wrong_has_its_own_outcome),
		cmocka_unit_test(test_only_this_host_s_own_addresses_are_local),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
