/* probe_rank.c - a training process in C, as far as the probe can tell.
 *
 *   probe_rank [--hold] [--fill] [--steps N] [--rank R --world W]
 *
 * Starts the probe, says one line of JSON about it, runs N steps (default 10) of
 * phases and one collective each, and ends with 0 whether or not it is traced:
 * being traced changes nothing for a program. --hold waits for a line on
 * standard input before the steps and for the end of it after them; --fill
 * writes every ring, name and text that the file has room for.
 */
#include "probe.h"
#include "syncline_probe.h"

#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void say_status(const char *when)
{
	struct probe_stats s;

	probe_stats(&s);
	printf("{\"when\":\"%s\",\"on\":%d,\"off\":%d,\"errno\":%d,\"file\":\"%s\",\"bytes\":%llu,"
	       "\"events\":%llu,\"dropped\":%llu,\"reason\":\"%s\"}\n",
	       when, s.off == PROBE_ON, (int)s.off, s.system_error, s.file,
	       s.off == PROBE_ON ? (unsigned long long)probe_header()->file_bytes : 0ull,
	       (unsigned long long)s.n_events, (unsigned long long)s.n_dropped,
	       probe_off_text(s.off));
	fflush(stdout);
}

static void run_step(uint32_t step, uint32_t group)
{
	static const enum event_phase phases[] = { PHASE_DATA, PHASE_FORWARD, PHASE_BACKWARD,
						   PHASE_OPTIMIZER };
	unsigned coll = event_coll_flags(OP_ALL_REDUCE, DTYPE_F32);

	probe_set_step(step);
	probe_emit(EVENT_STEP_BEGIN, 0, 0, event_a(step, 0), 0);
	for (unsigned i = 0; i < sizeof phases / sizeof *phases; i++) {
		probe_emit(EVENT_PHASE_BEGIN, phases[i], 0, event_a(step, 0), 0);
		if (phases[i] == PHASE_BACKWARD) {
			probe_emit(EVENT_COLL_BEGIN, coll, group, event_a(step, step),
				   4096 | EVENT_COLL_SYNC_BIT);
			probe_emit(EVENT_COLL_END, coll, group, event_a(step, step), 4096);
		}
		probe_emit(EVENT_PHASE_END, phases[i], 0, event_a(step, 0), 0);
	}
	probe_emit(EVENT_STEP_END, 0, 0, event_a(step, 0), 0);
}

static pthread_barrier_t all_here;

static void *fill_ring(void *arg)
{
	uint32_t n = *(const uint32_t *)arg;

	pthread_barrier_wait(&all_here);
	for (uint32_t i = 0; i < n + 10; i++)
		syncline_mark(1, i, i);
	pthread_barrier_wait(&all_here); /* nobody leaves a ring to another */
	return NULL;
}

static int fill(void)
{
	const struct shm_header *h = probe_header();
	uint32_t n_threads = SHM_MAX_RINGS + 4, slots = h ? h->ring_slots : 100;
	pthread_t t[SHM_MAX_RINGS + 4];
	char text[SHM_MAX_STRING + 1];

	pthread_barrier_init(&all_here, NULL, n_threads);
	for (uint32_t i = 0; i < n_threads; i++)
		if (pthread_create(&t[i], NULL, fill_ring, &slots) != 0)
			return 1;
	for (uint32_t i = 0; i < n_threads; i++)
		pthread_join(t[i], NULL);
	for (unsigned i = 0; i < 5000; i++) {
		int n = snprintf(text, sizeof text, "%0200u", i);

		(void)probe_name(text);
		(void)probe_text(SHM_TEXT_LOG, 20, text, (size_t)n);
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "hold", no_argument, NULL, 'h' },	 { "fill", no_argument, NULL, 'f' },
		{ "steps", required_argument, NULL, 's' }, { "rank", required_argument, NULL, 'r' },
		{ "world", required_argument, NULL, 'w' }, { "restart", required_argument, NULL, 'R' },
		{ NULL, 0, NULL, 0 },
	};
	bool hold = false, want_fill = false;
	uint32_t n_steps = 10, group;
	int rank = 0, world = 1, restart = 0, c;
	char line[64];

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'h':
			hold = true;
			break;
		case 'f':
			want_fill = true;
			break;
		case 's':
			n_steps = (uint32_t)strtoul(optarg, NULL, 10);
			break;
		case 'r':
			rank = atoi(optarg);
			break;
		case 'w':
			world = atoi(optarg);
			break;
		case 'R':
			restart = atoi(optarg);
			break;
		default:
			return 2;
		}
	}
	probe_start();
	probe_identity(rank, rank, world, world, restart, getenv("SYNCLINE_RUN"));
	say_status("started");
	if (hold && !fgets(line, sizeof line, stdin))
		return 0;
	group = probe_name("world");
	for (uint32_t i = 0; i < n_steps; i++)
		run_step(i, group);
	if (want_fill && fill() != 0)
		return 1;
	say_status("worked");
	while (hold && fgets(line, sizeof line, stdin))
		;
	return 0;
}
