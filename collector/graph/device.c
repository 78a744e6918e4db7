#include "device.h"
#include "steps_internal.h"

#include <string.h>

#define IDLE_LEAST_NS 20000 /* shorter gaps are nobody's: the host's way to the next launch */
#define MAX_IDLES 128	    /* of one rank in one step; the rest is idle time without a reason */
#define MAX_CALLS 3500	    /* pieces of exposed calls, as for idles */

struct device *device_of(struct steps *s, const struct proc *p)
{
	uint32_t i = (uint32_t)(p - s->roster->procs);

	if (i >= s->n_devices) {
		uint32_t want = s->n_devices ? s->n_devices : 16;
		struct device *grown;

		while (want <= i)
			want *= 2;
		grown = realloc(s->devices, want * sizeof *grown);
		if (!grown)
			return NULL;
		memset(grown + s->n_devices, 0, (want - s->n_devices) * sizeof *grown);
		for (uint32_t k = s->n_devices; k < want; k++)
			grown[k].host_ns = grown[k].at_ns = grown[k].cut_ns = grown[k].kernel_ns = FACT_NONE;
		s->devices = grown;
		s->n_devices = want;
	}
	return &s->devices[i];
}

struct device *device_known(const struct steps *s, uint32_t proc)
{
	return proc < s->n_devices && s->devices[proc].told ? &s->devices[proc] : NULL;
}

void device_forget(struct steps *s, uint32_t proc)
{
	if (proc < s->n_devices)
		s->devices[proc].n_kernels = s->devices[proc].n_calls = 0;
}

/* The rank's place in a step that is still open. */
static struct rank_step *place_in(struct steps *s, const struct proc *p, uint32_t step,
				  struct step **ret_st)
{
	struct step *st = step == EVENT_STEP_UNKNOWN ? NULL : steps_at(s, step);

	if (!st || (uint32_t)p->rank >= st->n_ranks)
		return NULL;
	*ret_st = st;
	st->changed = true;
	return &st->ranks[p->rank];
}

static int add_call(struct step *st, struct rank_step *rs, const struct running_call *c,
		    int64_t begin_ns, int64_t end_ns)
{
	struct step_item *newest = rs->items ? &st->items[rs->items - 1] : NULL;

	if (newest && newest->kind == ITEM_CALL && newest->end_ns == begin_ns &&
	    newest->group == c->group && newest->seq == c->seq) {
		newest->end_ns = end_ns;
		return 0;
	}
	if (rs->n_items >= MAX_CALLS) {
		rs->more_calls_ns += end_ns - begin_ns;
		return 0;
	}
	return steps_add_item(st, rs, &(struct step_item){ .begin_ns = begin_ns, .end_ns = end_ns,
							   .seq = c->seq, .group = c->group,
							   .kind = ITEM_CALL });
}

/* Gives the time since the last event to whose it was. */
static int account(struct steps *s, const struct proc *p, struct device *d, int64_t t_ns,
		   uint32_t next_step)
{
	int64_t begin_ns = d->at_ns;
	struct rank_step *rs;
	struct step *st;

	if (t_ns <= begin_ns)
		return 0;
	d->at_ns = t_ns;
	if (begin_ns != FACT_NONE)
		*(d->n_kernels > 0 ? &d->compute_ns : d->n_calls > 0 ? &d->call_ns : &d->idle_ns) +=
			t_ns - begin_ns;
	if (d->n_kernels > 0) {
		rs = place_in(s, p, d->kernels[0].step, &st);
		if (rs && begin_ns != FACT_NONE)
			rs->compute_ns += t_ns - begin_ns;
		return 0;
	}
	if (d->n_calls > 0) {
		rs = place_in(s, p, d->calls[0].step, &st);
		return rs && begin_ns != FACT_NONE
			       ? add_call(st, rs, &d->calls[0], begin_ns, t_ns) : 0;
	}
	if (begin_ns != FACT_NONE && t_ns - begin_ns < IDLE_LEAST_NS)
		return 0;
	rs = place_in(s, p, next_step, &st);
	if (!rs || rs->n_idles >= MAX_IDLES)
		return 0;
	rs->n_idles++;
	return steps_add_item(st, rs, &(struct step_item){ .begin_ns = begin_ns, .end_ns = t_ns,
							   .kind = ITEM_IDLE });
}

/* Something of that step has ended. */
static void note_end(struct steps *s, const struct proc *p, struct device *d, uint32_t step,
		     int64_t t_ns)
{
	struct step *st;
	struct rank_step *rs = place_in(s, p, step, &st);

	if (!rs)
		return;
	if (t_ns > rs->device_ns)
		rs->device_ns = t_ns;
	rs->n_open_work--;
	if (step >= d->done_step)
		d->done_step = step + 1;
}

static void drop_kernel(struct device *d, uint32_t i)
{
	d->n_kernels--;
	memmove(d->kernels + i, d->kernels + i + 1, (d->n_kernels - i) * sizeof *d->kernels);
}

static int on_kernel(struct steps *s, const struct proc *p, struct device *d,
		     const struct event *ev, uint32_t step)
{
	int64_t t_ns = (int64_t)ev->tick;
	uint32_t i = 0;
	int r = account(s, p, d, t_ns, step);

	while (i < d->n_kernels && d->kernels[i].stream != ev->flags)
		i++;
	if (ev->kind == EVENT_KERNEL_END) {
		note_end(s, p, d, i < d->n_kernels ? d->kernels[i].step : step, t_ns);
		if (i < d->n_kernels)
			drop_kernel(d, i);
		return r;
	}
	/* A stream is in order: what ran in it has ended, though nobody said so. */
	if (i < d->n_kernels)
		drop_kernel(d, i);
	if (d->n_kernels < DEVICE_MAX_RUNNING)
		d->kernels[d->n_kernels++] = (struct running_kernel){ step, ev->flags };
	if (step != EVENT_STEP_UNKNOWN && step >= d->kernel_step) {
		if (step > d->kernel_step || d->kernel_ns == FACT_NONE)
			d->kernel_ns = t_ns;
		d->kernel_step = step;
	}
	return r;
}

