#include "kineto_internal.h"
#include "kernel_class.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RANGES 2048 /* names of annotations that have a row */
#define MAX_CALLS 16384 /* kinds of kernels of communication */
#define INDEX (2 * MAX_CALLS)
#define EARLY_NS 100000 /* before its launch: more than stamps of one clock are apart */

/* ---- sums by key ---- */

static struct profile_sum *find_sum(struct kineto *k, struct profile_sums *s, uint32_t name, uint32_t call,
				    bool on_device)
{
	uint64_t key = ((uint64_t)name << 33 | (uint64_t)call << 1 | on_device) * UINT64_C(0x9e3779b97f4a7c15);
	uint32_t at = (uint32_t)(key >> 40) % INDEX;

	if (!s->index)
		s->index = calloc(INDEX, sizeof *s->index);
	for (; s->index && s->index[at]; at = (at + 1) % INDEX) {
		struct profile_sum *v = &s->v[s->index[at] - 1];

		if (v->name == name && v->call == call && v->on_device == on_device)
			return v;
	}
	if (s->n == (s == &k->profile.ranges ? MAX_RANGES : MAX_CALLS)) {
		s->n_left_out++;
		return NULL;
	}
	if (s->index && s->n == s->n_alloc) {
		uint32_t want = s->n_alloc ? 2 * s->n_alloc : 64;
		struct profile_sum *grown = realloc(s->v, want * sizeof *grown);

		s->v = grown ? grown : s->v;
		s->n_alloc = grown ? want : s->n_alloc;
	}
	if (!s->index || s->n == s->n_alloc) {
		k->trace->no_memory = true;
		return NULL;
	}
	s->v[s->n] = (struct profile_sum){ .name = name, .call = call, .on_device = on_device };
	s->index[at] = ++s->n;
	return &s->v[s->n - 1];
}

/* A file may say that a few took centuries each. */
static int64_t longer(int64_t sum_ns, const struct kept *v)
{
	int64_t ns = v->end_ns - v->begin_ns;

	return sum_ns > INT64_MAX - ns ? INT64_MAX : sum_ns + ns;
}

static void count(struct profile_sum *s, const struct kept *v)
{
	if (s->n++ == 0)
		s->first_ns = v->begin_ns;
	s->sum_ns = longer(s->sum_ns, v);
	s->last_ns = v->begin_ns;
}

/* ---- reading ---- */

static bool is_device(const struct kept *v)
{
	return v->sort == KEPT_WORK || v->sort == KEPT_CALL || v->sort == KEPT_DEVICE_RANGE;
}

void kineto_profile_saw(struct kineto *k, const struct kept *v)
{
	struct profile *p = &k->profile;

	stamp_ranges_add(is_device(v) ? &p->device_stamps : &p->host_stamps, v->begin_ns);
	if (v->sort != KEPT_STEP)
		return;
	p->has_steps |= p->has_step && v->number != p->first_step;
	if (!p->has_step || v->begin_ns > p->last_step_ns)
		p->last_step_ns = v->begin_ns;
	p->first_step = v->number;
	p->has_step = true;
}

void kineto_profile_begin(struct kineto *k)
{
	struct profile *p = &k->profile;
	bool host = stamp_most(&p->host_stamps, &p->host), device = stamp_most(&p->device_stamps, &p->device);

	p->apart = host && device &&
		   (p->host.lo_ns - STAMP_GAP_NS > p->device.hi_ns || p->device.lo_ns - STAMP_GAP_NS > p->host.hi_ns);
	breakdown_init(&p->breakdown, p->has_steps ? p->last_step_ns : INT64_MAX);
}

/* ---- in order ---- */

/* The innermost annotation of its stream. */
static struct profile_sum *range_around(struct profile *p, const struct kept *v)
{
	unsigned n = 0;

	for (unsigned i = 0; i < p->n_open; i++)
		if (p->open[i].end_ns > v->begin_ns)
			p->open[n++] = p->open[i];
	p->n_open = n;
	while (n-- > 0)
		if (p->open[n].stream == v->stream)
			return &p->ranges.v[p->open[n].sum - 1];
	return NULL;
}

