/* slow_fixed_rank_judge.c - from a suspicion to a verdict, and while it stands. */
#include "slow_fixed_rank_internal.h"

#include <errno.h>
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIN_STEPS 32
#define MIN_STEPS_WITHOUT_BEFORE 192
#define BEFORE_STEPS 32
#define MIN_NS 1000000000.0
#define LOOK_EVERY 8  /* steps between two looks at a suspect */
#define TELL_EVERY 32 /* steps between two updates of a standing verdict */
#define SAME_ONSET 16 /* steps between the onsets of two culprits of one cause */
#define MIN_COVERAGE 0.9

static struct standing *find_standing(struct slow_fixed_rank *s, uint32_t onset)
{
	for (size_t i = 0; i < s->n_standing; i++) {
		struct standing *v = &s->standing[i];
		uint32_t gap = v->onset > onset ? v->onset - onset : onset - v->onset;

		/* Noise moves an onset by more the more steps it took to be sure. */
		if (!v->ended && !v->notice &&
		    (gap <= SAME_ONSET || gap <= (s->n_steps - onset) / 4))
			return v;
	}
	return NULL;
}

static struct standing *add_standing(struct slow_fixed_rank *s)
{
	if (s->n_standing == s->n_standing_alloc) {
		size_t want = s->n_standing_alloc ? 2 * s->n_standing_alloc : 4;
		struct standing *grown = realloc(s->standing, want * sizeof *grown);

		if (!grown)
			return NULL;
		s->standing = grown;
		s->n_standing_alloc = want;
	}
	s->standing[s->n_standing] = (struct standing){ 0 };
	return &s->standing[s->n_standing++];
}

static void take_numbers(struct standing *v, const struct look *l, enum fact_confidence confidence)
{
	v->confidence = confidence;
	v->excess = l->excess;
	v->excess_ns = l->added_ns;
	v->step_ns = l->step_ns;
	v->cost = l->step_ns > l->added_ns ? l->added_ns / (l->step_ns - l->added_ns) : 0;
	v->margin_ns = (l->excess - l->other) * l->step_ns;
	v->error_ns = (l->excess - l->low + l->other_high - l->other) * l->step_ns;
	v->wait_ns = l->wait_ns;
	v->self_ratio = l->self_ratio;
	v->tau = l->tau;
	v->coverage = l->coverage;
	v->n_peers = l->n_peers;
	v->n_steps = l->n;
	memcpy(v->part_ns, l->part_ns, sizeof v->part_ns);
	v->changed = true;
}

static bool holds_rank(const struct standing *v, int32_t rank)
{
	for (uint32_t i = 0; i < v->n_ranks; i++)
		if (v->ranks[i] == rank)
			return true;
	return false;
}

static void insert_rank(struct standing *v, int32_t rank)
{
	uint32_t i = v->n_ranks;

	if (i == MAX_CULPRITS || holds_rank(v, rank))
		return;
	for (; i > 0 && v->ranks[i - 1] > rank; i--)
		v->ranks[i] = v->ranks[i - 1];
	v->ranks[i] = rank;
	v->n_ranks++;
	v->changed = true;
}

/* A notice stands once for a rank: repeating it is no news. */
static struct standing *notice_of(struct slow_fixed_rank *s, int32_t rank)
{
	for (size_t i = 0; i < s->n_standing; i++)
		if (s->standing[i].notice && holds_rank(&s->standing[i], rank))
			return &s->standing[i];
	return NULL;
}

int slow_judge(struct slow_fixed_rank *s, uint32_t rank, uint32_t near, double sum, double limit,
	       struct facts *facts)
{
	struct suspect *x = &s->suspects[rank];
	enum fact_confidence confidence;
	uint32_t n_culprits = 0, n_before;
	struct standing *v;
	struct look l;

	x->next_look = s->n_steps + LOOK_EVERY;
	if (!slow_look(s, rank, near, limit, &l))
		return 0;
	n_before = l.onset - slow_window_begin(s);
	if (sum < l.tau * limit || l.n < MIN_STEPS ||
	    (n_before < BEFORE_STEPS && l.n < MIN_STEPS_WITHOUT_BEFORE) ||
	    (double)(s->end_of[slow_slot(s, s->n_steps - 1)] - s->begin_of[slow_slot(s, l.onset)]) <
		    MIN_NS)
		return 0;
	if (x->end_sum >= END_NATS / 2) /* it was, but is no more */
		return 0;
	if (l.cost_share < 0.5) /* slow, but nobody waits for it */
		return 0;
	for (uint32_t r = 0; r < s->n_ranks; r++)
		n_culprits += r == rank || slow_is_culprit(s, r, limit);
	if (2 * n_culprits >= s->n_ranks && s->n_ranks > 3)
		return 0; /* half of the job: who is slow and who is fast? */

