/* clock.h - the two clocks of this host that the agent reads. */
#pragma once

#include <stdint.h>
#include <time.h>

static inline int64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static inline int64_t raw_now(void)
{
	return clock_ns(CLOCK_MONOTONIC_RAW);
}
