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
/* A program's name for something, NULL for none: those of kernels are cut in the middle,
 * their beginnings are alike. */
#define TABLE_NAME 52 /* bytes that are shown, and the sign of the cut */
const char *table_name(const char *name, char buf[TABLE_NAME + 4]);
void table_cell_name(struct libscols_line *line, size_t i, const char *name);
/* The duration row[key], "?" where it is null. */
void table_cell_ns(struct libscols_line *line, size_t i, const json_t *row, const char *key);
/* Prints and frees it. */
void table_put(FILE *f, struct libscols_table *t);
