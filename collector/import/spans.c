/* spans.c - Chrome traces of spans: a list or an object of events B and E (or X), as tracers of
 * training loops write them, MegatronApp's of pipeline stages before others.
 *
 * A process is a rank. A step is what "iteration" or "step" names: instants of its begin and
 * end, a span around it, or the number that each event carries. Where forwards and
 * backwards have stages, waiting is the gap before them (spans_link.c). Profilers' traces,
 * with launches and kernels, are Kineto's.
 */
#include "spans.h"
#include "spans_internal.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LANES 65536
#define MAX_TIME_NS (INT64_C(1) << 60)

const char *spans_name(const struct spans *s, uint32_t name)
{
	return name ? s->names[name - 1] : "";
}

static bool find_name(struct spans *s, const char *name, uint32_t *ret)
{
	const json_t *known = json_object_get(s->name_ids, name);

	*ret = known ? (uint32_t)json_integer_value(known) : 0;
	if (known || !name[0])
		return true;
	if (s->n_names == TRACE_MAX_NAMES) {
		s->other_names = true;
		return true;
	}
	if (!timeline_grow(&s->l, &s->names, s->n_names, &s->n_names_alloc, sizeof *s->names, TRACE_MAX_NAMES))
		return false;
	if (json_object_set_new(s->name_ids, name, json_integer(s->n_names + 1)) != 0)
		return true; /* no text: no name */
	s->names[s->n_names] = strdup(name);
	s->l.trace->no_memory |= !s->names[s->n_names];
	if (!s->names[s->n_names])
		return false;
	*ret = ++s->n_names;
	return true;
}

static int64_t number_in(const char *text)
{
	char *end;
	long long v = strtoll(text, &end, 10);

	return *end == '\0' && end != text && v >= 0 && v < INT32_MAX ? v : -1;
}

static bool find_lane(struct spans *s, const struct trace_event *ev, uint32_t *ret)
{
	char key[2 * sizeof ev->pid];
	const json_t *known;

	snprintf(key, sizeof key, "%s\t%s", ev->pid, ev->tid);
	known = json_object_get(s->lane_ids, key);
	if (known) {
		*ret = (uint32_t)json_integer_value(known);
		return true;
	}
	if (!timeline_grow(&s->l, &s->lanes, s->n_lanes, &s->n_lanes_alloc, sizeof *s->lanes, MAX_LANES))
		return false;
	if (json_object_set_new(s->lane_ids, key, json_integer(s->n_lanes)) != 0)
		return timeline_fail(&s->l, "has a thread whose name is no text");
	*ret = s->n_lanes++;
	s->lanes[*ret] = (struct lane_id){ .pid_number = number_in(ev->pid), .tid_number = number_in(ev->tid), .stage = -1,
					   .replica = -1, .tensor = -1, .rank = -1, .worker = UINT32_MAX };
	memcpy(s->lanes[*ret].pid, ev->pid, sizeof ev->pid);
	memcpy(s->lanes[*ret].tid, ev->tid, sizeof ev->tid);
	return true;
}

static int32_t small(int64_t v, int32_t limit)
{
	return v >= 0 && v < limit ? (int32_t)v : -1;
}

/* The first of these arguments that there is; -1 = none. */
static int32_t argument(const struct trace_event *ev, const char *a, const char *b, int32_t limit)
{
	int64_t v;

	if (!trace_event_arg_integer(ev, a, &v) && !trace_event_arg_integer(ev, b, &v))
		return -1;
	return small(v, limit);
}

static struct mark mark_of(const struct trace_event *ev)
{
	return (struct mark){ .at_ns = ev->ts_ns, .end_ns = ev->ts_ns, .phase = ev->phase == 'I' ? 'i' : ev->phase,
			      .step = argument(ev, "iteration", "step", INT32_MAX),
			      .micro = argument(ev, "microbatch", "mb_id", INT32_MAX),
			      .chunk = argument(ev, "model_chunk", "chunk", INT32_MAX),
			      .stage = argument(ev, "pp_rank", "pp_rk", FACT_MAX_RANKS),
			      .replica = argument(ev, "dp_rank", "dp_rk", FACT_MAX_RANKS),
			      .tensor = argument(ev, "tp_rank", "tp_rk", FACT_MAX_RANKS),
			      .rank = argument(ev, "g_rk", "global_rank", FACT_MAX_RANKS) };
}

static bool take_event(struct spans *s, const struct trace_event *ev)
{
	struct mark m = mark_of(ev);

	if (!m.phase || !strchr("BEXi", m.phase))
		return true;
	if (!ev->has_time || (m.phase == 'X' && !ev->has_duration)) {
		s->n_untimed++;
		return true;
	}
	if (ev->ts_ns < 0 || ev->dur_ns < 0 || ev->ts_ns >= MAX_TIME_NS || ev->dur_ns >= MAX_TIME_NS)
		return timeline_fail(&s->l, "has an event at a time that cannot be");
	if (m.phase == 'X')
		m.end_ns = m.at_ns + ev->dur_ns;
	if (!find_lane(s, ev, &m.lane) || !find_name(s, ev->name, &m.name) ||
	    !timeline_grow(&s->l, &s->marks, s->n_marks, &s->n_marks_alloc, sizeof *s->marks, SPANS_MAX_MARKS))
		return false;
	s->marks[s->n_marks++] = m;
	return true;
}

