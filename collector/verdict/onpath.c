#include "onpath.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

bool onpath_uses(const struct rules *r, const struct rates_cell *c, const struct onpath *p)
{
	if (p->rank >= 0)
		return members_has(r, c, p->rank) &&
		       (!p->peer_plus_1 || members_has(r, c, (int32_t)p->peer_plus_1 - 1));
	if (c->n_hosts < 2 || !members_on(r, c, p->host))
		return false;
	return p->other_host == UINT32_MAX || members_on(r, c, p->other_host);
}

void onpath_words(const struct rules *r, const struct onpath *p, char *out, size_t n_out)
{
	if (p->rank >= 0 && p->peer_plus_1)
		snprintf(out, n_out, "ranks %u-%u", (uint32_t)p->rank < p->peer_plus_1 ? (uint32_t)p->rank : p->peer_plus_1 - 1,
			 (uint32_t)p->rank < p->peer_plus_1 ? p->peer_plus_1 - 1 : (uint32_t)p->rank);
	else if (p->rank >= 0)
		snprintf(out, n_out, "rank %d", p->rank);
	else if (p->other_host == UINT32_MAX)
		snprintf(out, n_out, "%.60s", members_host_name(r, p->host));
	else
		snprintf(out, n_out, "%.60s-%.60s", members_host_name(r, p->host),
			 members_host_name(r, p->other_host));
}

const struct contrast *onpath_contrast(const struct rules *r, const struct onpath *p)
{
	for (size_t i = 0; i < r->contrasts.n; i++) {
		const struct contrast *c = &r->contrasts.v[i];
		bool fits = c->n_slow > 0;

		for (uint32_t k = 0; k < c->n && fits; k++)
			fits = onpath_uses(r, c->v[k].cell, p) == (k >= c->n - c->n_slow);
		if (fits)
			return c;
	}
	return NULL;
}

bool onpath_compared(const struct rules *r, const struct onpath *p)
{
	for (size_t i = 0; i < r->contrasts.n; i++) {
		const struct contrast *c = &r->contrasts.v[i];
		uint32_t n = 0;

		for (uint32_t k = 0; k < c->n; k++)
			n += onpath_uses(r, c->v[k].cell, p);
		if (n > 0 && n < c->n)
			return true;
	}
	return false;
}

bool onpath_has_tail(const struct contrast_cell *v)
{
	return v->n_all >= TAIL_LEAST && v->n_tail >= 2 && 3 * v->n_tail <= v->n_all;
}

double tail_chance(const struct onpath_tail *t)
{
	return pow((double)t->n_with / (t->n_with + t->n_without), t->n_tail);
}

bool onpath_tails(const struct rules *r, const struct onpath *p, struct onpath_tail *ret)
{
	*ret = (struct onpath_tail){ .chance = 1 };
	for (size_t i = 0; i < r->contrasts.n_cells; i++) {
		const struct contrast_cell *v = &r->contrasts.cells[i];

		if (v->n_all < TAIL_LEAST || !v->cell->device)
			continue;
		if (!onpath_uses(r, v->cell, p)) {
			if (v->n_tail > 0)
				return false;
			ret->n_without += v->n_all;
			continue;
		}
		ret->n_with += v->n_all;
		if (!onpath_has_tail(v))
			continue;
		ret->n_tail += v->n_tail;
		if (!ret->cell || v->n_tail > ret->cell->n_tail)
			ret->cell = v;
	}
	if (ret->n_without > 0)
		ret->chance = tail_chance(ret);
	return ret->cell != NULL;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static bool is_slower(const struct contrast_cell *v, struct onpath_change *ret)
{
	uint32_t n = v->cell->n / 2 < 10 ? (uint32_t)(v->cell->n / 2) : 10;
	double before[10], after[10], bytes;

	if (n < CONTRAST_LEAST)
		return false;
	bytes = (double)rates_recent(v->cell, 0)->bytes;
	for (uint32_t i = 0; i < n; i++) {
		const struct rates_sample *a = &v->cell->early[i], *b = rates_recent(v->cell, i);

		before[i] = (double)a->transfer_ns * bytes / (double)(a->bytes ? a->bytes : 1);
		after[i] = (double)b->transfer_ns * bytes / (double)(b->bytes ? b->bytes : 1);
	}
	qsort(before, n, sizeof *before, by_value);
	qsort(after, n, sizeof *after, by_value);
	if (after[0] <= before[n - 1] || after[n / 2] < CONTRAST_RATIO * before[n / 2])
		return false;
	*ret = (struct onpath_change){ v, before[n / 2], after[n / 2], (int64_t)(after[n / 2] - before[n / 2]), 0 };
	ret->error_ns = ret->margin_ns - (int64_t)(after[0] - before[n - 1]);
	return true;
}

bool onpath_slower(const struct rules *r, const struct onpath *p, struct onpath_change *ret)
{
	for (size_t i = 0; i < r->contrasts.n_cells; i++) {
		const struct contrast_cell *v = &r->contrasts.cells[i];

		if (onpath_uses(r, v->cell, p) && is_slower(v, ret))
			return true;
	}
	return false;
}

double onpath_share(const struct rules *r, const struct onpath *p)
{
	double most = 0;

	for (size_t i = 0; i < r->contrasts.n_cells; i++) {
		const struct contrast_cell *v = &r->contrasts.cells[i];
		const struct rates_sample *last = rates_recent(v->cell, 0);
		const struct rates_sample *first = rates_recent(v->cell, v->n - 1);
		double span = (double)(last->begin_ns + last->transfer_ns - first->begin_ns);
		double share = v->mid * v->n / (span > 0 ? span : 1);

		if (onpath_uses(r, v->cell, p) && share > most)
			most = share;
	}
	return most < 1 ? most : 1;
}
