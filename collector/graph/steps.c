#include "steps.h"

#include <math.h>
#include <string.h>

#define SETTLE_NS 100000000 /* a thread without news has nothing to say about a step this old */
#define MIN_SLOTS 64
#define MAX_SLOTS 4096
#define RANKS_BYTES (64u << 20) /* what the open steps' ranks may take by default */
#define MAX_ITEMS (1u << 21)	/* of one step over its ranks */

struct blocked {
	int64_t begin_ns, end_ns;
	uint32_t group; /* index + 1 */
	uint64_t seq;
};

struct self_of_rank {
	int64_t self_ns;
	uint32_t row;
};

void steps_init(struct steps *s, struct roster *r, struct match *m, struct facts *f,
		uint32_t n_open, int64_t late_ns)
{
	*s = (struct steps){ .roster = r,
			     .match = m,
			     .facts = f,
			     .n_open_config = n_open,
			     .late_ns = late_ns,
			     .now_ns = INT64_MIN };
}

void steps_fini(struct steps *s)
{
	for (uint32_t i = 0; i < s->n_slots; i++) {
		free(s->v[i].ranks);
		free(s->v[i].items);
		free(s->v[i].buckets);
	}
	free(s->v);
	free(s->lives);
	free(s->blocked);
	free(s->selves);
	free(s->rows);
}

int64_t steps_life(struct steps *s, int32_t restart_count)
{
	struct life *grown;

	for (uint32_t i = 0; i < s->n_lives; i++)
		if (s->lives[i].restart_count == restart_count)
			return i;
	grown = realloc(s->lives, (s->n_lives + 1) * sizeof *grown);
	if (!grown)
		return -ENOMEM;
	s->lives = grown;
	/* A restarted job counts from 0 again; to a reader its steps go on. */
	s->lives[s->n_lives] = (struct life){ restart_count, s->n_lives ? s->n_seen : 0 };
	return s->n_lives++;
}

int steps_world(struct steps *s, uint32_t world_size)
{
	uint64_t want;

	if (world_size > s->world_size)
		s->world_size = world_size;
	if (s->v)
		return 0;
	want = s->n_open_config;
	if (want == 0)
		want = RANKS_BYTES / (s->world_size * sizeof(struct rank_step) + sizeof(struct step));
	for (s->n_slots = MIN_SLOTS; 2 * s->n_slots <= want && s->n_slots < MAX_SLOTS;)
		s->n_slots *= 2;
	s->v = calloc(s->n_slots, sizeof *s->v);
	if (!s->v)
		s->n_slots = 0;
	return s->v ? 0 : -ENOMEM;
}

static struct step *step_at(const struct steps *s, uint32_t step)
{
	struct step *st;

	if (!s->v)
		return NULL;
	st = &s->v[step & (s->n_slots - 1)];
	return st->used && st->step == step ? st : NULL;
}

/* ---- the breakdown of one rank in one step ---- */

