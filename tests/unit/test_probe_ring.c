/* Rings between threads of the host and an agent that drains them. */
#include "probe_case.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/time.h>

static void full_ring_keeps_the_old(void)
{
	uint32_t slots;

	CHECK(probe_start() == PROBE_ON);
	slots = case_header()->ring_slots;
	for (uint64_t i = 0; i < slots + 100; i++)
		syncline_mark(7, i, ~i);
	CHECK(case_ring(0)->head == slots);
	CHECK(case_ring(0)->n_dropped == 100);
	for (uint64_t i = 0; i < slots; i++)
		CHECK(case_event(0, i)->a == i && case_event(0, i)->b == ~i);

	case_ring(0)->tail = 10; /* the agent has taken ten */
	for (uint64_t i = 0; i < 11; i++)
		syncline_mark(7, 1000000 + i, 0);
	CHECK(case_ring(0)->head == slots + 10);
	CHECK(case_ring(0)->n_dropped == 101);
	CHECK(case_event(0, slots)->a == 1000000);
}

static void a_full_ring_drops_the_new_and_counts(void **state)
{
	assert_int_equal(in_child(full_ring_keeps_the_old), 0);
}

static void words_arrive(void)
{
	uint64_t before, after;
	struct event *e;

	CHECK(probe_start() == PROBE_ON);
	before = probe_tick();
	probe_emit(EVENT_COLL_BEGIN, event_coll_flags(OP_ALL_REDUCE, DTYPE_F32), 3,
		   event_a(12, 34), 56);
	after = probe_tick();
	e = case_event(0, 0);
	CHECK(e->kind == EVENT_COLL_BEGIN && e->name == 3 && e->b == 56);
	CHECK(e->flags == event_coll_flags(OP_ALL_REDUCE, DTYPE_F32));
	CHECK(event_step(e->a) == 12 && event_low(e->a) == 34);
	CHECK(before <= e->tick && e->tick <= after);

	probe_emit_at(99, EVENT_STEP_BEGIN, 0, 0, event_a(1, 0), 0);
	CHECK(case_event(0, 1)->tick == 99);

	syncline_counter(4, -2.5);
	e = case_event(0, 2);
	CHECK(e->kind == EVENT_COUNTER && e->name == 4);
	CHECK(memcmp(&e->a, &(double){ -2.5 }, 8) == 0);
	syncline_scope_begin(5, 1);
	syncline_scope_end(5, 2);
	CHECK(case_event(0, 3)->kind == EVENT_SCOPE_BEGIN && case_event(0, 3)->a == 1);
	CHECK(case_event(0, 4)->kind == EVENT_SCOPE_END && case_event(0, 4)->a == 2);
	CHECK(case_ring(0)->head == 5);
}

static void an_event_carries_what_was_said(void **state)
{
	assert_int_equal(in_child(words_arrive), 0);
}

static void emit_all(void)
{
	probe_emit(EVENT_STEP_BEGIN, 0, 0, 0, 0);
	probe_emit(EVENT_COLL_END, 0, 0, 0, 0);
	probe_emit_at(1, EVENT_COLL_BEGIN, 0, 0, 0, 0);
	probe_emit(EVENT_PHASE_BEGIN, 0, 0, 0, 0);
	probe_emit(EVENT_BUCKET_READY, 0, 0, 0, 0);
	syncline_mark(0, 0, 0);
	syncline_counter(0, 1);
}

static void levels(void)
{
	CHECK(probe_start() == PROBE_ON);
	CHECK(probe_level() == LEVEL_DEFAULT && syncline_level() == LEVEL_DEFAULT);
	case_header()->level = LEVEL_OFF;
	emit_all();
	CHECK(!probe_text(SHM_TEXT_LOG, 20, "x", 1));
	for (unsigned i = 0; i < case_header()->n_rings; i++)
		CHECK(case_ring(i)->head == 0 && case_ring(i)->state == SHM_RING_FREE);
	CHECK(case_header()->text.head == 0 && case_header()->text.n_dropped == 0);
	CHECK(case_header()->n_dropped_without_ring == 0);
	CHECK(probe_name("kept for later") == 1); /* ids must outlive a pause */

	case_header()->level = LEVEL_STEPS;
	emit_all();
	CHECK(case_ring(0)->head == 3);
	case_header()->level = LEVEL_DEFAULT;
	emit_all();
	CHECK(case_ring(0)->head == 3 + 7);
}

static void level_zero_writes_nothing_and_one_only_steps(void **state)
{
	assert_int_equal(in_child(levels), 0);
}

