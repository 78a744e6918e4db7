#include "evidence.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FEED_NS INT64_C(1000000000)
#define COASTING_NS INT64_C(3600000000000)
#define TELL_PAIRS_NS INT64_C(5000000000)
#define TELL_BACK_NS INT64_C(1000000000) /* by then the collectives of that second are in */
#define MAX_GROUPS 16384 /* some KB each */
#define SETTLE_NS INT64_C(5000000000)
#define EVER_NS (INT64_C(1) << 60)
#define RATE_SLACK 0.2e-6 /* that a rate may leave its bound by until the next word of it */

struct member_group {
	uint32_t pairs_group; /* + 1, 0 = none yet */
	uint32_t n_members;
	uint32_t *hosts;
	bool told; /* that it is believed no more */
};

/* What pairs was told of a host's clock. */
struct fed {
	bool any;
	bool stepped;
	int64_t stepped_ns;	  /* fleet, when that was known */
	int64_t since_ns;	  /* host: older instants are on another clock */
	int64_t last_ns, fleet_ns; /* the newest, host and fleet */
};

struct evidence {
	const struct roster *roster;
	struct pairs *pairs;
	struct fed *fed; /* by host */
	uint32_t n_nodes, n_fed_alloc;
	uint32_t own; /* index + 1 of a host that has the collector's clock */
	int64_t now_ns, told_pairs_ns; /* fleet */
	struct member_group *groups; /* by match's index */
	uint32_t n_groups, n_pairs_groups;
	int64_t *enter_ns, *exit_ns; /* scratch, by member */
	uint32_t *hosts;
	uint32_t n_alloc;
};

int evidence_new(struct evidence **ret, const struct roster *r)
{
	struct evidence *e = calloc(1, sizeof *e);
	int err;

	if (!e)
		return -ENOMEM;
	e->roster = r;
	e->told_pairs_ns = INT64_MIN;
	err = pairs_new(&e->pairs, &pairs_defaults);
	if (err < 0) {
		free(e);
		return err;
	}
	*ret = e;
	return 0;
}

void evidence_free(struct evidence *e)
{
	if (!e)
		return;
	for (uint32_t i = 0; i < e->n_groups; i++)
		free(e->groups[i].hosts);
	free(e->groups);
	free(e->fed);
	free(e->enter_ns);
	free(e->exit_ns);
	free(e->hosts);
	pairs_free(e->pairs);
	free(e);
}

/* Nodes are made in the order of hosts, so that both have one number. */
static int make_nodes(struct evidence *e, uint32_t host)
{
	if (host >= e->n_fed_alloc) {
		uint32_t want = host + 1 > 2 * e->n_fed_alloc ? host + 1 : 2 * e->n_fed_alloc;
		struct fed *grown = realloc(e->fed, want * sizeof *grown);

		if (!grown)
			return -ENOMEM;
		e->fed = grown;
		e->n_fed_alloc = want;
	}
	while (e->n_nodes <= host) {
		int64_t r = pairs_node(e->pairs);

		if (r < 0)
			return (int)r;
		e->fed[e->n_nodes++] = (struct fed){ .last_ns = INT64_MIN };
	}
	return 0;
}

int evidence_probe(struct evidence *e, uint32_t host, const struct pairs_probe *k)
{
	int r = make_nodes(e, host);

	if (r == 0)
		r = pairs_probe(e->pairs, host, k);
	if (r != 0)
		return r;
	if (!e->fed[host].any)
		e->fed[host].since_ns = k->host_ns;
	e->fed[host].any = true;
	e->fed[host].last_ns = k->host_ns;
	return 0;
}

void evidence_step(struct evidence *e, uint32_t host)
{
	if (host >= e->n_nodes || !e->fed[host].any)
		return;
	e->fed[host].any = false;
	e->fed[host].stepped = true;
	e->fed[host].stepped_ns = e->now_ns;
	pairs_step(e->pairs, host);
}

