#include "ties.h"

#include <errno.h>
#include <string.h>

#define MAX_PAIRS 4096
#define MAX_HOSTS 65536
#define MAX_DEPTH 64 /* of hosts towards the reference */
#define SMOOTH 8

struct tie_seen { /* a host in one call */
	uint64_t epoch;
	int64_t enter_ns, exit_ns; /* the last rank's entry, the first one's exit */
};

void ties_init(struct ties *t, const struct roster *r)
{
	*t = (struct ties){ .roster = r };
}

void ties_fini(struct ties *t)
{
	for (uint32_t i = 0; i < t->n; i++)
		free(t->v[i]);
	free(t->v);
	free(t->parents);
	free(t->seen);
	free(t->met);
	idmap_fini(&t->of_hosts);
}

static int64_t stamp(const struct ties *t, uint32_t host, int64_t host_ns)
{
	const struct clock *k = &t->roster->hosts[host].clock;
	struct fleet_point at;

	if (ties_is_loose(t, host) || k->exact)
		return host_ns + k->offset_ns;
	clock_map(k, (host_time){ host_ns }, &at);
	return at.at.ns;
}

/* ---- the way from each loose host to one that is tied ---- */

static void find_ways(struct ties *t)
{
	bool grown = true;

	memset(t->parents, 0, t->n_hosts * sizeof *t->parents);
	t->reference = 0;
	for (uint32_t i = t->n_hosts; i-- > 0;)
		if (!ties_is_loose(t, i))
			t->reference = i;
	while (grown) {
		grown = false;
		for (uint32_t i = 0; i < t->n; i++) {
			uint32_t a = t->v[i]->a, b = t->v[i]->b;
			bool has_a = ties_is_end(t, a) || t->parents[a] != 0;
			bool has_b = ties_is_end(t, b) || t->parents[b] != 0;

			if (has_a == has_b)
				continue;
			t->parents[has_a ? b : a] = i + 1;
			grown = true;
		}
	}
}

/* Hosts are new, or probes tie some since. */
static void follow_hosts(struct ties *t)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->n_hosts; i++)
		n += ties_is_loose(t, i);
	if (n == t->n_loose)
		return;
	t->n_loose = n;
	find_ways(t);
}

static int make_room(struct ties *t)
{
	uint32_t n = t->roster->n_hosts;

	if (n > t->n_seen_alloc) {
		uint32_t want = n > 2 * t->n_seen_alloc ? n : 2 * t->n_seen_alloc;
		struct tie_seen *seen = realloc(t->seen, want * sizeof *seen);
		uint32_t *met, *parents;

		if (!seen)
			return -ENOMEM;
		t->seen = seen;
		met = realloc(t->met, want * sizeof *met);
		if (!met)
			return -ENOMEM;
		t->met = met;
		parents = realloc(t->parents, want * sizeof *parents);
		if (!parents)
			return -ENOMEM;
		t->parents = parents;
		memset(t->seen + t->n_seen_alloc, 0, (want - t->n_seen_alloc) * sizeof *t->seen);
		t->n_seen_alloc = want;
	}
	if (n != t->n_hosts) {
		t->n_hosts = n;
		find_ways(t);
	}
	return 0;
}

static uint64_t key_of(uint32_t a, uint32_t b)
{
	return (uint64_t)a << 32 | b;
}

/* a < b. NULL without memory. */
static struct tie_pair *pair_of(struct ties *t, uint32_t a, uint32_t b)
{
	uint32_t i = idmap_get(&t->of_hosts, key_of(a, b));
	struct tie_pair *p;

	if (i != IDMAP_NONE)
		return t->v[i];
	if (t->n == t->n_alloc) {
		uint32_t want = t->n_alloc ? 2 * t->n_alloc : 8;
		struct tie_pair **grown = realloc(t->v, want * sizeof(struct tie_pair *));

		if (!grown)
			return NULL;
		t->v = grown;
		t->n_alloc = want;
	}
	p = calloc(1, sizeof *p);
	if (!p || idmap_put(&t->of_hosts, key_of(a, b), t->n) < 0) {
		free(p);
		return NULL;
	}
	*p = (struct tie_pair){ .a = a, .b = b, .since_ns = INT64_MIN, .every = 1 };
	t->v[t->n++] = p;
	find_ways(t);
	return p;
}

/* ---- one more word about two hosts ---- */

static int64_t opened(int64_t apart_ns)
{
	return (apart_ns < 0 ? -apart_ns : apart_ns) / 1000000 * TIES_MAX_RATE_PPM + TIES_MAX_RATE_PPM;
}

