#include "match.h"

#include <stdio.h>
#include <string.h>

#define MIN_SLOTS 16
#define SHARED_SLOTS 65536 /* what all groups together may take before they need more */
#define TELL_DEPTH 64 /* unfinished collectives told from the oldest on */

union arrival_block {
	struct arrival first; /* of 4 << k */
	union arrival_block *next;
};

struct match_point {
	struct fleet_point at;
	int64_t host_ns;
	uint32_t member, proc, host;
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

/* ---- groups ---- */

static uint64_t group_hash(const char *name, uint32_t life)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325) ^ life;

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
	return idmap_mix(h);
}

static uint32_t *group_slot(const struct match *m, const char *name, uint32_t life)
{
	for (uint64_t i = group_hash(name, life);; i++) {
		uint32_t *s = &m->index.slots[i & (m->index.n_slots - 1)];

		if (*s == 0 || (m->groups[*s - 1].life == life &&
				strcmp(m->groups[*s - 1].name, name) == 0))
			return s;
	}
}

int64_t match_group(struct match *m, const char *name, uint32_t life)
{
	struct group *g;
	uint32_t *s;

	if (2 * (m->n_groups + 1) > m->index.n_slots) {
		uint32_t n = m->index.n_slots ? 2 * m->index.n_slots : 64;
		uint32_t *slots = calloc(n, sizeof *slots);

		if (!slots)
			return -ENOMEM;
		free(m->index.slots);
		m->index.slots = slots;
		m->index.n_slots = n;
		for (uint32_t i = 0; i < m->n_groups; i++)
			*group_slot(m, m->groups[i].name, m->groups[i].life) = i + 1;
	}
	s = group_slot(m, name, life);
	if (*s)
		return *s - 1;
	if (m->n_groups == m->n_groups_alloc) {
		uint32_t n = m->n_groups_alloc ? 2 * m->n_groups_alloc : 8;
		struct group *grown = realloc(m->groups, n * sizeof *grown);

		if (!grown)
			return -ENOMEM;
		m->groups = grown;
		m->n_groups_alloc = n;
	}
	g = &m->groups[m->n_groups];
	*g = (struct group){ .life = life, .changed = true };
	g->name = strdup(name);
	if (!g->name)
		return -ENOMEM;
	*s = ++m->n_groups;
	return *s - 1;
}

/* The membership changed: who was last in the open ones must be asked anew. */
static void forget_last(struct group *g)
{
	for (uint32_t k = 0; k < g->n_slots; k++)
		if (g->v[k].arrivals)
			g->v[k].last_valid = false;
}

int64_t match_member(struct match *m, uint32_t group, int32_t rank)
{
	struct group *g = &m->groups[group];
	uint32_t i = idmap_get(&g->member_of, (uint32_t)rank);
	int r;

	if (i != IDMAP_NONE)
		return i;
	if (g->n_members == MATCH_MAX_MEMBERS)
		return -E2BIG;
	if (g->n_members == g->n_members_alloc) {
		uint32_t n = g->n_members_alloc ? 2 * g->n_members_alloc : 8;
		int32_t *ranks = realloc(g->ranks, n * sizeof *ranks);
		uint32_t *order;

		if (!ranks)
			return -ENOMEM;
		g->ranks = ranks;
		order = realloc(g->order, n * sizeof *order);
		if (!order)
			return -ENOMEM;
		g->order = order;
		g->n_members_alloc = n;
	}
	r = idmap_put(&g->member_of, (uint32_t)rank, g->n_members);
	if (r < 0)
		return r;
	g->ranks[g->n_members] = rank;
	g->order_valid = false;
	g->changed = true;
	if (!g->known)
		g->n_expected = g->n_members + 1;
	forget_last(g);
	return g->n_members++;
}

int match_members(struct match *m, uint32_t group, const int32_t *ranks, size_t n)
{
	struct group *g = &m->groups[group];

	if (n == 0 || n > MATCH_MAX_MEMBERS)
		return 0;
	for (size_t i = 0; i < n; i++) {
		int64_t r;

		if (ranks[i] < 0 || ranks[i] >= FACT_MAX_RANKS)
			continue;
		r = match_member(m, group, ranks[i]);
		if (r < 0)
			return (int)r;
		g = &m->groups[group];
	}
	if (!g->known || g->n_expected != n)
		g->changed = true;
	g->known = true;
	g->n_expected = (uint32_t)n;
	forget_last(g);
	return 0;
}

static void sort_members(struct group *g)
{
	if (g->order_valid)
		return;
	/* Insertion: members come nearly in order and only at the start. */
	for (uint32_t i = 0; i < g->n_members; i++) {
		uint32_t k = i;

		for (; k > 0 && g->ranks[g->order[k - 1]] > g->ranks[i]; k--)
			g->order[k] = g->order[k - 1];
		g->order[k] = i;
	}
	g->order_valid = true;
}

