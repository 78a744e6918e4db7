#include "unit.h"

#include "../../collector/core.h"
#include "../../collector/ingest.h"
#include "../../proto/chunk.h"
#include "../../proto/frame.h"
#include "../../proto/shm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The collector without sockets and disk: messages go in by hand, jobs and
 * answers come out into arrays. */
static struct world {
	struct core *core;
	struct ingest *ingest;
	struct store_job *jobs[64];
	unsigned n_jobs;
	struct { struct inbox_msg *m; struct frame f; bool dropped; } replies[64];
	unsigned n_replies;
	int trouble;
	int64_t now_ns;
	char said[512];
	struct frame_buf bufs[64];
	struct inbox_msg msgs[64];
	unsigned n_msgs;
	unsigned char *kept[64]; /* bytes of replies, which their frames borrow */
	unsigned n_kept;
} w;

#define RAW0 INT64_C(1000000000000)
#define REAL0 INT64_C(1700000000000000000)

static void on_reply(void *arg, struct inbox_msg *m, const void *data, size_t n)
{
	(void)arg;
	assert_true(w.n_replies < 64);
	w.replies[w.n_replies].m = m;
	w.replies[w.n_replies].dropped = data == NULL;
	if (data) {
		unsigned char *copy = malloc(n);

		memcpy(copy, data, n);
		w.kept[w.n_kept++] = copy;
		assert_int_equal(frame_open(&w.replies[w.n_replies].f, copy, n), FRAME_OK);
	}
	w.n_replies++;
}
static void on_submit(void *arg, struct store_job *j)
{
	(void)arg;
	w.jobs[w.n_jobs++] = j;
}
static int on_trouble(void *arg)
{
	(void)arg;
	return w.trouble;
}
static unsigned on_n_free(void *arg)
{
	(void)arg;
	return 60;
}
static void on_say(void *arg, const char *sentence)
{
	(void)arg;
	snprintf(w.said, sizeof w.said, "%s", sentence);
}

static int set_up_with(const char *run_id, const char *token)
{
	memset(&w, 0, sizeof w);
	w.now_ns = RAW0;
	assert_int_equal(core_new(&w.core, NULL, NULL), 0);
	assert_int_equal(ingest_new(&w.ingest,
				    &(struct ingest_config){
					    .core = w.core, .run_id = run_id, .token = token, .level = 2,
					    .boot_id = "boot", .time_ns_inode = 5, .raw_ns = RAW0,
					    .real_ns = REAL0, .reply = on_reply, .submit = on_submit,
					    .trouble = on_trouble, .n_free = on_n_free, .say = on_say }),
			 0);
	return 0;
}

static int set_up(void **state)
{
	(void)state;
	return set_up_with("job", NULL);
}

static int tear_down(void **state)
{
	(void)state;
	for (unsigned i = 0; i < w.n_jobs; i++)
		if (w.jobs[i])
			job_free(w.jobs[i]);
	for (unsigned i = 0; i < w.n_replies; i++)
		if (!w.replies[i].dropped)
			frame_close(&w.replies[i].f);
	for (unsigned i = 0; i < w.n_kept; i++)
		free(w.kept[i]);
	ingest_free(w.ingest);
	core_free(w.core);
	for (unsigned i = 0; i < 64; i++)
		frame_buf_fini(&w.bufs[i]);
	return 0;
}

/* A message by hand; which tells two apart. */
static struct inbox_msg *give_bytes(const void *data, size_t n, bool control)
{
	struct inbox_msg *m = &w.msgs[w.n_msgs];
	struct frame_buf *b = &w.bufs[w.n_msgs++];

	assert_true(w.n_msgs < 64);
	b->data = realloc(b->data, n ? n : 1);
	memcpy(b->data, data, n);
	b->n_bytes = n;
	*m = (struct inbox_msg){ .data = b->data, .n_bytes = n, .at_raw_ns = w.now_ns - 1000,
				 .control = control };
	ingest_message(w.ingest, m, w.now_ns);
	return m;
}

static struct inbox_msg *give(const struct frame *f)
{
	struct frame_buf b = { 0 };
	struct inbox_msg *m;

	assert_int_equal(frame_pack(&b, f), 0);
	m = give_bytes(b.data, b.n_bytes, f->type == FRAME_HELLO || f->type == FRAME_HEARTBEAT);
	frame_buf_fini(&b);
	return m;
}

