#include "arrivals_internal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TELL_NS INT64_C(10000000000)
#define MAX_TOLD 64
#define MIN_STEPS 3

static const char method[] = "replay of arrivals at collectives";

int arrivals_new(struct arrivals **ret)
{
	*ret = calloc(1, sizeof **ret);
	if (!*ret)
		return -ENOMEM;
	(*ret)->told_ns = INT64_MIN;
	return 0;
}

static void let_go(struct arrivals *a, struct open_step *s)
{
	a->n_held -= s->n_visits;
	free(s->visits);
	free(s->calls);
	free(s->ranks);
	*s = (struct open_step){ 0 };
}

void arrivals_free(struct arrivals *a)
{
	if (!a)
		return;
	for (uint32_t i = 0; i < ARRIVALS_OPEN; i++)
		let_go(a, &a->open[i]);
	free(a->sums);
	free(a->blocks);
	free(a);
}

int arrivals_blocks(struct arrivals *a, uint32_t group)
{
	if (group >= a->n_blocks) {
		uint32_t want = 2 * (group + 1);
		bool *grown = realloc(a->blocks, want * sizeof *grown);

		if (!grown)
			return -ENOMEM;
		memset(grown + a->n_blocks, 0, (want - a->n_blocks) * sizeof *grown);
		a->blocks = grown;
		a->n_blocks = want;
	}
	a->blocks[group] = true;
	return 0;
}

void arrivals_message(struct arrivals *a)
{
	a->messages = true;
}

static struct open_step *find(struct arrivals *a, uint32_t step)
{
	struct open_step *s = &a->open[step & (ARRIVALS_OPEN - 1)];

	if (step < a->done_below || a->messages)
		return NULL;
	if (s->used && s->step != step) {
		if (s->step > step)
			return NULL;
		let_go(a, s); /* it never got its end */
	}
	s->used = true;
	s->step = step;
	return s;
}

int arrivals_call(struct arrivals *a, const struct match *m, uint32_t group, const struct coll *c)
{
	struct open_step *s = c->step == EVENT_STEP_UNKNOWN ? NULL : find(a, c->step);
	struct call *call;
	const struct group *g = &m->groups[group];

	if (!s || s->full || !c->arrivals || c->n_done < 2)
		return 0;
	if (a->n_held + c->n_done > ARRIVALS_MAX || c->n_done < c->n_entered) {
		s->full = true; /* a step without one of its calls is another step */
		return 0;
	}
	if (!facts_reserve((void **)&s->calls, &s->n_calls, &s->n_calls_alloc, sizeof *s->calls))
		return -ENOMEM;
	call = &s->calls[s->n_calls - 1];
	roster_compare(m->roster);
	*call = (struct call){ .group = group, .transfer_ns = INT64_MAX, .last_ns = INT64_MIN };
	for (uint32_t i = 0; i < g->n_members && i < c->n_alloc; i++) {
		const struct arrival *v = &c->arrivals[i];
		struct fleet_point at;
		int64_t dur_ns;

		if (v->enter_ns == FACT_NONE || v->exit_ns == FACT_NONE || v->exit_ns < v->enter_ns)
			continue;
		at = roster_place(m->roster, &m->roster->procs[v->proc], v->enter_ns);
		dur_ns = v->exit_ns - v->enter_ns;
		if (!facts_reserve((void **)&s->visits, &s->n_visits, &s->n_visits_alloc,
				   sizeof *s->visits))
			return -ENOMEM;
		s->visits[s->n_visits - 1] = (struct visit){ g->ranks[i], (uint32_t)s->n_calls - 1,
							     at.at.ns, at.at.ns + dur_ns };
		a->n_held++;
		call->n++;
		if (at.at.ns > call->last_ns)
			call->last_ns = at.at.ns;
		if (dur_ns < call->transfer_ns)
			call->transfer_ns = dur_ns;
	}
	return 0;
}

