/* export_window.h - which part of a run an export takes, and how much that is. */
#pragma once

#include "export.h"

struct export_instant {
	bool set, of_run; /* of_run: ns since the run began, else since 1970 */
	int64_t ns;
};

struct export_asked {
	int64_t first, last; /* -1 = not said */
	int64_t n_last;	     /* 0 = not said */
	int64_t finding;     /* 0 = not said */
	struct export_instant since, until;
	bool all;
};

/* "90.5" or "2026-01-31T12:00:05.25" (UTC). */
bool export_time(const char *text, struct export_instant *ret);

/* Fills e->window, e->size and, for a finding, e->ranks. An enum cli_exit; says why it is not fine. */
int export_choose(struct export *e, const struct export_asked *a);

/* Slices, instants and readings, roughly. */
int64_t export_guess_events(const struct export *e);