static const struct frame *last_reply(void)
{
	assert_true(w.n_replies > 0);
	assert_false(w.replies[w.n_replies - 1].dropped);
	return &w.replies[w.n_replies - 1].f;
}

static void expect_refusal(enum frame_refusal code, const char *word)
{
	const struct frame *f = last_reply();

	assert_int_equal(f->type, FRAME_REFUSE);
	assert_int_equal(f->refuse.code, code);
	if (!strstr(f->refuse.text, word))
		fail_msg("'%s' does not say '%s'", f->refuse.text, word);
}

static struct frame_proc rank_proc(uint32_t proc, int32_t rank)
{
	return (struct frame_proc){ .proc = proc, .unique = 100u + (unsigned)rank, .rank = rank,
				    .local_rank = rank, .world_size = 2, .state = PROC_ALIVE,
				    .state_at_ns = w.now_ns, .exit_code = -1, .signal = -1 };
}

static uint64_t hello_as(uint8_t id, const char *host, const char *boot, const struct frame_proc *procs,
			 uint32_t n)
{
	struct frame f = { .type = FRAME_HELLO };

	f.hello = (struct frame_hello){ .protocol = 1, .run_id = "job", .host = host, .boot_id = boot,
					.token = "", .version = "1", .time_ns_inode = 5,
					.raw_ns = 500, .real_ns = REAL0, .n_procs = n, .procs = procs };
	memset(f.hello.agent_id, id, 16);
	give(&f);
	return last_reply()->type == FRAME_WELCOME ? last_reply()->welcome.stream : 0;
}

static uint64_t hello(void)
{
	struct frame_proc p[2] = { rank_proc(0, 0), rank_proc(1, 1) };
	uint64_t stream = hello_as(7, "h", "boot", p, 2);

	assert_int_not_equal(stream, 0);
	return stream;
}

static unsigned char encoded[8][CHUNK_MAX_BYTES(256)];

static struct frame_chunk chunk_at(unsigned slot, uint32_t proc, uint64_t first, size_t n)
{
	struct event ev[256];

	for (size_t i = 0; i < n; i++)
		ev[i] = (struct event){ .tick = (uint64_t)RAW0 + first + i, .kind = EVENT_MARK,
					.b = first + i };
	return (struct frame_chunk){ .proc = proc, .first = first, .data = encoded[slot],
				     .n_bytes = chunk_encode(ev, n, encoded[slot]) };
}

/* Ten events, of which the analysis wants two. */
static struct frame_chunk chunk_of_a_step(unsigned slot, uint32_t proc, uint64_t first)
{
	struct event ev[10];

	for (size_t i = 0; i < 10; i++)
		ev[i] = (struct event){ .tick = (uint64_t)RAW0 + first + i, .kind = EVENT_MARK };
	ev[0].kind = EVENT_STEP_BEGIN;
	ev[9].kind = EVENT_STEP_END;
	return (struct frame_chunk){ .proc = proc, .first = first, .data = encoded[slot],
				     .n_bytes = chunk_encode(ev, 10, encoded[slot]) };
}

static struct inbox_msg *give_batch(uint64_t stream, uint64_t seq, const struct frame_chunk *c,
				    uint32_t n)
{
	struct frame f = { .type = FRAME_BATCH };

	f.batch = (struct frame_batch){ .stream = stream, .seq = seq, .n_chunks = n, .chunks = c };
	memset(f.batch.agent_id, 7, 16);
	return give(&f);
}

static struct store_job *turn_over(void)
{
	unsigned n = w.n_jobs;

	ingest_turn_over(w.ingest);
	return w.n_jobs > n ? w.jobs[w.n_jobs - 1] : NULL;
}

/* The store is done with the newest job. */
static void commit(void)
{
	ingest_done(w.ingest, w.jobs[w.n_jobs - 1]);
	w.jobs[--w.n_jobs] = NULL;
}

static struct ingest_status status(void)
{
	struct ingest_status s;

	ingest_status(w.ingest, w.now_ns, &s);
	return s;
}

/* --- who may speak ------------------------------------------------------- */

static void test_an_unknown_stream_is_told_to_say_hello_and_keeps_its_batch(void **state)
{
	struct frame_chunk c = chunk_at(0, 0, 0, 10);

	(void)state;
	give_batch(4711, 1, &c, 1);
	assert_int_equal(last_reply()->type, FRAME_REHELLO);
	assert_int_equal(last_reply()->rehello.stream, 4711);
	give(&(struct frame){ .type = FRAME_HEARTBEAT, .heartbeat = { .stream = 4711 } });
	assert_int_equal(last_reply()->type, FRAME_REHELLO);
	assert_int_equal(status().n_events, 0);
}

