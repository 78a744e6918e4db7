/* pairs_closure.c - shortest paths over what every pair proves, and corrections
 * that keep to them.
 *
 * A contradiction that no single call shows is a circle of bounds whose sum is
 * negative; everybody who built one of them is believed no more.
 */
#include "pairs_internal.h"

#include <math.h>

#define SQUARE PAIRS_MAX_CLOSED
#define N_SWEEPS 50

static int64_t *cell(struct pairs *p, uint32_t a, uint32_t b)
{
	return &p->square[a * SQUARE + b];
}

/* Returns a node whose own circle is negative, or n_nodes. */
static uint32_t shortest_paths(struct pairs *p)
{
	uint32_t n = p->n_nodes;

	for (uint32_t k = 0; k < n; k++)
		for (uint32_t a = 0; a < n; a++) {
			int64_t ak = *cell(p, a, k);

			if (ak == PAIRS_UNBOUNDED)
				continue;
			for (uint32_t b = 0; b < n; b++) {
				int64_t by = pairs_plus(ak, *cell(p, k, b));

				if (by >= WIDEST_NS || by >= *cell(p, a, b))
					continue;
				*cell(p, a, b) = by > -WIDEST_NS ? by : -WIDEST_NS;
				p->square_from[a * SQUARE + b] = p->square_from[a * SQUARE + k] |
								 p->square_from[k * SQUARE + b];
				if (a == b)
					return a;
			}
		}
	return n;
}

bool bounds_close(struct pairs *p, int64_t t_ns, struct pairs_proof *proof, uint64_t *ret_from)
{
	int64_t growth[PAIRS_MAX_CLOSED];
	uint32_t n = p->n_nodes, odd;

	if (!p->closed || n < 2)
		return true;
	for (uint32_t a = 0; a < n; a++)
		node_base_at(&p->nodes[a], t_ns, &growth[a]);
	for (uint32_t a = 0; a < n; a++)
		for (uint32_t b = 0; b < n; b++) {
			const struct bound *d = &p->bounds[a * SQUARE + b];

			*cell(p, a, b) = a == b ? 0
				: bounds_get(p, &(struct moment){ .node = { a, b },
						.growth_ps = { growth[a], growth[b] } }, false);
			p->square_from[a * SQUARE + b] = a == b ? 0 : d->from;
		}
	odd = shortest_paths(p);
	if (odd < n) {
		*proof = (struct pairs_proof){
			.early = odd,
			.late = odd,
			.t_ns = t_ns,
			.source = PAIRS_FROM_CALLS,
			.impossible_ns = -*cell(p, odd, odd),
		};
		*ret_from = p->square_from[odd * SQUARE + odd];
		return false;
	}
	for (uint32_t a = 0; a < n; a++)
		for (uint32_t b = 0; b < n; b++) {
			struct bound *d = &p->bounds[a * SQUARE + b];
			int64_t sum_ps = growth[a] + growth[b];
			uint64_t from = p->square_from[a * SQUARE + b];

			/* What only probes say is theirs, and asked for afresh each time. */
			if (from && a != b &&
			    (d->v_ns == PAIRS_UNBOUNDED ||
			     *cell(p, a, b) < opened_ns(d->v_ns, d->growth_ps, sum_ps)))
				*d = (struct bound){ *cell(p, a, b), sum_ps, from };
		}
	return true;
}

/* Half of the excess from each side, the less certain more, until nothing is left. */
void bounds_clip(struct pairs *p)
{
	uint32_t n = p->n_nodes;

	if (!p->closed)
		return;
	for (int sweep = 0; sweep < N_SWEEPS; sweep++) {
		bool moved = false;

		for (uint32_t a = 0; a < n; a++)
			for (uint32_t b = 0; b < n; b++) {
				struct node *na = &p->nodes[a], *nb = &p->nodes[b];
				double over, share;

				if (a == b || isinf(na->sd) || isinf(nb->sd) ||
				    *cell(p, a, b) == PAIRS_UNBOUNDED)
					continue;
				over = na->c - nb->c - (double)*cell(p, a, b);
				if (over <= 0.5)
					continue;
				share = na->sd * na->sd / (na->sd * na->sd + nb->sd * nb->sd);
				na->c -= over * share;
				nb->c += over * (1 - share);
				moved = true;
			}
		if (!moved)
			return;
	}
}
