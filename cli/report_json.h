/* report_json.h - everything a report says, as the object of docs/report.schema.json.
 *
 * The text form and the exit status are made from this object too, so that all
 * three always agree.
 */
#pragma once

#include "db.h"

#include <jansson.h>

/* A new reference, or NULL with a sentence in d->why. Reads one consistent
 * state, also of a run that is still being written. */
json_t *report_build(struct db *d);

/* enum cli_exit of what the object says. */
/* Most of the gradient collectives were hidden from the probe. */
bool report_is_blind(const json_t *report);
int report_exit(const json_t *report);
