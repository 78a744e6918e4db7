/* sql.c - `syncline sql F [QUERY]`: read-only SQL.
 *
 * mode=ro alone is not read-only: ATTACH creates files and PRAGMA changes
 * settings. What a statement may do is a short list of things to allow, told to
 * SQLite's authorizer; a progress handler ends what runs too long, limits bound
 * what one statement can take.
 */
#include "cli.h"
#include "db.h"
#include "term.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>
#include <libsmartcols.h>

#include "sql.h"

#define MAX_SQL_BYTES (1 << 20)
#define MAX_VALUE_BYTES (16 << 20)
#define MAX_HEAP_BYTES (INT64_C(1) << 30)
#define MAX_TABLE_ROWS 10000 /* a table is laid out in memory; csv and json stream */
#define PROGRESS_OPS 10000

enum format { FORMAT_AUTO, FORMAT_TABLE, FORMAT_CSV, FORMAT_JSON };

struct sql_options {
	const char *path, *query;
	enum format format;
	bool schema;
	long timeout_s;
};

struct guard {
	char refused[256]; /* what the authorizer said no to, "" = nothing */
	int64_t deadline_ms;
	bool late;
};

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* ---- the guard ---- */

static const char *refusal(int action)
{
	switch (action) {
	case SQLITE_ATTACH:
	case SQLITE_DETACH:
		return "ATTACH reaches other files; this command reads the named one alone";
	case SQLITE_PRAGMA:
		return "PRAGMA changes how the database works; it is not needed to read it";
	case SQLITE_INSERT:
	case SQLITE_UPDATE:
	case SQLITE_DELETE:
		return "the database is only read here, never changed";
	case SQLITE_TRANSACTION:
	case SQLITE_SAVEPOINT:
		return "transactions are not needed to read";
	case SQLITE_FUNCTION:
		return "this function is not allowed here";
	default:
		return "only SELECT is allowed here";
	}
}

static int authorize(void *arg, int action, const char *a, const char *b, const char *schema,
		     const char *inner)
{
	struct guard *g = arg;

	switch (action) {
	case SQLITE_SELECT:
	case SQLITE_READ:
	case SQLITE_RECURSIVE:
		return SQLITE_OK;
	case SQLITE_FUNCTION:
		if (b && (sqlite3_stricmp(b, "load_extension") == 0 ||
			  sqlite3_stricmp(b, "fts3_tokenizer") == 0))
			break;
		return SQLITE_OK;
	default:
		break;
	}
	if (!g->refused[0])
		snprintf(g->refused, sizeof g->refused, "%s", refusal(action));
	return SQLITE_DENY;
}

static int on_progress(void *arg)
{
	struct guard *g = arg;

	g->late = g->deadline_ms > 0 && now_ms() > g->deadline_ms;
	return g->late;
}