int evidence_clock(struct evidence *e, uint32_t host, host_time t, fleet_time now)
{
	const struct clock *k = &e->roster->hosts[host].clock;
	const struct fed *f = host < e->n_nodes ? &e->fed[host] : NULL;
	struct pairs_probe probe;
	struct clock_view v;
	int r;

	if (now.ns > e->now_ns)
		e->now_ns = now.ns;
	if (host >= PAIRS_MAX_NODES)
		return 0;
	if (f && f->any && (k->exact || t.ns - f->last_ns < FEED_NS))
		return 0;
	clock_view(k, t, &v);
	if (!(v.rate_bound < 1e-3))
		return 0;
	probe = (struct pairs_probe){
		.host_ns = k->exact ? -EVER_NS : t.ns,
		.offset_ns = v.offset_ns,
		.lo_ns = clock_decides(v.status) ? v.lo_ns : -PAIRS_UNBOUNDED,
		.hi_ns = clock_decides(v.status) ? v.hi_ns : PAIRS_UNBOUNDED,
		.soft_ns = v.soft_ns,
		.rate = v.rate,
		.rate_bound = k->exact ? 0 : v.rate_bound + RATE_SLACK,
	};
	r = evidence_probe(e, host, &probe);
	if (r == 0 && k->exact && !e->own)
		e->own = host + 1;
	if (r == 0)
		e->fed[host].fleet_ns = now.ns;
	return r < 0 ? r : 0;
}

int evidence_tick(struct evidence *e, fleet_time now)
{
	e->now_ns = now.ns;
	for (uint32_t i = 0; i < e->n_nodes; i++) {
		const struct fed *f = &e->fed[i];
		int64_t since_ns = now.ns - f->fleet_ns;
		int r;

		if (!f->any || e->roster->hosts[i].clock.exact || since_ns < 2 * FEED_NS ||
		    since_ns > COASTING_NS)
			continue;
		r = evidence_clock(e, i, (host_time){ f->last_ns + since_ns }, now);
		if (r < 0)
			return r;
	}
	return 0;
}

int evidence_ask(const struct evidence *e, uint32_t i, uint32_t j, int64_t t_ns,
		 struct pairs_answer *ret)
{
	return pairs_ask(e->pairs, i, j, t_ns, ret);
}

/* Is that instant on the clock that pairs knows? While stamps from before a step are
 * still on their way, those of a clock that was set back look like new ones. */
static bool knows(const struct evidence *e, uint32_t host, int64_t host_ns)
{
	const struct fed *f = host < e->n_nodes ? &e->fed[host] : NULL;

	return f && f->any && host_ns >= f->since_ns &&
	       !(f->stepped && e->now_ns - f->stepped_ns < SETTLE_NS);
}

int evidence_between(const struct evidence *e, uint32_t i, int64_t i_ns, uint32_t j, int64_t j_ns,
		     struct pairs_answer *ret)
{
	if (!knows(e, i, i_ns) || !knows(e, j, j_ns))
		return PAIRS_REFUSED;
	return pairs_between(e->pairs, i, i_ns, j, j_ns, ret);
}

static bool is_vaguer(int64_t a_ns, int64_t b_ns, int64_t limit_ns)
{
	return a_ns >= limit_ns || b_ns >= limit_ns - a_ns;
}

/* How far exits move the collector's own host from where it is. */
static int64_t moved(const struct evidence *e, int64_t fleet_ns, uint32_t part, int64_t *ret_soft_ns)
{
	struct pairs_offset v;
	int64_t own_ns;

	*ret_soft_ns = 0;
	if (!e->own)
		return 0;
	own_ns = e->roster->hosts[e->own - 1].clock.offset_ns;
	if (pairs_offset(e->pairs, e->own - 1, fleet_ns - own_ns, &v) != 0 || v.part != part)
		return 0;
	*ret_soft_ns = v.soft_ns;
	return v.offset_ns - own_ns;
}

