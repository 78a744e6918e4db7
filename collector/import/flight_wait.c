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
	const struct flight_group **here; /* by dump; NULL = it has no such group */
	bool collectives, messages;
};

struct waiter {
	struct trace *t;
	uint32_t *dump_of; /* by rank: index + 1 */
	json_t *directions; /* that have a line */
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

static struct dumped_line *add_line(struct trace *t, const struct gathering *g)
{
	struct dumped *d = &t->dumped;
	struct dumped_line *v = more(t, &d->lines, &d->n_lines, &d->n_lines_alloc, sizeof *v);

	if (v)
		*v = (struct dumped_line){ .group = g->name, .what = g->what, .op = "", .first_seat = d->n_seats,
					   .call = -1, .over = -1 };
	return v;
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

/* Its group in that rank's dump, and the calls there; NULL. */
static const struct flight_group *group_of(const struct waiter *w, const struct gathering *g, int32_t rank,
					   const struct flight_call **calls)
{
	uint32_t dump = w->dump_of[rank];
	const struct flight_group *mine = dump ? g->here[dump - 1] : NULL;

	*calls = mine && mine->n_calls > 0 ? w->t->dumps[dump - 1]->calls + mine->first_call : NULL;
	return mine;
}

/* The last call of that kind, and the last one that has not ended; as they were, where there is none. */
static void last_calls(const struct flight_call *calls, uint32_t n, bool message, int64_t *entered, int64_t *pending)
{
	for (uint32_t i = 0; i < n; i++) {
		if (calls[i].message != message)
			continue;
		if (calls[i].number > *entered)
			*entered = calls[i].number;
		if (!calls[i].over && calls[i].number > *pending)
			*pending = calls[i].number;
	}
}

/* The first call that somebody is in and somebody else has not entered; else the last pending one. */
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

/* ---- collectives ---- */

static bool add_member(struct waiter *w, const struct gathering *g, struct dumped_line *v, int32_t rank, int64_t over)
{
	const struct flight_call *calls;
	const struct flight_group *mine = group_of(w, g, rank, &calls);
	int64_t entered = -1, pending = -1;

	if (mine)
		last_calls(calls, mine->n_calls, false, &entered, &pending);
	if (mine && !g->messages && mine->enqueued > entered)
		entered = mine->enqueued;
	else if ((!mine || g->messages || mine->enqueued == FLIGHT_UNKNOWN) && over > entered)
		entered = over;
	return add_seat(w->t, v, rank, w->dump_of[rank] > 0, entered, pending);
}

/* The last call that ended for one: all had entered it. A root may be done before the others come, and
 * counts only where it is not asked who had. */
static int64_t over_for_one(const struct trace *t, const struct gathering *g, bool roots)
{
	int64_t over = -1;

	for (uint32_t i = 0; i < t->n_dumps; i++) {
		const struct flight_group *mine = g->here[i];

		if (mine && !g->messages && mine->completed > over)
			over = mine->completed;
		for (uint32_t k = 0; mine && k < mine->n_calls; k++) {
			const struct flight_call *c = &t->dumps[i]->calls[mine->first_call + k];
			bool rooted = !roots && (c->op == OP_BROADCAST || c->op == OP_REDUCE || c->op == OP_GATHER ||
						 c->op == OP_SCATTER);

			if (!c->message && c->over && !rooted && c->number > over)
				over = c->number;
		}
	}
	return over;
}

static const struct flight_call *find_call(const struct trace *t, const struct gathering *g, int64_t number)
{
	for (uint32_t i = 0; i < t->n_dumps; i++)
		for (uint32_t k = 0; g->here[i] && k < g->here[i]->n_calls; k++) {
			const struct flight_call *c = &t->dumps[i]->calls[g->here[i]->first_call + k];

			if (!c->message && !c->over && c->number == number)
				return c;
		}
	return NULL;
}

static bool line_of_collectives(struct waiter *w, const struct gathering *g)
{
	struct trace *t = w->t;
	struct dumped_line *v = add_line(t, g);
	int64_t over = over_for_one(t, g, false);
	const struct flight_call *c;

	if (!v)
		return false;
	for (uint32_t i = 0; g->ranks && i < g->n_ranks; i++)
		if (!add_member(w, g, v, g->ranks[i], over))
			return false;
	for (uint32_t i = 0; !g->ranks && i < t->n_dumps; i++)
		if (g->here[i] && !add_member(w, g, v, t->dumps[i]->rank, over))
			return false;
	v->call = first_awaited(&t->dumped, v);
	v->over = over_for_one(t, g, true);
	c = v->call >= 0 ? find_call(t, g, v->call) : NULL;
	v->op = c && c->op ? event_op_name(c->op) : "call";
	v->at_ns = c ? c->created_ns : 0;
	return true;
}

/* ---- messages ---- */

/* Do all messages of a in this group that one sees go to b, or come from it? */
static bool only_with(const struct waiter *w, const struct gathering *g, int32_t a, int32_t b)
{
	const struct flight_call *calls;
	const struct flight_group *mine = group_of(w, g, a, &calls);

	for (uint32_t i = 0; mine && i < mine->n_calls; i++)
		if (calls[i].message && (calls[i].from == a ? calls[i].to : calls[i].from) != b)
			return false;
	return true;
}

/* Is one number on both sides never a send, or never a receive, twice? Else both send first. */
static bool mirrored(const struct waiter *w, const struct gathering *g, const int32_t ranks[2])
{
	const struct flight_call *x, *y;
	const struct flight_group *a = group_of(w, g, ranks[0], &x), *b = group_of(w, g, ranks[1], &y);
	const struct flight_dump *d = b ? w->t->dumps[w->dump_of[ranks[1]] - 1] : NULL;

	for (uint32_t i = 0; a && y && i < a->n_calls; i++) {
		struct flight_call back = { .group = y->group, .message = true, .from = x[i].to, .to = x[i].from,
					    .number = x[i].number };
		uint32_t at = flight_place(d, &back);
		const struct flight_call *c = &d->calls[at];

		if (x[i].message && !x[i].over && at < d->n_calls && c->group == back.group && c->message &&
		    c->from == back.from && c->to == back.to && c->number == back.number)
			return false;
	}
	return true;
}

/* The k-th message of that direction that has not ended for that rank; NULL. Its end: how many there are. */
static const struct flight_call *nth_pending(const struct waiter *w, const struct gathering *g, int32_t rank,
					     const int32_t ranks[2], uint32_t k, uint32_t *ret_n)
{
	const struct flight_call *calls, *found = NULL;
	const struct flight_group *mine = group_of(w, g, rank, &calls);
	uint32_t n = 0;

	for (uint32_t i = 0; mine && i < mine->n_calls; i++) {
		const struct flight_call *c = &calls[i];

		if (!c->message || c->over || c->from != ranks[0] || c->to != ranks[1])
			continue;
		if (n++ == k)
			found = c;
	}
	if (ret_n)
		*ret_n = n;
	return found;
}

/* They talk only with each other, so their numbers are one count, of both directions. */
static bool add_mutual(struct waiter *w, const struct gathering *g, struct dumped_line *v, const int32_t ranks[2])
{
	for (int side = 0; side < 2; side++) {
		const struct flight_call *calls, *last;
		const struct flight_group *mine = group_of(w, g, ranks[side], &calls);
		int64_t entered = -1, any = -1;
		uint32_t n;

		(void)nth_pending(w, g, ranks[side], ranks, 0, &n);
		last = n > 0 ? nth_pending(w, g, ranks[side], ranks, n - 1, NULL) : NULL;
		if (mine)
			last_calls(calls, mine->n_calls, true, &entered, &any);
		if (mine && !g->collectives && mine->enqueued > entered)
			entered = mine->enqueued;
		if (!add_seat(w->t, v, ranks[side], w->dump_of[ranks[side]] > 0, entered, last ? last->number : -1))
			return false;
	}
	return true;
}

/* Each has messages with others in between. What has not ended is laid beside each other, in the
 * numbers of who has more of it. */
static bool add_counted(struct waiter *w, const struct gathering *g, struct dumped_line *v, const int32_t ranks[2])
{
	int32_t more_of;
	uint32_t n[2];

	(void)nth_pending(w, g, ranks[0], ranks, 0, &n[0]);
	(void)nth_pending(w, g, ranks[1], ranks, 0, &n[1]);
	more_of = ranks[n[1] > n[0]];
	for (int side = 0; side < 2; side++) {
		int64_t last = nth_pending(w, g, more_of, ranks, n[side] > 0 ? n[side] - 1 : 0, NULL)->number;

		if (!add_seat(w->t, v, ranks[side], w->dump_of[ranks[side]] > 0, n[side] > 0 ? last : last - 1,
			      n[side] > 0 ? last : -1))
			return false;
	}
	return true;
}

static bool line_of_messages(struct waiter *w, const struct gathering *g, const int32_t ranks[2])
{
	const struct flight_call *first;
	struct dumped_line *v;
	char key[64];
	bool mutual;

	snprintf(key, sizeof key, "%p %d %d", (const void *)g->name, ranks[0], ranks[1]);
	if (json_object_get(w->directions, key))
		return true; /* from the other side's dump */
	if (json_object_set_new(w->directions, key, json_true()) != 0)
		return no_memory(w->t);
	mutual = only_with(w, g, ranks[0], ranks[1]) && only_with(w, g, ranks[1], ranks[0]) && mirrored(w, g, ranks);
	first = nth_pending(w, g, ranks[0], ranks, 0, NULL);
	first = first ? first : nth_pending(w, g, ranks[1], ranks, 0, NULL);
	v = first ? add_line(w->t, g) : NULL;
	if (!v)
		return !w->t->no_memory;
	v->op = "message";
	v->message = true;
	v->at_ns = first->created_ns;
	if (mutual ? !add_mutual(w, g, v, ranks) : !add_counted(w, g, v, ranks))
		return false;
	v->call = first_awaited(&w->t->dumped, v);
	return true;
}

static bool lines_of_messages(struct waiter *w, const struct gathering *g)
{
	for (uint32_t i = 0; i < w->t->n_dumps; i++)
		for (uint32_t k = 0; g->here[i] && k < g->here[i]->n_calls; k++) {
			const struct flight_call *c = &w->t->dumps[i]->calls[g->here[i]->first_call + k];
			const int32_t ranks[2] = { c->from, c->to };

			if (c->message && !c->over && c->from >= 0 && c->to >= 0 && c->from != c->to &&
			    !line_of_messages(w, g, ranks))
				return false;
		}
	return true;
}

/* ---- groups ---- */

static void gather(const struct trace *t, struct gathering *g)
{
	for (uint32_t i = 0; i < t->n_dumps; i++) {
		const struct flight_dump *d = t->dumps[i];
		int32_t index = flight_group_of(d, g->name);
		const struct flight_group *mine = index < 0 || d->groups[index].local ? NULL : &d->groups[index];

		g->here[i] = mine;
		if (!mine)
			continue;
		if (mine->n_ranks > 0 && !g->ranks) {
			g->ranks = mine->ranks;
			g->n_ranks = mine->n_ranks;
		}
		g->what = *g->what || !mine->what ? g->what : mine->what;
		for (uint32_t k = 0; k < mine->n_calls; k++) {
			g->messages |= d->calls[mine->first_call + k].message;
			g->collectives |= !d->calls[mine->first_call + k].message;
		}
	}
}

/* Each group that somebody has called in, once; its name is that of the first dump that has it. */
static bool add_lines(struct waiter *w)
{
	const struct flight_group **here = calloc((size_t)w->t->n_dumps + 1, sizeof *here);
	json_t *done = json_object();
	bool fine = here && done;

	for (uint32_t i = 0; i < w->t->n_dumps && fine; i++)
		for (uint32_t k = 0; k < w->t->dumps[i]->n_groups && fine; k++) {
			const struct flight_group *first = &w->t->dumps[i]->groups[k];
			struct gathering g = { .name = first->name, .what = "", .here = here };

			if (first->n_calls == 0 || first->local || json_object_get(done, first->name))
				continue;
			fine = json_object_set_new_nocheck(done, first->name, json_true()) == 0;
			gather(w->t, &g);
			fine = fine && (!g.collectives || line_of_collectives(w, &g)) &&
			       (!g.messages || lines_of_messages(w, &g));
		}
	free(here);
	json_decref(done);
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
		return false;
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
	struct waiter w = { t, calloc(FACT_MAX_RANKS, sizeof *w.dump_of), json_object() };
	bool fine = w.dump_of && w.directions;

	for (uint32_t i = 0; i < t->n_dumps && fine; i++)
		w.dump_of[t->dumps[i]->rank] = i + 1;
	t->dumped.n_dumps = t->n_dumps;
	fine = fine && find_missing(&w) && add_lines(&w);
	free(w.dump_of);
	json_decref(w.directions);
	return fine || no_memory(t);
}
