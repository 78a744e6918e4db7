/* memory_cause.c - why an allocation was refused, as far as a snapshot can tell.
 *
 * PyTorch gives all cached segments back that nothing is in before it gives up. So what is reserved
 * and free then lies between blocks in use. A snapshot says nothing of other processes, of NCCL or
 * of the size of the device; where those would decide, nothing is decided.
 */
#include "memory_snapshot.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LEAST_HELD 8 /* blocks that are "again and again" */

/* What the device is asked for, which is more: segments of 2 MiB, of 20, or of what fits in whole 2 MiB. */
static int64_t segment_for(int64_t size)
{
	const int64_t mib = INT64_C(1) << 20;

	return size <= mib ? 2 * mib : size < 10 * mib ? 20 * mib : (size + 2 * mib - 1) / (2 * mib) * (2 * mib);
}

int memory_capped(const struct memory_device *d, const struct memory_oom *o)
{
	const struct memory_event *e = &d->events[o->event];

	return e->device_free == MEMORY_UNKNOWN ? -1 : e->device_free >= segment_for(e->size);
}

static void add(char *out, size_t n, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void add(char *out, size_t n, const char *fmt, ...)
{
	size_t at = strlen(out);
	va_list args;

	va_start(args, fmt);
	vsnprintf(out + at, n - at, fmt, args);
	va_end(args);
}

/* As PyTorch's own message has them. */
static const char *bytes(int64_t v, char out[32])
{
	if (v >= INT64_C(1) << 30)
		snprintf(out, 32, "%.2f GiB", (double)v / (double)(INT64_C(1) << 30));
	else if (v >= INT64_C(1) << 20)
		snprintf(out, 32, "%.2f MiB", (double)v / (double)(INT64_C(1) << 20));
	else
		snprintf(out, 32, "%lld bytes", (long long)v);
	return out;
}

/* What is certainly free inside of what is reserved, and for anybody. */
static int64_t free_inside(const struct memory_device *d, const struct memory_oom *o)
{
	int64_t v;

	if (o->allocated == MEMORY_UNKNOWN || o->reserved == MEMORY_UNKNOWN)
		return MEMORY_UNKNOWN;
	v = o->reserved - o->allocated - o->allocated_err - d->private_free;
	return v > 0 ? v : 0;
}

static bool is_fragmented(const struct memory_device *d, const struct memory_event *e, const struct memory_oom *o)
{
	int64_t inside = free_inside(d, o);

	return inside != MEMORY_UNKNOWN && e->size <= inside && inside >= o->reserved / 4 &&
	       (o->largest_free == MEMORY_UNKNOWN || o->largest_free < e->size);
}

static bool is_beyond(const struct memory_event *e, const struct memory_oom *o)
{
	return o->reserved != MEMORY_UNKNOWN && e->device_free != MEMORY_UNKNOWN && e->size > o->reserved + e->device_free;
}

static bool is_held(const struct memory_oom *o)
{
	return o->site != MEMORY_NO_SITE && o->none_freed && o->still_used && o->n_held >= LEAST_HELD &&
	       o->allocated != MEMORY_UNKNOWN && o->held > (o->allocated + o->allocated_err) / 2;
}

static const char *decide(const struct memory_device *d, const struct memory_oom *o)
{
	const struct memory_event *e = &d->events[o->event];

	if (is_fragmented(d, e, o))
		return "fragmentation";
	if (is_beyond(e, o))
		return "request_too_large";
	if (is_held(o))
		return "held_by_one_place";
	if (memory_capped(d, o) == 1)
		return "own_cap";
	return "not_enough_evidence";
}

static void say_cause(const struct memory_device *d, const struct memory_oom *o, const char *cause, char *out, size_t n)
{
	const struct memory_event *e = &d->events[o->event];
	const struct memory_site *s = &d->sites[o->site];
	char a[32], b[32];

	if (strcmp(cause, "fragmentation") == 0) {
		add(out, n, " Enough is free inside of what is reserved (%s), but in pieces", bytes(free_inside(d, o), a));
		if (o->largest_free != MEMORY_UNKNOWN)
			add(out, n, " of at most %s", bytes(o->largest_free, b));
		add(out, n, ", between blocks in use: fragmentation.");
	} else if (strcmp(cause, "request_too_large") == 0) {
		add(out, n, " That is more than all that is reserved and the device's free memory (%s) together: "
		    "freeing anything of this process cannot help.", bytes(e->device_free, a));
	} else if (o->site != MEMORY_NO_SITE && o->held > 0) {
		add(out, n, " %s%s is held by %lld block%s of %.300s%s.",
		    strcmp(cause, "held_by_one_place") == 0 ? "" : "The place that holds most: ", bytes(o->held, a),
		    (long long)o->n_held, o->n_held == 1 ? "" : "s", s->name,
		    o->none_freed ? "; none was freed in the history" : "");
	}
}

const char *memory_cause(const struct memory_device *d, const struct memory_oom *o, int64_t rank, char *sentence, size_t n)
{
	const struct memory_event *e = &d->events[o->event];
	const char *cause = decide(d, o);
	char a[32], b[32], c[32];

	snprintf(sentence, n, "Rank %lld could not get %s on its device %lld", (long long)rank, bytes(e->size, a),
		 (long long)d->device);
	if (o->reserved != MEMORY_UNKNOWN && o->allocated != MEMORY_UNKNOWN)
		add(sentence, n, " with %s allocated of %s reserved.", bytes(o->allocated, b), bytes(o->reserved, c));
	else
		add(sentence, n, "; what was in use then is not known, the history does not fit the state at the end.");
	say_cause(d, o, cause, sentence, n);
	if (d->private_free >= e->size)
		add(sentence, n, " %s is free in pools of their own, as CUDA graphs have, which nobody else may use.",
		    bytes(d->private_free, a));
	if (memory_capped(d, o) == 1)
		add(sentence, n, " The device had %s free, so it did not refuse: a cap of the process does that "
		    "(set_per_process_memory_fraction).", bytes(e->device_free, a));
	else if (memory_capped(d, o) == 0 && strcmp(cause, "request_too_large") != 0)
		add(sentence, n, " The device had only %s free; what else is on it (other processes, NCCL, CUDA) is in no snapshot.",
		    bytes(e->device_free, a));
	if (strcmp(cause, "not_enough_evidence") == 0)
		add(sentence, n, " Not enough evidence for one cause.");
	return cause;
}
