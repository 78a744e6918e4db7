/* report_nccl.h - what files of NCCL itself say, in the report. */
#pragma once

#include "db.h"

#include <jansson.h>
#include <stdio.h>

/* A new reference; null (the JSON one) where no file of NCCL was imported. NULL: why. */
json_t *report_nccl_build(struct db *d);
/* Nothing for null. */
void report_nccl_put(FILE *f, const json_t *nccl);
