/* kineto_tell.c - what a profiler kept, as the events that a probe would have given. */
#include "kineto_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- collectives ---- */

static enum event_op op_of(const char *name)
{
	static const struct {
		const char *part;
		enum event_op op;
	} parts[] = {
		{ "reducescatter", OP_REDUCE_SCATTER }, { "allreduce", OP_ALL_REDUCE },
		{ "allgather", OP_ALL_GATHER },		{ "alltoall", OP_ALL_TO_ALL },
		{ "broadcast", OP_BROADCAST },		{ "barrier", OP_BARRIER },
		{ "scatter", OP_SCATTER },		{ "gather", OP_GATHER },
		{ "reduce", OP_REDUCE },
	};
	char plain[64];
	size_t n = 0;

	/* "_reduce_scatter_base", "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(…": small
	 * letters alone. */
	for (; *name && n < sizeof plain - 1; name++)
		if ((*name | 32) >= 'a' && (*name | 32) <= 'z')
			plain[n++] = (char)(*name | 32);
	plain[n] = '\0';
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (strstr(plain, parts[i].part))
			return parts[i].op;
	return OP_UNKNOWN;
}

static enum event_dtype dtype_of(const char *name, uint64_t *ret_bytes)
{
	static const struct {
		const char *name;
		enum event_dtype type;
		unsigned bytes;
	} types[] = {
		{ "Float", DTYPE_F32, 4 }, { "Double", DTYPE_F64, 8 }, { "Half", DTYPE_F16, 2 },
		{ "BFloat16", DTYPE_BF16, 2 }, { "Char", DTYPE_I8, 1 }, { "Byte", DTYPE_U8, 1 },
		{ "Short", DTYPE_I16, 2 }, { "Int", DTYPE_I32, 4 }, { "Long", DTYPE_I64, 8 },
		{ "Bool", DTYPE_BOOL, 1 }, { "Float8_e4m3fn", DTYPE_F8, 1 }, { "Float8_e5m2", DTYPE_F8, 1 },
	};

	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (strcmp(types[i].name, name) == 0) {
			*ret_bytes = types[i].bytes;
			return types[i].type;
		}
	*ret_bytes = 0;
	return DTYPE_UNKNOWN;
}

struct counter {
	uint32_t name; /* of the rank */
	uint32_t n;
};

struct teller {
	struct kineto *k;
	struct trace_rank *r;
	struct counter groups[256];
	uint32_t n_groups;
	uint64_t n_said;
	bool has_steps, has_device_calls;
};

static struct event event_of(const struct teller *w, const struct kept *v, int64_t at_ns, enum event_kind kind,
			     unsigned flags, uint32_t name, uint32_t low, uint64_t b)
{
	return (struct event){ .tick = (uint64_t)(w->k->base_ns + at_ns), .kind = (uint16_t)kind,
			       .flags = (uint16_t)flags, .name = name, .a = event_a(v->step, low), .b = b };
}

static bool say(struct teller *w, const struct kept *v, unsigned ring, int64_t at_ns, enum event_kind kind,
		unsigned flags, uint32_t name, uint32_t low, uint64_t b)
{
	struct event ev = event_of(w, v, at_ns, kind, flags, name, low, b);

	w->n_said++;
	return trace_say(w->k->trace, w->r, ring, &ev);
}

static uint32_t name_of(struct teller *w, const struct kept *v)
{
	return v->name ? trace_name(w->k->trace, w->r, w->k->names[v->name - 1]) : 0;
}

/* The number of this call in its group; UINT32_MAX when there are too many groups. */
static uint32_t next_number(struct teller *w, uint32_t group)
{
	for (uint32_t i = 0; i < w->n_groups; i++)
		if (w->groups[i].name == group)
			return w->groups[i].n++;
	if (w->n_groups == sizeof w->groups / sizeof *w->groups)
		return UINT32_MAX;
	w->groups[w->n_groups++] = (struct counter){ group, 1 };
	return 0;
}

static bool tell_work(struct teller *w, const struct kept *v)
{
	return say(w, v, TRACE_DEVICE, v->begin_ns, EVENT_KERNEL_BEGIN, v->stream, name_of(w, v), v->launch, 0) &&
	       say(w, v, TRACE_DEVICE, v->end_ns, EVENT_KERNEL_END, v->stream, name_of(w, v), v->launch, 0);
}

