/* probe_case.h - one process a case: the probe starts once in a process's life.
 *
 * The test program itself never starts it, so every forked child is a fresh
 * host. Inside a child CHECK() ends it; cmocka's asserts would jump back into
 * the runner.
 */
#pragma once

#include "unit.h"

#include "probe.h"
#include "syncline_probe.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what)                                                                            \
	do {                                                                                   \
		if (!(what)) {                                                                 \
			dprintf(2, "%s:%d: not so: %s (errno %d)\n", __FILE__, __LINE__, #what, \
				errno);                                                        \
			_exit(1);                                                              \
		}                                                                              \
	} while (0)

static char case_dir[64];

/* 0 = the case held; else its exit code, or 1000 + the signal that ended it. */
static inline int in_child(void (*host)(void))
{
	pid_t pid;
	int status;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		alarm(60);
		host();
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

static inline int case_files(const char *suffix)
{
	DIR *d = opendir(case_dir);
	struct dirent *e;
	int n = 0;

	while (d && (e = readdir(d))) {
		size_t len = strlen(e->d_name), tail = strlen(suffix);

		n += e->d_name[0] != '.' && len >= tail &&
		     strcmp(e->d_name + len - tail, suffix) == 0;
	}
	if (d)
		closedir(d);
	return n;
}

static inline void case_clear(void)
{
	DIR *d = opendir(case_dir);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.')
			unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
	rmdir(case_dir);
}

static inline int case_setup(void **state)
{
	(void)state;
	strcpy(case_dir, "/dev/shm/syncline-case-XXXXXX");
	if (!mkdtemp(case_dir))
		return -1;
	setenv("SYNCLINE_DIR", case_dir, 1);
	unsetenv("SYNCLINE_LEVEL");
	unsetenv("SYNCLINE_OFF");
	unsetenv("SYNCLINE_RUN");
	unsetenv("SYNCLINE_COLLECTOR");
	unsetenv("SYNCLINE_RANK_PID");
	unsetenv("RANK");
	return 0;
}

static inline int case_teardown(void **state)
{
	(void)state;
	case_clear();
	return 0;
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, case_setup, case_teardown)

/* The shared file as the agent may write to it. */
static inline struct shm_header *case_header(void)
{
	return (struct shm_header *)(uintptr_t)probe_header();
}
static inline struct shm_ring *case_ring(unsigned i)
{
	struct shm_header *h = case_header();

	return (struct shm_ring *)((unsigned char *)h + h->ring_headers_at) + i;
}
static inline struct event *case_event(unsigned ring, uint64_t index)
{
	struct shm_header *h = case_header();

	return (struct event *)((unsigned char *)h + h->ring_slots_at) +
	       (size_t)ring * h->ring_slots + (index & (h->ring_slots - 1));
}
