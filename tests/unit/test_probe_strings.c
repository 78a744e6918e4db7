/* Names and text records, read back as an agent reads them. */
#include "probe_case.h"

#include <pthread.h>
#include <sys/resource.h>

static size_t name_of(uint32_t id, char *out)
{
	struct shm_header *h = case_header();
	uint64_t *index = (uint64_t *)((unsigned char *)h + h->string_index_at);
	size_t n = index[id - 1] & 0xff;

	CHECK(id >= 1 && id <= atomic_load(&h->strings.n_strings));
	CHECK((index[id - 1] >> 8) + n <= h->max_string_bytes);
	memcpy(out, (char *)h + h->string_bytes_at + (index[id - 1] >> 8), n);
	out[n] = 0;
	return n;
}

static void names(void)
{
	char text[256], longer[400];
	uint32_t a, b;

	CHECK(probe_name("early") == 0); /* off: no name */
	CHECK(probe_start() == PROBE_ON);
	a = syncline_name("forward");
	b = syncline_name("backward");
	CHECK(a != 0 && b != 0 && a != b);
	CHECK(syncline_name("forward") == a && probe_name_n("forwards", 7) == a);
	CHECK(name_of(a, text) == 7 && strcmp(text, "forward") == 0);
	CHECK(name_of(b, text) == 8 && strcmp(text, "backward") == 0);
	CHECK(probe_name("") == 0 && probe_name(NULL) == 0);

	memset(longer, 'x', sizeof longer);
	longer[254] = (char)0xc3; /* an e acute across the limit goes as a whole */
	longer[255] = (char)0xa9;
	longer[399] = 0;
	a = probe_name(longer);
	CHECK(a != 0 && name_of(a, text) == 254);
	CHECK(probe_name(longer) == a);
	CHECK(case_header()->strings.n_dropped == 0);
}

static void a_name_is_stored_once_and_cut_at_a_character(void **state)
{
	assert_int_equal(in_child(names), 0);
}

static void too_many_names(void)
{
	uint32_t max, n_known = 0;
	char text[64];

	CHECK(probe_start() == PROBE_ON);
	max = case_header()->max_strings;
	for (uint32_t i = 0; i < max + 50; i++) {
		snprintf(text, sizeof text, "name %u", i);
		n_known += probe_name(text) == i + 1;
	}
	CHECK(n_known == max);
	CHECK(case_header()->strings.n_dropped == 50);
	CHECK(probe_name("name 0") == 1);
}

static void names_beyond_the_table_are_counted(void **state)
{
	assert_int_equal(in_child(too_many_names), 0);
}

static void held_flag(void)
{
	CHECK(probe_start() == PROBE_ON);
	case_header()->strings.busy = 1; /* whoever holds it never returns */
	CHECK(probe_name("x") == 0);
	CHECK(case_header()->strings.n_dropped == 1);
	case_header()->strings.busy = 0;
	CHECK(probe_name("x") == 1);

	case_header()->text.busy = 1;
	CHECK(!probe_text(SHM_TEXT_LOG, 20, "x", 1));
	CHECK(case_header()->text.n_dropped == 1);
	case_header()->text.busy = 0;
	CHECK(probe_text(SHM_TEXT_LOG, 20, "x", 1));
}

static void nobody_waits_for_a_held_flag(void **state)
{
	assert_int_equal(in_child(held_flag), 0);
}

/* The next record that is not a pad; false when there is none. */
static bool next_text(struct shm_text *ret, char *out)
{
	struct shm_header *h = case_header();
	unsigned char *bytes = (unsigned char *)h + h->text_at;

	for (;;) {
		uint64_t tail = atomic_load(&h->text.tail);
		uint64_t head = atomic_load_explicit(&h->text.head, memory_order_acquire);
		size_t at = tail & (h->text_bytes - 1), n;

		if (tail == head)
			return false;
		CHECK(at + sizeof *ret <= h->text_bytes);
		memcpy(ret, bytes + at, sizeof *ret);
		n = sizeof *ret + ((ret->n_bytes + 7u) & ~7u);
		CHECK(n <= h->text_bytes - at && n <= head - tail);
		memcpy(out, bytes + at + sizeof *ret, ret->kind == SHM_TEXT_PAD ? 0 : ret->n_bytes);
		atomic_store_explicit(&h->text.tail, tail + n, memory_order_release);
		if (ret->kind != SHM_TEXT_PAD)
			return true;
	}
}

