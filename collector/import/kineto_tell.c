/* kineto_tell.c - what a profiler kept, as the events that a probe would have given. */
#include "kineto_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- launches and steps ---- */

static int by_begin(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;

	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	if (x->sort != y->sort)
		return (int)x->sort - (int)y->sort;
	return (x->number > y->number) - (x->number < y->number);
}

struct link {
	int64_t number;
	uint32_t at;
};

static int by_number(const void *a, const void *b)
{
	const struct link *x = a, *y = b;

	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

static const struct link *find_link(const struct link *v, size_t n, int64_t number)
{
	struct link key = { number, 0 };
	size_t lo = 0, hi = n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (by_number(&v[mid], &key) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < n && v[lo].number == number ? &v[lo] : NULL;
}

static struct link *make_links(struct kineto *k, enum kept_sort sort, size_t *ret_n)
{
	struct link *v = malloc(((size_t)k->n + 1) * sizeof *v);

	*ret_n = 0;
	if (!v) {
		k->trace->no_memory = true;
		return NULL;
	}
	for (uint32_t i = 0; i < k->n; i++)
		if (k->v[i].sort == sort && k->v[i].number >= 0)
			v[(*ret_n)++] = (struct link){ k->v[i].number, i };
	qsort(v, *ret_n, sizeof *v, by_number);
	return v;
}

/* Of what the host does: the last step that had begun. A step counts from its begin to
 * the next one's; behind the last one's end it is nobody's. */
static void number_steps(struct kineto *k)
{
	uint32_t step = EVENT_STEP_UNKNOWN;
	int64_t end_ns = 0;

	for (uint32_t i = 0; i < k->n; i++) {
		struct kept *v = &k->v[i];

		if (v->sort == KEPT_STEP) {
			step = v->number < EVENT_STEP_UNKNOWN - 1 ? (uint32_t)v->number : EVENT_STEP_UNKNOWN;
			end_ns = v->end_ns;
		}
		v->step = v->begin_ns < end_ns || v->sort == KEPT_STEP ? step : EVENT_STEP_UNKNOWN;
	}
}

/* A launch within the host's note about a collective is that collective's. */
static void note_launches(struct kineto *k)
{
	const struct kept *note = NULL;

	for (uint32_t i = 0; i < k->n; i++) {
		if (k->v[i].sort == KEPT_NOTE)
			note = &k->v[i];
		else if (k->v[i].sort == KEPT_LAUNCH && note && k->v[i].begin_ns <= note->end_ns)
			k->v[i].note = note->name;
	}
}

static bool is_device(const struct kept *v)
{
	return v->sort == KEPT_WORK || v->sort == KEPT_CALL;
}

/* Launches are numbered in their order: those whose work is in the file. Work belongs
 * to the step of its launch, and a call is what the host said of it. */
static bool join_launches(struct kineto *k)
{
	size_t n_launches, n_params;
	struct link *launches = make_links(k, KEPT_LAUNCH, &n_launches);
	struct link *params = make_links(k, KEPT_PARAMS, &n_params);
	uint32_t n = 0;
	bool fine = launches && params;

	for (uint32_t i = 0; fine && i < k->n; i++) {
		const struct link *at = is_device(&k->v[i]) && k->v[i].number >= 0
						? find_link(launches, n_launches, k->v[i].number)
						: NULL;

		if (at)
			k->v[at->at].launch = UINT32_MAX;
	}
	for (uint32_t i = 0; fine && i < k->n; i++)
		if (k->v[i].sort == KEPT_LAUNCH && k->v[i].launch == UINT32_MAX)
			k->v[i].launch = ++n;
	for (uint32_t i = 0; fine && i < k->n; i++) {
		struct kept *v = &k->v[i];
		const struct link *at;

		if (!is_device(v))
			continue;
		at = v->number >= 0 ? find_link(launches, n_launches, v->number) : NULL;
		if (at) {
			struct kept *launch = &k->v[at->at];

			v->launch = launch->launch;
			v->launched_ns = launch->begin_ns;
			v->note = launch->note;
			v->step = launch->step;
			launch->stream = v->stream;
			launch->name = v->name;
			v->external = v->external >= 0 ? v->external : launch->external;
		}
		at = v->sort == KEPT_CALL && v->call == 0 && v->external >= 0
			     ? find_link(params, n_params, v->external)
			     : NULL;
		if (at)
			v->call = k->v[at->at].call;
	}
	free(launches);
	free(params);
	return fine;
}

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
	bool full;
};

static void say(struct teller *w, const struct kept *v, unsigned ring, int64_t at_ns, enum event_kind kind,
		unsigned flags, uint32_t name, uint32_t low, uint64_t b)
{
	struct event ev = { .tick = (uint64_t)(w->k->base_ns + at_ns), .kind = (uint16_t)kind,
			    .flags = (uint16_t)flags, .name = name, .a = event_a(v->step, low), .b = b };

	w->full |= !trace_say(w->k->trace, w->r, ring, &ev);
	w->n_said++;
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

static void tell_call(struct teller *w, const struct kept *v, bool has_steps)
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

	/* Ranks begin to record at different calls; the steps are the same. A message has
	 * two ends that the file does not name. */
	if ((has_steps && v->step == EVENT_STEP_UNKNOWN) || op == OP_UNKNOWN) {
		say(w, v, TRACE_DEVICE, v->begin_ns, EVENT_KERNEL_BEGIN, v->stream, name_of(w, v), v->launch, 0);
		say(w, v, TRACE_DEVICE, v->end_ns, EVENT_KERNEL_END, v->stream, name_of(w, v), v->launch, 0);
		return;
	}
	label = kineto_group_of(w->k, v->call);
	w->full |= !label;
	if (!label)
		return;
	group = trace_name(w->k->trace, w->r, label->name);
	number = next_number(w, group);
	if (number == UINT32_MAX)
		return;
	if (v->launch) /* stamps of two clocks may say that it was after the begin */
		say(w, v, TRACE_HOST, v->launched_ns < v->begin_ns ? v->launched_ns : v->begin_ns, EVENT_COLL_SUBMIT, flags, group, number,
		    event_submit_b(-1, v->launch));
	say(w, v, TRACE_DEVICE, v->begin_ns, EVENT_COLL_BEGIN, flags, group, number, bytes);
	say(w, v, TRACE_DEVICE, v->end_ns, EVENT_COLL_END, flags, group, number, bytes);
}

/* ---- all of it ---- */

static void tell(struct teller *w, const struct kept *v, bool has_steps)
{
	switch ((enum kept_sort)v->sort) {
	case KEPT_STEP:
		if (v->step == EVENT_STEP_UNKNOWN)
			return;
		say(w, v, TRACE_HOST, v->begin_ns, EVENT_STEP_BEGIN, 0, 0, 0, 0);
		say(w, v, TRACE_HOST, v->end_ns, EVENT_STEP_END, 0, 0, 0, 0);
		return;
	case KEPT_LAUNCH:
		if (v->launch)
			say(w, v, TRACE_HOST, v->begin_ns, EVENT_LAUNCH, v->stream, name_of(w, v), v->launch,
			    0);
		return;
	case KEPT_WAIT:
		say(w, v, TRACE_HOST, v->begin_ns, EVENT_HOST_WAIT_BEGIN, 0, 0, 0, 0);
		say(w, v, TRACE_HOST, v->end_ns, EVENT_HOST_WAIT_END, 0, 0, 0, 0);
		return;
	case KEPT_WORK:
		say(w, v, TRACE_DEVICE, v->begin_ns, EVENT_KERNEL_BEGIN, v->stream, name_of(w, v), v->launch,
		    0);
		say(w, v, TRACE_DEVICE, v->end_ns, EVENT_KERNEL_END, v->stream, name_of(w, v), v->launch, 0);
		return;
	case KEPT_CALL:
	case KEPT_HOST_CALL:
		tell_call(w, v, has_steps);
		return;
	case KEPT_RANGE:
	case KEPT_DEVICE_RANGE:
	case KEPT_NOTE:
	case KEPT_PARAMS:
		return;
	}
}

/* A step's annotation may stand twice, for the host and for the device. */
static void drop_repeated_steps(struct kineto *k)
{
	const struct kept *last = NULL;

	for (uint32_t i = 0; i < k->n; i++) {
		struct kept *v = &k->v[i];

		if (v->sort != KEPT_STEP)
			continue;
		if (last && (v->number <= last->number || v->begin_ns < last->end_ns))
			v->step = EVENT_STEP_UNKNOWN; /* out of order: no step of a loop */
		else
			last = v;
	}
}

bool kineto_tell(struct kineto *k, struct trace_rank *r, uint64_t *ret_n_events)
{
	struct teller w = { .k = k, .r = r };
	bool has_steps = false;

	qsort(k->v, k->n, sizeof *k->v, by_begin);
	number_steps(k);
	note_launches(k);
	if (!join_launches(k))
		return false;
	drop_repeated_steps(k);
	for (uint32_t i = 0; i < k->n; i++)
		has_steps |= k->v[i].sort == KEPT_STEP;
	kineto_profile_begin(k);
	for (uint32_t i = 0; i < k->n && !w.full; i++)
		if (kineto_profile_take(k, &k->v[i]))
			tell(&w, &k->v[i], has_steps);
	*ret_n_events = w.n_said;
	if (w.full)
		return kineto_fail(k, "has more events than %u", TRACE_MAX_EVENTS);
	return kineto_profile_end(k, r->rank);
}
