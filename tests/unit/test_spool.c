#include "../../agent/sidecar/spool.h"
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

static char dir[64];

static int fresh_dir(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/test_spool.XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	(void)state;
	while (d && (e = readdir(d)))
		unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
	return rmdir(dir);
}

static struct spool *open_as(uint8_t agent, uint64_t max_bytes, const char *run)
{
	struct spool_head who = { .time_ns_inode = 7 };
	struct spool_config cfg = { .dir = dir, .max_bytes = max_bytes, .who = &who };
	struct spool *s = NULL;

	memset(who.agent_id, agent, sizeof who.agent_id);
	strcpy(who.run_id, run);
	strcpy(who.boot_id, "boot");
	strcpy(who.host, "host");
	assert_int_equal(spool_open(&s, &cfg), 0);
	return s;
}

/* A batch whose bytes follow from its number. */
static void *frame_of(uint64_t seq, uint32_t n)
{
	unsigned char *p = malloc(n);

	for (uint32_t i = 0; i < n; i++)
		p[i] = (unsigned char)(seq * 31 + i);
	return p;
}

static uint64_t put(struct spool *s, uint64_t seq, uint32_t n)
{
	struct spool_cursor c = { .unique = 0xabc, .ring = 3, .next = seq * 10 };
	void *p = frame_of(seq, n);
	uint64_t id = spool_put(s, seq, 10, 0, &c, 1, p, n);

	free(p);
	return id;
}

static void expect_frame(struct spool *s, const struct spool_item *it)
{
	unsigned char *got = malloc(it->n_bytes), *want = frame_of(it->seq, it->n_bytes);

	assert_int_equal(spool_read(s, it->id, got), 0);
	assert_memory_equal(got, want, it->n_bytes);
	free(got);
	free(want);
}

/* Closing a descriptor drops a killed agent's lock; the file stays. */
static void put_in_killed_agent(uint8_t agent, const char *run, uint64_t n, uint32_t n_bytes)
{
	pid_t pid = fork();

	if (pid == 0) {
		struct spool *s = open_as(agent, 1 << 26, run);

		for (uint64_t seq = 1; seq <= n; seq++)
			put(s, seq, n_bytes);
		_exit(0); /* no spool_close() */
	}
	waitpid(pid, NULL, 0);
}

static unsigned n_files(void)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	unsigned n = 0;

	while ((e = readdir(d)))
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

static void the_only_file(char *path, size_t n_path)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	while ((e = readdir(d)))
		if (e->d_name[0] != '.')
			snprintf(path, n_path, "%s/%s", dir, e->d_name);
	closedir(d);
}

static void batches_come_back_oldest_first(void **state)
{
	struct spool *s = open_as(1, 1 << 26, "r");
	struct spool_stats st;

	(void)state;
	for (uint64_t seq = 1; seq <= 100; seq++)
		assert_int_not_equal(put(s, seq, 1000), 0);
	for (uint64_t seq = 1; seq <= 100; seq++) {
		struct spool_item it = spool_next(s);

		assert_int_equal(it.seq, seq);
		expect_frame(s, &it);
		spool_take(s, it.id);
		assert_int_equal(spool_oldest(s, seq), seq);
		spool_done(s, it.id);
		assert_int_equal(spool_oldest(s, seq), seq + 1);
	}
	assert_int_equal(spool_next(s).id, 0);
	spool_stats(s, &st);
	assert_int_equal(st.n_kept + st.kept_bytes + st.n_given_up, 0);
	spool_close(s);
	assert_int_equal(n_files(), 0);
}

static void a_batch_put_back_is_next_again(void **state)
{
	struct spool *s = open_as(1, 1 << 26, "r");
	struct spool_item one, two;

	(void)state;
	put(s, 1, 100);
	put(s, 2, 100);
	one = spool_next(s);
	spool_take(s, one.id);
	two = spool_next(s);
	assert_int_equal(two.seq, 2);
	spool_put_back(s, one.id);
	assert_int_equal(spool_next(s).seq, 1);
	spool_done(s, two.id);
	spool_done(s, one.id);
	spool_done(s, one.id); /* a second answer changes nothing */
	spool_close(s);
}

static void what_is_acknowledged_frees_the_disk(void **state)
{
	struct spool *s = open_as(1, 1 << 26, "r");
	struct spool_stats st;

	(void)state;
	for (uint64_t seq = 1; seq <= 2000; seq++) { /* 200 MB through a file that stays small */
		spool_done(s, put(s, seq, 100000));
		spool_stats(s, &st);
		assert_true(st.file_bytes < 1 << 20);
	}
	spool_close(s);
}

