/* Any bytes as a timeline: refused with a sentence, or events and factors that can be. */
#include "../../collector/import/timeline.h"
#include "import_check.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
	struct bytes b = { data, n, 0 };
	struct trace_events *s = trace_events_open(read_bytes, &b, NULL);
	uint64_t n_events;
	char why[200] = "";
	struct trace t;

	CHECK(s);
	trace_init(&t);
	if (timeline_read(&t, s, &n_events, why, sizeof why)) {
		check_trace(&t);
		for (uint32_t i = 0; i < t.n_what_ifs; i++)
			CHECK(!(t.what_ifs[i].slowdown < 0) && t.what_ifs[i].step_ns >= 0);
	} else {
		CHECK(why[0] && memchr(why, '\0', sizeof why));
	}
	trace_fini(&t);
	trace_events_close(s);
	return 0;
}
