/* Files of other tools: what they say comes in exactly, what is wrong with them is said. */
#include "../../collector/import/import.h"
#include "../../collector/import/json_number.h"
#include "../../collector/import/kineto.h"
#include "../../collector/import/source.h"
#include "../../collector/import/timeline.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

struct text {
	const char *text;
	size_t n, at, piece;
};

static ptrdiff_t read_text(void *arg, unsigned char *out, size_t n)
{
	struct text *t = arg;
	size_t left = t->n - t->at;

	n = n < t->piece ? n : t->piece;
	n = n < left ? n : left;
	memcpy(out, t->text + t->at, n);
	t->at += n;
	return (ptrdiff_t)n;
}

static struct trace_events *events;

static void begin(struct text *t, const char *text, size_t piece)
{
	*t = (struct text){ text, strlen(text), 0, piece };
	trace_events_close(events);
	events = trace_events_open(read_text, t, NULL);
	assert_non_null(events);
}

static enum trace_events_got read_to_end(uint64_t *ret_n)
{
	enum trace_events_got got;
	struct trace_event ev;

	*ret_n = 0;
	while ((got = trace_events_next(events, &ev)) == TRACE_EVENTS_ONE)
		++*ret_n;
	return got;
}

static void test_events_come_whole_whatever_the_pieces(void **state)
{
	static const char text[] =
		" { \"schemaVersion\" : 1, \"traceEvents\": [ {\"ph\":\"X\",\"name\":\"a]}\\\"\\u00e9\", \"ts\": 1.5,\n"
		"\"dur\":\"2\", \"pid\":7,\"tid\":\"stream 7\",\"args\":{\"stream\":7,\"dtype\":\"Float\",\"SeqNum\":\"12\","
		"\"list\":[1,{\"stream\":8}],\"good\":true}} , {} ],\n\"host_name\":\"h\\u0041\", \"distributedInfo\""
		":{\"rank\":3},\"baseTimeNanoseconds\":1700000000000000123} ";

	(void)state;
	for (size_t piece = 1; piece < 20; piece++) {
		struct trace_event ev;
		struct text t;
		char word[16];
		int64_t v;

		begin(&t, text, piece);
		assert_int_equal(trace_events_next(events, &ev), TRACE_EVENTS_ONE);
		assert_int_equal(ev.phase, 'X');
		assert_string_equal(ev.name, "a]}\"\xc3\xa9");
		assert_true(ev.has_time && ev.ts_ns == 1500 && ev.has_duration && ev.dur_ns == 2000);
		assert_string_equal(ev.pid, "7");
		assert_string_equal(ev.tid, "stream 7");
		assert_int_equal(ev.numbers[TRACE_STREAM], 7);
		assert_string_equal(ev.texts[TRACE_DTYPE], "Float");
		assert_true(trace_event_arg_integer(&ev, "SeqNum", &v) && v == 12);
		assert_true(trace_event_arg(&ev, "good", word, sizeof word));
		assert_string_equal(word, "true");
		assert_false(trace_event_arg(&ev, "list", word, sizeof word));
		assert_false(trace_event_arg(&ev, "none", word, sizeof word));
		assert_int_equal(ev.text[0], '{');
		assert_int_equal(ev.text[ev.n_text - 1], '}');
		assert_int_equal(trace_events_next(events, &ev), TRACE_EVENTS_ONE);
		assert_int_equal(ev.n_text, 2);
		assert_true(!ev.has_time && ev.phase == 0 && ev.numbers[TRACE_STREAM] == TRACE_NO_NUMBER);
		assert_int_equal(trace_events_next(events, &ev), TRACE_EVENTS_END);
		assert_true(trace_events_has_list(events) && !trace_events_is_list(events));
		assert_string_equal(trace_events_top(events, "distributedInfo"), "{\"rank\":3}");
		assert_null(trace_events_top(events, "nothing"));
		assert_true(trace_events_top_integer(events, "baseTimeNanoseconds", &v));
		assert_int_equal(v, INT64_C(1700000000000000123));
		assert_true(trace_events_top_text(events, "host_name", word, sizeof word));
		assert_string_equal(word, "hA");
		assert_false(trace_events_top_text(events, "schemaVersion", word, sizeof word));
	}
}

