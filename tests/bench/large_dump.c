/* large_dump - one step of the job of bench_large as text, for other people's tools.
 *
 *     large_dump [DP PP TP CALLS [STEP]]    default 64 8 8 200 1
 *
 * A line a call of a rank, in the order of its thread: rank, group, number, begin
 * and end in ns, 1 where it only sends. Calls block, so what lies between two
 * lines of a rank is its own work.
 */
#include "../../proto/event.h"
#include "../../sim/large.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static uint32_t number(int argc, char **argv, int i, uint32_t standard)
{
	return i < argc ? (uint32_t)strtoul(argv[i], NULL, 10) : standard;
}

static void put_rank(const struct large *l, uint32_t rank)
{
	const struct event *v;
	size_t n = large_events(l, rank, 0, &v);

	for (size_t i = 0; i + 1 < n; i++) {
		char group[64];

		if (v[i].kind != EVENT_COLL_BEGIN)
			continue;
		large_name(l, rank, v[i].name, group, sizeof group);
		printf("%u,%s,%u,%" PRIu64 ",%" PRIu64 ",%d\n", rank, group, event_low(v[i].a),
		       v[i].tick, v[i + 1].tick, v[i].flags >> 8 == OP_SEND);
	}
}

int main(int argc, char **argv)
{
	struct large_config cfg = {
		.dp = number(argc, argv, 1, 64), .pp = number(argc, argv, 2, 8),
		.tp = number(argc, argv, 3, 8), .n_calls = number(argc, argv, 4, 200),
		.compute_ns = 2000000, .transfer_ns = 300000, .noise = 0.03, .seed = 1,
		.fault = LARGE_SLOW_RANK, .target = 17, .factor = 1.2,
	};
	uint32_t n_steps = number(argc, argv, 5, 1);
	struct large_step truth;
	struct large *l;

	if (large_new(&l, &cfg) != 0) {
		fprintf(stderr, "large_dump: no such layout, or no memory\n");
		return 1;
	}
	for (uint32_t i = 0; i < n_steps; i++)
		if (large_next(l, &truth) != 0)
			return 1;
	fprintf(stderr, "the step takes %.6f s\n", (double)truth.dur_ns / 1e9);
	for (uint32_t rank = 0; rank < large_world(l); rank++)
		put_rank(l, rank);
	large_free(l);
	return 0;
}
