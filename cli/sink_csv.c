/* sink_csv.c - the time line as a table: a row a slice, an instant or a reading (RFC 4180).
 *
 * A row is written when its slice ends, so what lies in a slice comes before it. What has
 * no column is a JSON object in the last one. Nothing is claimed: a cell is empty where
 * the value is not known, and where there is none of it. Texts are the job's own: one that
 * a spreadsheet would take for a formula gets an apostrophe in front.
 */
#include "sink.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum column {
	KIND, RANK, HOST, TRACK, NAME, STEP, BEGIN_NS, END_NS, DUR_NS, CLOCK_ERROR_NS, DUR_ERROR_NS, GROUP, SEQ, OP, DTYPE, BYTES,
	LAST_RANK, WAIT_NS, WAIT_ERROR_NS, SELF_NS, EXPOSED_COMM_NS, INPUT_WAIT_NS, EXCESS_RATIO, COVERAGE, STREAM, LAUNCH,
	STEP_OF_PROCESS, VALUE, FINDING, SEVERITY, CONFIDENCE, TEXT, MORE, N_COLUMNS
};
static const char *const names[N_COLUMNS] = {
	"kind", "rank", "host", "track", "name", "step", "begin_ns", "end_ns", "dur_ns", "clock_error_ns", "dur_error_ns", "group",
	"seq", "op", "dtype", "bytes", "last_rank", "wait_ns", "wait_error_ns", "self_ns", "exposed_comm_ns", "input_wait_ns",
	"excess_ratio", "coverage", "stream", "launch", "step_of_process", "value", "finding", "severity", "confidence", "text", "more",
};
#define IS_TEXT(c) ((c) <= NAME && (c) != RANK ? true : (c) == GROUP || (c) == OP || (c) == DTYPE || (c) >= SEVERITY)
#define MAX_TEXT 2048
#define MAX_MORE (SINK_MAX_ARGS * (MAX_TEXT + 64))

/* A row in the making. Its cells may be asked for by those that lie in it. */
struct row {
	char *v; /* owned */
	size_t n, n_alloc;
	size_t at[N_COLUMNS + 1]; /* where each cell begins; the comma lies before the next */
	int64_t begin_ns, dur_ns; /* dur_ns < 0 = by its end */
	bool is_call, cut;
};

struct place {
	bool has_rank;
	int32_t rank;
	const char *host; /* of a track that keeps it */
	char *owned_host, *name, *reading;
	struct row *open; /* innermost last; owned, like those behind that are used again */
	uint32_t n_open, n_open_alloc;
};

struct csv {
	struct sink sink;
	struct place *places; /* by track id; owned */
	uint32_t n_places;
	struct row row; /* of what has no end */
	char more[MAX_MORE];
};

/* ---- text ---- */

static void put(struct csv *c, struct row *r, const char *v, size_t n)
{
	if (r->n + n > r->n_alloc) {
		size_t n_alloc = 2 * (r->n + n) + 256;
		char *grown = realloc(r->v, n_alloc);

		if (!grown) {
			c->sink.failed = true;
			return;
		}
		r->v = grown;
		r->n_alloc = n_alloc;
	}
	memcpy(r->v + r->n, v, n);
	r->n += n;
}

/* Spreadsheets look at the first character, some behind spaces, and know the wide ones, too. An
 * apostrophe that is there is doubled, so that one can be taken off again. */
static bool is_formula(const char *p)
{
	static const char *const wide[] = { "\xef\xbc\x9d", "\xef\xbc\x8b", "\xef\xbc\x8d", "\xef\xbc\xa0" };

	while (*p == ' ')
		p++;
	for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
		if (strncmp(p, wide[i], 3) == 0)
			return true;
	return *p && strchr("=+-@'", *p);
}

/* Quoted also for what separates cells elsewhere. */
static void put_text(struct csv *c, struct row *r, const char *text)
{
	char buf[MAX_TEXT];
	bool quoted;

	text = sink_clean(text, buf, sizeof buf);
	quoted = text[strcspn(text, ",;|\"")] || *text == ' ' || (*text && text[strlen(text) - 1] == ' ');
	if (quoted)
		put(c, r, "\"", 1);
	if (is_formula(text))
		put(c, r, "'", 1);
	for (size_t n; *text; text += n) {
		n = *text == '"' ? 1 : strcspn(text, "\"");
		if (*text == '"')
			put(c, r, "\"", 1);
		put(c, r, text, n);
	}
	if (quoted)
		put(c, r, "\"", 1);
}

static void put_int(struct csv *c, struct row *r, int64_t v)
{
	char buf[24], *p = buf + sizeof buf;
	uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;

	do
		*--p = (char)('0' + u % 10);
	while (u /= 10);
	if (v < 0)
		*--p = '-';
	put(c, r, p, (size_t)(buf + sizeof buf - p));
}

/* The shortest that reads back the same. */
static int format_real(char *buf, size_t n_buf, double v)
{
	int n = snprintf(buf, n_buf, "%.15g", v);

	return strtod(buf, NULL) == v ? n : snprintf(buf, n_buf, "%.17g", v);
}

