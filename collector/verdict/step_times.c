#include "step_times.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MIN_SLOTS 16
#define MAX_SLOTS 256

void step_times_fini(struct step_times *t)
{
	for (uint32_t i = 0; i < t->n_procs; i++)
		free(t->procs[i].v);
	free(t->procs);
	*t = (struct step_times){ 0 };
}

static struct step_times_proc *proc_of(struct step_times *t, uint32_t proc)
{
	uint32_t n = t->n_procs ? t->n_procs : 8;
	void *grown;

	if (proc < t->n_procs)
		return &t->procs[proc];
	while (n <= proc)
		n *= 2;
	grown = realloc(t->procs, n * sizeof *t->procs);
	if (!grown)
		return NULL;
	t->procs = grown;
	memset(t->procs + t->n_procs, 0, (n - t->n_procs) * sizeof *t->procs);
	t->n_procs = n;
	return &t->procs[proc];
}

/* The ring is not yet as large as it may be: its entries still lie in order. */
static bool make_room(struct step_times_proc *p)
{
	uint32_t n = p->n_slots ? 2 * p->n_slots : MIN_SLOTS;
	void *grown;

	if (p->n < p->n_slots || p->n_slots == MAX_SLOTS)
		return true;
	grown = realloc(p->v, n * sizeof *p->v);
	if (!grown)
		return false;
	p->v = grown;
	p->n_slots = n;
	return true;
}

int step_times_event(struct step_times *t, uint32_t proc, const struct event *ev)
{
	struct step_times_proc *p;

	if (ev->kind != EVENT_STEP_BEGIN)
		return 0;
	p = proc_of(t, proc);
	if (!p || !make_room(p))
		return -ENOMEM;
	p->v[p->n++ & (p->n_slots - 1)] =
		(struct step_begin){ (int64_t)ev->tick, event_step(ev->a) };
	return 0;
}

uint32_t step_times_at(const struct step_times *t, uint32_t proc, int64_t at_ns)
{
	const struct step_times_proc *p = proc < t->n_procs ? &t->procs[proc] : NULL;
	uint64_t first = p && p->n > p->n_slots ? p->n - p->n_slots : 0;

	for (uint64_t i = p ? p->n : 0; i > first; i--) {
		const struct step_begin *v = &p->v[(i - 1) & (p->n_slots - 1)];

		if (v->at_ns <= at_ns)
			return v->step;
	}
	return EVENT_STEP_UNKNOWN;
}