static void texts(void)
{
	static char in[SHM_MAX_TEXT + 100], out[SHM_MAX_TEXT + 1];
	struct rlimit small = { SHM_MIN_BYTES, SHM_MIN_BYTES }; /* a ring of 16 KiB: many ends */
	uint64_t seed = 1, before = 0;
	struct shm_text r;

	CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
	CHECK(probe_start() == PROBE_ON);
	before = probe_tick();
	CHECK(probe_text(SHM_TEXT_LOG, 30, "logger\tmessage", 14));
	CHECK(next_text(&r, out) && r.kind == SHM_TEXT_LOG && r.level == 30 && r.n_bytes == 14);
	CHECK(memcmp(out, "logger\tmessage", 14) == 0);
	CHECK(before <= r.tick && r.tick <= probe_tick());
	CHECK(!next_text(&r, out));

	/* Every length at every place, more than a thousand times around the ring. */
	for (unsigned i = 0; i < 20000; i++) {
		size_t n = unit_rand(&seed) % (i % 2 ? 40 : SHM_MAX_TEXT + 1);

		for (size_t k = 0; k < n; k++)
			in[k] = (char)(i + k);
		if (!probe_text(SHM_TEXT_LOG, i & 0xff, in, n)) {
			dprintf(2, "seed 1, record %u\n", i);
			CHECK(false);
		}
		CHECK(next_text(&r, out) && r.n_bytes == n && r.level == (i & 0xff));
		CHECK(memcmp(in, out, n) == 0);
	}
	CHECK(case_header()->text.n_dropped == 0);
}

static void a_text_comes_out_as_it_went_in(void **state)
{
	assert_int_equal(in_child(texts), 0);
}

static void long_texts(void)
{
	static char in[SHM_MAX_TEXT + 10], out[SHM_MAX_TEXT + 1];
	uint64_t n = 0;
	struct shm_text r;

	CHECK(probe_start() == PROBE_ON);
	memset(in, 'x', sizeof in);
	memcpy(in + SHM_MAX_TEXT - 1, "\xe2\x82\xac", 3);
	CHECK(probe_text(SHM_TEXT_EXCEPTION, 0, in, sizeof in));
	CHECK(next_text(&r, out) && r.n_bytes == SHM_MAX_TEXT - 1);
	CHECK(!probe_text(SHM_TEXT_RECORD, 0, in, sizeof in)); /* half a JSON object */
	CHECK(case_header()->text.n_dropped == 1);

	while (probe_text(SHM_TEXT_LOG, 0, in, SHM_MAX_TEXT))
		n++;
	CHECK(n > 3 && case_header()->text.n_dropped == 2);
	while (next_text(&r, out))
		n--;
	CHECK(n == 0);
	CHECK(probe_text(SHM_TEXT_LOG, 0, in, SHM_MAX_TEXT));
}

static void a_text_too_long_is_cut_and_one_too_many_is_counted(void **state)
{
	assert_int_equal(in_child(long_texts), 0);
}

enum { N_SPEAKERS = 3, N_SAID = 4000 };
static atomic_int n_speaking;
static _Atomic uint64_t n_refused;

static void *speak(void *arg)
{
	char text[64];

	for (unsigned i = 0; i < N_SAID; i++) {
		int n = snprintf(text, sizeof text, "%u says %u", (unsigned)(uintptr_t)arg, i);

		if (!probe_text(SHM_TEXT_LOG, (unsigned)(uintptr_t)arg, text, (size_t)n))
			atomic_fetch_add(&n_refused, 1);
		snprintf(text, sizeof text, "name %u", i % 200);
		(void)probe_name(text);
	}
	atomic_fetch_sub(&n_speaking, 1);
	return NULL;
}

static void speakers(void)
{
	char out[SHM_MAX_TEXT + 1], want[64];
	uint64_t n = 0;
	pthread_t t[N_SPEAKERS];
	struct shm_text r;
	bool last;

	CHECK(probe_start() == PROBE_ON);
	n_speaking = N_SPEAKERS;
	for (uintptr_t i = 0; i < N_SPEAKERS; i++)
		CHECK(pthread_create(&t[i], NULL, speak, (void *)i) == 0);
	do {
		last = atomic_load(&n_speaking) == 0;
		while (next_text(&r, out)) {
			unsigned who, what;

			out[r.n_bytes] = 0;
			CHECK(sscanf(out, "%u says %u", &who, &what) == 2 && who == r.level);
			n++;
		}
	} while (!last);
	for (unsigned i = 0; i < N_SPEAKERS; i++)
		CHECK(pthread_join(t[i], NULL) == 0);
	CHECK(n + n_refused == N_SPEAKERS * N_SAID);
	CHECK(case_header()->text.n_dropped == n_refused);
	CHECK(case_header()->strings.n_strings <= 200);
	for (uint32_t id = 1; id <= case_header()->strings.n_strings; id++) {
		CHECK(name_of(id, want) > 5 && strncmp(want, "name ", 5) == 0);
		CHECK(probe_name(want) == id);
	}
}

static void threads_that_speak_at_once_lose_only_what_is_counted(void **state)
{
	assert_int_equal(in_child(speakers), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_name_is_stored_once_and_cut_at_a_character),
		CASE(names_beyond_the_table_are_counted),
		CASE(nobody_waits_for_a_held_flag),
		CASE(a_text_comes_out_as_it_went_in),
		CASE(a_text_too_long_is_cut_and_one_too_many_is_counted),
		CASE(threads_that_speak_at_once_lose_only_what_is_counted),
	};
	return cmocka_run_group_tests_name("probe_strings", tests, NULL, NULL);
}
