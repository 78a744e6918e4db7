#include "kineto_internal.h"
#include "json_number.h"
#include "kernel_class.h"
#include "trace_events.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NAMES 65536
#define MAX_STEP_NAMES 1024
#define MAX_CALLS 65536
#define MAX_TIME_NS ((INT64_C(1) << 61) - 1) /* of stamps, with what they count from: now is 1.8e18 */

bool kineto_fail(struct kineto *k, const char *fmt, ...)
{
	va_list ap;

	if (k->why[0])
		return false;
	va_start(ap, fmt);
	vsnprintf(k->why, k->n_why, fmt, ap);
	va_end(ap);
	return false;
}

void kineto_remark(struct kineto *k, const char *fmt, ...)
{
	char text[200];
	size_t at = strlen(k->remark);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (at + strlen(text) + 8 < sizeof k->remark) /* else there were more important ones */
		snprintf(k->remark + at, sizeof k->remark - at, "%s; %s", at ? "" : "ok", text);
}

static bool grow(struct kineto *k, void *v, uint32_t n, uint32_t *n_alloc, size_t size, uint32_t max)
{
	uint32_t want = *n_alloc ? 2 * *n_alloc : 256;
	void *grown;

	if (n < *n_alloc)
		return true;
	if (n >= max)
		return kineto_fail(k, "has more than %u names of one sort", max);
	grown = realloc(*(void **)v, want * size);
	if (!grown) {
		k->trace->no_memory = true;
		return false;
	}
	*(void **)v = grown;
	*n_alloc = want;
	return true;
}

/* Index + 1; 0 when it has none: not every name is worth an end. */
static bool find_name(struct kineto *k, const char *name, uint32_t *ret)
{
	const json_t *known = json_object_get(k->name_ids, name);

	*ret = known ? (uint32_t)json_integer_value(known) : 0;
	if (known || !name[0] || k->n_names == MAX_NAMES)
		return true;
	if (!grow(k, &k->names, k->n_names, &k->n_names_alloc, sizeof *k->names, MAX_NAMES))
		return false;
	if (json_object_set_new(k->name_ids, name, json_integer(k->n_names + 1)) != 0)
		return true; /* no UTF-8 */
	k->names[k->n_names] = strdup(name);
	if (!k->names[k->n_names]) {
		k->trace->no_memory = true;
		return false;
	}
	*ret = ++k->n_names;
	return true;
}

/* ---- collectives ---- */

static int64_t or_unknown(int64_t v)
{
	return v >= 0 ? v : -1;
}

static bool find_call(struct kineto *k, const struct trace_event *ev, uint32_t *ret)
{
	struct call c;

	*ret = 0;
	memset(&c, 0, sizeof c); /* compared as bytes */
	c.n_in = or_unknown(ev->numbers[TRACE_N_IN]);
	c.n_out = or_unknown(ev->numbers[TRACE_N_OUT]);
	c.size = or_unknown(ev->numbers[TRACE_GROUP_SIZE]);
	c.start = or_unknown(ev->numbers[TRACE_RANK_START]);
	c.stride = or_unknown(ev->numbers[TRACE_RANK_STRIDE]);
	c.ranks_cut = ev->cut[TRACE_GROUP_RANKS];
	if (!ev->texts[TRACE_COLLECTIVE][0])
		return true;
	snprintf(c.op, sizeof c.op, "%.63s", ev->texts[TRACE_COLLECTIVE]);
	snprintf(c.dtype, sizeof c.dtype, "%.31s", ev->texts[TRACE_DTYPE]);
	snprintf(c.group, sizeof c.group, "%.63s", ev->texts[TRACE_GROUP]);
	snprintf(c.desc, sizeof c.desc, "%.63s", ev->texts[TRACE_GROUP_DESC]);
	snprintf(c.ranks, sizeof c.ranks, "%s", ev->texts[TRACE_GROUP_RANKS]);
	/* A job has few of them, and the newest come again. */
	for (uint32_t i = k->n_calls; i-- > 0 && i + 256 >= k->n_calls;)
		if (memcmp(&k->calls[i], &c, sizeof c) == 0) {
			*ret = i + 1;
			return true;
		}
	if (k->n_calls == MAX_CALLS)
		return true;
	if (!grow(k, &k->calls, k->n_calls, &k->n_calls_alloc, sizeof *k->calls, MAX_CALLS))
		return false;
	k->calls[k->n_calls++] = c;
	*ret = k->n_calls;
	return true;
}

