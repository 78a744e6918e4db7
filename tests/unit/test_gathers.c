/* How many gathers are in flight, from submits, waits and begins in any order of their chunks. */
#include "unit.h"

#include "../../collector/verdict/gathers.h"

#include <string.h>

enum { STREAM_COMPUTE = 1, STREAM_COMM = 2 };

struct tape {
	struct event v[4096];
	size_t n;
};

static void add(struct tape *t, int64_t at_ns, enum event_kind kind, uint16_t flags, uint32_t launch,
		uint64_t b)
{
	t->v[t->n++] = (struct event){ .tick = (uint64_t)at_ns, .kind = kind, .flags = flags,
				       .a = event_a(0, launch), .b = b };
}

static void gather(struct tape *t, int64_t at_ns, uint32_t launch)
{
	add(t, at_ns, EVENT_LAUNCH, STREAM_COMM, launch, 0);
	add(t, at_ns, EVENT_COLL_SUBMIT, event_coll_flags(OP_ALL_GATHER, DTYPE_BF16), launch,
	    event_submit_b(-1, launch));
}

static void use(struct tape *t, int64_t at_ns, uint32_t launch, uint32_t of)
{
	add(t, at_ns, EVENT_LAUNCH, STREAM_COMPUTE, launch, 0);
	add(t, at_ns, EVENT_STREAM_WAIT, STREAM_COMPUTE, launch, of);
}

static void begin(struct tape *t, int64_t at_ns, uint32_t launch)
{
	add(t, at_ns, EVENT_KERNEL_BEGIN, STREAM_COMPUTE, launch, 0);
}

static void play(struct gathers *g, const struct tape *t)
{
	for (size_t i = 0; i < t->n; i++)
		assert_int_equal(gathers_event(g, 0, &t->v[i]), 0);
}

/* n gathers, then n kernels that wait for one each; the device takes 10 for each. */
static void run_ahead(struct tape *host, struct tape *device, uint32_t n)
{
	host->n = device->n = 0;
	for (uint32_t i = 0; i < n; i++)
		gather(host, i, 1 + i);
	for (uint32_t i = 0; i < n; i++) {
		use(host, n + i, 1 + n + i, 1 + i);
		begin(device, 1000 + 10 * i, 1 + n + i);
	}
}

static void a_host_that_runs_ahead_is_deep_whatever_chunk_comes_first(void **state)
{
	(void)state;
	for (uint32_t n = 1; n < 40; n++) {
		struct tape host, device;
		struct gathers g = { 0 };
		const struct gathers_proc *p;

		run_ahead(&host, &device, n);
		play(&g, &host);
		play(&g, &device);
		p = gathers_of(&g, 0);
		assert_non_null(p);
		assert_int_equal(p->deepest.depth, n >= GATHERS_DEEP ? n : 0);
		if (n >= GATHERS_DEEP) {
			assert_int_equal(p->deepest.n_in_flight, n);
			assert_int_equal(p->first_ns, 0);
			assert_int_equal(p->last_ns, 1000);
		}
		gathers_fini(&g);
	}
}

/* Each kernel begins before the gather after the next one is submitted. */
static void two_in_flight_are_never_deep(void **state)
{
	struct tape t = { .n = 0 };
	struct gathers g = { 0 };

	(void)state;
	gather(&t, 0, 1);
	for (uint32_t i = 0; i < 500; i++) {
		gather(&t, 100 * i + 10, 2 * i + 3);
		use(&t, 100 * i + 20, 2 * i + 4, i == 0 ? 1 : 2 * i + 1);
		begin(&t, 100 * i + 30, 2 * i + 4);
	}
	play(&g, &t);
	assert_int_equal(gathers_of(&g, 0)->deepest.depth, 0);
	gathers_fini(&g);
}

static void gathers_that_one_kernel_waits_for_are_one_unit(void **state)
{
	struct tape t = { .n = 0 };
	struct gathers g = { 0 };
	uint32_t launch = 1;

	(void)state;
	for (uint32_t unit = 0; unit < 50; unit++) {
		for (uint32_t i = 0; i < 8; i++)
			gather(&t, 100 * unit + i, launch++);
		use(&t, 100 * unit + 20, launch, launch - 1);
		begin(&t, 100 * unit + 30, launch++);
	}
	play(&g, &t);
	assert_int_equal(gathers_of(&g, 0)->deepest.depth, 0);
	gathers_fini(&g);
}

static void gathers_that_nothing_waits_for_are_not_in_flight_for_ever(void **state)
{
	struct tape t = { .n = 0 };
	struct gathers g = { 0 };

	(void)state;
	for (uint32_t i = 0; i < 600; i++)
		gather(&t, i, 1 + i);
	use(&t, 700, 601, 600);
	begin(&t, 710, 601);
	play(&g, &t);
	assert_int_equal(gathers_of(&g, 0)->deepest.depth, 0);
	assert_null(gathers_of(&g, 1));
	gathers_fini(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_host_that_runs_ahead_is_deep_whatever_chunk_comes_first),
		cmocka_unit_test(two_in_flight_are_never_deep),
		cmocka_unit_test(gathers_that_one_kernel_waits_for_are_one_unit),
		cmocka_unit_test(gathers_that_nothing_waits_for_are_not_in_flight_for_ever),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
