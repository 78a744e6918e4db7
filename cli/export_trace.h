/* export_trace.h - three rows of the table of formats. */
#pragma once

#include "export.h"

int64_t export_guess_perfetto(const struct export *e);
int64_t export_guess_chrome(const struct export *e);
int64_t export_guess_csv(const struct export *e);
int export_perfetto(struct export *e, const struct export_format *f);
int export_chrome(struct export *e, const struct export_format *f);
int export_csv(struct export *e, const struct export_format *f);
