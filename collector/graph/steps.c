#include "steps_internal.h"

#define SETTLE_NS 100000000 /* a thread without news has nothing to say about a step this old */
#define MIN_SLOTS 64
#define MAX_SLOTS 4096
#define RANKS_BYTES (64u << 20) /* what the open steps' ranks may take by default */
#define HOLD_LATES 5 /* how long a life waits for another to be over, in late_ns */

void steps_init(struct steps *s, struct roster *r, struct match *m, struct facts *f,
		uint32_t n_open, int64_t late_ns)
{
	*s = (struct steps){ .roster = r,
			     .match = m,
			     .facts = f,
			     .n_open_config = n_open,
			     .late_ns = late_ns,
			     .now_ns = INT64_MIN,
			     .heard_now_ns = INT64_MIN,
			     .held_now_ns = INT64_MIN };
}

void steps_fini(struct steps *s)
{
	for (uint32_t i = 0; i < s->n_slots; i++) {
		free(s->v[i].ranks);
		free(s->v[i].items);
		free(s->v[i].buckets);
	}
	free(s->v);
	free(s->devices);
	free(s->lives);
	free(s->spans);
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
	s->lives[s->n_lives] = (struct life){ restart_count };
	return s->n_lives++;
}

/* ---- the numbers of lives ---- */

bool steps_number(struct steps *s, int32_t restart_count, uint32_t own, struct number *ret)
{
	ret->next_chunk = 0;
	for (uint32_t i = s->n_spans; i-- > 0;) {
		const struct span *v = &s->spans[i];
		uint64_t step = (uint64_t)v->first_step + own - v->own_first;

		if (v->restart_count != restart_count || own < v->own_first)
			continue;
		if (i + 1 < s->n_spans) {
			ret->end = s->spans[i + 1].first_step;
			ret->next_chunk = s->spans[i + 1].begun_chunk;
			if (step >= ret->end)
				return false;
		} else {
			ret->end = EVENT_STEP_UNKNOWN;
			s->heard_now_ns = s->now_ns;
		}
		ret->step = step < EVENT_STEP_UNKNOWN ? (uint32_t)step : EVENT_STEP_UNKNOWN;
		return true;
	}
	return false;
}

/* Whose number is that? Stragglers know a step by its number, too. */
static bool is_owned(const struct steps *s, uint32_t step, uint32_t restart_count)
{
	for (uint32_t i = s->n_spans; i-- > 0;)
		if (s->spans[i].first_step <= step)
			return (uint32_t)s->spans[i].restart_count == restart_count;
	return false;
}

static bool has_span(const struct steps *s, int32_t restart_count)
{
	for (uint32_t i = 0; i < s->n_spans; i++)
		if (s->spans[i].restart_count == restart_count)
			return true;
	return false;
}

static bool is_life_gone(const struct steps *s, int32_t restart_count)
{
	for (uint32_t i = 0; i < s->roster->n_procs; i++) {
		const struct proc *p = &s->roster->procs[i];

		if (p->life && !p->gone && s->lives[p->life - 1].restart_count == restart_count)
			return false;
	}
	return true;
}

static int64_t age_ns(const struct steps *s, int64_t *since_ns);

bool steps_may_begin(struct steps *s, int32_t restart_count, bool *ret_over)
{
	int64_t held_ns = age_ns(s, &s->held_now_ns);

	*ret_over = s->n_spans == 0 || is_life_gone(s, s->spans[s->n_spans - 1].restart_count);
	if (held_ns >= HOLD_LATES * s->late_ns)
		return true; /* two at once: they take turns */
	/* The earlier lives of a job met in the middle are announced in a moment. */
	if (s->n_spans == 0 && restart_count > 0 && held_ns < s->late_ns / 2)
		return false;
	if (s->n_spans > 0 &&
	    age_ns(s, &s->heard_now_ns) < (*ret_over ? s->late_ns / 2 : s->late_ns))
		return false;
	for (uint32_t i = 0; i < s->n_lives; i++)
		if (s->lives[i].restart_count < restart_count &&
		    !has_span(s, s->lives[i].restart_count) && held_ns < s->late_ns)
			return false; /* it was announced, its events may be on their way */
	return true;
}

int steps_add_span(struct steps *s, const struct span *v)
{
	struct span *grown = realloc(s->spans, (s->n_spans + 1) * sizeof *grown);

	if (!grown)
		return -ENOMEM;
	s->spans = grown;
	s->spans[s->n_spans++] = *v;
	return 0;
}

