#include "part.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char parts[4][4096 + 16]; /* names that are ready: a handler makes none */

void part_forget(void)
{
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		unlink(parts[i]);
}

static void on_signal(int signal)
{
	part_forget();
	raise(signal); /* SA_RESETHAND: it ends the program when this returns */
}

static const int signals[] = { SIGINT, SIGTERM, SIGHUP };

int part_make(char *template)
{
	sigset_t set, before;
	int fd, error;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		sigaddset(&set, signals[i]);
	sigprocmask(SIG_BLOCK, &set, &before); /* one that comes now finds the name */
	fd = mkostemp(template, O_CLOEXEC);
	error = errno;
	if (fd >= 0)
		part_watch(template);
	sigprocmask(SIG_SETMASK, &before, NULL);
	errno = error;
	return fd;
}

void part_watch(const char *path)
{
	static const char *const suffixes[] = { "", "-wal", "-shm", "-journal" };
	struct sigaction act = { .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND }, old;

	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
		if (snprintf(parts[i], sizeof parts[i], "%s%s", path, suffixes[i]) >= (int)sizeof parts[i])
			parts[i][0] = '\0'; /* nobody can make a file of such a name */
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN) /* nohup */
			sigaction(signals[i], &act, NULL);
}