static void test_what_is_no_json_is_said(void **state)
{
	static const struct {
		const char *text, *why;
	} bad[] = {
		{ "", "too early, near byte 0" },
		{ "{", "a key is expected" },
		{ "[{},]", "a value is expected, near byte 4" },
		{ "[{} {}]", "a comma is expected, near byte 4" },
		{ "{\"a\" 1}", "a colon is expected" },
		{ "{1:2}", "a key is expected" },
		{ "[{\"a\":tru}]", "an event that is none, near byte 1" },
		{ "[{}, {\"a\":1 2}]", "an event that is none, near byte 5" },
		{ "[{\"a]", "within a text" },
		{ "[{\"a\":01}]", "an event that is none" },
		{ "[{\"a\":1.}]", "an event that is none" },
		{ "[{\"a\":-}]", "an event that is none" },
		{ "[{\"a\":1e}]", "an event that is none" },
		{ "[{\"a\"}]", "an event that is none" },
		{ "[{\"a\":[1}]]", "an event that is none" },
		{ "[{\"a\":1,}]", "an event that is none" },
		{ "]", "neither a list nor an object" },
		{ "1", "neither a list nor an object" },
		{ "[{}}", "a comma is expected" },
		{ "[{}] 2", "something follows behind its end, near byte 5" },
		{ "[1]", "no list of objects, near byte 1" },
		{ "[[]]", "no list of objects" },
		{ "{\"a\":1,}", "a key is expected" },
		{ "{\"a\":tru}", "a value that is none, near byte 5" },
		{ "{\"a\":[1 2]}", "a value that is none, near byte 5" },
		{ "{\"a\":}", "a value is expected" },
		{ "{\"traceEvents\":[{}]", "too early" },
		{ "{\"traceEvents\":[{},", "too early" },
		{ "{\"traceEvents\":[],\"traceEvents\":[]}", "two lists of events" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct text t;
		uint64_t n;

		begin(&t, bad[i].text, 3);
		if (read_to_end(&n) != TRACE_EVENTS_BAD)
			fail_msg("taken for JSON: %s", bad[i].text);
		if (strncmp(trace_events_why(events), "is no JSON: ", 12) != 0 ||
		    !strstr(trace_events_why(events), bad[i].why))
			fail_msg("%s: %s", bad[i].text, trace_events_why(events));
	}
}

static void test_microseconds_become_nanoseconds_exactly(void **state)
{
	static const struct {
		const char *text;
		int64_t ns;
	} v[] = {
		{ "2688330.4119110107", INT64_C(2688330412) },
		{ "5113003830111.573", INT64_C(5113003830111573) },
		/* a double would have 256 ns here */
		{ "1694128201436208.123", INT64_C(1694128201436208123) },
		{ "0.0004", 0 }, { "0.0005", 1 }, { "-1.5", -1500 }, { "1e3", 1000000 }, { "12.5E-1", 1250 },
		{ "0", 0 }, { "000", 0 }, { "7", 7000 },
	};
	int64_t ns;

	(void)state;
	for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
		assert_true(json_integer_of(v[i].text, strlen(v[i].text), 3, &ns));
		assert_int_equal(ns, v[i].ns);
	}
	assert_false(json_integer_of("9223372036854775807", 19, 3, &ns));
	assert_false(json_integer_of("1e300", 5, 3, &ns));
	assert_false(json_integer_of("x", 1, 0, &ns));
	assert_false(json_integer_of("", 0, 0, &ns));
}

/* ---- timelines ---- */