static bool tell_call(struct teller *w, const struct kept *v)
{
	const struct call *c = v->call ? &w->k->calls[v->call - 1] : NULL;
	const char *kernel = v->name ? w->k->names[v->name - 1] : "";
	const char *note = v->note ? w->k->names[v->note - 1] : "";
	enum event_op op = op_of(c ? c->op : op_of(kernel) ? kernel : note);
	uint64_t element_bytes = 0;
	enum event_dtype dtype = c ? dtype_of(c->dtype, &element_bytes) : DTYPE_UNKNOWN;
	uint16_t flags = event_coll_flags(op, dtype);
	const struct kineto_label *label;
	uint32_t group, number;
	uint64_t bytes = c && c->n_in > 0 && c->n_in < INT64_C(1) << 50 ? (uint64_t)c->n_in * element_bytes : 0;
	struct event begin, end;

	/* Ranks begin to record at different calls; the steps are the same. A message has
	 * two ends that the file does not name. */
	if ((w->has_steps && v->step == EVENT_STEP_UNKNOWN) || op == OP_UNKNOWN)
		return tell_work(w, v);
	label = kineto_group_of(w->k, v->call);
	if (!label)
		return false;
	group = trace_name(w->k->trace, w->r, label->name);
	number = next_number(w, group);
	if (number == UINT32_MAX)
		return true;
	/* Stamps of two clocks may say that it was launched after its begin. */
	if (v->launch && !say(w, v, TRACE_HOST, v->launched_ns < v->begin_ns ? v->launched_ns : v->begin_ns,
			      EVENT_COLL_SUBMIT, flags, group, number, event_submit_b(-1, v->launch)))
		return false;
	begin = event_of(w, v, v->begin_ns, EVENT_COLL_BEGIN, flags, group, number, bytes);
	end = event_of(w, v, v->end_ns, EVENT_COLL_END, flags, group, number, bytes);
	w->n_said += 2;
	return trace_say_call(w->k->trace, w->r, &begin, &end);
}

/* ---- all of it ---- */

static bool tell(struct teller *w, const struct kept *v)
{
	switch ((enum kept_sort)v->sort) {
	case KEPT_STEP:
		return v->step == EVENT_STEP_UNKNOWN ||
		       (say(w, v, TRACE_HOST, v->begin_ns, EVENT_STEP_BEGIN, 0, 0, 0, 0) &&
			say(w, v, TRACE_HOST, v->end_ns, EVENT_STEP_END, 0, 0, 0, 0));
	case KEPT_LAUNCH:
		return say(w, v, TRACE_HOST, v->begin_ns, EVENT_LAUNCH, v->stream, name_of(w, v), v->launch, 0);
	case KEPT_WAIT:
		return say(w, v, TRACE_HOST, v->begin_ns, EVENT_HOST_WAIT_BEGIN, 0, 0, 0, 0) &&
		       say(w, v, TRACE_HOST, v->end_ns, EVENT_HOST_WAIT_END, 0, 0, 0, 0);
	case KEPT_WORK:
		return tell_work(w, v);
	case KEPT_HOST_CALL:
		w->r->host_calls = true;
		return tell_call(w, v);
	case KEPT_CALL:
		w->has_device_calls = true;
		return tell_call(w, v);
	case KEPT_RANGE:
	case KEPT_DEVICE_RANGE:
	case KEPT_NOTE:
	case KEPT_PARAMS:
		break;
	}
	return true;
}

bool kineto_tell(struct kineto *k, struct trace_rank *r, uint64_t *ret_n_events)
{
	struct kineto_joined j;
	struct runs_reader *in = NULL;
	struct teller w = { .k = k, .r = r };
	const struct kept *next;
	bool fine = kineto_joined_init(&j, k) && (in = kineto_joined_read(&j, k));

	w.has_steps = j.has_steps;
	kineto_profile_begin(k);
	while (fine && (next = runs_next(in))) {
		struct kept v = *next;

		v.launch = kineto_launch(&j, next);
		fine = !kineto_profile_take(k, &v) || tell(&w, &v);
	}
	if (in)
		fine = trace_read_end(k->trace, in) && fine;
	kineto_joined_fini(&j);
	r->host_calls &= !w.has_device_calls;
	*ret_n_events = w.n_said;
	return fine && !k->trace->no_memory && kineto_profile_end(k, r->rank);
}
