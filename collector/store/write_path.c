/* write_path.c - the critical path of a step: one row, its segments as JSON in it. */
#include "bind.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void put_text(FILE *f, const char *text)
{
	putc('"', f);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			fprintf(f, "\\%c", c);
		else if (c < 0x20)
			fprintf(f, "\\u%04x", c);
		else
			putc(c, f);
	}
	putc('"', f);
}

static void put_ns(FILE *f, int64_t ns)
{
	if (ns == FACT_NONE)
		fputs(",null", f);
	else
		fprintf(f, ",%" PRId64, ns);
}

/* As migrations/0003 has it. */
static void put_segment(FILE *f, const struct fact_segment *v, int64_t begin_ns)
{
	fprintf(f, "[%d,%u,\"%s\",", v->rank, v->host, fact_segment_name(v->kind));
	put_text(f, v->name);
	put_ns(f, v->group == UINT32_MAX ? FACT_NONE : (int64_t)v->group);
	put_ns(f, v->kind == SEGMENT_TRANSFER ? (int64_t)v->seq : FACT_NONE);
	put_ns(f, v->from_rank < 0 ? FACT_NONE : v->from_rank);
	put_ns(f, v->begin_ns - begin_ns);
	put_ns(f, v->dur_ns);
	put_ns(f, v->err_ns);
	put_ns(f, v->excess_ns);
	put_ns(f, v->held_ns);
	put_ns(f, v->held_err_ns);
	fprintf(f, ",%d,%u]", v->undecided, v->n_joined);
}

static char *segments_json(const struct fact_path *v, const struct facts *facts)
{
	size_t n_bytes;
	char *text = NULL;
	FILE *f = open_memstream(&text, &n_bytes);

	if (!f)
		return NULL;
	for (size_t i = 0; i < v->n_segments; i++) {
		putc(i ? ',' : '[', f);
		put_segment(f, &facts->segments.v[v->first_segment + i], v->begin_ns);
	}
	fputs(v->n_segments ? "]" : "[]", f);
	if (fclose(f) == 0)
		return text;
	free(text);
	return NULL;
}

int store_write_path(struct store *s, const struct fact_path *v, const struct facts *f)
{
	struct bind b = { s->put_path, 0 }, thin = { s->thin_paths, 0 }, old = { s->forget_blame, 0 };
	char *json = segments_json(v, f);
	int r;

	if (!json)
		return -ENOMEM;
	bind_int(&b, v->step);
	bind_int(&b, v->begin_ns);
	bind_int(&b, v->dur_ns);
	bind_int(&b, v->dur_err_ns);
	bind_int(&b, v->complete);
	bind_text(&b, json);
	r = run(s, &b);
	free(json);
	bind_int(&old, v->step);
	if (r == 0)
		r = run(s, &old);
	bind_int(&thin, v->step);
	return r == 0 ? run(s, &thin) : r;
}

int store_write_blame(struct store *s, const struct fact_blame *v)
{
	struct bind b = { s->put_blame, 0 };

	bind_int(&b, v->step);
	bind_int(&b, v->rank);
	bind_int(&b, v->host);
	bind_text(&b, fact_segment_name(v->kind));
	bind_text(&b, v->name);
	bind_int(&b, v->group == UINT32_MAX ? -1 : (int64_t)v->group);
	bind_int(&b, v->n);
	bind_int(&b, v->path_ns);
	bind_ns(&b, v->excess_ns);
	bind_int(&b, v->held_ns);
	bind_int(&b, v->undecided_ns);
	return run(s, &b);
}
