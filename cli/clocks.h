/* clocks.h - what the files of `syncline clocks` share. */
#pragma once

#include "db.h"

#include <jansson.h>

/* Of each host that was probed: {host, n_exchanges, n_steps, points: [{host_ns,
 * offset_ns, error_ns, soft_ns, skew_ppb, status}]}, sixty points over the run. A new
 * reference, or NULL with d->why set. */
json_t *clocks_hindsight(struct db *d);
