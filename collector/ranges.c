#include "ranges.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

void ranges_fini(struct ranges *r)
{
	free(r->v);
	*r = (struct ranges){ 0 };
}

/* Index of the first range whose end lies beyond x. */
static size_t first_beyond(const struct ranges *r, uint64_t x)
{
	size_t lo = 0, hi = r->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (r->v[mid].hi > x)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

bool ranges_has(const struct ranges *r, uint64_t x)
{
	size_t i = first_beyond(r, x);

	return i < r->n && r->v[i].lo <= x;
}

bool ranges_missing(const struct ranges *r, uint64_t lo, uint64_t hi, struct range *ret)
{
	size_t i = first_beyond(r, lo);

	if (i < r->n && r->v[i].lo <= lo) {
		lo = r->v[i].hi;
		i++;
	}
	if (lo >= hi)
		return false;
	ret->lo = lo;
	ret->hi = i < r->n && r->v[i].lo < hi ? r->v[i].lo : hi;
	return true;
}

static int insert_at(struct ranges *r, size_t i, struct range v)
{
	if (r->n == r->n_alloc) {
		size_t n = r->n_alloc ? r->n_alloc * 2 : 4;
		struct range *grown = realloc(r->v, n * sizeof *grown);

		if (!grown)
			return -ENOMEM;
		r->v = grown;
		r->n_alloc = n;
	}
	memmove(&r->v[i + 1], &r->v[i], (r->n - i) * sizeof r->v[0]);
	r->v[i] = v;
	r->n++;
	return 0;
}

int ranges_add(struct ranges *r, uint64_t lo, uint64_t hi, struct range *ret, bool *ret_merged)
{
	size_t first, last;
	int e;

	assert(lo < hi);
	*ret_merged = false;
	if (r->n && r->v[r->n - 1].hi == lo) { /* the usual case */
		r->v[r->n - 1].hi = hi;
		*ret = r->v[r->n - 1];
		return 0;
	}
	/* first: the first range that ends at lo or later; last: one past those that touch. */
	first = first_beyond(r, lo ? lo - 1 : 0);
	for (last = first; last < r->n && r->v[last].lo <= hi; last++)
		;
	if (first == last) {
		e = insert_at(r, first, (struct range){ lo, hi });
		if (e != 0)
			return e;
	} else {
		struct range *v = &r->v[first];

		*ret_merged = last - first > 1 || lo < v->lo;
		v->lo = lo < v->lo ? lo : v->lo;
		if (r->v[last - 1].hi > hi)
			hi = r->v[last - 1].hi;
		if (v->hi < hi)
			v->hi = hi;
		memmove(&r->v[first + 1], &r->v[last], (r->n - last) * sizeof r->v[0]);
		r->n -= last - first - 1;
	}
	*ret = r->v[first];
	if (r->n > RANGES_MAX) {
		r->v[1].lo = r->v[0].lo;
		memmove(&r->v[0], &r->v[1], (r->n - 1) * sizeof r->v[0]);
		r->n--;
		if (first <= 1) {
			*ret = r->v[0];
			*ret_merged = true;
		}
	}
	return 0;
}
