/* table.h - columns for people: libsmartcols with our colours. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include <libsmartcols.h>

/* NULL without memory. */
struct libscols_table *table_new(FILE *f);
void table_column(struct libscols_table *t, const char *name, bool right);
void table_cell(struct libscols_line *line, size_t i, const char *value);
/* The duration row[key], "?" where it is null. */
void table_cell_ns(struct libscols_line *line, size_t i, const json_t *row, const char *key);
/* Prints and frees it. */
void table_put(FILE *f, struct libscols_table *t);
