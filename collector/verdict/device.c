/* device.c - config.device_differs: a GPU's model, memory or link is not the others'.
 *
 * What it says: the property, its values and who has which.
 *
 * How it decides: the records of devices compared over the ranks of this life;
 * numbers within 2 % are equal. A mixed fleet is nothing wrong by itself: a notice.
 * It is slow where exactly the odd ranks come last to their collectives, call after
 * call, by an eighth of the time between calls: equal devices differ by less.
 * Where memory differs and allocations fail on the odd ranks alone it is wrong.
 *
 * Neighbours: slow.fixed_rank (the same lateness, and nothing known to be different
 * about the rank), slow.throttled (the same model, at a lower clock), slow.work_imbalance.
 */
#include "memory.h"
#include "words.h"

/* Do allocations fail on the odd ranks and nowhere else? */
static bool too_small(const struct rules *r, const struct difference *d)
{
	bool any = false;

	if (!words_has(d->field, "memory") && !words_has(d->others, "memory"))
		return false;
	for (size_t i = 0; i < r->side.n && d->n_odd > 0; i++) {
		const struct side_record *v = &r->side.v[i];
		bool odd = false;

		if (v->kind != SIDE_ALLOC_FAILED || !memory_counts(r, v->proc))
			continue;
		for (uint32_t k = 0; k < d->n_odd && k < CONFIG_MAX_ODD; k++)
			odd |= d->odd[k] == r->ledger.roster->procs[v->proc].rank;
		if (!odd)
			return false;
		any = true;
	}
	return any;
}

int device_look(struct rules *r)
{
	const struct difference *d = &r->config.v[CONFIG_DEVICE];

	if (*d->field && !r->held && r->config.told[CONFIG_DEVICE] <= CONFIG_NOTICE &&
	    r->side.n_of_kind[SIDE_ALLOC_FAILED] > 0 && too_small(r, d)) {
		r->once.memory_life = r->life;
		return config_tell(r, CONFIG_DEVICE, CONFIG_WRONG,
				   "Allocations fail there and nowhere else.", true, 0);
	}
	return config_hold_look(r, CONFIG_DEVICE);
}

int device_slow_look(struct rules *r)
{
	return config_slow_look(r, CONFIG_DEVICE);
}
