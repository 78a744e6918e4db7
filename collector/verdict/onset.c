#include "onset.h"
#include "start.h"

#define FIRST_CALLS 4 /* a library may choose another way for a larger call */

static bool is_of_life(const struct rules *r, const struct page *p)
{
	for (uint32_t i = 0; i < p->n_seats; i++)
		if (p->seats[i].seen)
			return r->ledger.roster->procs[p->seats[i].proc].life == r->life;
	return false;
}

static bool any_left(const struct page *p)
{
	for (uint32_t i = 0; i < p->n_seats; i++)
		if (p->seats[i].seen && p->seats[i].n_left > 0)
			return true;
	return false;
}

bool onset_calls_came_out(const struct rules *r)
{
	for (uint32_t i = 0; i < r->ledger.n_pages; i++)
		if (r->ledger.pages[i].any && is_of_life(r, &r->ledger.pages[i]) &&
		    any_left(&r->ledger.pages[i]))
			return true;
	return false;
}

/* Calls that differ explain a stand by themselves. */
static bool any_odd(const struct rules *r)
{
	for (uint32_t i = 0; i < r->ledger.n_pages; i++)
		if (r->ledger.pages[i].first_odd != UINT64_MAX && is_of_life(r, &r->ledger.pages[i]))
			return true;
	return false;
}

/* Is anyone of this life there or fallen? All gone in good order left nothing undone. */
static bool is_unfinished(const struct rules *r)
{
	const struct roster *roster = r->ledger.roster;

	for (uint32_t i = 0; i < roster->n_procs; i++)
		if (roster->procs[i].life == r->life && (!roster->procs[i].gone || roster->procs[i].died))
			return true;
	return false;
}

enum onset onset_of(struct rules *r, int64_t silent_ns, struct standstill *ret)
{
	if (start_hangs(r, silent_ns))
		return ONSET_NO_CALL;
	if (!r->ledger.replayed && !any_odd(r) && is_unfinished(r) && standstill_inside(r, ret) &&
	    (ret->waited_ns >= silent_ns || (r->finishing && ret->waited_ns >= STANDSTILL_LEAST_NS)))
		return ret->call < r->ledger.pages[ret->group].first + FIRST_CALLS ? ONSET_FIRST_CALLS :
										     ONSET_LATER_CALL;
	if (standstill_find(r, ret))
		return ONSET_LATER_CALL;
	return onset_calls_came_out(r) ? ONSET_RUNS : ONSET_UNKNOWN;
}

bool onset_pair_has_met(const struct rules *r, int32_t a, int32_t b)
{
	for (uint32_t i = 0; i < r->ledger.n_pages; i++) {
		const struct page *p = &r->ledger.pages[i];
		bool left_a = false, left_b = false;

		for (uint32_t k = 0; k < p->n_seats && is_of_life(r, p); k++) {
			left_a |= p->seats[k].seen && p->seats[k].rank == a && p->seats[k].n_left > 0;
			left_b |= p->seats[k].seen && p->seats[k].rank == b && p->seats[k].n_left > 0;
		}
		if (left_a && left_b)
			return true;
	}
	return false;
}
