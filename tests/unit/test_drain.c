#include "../../agent/sidecar/drain.h"
#include "../../agent/sidecar/guard.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define N_RINGS 4u
#define N_SLOTS 2048u
#define N_STRINGS 64u
#define STRING_BYTES 4096u
#define TEXT_BYTES 8192u

/* A guest's file made by hand: the test is the guest. */
static char path[64];
static unsigned char *file;
static size_t file_bytes;

static struct shm_header *head(void)
{
	return (struct shm_header *)(void *)file;
}
static struct shm_ring *ring(uint32_t i)
{
	return (struct shm_ring *)(void *)(file + head()->ring_headers_at) + i;
}

static int make_file(void **state)
{
	struct shm_header h = { .magic = SHM_MAGIC, .version = SHM_VERSION,
				.header_bytes = sizeof h, .pid = 4711, .unique = 0x1234,
				.n_rings = N_RINGS, .ring_slots = N_SLOTS,
				.max_strings = N_STRINGS, .max_string_bytes = STRING_BYTES,
				.text_bytes = TEXT_BYTES };
	int fd;

	(void)state;
	h.ring_headers_at = (sizeof h + 63) / 64 * 64;
	h.ring_slots_at = h.ring_headers_at + N_RINGS * sizeof(struct shm_ring);
	h.string_index_at = h.ring_slots_at + N_RINGS * N_SLOTS * sizeof(struct event);
	h.string_bytes_at = h.string_index_at + N_STRINGS * 8;
	h.text_at = h.string_bytes_at + STRING_BYTES;
	file_bytes = h.file_bytes = h.text_at + TEXT_BYTES;
	strcpy(path, "/tmp/test_drain.XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)file_bytes), 0);
	file = mmap(NULL, file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(file != MAP_FAILED);
	close(fd);
	memcpy(file, &h, sizeof h);
	return 0;
}

static int remove_file(void **state)
{
	(void)state;
	munmap(file, file_bytes);
	return unlink(path);
}

static struct guest *open_guest(const struct spool *spool)
{
	const char *why = "";
	struct guest *g = NULL;

	assert_int_equal(guest_open(&g, path, spool, &why), GUEST_OK);
	return g;
}

/* As the probe does: full means dropped and counted. */
static bool emit_to(struct shm_ring *r, struct event *slots, uint64_t a)
{
	uint64_t h = atomic_load_explicit(&r->head, memory_order_relaxed);

	if (h - atomic_load_explicit(&r->tail, memory_order_acquire) == N_SLOTS) {
		atomic_fetch_add_explicit(&r->n_dropped, 1, memory_order_relaxed);
		return false;
	}
	slots[h & (N_SLOTS - 1)] = (struct event){
		.tick = 1000 + a, .kind = EVENT_MARK, .name = 1, .a = a, .b = ~a };
	atomic_store_explicit(&r->head, h + 1, memory_order_release);
	return true;
}

static struct event *slots_in(unsigned char *map, uint32_t i)
{
	return (struct event *)(void *)(map + head()->ring_slots_at) + (size_t)i * N_SLOTS;
}
static bool emit(uint32_t i, uint64_t a)
{
	return emit_to(ring(i), slots_in(file, i), a);
}

static void add_string(const char *s)
{
	uint32_t n = head()->strings.n_strings, at = head()->strings.n_bytes_used;
	uint64_t entry = (uint64_t)at << 8 | strlen(s);

	memcpy(file + head()->string_bytes_at + at, s, strlen(s));
	memcpy(file + head()->string_index_at + 8 * n, &entry, 8);
	head()->strings.n_bytes_used = at + (uint32_t)strlen(s);
	atomic_store_explicit(&head()->strings.n_strings, n + 1, memory_order_release);
}

/* What came out, checked as it comes: index and value of each ring rise by one. */
struct out {
	uint64_t next[N_RINGS], last_a[N_RINGS], n, n_jumps;
	uint32_t n_texts, n_names;
};

static void take_batch(struct batch *b, struct guest *g, struct out *o)
{
	static struct event ev[CHUNK_EVENTS];

	for (uint32_t i = 0; i < b->n_chunks; i++) {
		const struct frame_chunk *c = &b->chunks[i];
		size_t n = 0;

		assert_int_equal(chunk_decode(c->data, c->n_bytes, ev, CHUNK_EVENTS, &n), CHUNK_OK);
		assert_int_equal(c->first, o->next[c->ring]);
		for (size_t k = 0; k < n; k++) {
			assert_true(ev[k].a >= o->last_a[c->ring]);
			o->n_jumps += ev[k].a - o->last_a[c->ring];
			o->last_a[c->ring] = ev[k].a + 1;
			assert_true(ev[k].b == ~ev[k].a && ev[k].tick == 1000 + ev[k].a);
		}
		o->next[c->ring] += n;
		o->n += n;
	}
	o->n_texts += b->n_texts;
	o->n_names += b->n_names;
	batch_clear(b);
	drain_sealed(g);
	guest_publish(g, 1);
	g->mentioned = false;
}

static void drain_into(struct guest *g, bool all, struct batch *b, struct out *o)
{
	struct tick t;
	enum drain_outcome r;

	tick_init(&t, SHM_TICK_RAW);
	do {
		r = drain(g, all, &t, b, NULL);
		if (r == DRAIN_FULL)
			take_batch(b, g, o);
	} while (r == DRAIN_FULL || r == DRAIN_MORE);
	assert_int_equal(r, DRAIN_DONE);
	take_batch(b, g, o);
}

static void every_event_comes_once_and_in_order(void **state)
{
	struct guest *g = open_guest(NULL);
	uint64_t rng = 11, a[N_RINGS] = { 0 }, n_written = 0;
	struct out o = { 0 };
	struct batch b;

	(void)state;
	assert_int_equal(batch_init(&b), 0);
	for (int round = 0; round < 400; round++) {
		for (uint32_t i = 0; i < N_RINGS; i++)
			for (uint64_t k = unit_rand(&rng) % N_SLOTS; k > 0; k--)
				n_written += emit(i, a[i]++);
		drain_into(g, round % 3 == 0, &b, &o);
	}
	drain_into(g, true, &b, &o);
	assert_int_equal(o.n, n_written);
	assert_true(n_written > 100 * N_SLOTS);
	guest_refresh(g);
	for (uint32_t i = 0; i < N_RINGS; i++)
		o.n_jumps += a[i] - o.last_a[i]; /* dropped after the last one that fitted */
	assert_int_equal(o.n_jumps, g->facts.n_dropped);
	guest_close(g);
	batch_fini(&b);
}

static void what_does_not_fit_is_dropped_by_the_guest_and_told(void **state)
{
	struct guest *g = open_guest(NULL);
	struct out o = { 0 };
	struct batch b;

	(void)state;
	assert_int_equal(batch_init(&b), 0);
	for (uint64_t a = 0; a < N_SLOTS + 100; a++)
		emit(0, a);
	drain_into(g, true, &b, &o);
	emit(0, N_SLOTS + 100);
	drain_into(g, true, &b, &o);
	guest_refresh(g);
	assert_int_equal(o.n, N_SLOTS + 1);
	assert_int_equal(g->facts.n_dropped, 100);
	assert_int_equal(o.n_jumps, 100); /* seen as a jump of a, not of the index */
	guest_close(g);
	batch_fini(&b);
}

static void the_guest_gets_its_room_only_once_a_batch_is_sealed(void **state)
{
	struct guest *g = open_guest(NULL);
	struct spool_cursor c[8];
	struct tick t;
	struct batch b;

	(void)state;
	tick_init(&t, SHM_TICK_RAW);
	assert_int_equal(batch_init(&b), 0);
	for (uint64_t a = 0; a < 10; a++)
		emit(2, a);
	assert_int_equal(drain(g, true, &t, &b, NULL), DRAIN_DONE);
	assert_int_equal(b.n_events, 10);
	guest_publish(g, 1);
	assert_int_equal(ring(2)->tail, 0);
	assert_int_equal(drain_cursors(g, c, 8), 1);
	assert_int_equal(c[0].ring, 2);
	assert_int_equal(c[0].next, 10);
	assert_true(c[0].unique == 0x1234);
	drain_sealed(g);
	guest_publish(g, 77);
	assert_int_equal(ring(2)->tail, 10);
	assert_int_equal(head()->agent_seen_raw_ns, 77);
	assert_int_equal(drain_cursors(g, c, 8), 0);
	guest_close(g);
	batch_fini(&b);
}

static void a_part_of_a_chunk_waits_until_it_is_asked_for(void **state)
{
	struct guest *g = open_guest(NULL);
	struct tick t;
	struct batch b;

	(void)state;
	tick_init(&t, SHM_TICK_RAW);
	assert_int_equal(batch_init(&b), 0);
	for (uint64_t a = 0; a < 100; a++)
		emit(0, a);
	assert_int_equal(drain(g, false, &t, &b, NULL), DRAIN_DONE);
	assert_int_equal(b.n_events, 0);
	assert_int_equal(drain(g, true, &t, &b, NULL), DRAIN_DONE);
	assert_int_equal(b.n_events, 100);
	guest_close(g);
	batch_fini(&b);
}

static void a_new_agent_begins_where_the_spool_ends(void **state)
{
	struct spool_head who = { 0 };
	struct spool_config cfg = { .max_bytes = 1 << 20, .who = &who };
	struct spool_cursor c = { .unique = 0x1234, .ring = 1, .next = 60 };
	char dir[] = "/tmp/test_drain_spool.XXXXXX";
	struct spool *old, *spool;
	struct out o = { .next = { 0, 60 }, .last_a = { 0, 60 } };
	struct guest *g;
	struct batch b;

	(void)state;
	assert_int_equal(batch_init(&b), 0);
	cfg.dir = mkdtemp(dir);
	for (uint64_t a = 0; a < 100; a++)
		emit(1, a); /* the tail is still 0: the old agent was killed in between */
	assert_int_equal(spool_open(&old, &cfg), 0);
	assert_int_not_equal(spool_put(old, 1, 60, 0, &c, 1, "batch", 5), 0);
	spool_close(old); /* leaves the file: the batch is not acknowledged */
	assert_int_equal(spool_open(&spool, &cfg), 0);
	g = open_guest(spool);
	drain_into(g, true, &b, &o);
	assert_int_equal(o.n, 40);
	guest_close(g);
	spool_done(spool, spool_next(spool).id);
	spool_close(spool);
	assert_int_equal(rmdir(dir), 0);
	batch_fini(&b);
}

static void names_come_before_the_events_that_use_them(void **state)
{
	struct guest *g = open_guest(NULL);
	struct tick t;
	struct batch b;

	(void)state;
	tick_init(&t, SHM_TICK_RAW);
	assert_int_equal(batch_init(&b), 0);
	add_string("world");
	add_string("");
	emit(0, 0);
	assert_int_equal(drain(g, true, &t, &b, NULL), DRAIN_DONE);
	assert_int_equal(b.n_names, 2);
	assert_int_equal(b.names[0].id, 1);
	assert_memory_equal(b.names[0].text, "world", 5);
	assert_int_equal(b.names[1].n_text, 0);
	assert_true(g->barrier);
	batch_clear(&b);
	assert_int_equal(drain(g, true, &t, &b, NULL), DRAIN_DONE);
	assert_int_equal(b.n_names, 0); /* once */
	guest_close(g);
	batch_fini(&b);
}

static void add_text(const char *s)
{
	struct shm_text_ring *t = &head()->text;
	struct shm_text rec = { .n_bytes = (uint32_t)strlen(s), .kind = SHM_TEXT_LOG, .level = 30,
				.tick = 5 };
	uint64_t at = t->head & (TEXT_BYTES - 1), need = (sizeof rec + strlen(s) + 7) & ~7u;

	if (TEXT_BYTES - at < need) {
		struct shm_text pad = { .kind = SHM_TEXT_PAD };

		if (TEXT_BYTES - at >= sizeof pad)
			memcpy(file + head()->text_at + at, &pad, sizeof pad);
		t->head += TEXT_BYTES - at;
		at = 0;
	}
	memcpy(file + head()->text_at + at, &rec, sizeof rec);
	memcpy(file + head()->text_at + at + sizeof rec, s, strlen(s));
	t->head += need;
}

static void texts_come_whole_over_the_end_of_their_ring(void **state)
{
	struct guest *g = open_guest(NULL);
	struct tick t;
	struct batch b;
	char s[900];

	(void)state;
	tick_init(&t, SHM_TICK_RAW);
	assert_int_equal(batch_init(&b), 0);
	for (int i = 0; i < 200; i++) {
		size_t n = (size_t)(i * 37) % (sizeof s - 1);

		memset(s, 'a' + i % 26, n);
		s[n] = 0;
		add_text(s);
		assert_int_equal(drain(g, true, &t, &b, NULL), DRAIN_DONE);
		assert_int_equal(b.n_texts, 1);
		assert_int_equal(b.texts[0].n_text, n);
		assert_int_equal(b.texts[0].level, 30);
		assert_memory_equal(b.texts[0].text, s, n);
		batch_clear(&b);
		drain_sealed(g);
		guest_publish(g, 1);
	}
	guest_close(g);
	batch_fini(&b);
}

static void a_file_cut_under_us_ends_its_drain_only(void **state)
{
	struct guest *g = open_guest(NULL);
	struct tick t;
	struct batch b;

	(void)state;
	guard_init(); /* cmocka has a handler of its own around each test */
	tick_init(&t, SHM_TICK_RAW);
	assert_int_equal(batch_init(&b), 0);
	for (uint64_t a = 0; a < 2000; a++)
		emit(3, a);
	assert_int_equal(truncate(path, 8192), 0);
	assert_int_equal(drain(g, true, &t, &b, NULL), DRAIN_CUT);
	assert_true(g->cut);
	assert_int_equal(truncate(path, 0), 0);
	g->cut = false; /* once more, with the header gone too */
	assert_int_equal(drain(g, true, &t, &b, NULL), DRAIN_CUT);
	assert_false(guest_refresh(g));
	guest_publish(g, 1);
	assert_int_equal(guest_string(g, 1, (char[256]){ 0 }), 0);
	guest_close(g);
	batch_fini(&b);
}

static void files_that_are_none_of_ours_are_refused(void **state)
{
	const char *why = "";
	struct guest *g;

	(void)state;
	head()->magic++;
	assert_int_equal(guest_open(&g, path, NULL, &why), GUEST_REFUSED);
	assert_string_equal(why, "not a probe's file");
	head()->magic--;
	head()->tick_source = 9;
	assert_int_equal(guest_open(&g, path, NULL, &why), GUEST_REFUSED);
	head()->tick_source = 0;
	assert_int_equal(truncate(path, 100), 0);
	assert_int_equal(guest_open(&g, path, NULL, &why), GUEST_REFUSED);
	assert_int_equal(guest_open(&g, "/dev/null", NULL, &why), GUEST_REFUSED);
	assert_int_equal(guest_open(&g, "/nowhere/x.ring", NULL, &why), -ENOENT);
}

static void one_file_is_drained_by_one_agent(void **state)
{
	const char *why = "";
	struct guest *g = open_guest(NULL), *other;

	(void)state;
	assert_int_equal(guest_open(&other, path, NULL, &why), GUEST_SERVED);
	guest_close(g);
	g = open_guest(NULL);
	guest_close(g);
}

/* Whatever stands in the indices, strings, texts and slots: an answer, in
 * bounded time, and a batch that the wire accepts. */
static void a_lying_file_is_survived(void **state)
{
	uint64_t rng = 77;
	struct frame_buf buf = { 0 };
	struct batch b;
	struct tick t;

	(void)state;
	tick_init(&t, SHM_TICK_RAW);
	assert_int_equal(batch_init(&b), 0);
	for (int round = 0; round < 300; round++) {
		struct guest *g = open_guest(NULL);

		for (int visit = 0; visit < 4; visit++) {
			struct frame f;

			for (int k = 0; k < 200; k++) {
				size_t at = sizeof(struct shm_header) +
					    unit_rand(&rng) % (file_bytes - sizeof(struct shm_header) - 8);
				uint64_t v = unit_rand(&rng) >> (unit_rand(&rng) % 64);

				memcpy(file + at, &v, 8);
			}
			for (uint32_t i = 0; i < N_RINGS; i++) {
				ring(i)->head = ring(i)->tail + unit_rand(&rng) % (N_SLOTS + 9);
				if (unit_rand(&rng) % 4 == 0)
					ring(i)->head = unit_rand(&rng) >> (unit_rand(&rng) % 64);
			}
			head()->text.head = unit_rand(&rng) % 3 ? head()->text.tail + 8 * (unit_rand(&rng) % 1100)
								: unit_rand(&rng);
			head()->strings.n_strings = (uint32_t)(unit_rand(&rng) % 100);
			head()->identity.generation += 2;
			head()->identity.rank = (int32_t)unit_rand(&rng);
			head()->identity.world_size = (int32_t)unit_rand(&rng);
			head()->text.n_dropped = unit_rand(&rng);
			memset(head()->identity.run_id, 'x', sizeof head()->identity.run_id);

			guest_refresh(g);
			for (int k = 0; k < 50 && drain(g, true, &t, &b, NULL) != DRAIN_DONE; k++)
				;
			batch_add_proc(&b, &g->facts);
			f = batch_frame(&b);
			assert_int_equal(frame_pack(&buf, &f), 0);
			assert_int_equal(frame_open(&f, buf.data, buf.n_bytes), FRAME_OK);
			frame_close(&f);
			batch_clear(&b);
			drain_sealed(g);
			guest_publish(g, 1);
		}
		guest_close(g);
	}
	frame_buf_fini(&buf);
	batch_fini(&b);
}

/* A writer on its own thread over the same mapping, so that a race detector
 * sees both sides. */
#define N_RACED 200000u

static void *write_all(void *arg)
{
	unsigned char *map = arg;
	struct shm_ring *r = (struct shm_ring *)(void *)(map + head()->ring_headers_at);

	for (uint64_t a = 0; a < N_RACED;)
		if (emit_to(r, slots_in(map, 0), a))
			a++;
		else
			sched_yield();
	return NULL;
}

static void a_racing_writer_loses_nothing(void **state)
{
	struct guest *g = open_guest(NULL);
	struct out o = { 0 };
	pthread_t thread;
	struct batch b;

	(void)state;
	assert_int_equal(batch_init(&b), 0);
	assert_int_equal(pthread_create(&thread, NULL, write_all, g->map), 0);
	for (int visit = 0; o.n < N_RACED; visit++)
		drain_into(g, visit % 2, &b, &o);
	pthread_join(thread, NULL);
	assert_int_equal(o.n, N_RACED);
	assert_int_equal(o.n_jumps, 0);
	guest_close(g);
	batch_fini(&b);
}

static struct event coll(unsigned kind, uint32_t group, uint32_t seq, bool sync, int64_t at)
{
	return (struct event){ .tick = (uint64_t)at, .kind = (uint16_t)kind,
			       .flags = event_coll_flags(OP_ALL_REDUCE, DTYPE_F32), .name = group,
			       .a = event_a(3, seq), .b = sync ? EVENT_COLL_SYNC_BIT | 8 : 8 };
}

static void the_state_in_flight_is_the_innermost_wait(void **state)
{
	struct event step = { .tick = 10, .kind = EVENT_STEP_BEGIN, .a = event_a(3, 0) };
	struct event begin = { .tick = 20, .kind = EVENT_PHASE_BEGIN, .flags = PHASE_BACKWARD };
	struct event end = { .tick = 60, .kind = EVENT_PHASE_END, .flags = PHASE_BACKWARD };
	struct event ev;
	struct flight_state s;
	struct flight f;

	(void)state;
	flight_init(&f);
	assert_int_equal(flight_state(&f).step, EVENT_STEP_UNKNOWN);
	flight_event(&f, &step);
	flight_event(&f, &begin);
	s = flight_state(&f);
	assert_int_equal(s.phase, PHASE_BACKWARD);
	assert_int_equal(s.since_ns, 20);
	ev = coll(EVENT_COLL_BEGIN, 5, 1, false, 30);
	flight_event(&f, &ev);
	ev = coll(EVENT_COLL_BEGIN, 5, 2, true, 40);
	flight_event(&f, &ev);
	s = flight_state(&f);
	assert_int_equal(s.seq, 2); /* the blocking one */
	assert_int_equal(s.since_ns, 40);
	ev = coll(EVENT_COLL_END, 5, 2, true, 50);
	flight_event(&f, &ev);
	assert_int_equal(flight_state(&f).seq, 1);
	ev = coll(EVENT_COLL_END, 5, 1, false, 55);
	flight_event(&f, &ev);
	assert_int_equal(flight_state(&f).group, 0);
	flight_event(&f, &end);
	s = flight_state(&f);
	assert_int_equal(s.phase, PHASE_NONE);
	assert_int_equal(s.since_ns, 10);
	assert_int_equal(f.last_event_ns, 60);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, make_file, remove_file)
	const struct CMUnitTest tests[] = {
		T(every_event_comes_once_and_in_order),
		T(what_does_not_fit_is_dropped_by_the_guest_and_told),
		T(the_guest_gets_its_room_only_once_a_batch_is_sealed),
		T(a_part_of_a_chunk_waits_until_it_is_asked_for),
		T(a_new_agent_begins_where_the_spool_ends),
		T(names_come_before_the_events_that_use_them),
		T(texts_come_whole_over_the_end_of_their_ring),
		T(a_file_cut_under_us_ends_its_drain_only),
		T(files_that_are_none_of_ours_are_refused),
		T(one_file_is_drained_by_one_agent),
		T(a_lying_file_is_survived),
		T(a_racing_writer_loses_nothing),
		cmocka_unit_test(the_state_in_flight_is_the_innermost_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
