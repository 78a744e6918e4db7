/* Any bytes as a topology or a graph of NCCL: every path is between a GPU and a card that are
 * rows of their own, each GPU with cards has a nearest one, and no document type is taken. */
#include "nccl_check.h"

extern const struct import_format format_nccl_topology;

static bool has(const struct trace *t, const char *table, unsigned column, const char *text)
{
	for (uint32_t i = 0; i < t->n_rows; i++)
		if (is_row(&t->rows[i], table) && strcmp(nccl_text(&t->rows[i], column), text) == 0)
			return true;
	return false;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
	struct trace t;
	uint32_t n_paths = 0, n_nearest = 0;

	trace_init(&t);
	if (read_nccl(&format_nccl_topology, &t, 1, data, n)) {
		for (uint32_t i = 0; i < t.n_rows; i++) {
			const struct trace_row *r = &t.rows[i];

			if (!is_row(r, "topo_path"))
				continue;
			CHECK(has(&t, "topo_gpu", 2, nccl_text(r, 1)));
			CHECK(has(&t, "topo_nic", 3, nccl_text(r, 2)) || has(&t, "topo_nic", 2, nccl_text(r, 2)));
			n_paths++;
			n_nearest += nccl_int(r, 4) == 1;
		}
		CHECK(n_paths == 0 || n_nearest > 0);
		CHECK(n < 9 || memcmp(data, "<!DOCTYPE", 9) != 0);
	}
	check_trace(&t);
	trace_fini(&t);
	return 0;
}
