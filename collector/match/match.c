#include "match_internal.h"

#include <string.h>

#define MIN_SLOTS 16
#define SHARED_SLOTS 65536 /* what all groups together may take before they need more */
#define TELL_DEPTH 64 /* unfinished collectives told from the oldest on */
#define JOIN_LATES 5  /* how long a member that nobody declared may take to turn up, in late_ns */

union arrival_block {
	struct arrival first; /* of 4 << k */
	union arrival_block *next;
};

void match_init(struct match *m, struct roster *r, struct facts *f, uint32_t max_open,
		int64_t late_ns)
{
	*m = (struct match){ .roster = r, .facts = f, .late_ns = late_ns,
			     .now_ns = INT64_MIN, .max_open = MIN_SLOTS };
	while (m->max_open < max_open && m->max_open < (1u << 20))
		m->max_open *= 2;
}

void match_fini(struct match *m)
{
	for (uint32_t i = 0; i < m->n_groups; i++) {
		struct group *g = &m->groups[i];

		for (uint32_t k = 0; k < g->n_slots; k++)
			free(g->v[k].arrivals);
		free(g->v);
		free(g->name);
		free(g->ranks);
		free(g->order);
		idmap_fini(&g->member_of);
	}
	for (size_t k = 0; k < sizeof m->spare / sizeof *m->spare; k++)
		while (m->spare[k]) {
			union arrival_block *next = m->spare[k]->next;

			free(m->spare[k]);
			m->spare[k] = next;
		}
	free(m->groups);
	free(m->index.slots);
	free(m->points);
	free(m->host_gaps);
}

/* ---- arrivals' memory: blocks of 4 << k, kept for reuse ---- */

static unsigned size_class(uint32_t n)
{
	unsigned k = 0;

	while ((4u << k) < n)
		k++;
	return k;
}

static struct arrival *block_get(struct match *m, unsigned k)
{
	union arrival_block *b = m->spare[k];

	if (b)
		m->spare[k] = b->next;
	else
		b = malloc((4u << k) * sizeof(struct arrival));
	return b ? &b->first : NULL;
}

static void block_put(struct match *m, struct arrival *a, uint32_t n)
{
	union arrival_block *b = (union arrival_block *)a;
	unsigned k;

	if (!a)
		return;
	k = size_class(n);
	b->next = m->spare[k];
	m->spare[k] = b;
}

/* ---- collectives ---- */

static struct coll *coll_at(const struct group *g, uint64_t seq)
{
	struct coll *c;

	if (g->n_slots == 0)
		return NULL;
	c = &g->v[seq & (g->n_slots - 1)];
	return c->used && c->seq == seq ? c : NULL;
}

/* Final: tell it if there is news, give its memory back, remember who was last. */
static int close_coll(struct match *m, uint32_t group, struct coll *c)
{
	int r = m->closed ? m->closed(m->closed_arg, m, group, c) : 0;

	if (r == 0 && (!c->told || c->changed))
		r = match_tell(m, group, c);
	if (!c->last_valid) {
		size_t first, last;

		match_place(m, &m->groups[group], c, &first, &last);
	}
	block_put(m, c->arrivals, c->n_alloc);
	c->arrivals = NULL;
	c->n_alloc = 0;
	c->closed = true;
	return r;
}

/* Nobody else can turn up in a group that has every rank of the world. */
static bool is_known(const struct match *m, const struct group *g)
{
	return g->known || (m->world_size > 0 && g->n_members >= m->world_size);
}

/* Time since then; what came before the first tick counts from that tick. */
static int64_t age_ns(const struct match *m, int64_t *since_ns)
{
	if (*since_ns == INT64_MIN)
		*since_ns = m->now_ns;
	return m->now_ns == INT64_MIN ? 0 : m->now_ns - *since_ns;
}

/* Told is not closed: what is closed hears nobody any more, and the events of a
 * rank may be on their way while its agent looks for us. */
static int64_t patience_ns(const struct match *m, const struct group *g)
{
	return is_known(m, g) ? m->late_ns : JOIN_LATES * m->late_ns;
}

static bool is_complete(const struct match *m, const struct group *g, struct coll *c)
{
	if (c->n_done < g->n_expected)
		return false;
	/* Without a declared membership a rank may still turn up. */
	return is_known(m, g) || m->finishing ||
	       age_ns(m, &c->done_now_ns) >= patience_ns(m, g);
}

/* Close what is complete, oldest first. */
static int close_ready(struct match *m, uint32_t group)
{
	struct group *g = &m->groups[group];

	while (g->told_below < g->next_seq) {
		uint64_t seq = g->told_below;
		struct coll *c = NULL;
		int r;

		while (seq < g->next_seq && !(c = coll_at(g, seq)))
			seq++;
		if (!c || !is_complete(m, g, c))
			return 0;
		r = close_coll(m, group, c);
		g->told_below = seq + 1;
		if (r < 0)
			return r;
	}
	return 0;
}

