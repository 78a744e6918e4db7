#include "pipeline.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LAPS 8 /* the newest, summed up */
#define MIN_LAPS 3 /* while the job goes on */
#define MAX_DISORDER 0.02

/* What is known of the ranks of pipelines, with their laps. */
struct view {
	const struct rules *r;
	const struct lane **v; /* by rank; NULL = not in a pipeline */
	uint32_t n_ranks;
	uint32_t steps[MAX_LAPS], n_steps; /* newest first */
};

/* What has lost events is not summed up rightly. */
static bool has_lost(const struct rules *r, const struct lane *v)
{
	const struct ledger_proc *q = ledger_proc(&r->ledger, (uint32_t)(v - r->lanes.v));

	return q && q->lost;
}

static bool counts(const struct rules *r, const struct lane *v)
{
	return v->life == r->life && v->rank >= 0 && (v->n_laps > 0 || v->now.first_ns != FACT_NONE);
}

static uint32_t newest(const struct rules *r, const struct lane *v)
{
	if (r->finishing && v->now.any && v->now.first_ns != FACT_NONE)
		return v->now.step;
	return v->n_laps > 0 ? v->laps[(v->n_laps - 1) % LANE_LAPS].step : EVENT_STEP_UNKNOWN;
}

static const struct lap *lap_of(const struct view *w, const struct lane *v, uint32_t step)
{
	/* A job without steps has one lap that never closes. */
	return lanes_lap(v, step, w->r->finishing || step == EVENT_STEP_UNKNOWN);
}

static bool all_have(const struct view *w, uint32_t step)
{
	for (uint32_t i = 0; i < w->n_ranks; i++)
		if (w->v[i] && !lap_of(w, w->v[i], step))
			return false;
	return true;
}

/* The laps that every rank has. The first step of a job is like no other. */
static bool pick_laps(struct view *w, uint32_t below)
{
	const struct lane *v = NULL;

	for (uint32_t i = 0; i < w->n_ranks && !v; i++)
		v = w->v[i];
	if (!v)
		return false;
	w->n_steps = 0;
	if (below == EVENT_STEP_UNKNOWN) {
		w->steps[w->n_steps++] = EVENT_STEP_UNKNOWN;
		return all_have(w, EVENT_STEP_UNKNOWN);
	}
	for (uint32_t back = 0; back < LANE_LAPS && back <= below && w->n_steps < MAX_LAPS; back++)
		if (all_have(w, below - back))
			w->steps[w->n_steps++] = below - back;
	if (w->n_steps > MIN_LAPS && w->steps[w->n_steps - 1] == 0)
		w->n_steps--;
	return w->n_steps >= (w->r->finishing ? 1 : MIN_LAPS);
}

/* 1, 0 when there is nothing to see, -ENOMEM. */
static int look_at_lanes(struct view *w)
{
	const struct lanes *l = &w->r->lanes;
	uint32_t below = EVENT_STEP_UNKNOWN;
	bool any = false;

	for (uint32_t i = 0; i < l->n; i++)
		if (counts(w->r, &l->v[i]) && (uint32_t)l->v[i].rank >= w->n_ranks)
			w->n_ranks = (uint32_t)l->v[i].rank + 1;
	w->v = calloc(w->n_ranks + 1, sizeof *w->v);
	if (!w->v)
		return -ENOMEM;
	for (uint32_t i = 0; i < l->n; i++) {
		uint32_t step;

		if (!counts(w->r, &l->v[i]))
			continue;
		if (has_lost(w->r, &l->v[i]))
			return 0;
		step = newest(w->r, &l->v[i]);
		if (!any || step < below)
			below = step;
		any = true;
		w->v[l->v[i].rank] = &l->v[i];
	}
	return any && pick_laps(w, below);
}

/* ---- chains ---- */

static const struct lane_peer *find_peer(const struct lap *lap, int32_t rank)
{
	for (uint32_t i = 0; lap && i < lap->n_peers; i++)
		if (lap->peers[i].rank == rank)
			return &lap->peers[i];
	return NULL;
}

