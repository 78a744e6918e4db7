#include "clock.h"

#include "tick.h"

#include <stdlib.h>
#include <string.h>

#define MAX_STEPS 8
#define SNAPSHOT_TRIES 5

__extension__ typedef __int128 wide;

struct step {
	int64_t at_ns, by_ns;
};

/* Written before any thread is started, then read-only. */
static struct {
	bool on;
	int64_t offset_ns, ppb, origin_ns;
	struct step steps[MAX_STEPS], walls[MAX_STEPS];
	unsigned n_steps, n_walls;
} bent;

static int64_t read_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int64_t clock_true_raw(void)
{
	return read_ns(CLOCK_MONOTONIC_RAW);
}

static int64_t steps_until(const struct step *v, unsigned n, int64_t raw_ns)
{
	int64_t sum = 0;

	for (unsigned i = 0; i < n; i++)
		if (raw_ns >= v[i].at_ns)
			sum += v[i].by_ns;
	return sum;
}

int64_t clock_bend(int64_t raw_ns)
{
	wide drift;

	if (!bent.on)
		return raw_ns;
	drift = (wide)(raw_ns - bent.origin_ns) * bent.ppb / 1000000000;
	return raw_ns + bent.offset_ns + (int64_t)drift +
	       steps_until(bent.steps, bent.n_steps, raw_ns);
}

int64_t clock_ns(clockid_t id)
{
	int64_t ns = read_ns(id), raw_ns;

	if (!bent.on || id == CLOCK_PROCESS_CPUTIME_ID)
		return ns;
	if (id == CLOCK_MONOTONIC_RAW)
		return clock_bend(ns);
	raw_ns = clock_true_raw();
	ns += clock_bend(raw_ns) - raw_ns; /* they all count the same oscillator */
	if (id == CLOCK_REALTIME)
		ns += steps_until(bent.walls, bent.n_walls, raw_ns);
	return ns;
}

static bool read_number(const char **at, int64_t *ret)
{
	char *end;

	*ret = strtoll(*at, &end, 10);
	if (end == *at)
		return false;
	*at = end;
	return true;
}

static bool read_step(const char **at, struct step *v, unsigned *n)
{
	if (*n == MAX_STEPS || !read_number(at, &v[*n].at_ns) || *(*at)++ != ':' ||
	    !read_number(at, &v[*n].by_ns))
		return false;
	(*n)++;
	return true;
}

bool clock_bend_by(const char *spec)
{
	static const char *const names[] = { "offset=", "ppb=", "origin=", "step=", "wall=" };
	const char *at = spec;

	while (*at) {
		unsigned which = 0;
		bool ok;

		while (which < 5 && strncmp(at, names[which], strlen(names[which])) != 0)
			which++;
		if (which == 5)
			return false;
		at += strlen(names[which]);
		if (which < 3)
			ok = read_number(&at, which == 0   ? &bent.offset_ns
					      : which == 1 ? &bent.ppb
							   : &bent.origin_ns);
		else
			ok = which == 3 ? read_step(&at, bent.steps, &bent.n_steps) :
					  read_step(&at, bent.walls, &bent.n_walls);
		if (!ok || (*at && *at++ != ','))
			return false;
	}
	bent.on = true;
	return true;
}

bool clock_is_bent(void)
{
	return bent.on;
}

struct frame_snapshot clock_snapshot(uint32_t tick_source)
{
	struct frame_snapshot best = { .half_ns = UINT32_MAX };

	for (unsigned i = 0; i < SNAPSHOT_TRIES; i++) {
		struct frame_snapshot s = { .tick_source = tick_source };
		int64_t before = raw_now(), half;

		s.mono_ns = clock_ns(CLOCK_MONOTONIC);
		s.real_ns = clock_ns(CLOCK_REALTIME);
		if (tick_source != FRAME_NO_TICK)
			s.tick = tick_counter(tick_source);
		s.boot_ns = clock_ns(CLOCK_BOOTTIME);
		half = (raw_now() - before) / 2 + 1;
		if (half < 0 || half >= best.half_ns)
			continue;
		s.raw_ns = before + half - 1;
		s.half_ns = (uint32_t)half;
		best = s;
	}
	return best;
}
