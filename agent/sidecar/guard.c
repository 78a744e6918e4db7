#include "guard.h"

#include <setjmp.h>
#include <signal.h>
#include <stddef.h>

static _Thread_local sigjmp_buf *volatile way_out;

static void on_sigbus(int sig)
{
	sigjmp_buf *to = way_out;

	if (to)
		siglongjmp(*to, 1);
	signal(sig, SIG_DFL); /* not ours: die of it as anyone would, on return */
}

void guard_init(void)
{
	struct sigaction sa = { .sa_handler = on_sigbus };

	sigemptyset(&sa.sa_mask);
	sigaction(SIGBUS, &sa, NULL);
}

bool guarded(void (*fn)(void *arg), void *arg)
{
	sigjmp_buf env;

	if (sigsetjmp(env, 1) != 0) { /* 1: leaving the handler unblocks the signal again */
		way_out = NULL;
		return false;
	}
	way_out = &env;
	fn(arg);
	way_out = NULL;
	return true;
}