static void test_streams_cannot_be_guessed_from_one_another(void **state)
{
	struct frame_proc p = rank_proc(0, 0);
	uint64_t a = hello_as(1, "h", "boot", &p, 1), b;

	(void)state;
	p = rank_proc(0, 1);
	b = hello_as(2, "h", "boot", &p, 1);
	assert_true((a >> 20) != (b >> 20));
	assert_int_equal(hello_as(1, "h", "boot", NULL, 0), a); /* the same agent keeps its own */
}

static void test_without_the_token_nobody_is_welcome(void **state)
{
	struct frame f = { .type = FRAME_HELLO };

	tear_down(state);
	set_up_with("job", "sesame");
	f.hello = (struct frame_hello){ .protocol = 1, .run_id = "job", .host = "h", .boot_id = "b",
					.token = "", .version = "1" };
	give(&f);
	expect_refusal(REFUSE_TOKEN, "--token-file");
	f.hello.token = "sesam";
	give(&f);
	expect_refusal(REFUSE_TOKEN, "wrong");
	f.hello.token = "sesamesesame";
	give(&f);
	expect_refusal(REFUSE_TOKEN, "wrong");
	f.hello.token = "sesame";
	give(&f);
	assert_int_equal(last_reply()->type, FRAME_WELCOME);
}

static void test_the_first_agent_names_a_run_without_a_name(void **state)
{
	tear_down(state);
	set_up_with(NULL, NULL);
	hello();
	assert_string_equal(ingest_run_id(w.ingest), "job");
	assert_true(turn_over()->run.set);
}

static void test_a_rank_that_lives_elsewhere_is_taken_until_its_agent_is_silent(void **state)
{
	struct frame_proc p = rank_proc(0, 1);

	(void)state;
	hello();
	p.unique = 999;
	assert_int_equal(hello_as(8, "other", "boot2", &p, 1), 0);
	expect_refusal(REFUSE_RANK_TAKEN, "two jobs");
	p.restart_count = 1; /* a restarted rank is no other job */
	assert_int_not_equal(hello_as(8, "other", "boot2", &p, 1), 0);
	p = rank_proc(0, 0);
	p.unique = 998;
	w.now_ns += INT64_C(11000000000); /* its host is gone: nobody holds the rank */
	assert_int_not_equal(hello_as(9, "third", "boot3", &p, 1), 0);
}

static void test_ranks_and_states_that_cannot_be_are_refused(void **state)
{
	struct frame_proc p = rank_proc(0, FACT_MAX_RANKS);

	(void)state;
	assert_int_equal(hello_as(1, "h", "boot", &p, 1), 0);
	assert_int_equal(last_reply()->type, FRAME_REFUSE);
	p = rank_proc(0, 0);
	p.state = 77;
	assert_int_equal(hello_as(1, "h", "boot", &p, 1), 0);
	p = rank_proc(1u << 30, 0);
	assert_int_equal(hello_as(1, "h", "boot", &p, 1), 0);
}

/* --- acknowledgements ---------------------------------------------------- */

static void test_a_batch_is_acknowledged_after_its_commit_and_not_before(void **state)
{
	uint64_t stream = hello();
	struct frame_chunk c = chunk_at(0, 0, 0, 10);
	unsigned n = w.n_replies;
	struct inbox_msg *m = give_batch(stream, 1, &c, 1);
	struct store_job *j = turn_over();

	(void)state;
	assert_int_equal(w.n_replies, n);
	assert_int_equal(j->chunks.n, 1);
	assert_int_equal(j->batches.n, 1);
	assert_int_equal(j->batches.v[0].seq, 1);
	commit();
	assert_int_equal(w.n_replies, n + 1);
	assert_ptr_equal(w.replies[n].m, m);
	assert_int_equal(last_reply()->type, FRAME_ACK);
	assert_int_equal(last_reply()->ack.seq, 1);
}

static void test_a_job_that_was_not_stored_acknowledges_nothing(void **state)
{
	uint64_t stream = hello();
	struct frame_chunk c = chunk_at(0, 0, 0, 10);
	unsigned n = w.n_replies;

	(void)state;
	give_batch(stream, 1, &c, 1);
	turn_over()->failed = true;
	commit();
	assert_int_equal(w.n_replies, n + 1);
	assert_true(w.replies[n].dropped);
}