static bool both_ways(const struct lane_peer *s)
{
	return s->n_sent > 0 && s->n_received > 0;
}

/* The peer that it passes on to (down) or gets from; NULL when there is none, *ret_bad when
 * that is not clear. */
static const struct lane_peer *neighbour(const struct lap *lap, bool down, bool *ret_bad)
{
	const struct lane_peer *found = NULL;

	for (uint32_t i = 0; i < lap->n_peers; i++) {
		const struct lane_peer *s = &lap->peers[i];

		if (!both_ways(s) || s->sends_first != down)
			continue;
		*ret_bad |= found || s->both_first;
		found = s;
	}
	*ret_bad |= lap->many;
	return found;
}

static const struct lap *first_lap(const struct view *w, int32_t rank)
{
	return rank >= 0 && (uint32_t)rank < w->n_ranks && w->v[rank] ?
		       lap_of(w, w->v[rank], w->steps[0]) : NULL;
}

/* Its first message of the lap is a send: where a chain begins, even one that is a ring. */
static bool begins(const struct lap *lap)
{
	for (uint32_t i = 0; i < lap->n_peers; i++)
		if (both_ways(&lap->peers[i]))
			return lap->peers[i].sends_first;
	return false;
}

/* The ranks from there on, at most n. Their number, 0 when it is no chain. */
static uint32_t follow(const struct view *w, int32_t from, int32_t *ret, uint32_t n_max)
{
	int32_t rank = from;
	uint32_t n = 0;

	for (;;) {
		const struct lap *lap = first_lap(w, rank);
		const struct lane_peer *down, *up;
		bool bad = false;

		if (!lap || n == n_max)
			return 0;
		down = neighbour(lap, true, &bad);
		up = neighbour(lap, false, &bad);
		if (bad || (n > 0 && (!up || up->rank != ret[n - 1])))
			return 0;
		ret[n++] = rank;
		if (!down || down->rank == from)
			return n;
		rank = down->rank;
	}
}

/* All chains, of one length. 1, 0 or -ENOMEM. */
static int find_chains(const struct view *w, struct pipeline *p)
{
	uint32_t n_left = w->n_ranks, at = 0;

	p->ranks = calloc(w->n_ranks + 1, sizeof *p->ranks);
	if (!p->ranks)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->n_ranks; i++) {
		const struct lap *lap = first_lap(w, (int32_t)i);
		uint32_t n;

		if (!lap || !begins(lap))
			continue;
		n = follow(w, (int32_t)i, p->ranks + at, n_left - at);
		if (n < 2 || (p->n_chains > 0 && n != p->n_stages))
			return 0;
		p->n_stages = n;
		p->n_chains++;
		at += n;
	}
	return p->n_chains > 0;
}

/* ---- what they did ---- */

struct sums { /* of one rank, over the laps */
	double span_ns, work_ns, coll_ns, wait_ns, inside_ns, wait_inside_ns, wait_inside_ns2, rest_inside_ns;
	double least_message_ns, spread;
	uint32_t n_micro, n_flushes;
};

static double at_least(double v)
{
	return v > 0 ? v : 0;
}

