/* path.h - what the files of `syncline path` share. */
#pragma once

#include "db.h"

#include <jansson.h>

/* The path of a step followed anew from the events of the catalogue: an object
 * {step, begin_ns, dur_ns, dur_err_ns, complete, segments, edges}, as the views have
 * them; edges: all that it was found among, or NULL where they were not asked for.
 * `known`: a row of report/path_step.sql. JSON null when the events do not
 * make one. A new reference, or NULL with d->why set. */
json_t *path_again(struct db *d, const json_t *known, bool edges);
