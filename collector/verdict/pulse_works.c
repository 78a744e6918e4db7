/* pulse_works.c - the launch log: which passes ran behind the last reduction of their step. */
#include "pulse_internal.h"

#include <errno.h>
#include <string.h>

#define MIN_SLOTS 64
#define MAX_SLOTS 2048
#define MAX_SYNCS 64
#define ALIKE 1.35	   /* the same piece of work again: as long, within this */
#define MIN_COVERED 0.9	   /* of the time of a pass: pieces that come again */
#define MAX_BEFORE 0.2	   /* of a pass: what may stand before the first one */

static struct pulse_work *work_at(const struct pulse_proc *p, uint32_t launch)
{
	struct pulse_work *w = p->n_slots ? &p->works[launch & (p->n_slots - 1)] : NULL;

	return w && launch && w->launch == launch ? w : NULL;
}

/* How far back something may yet be asked for. */
static uint32_t oldest_wanted(const struct pulse_proc *p)
{
	uint32_t oldest = p->step_from ? p->step_from : p->newest;

	if (p->n_unjudged && p->judge_from < oldest)
		oldest = p->judge_from;

	/* What belongs to an earlier step is not judged. */
	for (uint32_t i = 0; i < p->n_syncs && p->n_steps == 0; i++)
		if (p->syncs[i].pending && p->syncs[i].from < oldest)
			oldest = p->syncs[i].from;
	return oldest;
}

static int grow(struct pulse_proc *p)
{
	uint32_t n = p->n_slots ? 2 * p->n_slots : MIN_SLOTS;
	struct pulse_work *v = calloc(n, sizeof *v);

	if (!v)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->n_slots; i++)
		if (p->works[i].launch)
			v[p->works[i].launch & (n - 1)] = p->works[i];
	free(p->works);
	p->works = v;
	p->n_slots = n;
	return 0;
}

/* Does it wait for that launch, or for all up to it? */
static bool waits_for(const struct pulse_work *w, uint32_t launch)
{
	for (uint32_t i = 0; i < w->n_waits; i++)
		if (w->waits[i] == launch)
			return true;
	return w->synced >= launch || w->blocked_on == launch;
}

/* It is judged once it has run, which may be many launches later. */
static void expect(struct pulse_proc *p, struct pulse_work *w, uint32_t sync)
{
	uint32_t from = p->n_steps && p->step_from ? p->step_from : p->syncs[sync].from;

	w->judge = sync + 1;
	w->judged_call = p->syncs[sync].pending;
	if (p->n_unjudged++ == 0 || from < p->judge_from)
		p->judge_from = from;
}

/* Is this kernel the first that waits for a group's last reduction? All is known of
 * it once the next launch comes, or it has run. */
static void meet(struct pulse_proc *p, struct pulse_work *w)
{
	if (!w || w->met)
		return;
	w->met = true;
	for (uint32_t i = 0; i < p->n_syncs && !w->call; i++) {
		struct pulse_sync *s = &p->syncs[i];

		if (!s->pending || s->pending >= w->launch || !waits_for(w, s->pending))
			continue;
		if (!w->judge)
			expect(p, w, i);
		s->pending = 0;
	}
}

int pulse_launch(struct pulse_proc *p, const struct event *ev)
{
	uint32_t launch = event_low(ev->a), step = pulse_number(p, ev), first;
	const struct pulse_work *before;

	if (launch == 0)
		return 0;
	if (p->log == LOG_NONE) {
		p->newest = launch;
		return 0;
	}
	meet(p, work_at(p, p->newest));
	while (p->n_slots == 0 || (p->n_slots < MAX_SLOTS && launch >= p->n_slots &&
				   oldest_wanted(p) <= launch - p->n_slots && p->newest))
		if (grow(p) < 0)
			return -ENOMEM;
	if (p->step_from == 0)
		p->step_from = launch;
	before = work_at(p, launch - 1);
	first = before && before->step == step ? before->step_first : launch;
	p->works[launch & (p->n_slots - 1)] = (struct pulse_work){
		.launch = launch, .step = step, .step_first = first, .stream = ev->flags,
		.begin_ns = FACT_NONE, .dur_ns = FACT_NONE, .synced = p->synced,
		.blocked_on = p->blocked_on,
	};
	p->newest = launch;
	return 0;
}

void pulse_wait(struct pulse_proc *p, const struct event *ev)
{
	struct pulse_work *w = work_at(p, event_low(ev->a));

	if (w && w->n_waits < sizeof w->waits / sizeof *w->waits)
		w->waits[w->n_waits++] = (uint32_t)ev->b;
}