static void take_range(struct kineto *k, const struct kept *v)
{
	struct profile *p = &k->profile;
	bool on_device = v->sort == KEPT_DEVICE_RANGE;
	struct profile_sum *s;

	if (v->begin_ns >= p->breakdown.cut_ns)
		return;
	if (!v->name) {
		p->ranges.n_left_out++;
		return;
	}
	s = find_sum(k, &p->ranges, v->name, 0, on_device);
	if (!s)
		return;
	count(s, v);
	if (!on_device)
		return;
	(void)range_around(p, v); /* those that have ended go */
	if (p->n_open == PROFILE_OPEN)
		return;
	p->open[p->n_open].end_ns = v->end_ns;
	p->open[p->n_open].stream = v->stream;
	p->open[p->n_open++].sum = (uint32_t)(s - p->ranges.v) + 1;
}

static int64_t launched_at(const struct kept *v)
{
	if (v->number < 0)
		return INT64_MIN;
	return v->launched_ns >= 0 ? v->launched_ns : INT64_MAX;
}

static void take_work(struct kineto *k, const struct kept *v)
{
	struct profile *p = &k->profile;
	int64_t launched_ns = launched_at(v), early_ns = v->launched_ns - v->begin_ns;
	struct profile_sum *s;

	p->n_work++;
	p->n_linked += v->launched_ns >= 0;
	if (v->launched_ns >= 0 && early_ns > EARLY_NS) {
		p->n_early++;
		p->early_ns = early_ns > p->early_ns ? early_ns : p->early_ns;
	}
	breakdown_work(&p->breakdown, v->class, v->begin_ns, v->end_ns, launched_ns);
	if (p->breakdown.cut_ns == INT64_MAX || launched_ns < p->breakdown.cut_ns) {
		s = range_around(p, v);
		if (s) {
			s->n_work++;
			s->work_ns = longer(s->work_ns, v);
		}
	}
	if (v->class != CLASS_COMMUNICATION)
		return;
	s = find_sum(k, &p->calls, v->name, v->call, true);
	if (s)
		count(s, v);
}

bool kineto_profile_take(struct kineto *k, const struct kept *v)
{
	struct profile *p = &k->profile;
	const struct stamp_range *in = is_device(v) ? &p->device : &p->host;

	if (v->begin_ns < in->lo_ns || v->begin_ns > in->hi_ns) {
		p->n_far++;
		return false;
	}
	switch ((enum kept_sort)v->sort) {
	case KEPT_STEP:
		if (v->step != EVENT_STEP_UNKNOWN)
			breakdown_step(&p->breakdown, v->number, v->begin_ns, v->end_ns);
		take_range(k, v);
		break;
	case KEPT_NOTE:
	case KEPT_RANGE:
	case KEPT_DEVICE_RANGE:
		take_range(k, v);
		break;
	case KEPT_WORK:
	case KEPT_CALL:
		take_work(k, v);
		break;
	case KEPT_LAUNCH:
	case KEPT_WAIT:
	case KEPT_HOST_CALL:
	case KEPT_PARAMS:
		break;
	}
	k->trace->no_memory |= p->breakdown.no_memory;
	return !p->apart || !is_device(v);
}

/* ---- the rows ---- */

static const char *name_of(const struct kineto *k, uint32_t name)
{
	return name ? k->names[name - 1] : NULL;
}

static int64_t or_null(int64_t v)
{
	return v >= 0 ? v : TRACE_NULL;
}

static bool put_ranges(struct kineto *k, int32_t rank)
{
	bool fine = true;

	for (uint32_t i = 0; i < k->profile.ranges.n && fine; i++) {
		const struct profile_sum *s = &k->profile.ranges.v[i];

		fine = trace_row(k->trace, "profile_annotation", "ittiiii", (int64_t)rank, name_of(k, s->name),
				 s->on_device ? "device" : "host", s->n, s->sum_ns,
				 s->on_device ? s->n_work : TRACE_NULL, s->on_device ? s->work_ns : TRACE_NULL);
	}
	return fine;
}

