/* clock.h - the clocks of this host that the agent reads.
 *
 * All of them go through one place, so that a test can give an agent a clock
 * whose offset, rate and steps it knows: SYNCLINE_TEST_CLOCK, for tests alone.
 */
#pragma once

#include "../../proto/frame.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

int64_t clock_ns(clockid_t id);

static inline int64_t raw_now(void)
{
	return clock_ns(CLOCK_MONOTONIC_RAW);
}

/* What the kernel shows, and what a test makes of it; the same but under a test. */
int64_t clock_true_raw(void);
int64_t clock_bend(int64_t true_raw_ns);

/* "offset=NS,ppb=N,origin=NS,step=AT:NS,wall=AT:NS": raw + offset + ppb since origin + NS
 * from AT (true RAW) on; wall steps REALTIME alone. False: it cannot be read. Once,
 * before any thread is started. */
bool clock_bend_by(const char *spec);
bool clock_is_bent(void);

/* One instant on all clocks, from the shortest of five tries. Source: the counter
 * that is read too, an enum shm_tick or FRAME_NO_TICK. */
struct frame_snapshot clock_snapshot(uint32_t tick_source);