static void put_guard(sqlite3 *h, struct guard *g)
{
	static const int limits[][2] = {
		{SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES},
		{SQLITE_LIMIT_SQL_LENGTH, MAX_SQL_BYTES},
		{SQLITE_LIMIT_COLUMN, 500},
		{SQLITE_LIMIT_EXPR_DEPTH, 200},
		{SQLITE_LIMIT_COMPOUND_SELECT, 100},
		{SQLITE_LIMIT_VDBE_OP, 250000},
		{SQLITE_LIMIT_ATTACHED, 0},
		{SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000},
		{SQLITE_LIMIT_TRIGGER_DEPTH, 1},
		{SQLITE_LIMIT_WORKER_THREADS, 0},
	};

	for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
		sqlite3_limit(h, limits[i][0], limits[i][1]);
	sqlite3_hard_heap_limit64(MAX_HEAP_BYTES);
	sqlite3_db_config(h, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
	sqlite3_progress_handler(h, PROGRESS_OPS, on_progress, g);
}

/* ---- output ---- */

static void put_csv_text(const char *text, size_t n)
{
	if (n > 0 && !memchr(text, '"', n) && !memchr(text, ',', n) && !memchr(text, '\n', n) &&
	    !memchr(text, '\r', n)) {
		fwrite(text, 1, n, stdout);
		return;
	}
	putchar('"');
	for (size_t i = 0; i < n; i++) {
		if (text[i] == '"')
			putchar('"');
		putchar(text[i]);
	}
	putchar('"');
}

static void put_hex(FILE *f, sqlite3_stmt *q, int i)
{
	const unsigned char *b = sqlite3_column_blob(q, i);
	int n = sqlite3_column_bytes(q, i);

	for (int k = 0; k < n; k++)
		fprintf(f, "%02x", b[k]);
}

static void put_csv_row(sqlite3_stmt *q)
{
	for (int i = 0; i < sqlite3_column_count(q); i++) {
		if (i > 0)
			putchar(',');
		switch (sqlite3_column_type(q, i)) {
		case SQLITE_NULL:
			break;
		case SQLITE_BLOB:
			put_hex(stdout, q, i);
			break;
		default:
			put_csv_text((const char *)sqlite3_column_text(q, i),
				     (size_t)sqlite3_column_bytes(q, i));
		}
	}
	fputs("\r\n", stdout); /* RFC 4180 */
}

static json_t *json_of(sqlite3_stmt *q, int i)
{
	json_t *v;

	switch (sqlite3_column_type(q, i)) {
	case SQLITE_NULL:
		return json_null();
	case SQLITE_INTEGER:
		return json_integer(sqlite3_column_int64(q, i));
	case SQLITE_FLOAT:
		v = json_real(sqlite3_column_double(q, i));
		return v ? v : json_null(); /* infinity */
	case SQLITE_TEXT:
		v = json_stringn((const char *)sqlite3_column_text(q, i),
				 (size_t)sqlite3_column_bytes(q, i));
		if (v)
			return v;
		break; /* not UTF-8: as hexadecimal, like a blob */
	default:
		break;
	}
	{
		int n = sqlite3_column_bytes(q, i);
		const unsigned char *b = sqlite3_column_blob(q, i);
		char *hex = malloc(2 * (size_t)n + 1);

		if (!hex)
			return json_null();
		for (int k = 0; k < n; k++)
			sprintf(hex + 2 * k, "%02x", b[k]);
		hex[2 * n] = '\0';
		v = json_string(hex);
		free(hex);
		return v;
	}
}

static void put_json_row(sqlite3_stmt *q, bool first)
{
	json_t *row = json_object();

	for (int i = 0; i < sqlite3_column_count(q); i++)
		json_object_set_new(row, sqlite3_column_name(q, i), json_of(q, i));
	fputs(first ? "" : ",\n", stdout);
	json_dumpf(row, stdout, JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(17));
	json_decref(row);
}

static bool is_number_column(sqlite3_stmt *q, int i)
{
	int type = sqlite3_column_type(q, i);

	return type == SQLITE_INTEGER || type == SQLITE_FLOAT;
}

static void put_table_row(struct libscols_table *t, sqlite3_stmt *q)
{
	struct libscols_line *line = scols_table_new_line(t, NULL);
	char blob[64];

	for (int i = 0; line && i < sqlite3_column_count(q); i++) {
		switch (sqlite3_column_type(q, i)) {
		case SQLITE_NULL:
			break;
		case SQLITE_BLOB:
			snprintf(blob, sizeof blob, "(%d bytes)", sqlite3_column_bytes(q, i));
			scols_line_set_data(line, (size_t)i, blob);
			break;
		default:
			scols_line_set_data(line, (size_t)i,
					    (const char *)sqlite3_column_text(q, i));
		}
	}
}

static struct libscols_table *new_table(sqlite3_stmt *q)
{
	struct libscols_table *t = scols_new_table();

	if (!t)
		return NULL;
	scols_table_enable_nowrap(t, 1);
	scols_table_enable_maxout(t, 0);
	for (int i = 0; i < sqlite3_column_count(q); i++)
		scols_table_new_column(t, sqlite3_column_name(q, i), 0,
				       is_number_column(q, i) ? SCOLS_FL_RIGHT : 0);
	return t;
}

/* Every row of one statement. Returns SQLite's last answer. */
static int put_rows(sqlite3_stmt *q, enum format format)
{
	struct libscols_table *t = NULL;
	int rc = sqlite3_step(q);
	size_t n = 0;

	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		return rc;
	if (format == FORMAT_TABLE) {
		t = new_table(q);
		if (!t)
			return SQLITE_NOMEM;
	} else if (format == FORMAT_JSON) {
		putchar('[');
	} else {
		for (int i = 0; i < sqlite3_column_count(q); i++) {
			const char *name = sqlite3_column_name(q, i);

			if (i > 0)
				putchar(',');
			put_csv_text(name, strlen(name));
		}
		fputs("\r\n", stdout);
	}
	for (; rc == SQLITE_ROW; rc = sqlite3_step(q), n++) {
		if (format == FORMAT_TABLE && n == MAX_TABLE_ROWS) {
			rc = SQLITE_DONE;
			cli_say("the table stops after %d rows. For all of them: --csv or --json",
				MAX_TABLE_ROWS);
			break;
		}
		if (format == FORMAT_TABLE)
			put_table_row(t, q);
		else if (format == FORMAT_JSON)
			put_json_row(q, n == 0);
		else
			put_csv_row(q);
	}
	if (t) {
		fflush(stdout);
		scols_print_table(t);
		scols_unref_table(t);
	}
	if (format == FORMAT_JSON)
		fputs("]\n", stdout);
	return rc;
}

/* ---- statements ---- */

static int failed(sqlite3 *h, const struct guard *g, long timeout_s)
{
	if (g->late) {
		cli_say("stopped after %ld s. Give it longer with --timeout, or narrow it",
			timeout_s);
		return EXIT_UNREACHED;
	}
	if (g->refused[0]) {
		cli_say("refused: %s", g->refused);
		return EXIT_USAGE;
	}
	switch (sqlite3_errcode(h)) {
	case SQLITE_NOMEM:
		cli_say("stopped: it needs more memory than is allowed here. Narrow it");
		return EXIT_UNREACHED;
	case SQLITE_TOOBIG:
		cli_say("refused: a value or the statement is larger than is allowed here");
		return EXIT_USAGE;
	case SQLITE_ERROR:
		cli_say("%s. The views: syncline sql FILE --schema", sqlite3_errmsg(h));
		return EXIT_USAGE;
	default:
		cli_say("%s", sqlite3_errmsg(h));
		return EXIT_UNREACHED;
	}
}

static int run_all(sqlite3 *h, const char *sql, struct guard *g, const struct sql_options *o)
{
	int n = 0;

	while (*sql) {
		sqlite3_stmt *q = NULL;
		const char *tail;
		int rc;

		if (sqlite3_prepare_v2(h, sql, -1, &q, &tail) != SQLITE_OK)
			return failed(h, g, o->timeout_s);
		sql = tail;
		if (!q)
			continue; /* a comment, or white space */
		n++;
		if (!sqlite3_stmt_readonly(q)) { /* the authorizer refuses first; twice is safe */
			snprintf(g->refused, sizeof g->refused, "%s", refusal(SQLITE_INSERT));
			sqlite3_finalize(q);
			return failed(h, g, o->timeout_s);
		}
		rc = put_rows(q, o->format);
		if (rc != SQLITE_DONE) {
			int status = failed(h, g, o->timeout_s);

			sqlite3_finalize(q);
			return status;
		}
		sqlite3_finalize(q);
	}
	if (n == 0) {
		cli_say("there is no statement. For example: syncline sql FILE 'SELECT * FROM "
			"finding'");
		return EXIT_USAGE;
	}
	return EXIT_FINE;
}

static char *read_stdin(void)
{
	size_t n = 0, n_alloc = 4096;
	char *text = malloc(n_alloc + 1);

	while (text) {
		size_t r = fread(text + n, 1, n_alloc - n, stdin);

		n += r;
		if (r == 0)
			break;
		if (n > MAX_SQL_BYTES) {
			free(text);
			errno = EFBIG;
			return NULL;
		}
		if (n == n_alloc) {
			char *more = realloc(text, 2 * n_alloc + 1);

			if (!more)
				free(text);
			text = more;
			n_alloc *= 2;
		}
	}
	if (text)
		text[n] = '\0';
	return text;
}

/* ---- the command ---- */

enum { KEY_TABLE = 0x100, KEY_CSV, KEY_SCHEMA, KEY_TIMEOUT };

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct sql_options *o = state->input;

	switch (key) {
	case KEY_TABLE:
		o->format = FORMAT_TABLE;
		return 0;
	case KEY_CSV:
		o->format = FORMAT_CSV;
		return 0;
	case 'j':
		o->format = FORMAT_JSON;
		return 0;
	case KEY_SCHEMA:
		o->schema = true;
		return 0;
	case KEY_TIMEOUT:
		o->timeout_s = cli_number(state, "--timeout", arg, 0, 86400);
		return 0;
	case ARGP_KEY_ARG:
		if (!o->path)
			o->path = arg;
		else if (!o->query)
			o->query = arg;
		else
			argp_error(state,
				   "takes one database and one query (in quotes), got '%s', too",
				   arg);
		return 0;
	case ARGP_KEY_END:
		if (!o->path)
			argp_error(state, "which database? Name the file that --db wrote");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int cmd_sql(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"table", KEY_TABLE, 0, 0, "aligned columns (default on a terminal)", 0},
		{"csv", KEY_CSV, 0, 0, "RFC 4180 (default otherwise)", 0},
		{"json", 'j', 0, 0, "an array of objects a statement", 0},
		{"schema", KEY_SCHEMA, 0, 0, "the views, their columns, units and meaning", 0},
		{"timeout", KEY_TIMEOUT, "S", 0, "stop after S seconds (60; 0 = never)", 0},
		{0},
	};
	static const struct argp_child children[] = {{&cli_color_argp, 0, 0, 0}, {0}};
	static const struct argp argp = {
		options,
		parse,
		"DATABASE [QUERY]",
		"Read-only SQL on a job's database; without QUERY it is read from stdin.\v"
		"Examples:\n"
		"  syncline sql run.db 'SELECT rank, avg(self_ns) FROM rank_step GROUP BY rank'\n"
		"  syncline sql run.db --schema\n"
		"  syncline sql run.db --csv < query.sql > out.csv\n",
		children,
		0,
		0};
	struct sql_options o = {.timeout_s = 60};
	struct guard g = {0};
	char *from_stdin = NULL;
	struct db d;
	int status;

	if (!cli_parse(&argp, argc, argv, 0, NULL, &o))
		return EXIT_USAGE;
	if (o.format == FORMAT_AUTO)
		o.format = isatty(STDOUT_FILENO) || o.schema ? FORMAT_TABLE : FORMAT_CSV;
	if (db_open(&d, o.path) != DB_OK) {
		cli_say("%s", d.why);
		return EXIT_UNREACHED;
	}
	if (o.schema)
		o.query = sql_report_schema;
	if (!o.query) {
		from_stdin = read_stdin();
		if (!from_stdin) {
			cli_say("cannot read the query: %s", strerror(errno));
			db_close(&d);
			return EXIT_USAGE;
		}
		o.query = from_stdin;
	}
	put_guard(d.handle, &g);
	if (!o.schema) /* that query is ours and asks a pragma for the columns */
		sqlite3_set_authorizer(d.handle, authorize, &g);
	g.deadline_ms = o.timeout_s > 0 ? now_ms() + o.timeout_s * 1000 : 0;
	status = run_all(d.handle, o.query, &g, &o);
	free(from_stdin);
	db_close(&d);
	return status;
}