static void first_level(void)
{
	setenv("SYNCLINE_LEVEL", "1", 1);
	CHECK(probe_start() == PROBE_ON && probe_level() == LEVEL_STEPS);
}
static void nonsense_level(void)
{
	setenv("SYNCLINE_LEVEL", "99", 1);
	CHECK(probe_start() == PROBE_ON && probe_level() == LEVEL_DEFAULT);
}

static void the_environment_sets_the_first_level(void **state)
{
	assert_int_equal(in_child(first_level), 0);
	assert_int_equal(in_child(nonsense_level), 0);
}

static void *one_mark(void *arg)
{
	syncline_mark(1, (uintptr_t)arg, 0);
	return NULL;
}

static void thread_with(uintptr_t value)
{
	pthread_t t;

	CHECK(pthread_create(&t, NULL, one_mark, (void *)value) == 0);
	CHECK(pthread_join(t, NULL) == 0);
}

static void rings_come_back(void)
{
	CHECK(probe_start() == PROBE_ON);
	thread_with(11);
	CHECK(case_ring(0)->state == SHM_RING_LEFT && case_ring(0)->head == 1);
	/* Not drained yet: its owner's name must stay with its event. */
	thread_with(22);
	CHECK(case_ring(1)->state == SHM_RING_LEFT && case_ring(1)->head == 1);
	case_ring(0)->tail = 1;
	thread_with(33);
	CHECK(case_ring(0)->head == 2 && case_ring(1)->head == 1 && case_ring(2)->head == 0);
	CHECK(case_event(0, 0)->a == 11 && case_event(1, 0)->a == 22 && case_event(0, 1)->a == 33);
	for (uintptr_t i = 0; i < 1000; i++) {
		case_ring(0)->tail = case_ring(0)->head;
		thread_with(i);
	}
	CHECK(case_ring(0)->head == 1002 && case_header()->n_threads_without_ring == 0);
}

static void a_ring_returns_at_thread_exit_and_is_used_again(void **state)
{
	assert_int_equal(in_child(rings_come_back), 0);
}

static pthread_barrier_t all_there;

static void *hold_a_ring(void *arg)
{
	syncline_mark(1, (uintptr_t)arg, 0);
	pthread_barrier_wait(&all_there);
	return NULL;
}

static void crowd(void)
{
	enum { N = 100 };
	pthread_t t[N];
	uint64_t written = 0;

	CHECK(probe_start() == PROBE_ON);
	CHECK(case_header()->n_rings < N);
	CHECK(pthread_barrier_init(&all_there, NULL, N) == 0);
	for (uintptr_t i = 0; i < N; i++)
		CHECK(pthread_create(&t[i], NULL, hold_a_ring, (void *)i) == 0);
	for (unsigned i = 0; i < N; i++)
		CHECK(pthread_join(t[i], NULL) == 0);
	for (unsigned i = 0; i < case_header()->n_rings; i++)
		written += case_ring(i)->head;
	CHECK(written == case_header()->n_rings);
	CHECK(case_header()->n_threads_without_ring == N - written);
	CHECK(case_header()->n_dropped_without_ring == N - written);
}

static void threads_beyond_the_rings_are_counted(void **state)
{
	assert_int_equal(in_child(crowd), 0);
}

/* Producers against a consumer that reads as the agent does. Under the thread
 * sanitizer this is the proof of the ring's ordering. */
enum { N_PRODUCERS = 3, N_EACH = 100000 };
static atomic_int n_running;

static void *produce(void *arg)
{
	for (uint64_t i = 0; i < N_EACH; i++)
		probe_emit(EVENT_MARK, 0, (uint32_t)(uintptr_t)arg, i, i * 3);
	atomic_fetch_sub(&n_running, 1);
	return NULL;
}

/* next is by producer, not by ring: one that ends early leaves its ring to one
 * that begins late. */
static uint64_t drain(unsigned ring, uint64_t next[N_PRODUCERS + 1])
{
	struct shm_ring *r = case_ring(ring);
	uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
	uint64_t head = atomic_load_explicit(&r->head, memory_order_acquire);

	CHECK(head - tail <= case_header()->ring_slots);
	for (uint64_t i = tail; i != head; i++) {
		struct event e = *case_event(ring, i);

		CHECK(e.name >= 1 && e.name <= N_PRODUCERS);
		CHECK(e.b == e.a * 3 && e.a >= next[e.name]); /* whole, in order, never twice */
		next[e.name] = e.a + 1;
	}
	atomic_store_explicit(&r->tail, head, memory_order_release);
	return head - tail;
}