static void test_a_repeat_is_stored_once_and_answered_after_the_first(void **state)
{
	uint64_t stream = hello();
	struct frame_chunk c = chunk_at(0, 0, 0, 10);
	struct store_job *j;
	unsigned n;

	(void)state;
	give_batch(stream, 1, &c, 1);
	turn_over();
	n = w.n_replies;
	give_batch(stream, 1, &c, 1); /* while the first is on its way to the disk */
	j = turn_over();
	assert_int_equal(j->chunks.n, 0);
	assert_int_equal(j->batches.n, 0);
	assert_int_equal(w.n_replies, n);
	commit(); /* the store keeps the order: both are on the disk now */
	assert_int_equal(last_reply()->type, FRAME_ACK);
	assert_int_equal(status().n_events, 10);
}

static void test_a_full_disk_refuses_batches_and_answers_heartbeats(void **state)
{
	uint64_t stream = hello();
	struct frame_chunk c = chunk_at(0, 0, 0, 10);

	(void)state;
	w.trouble = STORE_FULL;
	give_batch(stream, 1, &c, 1);
	expect_refusal(REFUSE_BUSY, "disk is full");
	give(&(struct frame){ .type = FRAME_HEARTBEAT, .heartbeat = { .stream = stream } });
	assert_int_equal(last_reply()->type, FRAME_BEAT);
	assert_int_equal(last_reply()->beat.credit, 0);
	assert_non_null(strstr(last_reply()->beat.notice, "disk is full"));
	w.trouble = 0;
	give_batch(stream, 1, &c, 1);
	assert_int_equal(turn_over()->chunks.n, 1);
}

/* --- order and losses ---------------------------------------------------- */

static void test_swapped_batches_are_taken_in_their_order(void **state)
{
	uint64_t stream = hello();
	struct frame_chunk c[3] = { chunk_at(0, 0, 0, 10), chunk_at(1, 0, 10, 10),
				    chunk_at(2, 0, 20, 10) };
	struct store_job *j;

	(void)state;
	give_batch(stream, 3, &c[2], 1);
	give_batch(stream, 2, &c[1], 1);
	assert_int_equal(status().n_events, 0);
	give_batch(stream, 1, &c[0], 1);
	j = turn_over();
	assert_int_equal(j->chunks.n, 3);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(j->chunks.v[i].first, 10 * i);
	assert_int_equal(j->rings.n, 1);
	assert_int_equal(j->rings.v[0].hi, 30);
	assert_int_equal(status().n_events_lost, 0);
}

static void heartbeat(uint64_t stream, uint64_t oldest_seq)
{
	give(&(struct frame){ .type = FRAME_HEARTBEAT,
			      .heartbeat = { .stream = stream, .oldest_seq = oldest_seq } });
	ingest_tick(w.ingest, w.now_ns);
}

static void test_a_batch_that_its_agent_still_has_is_waited_for(void **state)
{
	uint64_t stream = hello();
	struct frame_chunk c[3] = { chunk_at(0, 0, 0, 10), chunk_at(1, 0, 10, 10),
				    chunk_at(2, 0, 20, 10) };

	(void)state;
	give_batch(stream, 2, &c[1], 1);
	give_batch(stream, 3, &c[2], 1);
	for (int i = 0; i < 40; i++) { /* its transport repeats it after seconds */
		w.now_ns += INT64_C(250000000);
		heartbeat(stream, 1);
		assert_int_equal(status().n_events, 0);
	}
	give_batch(stream, 1, &c[0], 1);
	assert_int_equal(status().n_events, 30);
	assert_int_equal(status().n_events_lost, 0);
	assert_int_equal(turn_over()->chunks.v[0].first, 0);
}

static void test_a_batch_that_its_agent_gave_up_is_not_waited_for(void **state)
{
	uint64_t stream = hello();
	struct frame_chunk c[2] = { chunk_at(0, 0, 10, 10), chunk_at(1, 0, 30, 10) };

	(void)state;
	give_batch(stream, 2, &c[0], 1);
	assert_int_equal(status().n_events, 0);
	heartbeat(stream, 2);
	assert_int_equal(status().n_events, 10);
	assert_int_equal(status().n_events_lost, 10);
	heartbeat(stream, 5);
	give_batch(stream, 5, &c[1], 1);
	assert_int_equal(status().n_events, 20);
	assert_int_equal(status().n_events_lost, 20);
}

