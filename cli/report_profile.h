/* report_profile.h - what imported profiles say of their devices. */
#pragma once

#include "db.h"

#include <jansson.h>
#include <stdio.h>

/* NULL with a sentence in d->why. */
json_t *report_profile(struct db *d);
/* Nothing where nothing was imported. */
void report_put_profile(FILE *f, const json_t *profile);
