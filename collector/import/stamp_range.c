#include "stamp_range.h"

#include <string.h>

static bool near(const struct stamp_range *r, int64_t lo_ns, int64_t hi_ns)
{
	return lo_ns - STAMP_GAP_NS <= r->hi_ns && hi_ns + STAMP_GAP_NS >= r->lo_ns;
}

static void drop(struct stamp_ranges *r, unsigned i)
{
	memmove(&r->v[i], &r->v[i + 1], (r->n - i - 1) * sizeof r->v[0]);
	r->n--;
}

/* What v[i] has come near to becomes a part of it. */
static void merge(struct stamp_ranges *r, unsigned i)
{
	for (unsigned k = 0; k < r->n; k++) {
		struct stamp_range *a = &r->v[i], *b = &r->v[k];

		if (k == i || !near(a, b->lo_ns, b->hi_ns))
			continue;
		a->lo_ns = b->lo_ns < a->lo_ns ? b->lo_ns : a->lo_ns;
		a->hi_ns = b->hi_ns > a->hi_ns ? b->hi_ns : a->hi_ns;
		a->n += b->n;
		drop(r, k);
		return;
	}
}

static unsigned least(const struct stamp_ranges *r)
{
	unsigned least = 0;

	for (unsigned i = 1; i < r->n; i++)
		if (r->v[i].n < r->v[least].n)
			least = i;
	return least;
}

void stamp_ranges_add(struct stamp_ranges *r, int64_t at_ns)
{
	for (unsigned i = 0; i < r->n; i++)
		if (near(&r->v[i], at_ns, at_ns)) {
			bool wider = at_ns < r->v[i].lo_ns || at_ns > r->v[i].hi_ns;

			r->v[i].lo_ns = at_ns < r->v[i].lo_ns ? at_ns : r->v[i].lo_ns;
			r->v[i].hi_ns = at_ns > r->v[i].hi_ns ? at_ns : r->v[i].hi_ns;
			r->v[i].n++;
			if (wider)
				merge(r, i);
			return;
		}
	if (r->n == STAMP_RANGES)
		drop(r, least(r));
	r->v[r->n++] = (struct stamp_range){ at_ns, at_ns, 1 };
}

bool stamp_most(const struct stamp_ranges *r, struct stamp_range *ret)
{
	const struct stamp_range *most = NULL;

	for (unsigned i = 0; i < r->n; i++)
		if (!most || r->v[i].n > most->n || (r->v[i].n == most->n && r->v[i].lo_ns > most->lo_ns))
			most = &r->v[i];
	if (most)
		*ret = *most;
	return most != NULL;
}
