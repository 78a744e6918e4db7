#include "gathers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NOT_BEGUN INT64_MIN
#define MASK (GATHERS_KEPT - 1)

void gathers_fini(struct gathers *g)
{
	for (uint32_t i = 0; i < g->n_procs; i++) {
		free(g->procs[i].v);
		free(g->procs[i].uses);
	}
	free(g->procs);
	*g = (struct gathers){ 0 };
}

const struct gathers_proc *gathers_of(const struct gathers *g, uint32_t proc)
{
	return proc < g->n_procs && g->procs[proc].n > 0 ? &g->procs[proc] : NULL;
}

static struct gathers_proc *proc_of(struct gathers *g, uint32_t proc)
{
	uint32_t n = g->n_procs ? g->n_procs : 8;
	void *grown;

	if (proc < g->n_procs)
		return &g->procs[proc];
	while (n <= proc)
		n *= 2;
	grown = realloc(g->procs, n * sizeof *g->procs);
	if (!grown)
		return NULL;
	g->procs = grown;
	memset(g->procs + g->n_procs, 0, (n - g->n_procs) * sizeof *g->procs);
	g->n_procs = n;
	return &g->procs[proc];
}

static void note_deep(struct gathers_proc *p, const struct gather_use *u)
{
	if (u->depth < GATHERS_DEEP)
		return;
	if (p->n_deep == 0)
		p->first_ns = u->submit_ns;
	if (u->depth == GATHERS_DEEP)
		p->n_deep++;
	if (u->depth > p->deepest.depth) {
		p->deepest = *u;
		p->last_ns = u->begin_ns;
	}
}

static void count(struct gathers_proc *p, struct gather_use *u, const struct gather_use *other)
{
	if (other->submit_ns >= u->begin_ns || other->step != u->step)
		return;
	u->depth++;
	u->n_in_flight += other->n_gathers;
	note_deep(p, u);
}

static uint64_t oldest(uint64_t n)
{
	return n > GATHERS_KEPT ? n - GATHERS_KEPT : 0;
}

static int on_submit(struct gathers_proc *p, const struct event *ev)
{
	uint32_t launch = (uint32_t)ev->b;

	if (!p->v) {
		p->v = calloc(GATHERS_KEPT, sizeof *p->v);
		p->uses = calloc(GATHERS_KEPT, sizeof *p->uses);
		if (!p->v || !p->uses)
			return -ENOMEM;
	}
	if (launch == 0 || (p->n > 0 && p->v[(p->n - 1) & MASK].launch == launch))
		return 0; /* calls of one launch are one */
	p->v[p->n++ & MASK] = (struct gather){ .launch = launch,
					       .stream = p->launch == launch ? p->stream : UINT16_MAX,
					       .submit_ns = (int64_t)ev->tick };
	p->n_waiting++;
	return 0;
}

/* A wait for a gather is one for all before it on its stream. */
static uint32_t take(struct gathers_proc *p, uint32_t launch, int64_t *ret_submit_ns)
{
	uint64_t i = p->n, first = oldest(p->n);
	uint32_t n = 0;
	uint16_t stream;

	while (i > first && p->v[(i - 1) & MASK].launch != launch)
		i--;
	if (i == first || p->v[(i - 1) & MASK].used)
		return 0;
	stream = p->v[(i - 1) & MASK].stream;
	for (; i > first; i--) {
		struct gather *v = &p->v[(i - 1) & MASK];

		if (v->stream != stream)
			continue;
		if (v->used)
			break;
		v->used = true;
		*ret_submit_ns = v->submit_ns;
		n++;
	}
	return n;
}

static void on_wait(struct gathers_proc *p, const struct event *ev)
{
	uint32_t launch = event_low(ev->a), n;
	struct gather_use *u = p->n_uses ? &p->uses[(p->n_uses - 1) & MASK] : NULL;
	int64_t submit_ns = 0;

	n = p->v ? take(p, (uint32_t)ev->b, &submit_ns) : 0;
	if (n == 0)
		return;
	if (p->n_waiting - n + 1 > p->most_ahead && p->n_waiting >= n)
		p->most_ahead = p->n_waiting - n + 1;
	p->n_waiting -= n < p->n_waiting ? n : p->n_waiting;
	if (u && u->launch == launch) {
		u->n_gathers += n;
		u->n_in_flight += n;
		u->submit_ns = submit_ns < u->submit_ns ? submit_ns : u->submit_ns;
		return;
	}
	u = &p->uses[p->n_uses & MASK];
	*u = (struct gather_use){ .launch = launch, .n_gathers = n, .n_in_flight = n, .depth = 1,
				  .submit_ns = submit_ns, .begin_ns = NOT_BEGUN,
				  .step = event_step(ev->a) };
	p->n_uses++;
	for (uint64_t i = oldest(p->n_uses); i + 1 < p->n_uses; i++)
		if (p->uses[i & MASK].begin_ns != NOT_BEGUN)
			count(p, &p->uses[i & MASK], u);
}

/* Kernels of a stream begin in the order of their launches. */
static void on_begin(struct gathers_proc *p, const struct event *ev)
{
	uint32_t launch = event_low(ev->a);
	struct gather_use *u;

	if (p->n_begun < oldest(p->n_uses))
		p->n_begun = oldest(p->n_uses);
	while (p->n_begun < p->n_uses && p->uses[p->n_begun & MASK].launch < launch)
		p->n_begun++;
	if (p->n_begun == p->n_uses || p->uses[p->n_begun & MASK].launch != launch)
		return;
	u = &p->uses[p->n_begun++ & MASK];
	u->begin_ns = (int64_t)ev->tick;
	for (uint64_t i = p->n_begun; i < p->n_uses; i++)
		count(p, u, &p->uses[i & MASK]);
}

int gathers_event(struct gathers *g, uint32_t proc, const struct event *ev)
{
	struct gathers_proc *p;

	if (ev->kind != EVENT_LAUNCH && ev->kind != EVENT_STREAM_WAIT && ev->kind != EVENT_KERNEL_BEGIN &&
	    (ev->kind != EVENT_COLL_SUBMIT || ev->flags >> 8 != OP_ALL_GATHER))
		return 0;
	p = proc_of(g, proc);
	if (!p)
		return -ENOMEM;
	if (ev->kind == EVENT_COLL_SUBMIT)
		return on_submit(p, ev);
	if (ev->kind == EVENT_STREAM_WAIT) {
		on_wait(p, ev);
	} else if (ev->kind == EVENT_KERNEL_BEGIN) {
		on_begin(p, ev);
	} else {
		p->launch = event_low(ev->a);
		p->stream = ev->flags;
	}
	return 0;
}
