#include "habit.h"

/* How many calls before this one are what was called a period before, without a gap. */
static uint64_t run_of(const struct page *p, uint64_t call, uint64_t period)
{
	uint64_t n = 0;

	while (n < 2 * HABIT_MAX_PERIOD && call >= p->first + n + 1 + period) {
		const struct line *a = ledger_line(p, call - 1 - n);
		const struct line *b = ledger_line(p, call - 1 - n - period);

		if (!a || !b || a->n_odd || b->n_odd || !ledger_same(&a->shape, &b->shape))
			break;
		n++;
	}
	return n;
}

bool habit_expects(const struct page *p, uint64_t call, uint64_t at, struct shape *ret)
{
	uint64_t best = 0, longest = 0;
	const struct line *v;

	for (uint64_t period = 1; period <= HABIT_MAX_PERIOD && call >= p->first + 2 * period; period++) {
		uint64_t n = run_of(p, call, period);

		if (n >= period && n > longest) {
			longest = n;
			best = period;
		}
	}
	v = best ? ledger_line(p, call - best + (at - call) % best) : NULL;
	if (!v)
		return false;
	*ret = v->shape;
	return true;
}
