/* bench_clock.c - what following the clocks of many hosts costs.
 *
 *   bench_clock [HOSTS [SECONDS]]
 *
 * Every host sends ten exchanges a second, taken in the order in which they would
 * come, so each finds its host's state cold in the caches. Simulated seconds; the
 * share of a core is the time for them over their length.
 */
#include "../../collector/align/clock.h"
#include "../sim/clock_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define N_WORLDS 32
#define RATE_HZ 10

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
	size_t n_hosts = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000;
	size_t n_seconds = argc > 2 ? strtoull(argv[2], NULL, 10) : 60, n = 0, n_places = 0;
	struct clock *clocks = calloc(n_hosts, sizeof *clocks);
	struct clock_world worlds[N_WORLDS];
	struct fleet_point at;
	double begin, spent, sum = 0;

	for (size_t i = 0; i < N_WORLDS; i++)
		if (clock_world_make(&worlds[i], CLOCK_SCENARIOS[i % (sizeof CLOCK_SCENARIOS - 1)], 77 + i, RATE_HZ, 1) < 0)
			return 1;
	for (size_t i = 0; clocks && i < n_hosts; i++)
		clock_init(&clocks[i], false, 0);
	begin = now_s();
	for (size_t k = 0; clocks && k < n_seconds * RATE_HZ; k++)
		for (size_t i = 0; i < n_hosts; i++) {
			const struct beam_sample *s = &worlds[i % N_WORLDS].samples[k];

			if (clock_exchange(&clocks[i], (host_time){ s->t1_ns },
					   (fleet_time){ s->t1_ns + s->f_ns },
					   (fleet_time){ s->t4_ns + s->g_ns }, (host_time){ s->t4_ns }) >= 0)
				n++;
		}
	spent = now_s() - begin;
	printf("clock_exchange, %zu hosts at %d/s      %8.0f ns each, %.3f of a core\n", n_hosts, RATE_HZ,
	       spent / (double)n * 1e9, spent / (double)n_seconds);
	begin = now_s();
	for (size_t k = 0; clocks && k < 20; k++)
		for (size_t i = 0; i < n_hosts; i++, n_places++) {
			struct clock_line l;
			host_time t = { clock_newest(&clocks[i]).ns - (int64_t)k * 700000000 };

			l = clock_choose(&clocks[i], t);
			clock_place(&clocks[i], &l, t, &at);
			sum += (double)at.soft_ns;
		}
	spent = now_s() - begin;
	printf("clock_choose and clock_place            %8.0f ns each (mean soft error %.0f ns)\n",
	       spent / (double)n_places * 1e9, sum / (double)n_places);
	for (size_t i = 0; clocks && i < n_hosts; i++)
		clock_fini(&clocks[i]);
	for (size_t i = 0; i < N_WORLDS; i++)
		clock_world_fini(&worlds[i]);
	free(clocks);
	return 0;
}
