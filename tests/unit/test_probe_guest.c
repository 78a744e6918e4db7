/* The guest rule: whatever the surroundings, the host goes on as if alone. */
#include "probe_case.h"

#include "tick.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#define NOBODY 54321

/* Off for this reason, with errno kept, nothing left behind, every call safe. */
static void must_be_off(enum probe_off why)
{
	struct syncline_status st = { .size = sizeof st };
	struct probe_stats s;
	uint64_t n_evaluated = 0;

	errno = 4711;
	CHECK(probe_start() == why);
	CHECK(errno == 4711);
	CHECK(probe_start() == why); /* settled */
	CHECK(syncline_start() == 0);
	probe_stats(&s);
	CHECK(s.off == why && s.file[0] == 0);
	syncline_mark(1, ++n_evaluated, 3);
	syncline_counter(1, 2);
	CHECK(n_evaluated == 0);
	(syncline_mark)(1, 2, 3); /* as through dlsym() */
	(syncline_counter)(1, 2);
	probe_emit(EVENT_STEP_BEGIN, 0, 0, 0, 0);
	probe_identity(0, 0, 1, 1, 0, "run");
	probe_set_step(3);
	CHECK(probe_step() == EVENT_STEP_UNKNOWN);
	CHECK(!probe_text(SHM_TEXT_LOG, 0, "x", 1));
	CHECK(syncline_name("x") == 0 && probe_level() == 0 && probe_header() == NULL);
	CHECK(probe_tick() != 0);
	syncline_get_status(&st);
	CHECK(!st.on && strlen(st.reason) > 20 && st.file[0] == 0);
	CHECK(strcmp(st.reason, probe_off_text(why)) == 0);
	CHECK(errno == 4711);
	CHECK(case_files("") == 0);
}

static int become_nobody(void)
{
	return geteuid() == 0 ? setresuid(NOBODY, NOBODY, NOBODY) : 0;
}

static void missing_parent(void)
{
	setenv("SYNCLINE_DIR", "/dev/shm/syncline-no-such/dir", 1);
	must_be_off(PROBE_NO_DIR);
}
static void a_directory_whose_parent_is_missing_turns_it_off(void **state)
{
	assert_int_equal(in_child(missing_parent), 0);
}

static void missing(void)
{
	struct probe_stats s;
	struct stat st;

	CHECK(rmdir(case_dir) == 0);
	umask(077);
	CHECK(probe_start() == PROBE_ON);
	CHECK(stat(case_dir, &st) == 0 && (st.st_mode & 07777) == 02770);
	probe_stats(&s);
	CHECK(stat(s.file, &st) == 0 && (st.st_mode & 0777) == 0660);
	CHECK(umask(077) == 077);
}
static void a_missing_directory_is_made_for_the_group(void **state)
{
	assert_int_equal(in_child(missing), 0);
}

static void is_a_file(void)
{
	setenv("SYNCLINE_DIR", "/proc/version", 1);
	must_be_off(PROBE_NO_DIR);
}
static void a_file_in_the_directorys_place_turns_it_off(void **state)
{
	assert_int_equal(in_child(is_a_file), 0);
}

static void unwritable(void)
{
	CHECK(chmod(case_dir, 0555) == 0);
	CHECK(become_nobody() == 0);
	must_be_off(PROBE_DIR_DENIED);
}
static void a_directory_without_write_access_turns_it_off(void **state)
{
	assert_int_equal(in_child(unwritable), 0);
}

static void unsearchable(void)
{
	CHECK(chmod(case_dir, 0) == 0);
	CHECK(become_nobody() == 0);
	case_dir[0] = 0; /* nothing can be counted in it either */
	must_be_off(PROBE_DIR_DENIED);
}
static void a_directory_without_any_access_turns_it_off(void **state)
{
	assert_int_equal(in_child(unsearchable), 0);
}

