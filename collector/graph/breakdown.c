/* breakdown.c - one rank in one step: where its time went, on its own clock. */
#include "steps_internal.h"

#include <math.h>

void steps_clip(int64_t *begin, int64_t *end, const struct rank_step *rs)
{
	if (*begin < rs->from_ns)
		*begin = rs->from_ns;
	if (*end > rs->to_ns)
		*end = rs->to_ns;
	if (*end < *begin)
		*end = *begin;
}

static bool add_blocked(struct steps *s, size_t *n, int64_t begin, int64_t end, uint32_t group,
			uint64_t seq)
{
	size_t i;

	if (*n == s->n_blocked_alloc) {
		size_t want = *n ? 2 * *n : 64;
		struct blocked *grown = realloc(s->blocked, want * sizeof *grown);

		if (!grown)
			return false;
		s->blocked = grown;
		s->n_blocked_alloc = want;
	}
	/* The latest first: nearly as they come. */
	for (i = (*n)++; i > 0 && s->blocked[i - 1].begin_ns < begin; i--)
		s->blocked[i] = s->blocked[i - 1];
	s->blocked[i] = (struct blocked){ begin, end, group, seq };
	return true;
}

/* The bucket submitted last within a backward, if it was also reduced in it. */
static const struct step_bucket *last_bucket(const struct step *st, const struct rank_step *rs,
					     int64_t begin, int64_t end)
{
	const struct step_bucket *last = NULL;

	for (uint32_t i = rs->buckets; i; i = st->buckets[i - 1].next) {
		const struct step_bucket *b = &st->buckets[i - 1];

		if (b->submitted_ns != FACT_NONE && b->submitted_ns >= begin &&
		    b->submitted_ns <= end && (!last || b->submitted_ns > last->submitted_ns))
			last = b;
	}
	if (last && (last->reduced_ns == FACT_NONE || last->reduced_ns < last->submitted_ns ||
		     last->reduced_ns > end))
		return NULL;
	return last;
}

struct instant steps_place(struct steps *s, uint32_t proc, int64_t host_ns)
{
	return (struct instant){ proc, host_ns,
				 roster_place(s->roster, &s->roster->procs[proc], host_ns) };
}

/* How much of [begin, end] on p's clock passed before the last rank arrived. */
void steps_add_wait(struct steps *s, uint32_t proc, const struct blocked *b, int64_t begin,
		    int64_t end, struct fact_rank_step *f)
{
	const struct coll_last *last = NULL;
	struct instant here, there;
	struct gap gap;
	int64_t wait_ns, err_ns, len_ns = end - begin;

	if (b->group)
		last = match_last(s->match, b->group - 1, b->seq);
	if (!last) {
		f->wait_err_ns += len_ns; /* anything between nothing and all of it */
		return;
	}
	roster_compare(s->roster);
	here = steps_place(s, proc, begin);
	there = steps_place(s, last->proc, last->host_ns);
	gap = match_between(s->match, &there, &here);
	if (gap.err_ns == CLOCK_UNBOUNDED) {
		f->wait_err_ns += len_ns;
		return;
	}
	wait_ns = gap.ns;
	err_ns = there.proc == here.proc ? 0 : gap.err_ns;
	/* Who never waited by more than the error waited for nothing at all. */
	if (wait_ns + err_ns <= 0)
		return;
	if (!last->all_here || err_ns > len_ns)
		err_ns = len_ns;
	f->wait_ns += wait_ns < 0 ? 0 : wait_ns > len_ns ? len_ns : wait_ns;
	f->wait_err_ns += err_ns;
}

