/* bench_large - what one core of the analysis takes for a step of a large job, and what
 * of it graph and critical path take: the same job is analysed with and without.
 *
 *     bench_large [DP PP TP CALLS STEPS [device]]    default 64 8 8 200 8
 *
 * The job is made by sim/large.h; its making is not in the time of the analysis.
 * Facts are cleared after each step, as the store would take them. Times are of the
 * processor, so that others on the machine hardly matter.
 */
#include "../../collector/core.h"
#include "../../sim/large.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static uint32_t number(int argc, char **argv, int i, uint32_t standard)
{
	return i < argc ? (uint32_t)strtoul(argv[i], NULL, 10) : standard;
}

/* The path of a step, and what of it its ranks would not have needed. */
static void show_paths(const struct facts *f)
{
	for (size_t i = 0; i < f->paths.n; i++) {
		const struct fact_path *p = &f->paths.v[i];
		int64_t sum_ns = 0, excess_ns = 0;
		size_t n_hops = 0;

		for (size_t k = p->first_segment; k < p->first_segment + p->n_segments; k++) {
			const struct fact_segment *s = &f->segments.v[k];

			sum_ns += s->dur_ns;
			excess_ns += s->excess_ns == FACT_NONE ? 0 : s->excess_ns;
			n_hops += s->from_rank >= 0;
		}
		printf("  path of step %u: %zu segments, %zu handed over, %.3f s of %.3f s, %.3f s more than usual%s\n",
		       p->step, p->n_segments, n_hops, (double)sum_ns / 1e9, (double)p->dur_ns / 1e9,
		       (double)excess_ns / 1e9, p->complete ? "" : " (cut)");
	}
}

struct sums {
	double fed_s, made_s;
	double look_s; /* a tick in which there is nothing but to look for causes */
	uint64_t n_events, events_bytes;
};

/* Leaves out the first step: its memory is all new. */
static int run(const struct large_config *cfg, uint32_t n_steps, bool no_paths, bool show, struct sums *ret)
{
	struct facts facts;
	struct core *core;
	struct large *l;
	int64_t end_ns = 0;
	double from_s;

	facts_init(&facts);
	if (large_new(&l, cfg) != 0 ||
	    core_new(&core, &(struct core_config){ .no_paths = no_paths }, &facts) != 0 ||
	    large_introduce(l, core) != 0) {
		fprintf(stderr, "bench_large: no such layout, or no memory\n");
		return 1;
	}
	if (show)
		printf("%u ranks, %u hosts, %u calls a step\n", large_world(l), large_n_hosts(l), cfg->n_calls);
	for (uint32_t i = 0; i < n_steps; i++) {
		struct large_step truth;
		double a = now_s(), b, c;

		if (large_next(l, &truth) != 0)
			return 1;
		b = now_s();
		if (large_feed(l, core) != 0)
			return 1;
		c = now_s();
		if (show) {
			printf("step %u: %llu events, %zu calls told, made in %.3f s, analysed in %.3f s; the step takes %.3f s\n",
			       i, (unsigned long long)truth.n_events, facts.collectives.n, b - a, c - b,
			       (double)truth.dur_ns / 1e9);
			show_paths(&facts);
		}
		facts_clear(&facts);
		end_ns = truth.end_ns;
		ret->events_bytes = truth.n_events * sizeof(struct event);
		ret->made_s += i ? b - a : 0;
		ret->fed_s += i ? c - b : 0;
		ret->n_events += i ? truth.n_events : 0;
	}
	for (int64_t i = 0; i < 3; i++) {
		from_s = now_s();
		if (core_tick(core, (fleet_time){ end_ns + 1000000000 + i * 1100000000 }) != 0)
			return 1;
		if (i > 0 && now_s() - from_s > ret->look_s)
			ret->look_s = now_s() - from_s;
		facts_clear(&facts);
	}
	core_free(core);
	large_free(l);
	facts_fini(&facts);
	return 0;
}

int main(int argc, char **argv)
{
	struct large_config cfg = {
		.dp = number(argc, argv, 1, 64), .pp = number(argc, argv, 2, 8),
		.tp = number(argc, argv, 3, 8), .n_calls = number(argc, argv, 4, 200),
		.compute_ns = 2000000, .transfer_ns = 300000, .noise = 0.03, .seed = 1,
		.max_offset_ns = 20000000, .device = argc > 6 && strcmp(argv[6], "device") == 0,
		.fault = LARGE_SLOW_RANK, .target = 17, .from_step = 2, .factor = 1.2,
	};
	uint32_t n_steps = number(argc, argv, 5, 8), n = n_steps > 1 ? n_steps - 1 : 1;
	struct sums with = { 0 }, without = { 0 };
	struct rusage usage;

	if (run(&cfg, n_steps, false, true, &with) != 0)
		return 1;
	getrusage(RUSAGE_SELF, &usage);
	if (run(&cfg, n_steps, true, false, &without) != 0)
		return 1;
	printf("a step: %.3f s of analysis (%.1f M events/s), of that %.3f s for graph and path; %.3f s to make\n",
	       with.fed_s / n, (double)with.n_events / with.fed_s / 1e6, (with.fed_s - without.fed_s) / n,
	       with.made_s / n);
	printf("a look for causes: %.1f ms; %ld MiB, of that %ld MiB the made events\n", 1e3 * with.look_s,
	       usage.ru_maxrss / 1024, (long)(with.events_bytes >> 20));
	return 0;
}
