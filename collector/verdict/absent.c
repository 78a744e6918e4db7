/* absent.c - a collective that some members entered and others never did.
 *
 * Causes before consequences: a call that differs is told by mismatch.c and is
 * no absence. Then whoever is absent is asked, from what proves most to what proves
 * least: gone, stopped, out of data, on another way, waiting in a circle. What is
 * left is where, since when and for whom, without a why.
 *
 * An end of training is none of this: nobody is inside a call then. Where events of
 * an absent rank were lost its silence proves nothing, and nothing is said.
 */
#include "standstill.h"

static bool is_blind(const struct rules *r, const struct standstill *s)
{
	for (uint32_t i = 0; i < s->n_absent && i < RULES_MAX_RANKS; i++) {
		const struct ledger_proc *q = ledger_proc(&r->ledger, s->absent[i]);

		if ((q && q->lost) || (r->ledger.replayed && (!q || !q->spoke)))
			return true;
	}
	return false;
}

/* A call that differs explains whatever stands still behind it. */
static bool may_differ(const struct rules *r)
{
	for (uint32_t i = 0; i < r->ledger.n_pages; i++)
		if (r->ledger.pages[i].first_odd != UINT64_MAX && !r->ledger.pages[i].told)
			return true;
	return false;
}

int absent_look(struct rules *r)
{
	static int (*const reasons[])(struct rules *, const struct standstill *) = {
		crashed_tell, stopped_tell, uneven_tell, decision_tell, group_order_tell, localised_tell
	};
	struct standstill s;
	int e = peer_busy_look(r);

	if (e < 0 || r->held || may_differ(r) ||
	    (!standstill_find(r, &s) && !standstill_inside(r, &s)))
		return e;
	if (s.waited_ns < STANDSTILL_LEAST_NS || s.n_alive == 0 || is_blind(r, &s))
		return 0;
	for (size_t i = 0; i < sizeof reasons / sizeof *reasons && e == 0; i++)
		e = reasons[i](r, &s);
	return e < 0 ? e : 0;
}
