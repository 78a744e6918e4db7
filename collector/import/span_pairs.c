#include "span_pairs.h"

#include <stdlib.h>

static int by_lane(const void *a, const void *b)
{
	const struct pair_mark *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	if (x->at_ns != y->at_ns)
		return x->at_ns < y->at_ns ? -1 : 1;
	return x->tag < y->tag ? -1 : x->tag > y->tag;
}

/* How far down the begin of this end is; n_open when there is none. */
static size_t look_down(const struct pair_mark *v, const size_t *open, size_t n_open, const struct pair_mark *end)
{
	for (size_t back = 0; back < n_open && back < PAIRS_DEPTH; back++)
		if (end->name == 0 || v[open[n_open - 1 - back]].name == end->name)
			return back;
	return n_open;
}

static void close_one(const struct pair_mark *v, const size_t *open, size_t *n_open, const struct pair_mark *end,
		      struct pair *ret, struct pair_count *count)
{
	size_t back = look_down(v, open, *n_open, end);
	const struct pair_mark *begin;

	if (back == *n_open) {
		count->n_without_begin++;
		return;
	}
	count->n_without_end += back;
	*n_open -= back + 1;
	begin = &v[open[*n_open]];
	ret[count->n++] = (struct pair){ begin->at_ns, end->at_ns, end->lane, (uint32_t)*n_open, begin->tag, end->tag };
}

bool pairs_find(struct pair_mark *v, size_t n, struct pair *ret, struct pair_count *count)
{
	size_t *open = malloc((n + 1) * sizeof *open), n_open = 0;

	*count = (struct pair_count){ 0 };
	if (!open)
		return false;
	if (n > 1)
		qsort(v, n, sizeof *v, by_lane);
	for (size_t i = 0; i < n; i++) {
		if (i > 0 && v[i].lane != v[i - 1].lane) {
			count->n_without_end += n_open;
			n_open = 0;
		}
		if (v[i].ends)
			close_one(v, open, &n_open, &v[i], ret, count);
		else
			open[n_open++] = i;
	}
	count->n_without_end += n_open;
	free(open);
	return true;
}