static void test_a_silent_agents_missing_batch_is_waited_for_a_while(void **state)
{
	uint64_t stream = hello();
	struct frame_chunk c[2] = { chunk_at(0, 0, 10, 10), chunk_of_a_step(1, 0, 0) };
	struct core_stats stats;
	unsigned n = w.n_replies;

	(void)state;
	give_batch(stream, 2, &c[0], 1);
	w.now_ns += INT64_C(14900000000);
	ingest_tick(w.ingest, w.now_ns);
	assert_int_equal(status().n_events, 0);
	w.now_ns += INT64_C(200000000);
	ingest_tick(w.ingest, w.now_ns);
	assert_int_equal(status().n_events, 10);
	assert_int_equal(status().n_events_lost, 10);
	assert_int_equal(w.n_replies, n); /* not committed yet */

	/* It comes after all: no loss, but too late for the analysis. */
	give_batch(stream, 1, &c[1], 1);
	assert_int_equal(status().n_events_lost, 0);
	core_stats(w.core, &stats);
	assert_int_equal(stats.n_late_events, 2);
}

static void test_a_hole_is_lost_until_it_is_filled_and_what_fills_it_is_stored(void **state)
{
	uint64_t stream = hello();
	struct frame_chunk c[3] = { chunk_at(0, 0, 0, 10), chunk_at(1, 0, 30, 10),
				    chunk_at(2, 0, 10, 20) };
	struct store_job *j;

	(void)state;
	give_batch(stream, 1, &c[0], 1);
	give_batch(stream, 2, &c[1], 1);
	assert_int_equal(status().n_events_lost, 20);
	turn_over();
	give_batch(stream, 3, &c[2], 1);
	assert_int_equal(status().n_events_lost, 0);
	assert_int_equal(status().n_events, 40);
	j = turn_over();
	assert_int_equal(j->chunks.n, 1);
	assert_int_equal(j->chunks.v[0].first, 10);
	assert_int_equal(j->rings.n, 1);
	assert_true(j->rings.v[0].merged);
	assert_int_equal(j->rings.v[0].lo, 0);
	assert_int_equal(j->rings.v[0].hi, 40);
	assert_int_equal(j->processes.v[0].n_gap, 0);
}

static void test_of_a_chunk_that_overlaps_only_the_new_part_is_stored(void **state)
{
	uint64_t stream = hello();
	struct frame_chunk c[2] = { chunk_at(0, 0, 0, 100), chunk_at(1, 0, 60, 100) };
	struct event ev[256];
	struct store_job *j;
	size_t n;

	(void)state;
	give_batch(stream, 1, &c[0], 1);
	turn_over();
	give_batch(stream, 2, &c[1], 1);
	j = turn_over();
	assert_int_equal(j->chunks.n, 1);
	assert_int_equal(j->chunks.v[0].first, 100);
	assert_int_equal(j->chunks.v[0].n_events, 60);
	assert_int_equal(chunk_decode(j->chunks.v[0].data, j->chunks.v[0].n_bytes, ev, 256, &n), CHUNK_OK);
	assert_int_equal(n, 60);
	assert_int_equal(ev[0].b, 100);
	assert_int_equal(ev[59].b, 159);
	give_batch(stream, 3, &c[0], 1); /* nothing new at all */
	j = turn_over();
	assert_int_equal(j->chunks.n, 0);
	assert_int_equal(status().n_events, 160);
}

static void test_what_the_guest_dropped_is_counted_once(void **state)
{
	struct frame_proc p = rank_proc(0, 0);

	(void)state;
	p.n_dropped = 5;
	p.n_text_dropped = 2;
	hello_as(7, "h", "boot", &p, 1);
	hello_as(7, "h", "boot", &p, 1);
	p.n_dropped = 8;
	hello_as(7, "h", "boot", &p, 1);
	assert_int_equal(status().n_events_lost, 8);
	assert_int_equal(status().n_drops, 10);
}

/* --- hostile bytes ------------------------------------------------------- */

