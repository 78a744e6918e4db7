#include "pulse_internal.h"

#include <errno.h>
#include <string.h>

#define MAX_PROCS (1u << 17)
#define MIN_PASS_NS 1000000 /* a pass this short has no length to compare */

void pulse_fini(struct pulse *p)
{
	for (uint32_t i = 0; i < p->n; i++) {
		free(p->v[i].steps);
		free(p->v[i].calls);
		free(p->v[i].works);
		free(p->v[i].syncs);
		free(p->v[i].passes);
	}
	free(p->v);
	*p = (struct pulse){ 0 };
}

const struct pulse_proc *pulse_proc(const struct pulse *p, uint32_t proc)
{
	return proc < p->n ? &p->v[proc] : NULL;
}

bool pulse_reduces(unsigned op)
{
	return op == OP_ALL_REDUCE || op == OP_REDUCE_SCATTER || op == OP_REDUCE;
}

static struct pulse_proc *reach(struct pulse *p, uint32_t proc)
{
	if (proc >= p->n) {
		uint32_t n = p->n ? p->n : 16;
		struct pulse_proc *grown;

		while (n <= proc)
			n *= 2;
		grown = realloc(p->v, n * sizeof *grown);
		if (!grown)
			return NULL;
		memset(grown + p->n, 0, (n - p->n) * sizeof *grown);
		for (uint32_t i = p->n; i < n; i++)
			grown[i].by_passes.group = UINT32_MAX;
		p->v = grown;
		p->n = n;
	}
	return &p->v[proc];
}

/* ---- steps ---- */

/* The end of one is the beginning of the next, unless that says so itself. number: of the
 * whole run, over restarts. */
static int on_step(struct pulse_proc *p, const struct event *ev, uint32_t number)
{
	struct pulse_step *last;

	if (!p->steps)
		p->steps = calloc(PULSE_STEPS, sizeof *p->steps);
	if (!p->steps)
		return -ENOMEM;
	if (event_step(ev->a) != PULSE_NO_STEP && number != PULSE_NO_STEP)
		p->before = number - event_step(ev->a) - (ev->kind == EVENT_STEP_END);
	last = p->n_steps ? &p->steps[(p->n_steps - 1) % PULSE_STEPS] : NULL;
	if (last && last->step == number) {
		last->at_ns = (int64_t)ev->tick;
		return 0;
	}
	p->steps[p->n_steps++ % PULSE_STEPS] = (struct pulse_step){ (int64_t)ev->tick, number };
	p->step_from = 0;
	return 0;
}

uint32_t pulse_number(const struct pulse_proc *p, const struct event *ev)
{
	uint32_t step = event_step(ev->a);

	return step == PULSE_NO_STEP ? step : step + p->before;
}

uint32_t pulse_step(const struct pulse *p, uint32_t proc, int64_t at_ns)
{
	const struct pulse_proc *v = pulse_proc(p, proc);

	uint32_t begun = PULSE_NO_STEP;

	for (uint64_t i = v ? v->n_steps : 0; i-- > 0 && v->n_steps - i <= PULSE_STEPS;) {
		if (v->steps[i % PULSE_STEPS].at_ns < at_ns)
			return v->steps[i % PULSE_STEPS].step;
		if (v->steps[i % PULSE_STEPS].at_ns == at_ns)
			begun = v->steps[i % PULSE_STEPS].step;
	}
	return begun;
}

/* ---- calls ---- */

static unsigned bucket_of(uint32_t group, uint64_t seq)
{
	return (unsigned)((group * UINT64_C(0x9e3779b1) + seq) % PULSE_BUCKETS);
}

struct pulse_call *pulse_call_of(const struct pulse_proc *p, uint32_t group, uint64_t seq)
{
	uint64_t i = p->newest_of[bucket_of(group, seq)];

	while (i > 0 && p->n_calls - i < PULSE_CALLS) {
		struct pulse_call *c = &p->calls[(i - 1) % PULSE_CALLS];

		if (c->group == group && c->seq == seq)
			return c;
		i -= c->older ? c->older : i;
	}
	return NULL;
}

static struct pulse_call *add_call(struct pulse_proc *p, const struct pulse_call *call)
{
	uint64_t *newest = &p->newest_of[bucket_of(call->group, call->seq)], n = p->n_calls + 1;
	struct pulse_call *c = &p->calls[p->n_calls++ % PULSE_CALLS];

	*c = *call;
	if (*newest > 0 && n - *newest < PULSE_CALLS)
		c->older = (uint8_t)(n - *newest);
	*newest = n;
	return c;
}

