/* report.h - what the database says, in words. */
#pragma once

#include <jansson.h>
#include <stdio.h>

/* Everything, for `syncline report`. */
void report_put(FILE *f, const json_t *report, const char *path);
/* The verdicts and the coverage in a few lines, for the end of a run. */
void report_put_brief(FILE *f, const json_t *report);