/* ---- events ---- */

/* Annotations of the device say their stream as a thread. */
static uint32_t stream_of(const struct trace_event *ev)
{
	int64_t stream = ev->numbers[TRACE_STREAM];

	if (stream == TRACE_NO_NUMBER && !json_integer_of(ev->tid, strlen(ev->tid), 0, &stream))
		return 0;
	return stream >= 0 && stream < 65535 ? (uint32_t)stream + 1 : 0;
}

/* Names say it, and come again and again. False: it is no work. */
static bool classify(struct kineto *k, const struct trace_event *ev, struct kept *v)
{
	enum { ASKED = 64, CALL = 32 };
	uint8_t spare = 0, *known = v->name && k->name_classes ? &k->name_classes[v->name] : &spare;

	if (!*known)
		*known = (uint8_t)(ASKED | kernel_class(ev->name) | (kernel_is_call(ev->name) ? CALL : 0));
	v->class = *known & (CALL - 1);
	if (v->class == CLASS_COMPUTE && kernel_is_copy(ev->category))
		v->class = CLASS_MEMORY;
	v->sort = *known & CALL ? KEPT_CALL : KEPT_WORK;
	return v->class != 0;
}

static bool keep(struct kineto *k, const struct trace_event *ev, enum kept_sort sort, int64_t number)
{
	struct kept v = { .number = or_unknown(number), .sort = (uint8_t)sort,
			  .external = or_unknown(ev->numbers[TRACE_EXTERNAL]),
			  .launched_ns = -1, .step = EVENT_STEP_UNKNOWN };

	if (!ev->has_time || ev->ts_ns < 0 || ev->dur_ns < 0 || ev->dur_ns >= MAX_TIME_NS ||
	    ev->ts_ns >= MAX_TIME_NS - ev->dur_ns) {
		k->profile.n_impossible++; /* profilers write them */
		return true;
	}
	v.begin_ns = ev->ts_ns;
	v.end_ns = ev->ts_ns + (ev->dur_ns > 0 ? ev->dur_ns : 1);
	v.stream = stream_of(ev);
	/* Each step has a name of its own; the first ones are told of as annotations. */
	if ((sort != KEPT_STEP || k->n_step_names++ < MAX_STEP_NAMES) && !find_name(k, ev->name, &v.name))
		return false;
	if (sort == KEPT_WORK && !classify(k, ev, &v))
		return true;
	if ((v.sort == KEPT_CALL || v.sort == KEPT_PARAMS) && !find_call(k, ev, &v.call))
		return false;
	kineto_profile_saw(k, &v);
	return kineto_keep(k, &v);
}