int arrivals_step(struct arrivals *a, const struct fact_step *step, const struct fact_rank_step *v,
		  size_t n)
{
	struct open_step *s = find(a, step->step);

	if (!s || n < 2)
		return 0;
	s->told = true;
	s->full |= !step->complete;
	s->told_now_ns = a->now_ns;
	for (size_t i = 0; i < n && !s->full; i++) {
		if (!facts_reserve((void **)&s->ranks, &s->n_ranks, &s->n_ranks_alloc, sizeof *s->ranks))
			return -ENOMEM;
		s->ranks[i] = (struct span){ v[i].rank, v[i].begin_ns, v[i].dur_ns, v[i].dur_err_ns };
		s->full |= v[i].coverage < 1;
	}
	return 0;
}

/* ---- sums as facts ---- */

static int tell_one(struct arrivals *a, struct facts *facts, const char *scope, const char *name, int64_t number,
		    double slowdown, double share, int64_t without_ns)
{
	struct fact_what_if *f = FACTS_PUSH(facts, what_ifs);

	if (!f)
		return -ENOMEM;
	*f = (struct fact_what_if){ .scope = scope, .name = facts_string(facts, name), .number = number,
				    .slowdown = slowdown, .share = share,
				    .step_ns = a->measured_ns / a->n_steps,
				    .without_ns = without_ns / a->n_steps,
				    .err_ns = a->err_ns / a->n_steps, .n_steps = a->n_steps, .method = method };
	return 0;
}

static int tell(struct arrivals *a, struct facts *facts)
{
	int64_t gap_ns = a->measured_ns - a->ideal_ns;
	uint32_t n = 0;
	int e;

	if (a->n_steps < MIN_STEPS || a->n_steps == a->n_told_steps || a->ideal_ns <= 0 || a->messages)
		return 0;
	a->n_told_steps = a->n_steps;
	e = tell_one(a, facts, "job", "job", -1, (double)a->measured_ns / (double)a->ideal_ns,
		     gap_ns > 0 ? 1 : (double)NAN, a->ideal_ns);
	for (int32_t i = 0; i < a->n_sums && n < MAX_TOLD && e == 0; i++) {
		const struct sum *s = &a->sums[i];
		char name[16];

		/* In large jobs, those that matter. */
		if (a->n_sums > MAX_TOLD && 100 * s->without_ns < a->measured_ns)
			continue;
		snprintf(name, sizeof name, "%d", i);
		e = tell_one(a, facts, "rank", name, i, 1 + (double)s->alone_ns / (double)a->ideal_ns,
			     gap_ns > 0 ? (double)s->without_ns / (double)gap_ns : (double)NAN,
			     a->measured_ns - s->without_ns);
		n++;
	}
	return e;
}

/* In the order of the steps; all: nothing more will come. */
static int settle(struct arrivals *a, int64_t late_ns, bool all)
{
	uint32_t lowest[ARRIVALS_OPEN], n = 0;
	int e = 0;

	for (uint32_t i = 0; i < ARRIVALS_OPEN; i++)
		if (a->open[i].used && a->open[i].told &&
		    (all || a->messages || a->now_ns - a->open[i].told_now_ns > 2 * late_ns))
			lowest[n++] = i;
	for (uint32_t i = 0; i < n && e == 0; i++) {
		struct open_step *s = &a->open[lowest[i]];

		if (!s->full && !a->messages && s->n_calls > 0)
			e = arrivals_replay(a, s);
		if (s->step >= a->done_below)
			a->done_below = s->step + 1;
		let_go(a, s);
	}
	return e;
}

int arrivals_tick(struct arrivals *a, int64_t now_ns, int64_t late_ns, struct facts *facts)
{
	int e;

	a->now_ns = now_ns;
	if (a->told_ns == INT64_MIN)
		a->told_ns = now_ns;
	e = settle(a, late_ns, false);
	if (e < 0 || now_ns - a->told_ns < TELL_NS)
		return e;
	a->told_ns = now_ns;
	return tell(a, facts);
}

int arrivals_finish(struct arrivals *a, struct facts *facts)
{
	int e = settle(a, 0, true);

	return e < 0 ? e : tell(a, facts);
}