static void foreign_default(void)
{
	char dir[64];

	snprintf(dir, sizeof dir, "/dev/shm/syncline-%d", NOBODY);
	CHECK(mkdir(dir, 0777) == 0 && chmod(dir, 0777) == 0);
	unsetenv("SYNCLINE_DIR");
	if (fork() == 0) {
		CHECK(become_nobody() == 0);
		must_be_off(PROBE_DIR_FOREIGN);
		_exit(0);
	} else {
		int status;

		CHECK(wait(&status) > 0);
		CHECK(rmdir(dir) == 0);
		CHECK(status == 0);
	}
}
static void a_default_directory_of_another_user_is_not_trusted(void **state)
{
	if (geteuid() != 0)
		skip(); /* needs two users */
	assert_int_equal(in_child(foreign_default), 0);
}

static void no_promise(void)
{
	setenv("SYNCLINE_DIR", "/proc/self", 1);
	must_be_off(PROBE_DIR_FILESYSTEM);
}
static void a_file_system_that_cannot_promise_space_turns_it_off(void **state)
{
	assert_int_equal(in_child(no_promise), 0);
}

static void asked_off(void)
{
	setenv("SYNCLINE_OFF", "1", 1);
	must_be_off(PROBE_ASKED_OFF);
}
static void syncline_off_turns_it_off(void **state)
{
	assert_int_equal(in_child(asked_off), 0);
}

static void small_files(void)
{
	struct rlimit l = { 64 << 10, 64 << 10 };

	CHECK(setrlimit(RLIMIT_FSIZE, &l) == 0);
	must_be_off(PROBE_FILE_LIMIT); /* and no SIGXFSZ */
}
static void smaller_files(void)
{
	struct rlimit l = { 1 << 20, 1 << 20 };

	CHECK(setrlimit(RLIMIT_FSIZE, &l) == 0);
	CHECK(probe_start() == PROBE_ON && case_header()->file_bytes == 1 << 20);
}
static void a_limit_on_file_size_is_kept(void **state)
{
	assert_int_equal(in_child(small_files), 0);
	assert_int_equal(in_child(smaller_files), 0);
}

static void no_descriptor(void)
{
	for (int at = 0; at < 3; at++) { /* none, one, two left: each step may fail */
		int status;
		pid_t pid = fork();

		if (pid == 0) {
			int fd = open("/dev/null", O_RDONLY);
			struct rlimit l = { (rlim_t)(fd + at), (rlim_t)(fd + at) };

			close(fd);
			CHECK(setrlimit(RLIMIT_NOFILE, &l) == 0);
			CHECK(probe_start() == PROBE_NO_FD);
			l.rlim_cur = l.rlim_max;
			_exit(0);
		}
		CHECK(waitpid(pid, &status, 0) == pid && status == 0);
		CHECK(case_files("") == 0);
	}
}
static void no_descriptor_left_turns_it_off(void **state)
{
	assert_int_equal(in_child(no_descriptor), 0);
}

static void no_address_space(void)
{
	char line[256];
	struct rlimit l;
	long pages;
	FILE *f = fopen("/proc/self/statm", "r");

	CHECK(f && fgets(line, sizeof line, f));
	fclose(f);
	pages = strtol(line, NULL, 10);
	l.rlim_cur = l.rlim_max = (rlim_t)pages * 4096 + (2 << 20);
	CHECK(setrlimit(RLIMIT_AS, &l) == 0);
	must_be_off(PROBE_NO_MAP);
}
static void no_address_space_left_turns_it_off(void **state)
{
	if (SANITIZED)
		skip(); /* the sanitizer's shadow is larger than any such limit */
	assert_int_equal(in_child(no_address_space), 0);
}