int match_make_room(struct match *m, uint32_t group, uint64_t seq)
{
	struct group *g = &m->groups[group];
	uint64_t lowest = g->told_below;
	uint32_t want = g->n_slots ? g->n_slots : MIN_SLOTS;
	int r = 0;

	/* Closed ones are worth keeping too: waits of open steps ask for them. */
	while (want < m->max_open &&
	       (seq + 1 > lowest + want / 2 || (uint64_t)want * m->n_groups < SHARED_SLOTS))
		want *= 2;
	if (want > g->n_slots) {
		struct coll *grown = calloc(want, sizeof *grown);

		if (!grown)
			return -ENOMEM;
		for (uint32_t i = 0; i < g->n_slots; i++)
			if (g->v[i].used)
				grown[g->v[i].seq & (want - 1)] = g->v[i];
		free(g->v);
		g->v = grown;
		g->n_slots = want;
	}
	while (g->told_below + g->n_slots <= seq) {
		struct coll *c;

		if (g->told_below >= g->next_seq) {
			g->told_below = seq - g->n_slots + 1; /* nothing is open below */
			break;
		}
		c = coll_at(g, g->told_below);
		if (c && !c->closed) {
			r = close_coll(m, group, c);
			m->n_evicted++;
		}
		g->told_below++;
		if (r < 0)
			return r;
	}
	return 0;
}

/* The slot of this call, made if it is new. 0, 1 too old, negative errno. */
static int find(struct match *m, const struct match_call *call, struct coll **ret)
{
	struct group *g = &m->groups[call->group];
	uint64_t seq = match_seq(m, call->group, call->seq_low);
	struct coll *c = coll_at(g, seq);

	if (!c) {
		int r;

		if (seq + g->n_slots < g->next_seq) {
			m->n_late++;
			return 1;
		}
		r = match_make_room(m, call->group, seq);
		if (r < 0)
			return r;
		g->started = true;
		c = &g->v[seq & (g->n_slots - 1)];
		if (c->used && c->seq > seq) {
			m->n_late++;
			return 1;
		}
		block_put(m, c->arrivals, c->n_alloc);
		*c = (struct coll){ .seq = seq,
				    .used = true,
				    .step = EVENT_STEP_UNKNOWN,
				    .first_chunk = call->chunk,
				    .first_now_ns = m->now_ns,
				    .done_now_ns = INT64_MIN,
				    .closed = seq < g->told_below };
		if (seq >= g->next_seq)
			g->next_seq = seq + 1;
	}
	if (call->member >= c->n_alloc) {
		uint32_t want = g->n_expected > call->member ? g->n_expected : call->member + 1;
		unsigned k = size_class(want);
		struct arrival *a;

		/* Told and forgotten. (A replay fills closed ones again, only for
		 * who was last: those have no answer yet.) */
		if (c->closed && c->last_valid && !c->arrivals) {
			m->n_late++;
			return 1;
		}
		a = block_get(m, k);
		if (!a)
			return -ENOMEM;
		if (c->n_alloc) {
			memcpy(a, c->arrivals, c->n_alloc * sizeof *a);
			block_put(m, c->arrivals, c->n_alloc);
		}
		for (uint32_t i = c->n_alloc; i < (4u << k); i++)
			a[i].enter_ns = a[i].exit_ns = a[i].ready_ns = FACT_NONE;
		c->arrivals = a;
		c->n_alloc = 4u << k;
	}
	if (call->chunk < c->first_chunk)
		c->first_chunk = call->chunk;
	*ret = c;
	return 0;
}

/* Sizes that may honestly differ by rank say nothing. */
static bool sizes_agree(const struct coll *c, const struct match_call *call)
{
	return call->dtype == DTYPE_OBJECT || call->op == OP_SCATTER || call->op == OP_ALL_TO_ALL ||
	       call->op == OP_BARRIER || c->bytes == call->bytes;
}

static int moved_on(struct match *m, const struct match_call *call, struct coll *c)
{
	struct group *g = &m->groups[call->group];

	c->last_valid = false;
	c->changed = true;
	if (c->n_done >= g->n_expected) {
		if (c->done_now_ns == INT64_MIN)
			c->done_now_ns = m->now_ns;
		if (c->seq >= g->told_below && is_known(m, g))
			return close_ready(m, call->group);
	}
	return 0;
}

