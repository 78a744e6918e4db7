/* core_lives.c - events that wait: for the rank of their process, or for the turn of their
 * life (steps.h says why only one at a time has the end of the line).
 */
#include "core_internal.h"

#define MAX_EARLY 65536 /* events kept of a process whose rank is not known yet, or whose life waits */
#define MAX_HELD (1u << 20) /* of all that wait: two lives at once take turns when it is full */

static int keep_early(struct core *c, struct proc *p, uint32_t ring, uint64_t chunk,
		      const struct event *ev, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (p->n_early == p->n_early_alloc) {
			size_t want = p->n_early_alloc ? 2 * p->n_early_alloc : 64;
			struct early *grown;

			if (want > MAX_EARLY) {
				c->n_lost += n - i;
				p->n_lost_pending += n - i;
				return 0;
			}
			grown = realloc(p->early, want * sizeof *grown);
			if (!grown)
				return -ENOMEM;
			p->early = grown;
			p->n_early_alloc = want;
		}
		p->early[p->n_early++] = (struct early){ ring, chunk, ev[i] };
		c->n_held += p->life != 0;
	}
	return 0;
}

int32_t core_restart_count(const struct core *c, const struct proc *p)
{
	return c->steps.lives[p->life - 1].restart_count;
}

/* The lowest of those that wait; false when none does. */
static bool find_waiting(const struct core *c, int32_t *ret)
{
	bool any = false;

	for (uint32_t i = 0; c->n_held > 0 && i < c->roster.n_procs; i++) {
		const struct proc *p = &c->roster.procs[i];

		if (!p->life || p->n_early == 0 || (any && core_restart_count(c, p) >= *ret))
			continue;
		*ret = core_restart_count(c, p);
		any = true;
	}
	return any;
}

struct queue { /* what waited of one process */
	struct early *v;
	size_t n, at;
	uint32_t proc; /* index */
};

/* In the order of their chunks, as they came: the window of open steps is narrow. */
static int feed_queues(struct core *c, struct queue *q, size_t n_queues)
{
	for (;;) {
		struct queue *first = NULL;
		uint64_t chunk;

		for (size_t i = 0; i < n_queues; i++)
			if (q[i].at < q[i].n &&
			    (!first || q[i].v[q[i].at].chunk < first->v[first->at].chunk))
				first = &q[i];
		if (!first)
			return 0;
		chunk = first->v[first->at].chunk;
		for (; first->at < first->n && first->v[first->at].chunk == chunk; first->at++) {
			int r = core_admit(c, &c->roster.procs[first->proc], first->v[first->at].ring,
					   chunk, &first->v[first->at].ev, 1);

			if (r < 0)
				return r;
		}
	}
}

static int let_in(struct core *c, int32_t restart_count, bool over)
{
	struct queue *q = calloc(c->roster.n_procs, sizeof *q);
	size_t n = 0;
	int r = q ? steps_begin(&c->steps, restart_count, over, c->last_chunk) : -ENOMEM;

	for (uint32_t i = 0; r == 0 && i < c->roster.n_procs; i++) {
		struct proc *p = &c->roster.procs[i];

		if (!p->life || p->n_early == 0 || core_restart_count(c, p) != restart_count)
			continue;
		q[n++] = (struct queue){ .v = p->early, .n = p->n_early, .proc = i };
		c->n_held -= p->n_early;
		p->early = NULL;
		p->n_early = p->n_early_alloc = 0;
	}
	if (r == 0)
		r = feed_queues(c, q, n);
	for (size_t i = 0; i < n; i++)
		free(q[i].v);
	free(q);
	return r;
}

int core_hold(struct core *c, struct proc *p, uint32_t ring, uint64_t chunk,
	      const struct event *ev, size_t n)
{
	int32_t rc = core_restart_count(c, p);
	int r;

	if (n == 0)
		return 0;
	if (p->n_early == 0 && c->steps.n_spans == 0 && c->steps.n_lives == 1 && rc == 0) {
		r = steps_begin(&c->steps, rc, true, 0); /* nobody to wait for */
		return r < 0 ? r : core_feed(c, p, ring, chunk, ev, n);
	}
	if (p->n_early + n > MAX_EARLY || c->n_held + n > MAX_HELD) {
		r = let_in(c, rc, false);
		return r < 0 ? r : core_admit(c, p, ring, chunk, ev, n);
	}
	if (c->n_held == 0)
		c->steps.held_now_ns = c->steps.now_ns;
	return keep_early(c, p, ring, chunk, ev, n);
}

int core_admit(struct core *c, struct proc *p, uint32_t ring_id, uint64_t chunk,
	       const struct event *ev, size_t n)
{
	if (!p->life)
		return keep_early(c, p, ring_id, chunk, ev, n);
	return p->n_early > 0 ? core_hold(c, p, ring_id, chunk, ev, n)
			      : core_feed(c, p, ring_id, chunk, ev, n);
}

/* all: nobody is waited for any longer. */
int core_let_in(struct core *c, bool all)
{
	int32_t rc = 0;

	while (find_waiting(c, &rc)) {
		bool over = true;
		int r;

		if (!all && !steps_may_begin(&c->steps, rc, &over))
			return 0;
		r = let_in(c, rc, over);
		if (r < 0)
			return r;
		if (c->n_held > 0) /* the next one waits for this one */
			c->steps.held_now_ns = c->steps.now_ns;
	}
	return 0;
}
