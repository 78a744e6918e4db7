/* report_pipeline.h - what a report says of imported pipelines and execution traces. */
#pragma once

#include "db.h"

#include <jansson.h>
#include <stdio.h>

/* New references, or NULL with a sentence in d->why. */
json_t *report_pipeline(struct db *d);
json_t *report_execution_traces(struct db *d);
/* Nothing where nothing of the kind was imported. */
void report_put_pipeline(FILE *f, const json_t *pipeline);
void report_put_execution_traces(FILE *f, const json_t *traces);
