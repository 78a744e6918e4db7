/* Any bytes as a memory snapshot: refused with a sentence and without a row, or as numbers that hold together: what is free, in
 * use and waiting fills what is reserved, also at each refusal; what places hold is what is in use. */
#include "../../collector/import/memory_snapshot.h"
#include "../../collector/import/row_files.h"
#include "import_check.h"

extern const struct import_format format_pickle;

static void check_oom(const struct trace_row *v)
{
	int64_t asked = row_integer(v, 4), allocated = row_integer(v, 6), err = row_integer(v, 7);
	int64_t reserved = row_integer(v, 8), largest = row_integer(v, 9);

	CHECK(asked >= 0 && asked <= MEMORY_MAX_BYTES);
	CHECK((allocated == TRACE_NULL) == (err == TRACE_NULL));
	CHECK(allocated == TRACE_NULL || (allocated >= 0 && err >= 0));
	CHECK(reserved == TRACE_NULL || (reserved >= 0 && reserved <= MEMORY_MAX_BYTES));
	CHECK(allocated == TRACE_NULL || reserved == TRACE_NULL || allocated + err <= reserved);
	CHECK(largest == TRACE_NULL || (largest >= 0 && largest <= reserved));
	CHECK(v->values[14].text && v->values[15].text && v->values[15].text[0]);
	if (strcmp(v->values[14].text, "fragmentation") == 0)
		CHECK(allocated != TRACE_NULL && asked <= reserved - allocated - err && (largest == TRACE_NULL || largest < asked));
}

struct sums {
	int64_t total, allocated, live, n_segments, n_sites;
};

static struct sums sum_up(const struct trace *t, int64_t device)
{
	struct sums s = { 0 };

	for (uint32_t i = 0; i < t->n_rows; i++) {
		const struct trace_row *v = &t->rows[i];

		if (row_integer(v, 1) != device)
			continue;
		if (strcmp(v->table, "memory_segment") == 0) {
			int64_t total = row_integer(v, 3), allocated = row_integer(v, 4), active = row_integer(v, 5);

			CHECK(allocated >= 0 && allocated <= active && active <= total && row_integer(v, 9) <= total - active);
			s.total += total;
			s.allocated += allocated;
			s.n_segments++;
		} else if (strcmp(v->table, "memory_site") == 0) {
			CHECK(row_integer(v, 3) >= 0 && row_integer(v, 4) >= 0 && row_integer(v, 8) >= 0);
			s.live += row_integer(v, 4);
			s.n_sites++;
		}
	}
	return s;
}

static void check_rows(const struct trace *t)
{
	for (uint32_t i = 0; i < t->n_rows; i++) {
		const struct trace_row *v = &t->rows[i];
		struct sums s;

		if (strcmp(v->table, "memory_oom") == 0)
			check_oom(v);
		if (strcmp(v->table, "memory_snapshot") != 0)
			continue;
		s = sum_up(t, row_integer(v, 1));
		if (s.n_segments == row_integer(v, 6))
			CHECK(s.total == row_integer(v, 3) && s.allocated == row_integer(v, 4));
		if (s.n_sites < 500)
			CHECK(s.live == row_integer(v, 4));
	}
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
	struct trace_input in[2] = { { .path = "rank_0" }, { .path = "x" } };
	char why[250] = "";
	struct trace t;

	trace_init(&t);
	for (unsigned i = 0; i < 2; i++) {
		struct bytes b = { data, n, 0 };
		enum import_outcome o = format_pickle.read(&t, &in[i], read_bytes, &b, why, sizeof why);

		CHECK(!t.no_memory && why[0]);
		CHECK(o != IMPORT_OK || !in[i].format || strcmp(in[i].format, "PyTorch memory snapshot") != 0 || i == 0);
		CHECK(o == IMPORT_OK || i > 0 || t.n_rows == 0);
	}
	check_rows(&t);
	CHECK(format_pickle.join(&t, in, 2));
	trace_fini(&t);
	return 0;
}