static struct pulse_sync *sync_of(struct pulse_proc *p, uint32_t group)
{
	for (uint32_t i = 0; i < p->n_syncs; i++)
		if (p->syncs[i].group == group)
			return &p->syncs[i];
	if (p->n_syncs == MAX_SYNCS)
		return NULL;
	if (p->n_syncs == p->n_syncs_alloc) {
		uint32_t want = p->n_syncs_alloc ? 2 * p->n_syncs_alloc : 4;
		struct pulse_sync *grown = realloc(p->syncs, want * sizeof *grown);

		if (!grown)
			return NULL;
		p->syncs = grown;
		p->n_syncs_alloc = want;
	}
	p->syncs[p->n_syncs] = (struct pulse_sync){ .group = group, .from = 1 };
	return &p->syncs[p->n_syncs++];
}

int pulse_submit(struct pulse_proc *p, const struct event *ev, uint32_t group, uint64_t seq)
{
	struct pulse_work *w = work_at(p, (uint32_t)ev->b);
	struct pulse_sync *s;

	if (!w)
		return 0;
	w->call = true;
	w->op = (uint8_t)(ev->flags >> 8);
	if (group == UINT32_MAX || !pulse_reduces(w->op))
		return 0;
	w->group = group + 1;
	w->begin_ns = (int64_t)ev->tick;
	w->seq = seq;
	s = sync_of(p, group);
	if (s)
		s->pending = w->launch;
	return 0;
}

/* ---- the judgement ---- */

struct span {
	struct pulse_work *v[MAX_SLOTS];
	uint32_t n;
	bool whole;
};

/* The kernels of that stream launched in [from, to). */
static void kernels(const struct pulse_proc *p, uint32_t from, uint32_t to, uint16_t stream,
		    struct span *ret)
{
	ret->n = 0;
	ret->whole = true;
	for (uint32_t i = from; i < to; i++) {
		struct pulse_work *w = work_at(p, i);

		if (!w) {
			ret->whole = false;
			return;
		}
		if (w->call || w->stream != stream)
			continue;
		ret->whole &= w->dur_ns != FACT_NONE;
		ret->v[ret->n++] = w;
	}
}

static bool alike(int64_t a_ns, int64_t b_ns)
{
	double a = (double)a_ns + 1, b = (double)b_ns + 1;

	return a <= b * ALIKE && b <= a * ALIKE;
}

/* Is the span at `at` the pass again? */
static bool again(const struct span *pass_in, uint32_t pass, const struct span *in, uint32_t at, uint32_t n)
{
	double all = 0, same = 0;

	for (uint32_t i = 0; i < n; i++) {
		int64_t a_ns = pass_in->v[pass + i]->dur_ns, b_ns = in->v[at + i]->dur_ns;

		all += (double)b_ns;
		same += alike(a_ns, b_ns) ? (double)b_ns : 0;
	}
	return same >= all * MIN_COVERED;
}

/* The work after is one or more whole passes, and so was the work before: how many ran
 * after; 0 when it is not like that. */
static uint32_t passes_after(const struct span *before, const struct span *after)
{
	for (uint32_t n_passes = 1; n_passes <= after->n; n_passes++) {
		uint32_t n = after->n / n_passes, i, head;
		double rest = 0, pass = 0;

		if (after->n % n_passes || n > before->n)
			continue;
		for (i = 0; i < n_passes && again(before, before->n - n, after, i * n, n); i++)
			;
		if (i < n_passes)
			continue;
		for (head = before->n - n; head >= n && again(before, before->n - n, before, head - n, n);)
			head -= n;
		for (i = 0; i < head; i++)
			rest += (double)before->v[i]->dur_ns;
		for (i = before->n - n; i < before->n; i++)
			pass += (double)before->v[i]->dur_ns;
		if (rest <= pass * MAX_BEFORE)
			return n_passes;
	}
	return 0;
}

static uint64_t bytes_of(const struct pulse_proc *p, const struct pulse_work *w)
{
	const struct pulse_call *c = pulse_call_of(p, w->group - 1, w->seq);

	return c ? c->bytes : UINT64_MAX;
}

static bool is_large(const struct pulse_proc *p, const struct pulse_work *w)
{
	return w->group && bytes_of(p, w) > PULSE_SMALL_BYTES;
}

