/* report_flight.h - what imported Flight Recorder dumps say: who is in which call, and since where. */
#pragma once

#include "db.h"

#include <jansson.h>
#include <stdio.h>

/* NULL with a sentence in d->why. */
json_t *report_flight(struct db *d);
/* Nothing where no rank is in a call. */
void report_put_flight(FILE *f, const json_t *flight);
