#include "tick.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define CLOCKSOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"

enum shm_tick tick_for_clocksource(const char *name)
{
#if defined(__x86_64__)
	if (strcmp(name, "tsc") == 0)
		return SHM_TICK_TSC;
#elif defined(__aarch64__)
	if (strcmp(name, "arch_sys_counter") == 0)
		return SHM_TICK_CNTVCT;
#endif
	(void)name;
	return SHM_TICK_RAW;
}

enum shm_tick tick_detect(void)
{
	char name[32] = "";
	ssize_t n;
	int fd;

	fd = open(CLOCKSOURCE, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return SHM_TICK_RAW;
	n = read(fd, name, sizeof name - 1);
	close(fd);
	if (n < 0)
		return SHM_TICK_RAW;
	name[n] = 0;
	name[strcspn(name, "\n")] = 0;
	return tick_for_clocksource(name);
}

void tick_triple(enum shm_tick source, struct shm_clock_triple *ret)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < 5; i++) {
		struct timespec real;
		uint64_t before, after, tick;

		before = tick_raw_ns();
		tick = tick_read(source);
		clock_gettime(CLOCK_REALTIME, &real);
		after = tick_raw_ns();
		if (after - before >= best)
			continue;
		best = after - before;
		ret->raw_ns = (int64_t)(before + best / 2);
		ret->tick = source == SHM_TICK_RAW ? (uint64_t)ret->raw_ns : tick;
		ret->real_ns = (int64_t)real.tv_sec * 1000000000 + real.tv_nsec;
	}
}
