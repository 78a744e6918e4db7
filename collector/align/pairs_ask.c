/* pairs_ask.c - the answers: one node's time against another's. */
#include "pairs_internal.h"

#include <math.h>

static int64_t soft_of(const struct pairs *p, double sd)
{
	return isfinite(sd) && sd < 1e18 ? (int64_t)ceil(p->cfg.z * sd) : PAIRS_UNBOUNDED;
}

/* The moment's second node against its first; back: its first against its second. */
static void ask(const struct pairs *p, const struct moment *of, bool back, int64_t t_ns,
		struct pairs_answer *ret)
{
	const struct node *a = &p->nodes[of->node[back]], *b = &p->nodes[of->node[!back]];
	int64_t base_ns = of->base_ns[!back] - of->base_ns[back];
	int64_t most = bounds_get(p, of, !back), least = bounds_get(p, of, back);
	struct mark ca, cb;
	double e, sd;

	if (pairs_plus(most, least) < 0) {
		/* Probes have just contradicted collectives; who, the next second says. */
		most = bounds_probe(p, of, !back);
		least = bounds_probe(p, of, back);
	}
	/* Two bases are rounded down each. */
	ret->hi_ns = pairs_plus(base_ns + 1, most);
	ret->lo_ns = least == PAIRS_UNBOUNDED ? -PAIRS_UNBOUNDED : pairs_plus(base_ns - 1, -least);

	ca = node_correction(a, t_ns);
	cb = node_correction(b, t_ns);
	e = cb.c - ca.c;
	if (isfinite(ca.sd) && isfinite(cb.sd) && a->part == b->part) {
		ret->basis = PAIRS_BY_EXITS;
		sd = sqrt((double)ca.sd * ca.sd + (double)cb.sd * cb.sd);
	} else {
		ret->basis = a->told && b->told ? PAIRS_BY_PROBES : PAIRS_BY_NOTHING;
		sd = sqrt(a->probe_sd * a->probe_sd + b->probe_sd * b->probe_sd);
	}
	ret->soft_ns = soft_of(p, sd);
	ret->offset_ns = base_ns + llround(e);
	if (ret->lo_ns == -PAIRS_UNBOUNDED || ret->hi_ns == PAIRS_UNBOUNDED) {
		if (ret->offset_ns > ret->hi_ns)
			ret->offset_ns = ret->hi_ns;
		if (ret->offset_ns < ret->lo_ns)
			ret->offset_ns = ret->lo_ns;
		return;
	}
	/* Between two nodes' own bounds the middle errs by the difference of two least
	 * latencies at most, and between the probes' by their asymmetry. */
	most = pairs_plus(bounds_probe(p, of, back), bounds_probe(p, of, !back));
	if (ret->basis != PAIRS_BY_EXITS && ret->hi_ns - ret->lo_ns <= most / 2) {
		ret->basis = PAIRS_BY_BOUNDS;
		ret->offset_ns = ret->lo_ns + (ret->hi_ns - ret->lo_ns) / 2;
		ret->soft_ns = (ret->hi_ns - ret->lo_ns + 1) / 2;
	}
	if (ret->offset_ns > ret->hi_ns)
		ret->offset_ns = ret->hi_ns;
	if (ret->offset_ns < ret->lo_ns)
		ret->offset_ns = ret->lo_ns;
}

int pairs_ask(const struct pairs *p, uint32_t i, uint32_t j, int64_t t_ns, struct pairs_answer *ret)
{
	struct moment of;

	if (i >= p->n_nodes || j >= p->n_nodes || t_ns <= -PAIRS_MAX_NS || t_ns >= PAIRS_MAX_NS)
		return PAIRS_REFUSED;
	if (i == j) {
		*ret = (struct pairs_answer){ .basis = PAIRS_BY_PROBES };
		return 0;
	}
	bounds_moment(p, i, j, t_ns, &of);
	ask(p, &of, false, t_ns, ret);
	return 0;
}

int pairs_place(const struct pairs *p, uint32_t node, int64_t host_ns, int64_t *ret_t_ns,
		int64_t *ret_soft_ns)
{
	const struct node *n;
	struct mark m;
	int64_t base_ns, growth_ps;

	if (node >= p->n_nodes || host_ns <= -PAIRS_MAX_NS || host_ns >= PAIRS_MAX_NS)
		return PAIRS_REFUSED;
	n = &p->nodes[node];
	base_ns = node_base(n, host_ns, &growth_ps);
	m = node_correction(n, host_ns + base_ns);
	*ret_t_ns = host_ns + base_ns + llround(m.c);
	*ret_soft_ns = soft_of(p, isfinite(m.sd) ? (double)m.sd : n->probe_sd);
	return 0;
}

/* What bounds say of e_a - e_b at their instants, when growth was a_ps and b_ps. */
static int64_t most_of(int64_t most, const int64_t ps[2], const int64_t then_ps[2])
{
	if (most == PAIRS_UNBOUNDED)
		return most;
	return opened_ns(opened_ns(most, then_ps[0], ps[0]), then_ps[1], ps[1]);
}

int pairs_between(const struct pairs *p, uint32_t i, int64_t i_ns, uint32_t j, int64_t j_ns,
		  struct pairs_answer *ret)
{
	const struct node *a, *b;
	int64_t t_ns, base_ns, most, least, ps[2];
	struct moment of;

	if (i >= p->n_nodes || j >= p->n_nodes || i == j || !pairs_is_sane(i_ns) ||
	    !pairs_is_sane(j_ns))
		return PAIRS_REFUSED;
	a = &p->nodes[i];
	b = &p->nodes[j];
	if (!a->told || !b->told)
		return PAIRS_REFUSED;
	t_ns = j_ns + node_base(b, j_ns, &ps[1]);
	base_ns = i_ns + node_base(a, i_ns, &ps[0]) - t_ns;
	if (t_ns <= -PAIRS_MAX_NS || t_ns >= PAIRS_MAX_NS)
		return PAIRS_REFUSED;
	bounds_moment(p, i, j, t_ns, &of);
	ask(p, &of, true, t_ns, ret);
	/* The answer was host j = host i + offset: what e makes of it, on these bases. */
	ret->offset_ns += base_ns - of.base_ns[0] + of.base_ns[1];
	most = bounds_get(p, &of, false);
	least = bounds_get(p, &of, true);
	if (pairs_plus(most, least) < 0) {
		most = bounds_probe(p, &of, false);
		least = bounds_probe(p, &of, true);
	}
	most = most_of(most, ps, of.growth_ps);
	least = most_of(least, ps, of.growth_ps);
	/* Two bases are rounded down each, at two instants. */
	ret->hi_ns = pairs_plus(base_ns + 2, most);
	ret->lo_ns = least == PAIRS_UNBOUNDED ? -PAIRS_UNBOUNDED : pairs_plus(base_ns - 2, -least);
	return 0;
}

int pairs_offset(const struct pairs *p, uint32_t node, int64_t host_ns, struct pairs_offset *ret)
{
	const struct node *n;
	struct mark m;
	int64_t base_ns, growth_ps;

	if (node >= p->n_nodes || !pairs_is_sane(host_ns) || !p->nodes[node].told)
		return PAIRS_REFUSED;
	n = &p->nodes[node];
	base_ns = node_base(n, host_ns, &growth_ps);
	m = node_correction(n, host_ns + base_ns);
	if (!isfinite(m.sd))
		return PAIRS_REFUSED;
	*ret = (struct pairs_offset){ base_ns + llround(m.c), soft_of(p, (double)m.sd), n->part };
	return 0;
}
