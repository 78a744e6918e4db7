/* Any bytes as a log of NCCL: a ring that is told as whole has each rank of its communicator
 * once, and every neighbour that a line told of it is the ring's. Read twice it says the same. */
#include "nccl_check.h"
#include "../../collector/import/nccl_log.h"

extern const struct import_format format_nccl_log;

static const struct trace_row *comm_of(const struct trace *t, const char *key)
{
	for (uint32_t i = 0; i < t->n_rows; i++)
		if (is_row(&t->rows[i], "nccl_comm") && strcmp(nccl_text(&t->rows[i], 0), key) == 0)
			return &t->rows[i];
	return NULL;
}

/* The rows of a ring stand together, in its order. */
static uint32_t check_ring(const struct trace *t, uint32_t from)
{
	const struct trace_row *first = &t->rows[from];
	const struct trace_row *comm = comm_of(t, nccl_text(first, 0));
	int64_t n, *place;

	CHECK(comm);
	n = nccl_int(comm, 1);
	CHECK(n > 0 && n <= NCCL_MAX_RANKS && (int64_t)(t->n_rows - from) >= n);
	place = malloc((size_t)n * sizeof *place);
	CHECK(place);
	memset(place, 0xff, (size_t)n * sizeof *place);
	for (int64_t i = 0; i < n; i++) {
		const struct trace_row *r = &t->rows[from + i];

		CHECK(is_row(r, "nccl_ring") && nccl_int(r, 2) == i && nccl_int(r, 1) == nccl_int(first, 1));
		CHECK(nccl_int(r, 3) >= 0 && nccl_int(r, 3) < n && place[nccl_int(r, 3)] < 0);
		place[nccl_int(r, 3)] = i;
	}
	for (uint32_t i = 0; i < t->n_rows; i++) {
		const struct trace_row *r = &t->rows[i];

		if (!is_row(r, "nccl_hop") || strcmp(nccl_text(r, HOP_COMM), nccl_text(first, 0)) != 0 ||
		    nccl_int(r, HOP_CHANNEL) != nccl_int(first, 1))
			continue;
		CHECK(nccl_int(r, HOP_RANK) < n);
		if (nccl_int(r, HOP_NEXT) != TRACE_NULL)
			CHECK(place[nccl_int(r, HOP_NEXT)] == (place[nccl_int(r, HOP_RANK)] + 1) % n);
		if (nccl_int(r, HOP_PREVIOUS) != TRACE_NULL)
			CHECK(place[nccl_int(r, HOP_RANK)] == (place[nccl_int(r, HOP_PREVIOUS)] + 1) % n);
	}
	free(place);
	return from + (uint32_t)n;
}

static uint32_t rings(const struct trace *t)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->n_rows; n++) {
		while (i < t->n_rows && !is_row(&t->rows[i], "nccl_ring"))
			i++;
		if (i < t->n_rows)
			i = check_ring(t, i);
	}
	return n;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
	struct trace once, twice;

	trace_init(&once);
	trace_init(&twice);
	if (read_nccl(&format_nccl_log, &once, 1, data, n)) {
		CHECK(read_nccl(&format_nccl_log, &twice, 2, data, n));
		CHECK(nccl_log_join(&once, NULL, 0) && nccl_log_join(&twice, NULL, 0));
		check_trace(&once);
		check_trace(&twice);
		CHECK(rings(&once) == rings(&twice));
		CHECK(once.n_ranks == twice.n_ranks && once.world_size == twice.world_size);
	}
	trace_fini(&once);
	trace_fini(&twice);
	return 0;
}
