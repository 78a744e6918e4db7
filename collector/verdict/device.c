/* device.c - config.device_differs: a GPU's model, memory or link is not the others'.
 *
 * What it says: the property, its values and who has which.
 *
 * How it decides: the records of devices compared over the ranks of this life;
 * numbers within 2 % are equal. A mixed fleet is nothing wrong by itself: a notice.
 * It is slow where exactly the odd ranks come last to their collectives, call after
 * call, by an eighth of the time between calls: equal devices differ by less.
 *
 * Neighbours: slow.fixed_rank (the same lateness, and nothing known to be different
 * about the rank), slow.throttled (the same model, at a lower clock), slow.work_imbalance.
 */
#include "rules.h"

int device_look(struct rules *r)
{
	return config_hold_look(r, CONFIG_DEVICE);
}

int device_slow_look(struct rules *r)
{
	return config_slow_look(r, CONFIG_DEVICE);
}
