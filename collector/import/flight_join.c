/* flight_join.c - dumps as events: who called what.
 *
 * A call begins when the host made it. Dumps know its end only as the moment when somebody
 * looked, so no end is told: that it ended is in t->dumped. Each rank's clock stays its own.
 */
#include "flight.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool has_counted_size(unsigned op)
{
	return op != OP_SCATTER && op != OP_ALL_TO_ALL && op != OP_BARRIER && op != OP_UNKNOWN;
}

static bool tell_call(struct trace *t, struct trace_rank *r, const struct flight_dump *d, const struct flight_call *c,
		      int64_t begin_ns)
{
	const struct flight_group *g = &d->groups[c->group];
	bool sized = !c->unsized || !has_counted_size(c->op);
	struct event ev = { .tick = (uint64_t)begin_ns, .kind = EVENT_COLL_BEGIN,
			    .flags = event_coll_flags(c->op, sized ? c->dtype : DTYPE_UNKNOWN),
			    .a = event_a(EVENT_STEP_UNKNOWN, (uint32_t)c->number),
			    .b = !c->unsized && c->bytes < UINT64_C(1) << 50 ? c->bytes : 0 };
	char name[200];

	if (c->message)
		snprintf(name, sizeof name, "%.150s p2p %d>%d", g->name, c->from, c->to);
	else
		snprintf(name, sizeof name, "%.190s", g->name);
	ev.name = trace_name(t, r, name);
	if (ev.name == 0 || (c->message && (c->from < 0 || c->to < 0)))
		return !t->no_memory;
	return trace_say(t, r, TRACE_HOST, &ev);
}

static bool tell(struct trace *t, const struct flight_dump *d)
{
	int64_t before_ns = 1;
	struct trace_rank *r;
	char host[32];
	bool fine = true;

	snprintf(host, sizeof host, "of rank %d", d->rank);
	r = trace_add_rank(t, d->rank, host);
	if (!r)
		return false;
	r->clock = t->n_ranks - 1;
	for (uint32_t i = 0; i < d->n_calls && fine; i++) {
		const struct flight_call *c = &d->calls[i];

		before_ns = c->created_ns > 0 ? c->created_ns : before_ns;
		fine = tell_call(t, r, d, c, before_ns);
	}
	return fine || !t->no_memory;
}

/* The job's own group: all there are, where nobody says who is in it. */
static bool declare(struct trace *t, const struct flight_dump *d)
{
	for (uint32_t i = 0; i < d->n_groups; i++) {
		const struct flight_group *g = &d->groups[i];
		bool job = g->what && strcmp(g->what, "default_pg") == 0;

		if (g->n_ranks > 0 && !g->local && !trace_group(t, g->name, g->ranks, g->n_ranks))
			return false;
		if (g->n_ranks > 0 && (job || strcmp(g->name, "0") == 0) && (int32_t)g->n_ranks > t->world_size)
			t->world_size = (int32_t)g->n_ranks;
	}
	return true;
}

bool flight_join(struct trace *t)
{
	bool alone = t->n_ranks == 0, fine = true;

	if (t->n_dumps == 0)
		return true;
	for (uint32_t i = 0; i < t->n_dumps && fine; i++)
		fine = !alone || (declare(t, t->dumps[i]) && tell(t, t->dumps[i]));
	if (!fine || !flight_wait(t))
		return false;
	t->dumped.alone = alone;
	if (alone)
		t->clock_method = "none: each rank's calls have its own host's time";
	return true;
}