int match_begin(struct match *m, const struct match_call *call, uint64_t *ret_seq)
{
	struct coll *c;
	struct arrival *a;
	int r = find(m, call, &c);

	if (r != 0) {
		*ret_seq = match_seq(m, call->group, call->seq_low);
		return r;
	}
	*ret_seq = c->seq;
	a = &c->arrivals[call->member];
	if (!c->has_call) {
		c->has_call = true;
		c->op = call->op;
		c->dtype = call->dtype;
		c->bytes = call->bytes;
	} else if (c->op != call->op || c->dtype != call->dtype || !sizes_agree(c, call)) {
		c->mismatch = true;
	} else if (c->bytes != call->bytes) {
		c->uneven = true;
	}
	if (c->step == EVENT_STEP_UNKNOWN)
		c->step = call->step;
	if (a->enter_ns == FACT_NONE) {
		c->n_entered++;
		if (a->exit_ns != FACT_NONE)
			c->n_done++;
	}
	a->enter_ns = call->at_ns;
	a->ready_ns = call->ready_ns;
	a->proc = call->proc;
	return moved_on(m, call, c);
}

int match_end(struct match *m, const struct match_call *call)
{
	struct coll *c;
	struct arrival *a;
	int r = find(m, call, &c);

	if (r != 0)
		return r;
	a = &c->arrivals[call->member];
	if (a->exit_ns == FACT_NONE && a->enter_ns != FACT_NONE)
		c->n_done++;
	a->exit_ns = call->at_ns;
	a->proc = call->proc;
	return moved_on(m, call, c);
}

const struct coll_last *match_last(struct match *m, uint32_t group, uint64_t seq)
{
	struct group *g = &m->groups[group];
	struct coll *c = coll_at(g, seq);

	if (!c)
		return NULL;
	if (!c->last_valid && c->arrivals) {
		size_t first, last;

		match_place(m, g, c, &first, &last);
	}
	return c->last_valid && c->last.rank >= 0 ? &c->last : NULL;
}

uint64_t match_bytes(const struct match *m, uint32_t group, uint64_t seq)
{
	const struct coll *c = group < m->n_groups ? coll_at(&m->groups[group], seq) : NULL;

	return c ? c->bytes : 0;
}

uint64_t match_first_chunk(const struct match *m, uint32_t group, uint64_t seq)
{
	const struct coll *c = coll_at(&m->groups[group], seq);

	return c ? c->first_chunk : UINT64_MAX;
}

int match_tick(struct match *m, int64_t now_ns)
{
	m->now_ns = now_ns;
	for (uint32_t i = 0; i < m->n_groups; i++) {
		struct group *g = &m->groups[i];
		unsigned depth = 0;
		uint64_t passed = 0;
		int r = close_ready(m, i);

		if (r < 0)
			return r;
		if (g->changed && (r = match_tell_group(m, i)) < 0)
			return r;

		/* Everyone is already in a later call of this communicator, so the
		 * older one is over, whatever became of its events. */
		for (uint64_t seq = g->next_seq; seq-- > g->told_below;) {
			struct coll *c = coll_at(g, seq);

			if (c && c->n_entered >= g->n_expected && g->n_expected > 1 &&
			    age_ns(m, &c->first_now_ns) >= patience_ns(m, g)) {
				passed = seq;
				break;
			}
		}
		while (g->told_below < passed) {
			struct coll *c = coll_at(g, g->told_below);

			if (c && !c->closed && (r = close_coll(m, i, c)) < 0)
				return r;
			g->told_below++;
		}
		/* What hangs or waits for company is told as it stands, and again
		 * when it changes. */
		for (uint64_t seq = g->told_below; seq < g->next_seq && depth < TELL_DEPTH; seq++) {
			struct coll *c = coll_at(g, seq);

			if (!c || c->closed)
				continue;
			depth += c->n_done < g->n_expected;
			if ((c->changed || !c->told) && age_ns(m, &c->first_now_ns) >= m->late_ns &&
			    (r = match_tell(m, i, c)) < 0)
				return r;
		}
	}
	return 0;
}

int match_finish(struct match *m)
{
	m->finishing = true;
	for (uint32_t i = 0; i < m->n_groups; i++) {
		struct group *g = &m->groups[i];
		int r;

		for (; g->told_below < g->next_seq; g->told_below++) {
			struct coll *c = coll_at(g, g->told_below);

			if (c && !c->closed && (r = close_coll(m, i, c)) < 0)
				return r;
		}
		if ((r = match_tell_group(m, i)) < 0)
			return r;
	}
	m->finishing = false;
	return 0;
}

uint64_t match_low_water(const struct match *m)
{
	uint64_t low = UINT64_MAX;

	for (uint32_t i = 0; i < m->n_groups; i++) {
		const struct group *g = &m->groups[i];

		for (uint64_t seq = g->told_below; seq < g->next_seq; seq++) {
			const struct coll *c = coll_at(g, seq);

			if (c && !c->closed && c->first_chunk < low)
				low = c->first_chunk;
		}
	}
	return low;
}