static void test_of_a_batch_with_one_damaged_chunk_nothing_counts(void **state)
{
	uint64_t stream = hello();
	struct frame_chunk c[2] = { chunk_at(0, 0, 0, 10), chunk_at(1, 1, 0, 10) };
	struct store_job *j;

	(void)state;
	turn_over();
	encoded[1][0] ^= 0xff;
	give_batch(stream, 1, c, 2);
	expect_refusal(REFUSE_MALFORMED, "Chunk 1 of 2");
	assert_int_equal(status().n_events, 0);
	j = turn_over(); /* the notice */
	assert_int_equal(j->chunks.n, 0);
	assert_int_equal(j->batches.n, 0);
	assert_int_equal(j->logs.n, 1);
	/* The next one is not held back by it. */
	give_batch(stream, 2, c, 1);
	assert_int_equal(turn_over()->chunks.n, 1);
}

static void test_a_batch_of_another_agent_or_of_nobody_is_refused(void **state)
{
	uint64_t stream = hello();
	struct frame_chunk c = chunk_at(0, 5, 0, 10);
	struct frame f = { .type = FRAME_BATCH };

	(void)state;
	give_batch(stream, 1, &c, 1);
	expect_refusal(REFUSE_MALFORMED, "process 5");
	f.batch = (struct frame_batch){ .stream = stream, .seq = 2 };
	give(&f);
	expect_refusal(REFUSE_MALFORMED, "does not belong");
}

static void test_kinds_of_messages_stay_on_their_connection(void **state)
{
	struct frame f = { .type = FRAME_HELLO };
	struct frame_buf b = { 0 };

	(void)state;
	f.hello = (struct frame_hello){ .run_id = "job", .host = "h", .boot_id = "b", .token = "",
					.version = "1" };
	frame_pack(&b, &f);
	give_bytes(b.data, b.n_bytes, false);
	expect_refusal(REFUSE_MALFORMED, "connection");
	frame_buf_fini(&b);
}

static void test_no_message_that_was_tampered_with_does_harm(void **state)
{
	uint64_t stream = hello(), seed = 1;
	struct frame_chunk c[2] = { chunk_at(0, 0, 0, 100), chunk_at(1, 1, 0, 100) };
	struct frame_name name = { 0, 1, "world", 5 };
	struct frame_text text = { .kind = SHM_TEXT_RECORD, .at_ns = RAW0,
				   .text = "{\"c\":\"meta.group\",\"f\":{\"name\":\"w\",\"ranks\":[0,1]}}" };
	struct frame_gauge gauge = { FRAME_HOST_PROC, RAW0, "cpu", 1 };
	struct frame_proc procs[2] = { rank_proc(0, 0), rank_proc(1, 1) };
	struct frame f = { .type = FRAME_BATCH };
	struct frame_buf b = { 0 };

	(void)state;
	text.n_text = (uint32_t)strlen(text.text);
	f.batch = (struct frame_batch){ .stream = stream, .seq = 1, .n_chunks = 2, .chunks = c,
					.n_names = 1, .names = &name, .n_texts = 1, .texts = &text,
					.n_gauges = 1, .gauges = &gauge, .n_procs = 2, .procs = procs };
	memset(f.batch.agent_id, 7, 16);
	for (int i = 0; i < 20000; i++) {
		unsigned n_flips = 1 + (unsigned)(unit_rand(&seed) % 4);

		f.batch.seq = (uint64_t)i + 1;
		assert_int_equal(frame_pack(&b, &f), 0);
		for (unsigned k = 0; k < n_flips; k++)
			b.data[unit_rand(&seed) % b.n_bytes] = (unsigned char)unit_rand(&seed);
		w.n_msgs = 0;
		give_bytes(b.data, b.n_bytes, false);
		w.now_ns += 16000000000; /* nothing is held for long */
		ingest_tick(w.ingest, w.now_ns);
		ingest_turn_over(w.ingest);
		while (w.n_jobs)
			commit();
		for (unsigned k = 0; k < w.n_replies; k++)
			if (!w.replies[k].dropped)
				frame_close(&w.replies[k].f);
		for (unsigned k = 0; k < w.n_kept; k++)
			free(w.kept[k]);
		w.n_replies = w.n_kept = 0;
	}
	assert_int_equal(ingest_fatal(w.ingest), 0);
	frame_buf_fini(&b);
}

/* --- clocks -------------------------------------------------------------- */

static void beat(uint64_t stream, struct frame_exchange last)
{
	w.now_ns += 250000000;
	give(&(struct frame){ .type = FRAME_HEARTBEAT, .heartbeat = { .stream = stream, .last = last } });
}

