/* feed_mask.h - the texts of a trace on their way into the catalogue: without the names of people
 * and machines, or as they are. */
#pragma once

#include "trace.h"
#include "../store/job.h"

struct feed_mask;

/* Learns the names of the whole trace before the first text goes in. keep: masks nothing.
 * NULL without memory. */
struct feed_mask *feed_mask_new(const struct trace *t, const struct trace_input *inputs, uint32_t n_inputs, bool keep);
void feed_mask_free(struct feed_mask *m);

/* In the job's memory, made UTF-8; NULL without memory. */
const char *feed_text(struct feed_mask *m, struct store_job *job, const char *text);
/* Until the mask is freed, for what the analysis keeps by its address. NULL without memory, or of NULL. */
const char *feed_lasting(struct feed_mask *m, const char *text);
const char *feed_host(struct feed_mask *m, struct store_job *job, const char *name);
const char *feed_fields(struct feed_mask *m, struct store_job *job, const char *json);
/* Column i of a row of an import's own table. */
const char *feed_cell(struct feed_mask *m, struct store_job *job, const struct trace_row *row, unsigned i);