int64_t evidence_shift(const struct evidence *e, uint32_t host, host_time t, int64_t offset_ns)
{
	const struct clock *k = &e->roster->hosts[host].clock;
	struct pairs_offset best;
	struct clock_view v;
	int64_t soft_ns;

	if (!knows(e, host, t.ns) || pairs_offset(e->pairs, host, t.ns, &best) != 0)
		return 0;
	clock_view(k, t, &v);
	if (!clock_decides(v.status) || v.lo_ns == -CLOCK_UNBOUNDED || v.hi_ns == CLOCK_UNBOUNDED)
		return 0;
	best.offset_ns -= moved(e, t.ns + offset_ns, best.part, &soft_ns);
	/* Ranks that leave far apart say less than the probes do. */
	if (is_vaguer(best.soft_ns, soft_ns, v.soft_ns))
		return 0;
	if (best.offset_ns > v.hi_ns)
		best.offset_ns = v.hi_ns;
	if (best.offset_ns < v.lo_ns)
		best.offset_ns = v.lo_ns;
	return best.offset_ns - offset_ns;
}

/* A broadcast's root is in no event: what needs one proves nothing here. */
static bool needs(const struct coll *c, enum pairs_need *ret)
{
	switch ((enum event_op)c->op) {
	case OP_ALL_REDUCE:
	case OP_ALL_GATHER:
	case OP_REDUCE_SCATTER:
	case OP_BARRIER:
		*ret = PAIRS_NEED_ALL;
		return true;
	case OP_ALL_TO_ALL:
		*ret = PAIRS_NEED_NOTHING; /* its pieces may be empty */
		return true;
	case OP_UNKNOWN:
	case OP_BROADCAST:
	case OP_REDUCE:
	case OP_GATHER:
	case OP_SCATTER:
	case OP_SEND:
	case OP_RECV:
	case OP_N:
		break;
	}
	return false;
}

static int make_room(struct evidence *e, uint32_t group, uint32_t n_members)
{
	if (group >= e->n_groups) {
		uint32_t want = e->n_groups ? 2 * e->n_groups : 8;
		struct member_group *grown;

		while (want <= group)
			want *= 2;
		grown = realloc(e->groups, want * sizeof *grown);
		if (!grown)
			return -ENOMEM;
		memset(grown + e->n_groups, 0, (want - e->n_groups) * sizeof *grown);
		e->groups = grown;
		e->n_groups = want;
	}
	if (n_members > e->n_alloc) {
		int64_t *in = realloc(e->enter_ns, n_members * sizeof *in), *out;
		uint32_t *hosts;

		if (!in)
			return -ENOMEM;
		e->enter_ns = in;
		out = realloc(e->exit_ns, n_members * sizeof *out);
		if (!out)
			return -ENOMEM;
		e->exit_ns = out;
		hosts = realloc(e->hosts, n_members * sizeof *hosts);
		if (!hosts)
			return -ENOMEM;
		e->hosts = hosts;
		e->n_alloc = n_members;
	}
	return 0;
}

/* The communicator in pairs; a new one when members or their hosts have changed.
 * Only from a call in which everybody was seen. */
static int find_group(struct evidence *e, uint32_t group, uint32_t n_members)
{
	struct member_group *g = &e->groups[group];
	uint32_t last = 0;
	int64_t r;

	if (g->pairs_group && g->n_members == n_members &&
	    memcmp(g->hosts, e->hosts, n_members * sizeof *g->hosts) == 0)
		return 0;
	if (e->n_pairs_groups == MAX_GROUPS) {
		g->pairs_group = 0; /* enough others tell of the clocks */
		return 0;
	}
	for (uint32_t i = 0; i < n_members; i++)
		last = e->hosts[i] > last ? e->hosts[i] : last;
	r = make_nodes(e, last);
	if (r == 0)
		r = pairs_group(e->pairs, e->hosts, n_members);
	if (r < 0)
		return (int)r;
	e->n_pairs_groups++;
	free(g->hosts);
	g->pairs_group = 0;
	g->hosts = malloc(n_members * sizeof *g->hosts);
	if (!g->hosts)
		return -ENOMEM;
	memcpy(g->hosts, e->hosts, n_members * sizeof *g->hosts);
	g->pairs_group = (uint32_t)r + 1;
	g->n_members = n_members;
	g->told = false;
	return 0;
}

