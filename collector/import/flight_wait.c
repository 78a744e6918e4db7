/* flight_wait.c - all dumps together: of each group, and of each direction of messages, how far
 * each of its ranks has come.
 *
 * What a rank's dump does not show is taken from its status of the group, and where there is no
 * dump from the others: what ended for one, all had entered. The status has one number for
 * collectives and messages, so it counts only in groups that make one kind of them.
 */
#include "flight.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gathering { /* of one group, over all dumps */
	const char *name, *what;
	const int32_t *ranks; /* NULL = whoever has it in his dump */
	uint32_t n_ranks;
	int32_t *here; /* dumps that have it: index, by dump; -1 */
	bool collectives, messages;
};

struct waiter {
	struct trace *t;
	uint32_t *dump_of; /* by rank: index + 1 */
};

static bool no_memory(struct trace *t)
{
	t->no_memory = true;
	return false;
}

/* One more, zeroed. */
static void *more(struct trace *t, void *v, uint32_t *n, uint32_t *n_alloc, size_t size)
{
	if (*n == *n_alloc) {
		uint32_t want = *n_alloc ? 2 * *n_alloc : 64;
		void *grown = realloc(*(void **)v, want * size);

		if (!grown) {
			t->no_memory = true;
			return NULL;
		}
		*(void **)v = grown;
		*n_alloc = want;
	}
	return memset(*(char **)v + size * (*n)++, 0, size);
}

static const struct flight_group *group_in(const struct trace *t, const struct gathering *g, uint32_t dump)
{
	return g->here[dump] < 0 ? NULL : &t->dumps[dump]->groups[g->here[dump]];
}

static bool add_seat(struct trace *t, struct dumped_line *v, int32_t rank, bool heard, int64_t entered, int64_t pending)
{
	struct dumped *d = &t->dumped;
	struct dumped_seat *s = more(t, &d->seats, &d->n_seats, &d->n_seats_alloc, sizeof *s);

	if (!s)
		return false;
	*s = (struct dumped_seat){ rank, heard, entered, pending };
	v->n_seats++;
	return true;
}

/* Its last call of that kind, and the last one that has not ended; -1. */
static void last_calls(const struct flight_dump *d, uint32_t group, bool message, int64_t *entered, int64_t *pending,
		       int64_t *over)
{
	for (uint32_t i = 0; i < d->n_calls; i++) {
		const struct flight_call *c = &d->calls[i];
		int64_t *last = c->over ? over : pending;

		if (c->group != group || c->message != message)
			continue;
		*entered = c->number > *entered ? c->number : *entered;
		*last = c->number > *last ? c->number : *last;
	}
}

static bool add_member(struct waiter *w, const struct gathering *g, struct dumped_line *v, int32_t rank, int64_t over)
{
	uint32_t dump = w->dump_of[rank];
	const struct flight_group *mine = dump ? group_in(w->t, g, dump - 1) : NULL;
	int64_t entered = -1, pending = -1, own_over = -1;

	if (mine)
		last_calls(w->t->dumps[dump - 1], (uint32_t)g->here[dump - 1], false, &entered, &pending, &own_over);
	if (mine && !g->messages && mine->enqueued > entered)
		entered = mine->enqueued;
	else if ((!mine || g->messages || mine->enqueued == FLIGHT_UNKNOWN) && over > entered)
		entered = over;
	return add_seat(w->t, v, rank, dump > 0, entered, pending);
}

/* The last call that ended for one: all had entered it. A root may be done before the others come, and
 * counts only where it is not asked who had. */
static int64_t over_for_one(const struct trace *t, const struct gathering *g, bool roots)
{
	int64_t over = -1;

	for (uint32_t i = 0; i < t->n_dumps; i++) {
		const struct flight_group *mine = group_in(t, g, i);
		const struct flight_dump *d = t->dumps[i];

		if (mine && !g->messages && mine->completed > over)
			over = mine->completed;
		for (uint32_t k = 0; mine && k < d->n_calls; k++) {
			const struct flight_call *c = &d->calls[k];
			bool rooted = !roots && (c->op == OP_BROADCAST || c->op == OP_REDUCE || c->op == OP_GATHER ||
				      c->op == OP_SCATTER);

			if (c->group == (uint32_t)g->here[i] && !c->message && c->over && !rooted && c->number > over)
				over = c->number;
		}
	}
	return over;
}

static const struct flight_call *find_call(const struct trace *t, const struct gathering *g, int64_t number)
{
	for (uint32_t i = 0; i < t->n_dumps; i++)
		for (uint32_t k = 0; g->here[i] >= 0 && k < t->dumps[i]->n_calls; k++) {
			const struct flight_call *c = &t->dumps[i]->calls[k];

			if (c->group == (uint32_t)g->here[i] && !c->message && !c->over && c->number == number)
				return c;
		}
	return NULL;
}

