/* Lists of events in JSON of any size: whole events whatever the pieces, limits that cost no memory, and what is no
 * JSON repaired where writers are known for it, else said. */
#include "../../collector/import/json_number.h"
#include "../../collector/import/trace_events.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

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
		assert_false(trace_events_top_integer(events, "host_name", &v));
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

/* ---- what writers get wrong ---- */

static void check_one(const char *text, const char *name, bool has_time, int64_t ts_ns, const char *remark)
{
	for (size_t piece = 1; piece < 200; piece += 7) {
		struct trace_event ev;
		struct text t;
		char said[300] = "";

		begin(&t, text, piece);
		if (trace_events_next(events, &ev) != TRACE_EVENTS_ONE)
			fail_msg("%s: %s", text, trace_events_why(events));
		assert_string_equal(ev.name, name);
		assert_int_equal(ev.has_time, has_time);
		if (has_time)
			assert_int_equal(ev.ts_ns, ts_ns);
		assert_int_equal(trace_events_next(events, &ev), TRACE_EVENTS_END);
		trace_events_remark(events, said, sizeof said);
		assert_string_equal(said, remark);
	}
}

static void test_what_writers_are_known_to_get_wrong_is_read_and_counted(void **state)
{
	static const char one[] = "ok; 1 of its values are written as JSON does not allow, and were read with marks in "
				  "those places";

	(void)state;
	check_one("[{\"name\":\"a\xff\xc3(\xe2\x82\",\"ts\":1}]", "a\xef\xbf\xbd\xef\xbf\xbd(\xef\xbf\xbd\xef\xbf\xbd",
		  true, 1000, one);
	check_one("[{\"name\":\"\xed\xa0\x80\",\"ts\":1}]", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", true, 1000, one);
	check_one("[{\"name\":\"a\tb\x01\",\"ts\":1}]", "a b ", true, 1000, one);
	check_one("[{\"name\":\"C:\\path\\\\x\",\"ts\":1}]", "C:\\path\\x", true, 1000, one);
	check_one("[{\"name\":\"\\ud800x\\u00\",\"ts\":1}]", "\xef\xbf\xbdx\\u00", true, 1000, one);
	check_one("[{\"name\":\"NaN\",\"ts\":NaN,\"args\":{\"x\":-Infinity,\"y\":[nan,-inf]}}]", "NaN", false, 0, one);
	/* The member beside the list, too. */
	check_one("{\"x\":NaN,\"traceEvents\":[{\"name\":\"n\",\"ts\":2}]}", "n", true, 2000, one);
}

static void test_what_json_allows_needs_no_marks(void **state)
{
	(void)state;
	check_one("[{\"name\":\"\\u0000\\ud83d\\ude00\",\"ts\":1}]", " \xf0\x9f\x98\x80", true, 1000, "");
	check_one("[{\"name\":\"n\",\"ts\":1e400,\"args\":{\"step\":1e400,\"x\":123456789012345678901234567890}}]", "n",
		  false, 0, "");
	/* Of two with one name, the last. */
	check_one("[{\"name\":\"a\",\"ts\":1,\"args\":{\"step\":1},\"name\":\"b\",\"ts\":7,\"args\":{}}]", "b", true, 7000, "");
	check_one("[{\"name\":\"n\",\"ts\":1694128201436208.123}]", "n", true, INT64_C(1694128201436208123), "");
}

static void test_of_two_members_the_last_counts(void **state)
{
	struct trace_event ev;
	struct text t;
	int64_t v;

	(void)state;
	begin(&t, "[{\"args\":{\"step\":1,\"step\":\"2\",\"x\":3},\"args\":{\"seq_id\":3,\"x\":4,\"x\":5}}]", 9);
	assert_int_equal(trace_events_next(events, &ev), TRACE_EVENTS_ONE);
	assert_int_equal(ev.numbers[TRACE_STEP], TRACE_NO_NUMBER);
	assert_int_equal(ev.numbers[TRACE_SEQ], 3);
	assert_true(trace_event_arg_integer(&ev, "x", &v) && v == 5);

	begin(&t, "{\"a\":1,\"traceEvents\":[],\"a\":[2]}", 9);
	assert_int_equal(trace_events_next(events, &ev), TRACE_EVENTS_END);
	assert_string_equal(trace_events_top(events, "a"), "[2]");
}

static void test_a_list_without_its_end_is_whole_up_to_there(void **state)
{
	static const char *const texts[] = { "[", "[{}", "[{},", "[{}, {} \n", "[{},{}" };

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct text t;
		uint64_t n;

		begin(&t, texts[i], 2);
		assert_int_equal(read_to_end(&n), TRACE_EVENTS_END);
		assert_true(trace_events_unclosed(events));
	}
}

