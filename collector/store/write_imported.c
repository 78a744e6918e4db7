/* write_imported.c - rows of the tables that only imports fill: many kinds, few of each,
 * so they are bound by the types that their readers gave and not by a structure each.
 */
#include "internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MAX_COLUMNS 32

static int prepare(struct store *s, const struct row_imported *v, sqlite3_stmt **ret)
{
	char sql[256];
	size_t at = (size_t)snprintf(sql, sizeof sql, "INSERT OR REPLACE INTO raw_%.64s VALUES (", v->table);

	if (v->n_values == 0 || v->n_values > MAX_COLUMNS)
		return -EINVAL;
	for (uint32_t i = 0; i < v->n_values; i++)
		at += (size_t)snprintf(sql + at, sizeof sql - at, i ? ",?" : "?");
	snprintf(sql + at, sizeof sql - at, ")");
	return store_outcome_of(s->db, sqlite3_prepare_v2(s->db, sql, -1, ret, NULL));
}

static int put(struct store *s, sqlite3_stmt *q, const struct row_imported *v)
{
	int rc;

	for (uint32_t i = 0; i < v->n_values; i++) {
		const struct row_value *x = &v->values[i];

		if (x->type == 'i')
			sqlite3_bind_int64(q, (int)i + 1, x->integer);
		else if (x->type == 'r')
			sqlite3_bind_double(q, (int)i + 1, x->real);
		else if (x->type == 't')
			sqlite3_bind_text(q, (int)i + 1, x->text, -1, SQLITE_STATIC);
		else
			sqlite3_bind_null(q, (int)i + 1);
	}
	rc = sqlite3_step(q);
	sqlite3_reset(q);
	return store_outcome_of(s->db, rc);
}

int store_write_imported(struct store *s, const struct row_imported *v, size_t n)
{
	sqlite3_stmt *q = NULL;
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		if (i == 0 || strcmp(v[i].table, v[i - 1].table) != 0 || v[i].n_values != v[i - 1].n_values) {
			sqlite3_finalize(q);
			q = NULL;
			r = prepare(s, &v[i], &q);
		}
		if (r == 0)
			r = put(s, q, &v[i]);
	}
	sqlite3_finalize(q);
	return r;
}