/* False when its laps cannot be trusted or its edges do not agree. */
static bool sum_up(const struct view *w, const struct pipeline *p, uint32_t at, struct sums *ret)
{
	uint32_t stage = at % p->n_stages;
	int32_t peer = p->ranks[stage + 1 < p->n_stages ? at + 1 : at - 1];
	double square = 0, sum = 0, sum_square = 0;

	*ret = (struct sums){ .least_message_ns = 1e18 };
	for (uint32_t i = 0; i < w->n_steps; i++) {
		const struct lap *lap = lap_of(w, w->v[p->ranks[at]], w->steps[i]);
		const struct lane_peer *s = find_peer(lap, peer);
		double coll_in;

		if (!s || !both_ways(s) ||
		    (double)lap->disorder_ns > MAX_DISORDER * (double)(lap->end_ns - lap->begin_ns))
			return false;
		coll_in = at_least((double)(lap->inside.coll_ns - lap->wait_inside_ns));
		ret->span_ns += (double)(lap->end_ns - lap->begin_ns);
		ret->work_ns += (double)lap->all.work_ns;
		ret->coll_ns += at_least((double)(lap->all.coll_ns - lap->wait_ns));
		ret->inside_ns += (double)lap->inside.work_ns + coll_in;
		ret->wait_inside_ns += (double)lap->wait_inside_ns;
		ret->wait_inside_ns2 += lap->wait_inside_ns2;
		ret->rest_inside_ns += (double)lap->inside.rest_ns;
		ret->n_micro += stage + 1 < p->n_stages ? s->n_sent : s->n_received;
		ret->n_flushes += lap->n_flushes;
		if ((double)s->least_ns < ret->least_message_ns)
			ret->least_message_ns = (double)s->least_ns;
		if (lap->piece_ns > 0)
			square += pow((double)lap->spread_ns / (double)lap->piece_ns, 2);
		sum += (double)lap->inside.work_ns;
		sum_square += pow((double)lap->inside.work_ns, 2);
	}
	/* Within laps, and from lap to lap. */
	square /= w->n_steps;
	if (sum > 0)
		square += at_least(sum_square * w->n_steps / (sum * sum) - 1);
	ret->spread = sqrt(square);
	return true;
}

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static double median(double *v, uint32_t n)
{
	qsort(v, n, sizeof *v, by_size);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* By stage from what is known by rank. */
static void sum_up_stages(struct pipeline *p, double *scratch)
{
	for (uint32_t stage = 0; stage < p->n_stages; stage++) {
		for (uint32_t k = 0; k < p->n_chains; k++)
			scratch[k] = p->work_ns[k * p->n_stages + stage];
		p->stage_ns[stage] = median(scratch, p->n_chains);
		p->least_ns[stage] = scratch[0];
	}
	memcpy(scratch, p->stage_ns, p->n_stages * sizeof *scratch);
	p->median_ns = median(scratch, p->n_stages);
	for (uint32_t i = 1; i < p->n_stages; i++)
		if (p->least_ns[i] > p->least_ns[p->slowest])
			p->slowest = i;
	for (uint32_t i = 0; i < p->n_stages; i++)
		if (i != p->slowest)
			scratch[i - (i > p->slowest)] = p->stage_ns[i];
	p->slowest_ns = p->least_ns[p->slowest];
	p->others_ns = median(scratch, p->n_stages - 1);
}

/* The longest lap of each step; all ranks take part in it. */
static double step_ns(const struct view *w, const struct pipeline *p)
{
	double sum = 0;

	for (uint32_t i = 0; i < w->n_steps; i++) {
		int64_t longest = 0;

		for (uint32_t k = 0; k < p->n_stages * p->n_chains; k++) {
			const struct lap *lap = lap_of(w, w->v[p->ranks[k]], w->steps[i]);

			if (lap->end_ns - lap->begin_ns > longest)
				longest = lap->end_ns - lap->begin_ns;
		}
		sum += (double)longest;
	}
	return sum;
}

static double lap_work_ns(const struct view *w, const struct pipeline *p, uint32_t at, uint32_t step)
{
	const struct lap *lap = lap_of(w, w->v[p->ranks[at]], w->steps[step]);

	return (double)lap->inside.work_ns + at_least((double)(lap->inside.coll_ns -
							       lap->wait_inside_ns));
}

/* Is it always that stage? Each lap's works against each other, as they are overall. */
static double steady(const struct view *w, const struct pipeline *p)
{
	double usual = p->slowest_ns / p->others_ns - 1;
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->n_steps; i++) {
		double mine = 0, others = 0;

		for (uint32_t k = 0; k < p->n_stages * p->n_chains; k++) {
			/* The first stage's lap lacks one micro-batch. */
			double ns = lap_work_ns(w, p, k, i) *
				    (k % p->n_stages == 0 ? p->n_micro / (p->n_micro - 1) : 1);

			if (k % p->n_stages == p->slowest)
				mine += ns;
			else
				others += ns / (p->n_stages - 1);
		}
		n += mine >= (1 + usual / 2) * others;
	}
	return (double)n / w->n_steps;
}