/* ---- limits ---- */

/* A file that is only its shape: head, then a byte many times, then a tail. */
struct shape {
	const char *head, *tail;
	char fill;
	uint64_t n_fill;
	size_t at_head, at_tail;
};

static ptrdiff_t read_shape(void *arg, unsigned char *out, size_t n)
{
	struct shape *s = arg;
	size_t i = 0;

	for (; i < n && s->head[s->at_head]; i++)
		out[i] = (unsigned char)s->head[s->at_head++];
	if (i < n && s->n_fill > 0) {
		size_t k = n - i < s->n_fill ? n - i : (size_t)s->n_fill;

		memset(out + i, s->fill, k);
		s->n_fill -= k;
		i += k;
	}
	for (; i < n && s->n_fill == 0 && s->tail[s->at_tail]; i++)
		out[i] = (unsigned char)s->tail[s->at_tail++];
	return (ptrdiff_t)i;
}

static enum trace_events_got read_shaped(struct shape s, uint64_t *ret_n)
{
	enum trace_events_got got;

	trace_events_close(events);
	events = trace_events_open(read_shape, &s, NULL);
	assert_non_null(events);
	got = read_to_end(ret_n);
	return got;
}

#define GIGA (UINT64_C(1) << 30)

static void test_a_text_of_a_gigabyte_costs_its_event(void **state)
{
	char said[200] = "";
	uint64_t n;

	(void)state;
	assert_int_equal(read_shaped((struct shape){ .head = "[{\"name\":\"a\"},{\"name\":\"", .fill = 'x', .n_fill = GIGA,
						     .tail = "\"},{}]" },
				     &n),
			 TRACE_EVENTS_END);
	assert_int_equal(n, 2);
	trace_events_remark(events, said, sizeof said);
	assert_string_equal(said, "ok; 1 of its events are longer than 1 MiB and were left out");
}