int steps_begin(struct steps *s, int32_t restart_count, bool over, uint64_t chunk)
{
	struct span v = { .restart_count = restart_count, .begun_chunk = chunk };
	uint32_t n_cut = 0;
	int r;

	v.first_step = s->n_seen > s->told_below ? s->n_seen : s->told_below;
	if (v.first_step < s->base)
		v.first_step = s->base;
	if (s->n_spans > 0 && v.first_step < s->spans[s->n_spans - 1].first_step)
		v.first_step = s->spans[s->n_spans - 1].first_step;
	if (!over && v.first_step < s->next_step)
		v.first_step = s->next_step;
	for (uint32_t i = s->n_spans; i-- > 0;)
		if (s->spans[i].restart_count == restart_count) { /* it goes on where it was cut */
			uint32_t end = i + 1 < s->n_spans ? s->spans[i + 1].first_step
							  : v.first_step;

			v.own_first = s->spans[i].own_first + (end - s->spans[i].first_step);
			s->n_cut += s->spans[i].n_cut;
			break;
		}
	r = steps_add_span(s, &v);
	if (r < 0)
		return r;
	for (uint32_t step = v.first_step; step < s->next_step; step++) {
		struct step *st = steps_at(s, step);

		if (!st)
			continue;
		st->used = false; /* no rank ended it */
		for (uint32_t i = 0; i < st->n_ranks; i++)
			n_cut += st->ranks[i].n_events;
	}
	if (s->n_spans > 1)
		s->spans[s->n_spans - 2].n_cut = n_cut;
	if (s->next_step > v.first_step)
		s->next_step = v.first_step;
	s->heard_now_ns = s->now_ns;
	s->held_now_ns = INT64_MIN;
	return 0;
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
	if (st->n_ended < steps_n_expected(s)) {
		uint32_t n_gone = 0;

		if (st->n_ended + s->n_gone < steps_n_expected(s))
			return false;
		for (uint32_t i = 0; i < s->roster->n_procs; i++) {
			const struct proc *p = &s->roster->procs[i];

			if (p->gone && p->rank >= 0 && p->life &&
			    s->lives[p->life - 1].restart_count == (int32_t)st->life &&
			    ((uint32_t)p->rank >= st->n_ranks ||
			     st->ranks[p->rank].end_ns == FACT_NONE))
				n_gone++;
		}
		if (st->n_ended + n_gone < steps_n_expected(s))
			return false;
	}
	for (uint32_t i = 0; i < st->n_ranks; i++)
		if (st->ranks[i].n_open_buckets || device_works(s, st, &st->ranks[i]))
			return false;
	return true;
}

/* A device that is behind its host, and was heard of lately. */
static bool is_behind(const struct steps *s, const struct step *st)
{
	for (uint32_t i = 0; i < st->n_ranks; i++)
		if (device_works(s, st, &st->ranks[i]) &&
		    age_ns(s, &device_known(s, st->ranks[i].proc)->news_now_ns) < s->late_ns)
			return true;
	return false;
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
				    age_ns(s, &st->first_end_now_ns) >= s->late_ns &&
				    !is_behind(s, st);

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

	s->finishing = true;
	for (; s->base < s->next_step; s->base++) {
		struct step *st = steps_at(s, s->base);

		if (st && (r = forget(s, st)) < 0)
			return r;
	}
	s->finishing = false;
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

/* A slot takes the arrays of one that is done with them: a large job's are tens of
 * megabytes, and only as many are needed as steps are open at once. */
static void take_arrays(struct steps *s, struct step *st)
{
	for (uint32_t i = 0; i < s->n_slots && !st->items && !st->buckets; i++) {
		struct step *old = &s->v[i];

		if (old->used || old == st)
			continue;
		st->items = old->items;
		st->n_items_alloc = old->n_items_alloc;
		st->buckets = old->buckets;
		st->n_buckets_alloc = old->n_buckets_alloc;
		old->items = NULL;
		old->buckets = NULL;
		old->n_items_alloc = old->n_buckets_alloc = 0;
	}
}

int steps_open(struct steps *s, uint32_t step, uint32_t life, uint64_t chunk,
	       struct step **ret)
{
	struct step *st = steps_at(s, step);
	int r;

	*ret = NULL;
	if (!st) {
		if (step == EVENT_STEP_UNKNOWN)
			return 0;
		if (step < s->base || !is_owned(s, step, life)) {
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
		take_arrays(s, st);
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
			st->ranks[i] = STEPS_NO_RANK;
		if (step >= s->next_step)
			s->next_step = step + 1;
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
