/* Any bytes as a profiler's trace: refused with a sentence, or events that can be; and
 * twice as two ranks of one job. */
#include "../../collector/import/kineto.h"
#include "import_check.h"

static bool read_one(struct trace *t, struct trace_input *in, const unsigned char *data, size_t n)
{
	struct bytes b = { data, n, 0 };
	struct trace_events *s = trace_events_open(read_bytes, &b, NULL);
	char why[200] = "";
	bool fine;

	CHECK(s);
	fine = kineto_read(t, in, s, why, sizeof why) == IMPORT_OK;
	CHECK(fine || (why[0] && memchr(why, '\0', sizeof why)));
	in->fine = fine;
	trace_events_close(s);
	return fine;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
	struct trace_input in[2] = { { .path = "a", .outcome = "ok" }, { .path = "rank1.json", .outcome = "ok" } };
	struct trace t;

	trace_init(&t);
	if (read_one(&t, &in[0], data, n)) {
		(void)read_one(&t, &in[1], data, n);
		CHECK(kineto_join(&t, in, 2));
		check_trace(&t);
	}
	trace_fini(&t);
	return 0;
}
