/* Any bytes as a dump of NCCL's inspector: events that can be, of ranks that can be, and
 * never more of them than calls whose time is known. */
#include "nccl_check.h"

extern const struct import_format format_nccl_inspector;

static size_t count_calls(struct trace *t, struct trace_rank *r)
{
	struct runs_reader *in = trace_read(t, r, TRACE_DEVICE);
	const struct event *ev;
	size_t n = 0;

	CHECK(in);
	while ((ev = runs_next(in)))
		n += ev->kind == EVENT_COLL_BEGIN;
	CHECK(trace_read_end(t, in));
	return n;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
	struct trace t;
	size_t n_timed = 0, n_told = 0;

	trace_init(&t);
	if (read_nccl(&format_nccl_inspector, &t, 2, data, n)) {
		for (uint32_t i = 0; i < t.n_rows; i++) {
			const struct trace_row *r = &t.rows[i];

			if (!is_row(r, "nccl_perf"))
				continue;
			CHECK(nccl_text(r, PERF_COMM) && r->n_values == PERF_END_NS + 1);
			for (unsigned k = PERF_ENQUEUE_NS; k <= PERF_END_NS; k++)
				CHECK(nccl_int(r, k) == TRACE_NULL || nccl_int(r, k) >= 0);
			n_timed += nccl_int(r, PERF_BEGIN_NS) != TRACE_NULL;
		}
		check_trace(&t);
		for (uint32_t i = 0; i < t.n_ranks; i++)
			n_told += count_calls(&t, &t.ranks[i]);
		CHECK(n_told <= n_timed);
	}
	trace_fini(&t);
	return 0;
}
