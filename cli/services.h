/* services.h - the collector and the agent that `run` and `demo` bring along.
 *
 * The job comes first: whatever happens to a service is said once and the job
 * goes on. A service that was up and dies is started again (the agent resends
 * what the collector had not committed), at most SERVICES_MAX_RESTARTS times.
 */
#pragma once

#include "paths.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define SERVICES_MAX_RESTARTS 3

struct services_options {
	const char *db;		   /* catalogue to write */
	const char *http;	   /* ADDR:PORT, NULL = a free port on loopback */
	const char *collector_url; /* use this one and start none; NULL = start one */
	const char *dir;	   /* an agent serves it already; NULL = start one */
	const char *run_id;
	const char *token_file;	     /* for --collector; may be NULL */
	const char *http_token_file; /* may be NULL */
	int level;
};

struct service {
	pid_t pid; /* 0 = not running */
	int64_t started_ms;
	unsigned n_restarts;
	bool ready, given_up;
	bool clean; /* it ended with status 0: nothing is left undone */
};

struct services {
	const struct paths *paths;
	struct services_options options;
	struct service collector, agent;
	char work_dir[PATH_MAX];   /* socket, logs, spool; 0700 */
	char shared_dir[PATH_MAX]; /* SYNCLINE_DIR, 0770 */
	bool owns_shared_dir;
	char url[256];	      /* control URL for the agent */
	char http_url[256];   /* "" = unknown (a collector of somebody else's) */
	char http_bound[128]; /* ADDR:PORT of it, for a restart */
	int64_t log_read;     /* bytes of the collector's log that were looked at */
	bool traced;	      /* the job gets the probe's environment */
};

/* Start what is missing. Never fails: what could not be started is said on
 * stderr and traced is false. */
void services_start(struct services *s, const struct paths *p, const struct services_options *o);
/* A child of ours ended while the job runs. */
void services_child(struct services *s, pid_t pid, int wait_status);
void services_tick(struct services *s);
/* In a child, before it becomes the job. */
void services_job_env(const struct services *s);
/* The job is over: let the agent ship the rest, end it. Signals hurry it. */
void services_stop_agent(struct services *s);
/* Then the collector: it commits what it has and closes the database. */
void services_stop_collector(struct services *s);
/* Did all that the agent read reach its collector? Known once both have ended. */
bool services_all_shipped(const struct services *s);
/* Removes the directories, but not batches that no collector took: says where
 * they are and how to ship them. */
void services_fini(struct services *s);
