#include "trail.h"

/* The names launched between two of the group's calls, newest first. *ret_whole: the
 * trail reaches so far back. */
static uint32_t names_between(const struct ledger_proc *q, uint32_t group, uint64_t from,
			      uint64_t to, uint32_t names[LEDGER_TRAIL], bool *ret_whole)
{
	uint64_t i = q->n_trail, low = i > LEDGER_TRAIL ? i - LEDGER_TRAIL : 0;
	bool inside = false;
	uint32_t n = 0;

	*ret_whole = false;
	while (i-- > low) {
		const struct step_mark *m = &q->trail[i % LEDGER_TRAIL];

		if (m->group == group + 1 && m->seq == from) {
			*ret_whole = true;
			break;
		}
		inside |= m->group == group + 1 && m->seq == to;
		if (inside && m->name)
			names[n++] = m->name;
	}
	return n;
}

static bool has_name(const uint32_t *names, uint32_t n, uint32_t name)
{
	for (uint32_t i = 0; i < n; i++)
		if (names[i] == name)
			return true;
	return false;
}

static bool ran_before(const struct ledger_proc *q, uint32_t name)
{
	for (uint64_t i = 0; i < q->n_trail && i < LEDGER_TRAIL; i++)
		if (q->trail[i].name == name)
			return true;
	return false;
}

uint32_t trail_left_out(const struct ledger_proc *mine, const struct ledger_proc *theirs,
			uint32_t group, uint64_t from, uint64_t to)
{
	uint32_t a[LEDGER_TRAIL], b[LEDGER_TRAIL], n_a, n_b;
	bool whole_a, whole_b;

	if (!mine->trail || !theirs->trail)
		return 0;
	n_a = names_between(mine, group, from, to, a, &whole_a);
	n_b = names_between(theirs, group, from, to, b, &whole_b);
	for (uint32_t i = n_b; whole_a && whole_b && i-- > 0;)
		if (!has_name(a, n_a, b[i]) && ran_before(mine, b[i]))
			return b[i];
	return 0;
}