static bool measure(const struct view *w, struct pipeline *p, struct sums *sums, double *scratch)
{
	uint32_t n = p->n_stages * p->n_chains;
	double total, n_laps, waits = 0, waits2 = 0;

	for (uint32_t i = 0; i < n; i++)
		if (!sum_up(w, p, i, &sums[i]) || sums[i].n_micro != sums[0].n_micro)
			return false;
	p->n_laps = w->steps[0] == EVENT_STEP_UNKNOWN ? sums[0].n_flushes : w->n_steps;
	if (p->n_laps == 0 || sums[0].n_micro < 2 * p->n_laps)
		return false;
	n_laps = p->n_laps;
	p->n_micro = sums[0].n_micro / n_laps;
	p->last_step = w->steps[0];
	p->first_step = w->steps[w->n_steps - 1];
	total = step_ns(w, p);
	p->step_ns = total / n_laps;
	for (uint32_t i = 0; i < n; i++) {
		/* The first stage's work begins before its first message and ends after its last. */
		double n_inside = sums[i].n_micro - (i % p->n_stages == 0 ? w->n_steps : 0);

		p->work_ns[i] = sums[i].inside_ns / n_inside;
		if (p->work_ns[i] > p->most_ns)
			p->most_ns = p->work_ns[i];
		p->idle_ns += (total - sums[i].work_ns - sums[i].coll_ns) / n_laps / n;
		waits += sums[i].wait_inside_ns;
		waits2 += sums[i].wait_inside_ns2;
		p->wait_inside_ns += sums[i].wait_inside_ns / n_laps / n;
		p->rest_inside_ns += sums[i].rest_inside_ns / n_laps / n;
		if (sums[i].least_message_ns < 1e18 && sums[i].least_message_ns > p->message_ns)
			p->message_ns = sums[i].least_message_ns;
		scratch[i] = sums[i].spread;
	}
	p->n_waits = waits2 > 0 ? waits * waits / waits2 / n_laps : 0;
	p->spread = median(scratch, n);
	sum_up_stages(p, scratch);
	p->steady = w->steps[0] == EVENT_STEP_UNKNOWN ? 1 : steady(w, p);
	return p->median_ns > 0 && p->step_ns > 0;
}

int pipeline_find(const struct rules *r, struct pipeline *ret)
{
	struct view w = { .r = r };
	struct pipeline p = { 0 };
	struct sums *sums = NULL;
	double *scratch = NULL;
	uint32_t n;
	int e;

	if (!r->lanes.any)
		return 0;
	e = look_at_lanes(&w);
	if (e == 1)
		e = find_chains(&w, &p);
	n = p.n_stages * p.n_chains;
	if (e == 1) {
		p.work_ns = calloc(n, sizeof *p.work_ns);
		p.stage_ns = calloc(p.n_stages, sizeof *p.stage_ns);
		p.least_ns = calloc(p.n_stages, sizeof *p.least_ns);
		scratch = calloc(n, sizeof *scratch);
		sums = calloc(n, sizeof *sums);
		e = p.work_ns && p.stage_ns && p.least_ns && scratch && sums ?
			    measure(&w, &p, sums, scratch) : -ENOMEM;
	}
	free(w.v);
	free(sums);
	free(scratch);
	if (e == 1)
		*ret = p;
	else
		pipeline_fini(&p);
	return e;
}

void pipeline_fini(struct pipeline *p)
{
	free(p->ranks);
	free(p->work_ns);
	free(p->stage_ns);
	free(p->least_ns);
}

double pipeline_theory_ns(const struct pipeline *p)
{
	return (p->n_stages - 1) * p->median_ns;
}

bool pipeline_may_tell(const struct rules *r, const char *class_name)
{
	uint32_t n_told = rules_n_told(r, class_name);

	return r->n_slow == n_told && (n_told == 0 || r->finishing);
}