int steps_break_down(struct steps *s, const struct step *st, int32_t rank,
		     const struct rank_step *rs, struct fact_rank_step *f)
{
	const struct proc *p = &s->roster->procs[rs->proc];
	int64_t phase_ns[PHASE_N] = { 0 }, covered;
	struct fleet_point at;
	bool any_phase = false;
	size_t n = 0;

	roster_compare(s->roster);
	at = roster_place(s->roster, p, rs->from_ns);
	*f = (struct fact_rank_step){ .step = st->step,
				      .rank = rank,
				      .begin_ns = at.at.ns,
				      .begin_err_ns = at.err_ns,
				      .dur_ns = rs->to_ns - rs->from_ns,
				      .dur_err_ns = p->tick_error_ns,
				      .compute_ns = FACT_NONE,
				      .idle_ns = FACT_NONE,
				      .host_ns = FACT_NONE,
				      .pause_ns = rs->pause_ns,
				      .loop_ns = rs->begin_ns,
				      .proc = rs->proc,
				      .excess_ratio = NAN };
	f->coverage = (double)rs->n_events / ((double)rs->n_events + (double)rs->n_lost);
	if (device_known(s, rs->proc))
		return steps_break_down_device(s, st, rs, f);

	for (uint32_t i = rs->items; i; i = st->items[i - 1].next) {
		const struct step_item *it = &st->items[i - 1];
		int64_t begin = it->begin_ns, end = it->end_ns;

		steps_clip(&begin, &end, rs);
		if (it->kind == ITEM_SYNC) {
			if (end > begin && !add_blocked(s, &n, begin, end, it->group, it->seq))
				return -ENOMEM;
			continue;
		}
		if (it->kind != ITEM_PHASE)
			continue;
		any_phase = true;
		phase_ns[it->phase] += end - begin;
		if (it->phase == PHASE_BACKWARD) {
			const struct step_bucket *b = last_bucket(st, rs, it->begin_ns, it->end_ns);
			int64_t from;

			if (!b)
				continue;
			from = b->submitted_ns;
			steps_clip(&from, &end, rs);
			if (end > from && !add_blocked(s, &n, from, end, b->group, b->seq))
				return -ENOMEM;
		}
	}

	covered = rs->from_ns;
	for (size_t k = n; k-- > 0;) {
		const struct blocked *b = &s->blocked[k];
		int64_t begin = b->begin_ns > covered ? b->begin_ns : covered;

		if (b->end_ns <= begin)
			continue;
		f->exposed_comm_ns += b->end_ns - begin;
		steps_add_wait(s, rs->proc, b, begin, b->end_ns, f);
		covered = b->end_ns;
		for (uint32_t i = any_phase ? rs->items : 0; i; i = st->items[i - 1].next) {
			const struct step_item *it = &st->items[i - 1];
			int64_t from = it->begin_ns > begin ? it->begin_ns : begin;
			int64_t to = it->end_ns < b->end_ns ? it->end_ns : b->end_ns;

			if (it->kind == ITEM_PHASE && to > from)
				phase_ns[it->phase] -= to - from;
		}
	}
	f->input_wait_ns = phase_ns[PHASE_DATA];
	f->fwd_ns = phase_ns[PHASE_FORWARD];
	f->bwd_ns = phase_ns[PHASE_BACKWARD];
	f->opt_ns = phase_ns[PHASE_OPTIMIZER];
	f->eval_ns = phase_ns[PHASE_EVAL];
	f->self_ns = f->dur_ns - f->exposed_comm_ns - f->eval_ns;
	if (f->self_ns < 0) /* phases of several threads at once */
		f->self_ns = 0;
	return 0;
}

int steps_tell_buckets(struct steps *s, const struct step *st, int32_t rank,
		       const struct rank_step *rs)
{
	const struct proc *p = &s->roster->procs[rs->proc];
	int64_t applied_ns = FACT_NONE, offset_ns;
	struct fleet_point at;

	if (!rs->buckets)
		return 0;
	for (uint32_t i = rs->items; i; i = st->items[i - 1].next) {
		const struct step_item *it = &st->items[i - 1];

		if (it->kind == ITEM_PHASE && it->phase == PHASE_OPTIMIZER &&
		    it->end_ns > applied_ns)
			applied_ns = it->end_ns;
	}
	roster_compare(s->roster);
	at = roster_place(s->roster, p, rs->begin_ns);
	offset_ns = at.at.ns - rs->begin_ns;

	for (uint32_t i = rs->buckets; i; i = st->buckets[i - 1].next) {
		const struct step_bucket *b = &st->buckets[i - 1];
		struct fact_bucket *f = FACTS_PUSH(s->facts, buckets);
		const struct coll_last *last;

		if (!f)
			return -ENOMEM;
		*f = (struct fact_bucket){ .step = st->step,
					   .ddp = b->flags >> 12,
					   .micro = b->flags & 0xfff,
					   .bucket = b->bucket,
					   .rank = rank,
					   .group = b->group,
					   .bytes = b->bytes,
					   .seq = b->seq,
					   .ready_ns = FACT_NONE,
					   .submitted_ns = FACT_NONE,
					   .started_ns = FACT_NONE,
					   .reduced_ns = FACT_NONE,
					   .applied_ns = FACT_NONE,
					   .err_ns = at.err_ns };
		if (b->ready_ns != FACT_NONE)
			f->ready_ns = b->ready_ns + offset_ns;
		if (b->submitted_ns != FACT_NONE)
			f->submitted_ns = b->submitted_ns + offset_ns;
		if (b->reduced_ns != FACT_NONE)
			f->reduced_ns = b->reduced_ns + offset_ns;
		if (applied_ns != FACT_NONE)
			f->applied_ns = applied_ns + offset_ns;
		last = b->group ? match_last(s->match, b->group - 1, b->seq) : NULL;
		if (last && last->all_here) {
			at = roster_place(s->roster, &s->roster->procs[last->proc], last->host_ns);
			/* The call begins just before the hook that says SUBMIT. */
			f->started_ns = at.at.ns > f->submitted_ns ? at.at.ns : f->submitted_ns;
			f->err_ns = at.err_ns > f->err_ns ? at.err_ns : f->err_ns;
		}
	}
	return 0;
}