static void race(void)
{
	uint64_t next[N_PRODUCERS + 1] = { 0 }, n_seen = 0, n_dropped = 0;
	pthread_t t[N_PRODUCERS];
	unsigned n_rings;
	bool last = false;

	CHECK(probe_start() == PROBE_ON);
	n_rings = case_header()->n_rings;
	n_running = N_PRODUCERS;
	for (uintptr_t i = 0; i < N_PRODUCERS; i++)
		CHECK(pthread_create(&t[i], NULL, produce, (void *)(i + 1)) == 0);
	do {
		last = atomic_load(&n_running) == 0;
		for (unsigned i = 0; i < n_rings; i++)
			n_seen += drain(i, next);
	} while (!last);
	for (unsigned i = 0; i < N_PRODUCERS; i++)
		CHECK(pthread_join(t[i], NULL) == 0);
	for (unsigned i = 0; i < n_rings; i++)
		n_dropped += case_ring(i)->n_dropped;
	CHECK(n_seen + n_dropped == (uint64_t)N_PRODUCERS * N_EACH);
	CHECK(case_header()->n_dropped_without_ring == 0);
}

static void what_is_not_seen_is_counted(void **state)
{
	assert_int_equal(in_child(race), 0);
}

static volatile sig_atomic_t n_handled;

static void on_alarm(int sig)
{
	(void)sig;
	n_handled = n_handled + 1;
	syncline_mark(2, 0, 0);
}

static void interrupted(void)
{
	struct itimerval often = { { 0, 100 }, { 0, 100 } }, never = { { 0, 0 }, { 0, 0 } };
	struct sigaction act = { .sa_handler = on_alarm };
	uint64_t n = 0;

	CHECK(probe_start() == PROBE_ON);
	CHECK(sigaction(SIGALRM, &act, NULL) == 0);
	CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
	while (n_handled < 300) {
		syncline_mark(1, n++, 0);
		case_ring(0)->tail = case_ring(0)->head;
	}
	CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
	CHECK(case_ring(0)->head + case_ring(0)->n_dropped +
		      case_header()->n_dropped_without_ring ==
	      n + (uint64_t)n_handled);
}

static void an_event_in_a_signal_handler_is_written_or_counted(void **state)
{
	assert_int_equal(in_child(interrupted), 0);
}

static void spoiled(void)
{
	struct shm_header *h;
	uint64_t head;

	CHECK(probe_start() == PROBE_ON);
	h = case_header();
	syncline_mark(1, 1, 1);
	/* Whatever the other side writes, nothing outside the mapping is touched:
	 * a guest that follows one of these dies here by SIGSEGV or in ASan. */
	case_ring(0)->tail = 12345;
	head = case_ring(0)->head;
	for (unsigned i = 0; i < 2 * h->ring_slots; i++)
		syncline_mark(1, i, 1);
	CHECK(case_ring(0)->head - head + case_ring(0)->n_dropped == 2 * h->ring_slots);
	case_ring(0)->head = UINT64_MAX - 3;
	case_ring(0)->tail = UINT64_MAX - 3;
	case_ring(0)->tail_seen = UINT64_MAX - 3;
	for (unsigned i = 0; i < 100; i++)
		syncline_mark(1, i, 1);
	CHECK(case_ring(0)->head == 96);

	h->ring_slots = 1u << 31;
	h->ring_slots_at = h->text_at = h->string_index_at = UINT64_MAX / 2;
	h->max_strings = h->max_string_bytes = h->text_bytes = UINT32_MAX;
	syncline_mark(1, 0, 0);
	CHECK(probe_name("first") == 1);
	h->strings.n_strings = UINT32_MAX;
	CHECK(probe_name("second") == 0);
	h->strings.n_strings = 1;
	h->strings.n_bytes_used = UINT32_MAX - 2;
	CHECK(probe_name("third") == 0);
	h->text.head = UINT64_MAX - 4;
	h->text.tail = UINT64_MAX - 4;
	(void)probe_text(SHM_TEXT_LOG, 0, "text", 4);
	h->text.tail = 77;
	(void)probe_text(SHM_TEXT_LOG, 0, "text", 4);
}

static void a_spoiled_file_cannot_lead_the_guest_astray(void **state)
{
	assert_int_equal(in_child(spoiled), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(an_event_carries_what_was_said),
		CASE(a_full_ring_drops_the_new_and_counts),
		CASE(level_zero_writes_nothing_and_one_only_steps),
		CASE(the_environment_sets_the_first_level),
		CASE(a_ring_returns_at_thread_exit_and_is_used_again),
		CASE(threads_beyond_the_rings_are_counted),
		CASE(what_is_not_seen_is_counted),
		CASE(an_event_in_a_signal_handler_is_written_or_counted),
		CASE(a_spoiled_file_cannot_lead_the_guest_astray),
	};
	return cmocka_run_group_tests_name("probe_ring", tests, NULL, NULL);
}