static bool take_event(struct kineto *k, const struct trace_event *ev)
{
	int64_t number = ev->numbers[TRACE_CORRELATION];

	if (ev->phase != 'X')
		return true;
	k->names_ops |= k->is_list && strncmp(ev->name, "aten::", 6) == 0;
	switch (k->is_list ? kineto_list_role(k, ev) : profile_role(ev->category, ev->name)) {
	case ROLE_WORK:
		return keep(k, ev, KEPT_WORK, number);
	case ROLE_WAIT:
		return keep(k, ev, KEPT_WAIT, -1);
	case ROLE_LAUNCH:
		return number < 0 || keep(k, ev, KEPT_LAUNCH, number);
	case ROLE_STEP: {
		const char *digits = strchr(ev->name, '#') + 1;

		return !json_integer_of(digits, strlen(digits), 0, &number) || keep(k, ev, KEPT_STEP, number);
	}
	case ROLE_NOTE:
		return keep(k, ev, KEPT_NOTE, -1);
	case ROLE_PARAMS:
		return keep(k, ev, KEPT_PARAMS, ev->numbers[TRACE_EXTERNAL]);
	case ROLE_HOST_CALL:
		return keep(k, ev, KEPT_HOST_CALL, -1);
	case ROLE_RANGE:
		return keep(k, ev, KEPT_RANGE, -1);
	case ROLE_DEVICE_RANGE:
		return keep(k, ev, KEPT_DEVICE_RANGE, -1);
	case ROLE_NONE:
		break;
	}
	return true;
}

/* ---- the file's head ---- */

static int64_t integer_of(const json_t *info, const char *name)
{
	const json_t *v = json_object_get(info, name);

	return json_is_integer(v) && json_integer_value(v) >= 0 && json_integer_value(v) < FACT_MAX_RANKS
		       ? json_integer_value(v)
		       : -1;
}

static void read_head(struct kineto *k, const struct trace_events *s)
{
	static const char *const marks[] = { "distributedInfo", "baseTimeNanoseconds", "deviceProperties", "trace_id",
					     "schemaVersion" };
	const char *distributed = trace_events_top(s, "distributedInfo");
	json_t *info = distributed ? json_loads(distributed, 0, NULL) : NULL;
	char name[256];

	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
		k->is_kineto |= trace_events_top(s, marks[i]) != NULL;
	k->rank = integer_of(info, "rank");
	k->world_size = integer_of(info, "world_size");
	(void)kineto_groups_read(k, json_object_get(info, "pg_config"));
	json_decref(info);
	if (!trace_events_top_integer(s, "baseTimeNanoseconds", &k->base_ns) || k->base_ns < 0 ||
	    k->base_ns > MAX_TIME_NS)
		k->base_ns = 0;
	if (trace_events_top_text(s, "host_name", name, sizeof name) && name[0])
		snprintf(k->host, sizeof k->host, "%.63s", name);
	if (trace_events_top_text(s, "username", name, sizeof name) && name[0])
		(void)trace_secret(k->trace, true, name);
}

static bool read_all(struct kineto *k, struct trace_events *s)
{
	enum trace_events_got got;
	struct trace_event ev;

	while ((got = trace_events_next(s, &ev)) == TRACE_EVENTS_ONE)
		if (!take_event(k, &ev))
			return false;
	if (got == TRACE_EVENTS_BAD)
		return kineto_fail(k, "%s", trace_events_why(s));
	if (k->is_list && (!trace_events_is_list(s) || trace_events_unclosed(s)))
		return kineto_fail(k, trace_events_unclosed(s) ? "is not whole: its list of events does not end"
							       : "is no list of events");
	k->has_events = trace_events_has_list(s) || k->is_list;
	read_head(k, s);
	return true;
}