static void note_host(struct device *d, struct rank_step *rs, int64_t t_ns)
{
	if (rs && d->host_ns != FACT_NONE && t_ns - d->host_ns > rs->pause_ns)
		rs->pause_ns = t_ns - d->host_ns;
	if (t_ns > d->host_ns)
		d->host_ns = t_ns;
}

void device_host(struct steps *s, const struct proc *p, uint32_t step, int64_t t_ns, bool waited)
{
	uint32_t i = (uint32_t)(p - s->roster->procs);
	struct step *st;

	if (i < s->n_devices)
		note_host(&s->devices[i], waited ? NULL : place_in(s, p, step, &st), t_ns);
}

int device_event(struct steps *s, struct proc *p, const struct event *ev, uint32_t step,
		 uint64_t chunk)
{
	struct device *d = device_of(s, p);
	struct rank_step *rs = NULL;
	struct step *st = NULL;
	int r;

	if (!d)
		return -ENOMEM;
	if (step != EVENT_STEP_UNKNOWN && (r = steps_open_both(s, step, p, chunk, &st, &rs)) < 0)
		return r;
	switch (ev->kind) {
	case EVENT_LAUNCH:
		if (rs)
			rs->n_open_work++;
		note_host(d, rs, (int64_t)ev->tick);
		return 0;
	case EVENT_COLL_SUBMIT: {
		uint32_t launch = (uint32_t)ev->b;

		d->submits = true;
		if (launch == d->call_launch && rs) /* fused: one more end to come */
			rs->n_open_work++;
		d->call_launch = launch;
		return 0;
	}
	case EVENT_KERNEL_BEGIN:
	case EVENT_KERNEL_END:
		d->told = true;
		d->news_now_ns = s->now_ns;
		return on_kernel(s, p, d, ev, step);
	default:
		return 0;
	}
}

bool device_has_call(const struct steps *s, const struct proc *p, const struct ring *ring)
{
	uint32_t i = (uint32_t)(p - s->roster->procs);

	return !ring->is_host && i < s->n_devices && s->devices[i].submits;
}

int device_call(struct steps *s, struct proc *p, const struct event *ev, uint32_t step,
		uint32_t group, uint64_t seq, uint64_t chunk)
{
	struct device *d = device_of(s, p);
	int64_t t_ns = (int64_t)ev->tick;
	struct rank_step *rs;
	struct step *st;
	uint32_t i = 0;
	int r = 0;

	if (!d)
		return -ENOMEM;
	if (step != EVENT_STEP_UNKNOWN)
		r = steps_open_both(s, step, p, chunk, &st, &rs);
	if (r < 0)
		return r;
	d->told = true;
	d->news_now_ns = s->now_ns;
	r = account(s, p, d, t_ns, step);
	if (ev->kind == EVENT_COLL_BEGIN) {
		if (d->n_calls < DEVICE_MAX_RUNNING)
			d->calls[d->n_calls++] = (struct running_call){
				.seq = seq, .step = step, .group = group, .name = ev->name,
				.low = event_low(ev->a) };
		return r;
	}
	while (i < d->n_calls && (d->calls[i].name != ev->name || d->calls[i].low != event_low(ev->a)))
		i++;
	if (i < d->n_calls) {
		step = d->calls[i].step;
		d->n_calls--;
		memmove(d->calls + i, d->calls + i + 1, (d->n_calls - i) * sizeof *d->calls);
	}
	/* What still ran beside the next step's kernels does not hold that step up. */
	if (step < d->kernel_step && d->kernel_ns != FACT_NONE && t_ns > d->kernel_ns)
		t_ns = d->kernel_ns;
	note_end(s, p, d, step, t_ns);
	return r == 0 && s->ended && group > 0
		       ? s->ended(s->ended_arg, p, group - 1, seq, ev, d) : r;
}

bool device_works(const struct steps *s, const struct step *st, const struct rank_step *rs)
{
	const struct device *d = device_known(s, rs->proc);

	if (!d || rs->n_open_work <= 0 || d->done_step > st->step + 1)
		return false;
	/* What was launched and is not heard of is waited for a while, then it is lost. */
	return d->n_kernels + d->n_calls > 0 ||
	       (!s->finishing && (d->news_now_ns == INT64_MIN || s->now_ns - d->news_now_ns < s->late_ns));
}

void device_cut(struct steps *s, const struct step *st, struct rank_step *rs)
{
	struct device *d = device_known(s, rs->proc);

	if (!d) {
		rs->from_ns = rs->begin_ns;
		rs->to_ns = rs->end_ns;
		return;
	}
	if (rs->from_ns == FACT_NONE) {
		rs->from_ns = rs->begin_ns;
		if (d->cut_step == st->step && d->cut_ns > rs->from_ns)
			rs->from_ns = d->cut_ns;
	}
	rs->to_ns = rs->end_ns > rs->device_ns ? rs->end_ns : rs->device_ns;
	if (rs->to_ns < rs->from_ns)
		rs->to_ns = rs->from_ns;
	if (st->step + 1 >= d->cut_step) {
		d->cut_step = st->step + 1;
		d->cut_ns = rs->to_ns;
	}
}