static void test_only_an_exchange_that_we_answered_ourselves_counts(void **state)
{
	struct frame_proc p = rank_proc(0, 0);
	uint64_t stream = hello_as(7, "far", "another boot", &p, 1);
	struct frame_exchange x;
	struct store_job *j;

	(void)state;
	turn_over();
	beat(stream, (struct frame_exchange){ 0 });
	x = (struct frame_exchange){ .t0_ns = 1000, .t1_ns = last_reply()->beat.t1_ns,
				     .t2_ns = last_reply()->beat.t2_ns, .t3_ns = 9000 };
	assert_int_equal(x.t1_ns, w.now_ns - 1000);
	assert_int_equal(x.t2_ns, w.now_ns);
	x.t1_ns++;
	beat(stream, x);
	assert_int_equal(status().n_hosts, 1);
	ingest_turn_over(w.ingest);
	x.t1_ns--;
	beat(stream, x);
	ingest_turn_over(w.ingest);
	ingest_tick(w.ingest, w.now_ns + INT64_C(2000000000)); /* its second is over */
	j = w.jobs[w.n_jobs - 1];
	assert_int_equal(j->exchanges.n, 1);
	assert_int_equal(j->exchanges.v[0].t1_ns, x.t1_ns + REAL0 - RAW0);
	assert_int_equal(j->exchanges.v[0].t0_ns, 1000);
	beat(stream, x); /* and only once */
	ingest_tick(w.ingest, w.now_ns + INT64_C(4000000000));
	for (unsigned i = w.n_jobs - 1; w.jobs[i] != j; i--)
		assert_int_equal(w.jobs[i]->exchanges.n, 0);
}

static void test_a_host_of_this_boot_and_time_namespace_needs_no_exchange(void **state)
{
	struct frame_proc p = rank_proc(0, 0);
	struct store_job *j;

	(void)state;
	hello_as(1, "h", "boot", &p, 1);
	p = rank_proc(0, 1);
	hello_as(2, "far", "boot2", &p, 1);
	j = turn_over();
	assert_int_equal(j->hosts.n, 2);
	assert_true(j->hosts.v[0].same_clock);
	assert_int_equal(j->hosts.v[0].offset_ns, REAL0 - RAW0);
	assert_false(j->hosts.v[1].same_clock);
	assert_int_equal(j->hosts.v[1].offset_ns, REAL0 - 500);
}

/* --- texts --------------------------------------------------------------- */

static void give_text(uint64_t stream, uint64_t seq, uint32_t kind, uint32_t level, const char *text)
{
	struct frame_text t = { .proc = 1, .kind = kind, .level = level, .at_ns = RAW0 + 5, .text = text,
				.n_text = (uint32_t)strlen(text) };
	struct frame f = { .type = FRAME_BATCH };

	f.batch = (struct frame_batch){ .stream = stream, .seq = seq, .n_texts = 1, .texts = &t };
	memset(f.batch.agent_id, 7, 16);
	give(&f);
}

static void test_logs_exceptions_and_records_become_rows_of_their_rank(void **state)
{
	uint64_t stream = hello();
	struct store_job *j;

	(void)state;
	turn_over();
	give_text(stream, 1, SHM_TEXT_LOG, 30, "torch.nn\tlow\tmemory");
	give_text(stream, 2, SHM_TEXT_EXCEPTION, 0, "ValueError: no\nTraceback");
	give_text(stream, 3, SHM_TEXT_RECORD, 0, "{\"c\":\"meta.env\",\"f\":{\"NCCL_DEBUG\":\"INFO\",\"n\":3}}");
	give_text(stream, 4, SHM_TEXT_RECORD, 0, "{\"c\": no json");
	give_text(stream, 5, 99, 0, "of a newer probe");
	j = turn_over();
	assert_int_equal(j->logs.n, 4);
	assert_string_equal(j->logs.v[0].kind, "log");
	assert_string_equal(j->logs.v[0].logger, "torch.nn");
	assert_string_equal(j->logs.v[0].text, "low\tmemory");
	assert_int_equal(j->logs.v[0].rank, 1);
	assert_int_equal(j->logs.v[0].at_ns, REAL0 + 5);
	assert_int_equal(j->logs.v[0].err_ns, 0);
	assert_string_equal(j->logs.v[1].kind, "exception");
	assert_string_equal(j->logs.v[2].kind, "notice");
	assert_string_equal(j->logs.v[2].text, "{\"c\": no json");
	assert_string_equal(j->logs.v[3].kind, "notice");
	assert_int_equal(j->records.n, 1);
	assert_string_equal(j->records.v[0].category, "meta.env");
	assert_string_equal(j->records.v[0].fields, "{\"NCCL_DEBUG\":\"INFO\",\"n\":3}");
	assert_int_equal(j->envs.n, 2);
	assert_string_equal(j->envs.v[0].key, "NCCL_DEBUG");
	assert_string_equal(j->envs.v[0].value, "INFO");
	assert_string_equal(j->envs.v[1].value, "3");
}

