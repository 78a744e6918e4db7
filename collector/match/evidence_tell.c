/* evidence_tell.c - what collectives say about clocks, as facts: who is believed no
 * more, and how each host stands against the reference. */
#include "evidence_internal.h"

#include <errno.h>

#define TELL_PAIRS_NS INT64_C(5000000000)
#define TELL_BACK_NS INT64_C(1000000000) /* by then the collectives of that second are in */

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

	if (!evidence_knows(e, host, h.ns) || !evidence_knows(e, reference, r.ns) ||
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
