/* foreign_clock - aligns collectives that come as plain lines, for test_foreign.py.
 *
 *     foreign_clock < LINES
 *
 * A line a call: rank enter_ns exit_ns kind proves. Out comes a line a rank:
 * rank outcome offset_ns lo_ns hi_ns soft_ns drift_known drift_ppm n_matched residual_ns
 */
#include "../../collector/align/foreign.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_RANKS 1024

int main(void)
{
	static struct foreign_rank ranks[MAX_RANKS];
	static struct foreign_call *calls[MAX_RANKS];
	static struct foreign_clock clocks[MAX_RANKS];
	size_t n_ranks = 0, reference = 0, rank;
	struct foreign_call c;
	int proves;
	int64_t n;

	while (scanf("%zu %" SCNd64 " %" SCNd64 " %" SCNu64 " %d", &rank, &c.enter_ns, &c.exit_ns,
		     &c.kind, &proves) == 5) {
		struct foreign_call *grown;

		if (rank >= MAX_RANKS)
			return 2;
		c.proves = proves != 0;
		grown = realloc(calls[rank], (ranks[rank].n_calls + 1) * sizeof c);
		if (!grown)
			return 3;
		calls[rank] = grown;
		grown[ranks[rank].n_calls++] = c;
		if (rank >= n_ranks)
			n_ranks = rank + 1;
	}
	for (rank = 0; rank < n_ranks; rank++)
		ranks[rank].calls = calls[rank];
	n = foreign_align(ranks, n_ranks, &foreign_defaults, clocks, &reference);
	if (n < 0)
		return 3;
	for (rank = 0; rank < n_ranks; rank++) {
		const struct foreign_clock *k = &clocks[rank];

		printf("%zu %d %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %d %.3f %zu %" PRId64
		       " %s\n",
		       rank, (int)k->outcome, k->offset_ns, k->lo_ns, k->hi_ns, k->soft_ns,
		       k->drift_known && rank != reference, k->drift * 1e6, k->n_matched,
		       k->residual_ns, foreign_text(k->outcome));
		free(calls[rank]);
	}
	return 0;
}
