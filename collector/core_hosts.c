/* core_hosts.c - hosts, their clocks, and what is known of them by what they do together. */
#include "core_internal.h"

#include <string.h>

#define CLOCK_TELL_NS INT64_C(1000000000)

/* Two hosts that do not both have the collector's clock are told apart by what
 * they do together, too. */
int core_make_evidence(struct core *c)
{
	uint32_t n_others = 0;
	int r;

	if (c->evidence || c->roster.n_hosts < 2)
		return 0;
	for (uint32_t i = 0; i < c->roster.n_hosts; i++)
		n_others += !c->roster.hosts[i].clock.exact;
	if (n_others == 0)
		return 0;
	r = evidence_new(&c->evidence, &c->roster);
	if (r < 0)
		return r;
	c->match.evidence = c->evidence;
	for (uint32_t i = 0; i < c->roster.n_hosts && r == 0; i++)
		if (c->roster.hosts[i].clock.exact)
			r = evidence_clock(c->evidence, i, (host_time){ 0 }, (fleet_time){ 0 });
	return r;
}

int core_host(struct core *c, uint32_t host, bool same_clock, int64_t offset_ns)
{
	struct host *h = roster_host(&c->roster, host);

	if (!h)
		return -ENOMEM;
	if (same_clock || !clock_is_aligned(&h->clock)) {
		bool moved = !h->clock.exact || h->clock.offset_ns != offset_ns;

		clock_fini(&h->clock);
		clock_init(&h->clock, same_clock, offset_ns);
		h->placed_epoch = 0;
		if (c->evidence && same_clock && moved) {
			uint32_t i = (uint32_t)(h - c->roster.hosts);

			evidence_step(c->evidence, i);
			return evidence_clock(c->evidence, i, (host_time){ 0 }, (fleet_time){ 0 });
		}
	}
	return core_make_evidence(c);
}

int core_host_name(struct core *c, uint32_t host, const char *name)
{
	struct host *h = roster_host(&c->roster, host);
	char *copy = h ? strdup(name) : NULL;

	if (!copy)
		return -ENOMEM;
	free(h->name);
	h->name = copy;
	return 0;
}

static int tell_clock(struct core *c, const struct host *h, fleet_time now, host_time t,
		      int64_t rtt_ns)
{
	struct fleet_point at;
	struct clock_view v;
	struct fact_clock *f;

	clock_map(&h->clock, t, &at);
	if (at.err_ns == CLOCK_UNBOUNDED)
		return 0;
	f = FACTS_PUSH(c->facts, clocks);
	if (!f)
		return -ENOMEM;
	clock_view(&h->clock, t, &v);
	f->host = h->id;
	f->at_ns = now.ns;
	f->offset_ns = at.at.ns - t.ns;
	f->error_ns = at.err_ns;
	f->rtt_ns = rtt_ns;
	f->quality = !clock_decides(at.status)	  ? "refused"
		     : at.err_ns <= CLOCK_GOOD_NS ? "good"
						  : "poor";
	f->soft_ns = at.soft_ns == CLOCK_UNBOUNDED ? FACT_NONE : at.soft_ns;
	f->skew_ppb = v.rate * 1e9;
	f->status = fleet_status_name(at.status);
	return 0;
}

static int feed_evidence(struct core *c, const struct host *h, host_time t, fleet_time now,
			 bool stepped)
{
	uint32_t i = (uint32_t)(h - c->roster.hosts);
	int r = core_make_evidence(c);

	if (r < 0 || !c->evidence)
		return r;
	if (stepped)
		evidence_step(c->evidence, i);
	return evidence_clock(c->evidence, i, t, now);
}

int core_exchange(struct core *c, uint32_t host, host_time t0, fleet_time t1, fleet_time t2,
		  host_time t3)
{
	struct host *h = roster_host(&c->roster, host);
	int o, r;

	if (!h)
		return -ENOMEM;
	if (h->clock.exact)
		return 0;
	o = clock_exchange(&h->clock, t0, t1, t2, t3);
	if (o < 0)
		return o;
	h->placed_epoch = 0;
	if (o == CLOCK_REFUSED)
		return 0;
	r = feed_evidence(c, h, t3, t1, o == CLOCK_STEPPED);
	if (r < 0)
		return r;
	if (o == CLOCK_OK && h->clock.told_ns != INT64_MIN &&
	    t1.ns - h->clock.told_ns < CLOCK_TELL_NS)
		return 0;
	h->clock.told_ns = t1.ns;
	return tell_clock(c, h, t1, t3, (t3.ns - t0.ns) - (t2.ns - t1.ns));
}

int core_map(const struct core *c, uint32_t host, host_time t, struct fleet_point *ret)
{
	struct host *h = roster_find_host(&c->roster, host);
	int r;

	if (!h) {
		*ret = (struct fleet_point){ { t.ns }, CLOCK_UNBOUNDED, CLOCK_UNBOUNDED, FLEET_VOID };
		return 1;
	}
	r = clock_map(&h->clock, t, ret);
	if (!clock_decides(ret->status))
		ret->err_ns = CLOCK_UNBOUNDED;
	return r;
}

int core_wall(struct core *c, uint32_t host, host_time at, int64_t real_ns, int64_t half_ns)
{
	struct host *h = roster_find_host(&c->roster, host);
	struct fleet_point p;

	if (!h || core_map(c, host, at, &p) != 0)
		return 0;
	return clock_offset_wall(c->offset, (uint32_t)(h - c->roster.hosts), p.at.ns,
				 real_ns - p.at.ns,
				 p.err_ns == CLOCK_UNBOUNDED ? CLOCK_UNBOUNDED : p.err_ns + half_ns);
}