static char *put(char *at, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static char *put(char *at, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	at += vsprintf(at, fmt, ap);
	va_end(ap);
	return at;
}

static char *span(char *at, const char *name, unsigned dp, unsigned pp, unsigned lane, double us, double dur,
		  int step, int n)
{
	return put(at,
		   "{\"name\":\"%s\",\"pid\":%u,\"tid\":%u,\"ts\":%.3f,\"dur\":%.3f,\"ph\":\"X\","
		   "\"args\":{\"step\":%d,\"model_chunk\":0,\"mb_id\":%d,\"seq_id\":%d}},",
		   name, dp, 5 * (pp * 2 + dp) + lane, us, dur, step, n, n);
}

/* Two stages, two replicas, one micro-batch; stage 1 of replica 1 is slow by late. */
static char *make_timeline(double late)
{
	char *text = malloc(200000), *at = put(text, "[");

	for (int step = 3; step < 9; step += 2)
		for (unsigned dp = 0; dp < 2; dp++) {
			double t = step * 10000.0, slow = dp == 1 ? late : 0;

			at = span(at, "params-all-gather", dp, 0, 3, t, 50, step, 0);
			at = span(at, "params-all-gather", dp, 1, 3, t, 50, step, 0);
			at = span(at, "forward-compute", dp, 0, 0, t + 50, 100, step, 0);
			at = span(at, "forward-send", dp, 0, 1, t + 150, 10, step, 0);
			at = span(at, "forward-recv", dp, 1, 1, t + 150, 10, step, 0);
			at = span(at, "forward-compute", dp, 1, 0, t + 160, 100 + slow, step, 0);
			at = span(at, "backward-compute", dp, 1, 0, t + 260 + slow, 200, step, 0);
			at = span(at, "backward-send", dp, 1, 1, t + 460 + slow, 10, step, 0);
			at = span(at, "backward-recv", dp, 0, 1, t + 460 + slow, 10, step, 0);
			at = span(at, "backward-compute", dp, 0, 0, t + 470 + slow, 200, step, 0);
			/* Collectives begin together: the wait is the gap before. */
			at = span(at, "grads-reduce-scatter", dp, 1, 3, t + 460 + late, 40, step, 0);
			at = span(at, "grads-reduce-scatter", dp, 0, 3, t + 670 + late, 40, step, 0);
		}
	for (unsigned dp = 0; dp < 2; dp++)
		for (unsigned pp = 0; pp < 2; pp++)
			for (unsigned lane = 0; lane < 5; lane++)
				at = put(at,
					 "{\"name\":\"thread_name\",\"pid\":%u,\"tid\":%u,\"ph\":\"M\",\"args\":"
					 "{\"name\":\"PP rank %u, TP rank 0, %s\"}},",
					 dp, 5 * (pp * 2 + dp) + lane, pp, lane == 0 ? "compute" : "dp-comm");
	memcpy(at - 1, "]", 2);
	return text;
}

static bool read_timeline(struct trace *t, const char *text, char why[200])
{
	struct text in;
	uint64_t n;

	trace_init(t);
	begin(&in, text, 1000);
	return timeline_read(t, events, &n, why, 200);
}

static const struct fact_what_if *what_if(const struct trace *t, const char *scope, const char *name)
{
	for (uint32_t i = 0; i < t->n_what_ifs; i++)
		if (strcmp(t->what_ifs[i].scope, scope) == 0 && strcmp(t->what_ifs[i].name, name) == 0)
			return &t->what_ifs[i];
	fail_msg("no what-if of %s %s", scope, name);
	return NULL;
}

static void test_a_timeline_s_job_is_replayed(void **state)
{
	char why[200], *text = make_timeline(300);
	struct trace t;

	(void)state;
	assert_true(read_timeline(&t, text, why));
	assert_int_equal(t.n_ranks, 4);
	/* 50 + 100 + 10 + 400 + 200 + 10 + 200 + 40 us */
	assert_int_equal(what_if(&t, "job", "job")->step_ns, 1010000);
	assert_int_equal(what_if(&t, "job", "job")->n_steps, 3);
	/* The ideal forward is the mean: (100 + 100 + 100 + 400) / 4 us */
	assert_int_equal(what_if(&t, "job", "job")->without_ns, 50000 + 175000 + 10000 + 175000 + 200000 + 10000 +
									 200000 + 40000);
	assert_string_equal(what_if(&t, "worst ranks", "3")->name, "3");
	assert_true(what_if(&t, "rank", "3")->share > 0.9);
	trace_fini(&t);
	free(text);
}

static void test_a_gap_before_a_collective_is_told_as_its_wait(void **state)
{
	char why[200], *text = make_timeline(300);
	const struct event *ev;
	struct runs_reader *in;
	struct trace_rank *r;
	struct trace t;
	unsigned n = 0;

	(void)state;
	assert_true(read_timeline(&t, text, why));
	r = trace_find_rank(&t, 2); /* stage 1, replica 0: 300 us early */
	assert_non_null(r);
	assert_true(trace_sort(&t, r));
	in = trace_read(&t, r, TRACE_DEVICE);
	assert_non_null(in);
	while ((ev = runs_next(in))) {
		if (ev->kind != EVENT_COLL_BEGIN || ev->flags >> 8 != OP_REDUCE_SCATTER)
			continue;
		n++;
		/* It has sent its gradient; from then on it had nothing else to do. */
		assert_int_equal(ev->tick % 10000000, 470000);
		ev = runs_next(in);
		assert_non_null(ev);
		assert_int_equal(ev->kind, EVENT_COLL_END);
		assert_int_equal(ev->tick % 10000000, 800000);
	}
	assert_true(trace_read_end(&t, in));
	assert_int_equal(n, 3);
	trace_fini(&t);
	free(text);
}

static void test_steps_keep_the_file_s_numbers(void **state)
{
	char why[200], *text = make_timeline(0);
	const struct event *ev;
	struct runs_reader *in;
	struct trace t;
	uint32_t want = 3;

	(void)state;
	assert_true(read_timeline(&t, text, why));
	assert_true(trace_sort(&t, &t.ranks[0]));
	in = trace_read(&t, &t.ranks[0], TRACE_HOST);
	assert_non_null(in);
	while ((ev = runs_next(in))) {
		if (ev->kind != EVENT_STEP_BEGIN)
			continue;
		assert_int_equal(event_step(ev->a), want);
		want += 2;
	}
	assert_true(trace_read_end(&t, in));
	assert_int_equal(want, 9);
	trace_fini(&t);
	free(text);
}

static void test_a_list_that_is_no_timeline_is_refused_with_a_sentence(void **state)
{
	static const char *const bad[] = {
		"[]", "[1]", "[{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":1}]",
		"[{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":1,\"args\":{\"step\":1}}]",
		"[{\"ph\":\"X\",\"name\":\"a\",\"ts\":-1,\"dur\":1,\"args\":{\"step\":1}}]",
		"[{\"ph\":\"X\",\"name\":\"a\",\"ts\":1e18,\"dur\":1,\"args\":{\"step\":1}}]",
		"[{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":1,\"args\":{\"step\":-4}}]",
		"[{\"ph\":\"M\",\"name\":\"thread_name\",\"args\":{\"name\":\"PP rank 99999999, TP rank 0, x\"}}]",
		"[{\"ph\":\"X\"",
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		char why[200] = "";
		struct trace t;

		assert_false(read_timeline(&t, bad[i], why));
		assert_true(why[0] != '\0');
		trace_fini(&t);
	}
}

