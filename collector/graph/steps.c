#include "steps_internal.h"

#define SETTLE_NS 100000000 /* a thread without news has nothing to say about a step this old */
#define MIN_SLOTS 64
#define MAX_SLOTS 4096
#define RANKS_BYTES (64u << 20) /* what the open steps' ranks may take by default */

#define SETTLE_NS 100000000 /* a thread without news has nothing to say about a step this old */
#define MIN_SLOTS 64
#define MAX_SLOTS 4096
#define RANKS_BYTES (64u << 20) /* what the open steps' ranks may take by default */
#define MAX_ITEMS (1u << 21)	/* of one step over its ranks */

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

struct step *steps_at(const struct steps *s, uint32_t step)
{
	struct step *st;

	if (!s->v)
		return NULL;
	st = &s->v[step & (s->n_slots - 1)];
	return st->used && st->step == step ? st : NULL;
}

/* ---- when is a step told ---- */

static int forget(struct steps *s, struct step *st)
{
	int r = !st->told || st->changed ? steps_tell(s, st) : 0;

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
		struct step *st = steps_at(s, step);

		if (st && st->told && st->changed && (r = steps_tell(s, st)) < 0)
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
			if ((r = steps_tell(s, st)) < 0)
				return r;
		}
		s->told_below = step + 1;
	}
	while (s->base < s->told_below) {
		struct step *st = steps_at(s, s->base);

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
		struct step *st = steps_at(s, s->base);

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
		const struct step *st = steps_at(s, step);

		if (st && st->first_chunk < low)
			low = st->first_chunk;
	}
	return low;
}

/* ---- opening one ---- */

int steps_open(struct steps *s, uint32_t step, uint32_t life, uint64_t chunk,
	       struct step **ret)
{
	struct step *st = steps_at(s, step);
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
			st = steps_at(s, s->base);
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