int evidence_closed(void *evidence, const struct match *m, uint32_t group, const struct coll *c)
{
	struct evidence *e = evidence;
	uint32_t n = m->groups[group].n_members;
	struct pairs_call call;
	enum pairs_need need;
	bool several = false;
	int r;

	if (!c->arrivals || c->mismatch || n > c->n_alloc || c->n_entered < n || !needs(c, &need))
		return 0;
	r = make_room(e, group, n);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < n; i++) {
		const struct arrival *a = &c->arrivals[i];
		const struct proc *p = &e->roster->procs[a->proc];

		if (p->host >= PAIRS_MAX_NODES)
			return 0;
		if (p->host < e->n_nodes && (e->fed[p->host].any || e->fed[p->host].stepped) &&
		    a->enter_ns != FACT_NONE && !knows(e, p->host, a->enter_ns))
			return 0;
		several |= i > 0 && p->host != e->hosts[0];
		e->hosts[i] = p->host;
		/* What the tick's conversion leaves open may only loosen. */
		e->enter_ns[i] = a->enter_ns == FACT_NONE ? PAIRS_NONE
							  : a->enter_ns - p->tick_error_ns;
		e->exit_ns[i] = a->exit_ns == FACT_NONE ? PAIRS_NONE
							: a->exit_ns + p->tick_error_ns;
	}
	if (!several)
		return 0; /* one clock: nothing to learn */
	r = find_group(e, group, n);
	if (r < 0 || !e->groups[group].pairs_group)
		return r;
	call = (struct pairs_call){
		.group = e->groups[group].pairs_group - 1,
		.seq = c->seq,
		.kind = (uint32_t)c->op << 8 | c->dtype,
		.bytes = c->bytes,
		.need = need,
		.together = true,
		.enter_is_queued = true, /* BEGIN is the call, not its start on the GPU */
		.enter_ns = e->enter_ns,
		.exit_ns = e->exit_ns,
	};
	r = pairs_call(e->pairs, &call, NULL);
	return r < 0 ? r : 0;
}