/* ---- profiler traces ---- */

static char *kernel(char *at, const char *name, double us, double dur, int correlation, const char *args)
{
	at = put(at,
		 "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":9,\"tid\":9,"
		 "\"ts\":%.3f,\"dur\":5,\"args\":{\"correlation\":%d,\"External id\":%d}},",
		 us - 20, correlation, correlation + 1000);
	return put(at,
		   "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"%s\",\"pid\":0,\"tid\":7,\"ts\":%.3f,"
		   "\"dur\":%.3f,\"args\":{\"stream\":7,\"correlation\":%d%s}},",
		   name, us, dur, correlation, args);
}

/* Rank 1 is late by late_us in every step; its clock is ahead by ahead_us. */
static char *make_kineto(int rank, double late_us, double ahead_us, int n_steps)
{
	static const char args[] =
		",\"Collective name\":\"allreduce\",\"In msg nelems\":1000,\"Group size\":2,\"dtype\":\"Float\","
		"\"Process Group Name\":\"0\",\"Process Group Description\":\"default_pg\","
		"\"Process Group Ranks\":\"[0, 1]\"";
	char *text = malloc(400000), *at = text;
	int c = 0;

	at = put(at,
		 "{\"schemaVersion\":1,\"distributedInfo\":{\"rank\":%d,\"world_size\":2},"
		 "\"baseTimeNanoseconds\":1000000000000000000,\"traceEvents\":[",
		 rank);
	for (int step = 0; step < n_steps; step++) {
		double t = 1000 + 5000.0 * step + ahead_us * rank, mine = late_us * rank;

		at = put(at,
			 "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#%d\",\"pid\":9,"
			 "\"tid\":9,\"ts\":%.3f,\"dur\":4900,\"args\":{}},",
			 step + 10, t);
		at = kernel(at, "gemm", t + 100 + mine, 300, ++c, "");
		for (int i = 0; i < 4; i++)
			at = kernel(at, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)",
				    t + 500 + 200 * i + (i == 0 ? mine : late_us),
				    100 + (i == 0 ? late_us - mine : 0), ++c, args);
	}
	put(at - 1, "]}");
	return text;
}

