/* Any bytes as a trace of NCCL's example of a profiler: a duration is only told where a
 * kernel was, and it is never the enqueue's by its clock. */
#include "nccl_check.h"

extern const struct import_format format_nccl_profiler;

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
	struct trace t;

	trace_init(&t);
	if (read_nccl(&format_nccl_profiler, &t, 2, data, n))
		for (uint32_t i = 0; i < t.n_rows; i++) {
			const struct trace_row *r = &t.rows[i];

			if (!is_row(r, "nccl_perf"))
				continue;
			CHECK((nccl_int(r, PERF_EXEC_NS) != TRACE_NULL) == (nccl_text(r, PERF_TIMING)[0] != '\0'));
			CHECK(nccl_int(r, PERF_BEGIN_NS) == TRACE_NULL || nccl_text(r, PERF_TIMING)[0]);
			CHECK(nccl_int(r, PERF_EXEC_NS) == TRACE_NULL || nccl_int(r, PERF_EXEC_NS) > 0);
		}
	check_trace(&t);
	trace_fini(&t);
	return 0;
}