static void a_new_agent_ships_what_a_killed_one_left(void **state)
{
	struct spool_stats st;
	struct spool *s;
	uint64_t next;

	(void)state;
	put_in_killed_agent(1, "r", 50, 3000);
	s = open_as(2, 1 << 26, "r");
	spool_stats(s, &st);
	assert_int_equal(st.n_adopted, 50);
	put(s, 1, 500); /* its own, later */
	for (uint64_t seq = 1; seq <= 50; seq++) {
		struct spool_item it = spool_next(s);

		assert_int_equal(it.seq, seq);
		assert_int_equal(it.agent_id[0], 1);
		expect_frame(s, &it);
		spool_done(s, it.id);
	}
	assert_int_equal(spool_next(s).agent_id[0], 2);
	assert_true(spool_cursor(s, 0xabc, 3, &next));
	assert_int_equal(next, 500);
	assert_false(spool_cursor(s, 0xabc, 4, &next));
	spool_done(s, spool_next(s).id);
	spool_close(s);
	assert_int_equal(n_files(), 0);
}

static void a_living_agents_spool_is_not_adopted(void **state)
{
	struct spool *one = open_as(1, 1 << 26, "r"), *two;
	struct spool_stats st;

	(void)state;
	put(one, 1, 100);
	two = open_as(2, 1 << 26, "r");
	spool_stats(two, &st);
	assert_int_equal(st.n_adopted, 0);
	spool_close(two);
	spool_done(one, spool_next(one).id);
	spool_close(one);
}

static void another_run_is_left_alone(void **state)
{
	struct spool_stats st;
	struct spool *s;

	(void)state;
	put_in_killed_agent(1, "other", 3, 100);
	s = open_as(2, 1 << 26, "r");
	spool_stats(s, &st);
	assert_int_equal(st.n_adopted, 0);
	spool_close(s);
	assert_int_equal(n_files(), 1);
}

/* Whatever length the file was cut at, what stands whole before it is shipped. */
static void a_torn_tail_costs_only_the_torn_record(void **state)
{
	const uint64_t record = sizeof(struct spool_record) + sizeof(struct spool_cursor) + 300;
	char path[512];

	(void)state;
	for (uint64_t cut = 1; cut < 2 * record; cut += 37) {
		struct spool_stats st;
		struct spool *s;
		struct stat file;

		put_in_killed_agent(1, "r", 5, 300);
		the_only_file(path, sizeof path);
		assert_int_equal(stat(path, &file), 0);
		assert_int_equal(truncate(path, file.st_size - (off_t)cut), 0);
		s = open_as(2, 1 << 26, "r");
		spool_stats(s, &st);
		assert_int_equal(st.n_adopted, 5 - (cut + record - 1) / record);
		assert_int_equal(st.n_torn, cut % record != 0);
		for (uint64_t n = st.n_adopted; n > 0; n--) {
			struct spool_item it = spool_next(s);

			expect_frame(s, &it);
			spool_done(s, it.id);
		}
		spool_close(s);
		assert_int_equal(n_files(), 0);
	}
}

/* One flipped bit anywhere: never a batch that was not put. */
static void a_flipped_bit_is_noticed(void **state)
{
	const uint64_t record = sizeof(struct spool_record) + sizeof(struct spool_cursor) + 64;
	char path[512];

	(void)state;
	for (uint64_t at = 0; at < record; at++) {
		struct spool_stats st;
		struct spool *s;
		unsigned char c;
		int fd;

		put_in_killed_agent(1, "r", 3, 64);
		the_only_file(path, sizeof path);
		fd = open(path, O_RDWR);
		assert_int_equal(pread(fd, &c, 1, (off_t)(sizeof(struct spool_head) + record + at)), 1);
		c ^= (unsigned char)(1u << (at % 8));
		assert_int_equal(pwrite(fd, &c, 1, (off_t)(sizeof(struct spool_head) + record + at)), 1);
		close(fd);
		s = open_as(2, 1 << 26, "r");
		spool_stats(s, &st);
		assert_int_equal(st.n_adopted, 1); /* the second is bad, the third behind it */
		assert_int_equal(st.n_torn, 1);
		spool_done(s, spool_next(s).id);
		spool_close(s);
	}
}