int evidence_look(struct evidence *e,
		  int (*tell)(void *arg, uint32_t group, bool lifted, const struct pairs_proof *),
		  void *arg)
{
	for (uint32_t i = 0; i < e->n_groups; i++) {
		struct member_group *g = &e->groups[i];
		struct pairs_proof proof;
		bool doubted;
		int r;

		if (!g->pairs_group)
			continue;
		doubted = pairs_is_quarantined(e->pairs, g->pairs_group - 1);
		if (doubted == g->told || !pairs_proof_of(e->pairs, g->pairs_group - 1, &proof))
			continue;
		g->told = doubted;
		r = tell(arg, i, !doubted, &proof);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- facts ---- */

struct telling {
	const struct evidence *e;
	int64_t now_ns;
	struct facts *facts;
};

static int tell_doubt(void *arg, uint32_t group, bool lifted, const struct pairs_proof *proof)
{
	static const char *against[] = { [PAIRS_FROM_ONE_CLOCK] = "own clock",
					 [PAIRS_FROM_PROBES] = "probes",
					 [PAIRS_FROM_CALLS] = "collectives" };
	const struct telling *t = arg;
	const struct host *hosts = t->e->roster->hosts;
	struct fact_contradiction *f = FACTS_PUSH(t->facts, contradictions);

	if (!f)
		return -ENOMEM;
	*f = (struct fact_contradiction){
		.group = group,
		.seq = proof->seq,
		.early = hosts[proof->early].id,
		.late = hosts[proof->late].id,
		.at_ns = proof->t_ns,
		.impossible_ns = proof->impossible_ns,
		.against = against[proof->source],
		.lifted_ns = lifted ? t->now_ns : FACT_NONE,
	};
	return 0;
}

static int64_t width_of(int64_t lo_ns, int64_t hi_ns)
{
	return lo_ns == -PAIRS_UNBOUNDED || hi_ns == PAIRS_UNBOUNDED ? FACT_UNBOUNDED : hi_ns - lo_ns;
}

static host_time host_at(const struct evidence *e, uint32_t host, int64_t fleet_ns)
{
	const struct clock *k = &e->roster->hosts[host].clock;

	if (k->exact)
		return (host_time){ fleet_ns - k->offset_ns };
	return (host_time){ e->fed[host].last_ns + fleet_ns - e->fed[host].fleet_ns };
}

static int tell_pair(const struct telling *t, uint32_t host, uint32_t reference)
{
	static const char *basis[] = { [PAIRS_BY_NOTHING] = "nothing",
				       [PAIRS_BY_PROBES] = "probes",
				       [PAIRS_BY_BOUNDS] = "bounds",
				       [PAIRS_BY_EXITS] = "exits" };
	const struct evidence *e = t->e;
	struct pairs_answer a;
	struct clock_view v, w;
	struct fact_pair *f;
	int64_t at_ns = t->now_ns - TELL_BACK_NS;
	host_time h = host_at(e, host, at_ns), r = host_at(e, reference, at_ns);

	if (!knows(e, host, h.ns) || !knows(e, reference, r.ns) ||
	    pairs_ask(e->pairs, reference, host, at_ns, &a) != 0)
		return 0;
	clock_view(&e->roster->hosts[host].clock, h, &v);
	clock_view(&e->roster->hosts[reference].clock, r, &w);
	if (a.basis == PAIRS_BY_EXITS && v.soft_ns != CLOCK_UNBOUNDED &&
	    w.soft_ns != CLOCK_UNBOUNDED && is_vaguer(a.soft_ns, 0, v.soft_ns + w.soft_ns)) {
		a.basis = PAIRS_BY_PROBES;
		a.offset_ns = v.offset_ns - w.offset_ns;
		a.soft_ns = v.soft_ns + w.soft_ns;
	}
	f = FACTS_PUSH(t->facts, pairs);
	if (!f)
		return -ENOMEM;
	f->host = e->roster->hosts[host].id;
	f->reference = e->roster->hosts[reference].id;
	f->at_ns = at_ns;
	f->correction_ns = a.offset_ns - (v.offset_ns - w.offset_ns);
	f->width_ns = width_of(a.lo_ns, a.hi_ns);
	f->probe_width_ns = FACT_UNBOUNDED;
	if (width_of(v.lo_ns, v.hi_ns) != FACT_UNBOUNDED &&
	    width_of(w.lo_ns, w.hi_ns) != FACT_UNBOUNDED) {
		/* The clocks' bounds of that very instant, where they are narrower. */
		int64_t lo_ns = v.lo_ns - w.hi_ns, hi_ns = v.hi_ns - w.lo_ns;

		f->probe_width_ns = hi_ns - lo_ns;
		lo_ns = a.lo_ns > lo_ns ? a.lo_ns : lo_ns;
		hi_ns = a.hi_ns < hi_ns ? a.hi_ns : hi_ns;
		f->width_ns = hi_ns > lo_ns ? hi_ns - lo_ns : f->probe_width_ns;
	}
	f->soft_ns = a.soft_ns == PAIRS_UNBOUNDED ? FACT_NONE : a.soft_ns;
	f->basis = basis[a.basis];
	return 0;
}

int evidence_tell(struct evidence *e, int64_t now_ns, struct facts *facts)
{
	struct telling t = { e, now_ns, facts };
	uint32_t reference = e->own ? e->own - 1 : 0;
	int r = evidence_look(e, tell_doubt, &t);

	if (r < 0 || (e->told_pairs_ns != INT64_MIN && now_ns - e->told_pairs_ns < TELL_PAIRS_NS))
		return r;
	e->told_pairs_ns = now_ns;
	for (uint32_t i = 0; i < e->n_nodes && r == 0; i++)
		if (i != reference)
			r = tell_pair(&t, i, reference);
	return r;
}
