/* arrivals_replay.c - one step as segments of its ranks between its collectives, and
 * what it takes without a rank's excess. */
#include "arrivals_internal.h"

#include "replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ASKED 8	   /* ranks of a step, each two replays … */
#define MAX_VISITS 4000000 /* … of operations, in all of them */
#define BEGIN UINT32_MAX   /* instead of a group: the begin of the step */

struct segment {
	int64_t ns;
	int64_t fair_ns; /* without the excess over its peers */
	int64_t wait_ns; /* in the call that ends it */
	int64_t turn_ns; /* when the last came to that call: the order of calls */
	uint32_t from;	 /* group */
	uint32_t op, call, place;
};

struct job { /* a step on its way */
	const struct arrivals *a;
	struct open_step *s;
	struct replay *r;
	struct segment *v; /* by call, then the ends */
	size_t n;
	struct segment **of_op; /* by operation; NULL = a transfer */
	int e;
};

struct choice {
	const struct job *job;
	uint32_t place; /* EVERYBODY */
	bool ideal; /* it is; otherwise all but it are */
};

#define EVERYBODY UINT32_MAX

static int64_t choose(const void *arg, uint32_t i, const struct replay_op *op)
{
	const struct choice *c = arg;
	const struct segment *s = c->job->of_op[i];

	if (!s)
		return op->ns;
	return (c->place == EVERYBODY || s->place == c->place) == c->ideal ? s->fair_ns : s->ns;
}

static int64_t run(const struct job *j, uint32_t place, bool ideal)
{
	struct choice c = { j, place, ideal };

	return replay_run(j->r, choose, &c, NULL);
}

static int by_rank(const void *a, const void *b)
{
	const struct visit *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->enter_ns != y->enter_ns)
		return x->enter_ns < y->enter_ns ? -1 : 1;
	return x->call < y->call ? -1 : x->call > y->call;
}

static int by_turn(const void *a, const void *b)
{
	const struct segment *x = a, *y = b;

	if (x->turn_ns != y->turn_ns)
		return x->turn_ns < y->turn_ns ? -1 : 1;
	if (x->call != y->call)
		return x->call < y->call ? -1 : 1;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->place < y->place ? -1 : x->place > y->place;
}

static void add(struct job *j, int64_t ns, uint32_t place, uint32_t join, uint32_t before, uint32_t *ret)
{
	if (j->e == 0)
		j->e = replay_add(j->r, &(struct replay_op){ .ns = ns, .place = place, .join = join }, ret);
	if (j->e == 0 && before != UINT32_MAX)
		j->e = replay_after(j->r, *ret, before);
}

/* A rank's segments: each from the latest thing that happened on it before, the exit
 * of a call or the entry into one that is still open. */