static void the_bound_holds_and_what_goes_is_counted(void **state)
{
	struct spool *s = open_as(1, SPOOL_MIN_BYTES, "r");
	struct spool_stats st;
	uint64_t n_left = 0, first = 0;

	(void)state;
	for (uint64_t seq = 1; seq <= 100; seq++) {
		assert_int_not_equal(put(s, seq, 50000), 0);
		spool_stats(s, &st);
		assert_true(st.file_bytes <= SPOOL_MIN_BYTES);
	}
	for (struct spool_item it = spool_next(s); it.id != 0; it = spool_next(s)) {
		first = first ? first : it.seq;
		assert_int_equal(it.seq, first + n_left);
		n_left++;
		spool_done(s, it.id);
	}
	assert_int_equal(first + n_left, 101); /* the newest survive, without a gap */
	spool_stats(s, &st);
	assert_int_equal(st.n_given_up, (100 - n_left) * 10);
	assert_true(n_left >= 10);
	spool_close(s);
}

/* A batch in flight whose file was dropped counts only if its answer says no. */
static void what_is_in_flight_is_not_lost_yet(void **state)
{
	struct spool *s = open_as(1, SPOOL_MIN_BYTES, "r");
	struct spool_stats st;
	struct spool_item a, b;
	uint64_t n_before;

	(void)state;
	put(s, 1, 50000);
	put(s, 2, 50000);
	a = spool_next(s);
	spool_take(s, a.id);
	b = spool_next(s);
	spool_take(s, b.id);
	for (uint64_t seq = 3; seq <= 100; seq++)
		put(s, seq, 50000);
	assert_int_equal(spool_item(s, a.id).seq, 1);
	spool_stats(s, &st);
	n_before = st.n_given_up;
	spool_done(s, a.id);
	spool_stats(s, &st);
	assert_int_equal(st.n_given_up, n_before);
	spool_put_back(s, b.id);
	spool_stats(s, &st);
	assert_int_equal(st.n_given_up, n_before + 10);
	while ((a = spool_next(s)).id != 0)
		spool_done(s, a.id);
	spool_close(s);
}

/* Full disk: a limit on the file size refuses as ENOSPC does. Memory takes over,
 * within its bound, in order. */
static void a_disk_that_refuses_is_replaced_by_memory(void **state)
{
	struct rlimit old, small = { .rlim_cur = 300000 };
	struct spool *s = open_as(1, 1 << 26, "r");
	struct spool_stats st;
	uint64_t last = 0, n = 0;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	small.rlim_max = old.rlim_max;
	setrlimit(RLIMIT_FSIZE, &small);
	for (uint64_t seq = 1; seq <= 200; seq++)
		assert_int_not_equal(put(s, seq, 50000), 0);
	setrlimit(RLIMIT_FSIZE, &old);
	spool_stats(s, &st);
	assert_true(st.n_disk_errors > 0);
	assert_int_equal(st.last_errno, EFBIG);
	assert_true(st.n_given_up > 0);
	for (struct spool_item it = spool_next(s); it.id != 0; it = spool_next(s)) {
		assert_true(it.seq > last);
		last = it.seq;
		n++;
		expect_frame(s, &it);
		spool_done(s, it.id);
	}
	assert_int_equal(last, 200);
	assert_int_equal(st.n_given_up, (200 - n) * 10);
	assert_true(n * 50000 > SPOOL_MEMORY_BYTES - 100000);
	spool_close(s);
}

static void without_a_directory_memory_is_used(void **state)
{
	struct spool_head who = { 0 };
	struct spool_config cfg = { .max_bytes = 1 << 26, .who = &who };
	struct spool_item it;
	struct spool *s;

	(void)state;
	assert_int_equal(spool_open(&s, &cfg), 0);
	put(s, 1, 1000);
	it = spool_next(s);
	expect_frame(s, &it);
	assert_string_equal(spool_path(s), "");
	spool_close(s);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, fresh_dir, remove_dir)
	const struct CMUnitTest tests[] = {
		T(batches_come_back_oldest_first),
		T(a_batch_put_back_is_next_again),
		T(what_is_acknowledged_frees_the_disk),
		T(a_new_agent_ships_what_a_killed_one_left),
		T(a_living_agents_spool_is_not_adopted),
		T(another_run_is_left_alone),
		T(a_torn_tail_costs_only_the_torn_record),
		T(a_flipped_bit_is_noticed),
		T(the_bound_holds_and_what_goes_is_counted),
		T(what_is_in_flight_is_not_lost_yet),
		T(a_disk_that_refuses_is_replaced_by_memory),
		T(without_a_directory_memory_is_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
