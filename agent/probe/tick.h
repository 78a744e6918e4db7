/* tick.h - the cheapest clock that is safe to compare across this host's cores.
 *
 * The processor's counter is used only where the kernel keeps time by it: then
 * the kernel has found it steady and equal on all cores. Elsewhere (a virtual
 * machine on kvm-clock, an unstable counter) it is CLOCK_MONOTONIC_RAW in
 * nanoseconds. The agent converts ticks to time; the guest never does.
 */
#pragma once

#include "../../proto/shm.h"

#include <stdint.h>
#include <time.h>

/* Reads one file of /sys: at start only. */
enum shm_tick tick_detect(void);
/* The same for a clocksource's name, so that it can be tested. */
enum shm_tick tick_for_clocksource(const char *name);

/* Tick, RAW and REALTIME of one moment: the tightest of a few tries. */
void tick_triple(enum shm_tick source, struct shm_clock_triple *ret);

static inline uint64_t tick_raw_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_RAW, &ts); /* a vDSO read, no system call */
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* The processor's counter; only for a source other than SHM_TICK_RAW. */
#if defined(__x86_64__)
static inline uint64_t tick_counter(void)
{
	return __builtin_ia32_rdtsc();
}
#elif defined(__aarch64__)
static inline uint64_t tick_counter(void)
{
	uint64_t v;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
	return v;
}
#else
static inline uint64_t tick_counter(void)
{
	return tick_raw_ns(); /* tick_detect() never names a counter here */
}
#endif

static inline uint64_t tick_read(uint32_t source)
{
	return source == SHM_TICK_RAW ? tick_raw_ns() : tick_counter();
}