static void add_rank(struct job *j, const struct span *me, struct visit *v, size_t n, uint32_t place)
{
	int64_t since_ns = me->begin_ns;
	uint32_t from = BEGIN, before = UINT32_MAX, *exits = calloc(n + 1, sizeof *exits);
	size_t *order = calloc(n + 1, sizeof *order), n_order = 0;

	if (!exits || !order)
		j->e = -ENOMEM;
	/* A step that began before its clock was placed is nowhere. */
	else if (n > 0 && v[0].enter_ns < me->begin_ns - me->dur_ns / 100)
		j->e = -ERANGE;
	for (size_t i = 0; i <= n && j->e == 0; i++) {
		int64_t until_ns = i < n ? v[i].enter_ns : me->begin_ns + me->dur_ns;
		struct segment *s = &j->v[j->n++];

		/* Exits that came meanwhile; at most a few calls are open at once. */
		for (size_t k = n_order; k-- > 0;)
			if (v[order[k]].exit_ns <= until_ns) {
				if (v[order[k]].exit_ns >= since_ns) {
					since_ns = v[order[k]].exit_ns;
					from = j->s->calls[v[order[k]].call].group;
					before = exits[order[k]];
				}
				order[k] = order[--n_order];
			}
		if (until_ns < since_ns)
			until_ns = since_ns;
		*s = (struct segment){ .ns = until_ns - since_ns, .fair_ns = until_ns - since_ns, .from = from,
				       .place = place, .call = UINT32_MAX, .turn_ns = INT64_MAX };
		if (i < n) {
			const struct call *call = &j->s->calls[v[i].call];

			s->call = v[i].call;
			s->turn_ns = call->last_ns;
			s->wait_ns = v[i].exit_ns - v[i].enter_ns - call->transfer_ns;
		}
		add(j, s->ns, place, REPLAY_ALONE, before, &s->op);
		if (i == n)
			break;
		add(j, j->s->calls[v[i].call].transfer_ns, place, v[i].call, s->op, &exits[i]);
		order[n_order++] = i;
		since_ns = until_ns;
		from = j->s->calls[v[i].call].group;
		before = s->op;
	}
	free(exits);
	free(order);
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* The lower median of sorted values but one of them. */
static int64_t median_but(const int64_t *v, size_t n, int64_t one)
{
	size_t at = (n - 2) / 2;

	/* Where the one left out lies below, all move up by a place. */
	return one <= v[at] ? v[at + 1] : v[at];
}

/* Segments before one call, or before the end, that came from the same one. credit:
 * of each place; scratch: room for 2 n. */
static void compare(const struct job *j, struct segment *v, size_t n, int64_t *credit, int64_t *scratch)
{
	int64_t *plain = scratch, *slow = scratch + n;
	bool stands = v->call != UINT32_MAX && j->s->calls[v->call].group < j->a->n_blocks &&
		      j->a->blocks[j->s->calls[v->call].group];

	for (size_t i = 0; i < n; i++) {
		plain[i] = v[i].ns;
		slow[i] = v[i].ns + credit[v[i].place];
	}
	qsort(plain, n, sizeof *plain, by_value);
	qsort(slow, n, sizeof *slow, by_value);
	for (size_t i = 0; i < n && n > 1; i++) {
		int64_t *mine = &credit[v[i].place], ahead_ns;
		int64_t usual_ns = median_but(slow, n, v[i].ns + *mine);

		if (v[i].ns > usual_ns)
			v[i].fair_ns = usual_ns;
		ahead_ns = median_but(plain, n, v[i].ns) - v[i].ns;
		if (ahead_ns > 0)
			*mine -= ahead_ns < *mine ? ahead_ns : *mine;
		if (!stands)
			*mine += v[i].ns - v[i].fair_ns;
	}
	for (size_t i = 0; i < n && !stands; i++)
		credit[v[i].place] += v[i].wait_ns;
}

/* In the order of the calls, since what was waited in one may be used up in the next. */
static bool compare_all(struct job *j)
{
	int64_t *credit = calloc(3 * j->s->n_ranks + 1, sizeof *credit);

	if (!credit)
		return false;
	qsort(j->v, j->n, sizeof *j->v, by_turn);
	for (size_t from = 0, to; from < j->n; from = to) {
		for (to = from + 1; to < j->n && j->v[to].call == j->v[from].call &&
				    j->v[to].from == j->v[from].from;)
			to++;
		/* A rank is in a call once. */
		if (to - from <= j->s->n_ranks)
			compare(j, j->v + from, to - from, credit, credit + j->s->n_ranks);
	}
	free(credit);
	return true;
}

static bool prepare(struct job *j)
{
	struct open_step *s = j->s;
	size_t at = 0;

	qsort(s->visits, s->n_visits, sizeof *s->visits, by_rank);
	j->v = calloc(s->n_visits + s->n_ranks + 1, sizeof *j->v);
	j->e = j->v ? replay_new(&j->r) : -ENOMEM;
	for (size_t i = 0; i < s->n_ranks && j->e == 0; i++) {
		size_t from;

		while (at < s->n_visits && s->visits[at].rank < s->ranks[i].rank)
			at++;
		for (from = at; at < s->n_visits && s->visits[at].rank == s->ranks[i].rank;)
			at++;
		add_rank(j, &s->ranks[i], s->visits + from, at - from, (uint32_t)i);
	}
	if (j->e == 0)
		j->e = replay_order(j->r);
	if (j->e != 0)
		return false;
	if (!compare_all(j)) {
		j->e = -ENOMEM;
		return false;
	}
	j->of_op = calloc((size_t)replay_n_ops(j->r) + 1, sizeof(struct segment *));
	if (!j->of_op)
		j->e = -ENOMEM;
	for (size_t i = 0; i < j->n && j->e == 0; i++)
		j->of_op[j->v[i].op] = &j->v[i];
	return j->e == 0;
}

/* The places with the largest excess; returns how many. */
static uint32_t pick(const struct job *j, uint32_t asked[MAX_ASKED])
{
	const struct open_step *s = j->s;
	int64_t *excess_ns = calloc(s->n_ranks + 1, sizeof *excess_ns);
	uint32_t n = 0, max = MAX_ASKED;

	while (max > 1 && 2 * max * (uint64_t)replay_n_ops(j->r) > MAX_VISITS)
		max /= 2;
	for (size_t i = 0; excess_ns && i < j->n; i++)
		excess_ns[j->v[i].place] += j->v[i].ns - j->v[i].fair_ns;
	for (; excess_ns && n < max; n++) {
		uint32_t best = EVERYBODY;

		for (uint32_t i = 0; i < s->n_ranks; i++)
			if (excess_ns[i] > 0 && (best == EVERYBODY || excess_ns[i] > excess_ns[best]))
				best = i;
		if (best == EVERYBODY)
			break;
		asked[n] = best;
		excess_ns[best] = 0;
	}
	free(excess_ns);
	return n;
}

static int room_for(struct arrivals *a, int32_t rank)
{
	struct sum *grown;

	if (rank < a->n_sums)
		return 0;
	grown = realloc(a->sums, ((size_t)rank + 1) * sizeof *grown);
	if (!grown)
		return -ENOMEM;
	memset(grown + a->n_sums, 0, ((size_t)rank + 1 - (size_t)a->n_sums) * sizeof *grown);
	a->sums = grown;
	a->n_sums = rank + 1;
	return 0;
}

int arrivals_replay(struct arrivals *a, struct open_step *s)
{
	struct job j = { .a = a, .s = s };
	uint32_t asked[MAX_ASKED];
	int64_t measured_ns, ideal_ns, err_ns = 0;
	int e = 0;

	if (prepare(&j)) {
		uint32_t n = pick(&j, asked);

		measured_ns = run(&j, EVERYBODY, false);
		ideal_ns = run(&j, EVERYBODY, true);
		for (uint32_t i = 0; i < n && e == 0; i++) {
			int32_t rank = s->ranks[asked[i]].rank;

			e = room_for(a, rank);
			if (e < 0)
				break;
			a->sums[rank].without_ns += measured_ns - run(&j, asked[i], true);
			a->sums[rank].alone_ns += run(&j, asked[i], false) - ideal_ns;
		}
		for (size_t i = 0; i < s->n_ranks; i++)
			if (s->ranks[i].err_ns > err_ns)
				err_ns = s->ranks[i].err_ns;
		a->measured_ns += measured_ns;
		a->ideal_ns += ideal_ns;
		a->err_ns += 2 * err_ns * (int64_t)(s->n_calls + 1); /* a tick at both ends of a segment */
		a->n_steps++;
	} else if (j.e == -ENOMEM) {
		e = -ENOMEM;
	}
	replay_free(j.r);
	free(j.v);
	free(j.of_op);
	return e;
}