	if (s->n_ranks < 4 || l.coverage < MIN_COVERAGE)
		confidence = CONFIDENCE_INSUFFICIENT;
	else if (l.low <= l.other_high || l.excess < s->cfg.effect_ratio)
		confidence = CONFIDENCE_TOO_CLOSE;
	else
		confidence = CONFIDENCE_CERTAIN;

	if (s->cfg.explained && s->cfg.explained(s->cfg.arg, (int32_t)rank))
		return 0; /* one cause, one verdict */
	if (confidence != CONFIDENCE_CERTAIN) {
		if (notice_of(s, (int32_t)rank))
			return 0;
		v = add_standing(s);
	} else {
		v = find_standing(s, l.onset);
		x->standing = true;
		if (v) { /* the same cause on another rank */
			insert_rank(v, (int32_t)rank);
			return slow_tell(s, v, facts);
		}
		/* What was only noticed before is certain now: the same row. */
		v = notice_of(s, (int32_t)rank);
		if (!v)
			v = add_standing(s);
	}
	if (!v)
		return -ENOMEM;
	if (!*v->key) {
		v->first_onset = l.onset;
		v->first_step = s->step_of[slow_slot(s, l.onset)];
		snprintf(v->key, sizeof v->key, "slow.fixed_rank/%u/%u", rank, v->first_step);
	}
	v->notice = confidence != CONFIDENCE_CERTAIN;
	v->onset = l.onset;
	v->first_step = s->step_of[slow_slot(s, l.onset)];
	v->onset_ns = s->begin_of[slow_slot(s, l.onset)];
	v->last_step = s->step_of[slow_slot(s, s->n_steps - 1)];
	v->detected_ns = s->end_of[slow_slot(s, s->n_steps - 1)];
	v->next_tell = s->n_steps + TELL_EVERY;
	insert_rank(v, (int32_t)rank);
	take_numbers(v, &l, confidence);
	return slow_tell(s, v, facts);
}

int slow_review(struct slow_fixed_rank *s, struct facts *facts)
{
	for (size_t i = 0; i < s->n_standing; i++) {
		struct standing *v = &s->standing[i];
		uint32_t last = 0, over = 0;
		int r;

		if (v->ended || v->notice)
			continue;
		for (uint32_t k = 0; k < v->n_ranks; k++) {
			const struct suspect *x = &s->suspects[v->ranks[k]];
			uint32_t until = x->end_sum > END_NATS / 2 ? x->end_start : s->n_steps;

			over += x->end_sum >= END_NATS;
			if (until > last)
				last = until;
		}
		if (last > v->onset)
			v->last_step = s->step_of[slow_slot(s, last - 1)];
		if (over == v->n_ranks) {
			v->ended = v->changed = true;
			for (uint32_t k = 0; k < v->n_ranks; k++) {
				struct suspect *x = &s->suspects[v->ranks[k]];

				x->standing = false;
				for (unsigned q = 0; q < N_SHAPES; q++) {
					x->sum[q] = x->peak[q] = 0;
					x->start[q] = s->n_steps;
				}
			}
			r = slow_tell(s, v, facts);
			if (r < 0)
				return r;
			continue;
		}
		if (s->n_steps < v->next_tell)
			continue;
		v->next_tell = s->n_steps + TELL_EVERY;
		if (over == 0 && v->onset >= slow_window_begin(s)) {
			struct look l;

			if (slow_look(s, (uint32_t)v->ranks[0], v->onset, DBL_MAX, &l) &&
			    l.low > l.other_high) {
				take_numbers(v, &l, CONFIDENCE_CERTAIN);
				/* More steps place the onset better, not elsewhere. */
				if (l.onset + SAME_ONSET >= v->first_onset &&
				    l.onset <= v->first_onset + SAME_ONSET) {
					v->onset = l.onset;
					v->first_step = s->step_of[slow_slot(s, l.onset)];
					v->onset_ns = s->begin_of[slow_slot(s, l.onset)];
				}
			}
		}
		r = slow_tell(s, v, facts);
		if (r < 0)
			return r;
	}
	return 0;
}