static void silent(void)
{
	struct stat st;
	int fd;

	fd = open(case_dir, O_TMPFILE | O_RDWR, 0600);
	CHECK(fd >= 0 && dup2(fd, 1) == 1);
	setenv("SYNCLINE_DIR", "/dev/shm/syncline-no-such/dir", 1);
	CHECK(dup2(fd, 2) == 2);
	if (probe_start() != PROBE_NO_DIR)
		_exit(3);
	syncline_mark(1, 1, 1);
	fflush(NULL);
	if (fstat(fd, &st) != 0 || st.st_size != 0)
		_exit(4);
}
static void nothing_is_printed(void **state)
{
	assert_int_equal(in_child(silent), 0);
}

static void closed_stdio(void)
{
	struct probe_stats s;

	close(0);
	close(1);
	close(2);
	if (probe_start() != PROBE_ON)
		_exit(2);
	probe_stats(&s);
	/* The numbers are still the host's to give away. */
	if (open("/dev/null", O_RDWR) != 0 || open("/dev/null", O_RDWR) != 1 ||
	    open("/dev/null", O_RDWR) != 2)
		_exit(3);
	if (write(1, "hello", 5) != 5 || case_header()->magic != SHM_MAGIC)
		_exit(4);
}
static void the_file_never_becomes_standard_output(void **state)
{
	assert_int_equal(in_child(closed_stdio), 0);
}

static void whole_file(void)
{
	struct probe_stats s;
	struct shm_header h;
	struct stat st;
	void *map;
	int fd;

	errno = 4711;
	CHECK(probe_start() == PROBE_ON && errno == 4711);
	syncline_mark(1, 2, 3);
	CHECK(errno == 4711);
	probe_identity(2, 1, 8, 4, 3, "a run");
	probe_set_step(17);
	CHECK(probe_step() == 17);
	probe_stats(&s);
	CHECK(s.n_events == 1 && s.n_rings_taken == 1 && s.n_dropped == 0 && s.level == 2);
	CHECK(case_files(SHM_SUFFIX) == 1 && case_files(".new") == 0);

	fd = open(s.file, O_RDONLY); /* never to be closed: it would drop the lock */
	CHECK(fd >= 0 && fstat(fd, &st) == 0);
	CHECK((uint64_t)st.st_blocks * 512 >= (uint64_t)st.st_size); /* no hole */
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(map != MAP_FAILED && shm_check(map, (size_t)st.st_size, &h) == SHM_OK);
	CHECK(h.pid == (uint32_t)getpid() && h.unique != 0);
	CHECK(h.identity.rank == 2 && h.identity.local_rank == 1 && h.identity.world_size == 8);
	CHECK(h.identity.local_world_size == 4 && h.identity.restart_count == 3);
	CHECK(strcmp(h.identity.run_id, "a run") == 0 && h.identity.host[0] != 0);
	CHECK(h.identity.generation % 2 == 0 && h.identity.generation > 0);
	CHECK(h.step == 17 && h.closed == 0 && h.clock.tick != 0);
	CHECK(h.started_raw_ns > 0 && h.started_real_ns > INT64_C(1600000000000000000));
}
static void the_file_is_whole_when_it_can_be_seen(void **state)
{
	assert_int_equal(in_child(whole_file), 0);
}

/* Is anybody holding the file of the only process in the directory? */
static int lock_holder(void)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1 };
	DIR *d = opendir(case_dir);
	struct dirent *e;
	int fd = -1, r;

	while (d && fd < 0 && (e = readdir(d)))
		if (strstr(e->d_name, SHM_SUFFIX))
			fd = openat(dirfd(d), e->d_name, O_RDWR | O_CLOEXEC);
	if (d)
		closedir(d);
	if (fd < 0)
		return -1;
	r = fcntl(fd, F_GETLK, &l) == 0 && l.l_type == F_WRLCK;
	close(fd);
	return r;
}

