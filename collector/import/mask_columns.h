/* mask_columns.h - which columns of the tables that only imports fill have names in them. */
#pragma once

#include "mask.h"

enum mask_column { COLUMN_TEXT, COLUMN_HOST, COLUMN_USER, COLUMN_KEPT };

struct mask_columns;

/* From the schema itself, so that a new table needs no word here. NULL without memory. */
struct mask_columns *mask_columns_new(void);
void mask_columns_free(struct mask_columns *c);
/* Column i of raw_<table>. */
enum mask_column mask_column_of(struct mask_columns *c, const char *table, unsigned i);