static void test_an_instant_of_a_host_never_aligned_has_no_bound(void **state)
{
	struct frame_proc p = rank_proc(1, 1);
	uint64_t stream = hello_as(7, "far", "another boot", &p, 1);

	(void)state;
	give_text(stream, 1, SHM_TEXT_LOG, 20, "a\tb");
	assert_true(turn_over()->logs.v[0].err_ns == FACT_UNBOUNDED);
}

/* --- the end ------------------------------------------------------------- */

static void test_the_run_has_ended_when_its_last_rank_is_gone(void **state)
{
	struct frame_proc p[2] = { rank_proc(0, 0), rank_proc(1, 1) };
	struct store_job *j;

	(void)state;
	hello();
	p[0].state = PROC_LEFT;
	hello_as(7, "h", "boot", p, 2);
	assert_false(status().ended);
	p[1].state = PROC_DIED;
	p[1].signal = 9;
	p[1].state_at_ns = RAW0 + 70;
	hello_as(7, "h", "boot", p, 2);
	assert_true(status().ended);
	j = turn_over();
	assert_true(j->run.set);
	assert_int_equal(j->run.ended_ns, REAL0 + 70);
	p[1] = rank_proc(2, 1); /* restarted */
	p[1].restart_count = 1;
	p[1].unique = 555;
	hello_as(7, "h", "boot", p, 2);
	assert_false(status().ended);
}

static void test_at_the_end_what_is_held_is_taken_and_nothing_more(void **state)
{
	uint64_t stream = hello();
	struct frame_chunk c = chunk_at(0, 0, 10, 10);

	(void)state;
	give_batch(stream, 2, &c, 1);
	ingest_finish(w.ingest, w.now_ns);
	assert_int_equal(w.jobs[w.n_jobs - 1]->chunks.n, 1);
	give_batch(stream, 3, &c, 1);
	expect_refusal(REFUSE_BUSY, "shutting down");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		T(test_an_unknown_stream_is_told_to_say_hello_and_keeps_its_batch),
		T(test_streams_cannot_be_guessed_from_one_another),
		T(test_without_the_token_nobody_is_welcome),
		T(test_the_first_agent_names_a_run_without_a_name),
		T(test_a_rank_that_lives_elsewhere_is_taken_until_its_agent_is_silent),
		T(test_ranks_and_states_that_cannot_be_are_refused),
		T(test_a_batch_is_acknowledged_after_its_commit_and_not_before),
		T(test_a_job_that_was_not_stored_acknowledges_nothing),
		T(test_a_repeat_is_stored_once_and_answered_after_the_first),
		T(test_a_full_disk_refuses_batches_and_answers_heartbeats),
		T(test_swapped_batches_are_taken_in_their_order),
		T(test_a_batch_that_its_agent_still_has_is_waited_for),
		T(test_a_batch_that_its_agent_gave_up_is_not_waited_for),
		T(test_a_silent_agents_missing_batch_is_waited_for_a_while),
		T(test_a_hole_is_lost_until_it_is_filled_and_what_fills_it_is_stored),
		T(test_of_a_chunk_that_overlaps_only_the_new_part_is_stored),
		T(test_what_the_guest_dropped_is_counted_once),
		T(test_of_a_batch_with_one_damaged_chunk_nothing_counts),
		T(test_a_batch_of_another_agent_or_of_nobody_is_refused),
		T(test_kinds_of_messages_stay_on_their_connection),
		T(test_no_message_that_was_tampered_with_does_harm),
		T(test_only_an_exchange_that_we_answered_ourselves_counts),
		T(test_a_host_of_this_boot_and_time_namespace_needs_no_exchange),
		T(test_logs_exceptions_and_records_become_rows_of_their_rank),
		T(test_an_instant_of_a_host_never_aligned_has_no_bound),
		T(test_the_run_has_ended_when_its_last_rank_is_gone),
		T(test_at_the_end_what_is_held_is_taken_and_nothing_more),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