/* The first call that somebody is in and somebody else has not entered. */
static int64_t first_awaited(const struct dumped *d, const struct dumped_line *v)
{
	int64_t last = -1, first = INT64_MAX, least_pending = INT64_MAX;

	for (uint32_t i = 0; i < v->n_seats; i++) {
		const struct dumped_seat *s = &d->seats[v->first_seat + i];

		last = s->pending > last ? s->pending : last;
		if (s->pending >= 0 && s->pending < least_pending)
			least_pending = s->pending;
	}
	for (uint32_t i = 0; i < v->n_seats; i++) {
		const struct dumped_seat *s = &d->seats[v->first_seat + i];

		if (s->entered < last && s->entered + 1 < first)
			first = s->entered < 0 ? least_pending : s->entered + 1;
	}
	return first == INT64_MAX ? last : first;
}

static bool line_of_collectives(struct waiter *w, const struct gathering *g)
{
	struct trace *t = w->t;
	struct dumped *d = &t->dumped;
	struct dumped_line *v = more(t, &d->lines, &d->n_lines, &d->n_lines_alloc, sizeof *v);
	const struct flight_call *c;
	int64_t over = over_for_one(t, g, false);

	if (!v)
		return false;
	*v = (struct dumped_line){ .group = g->name, .what = g->what, .op = "", .first_seat = d->n_seats };
	for (uint32_t i = 0; g->ranks && i < g->n_ranks; i++)
		if (!add_member(w, g, v, g->ranks[i], over))
			return false;
	for (uint32_t i = 0; !g->ranks && i < t->n_dumps; i++)
		if (g->here[i] >= 0 && !add_member(w, g, v, t->dumps[i]->rank, over))
			return false;
	v->call = first_awaited(d, v);
	c = find_call(t, g, v->call);
	v->over = over_for_one(t, g, true);
	v->op = c ? event_op_name(c->op) : "a collective";
	v->at_ns = c ? c->created_ns : 0;
	return true;
}

/* ---- messages ---- */

/* Do all messages of a in this group that one sees go to b, or come from it? Then both count alike. */
static bool only_with(const struct trace *t, const struct gathering *g, uint32_t dump, int32_t a, int32_t b)
{
	const struct flight_dump *d = dump ? t->dumps[dump - 1] : NULL;

	for (uint32_t i = 0; d && g->here[dump - 1] >= 0 && i < d->n_calls; i++) {
		const struct flight_call *c = &d->calls[i];

		if (c->group == (uint32_t)g->here[dump - 1] && c->message && (c->from == a ? c->to : c->from) != b)
			return false;
	}
	return true;
}

/* Numbers of both sides are one count where they talk only with each other; else what is left on
 * each side is counted. */
static bool add_side(struct waiter *w, const struct gathering *g, struct dumped_line *v, const int32_t ranks[2],
		     int side, bool mutual)
{
	uint32_t dump = w->dump_of[ranks[side]];
	const struct flight_dump *d = dump ? w->t->dumps[dump - 1] : NULL;
	const struct flight_group *mine = dump ? group_in(w->t, g, dump - 1) : NULL;
	int64_t entered = -1, pending = -1, over = -1, n = 0, own = -1;

	if (mine && mutual) {
		last_calls(d, (uint32_t)g->here[dump - 1], true, &entered, &own, &over);
		if (!g->collectives && mine->enqueued > entered)
			entered = mine->enqueued;
	}
	for (uint32_t i = 0; mine && i < d->n_calls; i++) {
		const struct flight_call *c = &d->calls[i];

		if (c->group == (uint32_t)g->here[dump - 1] && c->message && !c->over && c->from == ranks[0] &&
		    c->to == ranks[1]) {
			pending = mutual ? c->number : ++n;
			v->call = v->call < 0 ? c->number : v->call;
			v->at_ns = v->at_ns ? v->at_ns : c->created_ns;
		}
	}
	return add_seat(w->t, v, ranks[side], dump > 0, mutual ? entered : n > 0 ? n : -1, pending);
}

static bool line_of_messages(struct waiter *w, const struct gathering *g, const int32_t ranks[2])
{
	struct dumped *d = &w->t->dumped;
	struct dumped_line *v;
	bool mutual = only_with(w->t, g, w->dump_of[ranks[0]], ranks[0], ranks[1]) &&
		      only_with(w->t, g, w->dump_of[ranks[1]], ranks[1], ranks[0]);

	for (uint32_t i = d->n_lines; i-- > 0 && strcmp(d->lines[i].group, g->name) == 0;) {
		const struct dumped_seat *s = &d->seats[d->lines[i].first_seat];

		if (d->lines[i].message && s[0].rank == ranks[0] && s[1].rank == ranks[1])
			return true; /* from the other side's dump */
	}
	v = more(w->t, &d->lines, &d->n_lines, &d->n_lines_alloc, sizeof *v);
	if (!v)
		return false;
	*v = (struct dumped_line){ .group = g->name, .what = g->what, .op = "message", .message = true, .call = -1,
				   .first_seat = d->n_seats };
	if (!add_side(w, g, v, ranks, 0, mutual) || !add_side(w, g, v, ranks, 1, mutual))
		return false;
	if (mutual)
		v->call = first_awaited(d, v);
	return true;
}

