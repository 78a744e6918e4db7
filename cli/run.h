/* run.h - one traced job from start to verdict, for `run` and `demo`. */
#pragma once

#include "launch.h"
#include "paths.h"
#include "services.h"

struct run_plan {
	struct services_options services;
	char *const *argv;
	unsigned n_ranks; /* 0 = argv starts its ranks itself */
	/* Called while the dashboard is up and the job runs; may be NULL. */
	void (*on_tick)(void *arg, const char *http_url);
	void *arg;
};

struct run_outcome {
	struct launch_result job;
	bool traced;      /* the probe was in the job's environment */
	bool shipped;     /* the collector has all that the agent read */
	bool has_db;      /* services.db can be read now */
	char http_bound[128]; /* ADDR:PORT where the dashboard was, "" = nowhere */
};

/* 0 or a negative errno when the job could not even be tried. After the job:
 * agent and collector end first, then `ret` is filled. */
int run_job(const struct paths *p, const struct run_plan *plan, struct run_outcome *ret);

/* "20260131-120005-1a2b": unique enough for one person's runs. */
void run_make_id(char *out, size_t n, const char *prefix);

/* Is there a run in this file already? Says so and returns false. An empty or
 * missing file is fine. */
bool run_db_is_free(const char *path);

/* python3 of PATH, or the system's when only that one has torch. Sets
 * *ret_has_torch. SYNCLINE_PYTHON wins. */
const char *run_python(bool *ret_has_torch);