static void narrow(struct tie_pair *p, const struct tie *v)
{
	int64_t slack_ns = opened(v->at_ns - p->at_ns);
	int64_t lo_ns = p->lo_ns - slack_ns, hi_ns = p->hi_ns + slack_ns;
	bool anew = p->n_seen == 0;

	if (!anew && (v->lo_ns > hi_ns || v->hi_ns < lo_ns)) { /* a clock was set */
		anew = true;
		p->since_ns = v->at_ns;
		p->before = p->last;
		p->after = *v;
		p->n_anew++;
	}
	p->lo_ns = anew || v->lo_ns > lo_ns ? v->lo_ns : lo_ns;
	p->hi_ns = anew || v->hi_ns < hi_ns ? v->hi_ns : hi_ns;
	p->ahead_ns = anew ? v->ahead_ns : p->ahead_ns + (v->ahead_ns - p->ahead_ns) / SMOOTH;
	p->at_ns = v->at_ns;
	p->last = *v;
}

static void keep(struct tie_pair *p, const struct tie *v)
{
	if (p->n_seen++ == 0)
		p->first = *v;
	if (p->n_skipped++ % p->every != 0)
		return;
	if (p->n == TIES_KEEP) {
		p->n = 0;
		for (uint32_t i = 0; i < TIES_KEEP; i += 2)
			p->v[p->n++] = p->v[i];
		p->every *= 2;
		p->n_skipped = 1;
	}
	p->v[p->n++] = *v;
}

/* ---- calls ---- */

/* Whose every exit needs every entry. */
static bool proves(const struct coll *c)
{
	switch ((enum event_op)c->op) {
	case OP_ALL_REDUCE:
	case OP_ALL_GATHER:
	case OP_REDUCE_SCATTER:
	case OP_BARRIER:
		return !c->mismatch;
	case OP_UNKNOWN:
	case OP_BROADCAST:
	case OP_REDUCE:
	case OP_GATHER:
	case OP_SCATTER:
	case OP_ALL_TO_ALL: /* its pieces may be empty */
	case OP_SEND:
	case OP_RECV:
	case OP_N:
		break;
	}
	return false;
}

/* All hosts of a call; false when somebody's part is missing or nobody is loose. */
static bool meet(struct ties *t, const struct match *m, uint32_t group, const struct coll *c)
{
	uint32_t n = m->groups[group].n_members;
	bool any = false;

	if (!c->arrivals || n > c->n_alloc || c->n_entered < n)
		return false;
	/* Mostly probes tie them all, which shall cost nothing more. */
	for (uint32_t i = 0; i < n && !any; i++)
		any = ties_is_loose(t, t->roster->procs[c->arrivals[i].proc].host);
	if (!any)
		return false;
	t->n_met = 0;
	t->epoch++;
	for (uint32_t i = 0; i < n; i++) {
		const struct arrival *a = &c->arrivals[i];
		const struct proc *p = &t->roster->procs[a->proc];
		struct tie_seen *s;
		int64_t enter_ns, exit_ns;

		if (a->enter_ns == FACT_NONE || a->exit_ns == FACT_NONE || p->host >= t->n_hosts ||
		    p->host >= MAX_HOSTS)
			return false;
		s = &t->seen[p->host];
		enter_ns = stamp(t, p->host, a->enter_ns - p->tick_error_ns);
		exit_ns = stamp(t, p->host, a->exit_ns + p->tick_error_ns);
		if (s->epoch != t->epoch) {
			*s = (struct tie_seen){ t->epoch, enter_ns, exit_ns };
			t->met[t->n_met++] = p->host;
			continue;
		}
		s->enter_ns = enter_ns > s->enter_ns ? enter_ns : s->enter_ns;
		s->exit_ns = exit_ns < s->exit_ns ? exit_ns : s->exit_ns;
	}
	return t->n_met > 1;
}

static int note(struct ties *t, uint32_t a, uint32_t b, uint32_t group, uint64_t seq)
{
	const struct tie_seen *sa = &t->seen[a], *sb = &t->seen[b];
	struct tie v = { .at_ns = sa->exit_ns, .group = group, .seq = seq,
			 .lo_ns = sb->enter_ns - sa->exit_ns, .hi_ns = sb->exit_ns - sa->enter_ns,
			 .ahead_ns = sb->exit_ns - sa->exit_ns,
			 .late_ns = sb->enter_ns - sa->enter_ns };
	struct tie_pair *p;

	if (t->n == MAX_PAIRS && idmap_get(&t->of_hosts, key_of(a, b)) == IDMAP_NONE)
		return 0;
	p = pair_of(t, a, b);
	if (!p)
		return -ENOMEM;
	if (p->n_seen > 0 && (p->loose_a != ties_is_loose(t, a) || p->loose_b != ties_is_loose(t, b)))
		*p = (struct tie_pair){ .a = a, .b = b, .since_ns = v.at_ns, .every = 1 };
	p->loose_a = ties_is_loose(t, a);
	p->loose_b = ties_is_loose(t, b);
	narrow(p, &v);
	keep(p, &v);
	return 0;
}

