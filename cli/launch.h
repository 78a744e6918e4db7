/* launch.h - start a job's processes, pass signals on, wait for the end.
 *
 * Either one command as it stands (torchrun, mpirun, a script), which keeps our
 * terminal, stdin and process group; or n ranks of one command with torch's
 * environment, each in its own process group and with its output prefixed by the
 * rank. When a rank fails the others are stopped, as torchrun does.
 *
 * Children that are not the job's (collector, agent) are reported to on_child.
 * One thread; signals are taken through a signalfd while launch_run() runs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define LAUNCH_MAX_RANKS 1024
#define LAUNCH_STOP_MS 10000 /* from SIGTERM to SIGKILL for the ranks that remain */

struct launch_spec {
	char *const *argv;
	unsigned n_ranks;	    /* 0 = one plain command */
	int tick_ms;		    /* how often on_tick is called */
	void (*set_env)(void *arg); /* in the child, before exec; may be NULL */
	void (*on_child)(void *arg, pid_t pid, int wait_status);
	void (*on_tick)(void *arg);
	void *arg;
};

struct launch_result {
	int status;	  /* the job's own: exit status, or 128 + signal */
	int failed_rank;  /* the first one that failed, -1 = none */
	bool not_started; /* nothing was run: the command could not be executed */
	bool interrupted; /* SIGINT, SIGTERM, SIGHUP or SIGQUIT came for us */
};

/* Block the signals that launch_run() reads, so that none is lost between the
 * start of the services and the job. Children get the mask of before. */
void launch_block_signals(void);
/* In a child of ours, before exec. */
void launch_restore_signals(void);

/* 0 or a negative errno when not even a process could be made. */
int launch_run(const struct launch_spec *spec, struct launch_result *ret);

/* Sleep up to ms; true when a signal that asks us to stop came meanwhile. */
bool launch_pause(int ms);