static bool put_calls(struct kineto *k, int32_t rank)
{
	static const struct call nothing = { .n_in = -1, .n_out = -1, .size = -1 };
	bool fine = true;

	for (uint32_t i = 0; i < k->profile.calls.n && fine; i++) {
		const struct profile_sum *s = &k->profile.calls.v[i];
		const struct call *c = s->call ? &k->calls[s->call - 1] : &nothing;
		const struct kineto_label *g = s->call ? kineto_group_of(k, s->call) : NULL;

		if (s->call && !g)
			return false;
		fine = trace_row(k->trace, "profile_call", "itttiittitiiii", (int64_t)rank, name_of(k, s->name),
				 c->op[0] ? c->op : NULL, c->dtype[0] ? c->dtype : NULL, or_null(c->n_in),
				 or_null(c->n_out), c->group[0] ? c->group : NULL, c->desc[0] ? c->desc : NULL,
				 or_null(c->size), g ? g->ranks : NULL, s->n, s->sum_ns,
				 k->base_ns + s->first_ns, k->base_ns + s->last_ns);
	}
	return fine;
}

static void remark(struct kineto *k)
{
	const struct profile *p = &k->profile;

	if (p->n_work == 0)
		kineto_remark(k, "it has no work of a device, so nothing is said of how busy one was");
	if (p->apart)
		kineto_remark(k, "the clock of its device is not the host's: the device's work has no place on the "
				 "time line");
	else if (p->n_early > 0)
		kineto_remark(k, "%" PRIu64 " of %" PRIu64 " begin on the device before they are launched, by up to "
				 "%.1f ms: host and device do not have one clock",
			      p->n_early, p->n_linked, (double)p->early_ns / 1e6);
	if (p->n_far > 0)
		kineto_remark(k, "%" PRIu64 " events are hours from the others and left out", p->n_far);
	if (p->n_impossible > 0)
		kineto_remark(k, "%" PRIu64 " events have a time that cannot be and are left out", p->n_impossible);
	if (p->breakdown.n_steps < p->breakdown.n_steps_seen)
		kineto_remark(k, "only its first %d steps have a breakdown of their own", BREAKDOWN_MAX_STEPS);
	if (p->ranges.n_left_out + p->calls.n_left_out > 0)
		kineto_remark(k, "not all of its annotations and kinds of calls have room in the tables");
	if (k->groups.n_cut > 0)
		kineto_remark(k, "the ranks of a process group are cut off in it and not known");
}

bool kineto_profile_end(struct kineto *k, int32_t rank)
{
	struct profile *p = &k->profile;
	/* Steps are the host's. */
	bool with_steps = p->n_work > 0 && !p->apart && 2 * p->n_early <= p->n_linked;
	bool fine;

	breakdown_end(&p->breakdown);
	fine = breakdown_tell(&p->breakdown, k->trace, rank, k->base_ns, with_steps) && put_calls(k, rank) &&
	       put_ranges(k, rank) &&
	       trace_row(k->trace, "profile", "itiiiiiiii", (int64_t)rank, p->rank_from, (int64_t)p->n_work,
			 (int64_t)p->breakdown.n_steps_seen, (int64_t)p->n_linked, (int64_t)p->n_early,
			 p->n_early ? p->early_ns : TRACE_NULL, (int64_t)(p->n_far + p->n_impossible),
			 p->has_steps ? k->base_ns + p->last_step_ns : TRACE_NULL, (int64_t)k->groups.n_cut);
	remark(k);
	return fine;
}

void kineto_profile_free(struct kineto *k)
{
	breakdown_fini(&k->profile.breakdown);
	free(k->profile.ranges.v);
	free(k->profile.ranges.index);
	free(k->profile.calls.v);
	free(k->profile.calls.index);
}
