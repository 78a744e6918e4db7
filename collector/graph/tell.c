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

/* Room for a row of each rank. */
static int make_rows(struct steps *s, size_t n)
{
	struct fact_rank_step *rows;

	if (s->n_rows_alloc >= n)
		return 0;
	rows = realloc(s->rows, n * sizeof *rows);
	if (!rows)
		return -ENOMEM;
	s->rows = rows;
	free(s->selves);
	s->selves = malloc(n * sizeof *s->selves);
	s->n_rows_alloc = s->selves ? n : 0;
	return s->selves ? 0 : -ENOMEM;
}

/* From where one rank began to where another ended. */
static void measure(struct steps *s, const struct rank_step *first, const struct rank_step *last,
		    struct fact_step *ret)
{
	struct instant begin, end;
	struct gap gap;

	roster_compare(s->roster);
	begin = steps_place(s, first->proc, first->from_ns);
	end = steps_place(s, last->proc, last->to_ns);
	gap = match_between(s->match, &end, &begin);
	ret->dur_ns = gap.ns;
	ret->dur_err_ns = gap.err_ns;
}

/* The ranks that ended it, each with its buckets, and the step's own time from
 * the earliest begin to the latest end. */
static int tell_ranks(struct steps *s, const struct step *st, struct fact_step *ret, size_t *ret_n)
{
	int64_t begin_ns = INT64_MAX, end_ns = INT64_MIN, begin_err_ns = 0, end_err_ns = 0;
	const struct rank_step *first = NULL, *last = NULL;
	struct fact_rank_step *rows = s->rows;
	size_t n = 0;

	for (uint32_t i = 0; i < st->n_ranks; i++) {
		struct rank_step *rs = &st->ranks[i];
		int64_t to;
		int r;

		if (rs->begin_ns == FACT_NONE || rs->end_ns == FACT_NONE || device_works(s, st, rs))
			continue;
		device_cut(s, st, rs);
		r = steps_break_down(s, st, (int32_t)i, rs, &rows[n]);
		if (r == 0)
			r = steps_tell_buckets(s, st, (int32_t)i, rs);
		if (r < 0)
			return r;
		to = rows[n].begin_ns + rows[n].dur_ns;
		if (rows[n].begin_ns < begin_ns) {
			begin_ns = rows[n].begin_ns;
			begin_err_ns = rows[n].begin_err_ns;
			first = rs;
		}
		if (to > end_ns) {
			end_ns = to;
			end_err_ns = rows[n].begin_err_ns;
			last = rs;
		}
		n++;
	}
	*ret_n = n;
	if (n == 0)
		return 0;
	*ret = (struct fact_step){ .step = st->step,
				   .begin_ns = begin_ns,
				   .dur_ns = end_ns - begin_ns,
				   .n_ranks = (uint32_t)n,
				   .slowest_rank = -1,
				   .complete = n >= steps_n_expected(s) };
	if (n == 1 || s->roster->n_hosts == 1)
		ret->dur_err_ns = 2 * rows[0].dur_err_ns;
	else if (s->match->evidence)
		measure(s, first, last, ret);
	else if (begin_err_ns == CLOCK_UNBOUNDED || end_err_ns == CLOCK_UNBOUNDED)
		ret->dur_err_ns = CLOCK_UNBOUNDED;
	else
		ret->dur_err_ns = begin_err_ns + end_err_ns;
	return 0;
}

/* The one whose own work took longest, if that is more than the clocks' error. */
static int32_t slowest_of(const struct steps *s, const struct fact_rank_step *rows, size_t n)
{
	const struct fact_rank_step *a, *b;

	if (n < 2)
		return -1;
	a = &rows[s->selves[n - 1].row];
	b = &rows[s->selves[n - 2].row];
	return a->self_ns - b->self_ns > a->dur_err_ns + b->dur_err_ns ? a->rank : -1;
}

static void note_complete(struct steps *s, uint32_t step)
{
	if (!s->any_complete || step < s->first_complete)
		s->first_complete = step;
	if (!s->any_complete || step > s->last_complete)
		s->last_complete = step;
	s->any_complete = true;
}

int steps_tell(struct steps *s, struct step *st)
{
	struct fact_step *f, step;
	bool again = st->told;
	size_t n;
	int r;

	st->told = true;
	st->changed = false;
	st->told_now_ns = s->now_ns;
	r = make_rows(s, st->n_ranks);
	if (r == 0)
		r = tell_ranks(s, st, &step, &n);
	if (r < 0 || n == 0)
		return r;
	compare_peers(s, s->rows, n);
	step.slowest_rank = slowest_of(s, s->rows, n);

	for (size_t i = 0; i < n; i++) {
		struct fact_rank_step *row = FACTS_PUSH(s->facts, rank_steps);

		if (!row)
			return -ENOMEM;
		*row = s->rows[i];
	}
	f = FACTS_PUSH(s->facts, steps);
	if (!f)
		return -ENOMEM;
	*f = step;
	st->complete = f->complete;
	if (st->complete)
		note_complete(s, st->step);
	if (!again)
		s->n_told++;
	return s->told ? s->told(s->told_arg, f, s->rows, n, again) : 0;
}
