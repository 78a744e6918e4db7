/* events.c - the loop's events of one rank become intervals in its open steps. */
#include "steps_internal.h"

#define MAX_ITEMS (1u << 21) /* of one step over its ranks */

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
			grown[i] = STEPS_NO_RANK;
		st->ranks = grown;
		st->n_ranks = want;
	}
	*ret = &st->ranks[rank];
	(*ret)->proc = (uint32_t)(p - s->roster->procs);
	(*ret)->n_events++;
	st->changed = true;
	return 0;
}

int steps_open_both(struct steps *s, uint32_t step, const struct proc *p, uint64_t chunk,
		    struct step **ret_st, struct rank_step **ret_rs)
{
	struct step *st = steps_at(s, step);
	uint32_t rank = (uint32_t)p->rank;
	int r;

	/* Nearly always it is open, and the rank in it. */
	if (st && st->life == (uint32_t)s->lives[p->life - 1].restart_count && chunk >= st->first_chunk &&
	    rank < st->n_ranks) {
		*ret_st = st;
		*ret_rs = &st->ranks[rank];
		(*ret_rs)->proc = (uint32_t)(p - s->roster->procs);
		(*ret_rs)->n_events++;
		st->changed = true;
		return 0;
	}
	*ret_rs = NULL;
	r = steps_open(s, step, (uint32_t)s->lives[p->life - 1].restart_count, chunk, ret_st);
	return r < 0 || !*ret_st ? r : open_rank(s, *ret_st, p, ret_rs);
}

int steps_add_item(struct step *st, struct rank_step *rs, const struct step_item *item)
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

int steps_find_group(struct steps *s, struct proc *p, uint32_t name, uint32_t *ret_group,
		     uint32_t *ret_member)
{
	struct name_use *u;

	if (name == 0 || name >= p->n_names || p->names[name].text == 0)
		return 1;
	u = &p->names[name];
	if (u->group == 0) {
		int64_t g = match_group(s->match, s->roster->texts[u->text - 1],
					(uint32_t)s->lives[p->life - 1].restart_count, p->rank);
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
	int r = steps_open_both(s, step, p, chunk, &st, &rs);

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
	if (step >= s->n_seen)
		s->n_seen = step + 1;
	if (st->first_end_now_ns == INT64_MIN)
		st->first_end_now_ns = s->now_ns;
	if (st->n_ended == steps_n_expected(s))
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
		return steps_open_both(s, step, p, chunk, &st, &rs);
	}
	for (depth = ring->depth; depth > 0 && ring->phases[depth - 1] != phase; depth--)
		;
	if (depth == 0)
		return 0; /* its begin is lost */
	ring->depth = (uint8_t)(depth - 1);
	if (ring->depth > 0)
		return 0;
	r = steps_open_both(s, ring->outer_step, p, chunk, &st, &rs);
	if (r < 0 || !rs || t_ns < ring->outer_begin_ns)
		return r;
	return steps_add_item(st, rs,
			&(struct step_item){ .begin_ns = ring->outer_begin_ns,
					     .end_ns = t_ns,
					     .kind = ITEM_PHASE,
					     .phase = (uint8_t)phase });
}

/* Named work of a host thread, the outermost of what it is in. */
static int on_work(struct steps *s, struct proc *p, struct ring *ring, uint32_t step, int64_t t_ns,
		   bool begin, uint64_t chunk)
{
	struct rank_step *rs;
	struct step *st;
	int r;

	if (begin) {
		if (ring->work_depth++ == 0) {
			ring->work_step = step;
			ring->work_begin_ns = t_ns;
		}
		return 0;
	}
	if (ring->work_depth == 0 || --ring->work_depth > 0 ||
	    ring->work_step == EVENT_STEP_UNKNOWN)
		return 0;
	r = steps_open_both(s, ring->work_step, p, chunk, &st, &rs);
	if (r < 0 || !rs || t_ns < ring->work_begin_ns)
		return r;
	return steps_add_item(st, rs, &(struct step_item){ .begin_ns = ring->work_begin_ns,
							   .end_ns = t_ns, .kind = ITEM_WORK });
}

