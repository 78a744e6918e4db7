#include "rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* jansson takes UTF-8 only; a database may hold anything. */
static json_t *text_value(const char *text, size_t n)
{
	json_t *v = json_stringn(text, n);
	char *clean;

	if (v)
		return v;
	clean = malloc(n + 1);
	if (!clean)
		return NULL;
	for (size_t i = 0; i < n; i++)
		clean[i] = (unsigned char)text[i] < 0x80 ? text[i] : '?';
	v = json_stringn(clean, n);
	free(clean);
	return v;
}

/* The column's name says how it is to be read: "culprit:json", "known:bool". */
static json_t *column_value(sqlite3_stmt *q, int i, const char *as)
{
	const char *text;

	switch (sqlite3_column_type(q, i)) {
	case SQLITE_INTEGER:
		if (strcmp(as, ":bool") == 0)
			return json_boolean(sqlite3_column_int64(q, i) != 0);
		return json_integer(sqlite3_column_int64(q, i));
	case SQLITE_FLOAT:
		return json_real(sqlite3_column_double(q, i));
	case SQLITE_TEXT:
		text = (const char *)sqlite3_column_text(q, i);
		if (strcmp(as, ":json") == 0) {
			json_t *v = json_loads(text, JSON_DECODE_ANY, NULL);

			if (v)
				return v;
		}
		return text_value(text, (size_t)sqlite3_column_bytes(q, i));
	default:
		return json_null();
	}
}

static json_t *row_object(sqlite3_stmt *q)
{
	json_t *row = json_object();

	for (int i = 0; i < sqlite3_column_count(q); i++) {
		const char *name = sqlite3_column_name(q, i);
		size_t n = strcspn(name, ":");
		char key[64];

		snprintf(key, sizeof key, "%.*s", (int)n, name);
		json_object_set_new(row, key, column_value(q, i, name + n));
	}
	return row;
}

static json_t *all(struct db *d, const char *sql, const int64_t *param)
{
	json_t *list = json_array();
	sqlite3_stmt *q = NULL;
	int rc = sqlite3_prepare_v2(d->handle, sql, -1, &q, NULL);

	if (rc == SQLITE_OK && param)
		rc = sqlite3_bind_int64(q, 1, *param);
	if (rc == SQLITE_OK)
		while ((rc = sqlite3_step(q)) == SQLITE_ROW)
			json_array_append_new(list, row_object(q));
	sqlite3_finalize(q);
	if (rc == SQLITE_DONE)
		return list;
	snprintf(d->why, sizeof d->why, "cannot read the tables: %s", sqlite3_errmsg(d->handle));
	json_decref(list);
	return NULL;
}

json_t *rows_all(struct db *d, const char *sql)
{
	return all(d, sql, NULL);
}

json_t *rows_all_of(struct db *d, const char *sql, int64_t param)
{
	return all(d, sql, &param);
}

json_t *rows_one(struct db *d, const char *sql)
{
	json_t *list = rows_all(d, sql), *row;

	if (!list)
		return NULL;
	row = json_array_size(list) > 0 ? json_incref(json_array_get(list, 0)) : json_object();
	json_decref(list);
	return row;
}

int64_t rows_ns(const json_t *row, const char *key)
{
	const json_t *n = json_object_get(row, key);

	return json_is_integer(n) ? json_integer_value(n) : INT64_MIN;
}

const char *rows_text(const json_t *row, const char *key)
{
	const char *s = json_string_value(json_object_get(row, key));

	return s ? s : "?";
}