static void test_long_members_keys_and_spaces_cost_nothing(void **state)
{
	static const struct {
		struct shape shape;
		const char *top;
	} v[] = {
		{ { .head = "{\"a\":\"", .fill = 'x', .n_fill = GIGA / 8, .tail = "\",\"traceEvents\":[{}]}" }, "" },
		{ { .head = "{\"a\":[", .fill = ' ', .n_fill = GIGA / 8, .tail = "],\"traceEvents\":[{}]}" }, "" },
		{ { .head = "{\"", .fill = 'k', .n_fill = GIGA / 8, .tail = "\":1,\"traceEvents\":[{}]}" }, NULL },
		{ { .head = "{\"traceEvents\":[{}", .fill = '\n', .n_fill = GIGA / 8, .tail = "]}" }, NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
		const char *top;
		uint64_t n;

		assert_int_equal(read_shaped(v[i].shape, &n), TRACE_EVENTS_END);
		assert_int_equal(n, 1);
		top = trace_events_top(events, "a");
		assert_true(v[i].top ? top && strcmp(top, v[i].top) == 0 : !top);
	}
}

static void test_what_cannot_end_well_ends_early(void **state)
{
	static const struct {
		struct shape shape;
		const char *why;
	} v[] = {
		{ { .head = "[", .fill = '[', .n_fill = GIGA, .tail = "" }, "nested too deeply" },
		{ { .head = "{\"a\":{\"b\":", .fill = '[', .n_fill = GIGA, .tail = "" }, "nested too deeply" },
		{ { .head = "[{\"a\":\"", .fill = '\\', .n_fill = GIGA / 4, .tail = "" }, "within a text" },
		{ { .head = "[", .fill = '1', .n_fill = GIGA / 4, .tail = "]" }, "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
		uint64_t n;

		if (read_shaped(v[i].shape, &n) == TRACE_EVENTS_BAD)
			assert_non_null(strstr(trace_events_why(events), v[i].why));
		else
			assert_string_equal(v[i].why, "");
		assert_int_equal(n, 0);
	}
}

static void test_a_deep_event_is_read_up_to_the_limit(void **state)
{
	(void)state;
	for (unsigned depth = JSON_CUT_DEPTH - 1; depth <= JSON_CUT_DEPTH; depth++) {
		char text[400] = "[{\"a\":";
		struct text t;
		uint64_t n;

		for (unsigned i = 0; i < depth; i++)
			strcat(text, "[");
		for (unsigned i = 0; i < depth; i++)
			strcat(text, "]");
		strcat(text, "}]");
		begin(&t, text, 50);
		assert_int_equal(read_to_end(&n), depth < JSON_CUT_DEPTH ? TRACE_EVENTS_END : TRACE_EVENTS_BAD);
		assert_int_equal(n, depth < JSON_CUT_DEPTH);
	}
}

static void test_members_are_kept_up_to_a_limit(void **state)
{
	char *text = malloc(4u << 20), *at = text + sprintf(text, "{");
	struct text t;
	uint64_t n;

	(void)state;
	for (unsigned i = 0; i < 2 * TRACE_EVENTS_MEMBERS; i++)
		at += sprintf(at, "\"m%u\":%u,", i, i);
	for (unsigned i = 0; i < 4; i++) {
		at += sprintf(at, "\"m%u\":\"", i);
		memset(at, 'x', 400000);
		at += 400000;
		at += sprintf(at, "\",");
	}
	strcpy(at, "\"traceEvents\":[]}");
	begin(&t, text, 65536);
	assert_int_equal(read_to_end(&n), TRACE_EVENTS_END);
	assert_int_equal(strlen(trace_events_top(events, "m1")), 400002);
	assert_string_equal(trace_events_top(events, "m3"), ""); /* over what all may have */
	assert_string_equal(trace_events_top(events, "m60"), "60");
	assert_null(trace_events_top(events, "m64"));
	free(text);
}

static void test_no_part_of_a_file_is_taken_for_the_whole(void **state)
{
	static const char text[] = "{\"a\":[1,\"b\"],\"traceEvents\":[{\"name\":\"x\\n\",\"ts\":1.5},{}],\"c\":{\"d\":null}}";

	(void)state;
	for (size_t n = 0; n < sizeof text - 1; n++) {
		char part[sizeof text];
		struct text t;
		uint64_t n_events;

		snprintf(part, sizeof part, "%.*s", (int)n, text);
		begin(&t, part, 5);
		if (read_to_end(&n_events) != TRACE_EVENTS_BAD || !strstr(trace_events_why(events), "is no JSON: "))
			fail_msg("taken for whole: %s", part);
	}
}

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define MAX_PEAK_MB 1000 /* the sanitizer's */
#else
#define MAX_PEAK_MB 32
#endif

/* The last one: what all tests before it needed, gigabytes of text among them. */
static void test_all_that_took_little_memory(void **state)
{
	struct rusage u;

	(void)state;
	assert_int_equal(getrusage(RUSAGE_SELF, &u), 0);
	assert_in_range(u.ru_maxrss / 1024, 1, MAX_PEAK_MB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events_come_whole_whatever_the_pieces),
		cmocka_unit_test(test_what_is_no_json_is_said),
		cmocka_unit_test(test_microseconds_become_nanoseconds_exactly),
		cmocka_unit_test(test_what_writers_are_known_to_get_wrong_is_read_and_counted),
		cmocka_unit_test(test_what_json_allows_needs_no_marks),
		cmocka_unit_test(test_of_two_members_the_last_counts),
		cmocka_unit_test(test_a_list_without_its_end_is_whole_up_to_there),
		cmocka_unit_test(test_a_text_of_a_gigabyte_costs_its_event),
		cmocka_unit_test(test_long_members_keys_and_spaces_cost_nothing),
		cmocka_unit_test(test_what_cannot_end_well_ends_early),
		cmocka_unit_test(test_a_deep_event_is_read_up_to_the_limit),
		cmocka_unit_test(test_members_are_kept_up_to_a_limit),
		cmocka_unit_test(test_no_part_of_a_file_is_taken_for_the_whole),
		cmocka_unit_test(test_all_that_took_little_memory),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	trace_events_close(events);
	return failed;
}