static int make_room(struct pulse_proc *p)
{
	/* Grown by doubling up to the whole ring. */
	uint64_t n = p->n_calls;
	struct pulse_call *grown;

	if (n >= PULSE_CALLS || (n > 0 && (n < PULSE_CALLS_MIN || (n & (n - 1)) != 0)))
		return 0;
	grown = realloc(p->calls, (n ? 2 * n : PULSE_CALLS_MIN) * sizeof *grown);
	if (!grown)
		return -ENOMEM;
	p->calls = grown;
	return 0;
}

static int on_call(struct pulse_proc *p, const struct event *ev, uint32_t group, uint64_t seq)
{
	/* One that was not submitted is new when it begins. */
	bool known = ev->kind == EVENT_COLL_END || (ev->kind == EVENT_COLL_BEGIN && p->newest > 0);
	struct pulse_call *c = known ? pulse_call_of(p, group, seq) : NULL;

	if (!c) {
		if (ev->kind == EVENT_COLL_END)
			return 0;
		if (make_room(p) < 0)
			return -ENOMEM;
		c = add_call(p, &(struct pulse_call){
				.group = group, .op = (uint8_t)(ev->flags >> 8), .seq = seq,
				.bytes = UINT64_MAX, .asked_ns = (int64_t)ev->tick,
				.left_ns = FACT_NONE });
	}
	if (ev->kind == EVENT_COLL_BEGIN)
		c->bytes = ev->b & ~EVENT_COLL_SYNC_BIT;
	if (ev->kind == EVENT_COLL_END)
		c->left_ns = (int64_t)ev->tick;
	return 0;
}

const struct pulse_call *pulse_call(const struct pulse *p, uint32_t proc, uint32_t group, uint64_t seq)
{
	const struct pulse_proc *v = pulse_proc(p, proc);

	return v ? pulse_call_of(v, group, seq) : NULL;
}

const struct pulse_call *pulse_small_call(const struct pulse *p, uint32_t proc, int64_t at_ns)
{
	const struct pulse_proc *v = pulse_proc(p, proc);

	for (uint64_t i = v ? v->n_calls : 0; i-- > 0 && v->n_calls - i <= PULSE_CALLS;) {
		const struct pulse_call *c = &v->calls[i % PULSE_CALLS];

		if (c->asked_ns <= at_ns && pulse_reduces(c->op) && c->bytes <= PULSE_SMALL_BYTES)
			return c;
	}
	return NULL;
}

/* ---- passes, by the loop's own words ---- */

static bool as_long(int64_t a_ns, int64_t b_ns)
{
	return a_ns <= 2 * b_ns && b_ns <= 2 * a_ns;
}

/* All that is known of the step has come. */
static void judge_passes(struct pulse_proc *p, struct pulse_pass *s)
{
	struct pulse_sync *ret = &p->by_passes;
	uint32_t n_after = 0, before = UINT32_MAX;
	int64_t optimizer_ns = INT64_MAX; /* the one that uses what was reduced */
	bool odd = false;

	for (uint32_t i = 0; i < s->n_optimizers; i++)
		if (s->optimizer_ns[i] >= s->reduced_ns && s->optimizer_ns[i] < optimizer_ns)
			optimizer_ns = s->optimizer_ns[i];
	for (uint32_t i = 0; i < s->n; i++)
		if (s->begin_ns[i] <= s->reduced_ns)
			before = i; /* the one that reduced, or the last one behind it */
	for (uint32_t i = 0; i < s->n && before != UINT32_MAX; i++)
		if (s->begin_ns[i] > s->reduced_ns && s->end_ns[i] <= optimizer_ns) {
			int64_t ns = s->end_ns[i] - s->begin_ns[i];

			n_after++;
			odd |= ns < MIN_PASS_NS || !as_long(ns, s->end_ns[before] - s->begin_ns[before]);
		}
	s->used = false;
	if (s->reduced_ns == FACT_NONE || optimizer_ns == INT64_MAX || before == UINT32_MAX)
		return;
	if (odd) {
		ret->n_unclear++;
	} else if (n_after == 0) {
		ret->n_right++;
	} else {
		if (ret->n_left_out++ == 0) {
			ret->first_step = s->step;
			ret->n_passes = n_after;
			ret->at_ns = s->reduced_ns;
		}
		ret->last_step = s->step;
	}
}

static struct pulse_pass *pass_of(struct pulse_proc *p, uint32_t step)
{
	struct pulse_pass *s;

