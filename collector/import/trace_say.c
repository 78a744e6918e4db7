/* trace_say.c - the events of a trace: said in any order, read in the order of time,
 * most of them not in memory. */
#include "trace.h"

#include <stdio.h>

static bool fail(struct trace *t)
{
	t->no_memory = true;
	return false;
}

struct spill *trace_spill(struct trace *t)
{
	if (!t->spill)
		t->spill = spill_new(P_tmpdir, SPILL_MEMORY_BYTES);
	t->no_memory |= !t->spill;
	return t->spill;
}

void trace_explain(const struct trace *t, char *why, size_t n_why)
{
	if (!spill_explain(t->spill, why, n_why))
		snprintf(why, n_why, "there is not enough memory");
}

/* Of one time: what ends, the end of the step, the begin of one, what begins. Nothing
 * that a reader says has no length. */
static unsigned turn(unsigned kind)
{
	switch (kind) {
	case EVENT_PHASE_END:
	case EVENT_COLL_END:
	case EVENT_WORK_END:
	case EVENT_HOST_WAIT_END:
	case EVENT_KERNEL_END:
		return 0;
	case EVENT_STEP_END:
		return 1;
	case EVENT_STEP_BEGIN:
		return 2;
	default:
		return 3;
	}
}

static struct runs_key by_time(const void *record)
{
	const struct event *ev = record;

	return (struct runs_key){ ev->tick, turn(ev->kind) };
}

static bool make(struct trace *t, struct runs **v, size_t n_bytes, runs_key_fn key)
{
	if (!*v && trace_spill(t))
		*v = runs_new(t->spill, n_bytes, key);
	return *v || fail(t);
}

static bool append(struct trace *t, struct runs **v, size_t n_bytes, runs_key_fn key, const void *record)
{
	return make(t, v, n_bytes, key) && (runs_append(*v, record) || fail(t));
}

bool trace_say(struct trace *t, struct trace_rank *r, unsigned ring, const struct event *ev)
{
	int64_t at_ns = (int64_t)ev->tick;

	r->first_ns = at_ns < r->first_ns ? at_ns : r->first_ns;
	r->last_ns = at_ns > r->last_ns ? at_ns : r->last_ns;
	return append(t, &r->events[ring], sizeof *ev, by_time, ev);
}

bool trace_say_call(struct trace *t, struct trace_rank *r, const struct event *begin, const struct event *end)
{
	struct trace_call call = { *begin, (int64_t)end->tick };

	return append(t, &r->calls, sizeof call, NULL, &call) && trace_say(t, r, TRACE_DEVICE, begin) &&
	       trace_say(t, r, TRACE_DEVICE, end);
}

static struct runs **all_of(struct trace_rank *r, unsigned i)
{
	return i < TRACE_RINGS ? &r->events[i] : &r->calls;
}

bool trace_sort(struct trace *t, struct trace_rank *r)
{
	for (unsigned i = 0; i <= TRACE_RINGS; i++)
		if (*all_of(r, i) && !runs_finish(*all_of(r, i)))
			return fail(t);
	return true;
}

/* There may have been none. */
static struct runs_reader *read_one(struct trace *t, struct runs **v, size_t n_bytes, runs_key_fn key)
{
	struct runs_reader *in;

	(void)make(t, v, n_bytes, key);
	in = *v && runs_finish(*v) ? runs_read(*v) : NULL;
	t->no_memory |= !in;
	return in;
}

struct runs_reader *trace_read(struct trace *t, struct trace_rank *r, unsigned ring)
{
	return read_one(t, &r->events[ring], sizeof(struct event), by_time);
}

struct runs_reader *trace_read_calls(struct trace *t, struct trace_rank *r)
{
	return read_one(t, &r->calls, sizeof(struct trace_call), NULL);
}

bool trace_read_end(struct trace *t, struct runs_reader *in)
{
	t->no_memory |= !in || in->failed;
	runs_read_end(in);
	return !t->no_memory;
}
