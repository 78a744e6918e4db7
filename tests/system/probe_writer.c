/* probe_writer.c - a "training" that only writes events, and knows how many.
 *
 *   probe_writer THREADS EVENTS RATE [END]
 *
 * Each thread emits EVENTS marks (0 = until standard input ends) with
 * a = 0, 1, 2 … at RATE a second (0 = as fast as it goes). END: exit (default), kill (SIGKILL to itself), hang (in a
 * collective, until it is killed), status7 (exit status 7). Prints one line of
 * JSON when all are written: what the probe says was dropped, and the texts.
 */
#include "../../agent/probe/probe.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static uint64_t n_events;
static _Atomic bool stop;
static _Atomic uint64_t n_emitted;
static double rate;
static uint32_t name;

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void *emit(void *arg)
{
	double start = seconds();
	uint64_t i = 0;

	for (; n_events > 0 ? i < n_events : !stop; i++) {
		probe_emit(EVENT_MARK, 0, name, i, (uint64_t)(uintptr_t)arg);
		if (rate > 0 && i % 16 == 15) {
			double ahead = (double)i / rate - (seconds() - start);

			if (ahead > 0.001)
				usleep((useconds_t)(ahead * 1e6));
		}
	}
	n_emitted += i;
	return NULL;
}

int main(int argc, char **argv)
{
	int n_threads = argc > 1 ? atoi(argv[1]) : 1;
	const char *end = argc > 4 ? argv[4] : "exit";
	const char *rank = getenv("RANK");
	pthread_t threads[64];
	struct probe_stats st;
	int n_texts = 0;

	n_events = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000;
	rate = argc > 3 ? atof(argv[3]) : 0;
	if (probe_start() != PROBE_ON) {
		probe_stats(&st);
		fprintf(stderr, "probe_writer: off: %s\n", probe_off_text(st.off));
		return 3;
	}
	probe_identity(rank ? atoi(rank) : 0, rank ? atoi(rank) : 0, 4, 4, 0,
		       getenv("SYNCLINE_RUN"));
	name = probe_name("writer.mark");
	n_texts += probe_text(SHM_TEXT_LOG, 20, "writer\tbegins", 13);
	for (long i = 0; i < n_threads; i++)
		pthread_create(&threads[i], NULL, emit, (void *)i);
	while (n_events == 0 && getchar() != EOF)
		;
	stop = true;
	for (long i = 0; i < n_threads; i++)
		pthread_join(threads[i], NULL);
	n_texts += probe_text(SHM_TEXT_LOG, 20, "writer\tends", 11);
	if (strcmp(end, "hang") == 0) {
		probe_emit(EVENT_STEP_BEGIN, 0, 0, event_a(7, 0), 0);
		probe_emit(EVENT_COLL_BEGIN, event_coll_flags(OP_ALL_REDUCE, DTYPE_F32),
			   probe_name("world"), event_a(7, 42), EVENT_COLL_SYNC_BIT | 4096);
	}
	probe_stats(&st);
	printf("{\"written\":%" PRIu64 ",\"dropped\":%" PRIu64 ",\"texts\":%d,\"pid\":%d,"
	       "\"level\":%u}\n",
	       n_emitted - st.n_dropped, st.n_dropped, n_texts, (int)getpid(),
	       st.level);
	fflush(stdout);
	if (strcmp(end, "kill") == 0)
		raise(SIGKILL);
	while (strcmp(end, "hang") == 0)
		pause();
	return strcmp(end, "status7") == 0 ? 7 : 0;
}
