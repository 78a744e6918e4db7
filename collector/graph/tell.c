/* tell.c - a step as facts: each rank's breakdown, compared with the others. */
#include "steps_internal.h"

static int by_self(const void *a, const void *b)
{
	const struct self_of_rank *x = a, *y = b;

	if (x->self_ns != y->self_ns)
		return x->self_ns < y->self_ns ? -1 : 1;
	return x->row < y->row ? -1 : x->row > y->row;
}

/* Each against the median of the others, from one sort. */
static void compare_peers(struct steps *s, struct fact_rank_step *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		s->selves[i] = (struct self_of_rank){ rows[i].self_ns, (uint32_t)i };
	qsort(s->selves, n, sizeof *s->selves, by_self);
	for (size_t at = 0; at < n; at++) {
		struct fact_rank_step *f = &rows[s->selves[at].row];
		size_t n_others = n - 1, lo, hi;
		double median;

		f->n_peers = (uint32_t)n_others;
		if (n_others == 0)
			continue;
		lo = (n_others - 1) / 2;
		hi = n_others / 2;
		lo += lo >= at; /* without the rank itself */
		hi += hi >= at;
		median = ((double)s->selves[lo].self_ns + (double)s->selves[hi].self_ns) / 2;
		if (median > 0)
			f->excess_ratio = (double)f->self_ns / median - 1;
	}
}

int steps_tell(struct steps *s, struct step *st)
{
	struct fact_rank_step *rows;
	struct fact_step *f;
	int64_t begin_ns = INT64_MAX, end_ns = INT64_MIN, begin_err_ns = 0, end_err_ns = 0;
	bool again = st->told;
	size_t n = 0;
	int r;

	st->told = true;
	st->changed = false;
	st->told_now_ns = s->now_ns;
	if (s->n_rows_alloc < st->n_ranks) {
		rows = realloc(s->rows, st->n_ranks * sizeof *rows);
		if (!rows)
			return -ENOMEM;
		s->rows = rows;
		free(s->selves);
		s->selves = malloc(st->n_ranks * sizeof *s->selves);
		s->n_rows_alloc = s->selves ? st->n_ranks : 0;
		if (!s->selves)
			return -ENOMEM;
	}
	rows = s->rows;
	for (uint32_t i = 0; i < st->n_ranks; i++) {
		const struct rank_step *rs = &st->ranks[i];
		int64_t to;

		if (rs->begin_ns == FACT_NONE || rs->end_ns == FACT_NONE)
			continue;
		r = steps_break_down(s, st, (int32_t)i, rs, &rows[n]);
		if (r == 0)
			r = steps_tell_buckets(s, st, (int32_t)i, rs);
		if (r < 0)
			return r;
		to = rows[n].begin_ns + rows[n].dur_ns;
		if (rows[n].begin_ns < begin_ns) {
			begin_ns = rows[n].begin_ns;
			begin_err_ns = rows[n].begin_err_ns;
		}
		if (to > end_ns) {
			end_ns = to;
			end_err_ns = rows[n].begin_err_ns;
		}
		n++;
	}
	if (n == 0)
		return 0;
	compare_peers(s, rows, n);

	for (size_t i = 0; i < n; i++) {
		struct fact_rank_step *row = FACTS_PUSH(s->facts, rank_steps);

		if (!row)
			return -ENOMEM;
		*row = rows[i];
	}
	f = FACTS_PUSH(s->facts, steps);
	if (!f)
		return -ENOMEM;
	*f = (struct fact_step){ .step = st->step,
				 .begin_ns = begin_ns,
				 .dur_ns = end_ns - begin_ns,
				 .n_ranks = (uint32_t)n,
				 .slowest_rank = -1,
				 .complete = n >= s->world_size };
	if (n == 1 || s->roster->n_hosts == 1)
		f->dur_err_ns = 2 * rows[0].dur_err_ns;
	else if (begin_err_ns == CLOCK_UNBOUNDED || end_err_ns == CLOCK_UNBOUNDED)
		f->dur_err_ns = CLOCK_UNBOUNDED;
	else
		f->dur_err_ns = begin_err_ns + end_err_ns;
	if (n > 1) {
		const struct fact_rank_step *a = &rows[s->selves[n - 1].row];
		const struct fact_rank_step *b = &rows[s->selves[n - 2].row];

		if (a->self_ns - b->self_ns > a->dur_err_ns + b->dur_err_ns)
			f->slowest_rank = a->rank;
	}
	st->complete = f->complete;
	if (st->complete) {
		if (!s->any_complete || st->step < s->first_complete)
			s->first_complete = st->step;
		if (!s->any_complete || st->step > s->last_complete)
			s->last_complete = st->step;
		s->any_complete = true;
	}
	if (!again)
		s->n_told++;
	return s->told ? s->told(s->told_arg, f, rows, n, again) : 0;
}
