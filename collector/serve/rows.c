/* rows.c - rows of the catalogue as JSON. */
#include "query_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- values */

/* Length of the valid UTF-8 character at s, 0 when it is none. */
static size_t utf8_length(const unsigned char *s, size_t n)
{
	size_t len = s[0] < 0x80 ? 1 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : (s[0] & 0xf0) == 0xe0 ? 3
		   : s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0;

	if (len == 0 || len > n)
		return 0;
	for (size_t i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	}
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return len;
}

/* Texts come from training scripts: whatever is no UTF-8 becomes U+FFFD. */
static json_t *text_json(const char *text, size_t n)
{
	json_t *v = json_stringn(text, n);
	size_t at = 0;
	char *clean;

	if (v)
		return v;
	clean = malloc(3 * n + 1);
	if (!clean)
		return NULL;
	for (size_t i = 0; i < n;) {
		size_t len = utf8_length((const unsigned char *)text + i, n - i);

		memcpy(clean + at, len ? text + i : "\xef\xbf\xbd", len ? len : 3);
		at += len ? len : 3;
		i += len ? len : 1;
	}
	v = json_stringn(clean, at);
	free(clean);
	return v;
}

json_t *query_real_json(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

json_t *query_instant_json(int64_t at_ns)
{
	char text[24];

	if (at_ns == FACT_NONE)
		return json_null();
	snprintf(text, sizeof text, "%" PRId64, at_ns);
	return json_string(text);
}

json_t *query_duration_json(int64_t v_ns)
{
	return v_ns == FACT_NONE ? json_null() : json_integer(v_ns);
}

static json_t *value_json(sqlite3_stmt *q, int col, const char *kind)
{
	const char *text;
	json_t *v;

	switch (sqlite3_column_type(q, col)) {
	case SQLITE_INTEGER:
		if (strcmp(kind, "bool") == 0)
			return json_boolean(sqlite3_column_int64(q, col) != 0);
		return json_integer(sqlite3_column_int64(q, col));
	case SQLITE_FLOAT:
		return query_real_json(sqlite3_column_double(q, col));
	case SQLITE_TEXT:
		text = (const char *)sqlite3_column_text(q, col);
		if (!text)
			return NULL;
		if (strcmp(kind, "json") == 0) {
			v = json_loads(text, JSON_DECODE_ANY, NULL);
			return v ? v : json_null();
		}
		return text_json(text, (size_t)sqlite3_column_bytes(q, col));
	default:
		return json_null();
	}
}

/* ---- rows */

json_t *query_row_json(sqlite3_stmt *q)
{
	json_t *row = json_object();
	char name[64];

	for (int col = 0; row && col < sqlite3_column_count(q); col++) {
		const char *full = sqlite3_column_name(q, col);
		const char *kind = strchr(full, ':');

		snprintf(name, sizeof name, "%.*s", kind ? (int)(kind - full) : (int)strlen(full), full);
		if (json_object_set_new(row, name, value_json(q, col, kind ? kind + 1 : "")) != 0) {
			json_decref(row);
			return NULL;
		}
	}
	return row;
}

/* All rows of a bound statement as an array. */
static int rows(struct reader *rd, sqlite3_stmt *q, json_t **ret, char why[160])
{
	json_t *list = json_array();
	int rc;

	if (!list)
		return -ENOMEM;
	while ((rc = sqlite3_step(q)) == SQLITE_ROW) {
		if (json_array_append_new(list, query_row_json(q)) != 0) {
			sqlite3_reset(q);
			json_decref(list);
			return -ENOMEM;
		}
	}
	if (rc != SQLITE_DONE) {
		json_decref(list);
		rc = query_fail(rd, rc, why);
		sqlite3_reset(q);
		return rc;
	}
	sqlite3_reset(q);
	*ret = list;
	return 0;
}

/* ---- statements */

static void bind(sqlite3_stmt *q, const char *name, int64_t v)
{
	int at = sqlite3_bind_parameter_index(q, name);

	if (at > 0)
		sqlite3_bind_int64(q, at, v);
}

int query_start(struct reader *rd, const char *sql, const struct params *p, sqlite3_stmt **ret,
		char why[160])
{
	int rc = query_prepare(rd, sql, ret);

	if (rc != SQLITE_OK)
		return query_fail(rd, rc, why);
	bind(*ret, ":step", p->r->step);
	bind(*ret, ":rank", p->r->rank);
	bind(*ret, ":from", p->r->from);
	bind(*ret, ":to", p->r->to);
	bind(*ret, ":limit", p->limit);
	return 0;
}

int query_all(struct reader *rd, const char *sql, const struct params *p, json_t **ret,
	      char why[160])
{
	sqlite3_stmt *q;
	int r = query_start(rd, sql, p, &q, why);

	return r != 0 ? r : rows(rd, q, ret, why);
}

int query_one(struct reader *rd, const char *sql, const struct params *p, json_t **ret,
	      char why[160])
{
	json_t *list;
	int r = query_all(rd, sql, p, &list, why);

	if (r != 0)
		return r;
	*ret = json_incref(json_array_get(list, 0));
	json_decref(list);
	return *ret ? 0 : QUERY_NONE;
}

int query_row(struct reader *rd, const char *sql, const struct params *p, sqlite3_stmt **ret,
	      char why[160])
{
	int rc, r = query_start(rd, sql, p, ret, why);

	if (r != 0)
		return r;
	rc = sqlite3_step(*ret);
	if (rc == SQLITE_ROW)
		return 0;
	r = query_fail(rd, rc, why);
	sqlite3_reset(*ret);
	return r;
}

int query_count(struct reader *rd, const char *sql, const struct params *p, int64_t *ret,
		char why[160])
{
	sqlite3_stmt *q;
	int r = query_row(rd, sql, p, &q, why);

	if (r != 0)
		return r;
	*ret = sqlite3_column_int64(q, 0);
	sqlite3_reset(q);
	return 0;
}

int query_listed(struct reader *rd, const char *name, const char *sql, const struct params *p,
		 json_t **ret, char why[160])
{
	json_t *list;
	int r = query_all(rd, sql, p, &list, why);

	if (r != 0)
		return r;
	*ret = json_pack("{s:o}", name, list);
	return *ret ? 0 : -ENOMEM;
}