static int tell_group(struct match *m, uint32_t group)
{
	struct group *g = &m->groups[group];
	struct fact_group *f;
	char *json, *at;

	if (!g->changed)
		return 0;
	sort_members(g);
	at = json = malloc(16 + 12 * (size_t)g->n_members);
	if (!json)
		return -ENOMEM;
	*at++ = '[';
	for (uint32_t i = 0; i < g->n_members; i++)
		at += sprintf(at, "%s%d", i ? "," : "", g->ranks[g->order[i]]);
	*at++ = ']';
	*at = '\0';

	f = FACTS_PUSH(m->facts, groups);
	if (f) {
		f->group = group;
		/* A restarted job's sequences begin anew: another group to a reader. */
		f->name = g->life ? facts_printf(m->facts, "%s#%u", g->name, g->life)
				  : facts_string(m->facts, g->name);
		f->ranks_known = g->known;
		f->ranks_json = facts_string(m->facts, json);
		g->changed = false;
	}
	free(json);
	return f ? 0 : -ENOMEM;
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

static bool disjoint(const struct roster *r, const struct match_point *late,
		     const struct match_point *other)
{
	if (late->host == other->host)
		return late->host_ns - other->host_ns > r->procs[late->proc].tick_error_ns +
							       r->procs[other->proc].tick_error_ns;
	if (late->at.err_ns == CLOCK_UNBOUNDED || other->at.err_ns == CLOCK_UNBOUNDED)
		return false;
	return late->at.at.ns - late->at.err_ns > other->at.at.ns + other->at.err_ns;
}

/* Place every arrival and find the first and the last. Returns how many. */
static size_t place(struct match *m, const struct group *g, struct coll *c, size_t *ret_first,
		    size_t *ret_last)
{
	size_t n = 0, first = 0, last = 0;

	if (m->n_points < g->n_members) {
		struct match_point *grown = realloc(m->points, g->n_members * sizeof *grown);

		if (!grown)
			return 0;
		m->points = grown;
		m->n_points = g->n_members;
	}
	roster_compare(m->roster);
	for (uint32_t i = 0; i < c->n_alloc && i < g->n_members; i++) {
		const struct arrival *a = &c->arrivals[i];
		struct match_point *p = &m->points[n];

		if (a->enter_ns == FACT_NONE)
			continue;
		p->member = i;
		p->proc = a->proc;
		p->host = m->roster->procs[a->proc].host;
		p->host_ns = a->enter_ns;
		p->at = roster_place(m->roster, &m->roster->procs[a->proc], a->enter_ns);
		if (p->at.at.ns < m->points[first].at.at.ns)
			first = n;
		if (p->at.at.ns > m->points[last].at.at.ns)
			last = n;
		n++;
	}
	*ret_first = first;
	*ret_last = last;

	c->last = (struct coll_last){ .rank = -1 };
	c->last_valid = true;
	if (n == 0)
		return 0;
	c->last.all_here = c->n_entered >= g->n_expected;
	c->last.decided = c->last.all_here && n > 1;
	for (size_t i = 0; i < n && c->last.decided; i++)
		if (i != last && !disjoint(m->roster, &m->points[last], &m->points[i]))
			c->last.decided = false;
	c->last.rank = g->ranks[m->points[last].member];
	c->last.proc = m->points[last].proc;
	c->last.host_ns = m->points[last].host_ns;
	c->last.at = m->points[last].at;
	return n;
}

static int tell(struct match *m, uint32_t group, struct coll *c)
{
	struct group *g = &m->groups[group];
	struct fact_collective *f;
	size_t first, last, n_before = m->facts->arrivals.n;
	const struct match_point *pf, *pl;
	int64_t end_ns = FACT_NONE;
	int r;

	c->told = true;
	c->changed = false;
	if (place(m, g, c, &first, &last) == 0)
		return c->n_entered ? -ENOMEM : 0; /* only ends were seen: nothing to say */
	r = tell_group(m, group);
	if (r < 0)
		return r;
	sort_members(g);
	pf = &m->points[first];
	pl = &m->points[last];

	for (uint32_t i = 0; i < g->n_members; i++) {
		uint32_t member = g->order[i];
		const struct arrival *a;
		struct fact_arrival *fa;
		struct fleet_point at;

		if (member >= c->n_alloc || c->arrivals[member].enter_ns == FACT_NONE)
			continue;
		a = &c->arrivals[member];
		at = roster_place(m->roster, &m->roster->procs[a->proc], a->enter_ns);
		fa = FACTS_PUSH(m->facts, arrivals);
		if (!fa)
			return -ENOMEM;
		fa->rank = g->ranks[member];
		fa->enter_ns = at.at.ns;
		fa->err_ns = at.err_ns;
		fa->exit_ns = FACT_NONE;
		if (a->exit_ns != FACT_NONE) {
			fa->exit_ns = at.at.ns + (a->exit_ns - a->enter_ns);
			if (fa->exit_ns > end_ns)
				end_ns = fa->exit_ns;
		}
	}

	f = FACTS_PUSH(m->facts, collectives);
	if (!f)
		return -ENOMEM;
	f->group = group;
	f->seq = c->seq;
	f->op = c->op;
	f->dtype = c->dtype;
	f->bytes = c->bytes;
	f->step = c->step;
	f->first_arrival_ns = pf->at.at.ns;
	f->last_arrival_ns = pl->at.at.ns;
	f->end_ns = end_ns;
	f->skew_ns = pl->at.at.ns - pf->at.at.ns;
	if (pf->host == pl->host)
		f->skew_err_ns = m->roster->procs[pf->proc].tick_error_ns +
				 m->roster->procs[pl->proc].tick_error_ns;
	else if (pf->at.err_ns == CLOCK_UNBOUNDED || pl->at.err_ns == CLOCK_UNBOUNDED)
		f->skew_err_ns = CLOCK_UNBOUNDED;
	else
		f->skew_err_ns = pf->at.err_ns + pl->at.err_ns;
	f->decided = c->last.decided;
	f->last_rank = c->last.decided ? c->last.rank : -1;
	f->mismatch = c->mismatch;
	f->n_expected = g->known ? g->n_expected : 0;
	f->n_seen = (uint32_t)(m->facts->arrivals.n - n_before);
	f->first_arrival_index = n_before;
	m->n_told++;
	return 0;
}

/* Final: tell it if there is news, give its memory back, remember who was last. */
static int close_coll(struct match *m, uint32_t group, struct coll *c)
{
	int r = 0;

	if (!c->told || c->changed)
		r = tell(m, group, c);
	if (!c->last_valid) {
		size_t first, last;

		place(m, &m->groups[group], c, &first, &last);
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

static bool is_complete(const struct match *m, const struct group *g, struct coll *c)
{
	if (c->n_done < g->n_expected)
		return false;
	/* Without a declared membership a rank may still turn up. */
	return is_known(m, g) || m->finishing ||
	       age_ns(m, &c->done_now_ns) >= m->late_ns;
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

/* Room for seq: a larger ring while it may grow, else the oldest goes. */
static int make_room(struct match *m, uint32_t group, uint64_t seq)
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

/* The number nearest to what the group has reached. */
uint64_t match_seq(const struct match *m, uint32_t group, uint32_t seq_low)
{
	const struct group *g = &m->groups[group];
	uint64_t seq = (g->next_seq & ~(uint64_t)UINT32_MAX) | seq_low;

	if (!g->started)
		return seq_low;
	if (seq > g->next_seq && seq - g->next_seq > UINT32_MAX / 2 && seq > UINT32_MAX)
		return seq - (UINT64_C(1) << 32);
	if (seq < g->next_seq && g->next_seq - seq > UINT32_MAX / 2)
		return seq + (UINT64_C(1) << 32);
	return seq;
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
		r = make_room(m, call->group, seq);
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
			a[i].enter_ns = a[i].exit_ns = FACT_NONE;
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
	}
	if (c->step == EVENT_STEP_UNKNOWN)
		c->step = call->step;
	if (a->enter_ns == FACT_NONE) {
		c->n_entered++;
		if (a->exit_ns != FACT_NONE)
			c->n_done++;
	}
	a->enter_ns = call->at_ns;
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

		place(m, g, c, &first, &last);
	}
	return c->last_valid && c->last.rank >= 0 ? &c->last : NULL;
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
		if (g->changed && (r = tell_group(m, i)) < 0)
			return r;

		/* Everyone is already in a later call of this communicator, so the
		 * older one is over, whatever became of its events. */
		for (uint64_t seq = g->next_seq; seq-- > g->told_below;) {
			struct coll *c = coll_at(g, seq);

			if (c && c->n_entered >= g->n_expected && g->n_expected > 1 &&
			    age_ns(m, &c->first_now_ns) >= m->late_ns) {
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
		/* What hangs is told as it stands, and again when it changes. */
		for (uint64_t seq = g->told_below; seq < g->next_seq && depth < TELL_DEPTH; seq++) {
			struct coll *c = coll_at(g, seq);

			if (!c || c->closed)
				continue;
			depth++;
			if ((c->changed || !c->told) && age_ns(m, &c->first_now_ns) >= m->late_ns &&
			    (r = tell(m, i, c)) < 0)
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
		if ((r = tell_group(m, i)) < 0)
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

int match_restore(struct match *m, const char *name, uint32_t life, uint32_t n_known,
		  uint64_t told_below, const void *ranks, uint32_t n)
{
	int64_t index = match_group(m, name, life);
	struct group *g;

	if (index < 0)
		return (int)index;
	for (uint32_t i = 0; i < n; i++) {
		int32_t rank;
		int64_t r;

		memcpy(&rank, (const char *)ranks + i * sizeof rank, sizeof rank);
		if (rank < 0 || rank >= FACT_MAX_RANKS)
			return -EINVAL;
		r = match_member(m, (uint32_t)index, rank);
		if (r < 0)
			return (int)r;
	}
	g = &m->groups[index];
	g->known = n_known > 0;
	if (g->known)
		g->n_expected = n_known;
	g->changed = false;
	g->told_below = g->next_seq = told_below;
	g->started = told_below > 0;
	return make_room(m, (uint32_t)index, told_below);
}