static bool read_events(struct spans *s, struct trace_events *in)
{
	enum trace_events_got got;
	struct trace_event ev;

	while ((got = trace_events_next(in, &ev)) == TRACE_EVENTS_ONE)
		if (!take_event(s, &ev))
			return false;
	if (got == TRACE_EVENTS_BAD)
		return timeline_fail(&s->l, "%s", trace_events_why(in));
	return trace_events_has_list(in) || trace_events_is_list(in) || timeline_fail(&s->l, "is no list of events");
}

static size_t add(char *out, size_t n_out, size_t at, const char *what, uint64_t n)
{
	if (n > 0 && at < n_out)
		at += (size_t)snprintf(out + at, n_out - at, "%s%llu %s", at ? "; " : "ok; ", (unsigned long long)n, what);
	return at;
}

static void say_what_differs(const struct spans *s, char *why, size_t n_why)
{
	size_t at = add(why, n_why, 0, "begins have no end and are left out", s->n_without_end);

	at = add(why, n_why, at, "ends have no begin and are left out", s->n_without_begin);
	at = add(why, n_why, at, "events have no time and are left out", s->n_untimed);
	at = add(why, n_why, at, "spans are in no step and are left out", s->n_outside);
	at = add(why, n_why, at, "micro-batches begin before they could: its clocks differ", s->n_early);
	if (s->no_steps && at < n_why)
		at += (size_t)snprintf(why + at, n_why - at, "%sit names no steps: it is imported as one", at ? "; " : "ok; ");
	if (s->pipeline && !s->told && at < n_why)
		snprintf(why + at, n_why - at, "%sits processes are taken for the stages, in their order", at ? "; " : "ok; ");
}

static void free_all(struct spans *s)
{
	for (uint32_t i = 0; i < s->n_names; i++)
		free(s->names[i]);
	free(s->names);
	free(s->marks);
	free(s->lanes);
	free(s->v);
	free(s->steps);
	json_decref(s->lane_ids);
	json_decref(s->name_ids);
	timeline_free(&s->l);
}

enum import_outcome spans_read(struct trace *t, struct trace_input *in, struct trace_events *events, char *why,
			       size_t n_why)
{
	struct spans s = { .l = { .trace = t, .why = why, .n_why = n_why }, .lane_ids = json_object(),
			   .name_ids = json_object() };
	bool fine;

	why[0] = '\0';
	t->no_memory |= !s.lane_ids || !s.name_ids;
	fine = s.lane_ids && s.name_ids && read_events(&s, events) && spans_collect(&s);
	if (fine && s.n == 0) {
		free_all(&s);
		return IMPORT_UNKNOWN;
	}
	if (fine && t->n_ranks > 0)
		fine = timeline_fail(&s.l, "has a whole job, and a file before it is of one, too: import each on its own");
	fine = fine && spans_place(&s) && (!s.pipeline || spans_link(&s));
	if (fine && s.l.unplaced == s.pipeline) /* it is none after all */
		fine = spans_place(&s);
	fine = fine && timeline_finish(&s.l);
	in->n_events = s.n;
	in->format = s.pipeline ? "MegatronApp timeline" : "Chrome trace of spans";
	if (fine) {
		say_what_differs(&s, why, n_why);
		trace_events_remark(events, why, n_why);
	}
	free_all(&s);
	return fine ? IMPORT_OK : IMPORT_FAILED;
}

/* Of a profiler, or named as StragglerAnalysis names its threads: others read that better. */
static bool is_spans(const struct import_head *h)
{
	int first = head_first(h);

	if (first != '[' && !(first == '{' && head_has(h, "\"traceEvents\"")))
		return false;
	if (head_has(h, "\"deviceProperties\"") || head_has(h, "\"schemaVersion\"") || head_has(h, "\"cuda_runtime\""))
		return false;
	return head_has(h, "\"ph\": \"B\"") || head_has(h, "\"ph\":\"B\"") || head_has(h, "\"ph\" : \"B\"") ||
	       head_has(h, "\"pp_rk\"") || head_has(h, "\"pp_rank\"");
}

static enum import_outcome read_file(struct trace *t, struct trace_input *in, bytes_fn read, void *arg, char *why,
				     size_t n_why)
{
	struct trace_events *events = trace_events_open(read, arg, NULL);
	enum import_outcome o = IMPORT_FAILED;

	t->no_memory |= !events;
	if (events)
		o = spans_read(t, in, events, why, n_why);
	trace_events_close(events);
	return o;
}

const struct import_format format_spans = { "Chrome trace of spans", is_spans, read_file, NULL };
