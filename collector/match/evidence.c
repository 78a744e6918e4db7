#include "evidence_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FEED_NS INT64_C(1000000000)
#define COASTING_NS INT64_C(3600000000000)
#define MAX_GROUPS 16384 /* some KB each */
#define SETTLE_NS INT64_C(5000000000)
#define EVER_NS (INT64_C(1) << 60)
#define RATE_SLACK 0.2e-6 /* that a rate may leave its bound by until the next word of it */

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

/* While stamps from before a step are
 * still on their way, those of a clock that was set back look like new ones. */
bool evidence_knows(const struct evidence *e, uint32_t host, int64_t host_ns)
{
	const struct fed *f = host < e->n_nodes ? &e->fed[host] : NULL;

	return f && f->any && host_ns >= f->since_ns &&
	       !(f->stepped && e->now_ns - f->stepped_ns < SETTLE_NS);
}

int evidence_between(const struct evidence *e, uint32_t i, int64_t i_ns, uint32_t j, int64_t j_ns,
		     struct pairs_answer *ret)
{
	if (!evidence_knows(e, i, i_ns) || !evidence_knows(e, j, j_ns))
		return PAIRS_REFUSED;
	return pairs_between(e->pairs, i, i_ns, j, j_ns, ret);
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

	if (!evidence_knows(e, host, t.ns) || pairs_offset(e->pairs, host, t.ns, &best) != 0)
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
		    a->enter_ns != FACT_NONE && !evidence_knows(e, p->host, a->enter_ns))
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
