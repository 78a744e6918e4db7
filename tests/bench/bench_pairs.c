/* bench_pairs - what collectives cost as evidence.
 *
 *     bench_pairs
 *
 * CPU of one rank's part in one collective, closures and solutions of every
 * second included; and of one answer.
 */
#include "../../collector/align/bracket.h"
#include "../../collector/align/pairs.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define START_NS INT64_C(1700000000000000000)
#define SECOND INT64_C(1000000000)

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void whole(uint32_t n_nodes, uint32_t per_group, int rate_hz)
{
	uint32_t n_groups = n_nodes / per_group;
	uint32_t *groups = calloc(n_groups, sizeof *groups),
		 *nodes = calloc(per_group, sizeof *nodes);
	int64_t *in = calloc(per_group, sizeof *in), *out = calloc(per_group, sizeof *out);
	int64_t n_calls = 0, end_ns = 0;
	struct pairs_answer a;
	struct pairs *p;
	double begin, spent;

	if (!groups || !nodes || !in || !out || pairs_new(&p, &pairs_defaults) < 0)
		abort();
	for (uint32_t i = 0; i < n_nodes; i++)
		if (pairs_node(p) < 0)
			abort();
	for (uint32_t g = 0; g < n_groups; g++) {
		int64_t r;

		for (uint32_t i = 0; i < per_group; i++)
			nodes[i] = g * per_group + i;
		r = pairs_group(p, nodes, per_group);
		if (r < 0)
			abort();
		groups[g] = (uint32_t)r;
	}
	begin = seconds();
	for (int64_t k = 0; seconds() - begin < 1 || k < 20 * rate_hz; k++) {
		int64_t t = START_NS + k * SECOND / rate_hz;

		for (uint32_t i = 0; k % rate_hz == 0 && i < n_nodes; i++)
			pairs_probe(p, i,
				    &(struct pairs_probe){ .host_ns = t,
							   .lo_ns = -50000,
							   .hi_ns = 50000,
							   .soft_ns = 10000,
							   .rate_bound = 1e-6 });
		for (uint32_t g = 0; g < n_groups; g++) {
			for (uint32_t i = 0; i < per_group; i++) {
				in[i] = t + (i * 7919 + k * 104729) % 100000;
				out[i] = t + 120000 + (i * 31 + k * 17) % 1000;
			}
			if (pairs_call(p,
				       &(struct pairs_call){ .group = groups[g],
							     .kind = 1,
							     .need = PAIRS_NEED_ALL,
							     .together = true,
							     .enter_ns = in,
							     .exit_ns = out },
				       NULL) != 0)
				abort();
			n_calls++;
		}
		end_ns = t;
	}
	spent = seconds() - begin;
	printf("%6u nodes in groups of %4u, %3d/s: %6.0f ns a rank and call", n_nodes, per_group,
	       rate_hz, spent * 1e9 / (double)(n_calls * per_group));
	begin = seconds();
	for (uint32_t k = 0; k < 1000000; k++)
		pairs_ask(p, k % n_nodes, (k * 7) % n_nodes, end_ns - k % 1000 * 1000000, &a);
	printf(", %4.0f ns an answer\n", (seconds() - begin) * 1e3);
	pairs_free(p);
	free(groups);
	free(nodes);
	free(in);
	free(out);
}

static void gpu(void)
{
	static struct bracket b;
	double begin;

	bracket_init(&b, &bracket_defaults);
	begin = seconds();
	for (int64_t k = 0; k < 1000000; k++) {
		bracket_after(&b, k * 1000000, k * 1000000 + 3000);
		bracket_before(&b, k * 1000000 + 50000, k * 1000000 + 52000);
	}
	printf("a GPU's events, 1000 kernels a second: %4.0f ns each\n",
	       (seconds() - begin) * 1e9 / 2e6);
}

int main(void)
{
	whole(8, 8, 10);
	whole(64, 64, 2);
	whole(64, 8, 10);
	whole(1024, 8, 10);
	whole(1024, 1024, 2);
	whole(10000, 100, 2);
	gpu();
	return 0;
}