/* Does a kernel launched behind it and before that one wait for it? */
static bool is_used(const struct pulse_proc *p, uint32_t launch, uint32_t before)
{
	for (uint32_t i = launch + 1; i < before; i++) {
		const struct pulse_work *w = work_at(p, i);

		if (w && !w->call && waits_for(w, launch))
			return true;
	}
	return false;
}

/* A reduction of another group that is not part of a pass (a pass uses its own), or
 * somebody who used this one already: not a plain picture. */
static bool has_others(const struct pulse_proc *p, const struct pulse_work *call, uint32_t to)
{
	for (uint32_t i = call->launch + 1; i < to; i++) {
		const struct pulse_work *w = work_at(p, i);

		if (!w || (w->group && w->group != call->group && is_large(p, w) && !is_used(p, i, to)))
			return true;
		for (uint32_t k = 0; k < w->n_waits; k++) {
			const struct pulse_work *of = work_at(p, w->waits[k]);

			if (!w->call && of && of->group == call->group)
				return true;
		}
	}
	return false;
}

static void note_left_out(struct pulse_sync *s, const struct pulse_work *call, uint32_t n_kernels,
			  uint32_t n_passes, bool doubtful)
{
	if (s->n_left_out++ == 0) {
		s->first_step = call->step;
		s->first_call = call->seq;
		s->n_kernels = n_kernels;
		s->n_passes = n_passes;
		s->doubtful = doubtful;
		s->at_ns = call->begin_ns;
	}
	s->last_step = call->step;
}

/* The first launch of its step, from `from` on; without steps that one. */
static uint32_t step_begin(const struct pulse_proc *p, const struct pulse_work *w, uint32_t from)
{
	uint32_t i = w->launch, oldest = p->newest < p->n_slots ? 1 : p->newest - p->n_slots + 1;

	if (w->step == PULSE_NO_STEP)
		return from;
	if (oldest < from)
		oldest = from;
	for (const struct pulse_work *v = w; v && v->step == w->step && i > from; v = work_at(p, i - 1)) {
		/* All from step_first on are of the step, as far as they are remembered. */
		i = v->step_first > oldest ? v->step_first : oldest;
		if (i > v->launch || !work_at(p, i))
			i = v->launch;
	}
	return i;
}

static void judge(struct pulse_proc *p, struct pulse_work *waiter)
{
	struct span before, after;
	struct pulse_sync *s = &p->syncs[waiter->judge - 1];
	const struct pulse_work *call = work_at(p, waiter->judged_call);
	uint32_t from = s->from, n_passes = 0;

	waiter->judge = 0;
	p->n_unjudged -= p->n_unjudged > 0;
	p->judge_from = waiter->step == PULSE_NO_STEP ? waiter->launch + 1 : step_begin(p, waiter, 1);
	s->from = waiter->launch + 1;
	while (call && call->launch > from && !(call->group == s->group + 1 && is_large(p, call)))
		call = work_at(p, call->launch - 1);
	if (!call || call->group != s->group + 1 || !is_large(p, call))
		return;
	kernels(p, call->launch + 1, waiter->launch, waiter->stream, &after);
	if (after.whole && after.n == 0) {
		s->n_right++;
		return;
	}
	if (call->step != waiter->step) /* one that may be late on purpose */
		return;
	kernels(p, step_begin(p, call, from), call->launch, waiter->stream, &before);
	if (after.whole && before.whole && !has_others(p, call, waiter->launch))
		n_passes = passes_after(&before, &after);
	if (n_passes > 0)
		note_left_out(s, call, after.n, n_passes, call->step == PULSE_NO_STEP ||
							  (after.n == n_passes && before.n > 1));
	else
		s->n_unclear++;
}

void pulse_kernel(struct pulse_proc *p, const struct event *ev)
{
	struct pulse_work *w = work_at(p, event_low(ev->a));
	int64_t at_ns = (int64_t)ev->tick;

	if (ev->kind == EVENT_KERNEL_BEGIN) {
		p->running = event_low(ev->a);
		p->running_ns = at_ns;
	} else if (p->running == event_low(ev->a)) {
		p->busy_ns += at_ns - p->running_ns;
	}
	if (!w)
		return;
	if (ev->kind == EVENT_KERNEL_BEGIN) {
		w->begin_ns = at_ns;
		return;
	}
	w->dur_ns = w->begin_ns == FACT_NONE ? 0 : at_ns - w->begin_ns;
	meet(p, w);
	if (w->judge)
		judge(p, w);
}