static void clip(int64_t *begin, int64_t *end, const struct rank_step *rs)
{
	if (*begin < rs->begin_ns)
		*begin = rs->begin_ns;
	if (*end > rs->end_ns)
		*end = rs->end_ns;
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
	/* Kept by begin; they come nearly in order. */
	for (i = (*n)++; i > 0 && s->blocked[i - 1].begin_ns > begin; i--)
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

/* How much of [begin, end] on p's clock passed before the last rank arrived. */
static void add_wait(struct steps *s, const struct proc *p, const struct blocked *b, int64_t begin,
		     int64_t end, struct fact_rank_step *f)
{
	const struct coll_last *last = NULL;
	const struct proc *lp;
	int64_t wait_ns, err_ns, len_ns = end - begin;

	if (b->group)
		last = match_last(s->match, b->group - 1, b->seq);
	if (!last) {
		f->wait_err_ns += len_ns; /* anything between nothing and all of it */
		return;
	}
	lp = &s->roster->procs[last->proc];
	if (lp->host == p->host) {
		wait_ns = last->host_ns - begin;
		err_ns = lp == p ? 0 : lp->tick_error_ns + p->tick_error_ns;
	} else {
		struct fleet_point at;

		roster_compare(s->roster);
		at = roster_place(s->roster, p, begin);
		if (at.err_ns == CLOCK_UNBOUNDED || last->at.err_ns == CLOCK_UNBOUNDED) {
			f->wait_err_ns += len_ns;
			return;
		}
		wait_ns = last->at.at.ns - at.at.ns;
		err_ns = last->at.err_ns + at.err_ns;
	}
	/* Who never waited by more than the error waited for nothing at all. */
	if (wait_ns + err_ns <= 0)
		return;
	if (!last->all_here || err_ns > len_ns)
		err_ns = len_ns;
	f->wait_ns += wait_ns < 0 ? 0 : wait_ns > len_ns ? len_ns : wait_ns;
	f->wait_err_ns += err_ns;
}

static int break_down(struct steps *s, const struct step *st, int32_t rank,
		      const struct rank_step *rs, struct fact_rank_step *f)
{
	const struct proc *p = &s->roster->procs[rs->proc];
	int64_t phase_ns[PHASE_N] = { 0 }, covered;
	struct fleet_point at;
	size_t n = 0;

	for (uint32_t i = rs->items; i; i = st->items[i - 1].next) {
		const struct step_item *it = &st->items[i - 1];
		int64_t begin = it->begin_ns, end = it->end_ns;

		clip(&begin, &end, rs);
		if (it->kind == ITEM_SYNC) {
			if (end > begin && !add_blocked(s, &n, begin, end, it->group, it->seq))
				return -ENOMEM;
			continue;
		}
		phase_ns[it->phase] += end - begin;
		if (it->phase == PHASE_BACKWARD) {
			const struct step_bucket *b = last_bucket(st, rs, it->begin_ns, it->end_ns);
			int64_t from;

			if (!b)
				continue;
			from = b->submitted_ns;
			clip(&from, &end, rs);
			if (end > from && !add_blocked(s, &n, from, end, b->group, b->seq))
				return -ENOMEM;
		}
	}

	roster_compare(s->roster);
	at = roster_place(s->roster, p, rs->begin_ns);
	*f = (struct fact_rank_step){ .step = st->step,
				      .rank = rank,
				      .begin_ns = at.at.ns,
				      .begin_err_ns = at.err_ns,
				      .dur_ns = rs->end_ns - rs->begin_ns,
				      .dur_err_ns = p->tick_error_ns,
				      .excess_ratio = NAN };

	covered = rs->begin_ns;
	for (size_t k = 0; k < n; k++) {
		const struct blocked *b = &s->blocked[k];
		int64_t begin = b->begin_ns > covered ? b->begin_ns : covered;

		if (b->end_ns <= begin)
			continue;
		f->exposed_comm_ns += b->end_ns - begin;
		add_wait(s, p, b, begin, b->end_ns, f);
		covered = b->end_ns;
		for (uint32_t i = rs->items; i; i = st->items[i - 1].next) {
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
	f->coverage = (double)rs->n_events / ((double)rs->n_events + (double)rs->n_lost);
	return 0;
}

static int tell_buckets(struct steps *s, const struct step *st, int32_t rank,
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

		if (!f)
			return -ENOMEM;
		*f = (struct fact_bucket){ .step = st->step,
					   .ddp = b->flags >> 12,
					   .micro = b->flags & 0xfff,
					   .bucket = b->bucket,
					   .rank = rank,
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
	}
	return 0;
}

/* ---- telling a step ---- */

static int by_self(const void *a, const void *b)
{
	const struct self_of_rank *x = a, *y = b;

	if (x->self_ns != y->self_ns)
		return x->self_ns < y->self_ns ? -1 : 1;
	return x->row < y->row ? -1 : x->row > y->row;
}

/* Each against the median of the others, from one sort. */
static void compare_peers(struct steps *s, struct fact_rank_step *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		s->selves[i] = (struct self_of_rank){ rows[i].self_ns, (uint32_t)i };
	qsort(s->selves, n, sizeof *s->selves, by_self);
	for (size_t at = 0; at < n; at++) {
		struct fact_rank_step *f = &rows[s->selves[at].row];
		size_t n_others = n - 1, lo, hi;
		double median;

		f->n_peers = (uint32_t)n_others;
		if (n_others == 0)
			continue;
		lo = (n_others - 1) / 2;
		hi = n_others / 2;
		lo += lo >= at; /* without the rank itself */
		hi += hi >= at;
		median = ((double)s->selves[lo].self_ns + (double)s->selves[hi].self_ns) / 2;
		if (median > 0)
			f->excess_ratio = (double)f->self_ns / median - 1;
	}
}

static int tell(struct steps *s, struct step *st)
{
	struct fact_rank_step *rows;
	struct fact_step *f;
	int64_t begin_ns = INT64_MAX, end_ns = INT64_MIN, begin_err_ns = 0, end_err_ns = 0;
	bool again = st->told;
	size_t n = 0;
	int r;

	st->told = true;
	st->changed = false;
	st->told_now_ns = s->now_ns;
	if (s->n_rows_alloc < st->n_ranks) {
		rows = realloc(s->rows, st->n_ranks * sizeof *rows);
		if (!rows)
			return -ENOMEM;
		s->rows = rows;
		free(s->selves);
		s->selves = malloc(st->n_ranks * sizeof *s->selves);
		s->n_rows_alloc = s->selves ? st->n_ranks : 0;
		if (!s->selves)
			return -ENOMEM;
	}
	rows = s->rows;
	for (uint32_t i = 0; i < st->n_ranks; i++) {
		const struct rank_step *rs = &st->ranks[i];
		int64_t to;

		if (rs->begin_ns == FACT_NONE || rs->end_ns == FACT_NONE)
			continue;
		r = break_down(s, st, (int32_t)i, rs, &rows[n]);
		if (r == 0)
			r = tell_buckets(s, st, (int32_t)i, rs);
		if (r < 0)
			return r;
		to = rows[n].begin_ns + rows[n].dur_ns;
		if (rows[n].begin_ns < begin_ns) {
			begin_ns = rows[n].begin_ns;
			begin_err_ns = rows[n].begin_err_ns;
		}
		if (to > end_ns) {
			end_ns = to;
			end_err_ns = rows[n].begin_err_ns;
		}
		n++;
	}
	if (n == 0)
		return 0;
	compare_peers(s, rows, n);

	for (size_t i = 0; i < n; i++) {
		struct fact_rank_step *row = FACTS_PUSH(s->facts, rank_steps);

		if (!row)
			return -ENOMEM;
		*row = rows[i];
	}
	f = FACTS_PUSH(s->facts, steps);
	if (!f)
		return -ENOMEM;
	*f = (struct fact_step){ .step = st->step,
				 .begin_ns = begin_ns,
				 .dur_ns = end_ns - begin_ns,
				 .n_ranks = (uint32_t)n,
				 .slowest_rank = -1,
				 .complete = n >= s->world_size };
	if (n == 1 || s->roster->n_hosts == 1)
		f->dur_err_ns = 2 * rows[0].dur_err_ns;
	else if (begin_err_ns == CLOCK_UNBOUNDED || end_err_ns == CLOCK_UNBOUNDED)
		f->dur_err_ns = CLOCK_UNBOUNDED;
	else
		f->dur_err_ns = begin_err_ns + end_err_ns;
	if (n > 1) {
		const struct fact_rank_step *a = &rows[s->selves[n - 1].row];
		const struct fact_rank_step *b = &rows[s->selves[n - 2].row];

		if (a->self_ns - b->self_ns > a->dur_err_ns + b->dur_err_ns)
			f->slowest_rank = a->rank;
	}
	st->complete = f->complete;
	if (st->complete) {
		if (!s->any_complete || st->step < s->first_complete)
			s->first_complete = st->step;
		if (!s->any_complete || st->step > s->last_complete)
			s->last_complete = st->step;
		s->any_complete = true;
	}
	if (!again)
		s->n_told++;
	return s->told ? s->told(s->told_arg, f, rows, n, again) : 0;
}

static int forget(struct steps *s, struct step *st)
{
	int r = !st->told || st->changed ? tell(s, st) : 0;

	st->used = false;
	return r;
}

/* Every rank that can still end it did, and no bucket is on its way. */
static bool is_ready(const struct steps *s, const struct step *st)
{
	if (st->n_ended == 0)
		return false;
	if (st->n_ended < s->world_size) {
		uint32_t n_gone = 0;

		if (st->n_ended + s->n_gone < s->world_size)
			return false;
		for (uint32_t i = 0; i < s->roster->n_procs; i++) {
			const struct proc *p = &s->roster->procs[i];

			if (p->gone && p->rank >= 0 && p->life &&
			    s->lives[p->life - 1].restart_count == (int32_t)st->life &&
			    ((uint32_t)p->rank >= st->n_ranks ||
			     st->ranks[p->rank].end_ns == FACT_NONE))
				n_gone++;
		}
		if (st->n_ended + n_gone < s->world_size)
			return false;
	}
	for (uint32_t i = 0; i < st->n_ranks; i++)
		if (st->ranks[i].n_open_buckets)
			return false;
	return true;
}

/* Has every thread that speaks gone past the end of this step? */
static bool all_passed(const struct steps *s, const struct step *st)
{
	for (uint32_t i = 0; i < s->roster->n_procs; i++) {
		const struct proc *p = &s->roster->procs[i];
		const struct rank_step *rs;

		if (p->rank < 0 || (uint32_t)p->rank >= st->n_ranks)
			continue;
		rs = &st->ranks[p->rank];
		if (rs->end_ns == FACT_NONE || &s->roster->procs[rs->proc] != p)
			continue;
		for (uint32_t k = 0; k < p->n_rings; k++)
			if (p->rings[k].used && p->rings[k].last_ns < rs->end_ns)
				return false;
	}
	return true;
}

/* Time since then; what came before the first tick counts from that tick. */
static int64_t age_ns(const struct steps *s, int64_t *since_ns)
{
	if (*since_ns == INT64_MIN)
		*since_ns = s->now_ns;
	return s->now_ns - *since_ns;
}

int steps_tick(struct steps *s, int64_t now_ns)
{
	bool in_order = true;
	int r;

	s->now_ns = now_ns;
	for (uint32_t step = s->base; step < s->next_step; step++) {
		struct step *st = step_at(s, step);

		if (st && st->told && st->changed && (r = tell(s, st)) < 0)
			return r;
		/* One that nobody spoke of yet may still come, as long as no later one
		 * could be told. */
		if (step < s->told_below || !in_order || !st)
			continue;
		if (!st->told) {
			bool ready = is_ready(s, st);
			bool late = st->n_ended > 0 &&
				    age_ns(s, &st->first_end_now_ns) >= s->late_ns;

			if (!late && !(ready && (age_ns(s, &st->ready_now_ns) >= SETTLE_NS ||
						 all_passed(s, st)))) {
				in_order = false;
				continue;
			}
			if ((r = tell(s, st)) < 0)
				return r;
		}
		s->told_below = step + 1;
	}
	while (s->base < s->told_below) {
		struct step *st = step_at(s, s->base);

		if (st) {
			bool passed = st->complete ||
				      (s->any_complete && s->last_complete > st->step);

			if (!passed || age_ns(s, &st->told_now_ns) < s->late_ns)
				break;
			if ((r = forget(s, st)) < 0)
				return r;
		}
		s->base++;
	}
	return 0;
}

int steps_finish(struct steps *s)
{
	int r;

	for (; s->base < s->next_step; s->base++) {
		struct step *st = step_at(s, s->base);

		if (st && (r = forget(s, st)) < 0)
			return r;
	}
	s->told_below = s->base;
	return 0;
}

uint64_t steps_low_water(const struct steps *s)
{
	uint64_t low = UINT64_MAX;

	for (uint32_t step = s->base; step < s->next_step; step++) {
		const struct step *st = step_at(s, step);

		if (st && st->first_chunk < low)
			low = st->first_chunk;
	}
	return low;
}

/* ---- events ---- */

/* The step's slot, made if it is new; *ret NULL when it is too old. */
static int open_step(struct steps *s, uint32_t step, uint32_t life, uint64_t chunk,
		     struct step **ret)
{
	struct step *st = step_at(s, step);
	int r;

	*ret = NULL;
	if (!st) {
		if (step < s->base || step == EVENT_STEP_UNKNOWN) {
			s->n_late++;
			return 0;
		}
		while ((uint64_t)s->base + s->n_slots <= step) {
			if (s->base >= s->next_step) {
				s->base = step - s->n_slots + 1;
				break;
			}
			st = step_at(s, s->base);
			r = st ? forget(s, st) : 0;
			s->base++;
			if (r < 0)
				return r;
		}
		if (s->told_below < s->base)
			s->told_below = s->base;
		st = &s->v[step & (s->n_slots - 1)];
		*st = (struct step){ .step = step,
				     .life = life,
				     .used = true,
				     .ranks = st->ranks,
				     .items = st->items,
				     .buckets = st->buckets,
				     .n_ranks = st->n_ranks,
				     .n_items_alloc = st->n_items_alloc,
				     .n_buckets_alloc = st->n_buckets_alloc,
				     .first_chunk = chunk,
				     .first_end_now_ns = INT64_MIN,
				     .ready_now_ns = INT64_MIN };
		for (uint32_t i = 0; i < st->n_ranks; i++)
			st->ranks[i] = (struct rank_step){ .begin_ns = FACT_NONE,
							   .end_ns = FACT_NONE };
		if (step >= s->next_step)
			s->next_step = step + 1;
		if (step >= s->n_seen)
			s->n_seen = step + 1;
	}
	if (st->life != life) { /* a straggler of the job before its restart */
		s->n_late++;
		return 0;
	}
	if (chunk < st->first_chunk)
		st->first_chunk = chunk;
	*ret = st;
	return 0;
}

static int open_rank(struct steps *s, struct step *st, const struct proc *p,
		     struct rank_step **ret)
{
	uint32_t rank = (uint32_t)p->rank;

	if (rank >= st->n_ranks) {
		uint32_t want = rank + 1 > s->world_size ? rank + 1 : s->world_size;
		struct rank_step *grown = realloc(st->ranks, want * sizeof *grown);

		if (!grown)
			return -ENOMEM;
		for (uint32_t i = st->n_ranks; i < want; i++)
			grown[i] = (struct rank_step){ .begin_ns = FACT_NONE, .end_ns = FACT_NONE };
		st->ranks = grown;
		st->n_ranks = want;
	}
	*ret = &st->ranks[rank];
	(*ret)->proc = (uint32_t)(p - s->roster->procs);
	(*ret)->n_events++;
	st->changed = true;
	return 0;
}

/* Both; *ret_rs NULL when the step is too old. step is the fact's number. */
static int open_both(struct steps *s, uint32_t step, const struct proc *p, uint64_t chunk,
		     struct step **ret_st, struct rank_step **ret_rs)
{
	int r;

	*ret_rs = NULL;
	r = open_step(s, step, (uint32_t)s->lives[p->life - 1].restart_count, chunk, ret_st);
	return r < 0 || !*ret_st ? r : open_rank(s, *ret_st, p, ret_rs);
}

static int add_item(struct step *st, struct rank_step *rs, const struct step_item *item)
{
	if (rs->n_items >= STEPS_MAX_ITEMS || st->n_items >= MAX_ITEMS) {
		rs->n_lost++; /* counted as an event that is not here */
		return 0;
	}
	if (st->n_items == st->n_items_alloc) {
		uint32_t want = st->n_items_alloc ? 2 * st->n_items_alloc : 64;
		struct step_item *grown = realloc(st->items, want * sizeof *grown);

		if (!grown)
			return -ENOMEM;
		st->items = grown;
		st->n_items_alloc = want;
	}
	st->items[st->n_items] = *item;
	st->items[st->n_items].next = rs->items;
	rs->items = ++st->n_items;
	rs->n_items++;
	return 0;
}

static int find_bucket(struct step *st, struct rank_step *rs, uint32_t bucket, uint16_t flags,
		       struct step_bucket **ret)
{
	*ret = NULL;
	for (uint32_t i = rs->buckets; i; i = st->buckets[i - 1].next)
		if (st->buckets[i - 1].bucket == bucket && st->buckets[i - 1].flags == flags) {
			*ret = &st->buckets[i - 1];
			return 0;
		}
	if (rs->n_items >= STEPS_MAX_ITEMS || st->n_buckets >= MAX_ITEMS) {
		rs->n_lost++;
		return 0;
	}
	if (st->n_buckets == st->n_buckets_alloc) {
		uint32_t want = st->n_buckets_alloc ? 2 * st->n_buckets_alloc : 64;
		struct step_bucket *grown = realloc(st->buckets, want * sizeof *grown);

		if (!grown)
			return -ENOMEM;
		st->buckets = grown;
		st->n_buckets_alloc = want;
	}
	*ret = &st->buckets[st->n_buckets];
	**ret = (struct step_bucket){ .ready_ns = FACT_NONE,
				      .submitted_ns = FACT_NONE,
				      .reduced_ns = FACT_NONE,
				      .bucket = bucket,
				      .flags = flags,
				      .next = rs->buckets };
	rs->buckets = ++st->n_buckets;
	rs->n_items++;
	return 0;
}

/* Which group does this name mean in this process? 1 when it has no name. */
static int find_group(struct steps *s, struct proc *p, uint32_t name, uint32_t *ret_group,
		      uint32_t *ret_member)
{
	struct name_use *u;

	if (name == 0 || name >= p->n_names || p->names[name].text == 0)
		return 1;
	u = &p->names[name];
	if (u->group == 0) {
		int64_t g = match_group(s->match, s->roster->texts[u->text - 1],
					(uint32_t)s->lives[p->life - 1].restart_count);
		int64_t member;

		if (g < 0)
			return (int)g;
		member = match_member(s->match, (uint32_t)g, p->rank);
		if (member < 0)
			return (int)member;
		u->group = (uint32_t)g + 1;
		u->member = (uint32_t)member;
	}
	*ret_group = u->group - 1;
	*ret_member = u->member;
	return 0;
}

static int on_step(struct steps *s, struct proc *p, struct ring *ring, uint32_t step, int64_t t_ns,
		   bool begin, uint64_t chunk)
{
	struct rank_step *rs;
	struct step *st;
	int r = open_both(s, step, p, chunk, &st, &rs);

	if (begin) { /* whatever was open on this thread lost its end */
		ring->depth = 0;
		ring->n_sync = 0;
		p->cur_step = step;
	}
	if (r < 0 || !rs)
		return r;
	if (begin) {
		if (rs->begin_ns == FACT_NONE) {
			rs->begin_ns = t_ns;
			st->n_begun++;
		}
		rs->n_lost += p->n_lost_pending;
		p->n_lost_pending = 0;
		return 0;
	}
	if (rs->end_ns != FACT_NONE)
		return 0;
	rs->end_ns = t_ns > rs->begin_ns ? t_ns : rs->begin_ns;
	if (rs->begin_ns == FACT_NONE)
		return 0; /* its begin is lost and so is the end before it */
	st->n_ended++;
	if (st->first_end_now_ns == INT64_MIN)
		st->first_end_now_ns = s->now_ns;
	if (st->n_ended == s->world_size)
		st->ready_now_ns = s->now_ns;
	return 0;
}

static int on_phase(struct steps *s, struct proc *p, struct ring *ring, uint32_t step,
		    unsigned phase, int64_t t_ns, bool begin, uint64_t chunk)
{
	struct rank_step *rs;
	struct step *st;
	unsigned depth;
	int r;

	if (phase == PHASE_NONE || phase >= PHASE_N)
		return 0;
	if (begin) {
		if (ring->depth == 0) {
			ring->outer_step = step;
			ring->outer_begin_ns = t_ns;
		}
		if (ring->depth < RING_MAX_DEPTH)
			ring->phases[ring->depth++] = (uint8_t)phase;
		/* The step must stay open for the end to find it. */
		return open_both(s, step, p, chunk, &st, &rs);
	}
	for (depth = ring->depth; depth > 0 && ring->phases[depth - 1] != phase; depth--)
		;
	if (depth == 0)
		return 0; /* its begin is lost */
	ring->depth = (uint8_t)(depth - 1);
	if (ring->depth > 0)
		return 0;
	r = open_both(s, ring->outer_step, p, chunk, &st, &rs);
	if (r < 0 || !rs || t_ns < ring->outer_begin_ns)
		return r;
	return add_item(st, rs,
			&(struct step_item){ .begin_ns = ring->outer_begin_ns,
					     .end_ns = t_ns,
					     .kind = ITEM_PHASE,
					     .phase = (uint8_t)phase });
}

static int on_coll(struct steps *s, struct proc *p, struct ring *ring, const struct event *ev,
		   uint32_t step, uint64_t chunk)
{
	struct match_call call = { .proc = (uint32_t)(p - s->roster->procs),
				   .seq_low = event_low(ev->a),
				   .op = (uint8_t)(ev->flags >> 8),
				   .dtype = (uint8_t)ev->flags,
				   .bytes = ev->b & ~EVENT_COLL_SYNC_BIT,
				   .step = step,
				   .at_ns = (int64_t)ev->tick,
				   .chunk = chunk };
	bool begin = ev->kind == EVENT_COLL_BEGIN, matched = false;
	struct rank_step *rs = NULL;
	struct step *st = NULL;
	uint64_t seq = call.seq_low;
	int r;

	/* Point-to-point calls block the loop but have another pairing. */
	if (call.op != OP_SEND && call.op != OP_RECV) {
		r = find_group(s, p, ev->name, &call.group, &call.member);
		if (r < 0)
			return r == -E2BIG ? 0 : r;
		matched = r == 0;
	}
	if (matched) {
		r = begin ? match_begin(s->match, &call, &seq) : match_end(s->match, &call);
		if (r < 0)
			return r;
		if (!begin)
			seq = match_seq(s->match, call.group, call.seq_low);
	}
	if (step == EVENT_STEP_UNKNOWN)
		return 0;
	r = open_both(s, step, p, chunk, &st, &rs);
	if (r < 0 || !rs)
		return r;
	if (matched) { /* who was last in it must still be known when the step is told */
		uint64_t first = match_first_chunk(s->match, call.group, seq);

		if (first < st->first_chunk)
			st->first_chunk = first;
	}

	if (begin) {
		if ((ev->b & EVENT_COLL_SYNC_BIT) && !ring->n_sync) {
			ring->n_sync = 1;
			ring->sync_step = step;
			ring->sync_group = matched ? call.group + 1 : 0;
			ring->sync_seq = seq;
			ring->sync_name = ev->name;
			ring->sync_low = call.seq_low;
			ring->sync_begin_ns = call.at_ns;
		}
		return 0;
	}
	if (!ring->n_sync || ring->sync_name != ev->name || ring->sync_low != call.seq_low)
		return 0;
	ring->n_sync = 0;
	if (ring->sync_step != step) {
		r = open_both(s, ring->sync_step, p, chunk, &st, &rs);
		if (r < 0 || !rs)
			return r;
	}
	return add_item(st, rs,
			&(struct step_item){ .begin_ns = ring->sync_begin_ns,
					     .end_ns = call.at_ns,
					     .seq = ring->sync_seq,
					     .group = ring->sync_group,
					     .kind = ITEM_SYNC });
}

static int on_bucket(struct steps *s, struct proc *p, const struct event *ev, uint32_t step,
		     uint64_t chunk)
{
	struct rank_step *rs;
	struct step_bucket *b;
	struct step *st;
	uint32_t group, member;
	int r = open_both(s, step, p, chunk, &st, &rs);

	if (r < 0 || !rs)
		return r;
	r = find_bucket(st, rs, event_low(ev->a), ev->flags, &b);
	if (r < 0 || !b)
		return r;
	if (ev->kind == EVENT_BUCKET_READY) {
		b->ready_ns = (int64_t)ev->tick;
		b->bytes = ev->b;
		return 0;
	}
	b->seq = ev->b;
	r = find_group(s, p, ev->name, &group, &member);
	if (r < 0 && r != -E2BIG)
		return r;
	if (r == 0) {
		b->group = group + 1;
		b->seq = match_seq(s->match, group, (uint32_t)ev->b);
	}
	if (ev->kind == EVENT_BUCKET_SUBMIT) {
		if (b->submitted_ns == FACT_NONE && b->reduced_ns == FACT_NONE)
			rs->n_open_buckets++;
		b->submitted_ns = (int64_t)ev->tick;
	} else {
		if (b->submitted_ns != FACT_NONE && b->reduced_ns == FACT_NONE)
			rs->n_open_buckets--;
		b->reduced_ns = (int64_t)ev->tick;
	}
	return 0;
}

int steps_event(struct steps *s, struct proc *p, struct ring *ring, const struct event *ev,
		uint64_t chunk)
{
	uint32_t step = event_step(ev->a), first = s->lives[p->life - 1].first_step;

	if (step == EVENT_STEP_UNKNOWN)
		step = p->cur_step;
	else if (step >= EVENT_STEP_UNKNOWN - first)
		step = EVENT_STEP_UNKNOWN;
	else
		step += first;

	switch (ev->kind) {
	case EVENT_STEP_BEGIN:
	case EVENT_STEP_END: {
		int r = on_step(s, p, ring, step, (int64_t)ev->tick, ev->kind == EVENT_STEP_BEGIN,
				chunk);

		/* By contract the end of one is the beginning of the next. */
		if (r == 0 && ev->kind == EVENT_STEP_END && step < EVENT_STEP_UNKNOWN - 1)
			r = on_step(s, p, ring, step + 1, (int64_t)ev->tick, true, chunk);
		return r;
	}
	case EVENT_PHASE_BEGIN:
	case EVENT_PHASE_END:
		return on_phase(s, p, ring, step, ev->flags, (int64_t)ev->tick,
				ev->kind == EVENT_PHASE_BEGIN, chunk);
	case EVENT_COLL_BEGIN:
	case EVENT_COLL_END:
		return on_coll(s, p, ring, ev, step, chunk);
	case EVENT_BUCKET_READY:
	case EVENT_BUCKET_SUBMIT:
	case EVENT_BUCKET_REDUCED:
		return on_bucket(s, p, ev, step, chunk);
	default:
		return 0;
	}
}

void steps_lost(struct steps *s, struct proc *p, uint64_t n)
{
	struct step *st = p->cur_step == EVENT_STEP_UNKNOWN ? NULL : step_at(s, p->cur_step);

	if (st && (uint32_t)p->rank < st->n_ranks) {
		st->ranks[p->rank].n_lost += n;
		st->changed = true;
	} else {
		p->n_lost_pending += n;
	}
}
