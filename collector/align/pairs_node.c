/* pairs_node.c - one node's base, what its probes said, and its corrections. */
#include "pairs_internal.h"

#include <math.h>

#define FAR_NS (INT64_C(1) << 50) /* 13 days */
#define RATE_OF_NOBODY 200e-6	  /* before the oldest knot that is kept */

static const struct knot *knot_before(const struct node *n, int64_t host_ns)
{
	uint64_t oldest = n->n_knots > N_KNOTS ? n->n_knots - N_KNOTS : 0;

	for (uint64_t k = n->n_knots; k-- > oldest;)
		if (n->knots[k % N_KNOTS].host_ns <= host_ns || k == oldest)
			return &n->knots[k % N_KNOTS];
	return NULL;
}

static struct knot knot_at(const struct node *n, int64_t host_ns)
{
	const struct knot *k = knot_before(n, host_ns);
	struct knot at = { .host_ns = host_ns };
	double dt, moved;

	if (!k)
		return at;
	at = *k;
	at.host_ns = host_ns;
	dt = (double)(host_ns - k->host_ns);
	moved = k->fraction + k->rate * dt;
	at.base_ns = k->base_ns + (int64_t)floor(moved);
	at.fraction = moved - floor(moved);
	if (dt < 0 && at.rate_bound < RATE_OF_NOBODY)
		at.rate_bound = RATE_OF_NOBODY;
	at.growth_ps = k->growth_ps + (int64_t)(dt * 1e3 * at.rate_bound);
	return at;
}

int64_t node_base(const struct node *n, int64_t host_ns, int64_t *ret_growth_ps)
{
	struct knot at = knot_at(n, host_ns);

	*ret_growth_ps = at.growth_ps;
	return at.base_ns;
}

int64_t node_base_at(const struct node *n, int64_t t_ns, int64_t *ret_growth_ps)
{
	int64_t base_ns;

	*ret_growth_ps = 0;
	if (n->n_knots == 0)
		return 0;
	/* The base moves by less than 1e-3: three rounds leave nothing of a minute. */
	base_ns = n->knots[(n->n_knots - 1) % N_KNOTS].base_ns;
	for (int i = 0; i < 3; i++) {
		int64_t was_ns = base_ns;

		base_ns = node_base(n, t_ns - was_ns, ret_growth_ps);
		if (base_ns == was_ns)
			break;
	}
	return base_ns;
}

/* A bound against the base. What is years away is none. */
static int64_t against(int64_t bound_ns, int64_t offset_ns, int64_t base_ns, int64_t none)
{
	if (bound_ns < offset_ns - FAR_NS || bound_ns > offset_ns + FAR_NS)
		return none;
	return bound_ns - base_ns;
}

int pairs_probe(struct pairs *p, uint32_t node, const struct pairs_probe *k)
{
	int64_t newest_ns = k->host_ns;
	struct knot at;
	struct node *n;

	if (node >= p->n_nodes || !pairs_is_sane(k->host_ns) || !pairs_is_sane(k->offset_ns) ||
	    k->lo_ns > k->hi_ns || k->lo_ns > k->offset_ns + FAR_NS ||
	    k->hi_ns < k->offset_ns - FAR_NS || !(fabs(k->rate) < 1e-3) || !(k->rate_bound >= 0) ||
	    !(k->rate_bound < 1e-3) || k->soft_ns < 0)
		return PAIRS_REFUSED;
	n = &p->nodes[node];
	if (n->n_knots > 0)
		newest_ns = n->knots[(n->n_knots - 1) % N_KNOTS].host_ns;
	if (n->told && k->host_ns < newest_ns)
		return PAIRS_REFUSED;
	/* A clock that was set back counts on from where it stands now. */
	at = n->n_knots ? knot_at(n, k->host_ns > newest_ns ? k->host_ns : newest_ns) : (struct knot){ 0 };
	at.host_ns = k->host_ns;
	if (!n->told) {
		/* Growth goes on over a step: older bounds of others stay what they are. */
		at.base_ns = k->offset_ns;
		at.fraction = 0;
		n->n_knots = 0;
		n->told = true;
	}
	if (k->offset_ns < at.base_ns - FAR_NS || k->offset_ns > at.base_ns + FAR_NS)
		return PAIRS_REFUSED; /* a step that nobody told of */
	at.rate = k->rate;
	at.rate_bound = k->rate_bound;
	n->knots[n->n_knots++ % N_KNOTS] = at;
	n->probe_lo_ns = against(k->lo_ns, k->offset_ns, at.base_ns, -PAIRS_UNBOUNDED);
	n->probe_hi_ns = against(k->hi_ns, k->offset_ns, at.base_ns, PAIRS_UNBOUNDED);
	if (n->probe_hi_ns < PAIRS_UNBOUNDED)
		n->probe_hi_ns++; /* the base's fraction */
	if (n->probe_lo_ns > -PAIRS_UNBOUNDED)
		n->probe_lo_ns--;
	n->probe_growth_ps = at.growth_ps;
	n->probe_e = (double)(k->offset_ns - at.base_ns);
	n->probe_sd = k->soft_ns == PAIRS_UNBOUNDED ? INFINITY : (double)k->soft_ns / p->cfg.z + 1;
	if (isinf(n->sd))
		n->c = n->probe_e;
	return 0;
}

/* ---- corrections ---- */

void node_mark(struct node *n, int64_t t_ns, double c, double sd)
{
	uint64_t oldest = n->n_marks > N_MARKS ? n->n_marks - N_MARKS : 0;
	struct mark m = { .t_ns = t_ns, .sd = (float)sd, .c = c };

	for (uint64_t k = n->n_marks; k-- > oldest && n->marks[k % N_MARKS].t_ns >= t_ns;)
		if (n->marks[k % N_MARKS].t_ns == t_ns) {
			n->marks[k % N_MARKS] = m;
			return;
		}
	if (n->n_marks > 0 && n->marks[(n->n_marks - 1) % N_MARKS].t_ns > t_ns)
		return;
	n->marks[n->n_marks++ % N_MARKS] = m;
}

struct mark node_correction(const struct node *n, int64_t t_ns)
{
	uint64_t oldest = n->n_marks > N_MARKS ? n->n_marks - N_MARKS : 0;
	struct mark at = { .t_ns = t_ns, .sd = INFINITY, .c = n->probe_e };
	const struct mark *a, *b;
	double part;

	for (uint64_t k = n->n_marks; k-- > oldest;) {
		a = &n->marks[k % N_MARKS];
		if (a->t_ns > t_ns && k > oldest)
			continue;
		if (k + 1 == n->n_marks || a->t_ns >= t_ns)
			return *a; /* beyond either end */
		b = &n->marks[(k + 1) % N_MARKS];
		if (isinf(a->sd) || isinf(b->sd))
			return isinf(a->sd) ? *b : *a;
		part = (double)(t_ns - a->t_ns) / (double)(b->t_ns - a->t_ns);
		at.c = a->c + part * (b->c - a->c);
		at.sd = a->sd > b->sd ? a->sd : b->sd;
		return at;
	}
	return at;
}