static void same_in_child(void)
{
	struct probe_stats s;
	uint64_t n_evaluated = 0;

	probe_stats(&s);
	CHECK(s.off == PROBE_FORKED && probe_header() == NULL);
	CHECK(probe_start() == PROBE_FORKED && syncline_start() == 0);
	for (unsigned i = 0; i < 1000; i++)
		(syncline_mark)(1, 666, 666);
	syncline_mark(1, ++n_evaluated, 666);
	CHECK(n_evaluated == 0);
	CHECK(!probe_text(SHM_TEXT_LOG, 0, "child", 5) && probe_name("child") == 0);
	CHECK(probe_level() == 0 && probe_step() == EVENT_STEP_UNKNOWN);
	probe_set_step(666);
	probe_identity(666, 0, 0, 0, 0, "child");
}

static void parent_goes_on(pid_t child)
{
	int status;

	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	CHECK(status == 0);
	syncline_mark(1, 2, 2);
	CHECK(case_ring(0)->head == 2 && case_ring(0)->n_dropped == 0);
	CHECK(case_ring(1)->state == SHM_RING_FREE);
	CHECK(case_ring(0)->state == SHM_RING_OWNED);
	CHECK(case_header()->closed == 0 && case_header()->text.head == 0);
	CHECK(case_header()->identity.rank == 5 && case_header()->step == 9);
	CHECK(case_header()->n_dropped_without_ring == 0);
}

static void before_child(void)
{
	CHECK(probe_start() == PROBE_ON);
	probe_identity(5, 0, 8, 8, 0, "parent");
	probe_set_step(9);
	syncline_mark(1, 1, 1);
}

static void forks(void)
{
	pid_t pid;

	before_child();
	pid = fork();
	if (pid == 0) {
		same_in_child();
		exit(0); /* runs what the parent would run at its exit */
	}
	parent_goes_on(pid);
}
static void a_forked_child_is_off_and_leaves_the_parents_file_alone(void **state)
{
	assert_int_equal(in_child(forks), 0);
}

static void clones(void)
{
	pid_t pid;

	before_child();
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (pid == 0) {
		same_in_child();
		if (SANITIZED)
			exit(0); /* what only this stack knows would be called a leak */
		pthread_exit(NULL); /* the last thread: destructors, then exit(0) */
	}
	parent_goes_on(pid);
}
static void a_cloned_child_is_off_without_any_handler(void **state)
{
	assert_int_equal(in_child(clones), 0);
}

static void grandchildren(void)
{
	pid_t pid;

	before_child();
	pid = fork();
	if (pid == 0) {
		pid_t pid2 = fork();
		int status;

		if (pid2 == 0) {
			same_in_child();
			_exit(0);
		}
		CHECK(waitpid(pid2, &status, 0) == pid2 && status == 0);
		_exit(0);
	}
	parent_goes_on(pid);
}
static void a_grandchild_is_off_too(void **state)
{
	assert_int_equal(in_child(grandchildren), 0);
}

static void *emit_until_told(void *arg)
{
	atomic_int *stop = arg;

	while (!atomic_load(stop))
		syncline_mark(1, 1, 1);
	return NULL;
}

static void forks_in_a_storm(void)
{
	atomic_int stop = 0;
	pthread_t t;

	CHECK(probe_start() == PROBE_ON);
	CHECK(pthread_create(&t, NULL, emit_until_told, &stop) == 0);
	for (unsigned i = 0; i < 50; i++) {
		int status;
		pid_t pid = fork();

		if (pid == 0) {
			same_in_child();
			_exit(0);
		}
		CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	}
	atomic_store(&stop, 1);
	CHECK(pthread_join(t, NULL) == 0);
	for (uint64_t i = 0; i < case_ring(0)->head; i++)
		CHECK(case_event(0, i)->a == 1);
}
static void forks_while_another_thread_emits_are_clean(void **state)
{
	assert_int_equal(in_child(forks_in_a_storm), 0);
}

