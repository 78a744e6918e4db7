#include "beats.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define MAX_PERIOD 64
#define MIN_ROUNDS 11
#define ALIKE 0.15 /* of the time between calls, a period later */

void beats_fini(struct beats *b)
{
	free(b->v);
	free(b->kind);
	*b = (struct beats){ 0 };
}

int beats_note(struct beats *b, uint32_t world_size, const struct proc *p, uint32_t proc, uint32_t group,
	       uint64_t seq, const struct event *ev, const struct device *d)
{
	if (world_size < 2 || world_size > BEATS_MAX_RANKS || (uint32_t)p->rank >= world_size)
		return 0;
	if (!b->v) {
		*b = (struct beats){ .n_ranks = world_size, .group = group, .first = seq };
		b->v = calloc((size_t)BEATS_MAX_CALLS * world_size, sizeof *b->v);
		b->kind = calloc(BEATS_MAX_CALLS, sizeof *b->kind);
		if (!b->v || !b->kind)
			return -ENOMEM;
	}
	if (group != b->group || world_size != b->n_ranks || seq < b->first ||
	    seq - b->first >= BEATS_MAX_CALLS)
		return 0;
	seq -= b->first;
	b->kind[seq] = (uint64_t)ev->flags << 48 ^ ev->b;
	b->v[seq * b->n_ranks + (uint32_t)p->rank] = (struct beat){
		.at_ns = (int64_t)ev->tick, .compute_ns = (double)d->compute_ns,
		.call_ns = (double)d->call_ns, .idle_ns = (double)d->idle_ns, 
		.proc = proc };
	if (seq >= b->n)
		b->n = (uint32_t)seq + 1;
	return 0;
}

/* The mean own time of the ranks before each call, after the one before it. */
static double own_before(const struct beats *b, uint32_t i)
{
	double sum = 0;
	uint32_t n = 0;

	for (uint32_t r = 0; r < b->n_ranks; r++) {
		const struct beat *x = &b->v[(size_t)i * b->n_ranks + r], *w = x - b->n_ranks;

		if (!x->at_ns || !w->at_ns)
			continue;
		sum += x->compute_ns + x->idle_ns - w->compute_ns - w->idle_ns;
		n++;
	}
	return n ? sum / n : 0;
}

/* 0 when there is none. */
static uint32_t period(const struct beats *b)
{
	for (uint32_t n = 1; n <= MAX_PERIOD && n * (MIN_ROUNDS + 1) <= b->n; n++) {
		double apart = 0, all = 0;
		bool same = true;

		for (uint32_t i = 1; i + n < b->n && same; i++) {
			same = b->kind[i] == b->kind[i + n];
			apart += fabs(own_before(b, i) - own_before(b, i + n));
			all += own_before(b, i);
		}
		if (same && apart <= ALIKE * all)
			return n;
	}
	return 0;
}

int beats_play(const struct beats *b, struct pace *p)
{
	uint32_t every = period(b), n = 0;
	struct fact_rank_step v[BEATS_MAX_RANKS];

	if (every == 0)
		return 0;
	pace_fini(p);
	for (uint32_t from = every - 1; from + every < b->n; from += every) {
		struct fact_step step = { .step = (uint32_t)(b->first + from + 1) };
		size_t n_rows = 0;

		for (uint32_t r = 0; r < b->n_ranks; r++) {
			const struct beat *w = &b->v[(size_t)from * b->n_ranks + r];
			const struct beat *x = w + (size_t)every * b->n_ranks;

			if (!x->at_ns || !w->at_ns || x->proc != w->proc)
				continue;
			v[n_rows] = (struct fact_rank_step){
				.rank = (int32_t)r, .proc = x->proc, .loop_ns = w->at_ns,
				.dur_ns = x->at_ns - w->at_ns,
				.compute_ns = (int64_t)(x->compute_ns - w->compute_ns),
				.idle_ns = (int64_t)(x->idle_ns - w->idle_ns),
				.exposed_comm_ns = (int64_t)(x->call_ns - w->call_ns) };
			v[n_rows].self_ns = v[n_rows].compute_ns + v[n_rows].idle_ns;
			if (n_rows == 0) {
				step.begin_ns = w->at_ns;
				step.dur_ns = v[n_rows].dur_ns;
			}
			n_rows++;
		}
		if (n_rows == b->n_ranks) {
			if (pace_step(p, &step, v, n_rows, b->n_ranks) < 0)
				return -ENOMEM;
			n++;
		}
	}
	return (int)n;
}
