/* export_formats.h - the formats of export.c's table. */
#pragma once

#include "export.h"

extern const struct export_format export_snapshot, export_otlp, export_html;