static void reused_number(void)
{
	int status, ours = -1, theirs;
	struct stat file, st;
	struct probe_stats s;
	pid_t pid;

	CHECK(probe_start() == PROBE_ON);
	probe_stats(&s);
	CHECK(stat(s.file, &file) == 0);
	for (int fd = 3; fd < 1024 && ours < 0; fd++)
		if (fstat(fd, &st) == 0 && st.st_ino == file.st_ino)
			ours = fd;
	CHECK(ours > 2);
	theirs = open("/dev/null", O_RDWR);
	CHECK(dup2(theirs, ours) == ours); /* as a host that closes "all" does */
	pid = fork();
	if (pid == 0) {
		CHECK(write(ours, "x", 1) == 1); /* the host's file is still open */
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}
static void a_child_closes_no_file_of_the_host(void **state)
{
	assert_int_equal(in_child(reused_number), 0);
}

static void launcher_forks_first(void)
{
	int status;
	pid_t pid = fork(); /* nothing is started yet, as in a launcher */

	if (pid == 0) {
		CHECK(probe_start() == PROBE_ON);
		syncline_mark(1, 1, 1);
		CHECK(case_ring(0)->head == 1);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(probe_start() == PROBE_ON);
	CHECK(case_files(SHM_SUFFIX) == 2);
}
static void a_child_forked_before_the_start_is_a_host_of_its_own(void **state)
{
	assert_int_equal(in_child(launcher_forks_first), 0);
}

/* A live host for the lock's tests: says a byte when it is ready, then does
 * what it was made for when told by a byte. */
struct live {
	pid_t pid;
	int to, from;
};

static struct live live_start(void (*then)(void))
{
	int to[2], from[2];
	struct live l;
	char c = 0;

	assert_int_equal(pipe2(to, O_CLOEXEC), 0);
	assert_int_equal(pipe2(from, O_CLOEXEC), 0);
	l.pid = fork();
	if (l.pid == 0) {
		dup2(to[0], 0);
		dup2(from[1], 1);
		CHECK(probe_start() == PROBE_ON);
		CHECK(write(1, "r", 1) == 1);
		CHECK(read(0, &c, 1) == 1);
		then();
		_exit(0);
	}
	close(to[0]);
	close(from[1]);
	l.to = to[1];
	l.from = from[0];
	assert_int_equal(read(l.from, &c, 1), 1);
	return l;
}

static int live_end(struct live *l)
{
	int status;

	close(l->to);
	close(l->from);
	assert_int_equal(waitpid(l->pid, &status, 0), l->pid);
	return status;
}

static void do_nothing(void)
{
	pause();
}

static void the_lock_is_held_until_death(void **state)
{
	struct live l = live_start(do_nothing);

	assert_int_equal(lock_holder(), 1);
	assert_int_equal(kill(l.pid, SIGKILL), 0);
	(void)live_end(&l);
	assert_int_equal(lock_holder(), 0);
	assert_int_equal(case_files(SHM_SUFFIX), 1); /* its last events can be read */
}

static void run_cat(void)
{
	execlp("cat", "cat", (char *)NULL);
	_exit(1);
}

static void exec_drops_the_lock(void **state)
{
	struct live l = live_start(run_cat);
	char c = 0;

	assert_int_equal(lock_holder(), 1);
	assert_int_equal(write(l.to, "xy", 2), 2);
	assert_int_equal(read(l.from, &c, 1), 1); /* cat is there and has answered */
	assert_int_equal(c, 'y');
	assert_int_equal(lock_holder(), 0);
	assert_int_equal(live_end(&l), 0);
}

static void fork_and_report(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		for (int fd = 3; fd < 1024; fd++)
			close(fd); /* as a daemon does */
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(write(1, "f", 1) == 1);
	pause();
}

static void a_childs_closing_keeps_the_parents_lock(void **state)
{
	struct live l = live_start(fork_and_report);
	char c;

	assert_int_equal(write(l.to, "x", 1), 1);
	assert_int_equal(read(l.from, &c, 1), 1);
	assert_int_equal(lock_holder(), 1);
	kill(l.pid, SIGKILL);
	(void)live_end(&l);
}

static uint32_t closed_of_only_file(void)
{
	static struct shm_header h;
	DIR *d = opendir(case_dir);
	struct dirent *e;
	int fd = -1;

	while (d && fd < 0 && (e = readdir(d)))
		if (strstr(e->d_name, SHM_SUFFIX))
			fd = openat(dirfd(d), e->d_name, O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &h, sizeof h, 0), sizeof h);
	close(fd);
	closedir(d);
	return h.closed;
}

static void exits(void)
{
	CHECK(probe_start() == PROBE_ON);
	exit(0);
}
static void an_exit_in_order_says_so(void **state)
{
	assert_int_equal(in_child(exits), 0);
	assert_int_equal(closed_of_only_file(), 1);
}

static void vanishes(void)
{
	CHECK(probe_start() == PROBE_ON);
	_exit(0);
}
static void an_exit_without_handlers_does_not(void **state)
{
	assert_int_equal(in_child(vanishes), 0);
	assert_int_equal(closed_of_only_file(), 0);
}

static void public_start(void)
{
	struct syncline_status st = { .size = sizeof st };

	setenv("SYNCLINE_RUN", "run-1", 1);
	setenv("RANK", "3", 1);
	setenv("WORLD_SIZE", "4", 1);
	setenv("LOCAL_RANK", "nonsense", 1);
	syncline_mark(0, 42, 0); /* the first call starts, and its event counts */
	CHECK(case_ring(0)->head == 1 && case_event(0, 0)->a == 42);
	CHECK(case_header()->identity.rank == 3 && case_header()->identity.world_size == 4);
	CHECK(case_header()->identity.local_rank == -1);
	CHECK(strcmp(case_header()->identity.run_id, "run-1") == 0);
	syncline_get_status(&st);
	CHECK(st.on && st.level == 2 && st.reason[0] == 0 && strstr(st.file, case_dir));
	probe_identity(7, 0, 8, 8, 0, NULL);
	CHECK(case_header()->identity.rank == 7);
	CHECK(strcmp(case_header()->identity.run_id, "run-1") == 0);
}
static void the_first_public_call_starts_and_knows_its_rank(void **state)
{
	assert_int_equal(in_child(public_start), 0);
}

static void not_asked(void)
{
	unsetenv("SYNCLINE_DIR");
	syncline_mark(0, 42, 0);
	must_be_off(PROBE_NOT_ASKED);
}
static void without_a_trace_in_the_environment_it_stays_off(void **state)
{
	assert_int_equal(in_child(not_asked), 0);
}

static void helper_of_rank(void)
{
	setenv("SYNCLINE_RANK_PID", "1", 1);
	CHECK(syncline_start() == 0);
	must_be_off(PROBE_NOT_RANK);
}
static void a_program_started_by_a_rank_is_no_rank(void **state)
{
	assert_int_equal(in_child(helper_of_rank), 0);
}

static void small_status(void)
{
	union {
		struct syncline_status st;
		unsigned char bytes[sizeof(struct syncline_status)];
	} u;

	memset(&u, 0xaa, sizeof u);
	u.st.size = offsetof(struct syncline_status, level);
	syncline_get_status(&u.st);
	CHECK(u.st.on == 0);
	for (size_t i = offsetof(struct syncline_status, level); i < sizeof u; i++)
		CHECK(u.bytes[i] == 0xaa);
	syncline_get_status(NULL);
}
static void an_older_programs_status_is_not_overrun(void **state)
{
	assert_int_equal(in_child(small_status), 0);
}

static void *start_too(void *arg)
{
	syncline_mark(1, (uintptr_t)arg, 0);
	return NULL;
}

static void many_start(void)
{
	pthread_t t[8];
	uint64_t n = 0;

	for (uintptr_t i = 0; i < 8; i++)
		CHECK(pthread_create(&t[i], NULL, start_too, (void *)i) == 0);
	for (unsigned i = 0; i < 8; i++)
		CHECK(pthread_join(t[i], NULL) == 0);
	CHECK(case_files(SHM_SUFFIX) == 1 && case_files("") == 1);
	for (unsigned i = 0; i < case_header()->n_rings; i++)
		n += case_ring(i)->head + case_ring(i)->n_dropped;
	CHECK(n + case_header()->n_dropped_without_ring == 8);
}
static void threads_that_start_at_once_make_one_file(void **state)
{
	assert_int_equal(in_child(many_start), 0);
}

static void the_counter_is_used_only_where_the_kernel_does(void **state)
{
	assert_int_equal(tick_for_clocksource("kvm-clock"), SHM_TICK_RAW);
	assert_int_equal(tick_for_clocksource("hpet"), SHM_TICK_RAW);
	assert_int_equal(tick_for_clocksource(""), SHM_TICK_RAW);
	assert_int_equal(tick_for_clocksource("tsc-early"), SHM_TICK_RAW);
#if defined(__x86_64__)
	assert_int_equal(tick_for_clocksource("tsc"), SHM_TICK_TSC);
	assert_int_equal(tick_for_clocksource("arch_sys_counter"), SHM_TICK_RAW);
#elif defined(__aarch64__)
	assert_int_equal(tick_for_clocksource("arch_sys_counter"), SHM_TICK_CNTVCT);
	assert_int_equal(tick_for_clocksource("tsc"), SHM_TICK_RAW);
#endif
}

static void the_clock_triple_is_one_moment(void **state)
{
	struct shm_clock_triple t;
	uint64_t before = tick_raw_ns(), after;

	tick_triple(SHM_TICK_RAW, &t);
	after = tick_raw_ns();
	assert_true(before <= (uint64_t)t.raw_ns && (uint64_t)t.raw_ns <= after);
	assert_int_equal(t.tick, t.raw_ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_directory_whose_parent_is_missing_turns_it_off),
		CASE(a_missing_directory_is_made_for_the_group),
		CASE(a_file_in_the_directorys_place_turns_it_off),
		CASE(a_directory_without_write_access_turns_it_off),
		CASE(a_directory_without_any_access_turns_it_off),
		CASE(a_default_directory_of_another_user_is_not_trusted),
		CASE(a_file_system_that_cannot_promise_space_turns_it_off),
		CASE(syncline_off_turns_it_off),
		CASE(a_limit_on_file_size_is_kept),
		CASE(no_descriptor_left_turns_it_off),
		CASE(no_address_space_left_turns_it_off),
		CASE(nothing_is_printed),
		CASE(the_file_never_becomes_standard_output),
		CASE(the_file_is_whole_when_it_can_be_seen),
		CASE(a_forked_child_is_off_and_leaves_the_parents_file_alone),
		CASE(a_cloned_child_is_off_without_any_handler),
		CASE(a_grandchild_is_off_too),
		CASE(forks_while_another_thread_emits_are_clean),
		CASE(a_child_closes_no_file_of_the_host),
		CASE(a_child_forked_before_the_start_is_a_host_of_its_own),
		CASE(the_lock_is_held_until_death),
		CASE(exec_drops_the_lock),
		CASE(a_childs_closing_keeps_the_parents_lock),
		CASE(an_exit_in_order_says_so),
		CASE(an_exit_without_handlers_does_not),
		CASE(the_first_public_call_starts_and_knows_its_rank),
		CASE(without_a_trace_in_the_environment_it_stays_off),
		CASE(a_program_started_by_a_rank_is_no_rank),
		CASE(an_older_programs_status_is_not_overrun),
		CASE(threads_that_start_at_once_make_one_file),
		CASE(the_counter_is_used_only_where_the_kernel_does),
		CASE(the_clock_triple_is_one_moment),
	};
	return cmocka_run_group_tests_name("probe_guest", tests, NULL, NULL);
}