static bool lines_of_messages(struct waiter *w, const struct gathering *g)
{
	for (uint32_t i = 0; i < w->t->n_dumps; i++) {
		const struct flight_dump *d = w->t->dumps[i];

		for (uint32_t k = 0; g->here[i] >= 0 && k < d->n_calls; k++) {
			const struct flight_call *c = &d->calls[k];
			const int32_t ranks[2] = { c->from, c->to };

			if (c->group == (uint32_t)g->here[i] && c->message && !c->over && c->from >= 0 && c->to >= 0 &&
			    !line_of_messages(w, g, ranks))
				return false;
		}
	}
	return true;
}

/* ---- groups ---- */

static void gather(const struct trace *t, struct gathering *g)
{
	for (uint32_t i = 0; i < t->n_dumps; i++) {
		const struct flight_dump *d = t->dumps[i];

		g->here[i] = -1;
		for (uint32_t k = 0; k < d->n_groups && g->here[i] < 0; k++)
			if (!d->groups[k].local && strcmp(d->groups[k].name, g->name) == 0)
				g->here[i] = (int32_t)k;
		if (g->here[i] < 0)
			continue;
		if (d->groups[g->here[i]].n_ranks > 0 && !g->ranks) {
			g->ranks = d->groups[g->here[i]].ranks;
			g->n_ranks = d->groups[g->here[i]].n_ranks;
		}
		g->what = *g->what || !d->groups[g->here[i]].what ? g->what : d->groups[g->here[i]].what;
		for (uint32_t k = 0; k < d->n_calls; k++)
			if (d->calls[k].group == (uint32_t)g->here[i]) {
				g->messages |= d->calls[k].message;
				g->collectives |= !d->calls[k].message;
			}
	}
}

/* Groups that somebody has called in, by name. */
static bool list_groups(const struct trace *t, json_t *names)
{
	for (uint32_t i = 0; i < t->n_dumps; i++) {
		const struct flight_dump *d = t->dumps[i];

		for (uint32_t k = 0; k < d->n_calls; k++)
			if (!d->groups[d->calls[k].group].local &&
			    json_object_set_new_nocheck(names, d->groups[d->calls[k].group].name, json_true()) != 0)
				return false;
	}
	return true;
}

static bool add_lines(struct waiter *w, json_t *names)
{
	int32_t *here = calloc((size_t)w->t->n_dumps + 1, sizeof *here);
	bool fine = here != NULL;
	const char *name;
	json_t *v;

	json_object_foreach(names, name, v)
	{
		struct gathering g = { .what = "", .here = here };

		for (uint32_t i = 0; i < w->t->n_dumps; i++) /* the name's owner is a dump */
			for (uint32_t k = 0; k < w->t->dumps[i]->n_groups && !g.name; k++)
				if (strcmp(w->t->dumps[i]->groups[k].name, name) == 0)
					g.name = w->t->dumps[i]->groups[k].name;
		if (!fine || !g.name)
			continue;
		gather(w->t, &g);
		fine = (!g.collectives || line_of_collectives(w, &g)) && (!g.messages || lines_of_messages(w, &g));
	}
	free(here);
	return fine;
}

/* Of the world, or of the groups that the dumps have. */
static bool find_missing(struct waiter *w)
{
	struct trace *t = w->t;
	struct dumped *d = &t->dumped;
	bool *known = calloc(FACT_MAX_RANKS, sizeof *known);

	d->missing = calloc(FACT_MAX_RANKS, sizeof *d->missing);
	if (!known || !d->missing) {
		free(known);
		return no_memory(t);
	}
	for (uint32_t i = 0; i < t->n_dumps; i++)
		for (uint32_t k = 0; k < t->dumps[i]->n_groups; k++)
			for (uint32_t n = 0; n < t->dumps[i]->groups[k].n_ranks; n++)
				known[t->dumps[i]->groups[k].ranks[n]] = true;
	for (int32_t i = 0; i < FACT_MAX_RANKS; i++)
		if (known[i] && !w->dump_of[i])
			d->missing[d->n_missing++] = i;
	free(known);
	return true;
}

bool flight_wait(struct trace *t)
{
	struct waiter w = { t, calloc(FACT_MAX_RANKS, sizeof *w.dump_of) };
	json_t *names = json_object();
	bool fine = w.dump_of && names;

	for (uint32_t i = 0; i < t->n_dumps && fine; i++)
		w.dump_of[t->dumps[i]->rank] = i + 1;
	t->dumped.n_dumps = t->n_dumps;
	fine = fine && find_missing(&w) && list_groups(t, names) && add_lines(&w, names);
	free(w.dump_of);
	json_decref(names);
	return fine || no_memory(t);
}