static enum import_outcome read_kineto(struct trace *t, struct trace_input *in, const char *text, char why[200])
{
	struct text source;

	begin(&source, text, 1 << 16);
	in->fine = kineto_read(t, in, events, why, 200) == IMPORT_OK;
	return in->fine ? IMPORT_OK : IMPORT_FAILED;
}

static void read_pair(struct trace *t, struct trace_input in[2], double late_us, double ahead_us, int n0, int n1)
{
	char why[200], *a = make_kineto(0, late_us, ahead_us, n0), *b = make_kineto(1, late_us, ahead_us, n1);

	trace_init(t);
	for (int i = 0; i < 2; i++)
		in[i] = (struct trace_input){ .path = "x", .outcome = "ok" };
	assert_int_equal(read_kineto(t, &in[0], a, why), IMPORT_OK);
	assert_int_equal(read_kineto(t, &in[1], b, why), IMPORT_OK);
	assert_true(kineto_join(t, in, 2));
	free(a);
	free(b);
}

static void test_a_profile_tells_steps_launches_kernels_and_calls(void **state)
{
	struct trace_input in[2];
	unsigned n[EVENT_N_KINDS] = { 0 };
	struct trace t;

	(void)state;
	read_pair(&t, in, 700, 0, 6, 6);
	assert_int_equal(t.n_ranks, 2);
	assert_int_equal(t.world_size, 2);
	for (unsigned ring = 0; ring < TRACE_RINGS; ring++) {
		struct runs_reader *in_order = trace_read(&t, &t.ranks[1], ring);
		const struct event *ev;

		assert_non_null(in_order);
		while ((ev = runs_next(in_order))) {
			n[ev->kind]++;
			assert_true(ev->tick >= UINT64_C(1000000000000000000));
			assert_true(event_step(ev->a) >= 10 && event_step(ev->a) < 16);
			if (ev->kind == EVENT_COLL_BEGIN) {
				assert_int_equal(ev->b, 4000);
				assert_int_equal(ev->flags, event_coll_flags(OP_ALL_REDUCE, DTYPE_F32));
			}
		}
		assert_true(trace_read_end(&t, in_order));
	}
	assert_int_equal(n[EVENT_STEP_BEGIN], 6);
	assert_int_equal(n[EVENT_LAUNCH], 6 * 5);
	assert_int_equal(n[EVENT_KERNEL_BEGIN], 6);
	assert_int_equal(n[EVENT_COLL_BEGIN], 6 * 4);
	assert_int_equal(n[EVENT_COLL_SUBMIT], 6 * 4);
	assert_int_equal(t.n_groups, 1);
	assert_int_equal(t.groups[0].n_ranks, 2);
	trace_fini(&t);
}

static void test_clocks_of_two_files_are_placed_by_their_calls(void **state)
{
	struct trace_input in[2];
	struct trace t;
	int64_t offset_ns;

	(void)state;
	read_pair(&t, in, 700, 90000, 6, 6);
	assert_true(t.ranks[0].clock != t.ranks[1].clock);
	assert_string_equal(in[1].outcome, "ok");
	offset_ns = t.reference == t.ranks[0].clock ? -90000000 : 90000000;
	for (int i = 0; i < 2; i++)
		if (t.ranks[i].clock != t.reference) {
			assert_true(t.ranks[i].placed);
			assert_true(t.ranks[i].lo_ns <= offset_ns && offset_ns <= t.ranks[i].hi_ns);
			assert_true(llabs(t.ranks[i].best_ns - offset_ns) < 20000);
		}
	trace_fini(&t);
}

