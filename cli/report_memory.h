/* report_memory.h - what imported memory snapshots say: what was refused and why, and who holds what. */
#pragma once

#include "db.h"

#include <jansson.h>
#include <stdio.h>

/* NULL with a sentence in d->why. */
json_t *report_memory(struct db *d);
/* Nothing where no snapshot was imported. */
void report_put_memory(FILE *f, const json_t *memory);
