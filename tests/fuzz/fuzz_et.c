/* Any bytes as an execution trace: refused, or as many rows as it counts, and a graph whose faults another way of
 * counting finds as well. */
#include "../../collector/import/et.h"
#include "import_check.h"

static int64_t value(const struct trace_row *r, uint32_t i)
{
	return trace_type(r, i) == 'i' ? r->values[i].integer : -1;
}

static bool is(const struct trace_row *r, const char *table)
{
	return strcmp(r->table, table) == 0;
}

static bool has_node(const struct trace *t, int64_t id)
{
	for (uint32_t i = 0; i < t->n_rows; i++)
		if (is(&t->rows[i], "et_node") && t->rows[i].values[2].integer == id)
			return true;
	return false;
}

static void check_rows(const struct trace *t)
{
	int64_t n_nodes = 0, n_edges = 0, n_unknown = 0;
	const struct trace_row *told = NULL;

	for (uint32_t i = 0; i < t->n_rows; i++) {
		const struct trace_row *r = &t->rows[i];

		if (is(r, "et_trace"))
			told = r;
		n_nodes += is(r, "et_node");
		n_edges += is(r, "et_edge");
		if (is(r, "et_edge") && t->n_rows < 500)
			n_unknown += !has_node(t, r->values[2].integer);
	}
	CHECK(told && value(told, 2) == n_nodes && value(told, 5) + value(told, 6) + value(told, 7) == n_edges);
	CHECK(t->n_rows >= 500 || value(told, 8) == n_unknown);
	CHECK(value(told, 9) >= 0 && value(told, 9) < n_nodes && value(told, 10) >= 0 && value(told, 10) <= n_nodes);
	CHECK(value(told, 11) >= 0 && value(told, 11) <= n_nodes);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
	static const struct import_format *const formats[] = { &format_et, &format_et_workload, &format_et_proto };

	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
		struct trace_input in = { .path = "et_3.json", .rank = -1 };
		struct bytes b = { data, n, 0 };
		enum import_outcome o;
		char why[250] = "";
		struct trace t;

		trace_init(&t);
		o = formats[i]->read(&t, &in, read_bytes, &b, why, sizeof why);
		CHECK(memchr(why, '\0', sizeof why) && !t.no_memory && t.n_ranks == 0);
		CHECK(o != IMPORT_FAILED || why[0]);
		check_trace(&t);
		if (o == IMPORT_OK)
			check_rows(&t);
		else
			CHECK(t.n_rows == 0);
		trace_fini(&t);
	}
	return 0;
}
