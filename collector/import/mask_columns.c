#include "mask_columns.h"

#include "sql.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_COLUMNS 64

struct mask_columns {
	sqlite3 *schema;
	char table[64]; /* of the columns */
	enum mask_column v[MAX_COLUMNS];
};

struct mask_columns *mask_columns_new(void)
{
	struct mask_columns *c = calloc(1, sizeof *c);

	if (c && sqlite3_open(":memory:", &c->schema) == SQLITE_OK &&
	    sqlite3_exec(c->schema, sql_migrations_0004_imports, NULL, NULL, NULL) == SQLITE_OK)
		return c;
	mask_columns_free(c);
	return NULL;
}

void mask_columns_free(struct mask_columns *c)
{
	if (c)
		sqlite3_close(c->schema);
	free(c);
}

static enum mask_column sort_of(const char *name)
{
	enum mask_sort sort;

	if (mask_knows_key(name, &sort))
		return sort == MASK_HOST ? COLUMN_HOST : COLUMN_USER;
	return strstr(name, "version") ? COLUMN_KEPT : COLUMN_TEXT;
}

static void look(struct mask_columns *c, const char *table)
{
	sqlite3_stmt *q = NULL;

	snprintf(c->table, sizeof c->table, "%s", table);
	memset(c->v, 0, sizeof c->v);
	if (sqlite3_prepare_v2(c->schema, "SELECT cid, name FROM pragma_table_info('raw_' || ?1)", -1, &q, NULL) !=
	    SQLITE_OK)
		return;
	sqlite3_bind_text(q, 1, table, -1, SQLITE_STATIC);
	while (sqlite3_step(q) == SQLITE_ROW) {
		int i = sqlite3_column_int(q, 0);

		if (i >= 0 && i < MAX_COLUMNS)
			c->v[i] = sort_of((const char *)sqlite3_column_text(q, 1));
	}
	sqlite3_finalize(q);
}

enum mask_column mask_column_of(struct mask_columns *c, const char *table, unsigned i)
{
	if (strcmp(c->table, table) != 0)
		look(c, table);
	return i < MAX_COLUMNS ? c->v[i] : COLUMN_TEXT;
}