static void put_real(struct csv *c, struct row *r, double v)
{
	char buf[40];

	if (isfinite(v))
		put(c, r, buf, (size_t)format_real(buf, sizeof buf, v));
}

/* ---- what has no column ---- */

static size_t add_json_text(char *to, size_t n, const char *text)
{
	char buf[MAX_TEXT];

	to[n++] = '"';
	for (const char *p = sink_clean(text, buf, sizeof buf); *p && n < MAX_MORE - 64; p++) {
		if (*p == '"' || *p == '\\')
			to[n++] = '\\';
		to[n++] = *p;
	}
	to[n++] = '"';
	return n;
}

static size_t add_json(char *to, size_t n, const struct sink_arg *a)
{
	char buf[40] = "null";

	if (n > MAX_MORE - 256)
		return n;
	to[n] = n ? ',' : '{';
	n = add_json_text(to, n + 1, a->name);
	to[n++] = ':';
	if (a->type == SINK_TEXT)
		return add_json_text(to, n, a->text);
	if (a->type == SINK_INT)
		snprintf(buf, sizeof buf, "%" PRId64, a->integer);
	else if (a->type == SINK_BOOL)
		snprintf(buf, sizeof buf, "%s", a->integer ? "true" : "false");
	else if (isfinite(a->real))
		format_real(buf, sizeof buf, a->real);
	return n + (size_t)snprintf(to + n, sizeof buf, "%s", buf);
}

/* ---- rows ---- */

static struct place *place_of(struct csv *c, uint32_t track)
{
	static struct place nowhere;

	return track < c->n_places ? &c->places[track] : &nowhere;
}

/* Of the call that it lies in. */
static void put_inherited(struct csv *c, struct row *r, const struct row *in, enum column column)
{
	if (in && in->is_call && (column == STEP || column == GROUP || column == SEQ || column == OP))
		put(c, r, in->v + in->at[column], in->at[column + 1] - 1 - in->at[column]);
}

static void put_cell(struct csv *c, struct row *r, enum column column, const struct sink_arg *a)
{
	if (a->type == SINK_TEXT) {
		if (IS_TEXT(column)) /* "not known" is no number */
			put_text(c, r, a->text);
	} else if (a->type == SINK_REAL) {
		put_real(c, r, a->real);
	} else {
		put_int(c, r, a->integer);
	}
}

static int column_of(const char *name)
{
	for (int i = STEP; i < MORE; i++)
		if (i != BEGIN_NS && i != END_NS && strcmp(name, names[i]) == 0)
			return i;
	return strcmp(name, "sentence") == 0 ? TEXT : -1;
}

/* All but end_ns and dur_ns, which come when the row goes. */
static void fill(struct csv *c, struct row *r, const struct sink_event *ev, const struct place *p, const struct row *in)
{
	const struct sink_arg *cells[N_COLUMNS] = { 0 };
	struct sink_arg own[] = { { .type = SINK_TEXT, .text = ev->cat ? ev->cat : "" }, { .type = SINK_INT, .integer = p->rank },
				  { .type = SINK_TEXT, .text = p->host ? p->host : "" }, { .type = SINK_TEXT, .text = p->name ? p->name : "" },
				  { .type = SINK_TEXT, .text = ev->name ? ev->name : "" }, { .type = SINK_INT, .integer = ev->at_ns } };
	static const enum column of_own[] = { KIND, RANK, HOST, TRACK, NAME, BEGIN_NS };
	size_t n_more = 0;

	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		cells[of_own[i]] = &own[i];
	if (!p->has_rank)
		cells[RANK] = NULL;
	r->n = 0;
	r->begin_ns = ev->at_ns;
	r->dur_ns = -1;
	r->cut = false;
	r->is_call = ev->cat && strcmp(ev->cat, "collective") == 0;
	if (r->is_call)
		cells[OP] = cells[NAME];
	for (size_t i = 0; i < ev->n_args + ev->n_aside; i++) {
		const struct sink_arg *a = i < ev->n_args ? &ev->args[i] : &ev->aside[i - ev->n_args];
		int column = column_of(a->name);

		if (strcmp(a->name, "unfinished") == 0)
			r->cut = true; /* end_ns says it, being empty */
		else if (column == DUR_NS)
			r->dur_ns = a->integer;
		else if (column >= 0)
			cells[column] = a;
		else
			n_more = add_json(c->more, n_more, a);
	}
	for (enum column i = 0; i < N_COLUMNS; i++) {
		r->at[i] = r->n;
		if (i == MORE && n_more > 0) {
			put(c, r, "\"", 1);
			for (size_t k = 0; k < n_more; k++)
				put(c, r, c->more[k] == '"' ? "\"\"" : &c->more[k], c->more[k] == '"' ? 2 : 1);
			put(c, r, "}\"", 2);
		} else if (cells[i]) {
			put_cell(c, r, i, cells[i]);
		} else {
			put_inherited(c, r, in, i);
		}
		put(c, r, ",", 1);
	}
	r->at[N_COLUMNS] = r->n;
}

