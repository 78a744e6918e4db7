/* bench_probe.c - what an event costs the thread that says it.
 *
 *   bench_probe [THREADS]
 *
 * The same loop runs over an empty body, the bare clock read of the probe's tick
 * source, syncline_mark() on, at level 0 and off, and, where LTTng-UST was found,
 * one of its tracepoints with the same three values. All variants take turns in
 * short blocks inside one run, so a machine that slows down slows all of them.
 *
 * A block is timed as a whole and divided: reading the clock around every event
 * would cost more than the event. p99 is the 99th percentile of blocks.
 */
#include "probe.h"
#include "syncline_probe.h"

#ifdef WITH_LTTNG
#include "bench_lttng.h"
#endif

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BLOCK_EVENTS 64
#define N_BLOCKS 16000
#define MAX_THREADS 64

enum variant { EMPTY, CLOCK, MARK, LEVEL0, LTTNG, N_VARIANTS };
static const char *const title[N_VARIANTS] = {
	[EMPTY] = "empty loop",
	[CLOCK] = "bare clock read",
	[MARK] = "syncline_mark",
	[LEVEL0] = "syncline_mark, off",
	[LTTNG] = "lttng-ust tracepoint",
};

struct result {
	double p50_ns, p99_ns;
};

struct worker {
	pthread_t thread;
	pthread_barrier_t *go;
	double ns[N_VARIANTS][N_BLOCKS]; /* an event, block by block */
};

static struct shm_header *header;
static uint32_t name;

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static uint64_t bare_clock(uint32_t source)
{
	struct timespec ts;

#if defined(__x86_64__)
	if (source == SHM_TICK_TSC)
		return __builtin_ia32_rdtsc();
#endif
	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

#define LOOP(body)                                                                                 \
	for (unsigned i = 0; i < BLOCK_EVENTS; i++) {                                              \
		body;                                                                              \
		__asm__ volatile("" ::: "memory");                                                 \
	}

static void run(enum variant v)
{
	uint32_t source = header->tick_source;
	uint64_t sink;

	switch (v) {
	case EMPTY:
		LOOP();
		break;
	case CLOCK:
		LOOP(sink = bare_clock(source); __asm__ volatile("" ::"r"(sink)));
		break;
	case MARK:
	case LEVEL0:
		LOOP(syncline_mark(name, i, (uint64_t)v));
		break;
	case LTTNG:
#ifdef WITH_LTTNG
		LOOP(lttng_ust_tracepoint(syncline_bench, mark, name, i, (uint64_t)v));
#endif
		break;
	case N_VARIANTS:
		break;
	}
}

/* As a fast agent would: all that this thread has written is taken. */
static void drain_mine(void)
{
	struct shm_ring *r =
		(struct shm_ring *)((unsigned char *)header + header->ring_headers_at);
	uint32_t tid = (uint32_t)gettid();

	for (uint32_t i = 0; i < header->n_rings; i++)
		if (atomic_load(&r[i].tid) == tid)
			atomic_store(&r[i].tail, atomic_load(&r[i].head));
}

static void *work(void *arg)
{
	struct worker *w = arg;

	run(MARK);
	for (unsigned b = 0; b < N_BLOCKS; b++) {
		for (unsigned v = 0; v < N_VARIANTS; v++) {
			int64_t t;

			/* The level is one word for all threads: they change it together. */
			if (w->go && (v == LEVEL0 || v == LTTNG))
				pthread_barrier_wait(w->go);
			atomic_store(&header->level, v == LEVEL0 ? LEVEL_OFF : LEVEL_DEFAULT);
			if (w->go && (v == LEVEL0 || v == LTTNG))
				pthread_barrier_wait(w->go);
			run((enum variant)v); /* the branch predictor meets the variant again */
			drain_mine();
			t = now_ns();
			run((enum variant)v);
			w->ns[v][b] = (double)(now_ns() - t) / BLOCK_EVENTS;
		}
	}
	return NULL;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static struct result result_of(double *ns, size_t n)
{
	qsort(ns, n, sizeof *ns, by_value);
	return (struct result){ ns[n / 2], ns[n * 99 / 100] };
}

static void report(unsigned n_threads, struct worker *w)
{
	static double all[MAX_THREADS * N_BLOCKS];
	struct result r[N_VARIANTS];

	printf("%u thread%s, %u blocks of %u events each, tick source %s\n", n_threads,
	       n_threads == 1 ? "" : "s", N_BLOCKS, BLOCK_EVENTS,
	       header->tick_source == SHM_TICK_RAW ? "CLOCK_MONOTONIC_RAW" : "counter");
	for (unsigned v = 0; v < N_VARIANTS; v++) {
		for (unsigned t = 0; t < n_threads; t++)
			memcpy(all + t * N_BLOCKS, w[t].ns[v], sizeof w[t].ns[v]);
		r[v] = result_of(all, (size_t)n_threads * N_BLOCKS);
#ifndef WITH_LTTNG
		if (v == LTTNG)
			continue;
#endif
		printf("  %-22s p50 %7.2f ns   p99 %7.2f ns\n", title[v], r[v].p50_ns,
		       r[v].p99_ns);
	}
	printf("  over the bare clock    p50 %7.2f ns   off %+.2f ns over an empty loop\n",
	       r[MARK].p50_ns - r[CLOCK].p50_ns, r[LEVEL0].p50_ns - r[EMPTY].p50_ns);
	printf("BENCH {\"bench\":\"probe\",\"threads\":%u,\"clock_p50_ns\":%.2f,\"event_p50_ns\":%.2f,"
	       "\"event_p99_ns\":%.2f,\"over_clock_p50_ns\":%.2f,\"off_p50_ns\":%.2f",
	       n_threads, r[CLOCK].p50_ns, r[MARK].p50_ns, r[MARK].p99_ns,
	       r[MARK].p50_ns - r[CLOCK].p50_ns, r[LEVEL0].p50_ns - r[EMPTY].p50_ns);
#ifdef WITH_LTTNG
	printf(",\"lttng_p50_ns\":%.2f,\"lttng_p99_ns\":%.2f,\"lttng_over_clock_p50_ns\":%.2f",
	       r[LTTNG].p50_ns, r[LTTNG].p99_ns, r[LTTNG].p50_ns - r[CLOCK].p50_ns);
#endif
	printf("}\n");
}

int main(int argc, char **argv)
{
	long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned n_threads = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : (unsigned)n_cpus;
	struct probe_stats s;
	struct worker *w;
	pthread_barrier_t go;

	if (n_threads < 1 || n_threads > MAX_THREADS) {
		fprintf(stderr, "bench_probe: THREADS must be 1 to %d\n", MAX_THREADS);
		return 2;
	}
	if (probe_start() != PROBE_ON) {
		probe_stats(&s);
		fprintf(stderr, "bench_probe: the probe is off: %s\n", probe_off_text(s.off));
		return 3;
	}
	probe_stats(&s);
	(void)unlink(s.file); /* nobody else reads it */
	header = (struct shm_header *)(uintptr_t)probe_header();
	name = syncline_name("bench");
	w = calloc(n_threads, sizeof *w);
	if (!w)
		return 3;

	work(&w[0]);
	report(1, w);
	if (n_threads > 1) {
		pthread_barrier_init(&go, NULL, n_threads);
		for (unsigned t = 0; t < n_threads; t++) {
			w[t].go = &go;
			if (pthread_create(&w[t].thread, NULL, work, &w[t]) != 0)
				return 3;
		}
		for (unsigned t = 0; t < n_threads; t++)
			pthread_join(w[t].thread, NULL);
		report(n_threads, w);
	}
	free(w);
	return 0;
}
