/* pairs_solve.c - one correction a node from everything that its exits said.
 *
 * Every class of every trusted communicator says c_i = gauge - (fit_i - bias_i)
 * with a weight: least squares by turns, from the last second's answer. The
 * probes pull at nobody, because any asymmetry inside their bounds is as likely
 * as another; they only say where the mean of connected nodes lies. The newest
 * second is solved when it is over and again when more is known on its later
 * side: 4, 8 and 15 s afterwards.
 */
#include "pairs_internal.h"

#include <math.h>

#define N_ROUNDS 8

static void each_class(struct pairs *p,
		       void (*does)(struct pairs *, const struct group *, struct exits *, int64_t),
		       int64_t t_ns)
{
	for (uint32_t i = 0; i < p->n_groups; i++)
		for (size_t k = 0; !p->groups[i].quarantined && k < MAX_CLASSES; k++)
			if (p->groups[i].classes[k].used)
				does(p, &p->groups[i], &p->groups[i].classes[k], t_ns);
}

static void prepare(struct pairs *p, const struct group *g, struct exits *x, int64_t t_ns)
{
	exits_fit(p, g, x, t_ns, false);
	for (uint32_t i = 0; i < g->n_members; i++) {
		const struct usual *u = &x->usual[i];

		if (x->w[i] <= 0)
			continue;
		x->f[i] -= u->bias;
		x->w[i] = 1 / (1 / x->w[i] + (double)u->sd * u->sd);
	}
}

static uint32_t root_of(struct pairs *p, uint32_t node)
{
	while (p->nodes[node].part != node) {
		p->nodes[node].part = p->nodes[p->nodes[node].part].part;
		node = p->nodes[node].part;
	}
	return node;
}

static void connect(struct pairs *p, const struct group *g, struct exits *x, int64_t t_ns)
{
	uint32_t first = UINT32_MAX;

	for (uint32_t i = 0; i < g->n_members; i++) {
		uint32_t root;

		if (x->w[i] <= 0)
			continue;
		root = root_of(p, g->nodes[i]);
		if (first == UINT32_MAX)
			first = root;
		/* The smaller one, so that it does not depend on the order of groups. */
		if (root < first) {
			p->nodes[first].part = root;
			first = root;
		} else {
			p->nodes[root].part = first;
		}
	}
}

static void add(struct pairs *p, const struct group *g, struct exits *x, int64_t t_ns)
{
	double sum = 0, weight = 0, gauge;

	for (uint32_t i = 0; i < g->n_members; i++) {
		sum += x->w[i] > 0 ? x->w[i] * (x->f[i] + p->nodes[g->nodes[i]].x) : 0;
		weight += x->w[i];
	}
	if (weight <= 0)
		return;
	gauge = sum / weight;
	for (uint32_t i = 0; i < g->n_members; i++) {
		struct node *n = &p->nodes[g->nodes[i]];

		if (x->w[i] <= 0)
			continue;
		n->sum += x->w[i] * (gauge - x->f[i]);
		n->weight += x->w[i];
	}
}

/* The mean of each connected part is where the probes have it. */
static void centre(struct pairs *p)
{
	for (uint32_t i = 0; i < p->n_nodes; i++)
		p->nodes[i].sum = p->nodes[i].centre_weight = 0;
	for (uint32_t i = 0; i < p->n_nodes; i++) {
		struct node *n = &p->nodes[i], *root = &p->nodes[root_of(p, i)];

		n->part = root_of(p, i);
		if (!n->told || n->weight <= 0)
			continue;
		root->sum += n->probe_e - n->x;
		root->centre_weight++;
	}
	for (uint32_t i = 0; i < p->n_nodes; i++) {
		struct node *n = &p->nodes[i], *root = &p->nodes[n->part];

		if (n->weight > 0 && root->centre_weight > 0)
			n->x += root->sum / root->centre_weight;
	}
}

static void solve_at(struct pairs *p, int64_t t_ns, bool newest)
{
	each_class(p, prepare, t_ns);
	for (uint32_t i = 0; i < p->n_nodes; i++)
		p->nodes[i].part = i;
	each_class(p, connect, t_ns);
	for (uint32_t i = 0; i < p->n_nodes; i++)
		p->nodes[i].x = newest ? p->nodes[i].c : node_correction(&p->nodes[i], t_ns).c;
	for (int round = 0; round < N_ROUNDS; round++) {
		for (uint32_t i = 0; i < p->n_nodes; i++)
			p->nodes[i].sum = p->nodes[i].weight = 0;
		each_class(p, add, t_ns);
		for (uint32_t i = 0; i < p->n_nodes; i++) {
			struct node *n = &p->nodes[i];

			n->x = n->weight > 0 ? n->sum / n->weight : n->probe_e;
		}
	}
	centre(p);
	for (uint32_t i = 0; i < p->n_nodes; i++) {
		struct node *n = &p->nodes[i];
		double sd = n->weight > 0 ? 1 / sqrt(n->weight) : INFINITY;

		if (newest) {
			n->c = n->x;
			n->sd = sd;
		} else if (isfinite(sd)) {
			node_mark(n, t_ns, n->x, sd);
		}
	}
}

void solve(struct pairs *p, int64_t second_ns)
{
	static const int lags[] = { 15, 8, 4 };

	for (size_t i = 0; i < sizeof lags / sizeof *lags; i++)
		solve_at(p, second_ns - lags[i] * TICK_NS, false);
	solve_at(p, second_ns, true);
	bounds_clip(p);
	for (uint32_t i = 0; i < p->n_nodes; i++)
		node_mark(&p->nodes[i], second_ns, p->nodes[i].c, p->nodes[i].sd);
}
