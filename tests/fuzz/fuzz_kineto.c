/* Any bytes as a profiler's trace, of either sort: refused with a sentence, or events that can be; and
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
	/* A list is one of functions. */
	fine = (n > 0 && data[0] == '[' ? kineto_read_list : kineto_read)(t, in, s, why, sizeof why) == IMPORT_OK;
	CHECK(fine || (why[0] && memchr(why, '\0', sizeof why)));
	in->fine = fine;
	trace_events_close(s);
	return fine;
}

/* What a device did is a part of the time, and its parts are no more than it. */
static void check_breakdown(const struct trace_row *r)
{
	enum { FROM = 2, TO, N, IDLE, COMPUTE, COMMUNICATION, MEMORY, OVERLAP, COMPUTE_ONLY, COMMUNICATION_ONLY,
	       MEMORY_ONLY, N_VALUES };
	int64_t v[N_VALUES], busy;

	CHECK(r->n_values == N_VALUES);
	for (unsigned i = 0; i < N_VALUES; i++)
		v[i] = r->values[i].integer;
	busy = v[TO] - v[FROM] - v[IDLE];
	CHECK(v[N] >= 0 && v[IDLE] >= 0 && busy >= 0);
	for (unsigned i = COMPUTE; i < N_VALUES; i++)
		CHECK(v[i] >= 0 && v[i] <= busy);
	CHECK(v[OVERLAP] <= v[COMPUTE] && v[OVERLAP] <= v[COMMUNICATION]);
	CHECK(v[COMPUTE] + v[COMMUNICATION] - v[OVERLAP] + v[MEMORY_ONLY] == busy);
}

static void check_rows(const struct trace *t)
{
	for (uint32_t i = 0; i < t->n_rows; i++)
		if (strcmp(t->rows[i].table, "profile_breakdown") == 0)
			check_breakdown(&t->rows[i]);
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
		check_rows(&t);
	}
	trace_fini(&t);
	return 0;
}