static void test_what_is_no_profile_is_refused_with_a_sentence(void **state)
{
	static const char *const bad[] = {
		"{}", "{\"a\":1}", "{\"traceEvents\":{}}", "{\"traceEvents\":[1]}", "{\"traceEvents\":[]}",
		"{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"ts\":1,\"dur\":1",
		"{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"ts\":-1,\"dur\":1}]}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct trace_input in = { .path = "x" };
		char why[200] = "";
		struct trace t;

		trace_init(&t);
		assert_int_not_equal(read_kineto(&t, &in, bad[i], why), IMPORT_OK);
		assert_true(why[0] != '\0');
		trace_fini(&t);
	}
}

static void test_a_rank_is_found_in_the_file_s_name(void **state)
{
	static const struct {
		const char *path;
		int64_t rank;
	} v[] = { { "a/rank-34.Jul_15.pt.trace.json", 34 }, { "kineto_ddp_rank7.json.gz", 7 },
		  { "rank_3/trace.json", 3 }, { "rank1/x_rank2.json", 2 } };

	(void)state;
	for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
		struct trace_input in = { .path = v[i].path };
		char why[200];
		struct trace t;

		trace_init(&t);
		assert_int_equal(read_kineto(&t, &in,
					     "{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\","
					     "\"ts\":5,\"dur\":1,\"args\":{}}]}",
					     why),
				 IMPORT_OK);
		assert_int_equal(in.rank, v[i].rank);
		trace_fini(&t);
	}
}

/* ---- files ---- */

static void test_a_damaged_or_cut_file_costs_only_itself(void **state)
{
	char path[] = "/tmp/syncline-import-XXXXXX", *text = make_timeline(300);
	int fd = mkstemp(path);
	struct trace_input in = { .path = path };
	struct import_progress none = { NULL, NULL };
	struct trace t;
	gzFile gz;

	(void)state;
	assert_true(fd >= 0);
	gz = gzdopen(dup(fd), "wb");
	assert_int_equal(gzwrite(gz, text, (unsigned)strlen(text)), strlen(text));
	gzclose(gz);
	trace_init(&t);
	assert_true(import_file(&t, &in, &none));
	assert_true(in.fine);
	assert_string_equal(in.format, "StragglerAnalysis timeline");
	trace_fini(&t);

	assert_int_equal(ftruncate(fd, lseek(fd, 0, SEEK_END) / 2), 0);
	trace_init(&t);
	assert_true(import_file(&t, &in, &none));
	assert_false(in.fine);
	assert_string_equal(in.outcome, "cannot be read to its end: it is damaged or cut off");
	trace_fini(&t);

	unlink(path);
	trace_init(&t);
	assert_true(import_file(&t, &in, &none));
	assert_false(in.fine);
	assert_string_equal(in.outcome, "cannot be read: No such file or directory");
	trace_fini(&t);
	close(fd);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events_come_whole_whatever_the_pieces),
		cmocka_unit_test(test_what_is_no_json_is_said),
		cmocka_unit_test(test_microseconds_become_nanoseconds_exactly),
		cmocka_unit_test(test_a_timeline_s_job_is_replayed),
		cmocka_unit_test(test_a_gap_before_a_collective_is_told_as_its_wait),
		cmocka_unit_test(test_steps_keep_the_file_s_numbers),
		cmocka_unit_test(test_a_list_that_is_no_timeline_is_refused_with_a_sentence),
		cmocka_unit_test(test_a_profile_tells_steps_launches_kernels_and_calls),
		cmocka_unit_test(test_clocks_of_two_files_are_placed_by_their_calls),
		cmocka_unit_test(test_what_is_no_profile_is_refused_with_a_sentence),
		cmocka_unit_test(test_a_rank_is_found_in_the_file_s_name),
		cmocka_unit_test(test_a_damaged_or_cut_file_costs_only_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