/* own: EVENT_STEP_UNKNOWN where the event itself names no step. */
static int on_coll(struct steps *s, struct proc *p, struct ring *ring, const struct event *ev,
		   uint32_t step, uint32_t own, uint64_t chunk)
{
	struct match_call call = { .proc = (uint32_t)(p - s->roster->procs),
				   .seq_low = event_low(ev->a),
				   .op = (uint8_t)(ev->flags >> 8),
				   .dtype = (uint8_t)ev->flags,
				   .bytes = ev->b & ~EVENT_COLL_SYNC_BIT,
				   .step = step,
				   .at_ns = (int64_t)ev->tick,
				   .ready_ns = ring->end_ns ? ring->end_ns : FACT_NONE,
				   .chunk = chunk };
	bool begin = ev->kind == EVENT_COLL_BEGIN, matched = false;
	bool on_device = device_has_call(s, p, ring);
	struct rank_step *rs = NULL;
	struct step *st = NULL;
	uint64_t seq = call.seq_low;
	int r = 0;

	/* Point-to-point calls block the loop but have another pairing. */
	if (call.op != OP_SEND && call.op != OP_RECV) {
		r = steps_find_group(s, p, ev->name, &call.group, &call.member);
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
	if (!begin)
		ring->end_ns = 0; /* leaving a collective is nobody's work */
	if (on_device) {
		r = device_call(s, p, ev, own, matched ? call.group + 1 : 0, seq, chunk);
		step = own;
	}
	if (r < 0 || step == EVENT_STEP_UNKNOWN)
		return r < 0 ? r : 0;
	if (on_device)
		st = steps_at(s, step);
	else
		r = steps_open_both(s, step, p, chunk, &st, &rs);
	if (r < 0 || !st)
		return r;
	if (matched) { /* who was last in it must still be known when the step is told */
		uint64_t first = match_first_chunk(s->match, call.group, seq);

		if (first < st->first_chunk)
			st->first_chunk = first;
	}

	if (on_device || !rs)
		return 0;
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
		r = steps_open_both(s, ring->sync_step, p, chunk, &st, &rs);
		if (r < 0 || !rs)
			return r;
	}
	return steps_add_item(st, rs,
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
	int r = steps_open_both(s, step, p, chunk, &st, &rs);

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
	r = steps_find_group(s, p, ev->name, &group, &member);
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
	uint32_t step = event_step(ev->a), own = step;
	struct number at = { .end = EVENT_STEP_UNKNOWN };

	if (step == EVENT_STEP_UNKNOWN)
		step = p->cur_step;
	else if (steps_number(s, s->lives[p->life - 1].restart_count, step, &at))
		step = own = at.step;
	else /* what was seen before the cut was of the unfinished step: this is a replay */
		return chunk <= at.next_chunk ? STEPS_OK : STEPS_HOLD;

	ring->is_host |= !(ev->kind == EVENT_COLL_BEGIN || ev->kind == EVENT_COLL_END ||
			   ev->kind == EVENT_KERNEL_BEGIN || ev->kind == EVENT_KERNEL_END);
	if (ev->kind == EVENT_KERNEL_END || ev->kind == EVENT_WORK_END || ev->kind == EVENT_PHASE_END)
		ring->end_ns = (int64_t)ev->tick;
	switch (ev->kind) {
	case EVENT_STEP_BEGIN:
	case EVENT_STEP_END: {
		int r = on_step(s, p, ring, step, (int64_t)ev->tick, ev->kind == EVENT_STEP_BEGIN,
				chunk);

		device_host(s, p, step, (int64_t)ev->tick, ev->kind == EVENT_STEP_BEGIN);
		/* By contract the end of one is the beginning of the next. */
		if (r < 0 || ev->kind == EVENT_STEP_BEGIN || step >= EVENT_STEP_UNKNOWN - 1)
			return r;
		if (step + 1 >= at.end) /* its number is another life's */
			return chunk <= at.next_chunk ? STEPS_OK : STEPS_HOLD_NEXT;
		r = on_step(s, p, ring, step + 1, (int64_t)ev->tick, true, chunk);
		return r;
	}
	case EVENT_PHASE_BEGIN:
	case EVENT_PHASE_END:
		return on_phase(s, p, ring, step, ev->flags, (int64_t)ev->tick,
				ev->kind == EVENT_PHASE_BEGIN, chunk);
	case EVENT_COLL_BEGIN:
	case EVENT_COLL_END:
		return on_coll(s, p, ring, ev, step, own, chunk);
	case EVENT_WORK_BEGIN:
	case EVENT_WORK_END:
		return on_work(s, p, ring, step, (int64_t)ev->tick, ev->kind == EVENT_WORK_BEGIN,
			       chunk);
	case EVENT_HOST_WAIT_BEGIN:
	case EVENT_HOST_WAIT_END:
		device_host(s, p, own, (int64_t)ev->tick, ev->kind == EVENT_HOST_WAIT_END);
		return 0;
	case EVENT_LAUNCH:
	case EVENT_COLL_SUBMIT:
	case EVENT_KERNEL_BEGIN:
	case EVENT_KERNEL_END:
		return device_event(s, p, ev, own, chunk);
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
	struct step *st = p->cur_step == EVENT_STEP_UNKNOWN ? NULL : steps_at(s, p->cur_step);

	device_forget(s, (uint32_t)(p - s->roster->procs));
	if (st && st->life == (uint32_t)s->lives[p->life - 1].restart_count &&
	    (uint32_t)p->rank < st->n_ranks) {
		st->ranks[p->rank].n_lost += n;
		st->changed = true;
	} else {
		p->n_lost_pending += n;
	}
}
