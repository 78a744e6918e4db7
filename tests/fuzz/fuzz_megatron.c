/* Any bytes as a training log: no log of ours, or rows of finite numbers and steps that follow one another. */
#include "../../collector/import/megatron.h"
#include "import_check.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
	struct trace_input in = { .path = "x", .rank = -1 };
	struct bytes b = { data, n, 0 };
	uint32_t n_pipelines = 0;
	enum import_outcome o;
	char why[250] = "";
	struct trace t;

	trace_init(&t);
	o = megatron_read(&t, &in, read_bytes, &b, why, sizeof why);
	CHECK(memchr(why, '\0', sizeof why) && !t.no_memory && o != IMPORT_FAILED);
	CHECK((o == IMPORT_OK) == (in.n_events > 0) && t.n_ranks == 0 && megatron_join(&t, &in, 1));
	CHECK((o == IMPORT_OK) == (t.n_ranks == 1));
	check_trace(&t);
	for (uint32_t i = 0; i < t.n_rows; i++) {
		n_pipelines += strcmp(t.rows[i].table, "megatron_pipeline") == 0;
		for (uint32_t k = 0; k < t.rows[i].n_values; k++)
			CHECK(trace_type(&t.rows[i], k) != 'r' || !isnan(t.rows[i].values[k].real));
	}
	CHECK(n_pipelines == (o == IMPORT_OK));
	trace_fini(&t);
	return 0;
}
