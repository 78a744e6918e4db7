#include "contrast.h"

#include <errno.h>
#include <stdlib.h>

#define LEAST_NS 20000 /* differences below are nobody's business */

void contrasts_fini(struct contrasts *c)
{
	free(c->cells);
	free(c->v);
	*c = (struct contrasts){ 0 };
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Half of the calls, so that a change has to last no longer than it must; ten to
 * RATES_KEEP of them. */
static uint32_t window(uint64_t n)
{
	uint64_t half = n / 2 > 10 ? n / 2 : 10;

	half = half < n ? half : n;
	return (uint32_t)(half < RATES_KEEP ? half : RATES_KEEP);
}

/* Which order statistic bounds the median with 99 %: binomial. */
static uint32_t trim(uint32_t n)
{
	return n < 12 ? 0 : n < 15 ? 1 : n < 18 ? 2 : n < 21 ? 3 : n < 26 ? 4 : n < 32 ? 6 : 8;
}

static double per_call(const struct rates_sample *s, double bytes)
{
	return s->bytes ? (double)s->transfer_ns * bytes / (double)s->bytes : (double)s->transfer_ns;
}

static void tails(const struct rates_cell *c, struct contrast_cell *ret)
{
	double v[RATES_KEEP], mid;
	uint32_t n = c->n < RATES_KEEP ? (uint32_t)c->n : RATES_KEEP;

	for (uint32_t i = 0; i < n; i++)
		v[i] = per_call(rates_recent(c, i), (double)rates_recent(c, 0)->bytes);
	qsort(v, n, sizeof *v, by_value);
	mid = v[(n - 1) / 2];
	ret->n_all = n;
	ret->least = v[0];
	ret->most = v[n - 1];
	for (uint32_t i = 0; i < n; i++)
		ret->n_tail += v[i] > 2 * mid;
}

static void measure(const struct rates_cell *c, struct contrast_cell *ret)
{
	uint32_t n = window(c->n), k = trim(n);
	double v[RATES_KEEP], bytes = 0;

	for (uint32_t i = 0; i < n; i++)
		bytes += (double)rates_recent(c, i)->bytes / n;
	for (uint32_t i = 0; i < n; i++)
		v[i] = per_call(rates_recent(c, i), bytes);
	qsort(v, n, sizeof *v, by_value);
	*ret = (struct contrast_cell){ .cell = c, .n = n, .lo = v[k], .hi = v[n - 1 - k],
				       .mid = v[(n - 1) / 2] };
	tails(c, ret);
}

#define ORDER(field) if (a->field != b->field) return a->field < b->field ? -1 : 1
static int by_kind(const struct rates_cell *a, const struct rates_cell *b)
{
	ORDER(pair);
	ORDER(device);
	ORDER(op);
	ORDER(dtype);
	ORDER(size);
	ORDER(n_ranks);
	ORDER(n_hosts);
	return 0;
}
#undef ORDER

static int by_family(const void *a, const void *b)
{
	const struct contrast_cell *x = a, *y = b;
	int r = by_kind(x->cell, y->cell);

	return r ? r : (x->mid > y->mid) - (x->mid < y->mid);
}

static void split(struct contrast *c)
{
	double fast_hi = 0, slow_lo, least, most = 0;
	uint32_t at = 0, n_least = UINT32_MAX;

	for (uint32_t i = 1; i < c->n; i++)
		if (c->v[i - 1].mid > 0 && c->v[i].mid / c->v[i - 1].mid > most) {
			most = c->v[i].mid / c->v[i - 1].mid;
			at = i;
		}
	if (at == 0 || most < CONTRAST_RATIO || c->v[at].mid - c->v[at - 1].mid < LEAST_NS)
		return;
	slow_lo = c->v[at].lo;
	for (uint32_t i = 0; i < c->n; i++) {
		if (i < at && c->v[i].hi > fast_hi)
			fast_hi = c->v[i].hi;
		if (i >= at && c->v[i].lo < slow_lo)
			slow_lo = c->v[i].lo;
		n_least = c->v[i].n < n_least ? c->v[i].n : n_least;
	}
	least = slow_lo - fast_hi;
	if (least <= 0)
		return;
	c->n_slow = c->n - at;
	c->ratio = most;
	c->margin_ns = (int64_t)(c->v[at].mid - c->v[at - 1].mid);
	c->error_ns = (int64_t)(c->v[at].mid - c->v[at - 1].mid - least);
	c->error_ns = c->error_ns > 0 ? c->error_ns : 0;
	c->firm = n_least >= 10;
}

int contrasts_look(struct contrasts *c, const struct rates *r, uint32_t life)
{
	c->n = c->n_cells = 0;
	for (uint32_t i = 0; i < r->n_cells; i++) {
		const struct rates_cell *cell = r->cells[i];

		if (cell->n < CONTRAST_LEAST || cell->life != life || cell->size == 0)
			continue;
		if (!facts_reserve((void **)&c->cells, &c->n_cells, &c->n_cells_alloc, sizeof *c->cells))
			return -ENOMEM;
		measure(cell, &c->cells[c->n_cells - 1]);
	}
	if (c->n_cells > 0)
		qsort(c->cells, c->n_cells, sizeof *c->cells, by_family);
	for (size_t i = 0, k; i < c->n_cells; i = k) {
		struct contrast *f;

		for (k = i + 1; k < c->n_cells && by_kind(c->cells[i].cell, c->cells[k].cell) == 0; k++)
			;
		if (!facts_reserve((void **)&c->v, &c->n, &c->n_alloc, sizeof *c->v))
			return -ENOMEM;
		f = &c->v[c->n - 1];
		f->v = &c->cells[i];
		f->n = (uint32_t)(k - i);
		split(f);
	}
	return 0;
}

double contrast_cost(const struct contrast *c, const struct contrast_cell *slow)
{
	const struct rates_sample *last = rates_recent(slow->cell, 0);
	const struct rates_sample *first = rates_recent(slow->cell, slow->n - 1);
	double span = (double)(last->begin_ns + last->transfer_ns - first->begin_ns);
	double more = (slow->mid - c->v[c->n - c->n_slow - 1].mid) * slow->n;

	return span > more && more > 0 ? more / (span - more) : 0;
}