static void flush_row(struct csv *c, struct row *r, bool has_end, int64_t end_ns)
{
	size_t n_head = r->at[END_NS];

	if (c->sink.failed)
		return;
	fwrite(r->v, 1, n_head, c->sink.f);
	if (has_end)
		fprintf(c->sink.f, "%" PRId64 ",%" PRId64, end_ns, end_ns - r->begin_ns);
	else
		putc(',', c->sink.f);
	fwrite(r->v + r->at[CLOCK_ERROR_NS] - 1, 1, r->n - r->at[CLOCK_ERROR_NS], c->sink.f); /* with its comma, not the last */
	fputs("\r\n", c->sink.f);
}

static struct row *innermost(const struct place *p)
{
	return p->n_open ? &p->open[p->n_open - 1] : NULL;
}

static void on_begin(struct sink *s, const struct sink_event *ev)
{
	struct csv *c = (struct csv *)s;
	struct place *p = place_of(c, ev->track);

	if (s->failed)
		return;
	if (p->n_open == p->n_open_alloc) {
		uint32_t n = 2 * p->n_open + 4;
		struct row *grown = realloc(p->open, n * sizeof *grown);

		if (!grown) {
			s->failed = true;
			return;
		}
		memset(grown + p->n_open_alloc, 0, (n - p->n_open_alloc) * sizeof *grown);
		p->open = grown;
		p->n_open_alloc = n;
	}
	fill(c, &p->open[p->n_open], ev, p, innermost(p));
	p->n_open++;
}

static void on_end(struct sink *s, const struct sink_event *ev)
{
	struct csv *c = (struct csv *)s;
	struct place *p = place_of(c, ev->track);
	struct row *r = innermost(p);

	if (!r)
		return;
	for (size_t i = 0; i < ev->n_args; i++)
		r->cut = r->cut || strcmp(ev->args[i].name, "unfinished") == 0;
	flush_row(c, r, !r->cut, r->dur_ns < 0 ? ev->at_ns : r->begin_ns + r->dur_ns);
	p->n_open--;
}

static void on_instant(struct sink *s, const struct sink_event *ev)
{
	struct csv *c = (struct csv *)s;
	const struct place *p = place_of(c, ev->track);

	fill(c, &c->row, ev, p, innermost(p));
	flush_row(c, &c->row, false, 0);
}

static void on_reading(struct sink *s, uint32_t track, int64_t at_ns, double value)
{
	struct csv *c = (struct csv *)s;
	const struct place *p = place_of(c, track);
	struct sink_arg arg = { .name = names[VALUE], .type = SINK_REAL, .real = value };

	fill(c, &c->row, &(struct sink_event){ .at_ns = at_ns, .name = p->reading, .cat = "reading", .args = &arg, .n_args = 1 }, p, NULL);
	flush_row(c, &c->row, false, 0);
}

/* ---- tracks ---- */

static char *copy(struct csv *c, const char *text)
{
	char *v = text ? strdup(text) : NULL;

	c->sink.failed = c->sink.failed || (text && !v);
	return v;
}

static void on_track(struct sink *s, const struct sink_track *t)
{
	struct csv *c = (struct csv *)s;
	const struct place *parent;
	struct place *p;

	if (t->id >= c->n_places) {
		uint32_t n = t->id + t->id / 2 + 64;
		struct place *grown = realloc(c->places, n * sizeof *grown);

		if (!grown) {
			s->failed = true;
			return;
		}
		memset(grown + c->n_places, 0, (n - c->n_places) * sizeof *grown);
		c->places = grown;
		c->n_places = n;
	}
	p = &c->places[t->id];
	parent = place_of(c, t->parent);
	p->name = copy(c, t->name);
	p->reading = copy(c, t->reading);
	p->owned_host = copy(c, t->host);
	p->host = p->owned_host ? p->owned_host : parent->host;
	p->has_rank = t->has_rank || parent->has_rank;
	p->rank = t->has_rank ? t->rank : parent->rank;
}

static void on_about(struct sink *s, const struct sink_arg *args, size_t n)
{
	(void)s, (void)args, (void)n; /* its instant has a row */
}

static void on_free(struct sink *s)
{
	struct csv *c = (struct csv *)s;

	for (uint32_t i = 0; i < c->n_places; i++) {
		struct place *p = &c->places[i];

		for (uint32_t k = 0; k < p->n_open_alloc; k++)
			free(p->open[k].v);
		free(p->open);
		free(p->name);
		free(p->reading);
		free(p->owned_host);
	}
	free(c->places);
	free(c->row.v);
	free(c);
}

struct sink *sink_csv(FILE *f, int64_t base_ns)
{
	static const struct sink_ops ops = { on_track, on_begin, on_end, on_instant, on_reading, on_about, on_free };
	struct csv *c = calloc(1, sizeof *c);

	(void)base_ns;
	if (!c)
		return NULL;
	c->sink.ops = &ops;
	c->sink.f = f;
	for (int i = 0; i < N_COLUMNS; i++)
		fprintf(f, "%s%s", i ? "," : "", names[i]);
	fputs("\r\n", f);
	return &c->sink;
}
