/* Any bytes as a Chrome trace of spans: refused with a sentence, or events that can be and rows whose sums fit
 * in their step. */
#include "../../collector/import/spans.h"
#include "import_check.h"

static void check_row(const struct trace_row *r)
{
	CHECK(strcmp(r->table, "timeline_stage") == 0 && r->n_values == 9);
	for (uint32_t i = 3; i < 7; i++)
		CHECK(trace_type(r, i) == 'i' && r->values[i].integer >= 0);
	if (trace_type(r, 8) == 'r')
		CHECK(r->values[7].integer > 0 && r->values[8].real <= 1 && r->values[8].real >= -1e-9);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
	struct bytes b = { data, n, 0 };
	struct trace_events *s = trace_events_open(read_bytes, &b, NULL);
	struct trace_input in = { .path = "x", .rank = -1 };
	enum import_outcome o;
	char why[250] = "";
	struct trace t;

	CHECK(s);
	trace_init(&t);
	o = spans_read(&t, &in, s, why, sizeof why, false);
	CHECK(memchr(why, '\0', sizeof why) && !t.no_memory);
	if (o == IMPORT_FAILED)
		CHECK(why[0]);
	if (o == IMPORT_OK) {
		CHECK(t.n_ranks > 0);
		check_trace(&t);
		for (uint32_t i = 0; i < t.n_rows; i++)
			check_row(&t.rows[i]);
	}
	trace_fini(&t);
	trace_events_close(s);
	return 0;
}
