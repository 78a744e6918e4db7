/* bench_core - what one core of the analysis takes in a second.
 *
 *     bench_core [SECONDS a line, default 1]
 *
 * Facts are cleared every 64 chunks, as the store would take them.
 */
#include "../../collector/core.h"
#include "../../collector/heat.h"
#include "../sim/train.h"

#include <stdio.h>
#include <time.h>

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* A whole training, chunk by chunk of 1008 events. */
static void whole_job(uint32_t world, uint32_t n_buckets, double limit)
{
	struct train_config cfg = { .world = world, .n_hosts = 1, .n_steps = 120000 / (world * n_buckets),
				    .n_buckets = n_buckets, .seed = 1, .noise = 0.1, .slow_rank = -1 };
	uint64_t n = 0, n_steps = 0;
	struct facts facts;
	struct train t;
	double spent = 0;

	train_make(&t, &cfg);
	facts_init(&facts);
	while (spent < limit) {
		struct core *c;
		double begin;
		size_t at[2 * 4096] = { 0 };
		bool more = true;
		unsigned round = 0;

		core_new(&c, NULL, &facts);
		train_introduce(&t, c, 100);
		begin = seconds();
		for (uint64_t chunk = 1; more; round++) {
			more = false;
			for (uint32_t k = 0; k < world * TRAIN_RINGS; k++) {
				uint32_t ring = k % TRAIN_RINGS, rank = k / TRAIN_RINGS;
				size_t have = t.n[ring][rank] - at[k];
				size_t take = have < 1008 ? have : 1008;

				core_events(c, 100 + rank, ring, chunk++,
					    train_events(&t, ring, rank) + at[k], take);
				at[k] += take;
				n += take;
				more |= take > 0;
				if (chunk % 64 == 0)
					facts_clear(&facts);
			}
			core_tick(c, (fleet_time){ INT64_C(1700000000000000000) + round * 250000000LL });
		}
		core_finish(c, (fleet_time){ INT64_C(1800000000000000000) });
		spent += seconds() - begin;
		n_steps += cfg.n_steps;
		facts_clear(&facts);
		core_free(c);
	}
	printf("%-34s %8.2f M events/s   %9.0f rank-steps/s\n",
	       world == 4 ? "job of 4 ranks, all kinds" : "job of 256 ranks, all kinds",
	       (double)n / spent / 1e6, (double)n_steps * world / spent);
	train_fini(&t);
	facts_fini(&facts);
}

/* Host 0 has the collector's clock; others are probed ten times a second. */
static void collectives_only(uint32_t world, uint32_t n_hosts, int64_t every_ns, double limit)
{
	enum { N = 500 };
	struct event *ev = malloc(2 * N * sizeof *ev);
	struct facts facts;
	struct core *c;
	uint64_t n_arrivals = 0, seq = 0, told = 0;
	double begin, spent;

	facts_init(&facts);
	core_new(&c, NULL, &facts);
	for (uint32_t h = 0; h < n_hosts; h++)
		core_host(c, h, h == 0, 0);
	for (uint32_t r = 0; r < world; r++) {
		core_process(c, &(struct core_process){ .process = r, .rank = (int32_t)r,
							.host = r * n_hosts / world,
							.world_size = (int32_t)world,
							.tick_error_ns = 100 });
		core_name(c, r, 1, "default", 7);
	}
	begin = seconds();
	do {
		int64_t from = (int64_t)seq * every_ns, to = from + N * every_ns;

		for (int64_t t = from - from % 100000000; n_hosts > 1 && t < to; t += 100000000)
			for (uint32_t h = 1; h < n_hosts; h++)
				core_exchange(c, h, (host_time){ t }, (fleet_time){ t + 30000 },
					      (fleet_time){ t + 40000 }, (host_time){ t + 70000 });
		for (uint32_t r = 0; r < world; r++) {
			for (uint32_t i = 0; i < N; i++) {
				int64_t at = (int64_t)(seq + i) * every_ns + r * 7;

				ev[2 * i] = (struct event){
					.tick = (uint64_t)at, .kind = EVENT_COLL_BEGIN, .name = 1,
					.flags = event_coll_flags(OP_ALL_REDUCE, DTYPE_F32),
					.a = event_a(EVENT_STEP_UNKNOWN, (uint32_t)(seq + i)), .b = 4096 };
				ev[2 * i + 1] = ev[2 * i];
				ev[2 * i + 1].kind = EVENT_COLL_END;
				ev[2 * i + 1].tick = (uint64_t)((int64_t)(seq + i) * every_ns +
								(world * 7 > 9000 ? world * 7 : 9000));
			}
			core_events(c, r, 0, seq * world + r, ev, 2 * N);
		}
		n_arrivals += (uint64_t)N * world;
		seq += N;
		told += facts.collectives.n;
		facts_clear(&facts);
		spent = seconds() - begin;
	} while (spent < limit);
	printf("collectives alone, %4u ranks, %2u host%s %8.2f M arrivals/s, %5.0f ns each (begin and end; %llu of %llu told)\n",
	       world, n_hosts, n_hosts > 1 ? "s" : " ", (double)n_arrivals / spent / 1e6,
	       spent / (double)n_arrivals * 1e9, (unsigned long long)told, (unsigned long long)seq);
	core_free(c);
	facts_fini(&facts);
	free(ev);
}

static void tiles(void)
{
	static unsigned char out[HEAT_TILE_BYTES];
	struct heat *h;
	uint64_t rng = 1;
	uint32_t rev;
	double begin;
	bool sealed;

	heat_new(&h);
	begin = seconds();
	for (uint32_t s = 0; s < 4096; s++)
		for (int32_t r = 0; r < 256; r++)
			heat_put(h, &(struct fact_rank_step){
					    .step = s, .rank = r, .dur_ns = 20000000,
					    .self_ns = 10000000 + (int64_t)(train_rand(&rng) % 1000000) });
	printf("heat_put                           %8.2f M rank-steps/s\n",
	       256 * 4096 / (seconds() - begin) / 1e6);
	for (unsigned z = 0; z <= 4; z += 2) {
		struct heat_key key = { .metric = HEAT_SELF, .zs = z };

		heat_tile(h, &key, out, &rev, &sealed); /* medians are made once */
		begin = seconds();
		for (int i = 0; i < 20; i++)
			heat_tile(h, &key, out, &rev, &sealed);
		printf("heat_tile, %2u steps a cell         %8.2f ms\n", 1u << z,
		       (seconds() - begin) / 20 * 1e3);
	}
	heat_free(h);
}

int main(int argc, char **argv)
{
	double limit = argc > 1 ? atof(argv[1]) : 1;

	whole_job(4, 5, limit);
	whole_job(256, 5, limit);
	collectives_only(4, 1, 10000, limit);
	collectives_only(256, 1, 10000, limit);
	collectives_only(4096, 1, 10000, limit);
	/* And as often as a job has them. */
	collectives_only(4, 2, 10000, limit);
	collectives_only(16, 2, 10000000, limit);
	collectives_only(16, 16, 10000000, limit);
	collectives_only(128, 16, 10000000, limit);
	tiles();
	return 0;
}
