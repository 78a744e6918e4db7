/* step_times.h - in which step was a process at that instant of its host's clock?
 *
 * Readings of gauges come in batches, behind the events of the time they were
 * taken at. The begins of a process's last steps are kept.
 */
#pragma once

#include "../align/roster.h"

struct step_begin {
	int64_t at_ns; /* host time */
	uint32_t step;
};

struct step_times_proc {
	struct step_begin *v; /* ring */
	uint32_t n_slots;     /* power of two */
	uint64_t n;
};

struct step_times {
	struct step_times_proc *procs; /* as in the roster */
	uint32_t n_procs;
};

void step_times_fini(struct step_times *t);
/* 0 or -ENOMEM. */
int step_times_event(struct step_times *t, uint32_t proc, const struct event *ev);
/* EVENT_STEP_UNKNOWN before its first step, and where it is forgotten. */
uint32_t step_times_at(const struct step_times *t, uint32_t proc, int64_t at_ns);
