/* rows.h - what a query says, as JSON. */
#pragma once

#include "db.h"

#include <jansson.h>

/* One object a row, by the names of the columns; "name:json" and "name:bool" say
 * how a column is to be read. A new reference, or NULL with a sentence in d->why. */
json_t *rows_all(struct db *d, const char *sql);
/* The same with one number as its parameter. */
json_t *rows_all_of(struct db *d, const char *sql, int64_t param);
/* The only row; an empty object when there is none. */
json_t *rows_one(struct db *d, const char *sql);

/* INT64_MIN where it is no integer: "?" for term_ns(). */
int64_t rows_ns(const json_t *row, const char *key);
/* "?" where it is no text. */
const char *rows_text(const json_t *row, const char *key);
