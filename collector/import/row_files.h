/* row_files.h - which file a row of a table is of, where one import may have several of a kind.
 *
 * Files are read apart and put together later, so while one is read its number is not known: the
 * first column of its rows has a mark of its path, and the number once all are there.
 */
#pragma once

#include "trace.h"

int64_t row_file_mark(const char *path);
/* Marks of the table that has one row a file into 0, 1, …, in their order, and those of the other tables
 * (NULL behind the last) with them. False only without memory. */
bool row_files_number(struct trace *t, const char *table, const char *const *others);
/* All rows of that mark in these tables are taken away. */
void row_files_drop(struct trace *t, const char *const *tables, int64_t mark);
/* A column that is no integer: TRACE_NULL; no number: NaN. */
int64_t row_integer(const struct trace_row *r, uint32_t column);
double row_real(const struct trace_row *r, uint32_t column);