	if (step == PULSE_NO_STEP)
		return NULL;
	if (!p->passes)
		p->passes = calloc(PULSE_PASS_STEPS, sizeof *p->passes);
	s = p->passes ? &p->passes[step % PULSE_PASS_STEPS] : NULL;
	if (s && s->used && s->step != step) {
		if (s->step > step)
			return NULL;
		judge_passes(p, s);
	}
	if (s && !s->used)
		*s = (struct pulse_pass){ .used = true, .step = step, .reduced_ns = FACT_NONE };
	return s;
}

static void on_phase(struct pulse_proc *p, const struct event *ev)
{
	bool begin = ev->kind == EVENT_PHASE_BEGIN;
	struct pulse_pass *s;

	if (ev->flags != PHASE_BACKWARD && (ev->flags != PHASE_OPTIMIZER || !begin))
		return;
	p->n_backward += ev->flags == PHASE_BACKWARD && begin;
	s = pass_of(p, pulse_number(p, ev));
	if (!s)
		return;
	if (ev->flags == PHASE_OPTIMIZER) {
		if (s->n_optimizers < PULSE_OPTIMIZERS)
			s->optimizer_ns[s->n_optimizers++] = (int64_t)ev->tick;
	} else if (begin && s->n < PULSE_PASSES) {
		s->begin_ns[s->n] = (int64_t)ev->tick;
		s->end_ns[s->n++] = INT64_MAX;
	} else if (!begin && s->n > 0 && s->end_ns[s->n - 1] == INT64_MAX) {
		s->end_ns[s->n - 1] = (int64_t)ev->tick;
	}
}

static void on_reduction(struct pulse_proc *p, const struct event *ev, uint32_t group)
{
	struct pulse_pass *s = pass_of(p, pulse_number(p, ev));

	if (s && (int64_t)ev->tick > s->reduced_ns)
		s->reduced_ns = (int64_t)ev->tick;
	if (group != UINT32_MAX)
		p->by_passes.group = group;
}

void pulse_finish(struct pulse *p)
{
	for (uint32_t i = 0; i < p->n; i++)
		for (uint32_t k = 0; p->v[i].passes && k < PULSE_PASS_STEPS; k++)
			if (p->v[i].passes[k].used)
				judge_passes(&p->v[i], &p->v[i].passes[k]);
}

/* ---- events ---- */

int pulse_event(struct pulse *p, uint32_t proc, uint32_t step, const struct event *ev, uint32_t group,
		uint64_t seq)
{
	struct pulse_proc *v = proc < MAX_PROCS ? reach(p, proc) : NULL;
	uint64_t bytes = ev->b & ~EVENT_COLL_SYNC_BIT;
	int r = 0;

	if (!v)
		return proc < MAX_PROCS ? -ENOMEM : 0;
	switch (ev->kind) {
	case EVENT_STEP_BEGIN:
	case EVENT_STEP_END:
		return on_step(v, ev, step);
	case EVENT_LAUNCH:
		if (v->log == LOG_UNDECIDED)
			v->log = proc % (p->n_procs / PULSE_LOGS + 1) == 0 ? LOG_KEPT : LOG_NONE;
		return pulse_launch(v, ev);
	case EVENT_STREAM_WAIT:
		pulse_wait(v, ev);
		return 0;
	case EVENT_KERNEL_BEGIN:
	case EVENT_KERNEL_END:
		pulse_kernel(v, ev);
		return 0;
	case EVENT_HOST_WAIT_END:
		if (event_low(ev->a) == 0)
			v->synced = v->newest;
		else
			v->blocked_on = event_low(ev->a);
		return 0;
	case EVENT_PHASE_BEGIN:
	case EVENT_PHASE_END:
		on_phase(v, ev);
		return 0;
	case EVENT_BUCKET_SUBMIT:
		on_reduction(v, ev, UINT32_MAX);
		return 0;
	case EVENT_COLL_SUBMIT:
		r = pulse_submit(v, ev, group, seq);
		break;
	case EVENT_COLL_BEGIN:
		if (v->newest == 0 && pulse_reduces(ev->flags >> 8) && bytes > PULSE_SMALL_BYTES)
			on_reduction(v, ev, group);
		break;
	default:
		break;
	}
	if (r == 0 && group != UINT32_MAX && ev->kind >= EVENT_COLL_BEGIN &&
	    (ev->kind <= EVENT_COLL_END || ev->kind == EVENT_COLL_SUBMIT))
		r = on_call(v, ev, group, seq);
	return r;
}
