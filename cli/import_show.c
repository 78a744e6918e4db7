#include "import_show.h"

#include "table.h"
#include "term.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jansson.h>

#define EVERY_NS 100000000

/* ---- while it goes on ---- */

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static const char *bytes_text(double n, char *buf, size_t n_buf)
{
	static const char *const units[] = { "B", "kB", "MB", "GB", "TB" };
	size_t i = 0;

	for (; n >= 1000 && i + 1 < sizeof units / sizeof *units; i++)
		n /= 1000;
	snprintf(buf, n_buf, "%.*f %s", i > 0 && n < 100, n, units[i]);
	return buf;
}

void import_show_read(void *arg, const char *path, double share)
{
	struct import_show *s = arg;
	double total = (double)s->files->n_bytes, done = total * (share < 1 ? share : 1), rate, seconds;
	const char *name = strrchr(path, '/');
	char of[32], speed[32];
	int64_t now = now_ns();

	s->begin_ns = s->begin_ns ? s->begin_ns : now;
	if (now - s->shown_ns < EVERY_NS)
		return;
	s->shown_ns = now;
	seconds = (double)(now - s->begin_ns) / 1e9;
	rate = seconds > 0 ? done / seconds : 0;
	fprintf(stderr, "\r\033[KReading ");
	term_put(stderr, name ? name + 1 : path);
	fprintf(stderr, ": %.0f %% of %s, %s/s", total > 0 ? 100 * done / total : 0, bytes_text(total, of, sizeof of),
		bytes_text(rate, speed, sizeof speed));
	if (seconds > 1 && rate > 0 && total > done)
		fprintf(stderr, ", %.0f s left", (total - done) / rate);
	fflush(stderr);
}

void import_show_feed(void *arg, double share)
{
	struct import_show *s = arg;

	if (share - s->share < 0.01)
		return;
	s->share = share;
	fprintf(stderr, "\r\033[KAnalysing %.0f %%", 100 * (share < 1 ? share : 1));
	fflush(stderr);
}

void import_show_end(void)
{
	fprintf(stderr, "\r\033[K");
}

/* ---- at the end ---- */

void import_count(const struct files *f, struct import_result *r)
{
	r->n_fine = r->n_failed = r->n_skipped = 0;
	for (uint32_t i = 0; i < f->n; i++) {
		r->n_fine += f->v[i].fine;
		r->n_skipped += !f->v[i].fine && f->v[i].skipped;
		r->n_failed += !f->v[i].fine && !f->v[i].skipped;
	}
}

/* Names of files are bytes, and a sentence may be cut in the middle of a letter. */
static json_t *text_json(const char *text)
{
	json_t *v = json_string(text);
	char *plain;

	if (v)
		return v;
	plain = strdup(text);
	for (char *c = plain; c && *c; c++)
		*c = (unsigned char)*c < 0x80 ? *c : '?';
	v = plain ? json_string(plain) : json_null();
	free(plain);
	return v;
}

static const char *state_of(const struct trace_input *in)
{
	return in->fine ? "read" : in->skipped ? "skipped" : "failed";
}

void import_put_json(const struct files *f, const struct import_result *r)
{
	json_t *list = json_array(), *j;

	for (uint32_t i = 0; i < f->n; i++) {
		const struct trace_input *in = &f->v[i];
		json_t *v = json_pack("{s:o, s:s?, s:b, s:s, s:o, s:I, s:I}", "file", text_json(in->path), "format",
				      in->format, "ok", (int)in->fine, "state", state_of(in), "outcome",
				      text_json(in->outcome), "events", (json_int_t)in->n_events, "bytes",
				      (json_int_t)in->n_file_bytes);

		json_object_set_new(v, "rank", in->rank >= 0 ? json_integer(in->rank) : json_null());
		json_array_append_new(list, v);
	}
	j = json_pack("{s:s?, s:i, s:i, s:i, s:i, s:i, s:o, s:o}", "db", r->db, "ranks", (int)r->n_ranks, "read",
		      (int)r->n_fine, "failed", (int)r->n_failed, "skipped", (int)r->n_skipped, "hidden",
		      (int)f->n_hidden, "error", r->why[0] ? text_json(r->why) : json_null(), "inputs", list);
	json_dumpf(j, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
	putchar('\n');
	json_decref(j);
}

static void put_cell(struct libscols_line *line, size_t i, const char *text)
{
	char *shown = NULL;
	size_t n;
	FILE *f = open_memstream(&shown, &n);

	if (!f)
		return;
	term_put(f, text);
	fclose(f);
	table_cell(line, i, shown);
	free(shown);
}

static void put_table(const struct files *f)
{
	struct libscols_table *t = table_new(stdout);

	if (!t)
		return;
	table_column(t, "FILE", false);
	table_column(t, "FORMAT", false);
	table_column(t, "RANK", true);
	table_column(t, "EVENTS", true);
	table_column(t, "OUTCOME", false);
	for (uint32_t i = 0; i < f->n; i++) {
		const struct trace_input *in = &f->v[i];
		struct libscols_line *line = scols_table_new_line(t, NULL);
		char number[32];

		if (!line)
			break;
		put_cell(line, 0, in->path);
		table_cell(line, 1, in->format ? in->format : "-");
		snprintf(number, sizeof number, "%" PRId64, in->rank);
		table_cell(line, 2, in->rank >= 0 ? number : "-");
		snprintf(number, sizeof number, "%" PRIu64, in->n_events);
		table_cell(line, 3, in->fine ? number : "-");
		put_cell(line, 4, in->outcome);
	}
	table_put(stdout, t);
}

static const char *s_of(uint32_t n)
{
	return n == 1 ? "" : "s";
}

void import_put_text(const struct files *f, const struct import_result *r, bool verbose)
{
	put_table(f);
	if (verbose && f->n_hidden > 0) {
		printf("%" PRIu32 " hidden file%s or folder%s not looked at: ", f->n_hidden, s_of(f->n_hidden),
		       s_of(f->n_hidden));
		term_put(stdout, f->hidden);
		puts(f->n_hidden > 1 ? " and others" : "");
	}
	if (!r->db || r->n_fine == 0)
		return;
	printf("%" PRIu32 " file%s read", r->n_fine, s_of(r->n_fine));
	if (r->n_failed)
		printf(", %" PRIu32 " failed", r->n_failed);
	if (r->n_skipped)
		printf(", %" PRIu32 " skipped", r->n_skipped);
	printf("; %" PRIu32 " rank%s. What they say: syncline report ", r->n_ranks, s_of(r->n_ranks));
	term_put(stdout, r->db);
	putchar('\n');
}