int ties_closed(struct ties *t, const struct match *m, uint32_t group, const struct coll *c)
{
	uint32_t first;
	int r;

	if (t->roster->n_hosts < 2 || !proves(c))
		return 0;
	r = make_room(t);
	if (r < 0)
		return r;
	if (!meet(t, m, group, c))
		return 0;
	follow_hosts(t);
	first = t->met[0];
	for (uint32_t i = 1; i < t->n_met; i++)
		first = t->met[i] < first ? t->met[i] : first;
	for (uint32_t i = 0; i < t->n_met && r == 0; i++) {
		uint32_t b = t->met[i];

		if (b != first && (ties_is_loose(t, first) || ties_is_loose(t, b)))
			r = note(t, first, b, group, c->seq);
	}
	return r;
}

/* ---- answers ---- */

struct sum { /* lo_ns to hi_ns, where it is known */
	int64_t lo_ns, hi_ns;
	bool known;
};

/* The pair's interval, b over a, or a over b where `back`, is added. */
static void add(struct sum *s, const struct tie_pair *p, int64_t at_ns, bool back)
{
	int64_t slack_ns = opened(at_ns - p->at_ns);

	s->known &= at_ns >= p->since_ns;
	s->lo_ns += (back ? -p->hi_ns : p->lo_ns) - slack_ns;
	s->hi_ns += (back ? -p->lo_ns : p->hi_ns) + slack_ns;
}

/* How far the host is ahead of those that are tied. */
static struct sum way_of(const struct ties *t, uint32_t host, int64_t at_ns)
{
	struct sum s = { .known = true };

	for (unsigned depth = 0; !ties_is_end(t, host); depth++) {
		const struct tie_pair *p = t->parents[host] ? t->v[t->parents[host] - 1] : NULL;

		if (!p || depth == MAX_DEPTH)
			return (struct sum){ .known = false };
		add(&s, p, at_ns, p->a == host);
		host = p->a == host ? p->b : p->a;
	}
	return s;
}

/* How far the stamps of j are ahead of those of i. */
static struct sum ahead(const struct ties *t, uint32_t i, int64_t i_ns, uint32_t j, int64_t j_ns)
{
	uint32_t k = idmap_get(&t->of_hosts, i < j ? key_of(i, j) : key_of(j, i));
	struct sum s = { .known = i < t->n_hosts && j < t->n_hosts }, other;

	if (!s.known)
		return s;
	if (k != IDMAP_NONE) {
		add(&s, t->v[k], stamp(t, t->v[k]->a, t->v[k]->a == i ? i_ns : j_ns), j < i);
		return s;
	}
	s = way_of(t, j, stamp(t, j, j_ns));
	other = way_of(t, i, stamp(t, i, i_ns));
	return (struct sum){ s.lo_ns - other.hi_ns, s.hi_ns - other.lo_ns, s.known && other.known };
}

bool ties_between(const struct ties *t, uint32_t i, int64_t i_ns, uint32_t j, int64_t j_ns,
		  int64_t *ret_lo_ns, int64_t *ret_hi_ns)
{
	struct sum s = ahead(t, j, j_ns, i, i_ns);
	int64_t raw_ns;

	if (!s.known)
		return false;
	raw_ns = stamp(t, i, i_ns) - stamp(t, j, j_ns);
	*ret_lo_ns = raw_ns - s.hi_ns;
	*ret_hi_ns = raw_ns - s.lo_ns;
	return true;
}

static int64_t best(const struct tie_pair *p)
{
	return p->ahead_ns < p->lo_ns ? p->lo_ns : p->ahead_ns > p->hi_ns ? p->hi_ns : p->ahead_ns;
}

int64_t ties_shift(const struct ties *t, uint32_t host)
{
	int64_t ns = 0;

	if (host >= t->n_hosts || !ties_is_loose(t, host))
		return 0;
	for (unsigned depth = 0; !ties_is_end(t, host); depth++) {
		const struct tie_pair *p = t->parents[host] ? t->v[t->parents[host] - 1] : NULL;

		if (!p || depth == MAX_DEPTH)
			return 0;
		ns -= p->a == host ? -best(p) : best(p);
		host = p->a == host ? p->b : p->a;
	}
	return ns;
}
