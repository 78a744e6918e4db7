/* export_formats.h - formats of a whole run; those of its time line are in export_trace.h. */
#pragma once

#include "export.h"

int64_t export_guess_html(const struct export *e);
/* An enum cli_exit each; they say what went wrong. */
int export_html(struct export *e, const struct export_format *f);
int export_snapshot(struct export *e, const struct export_format *f);
int export_otlp(struct export *e, const struct export_format *f);