static bool place(struct kineto *k, struct trace_input *in)
{
	struct trace *t = k->trace;
	struct trace_rank *r;
	char host[64];
	bool guessed;

	if (t->clock_method)
		return kineto_fail(k, "is of one rank, and a file before it has a whole job: import each on its own");
	k->profile.rank_from = "file";
	if (k->rank < 0) {
		k->rank = rank_of_path(in->path);
		k->profile.rank_from = "name";
		if (k->rank >= 0)
			kineto_remark(k, "its rank is from its name");
	}
	guessed = k->rank < 0;
	if (guessed && t->n_ranks == 0) {
		k->rank = 0;
		k->profile.rank_from = "assumed";
		kineto_remark(k, "it does not say which rank it is, neither inside nor in its name: taken as rank 0");
	}
	if (k->rank < 0)
		return kineto_fail(k, "does not say which rank it is, neither inside nor in its name");
	if (trace_find_rank(t, (int32_t)k->rank))
		return kineto_fail(k, "is of rank %lld, and so was a file before it", (long long)k->rank);
	if (k->world_size > t->world_size)
		t->world_size = (int32_t)k->world_size;
	if (k->host[0])
		snprintf(host, sizeof host, "%s", k->host);
	else
		snprintf(host, sizeof host, "of rank %lld", (long long)k->rank);
	r = trace_add_rank(t, (int32_t)k->rank, host);
	if (!r)
		return false;
	r->guessed = guessed;
	in->rank = k->rank;
	if (k->last_ns > MAX_TIME_NS - k->base_ns) /* some releases write absolute stamps, and a base beside them */
		k->base_ns = 0;
	r->clock = t->n_ranks - 1;
	for (uint32_t i = 0; i + 1 < t->n_ranks && k->host[0]; i++)
		if (strcmp(t->ranks[i].host, host) == 0)
			r->clock = t->ranks[i].clock;
	return kineto_tell(k, r, &in->n_events);
}

static void free_all(struct kineto *k)
{
	for (uint32_t i = 0; i < k->n_names; i++)
		free(k->names[i]);
	free(k->names);
	free(k->calls);
	free(k->name_classes);
	runs_free(k->kept);
	json_decref(k->name_ids);
	kineto_groups_free(k);
	kineto_profile_free(k);
}

static enum import_outcome read_as(struct trace *t, struct trace_input *in, struct trace_events *s, bool is_list,
				   char *why, size_t n_why)
{
	struct kineto k = { .is_list = is_list, .trace = t, .rank = -1, .world_size = -1, .why = why, .n_why = n_why,
			    .name_ids = json_object(), .name_classes = calloc(MAX_NAMES + 1, 1) };
	enum import_outcome o = IMPORT_FAILED;

	why[0] = '\0';
	t->no_memory |= !k.name_ids;
	if (k.name_ids && read_all(&k, s)) {
		if (!k.has_events) {
			kineto_fail(&k, "is of no format that this release reads: an object without traceEvents");
			o = IMPORT_UNKNOWN;
		} else if (!k.kept) {
			kineto_fail(&k, is_list ? "has no step, range or collective of a profiler"
						: "has no step, launch or device work of a profiler");
			o = k.is_kineto || is_list ? IMPORT_FAILED : IMPORT_UNKNOWN;
		} else if (place(&k, in)) {
			o = IMPORT_OK;
			snprintf(why, n_why, "%s", k.remark);
			trace_events_remark(s, why, n_why);
		}
	}
	free_all(&k);
	return o;
}

enum import_outcome kineto_read(struct trace *t, struct trace_input *in, struct trace_events *s, char *why,
				size_t n_why)
{
	return read_as(t, in, s, false, why, n_why);
}

enum import_outcome kineto_read_list(struct trace *t, struct trace_input *in, struct trace_events *s, char *why,
				     size_t n_why)
{
	return read_as(t, in, s, true, why, n_why);
}

static bool is_kineto(const struct import_head *h)
{
	return head_first(h) == '{' && (head_has(h, "\"traceEvents\"") || head_has(h, "\"deviceProperties\"") ||
					head_has(h, "\"schemaVersion\""));
}

static enum import_outcome read_file(struct trace *t, struct trace_input *in, bytes_fn read, void *arg, char *why,
				     size_t n_why)
{
	struct trace_events *s = trace_events_open(read, arg, NULL);
	enum import_outcome o = IMPORT_UNKNOWN;

	t->no_memory |= !s;
	if (s)
		o = kineto_read(t, in, s, why, n_why);
	trace_events_close(s);
	return o;
}

const struct import_format format_kineto = { "Kineto trace", is_kineto, read_file, kineto_join, .apart = true };
