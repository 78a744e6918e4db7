/* flight.h - what a process is inside of, as far as its events tell.
 *
 * Fed with events in ring order; answers "in which collective or phase, since
 * when" for the heartbeat, so that a hang is seen by what does not come.
 */
#pragma once

#include "../../proto/event.h"

#define FLIGHT_MAX_OPEN 32 /* outstanding collectives; beyond it the oldest is forgotten */
#define FLIGHT_MAX_DEPTH 8

struct flight_open {
	uint32_t group, seq, step; /* group: name id */
	uint8_t op, sync;
	int64_t since_ns;
};

struct flight {
	uint32_t step;
	int64_t step_since_ns, last_event_ns;
	struct {
		uint32_t phase;
		int64_t since_ns;
	} phases[FLIGHT_MAX_DEPTH];
	unsigned n_phases;
	struct flight_open open[FLIGHT_MAX_OPEN]; /* oldest first */
	unsigned n_open;
};

void flight_init(struct flight *f);
void flight_event(struct flight *f, const struct event *ev); /* host ns in tick */

struct flight_state {
	uint32_t step, phase;
	uint32_t group, seq, op; /* group 0 = in no collective */
	int64_t since_ns;
};
/* A collective that blocks its thread comes first, then the oldest outstanding
 * one, then the innermost phase, then the step. */
struct flight_state flight_state(const struct flight *f);
