/* sink_chrome.c - the JSON that Chrome's and Perfetto's viewers read, written as it comes.
 *
 * Begins and ends rather than complete events: times are microseconds with a fraction, and
 * a reader that rounds them keeps the order of two times, but not of a time and a sum. For
 * the same reason they count from baseTimeNanoseconds: since 1970 they would not fit into a double.
 */
#include "sink.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Where a track lies, in a viewer that knows processes and threads. */
struct place {
	int32_t pid;
	char *name; /* of a counter; owned */
};

struct chrome {
	struct sink sink;
	int64_t base_ns;
	struct place *places; /* by track id; owned */
	uint32_t n_places;
	bool begun, closed;
};

static const struct place *place_of(const struct chrome *c, uint32_t track)
{
	static const struct place nowhere;

	return track < c->n_places ? &c->places[track] : &nowhere;
}

static void put_text(FILE *f, const char *text)
{
	char buf[2048];

	putc('"', f);
	for (const char *p = sink_clean(text, buf, sizeof buf); *p; p++) {
		if (*p == '"' || *p == '\\')
			putc('\\', f);
		putc(*p, f);
	}
	putc('"', f);
}

static void put_arg(FILE *f, const struct sink_arg *a)
{
	fprintf(f, "\"%s\":", a->name);
	switch (a->type) {
	case SINK_INT:
		fprintf(f, "%" PRId64, a->integer);
		break;
	case SINK_REAL:
		if (isfinite(a->real))
			fprintf(f, "%.17g", a->real);
		else
			fputs("null", f);
		break;
	case SINK_BOOL:
		fputs(a->integer ? "true" : "false", f);
		break;
	case SINK_TEXT:
		put_text(f, a->text);
		break;
	}
}

static void put_args(FILE *f, const struct sink_arg *args, size_t n)
{
	fputs("{", f);
	for (size_t i = 0; i < n; i++) {
		if (i)
			putc(',', f);
		put_arg(f, &args[i]);
	}
	fputs("}", f);
}

static void put_head(struct chrome *c, char ph, uint32_t track, int64_t at_ns)
{
	uint64_t ns = at_ns > c->base_ns ? (uint64_t)at_ns - (uint64_t)c->base_ns : 0;

	fprintf(c->sink.f, "%s{\"ph\":\"%c\",\"pid\":%" PRId32 ",\"tid\":%" PRIu32 ",\"ts\":%" PRIu64 ".%03u", c->begun ? ",\n" : "",
		ph, place_of(c, track)->pid, track, ns / 1000, (unsigned)(ns % 1000));
	c->begun = true;
}

static void put_event(struct chrome *c, char ph, const struct sink_event *ev)
{
	FILE *f = c->sink.f;

	put_head(c, ph, ev->track, ev->at_ns);
	if (ev->name) {
		fputs(",\"name\":", f);
		put_text(f, ev->name);
	}
	if (ev->cat)
		fprintf(f, ",\"cat\":\"%s\"", ev->cat);
	if (ph == 'i')
		fputs(",\"s\":\"t\"", f);
	if (ev->n_args) {
		fputs(",\"args\":", f);
		put_args(f, ev->args, ev->n_args);
	}
	fputs("}", f);
}

/* An arrow's end binds to the slice around it, which has begun just before. */
static void put_arrows(struct chrome *c, const struct sink_event *ev)
{
	for (size_t i = 0; i < ev->n_out + ev->n_in; i++) {
		bool out = i < ev->n_out;

		put_head(c, out ? 's' : 'f', ev->track, ev->at_ns);
		fprintf(c->sink.f, ",\"name\":\"last to arrive\",\"cat\":\"arrow\",\"id\":\"0x%" PRIx64 "\"%s}",
			out ? ev->out[i] : ev->in[i - ev->n_out], out ? "" : ",\"bp\":\"e\"");
	}
}

static void on_begin(struct sink *s, const struct sink_event *ev)
{
	put_event((struct chrome *)s, 'B', ev);
	put_arrows((struct chrome *)s, ev);
}

static void on_end(struct sink *s, const struct sink_event *ev)
{
	put_event((struct chrome *)s, 'E', ev);
}

static void on_instant(struct sink *s, const struct sink_event *ev)
{
	put_event((struct chrome *)s, 'i', ev);
	put_arrows((struct chrome *)s, ev);
}

static void on_reading(struct sink *s, uint32_t track, int64_t at_ns, double value)
{
	struct chrome *c = (struct chrome *)s;
	const struct place *p = place_of(c, track);

	if (!isfinite(value))
		return;
	put_head(c, 'C', track, at_ns);
	fputs(",\"name\":", s->f);
	put_text(s->f, p->name ? p->name : "");
	fprintf(s->f, ",\"args\":{\"value\":%.17g}}", value);
}

static void put_meta(struct chrome *c, const struct sink_track *t, const char *what, const char *key, const char *text,
		     int32_t value)
{
	FILE *f = c->sink.f;

	fprintf(f, "%s{\"ph\":\"M\",\"pid\":%" PRId32 ",\"tid\":%" PRIu32 ",\"name\":\"%s\",\"args\":{\"%s\":", c->begun ? ",\n" : "",
		t->pid, t->id, what, key);
	c->begun = true;
	if (text)
		put_text(f, text);
	else
		fprintf(f, "%" PRId32, value);
	fputs("}}", f);
}

static void on_track(struct sink *s, const struct sink_track *t)
{
	struct chrome *c = (struct chrome *)s;

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
	c->places[t->id].pid = t->pid;
	switch (t->kind) {
	case SINK_GROUP:
	case SINK_PROCESS:
		put_meta(c, t, "process_name", "name", t->name, 0);
		put_meta(c, t, "process_sort_index", "sort_index", NULL, t->order);
		if (t->label)
			put_meta(c, t, "process_labels", "labels", t->label, 0);
		break;
	case SINK_LANE:
		put_meta(c, t, "thread_name", "name", t->name, 0);
		put_meta(c, t, "thread_sort_index", "sort_index", NULL, t->order);
		break;
	case SINK_COUNTER:
		c->places[t->id].name = strdup(t->name);
		s->failed = s->failed || !c->places[t->id].name;
		break;
	}
}

static void on_about(struct sink *s, const struct sink_arg *args, size_t n)
{
	struct chrome *c = (struct chrome *)s;

	fputs("\n],\"otherData\":", s->f);
	put_args(s->f, args, n);
	c->closed = true;
}

static void on_free(struct sink *s)
{
	struct chrome *c = (struct chrome *)s;

	fputs(c->closed ? "}\n" : "\n]}\n", s->f);
	for (uint32_t i = 0; i < c->n_places; i++)
		free(c->places[i].name);
	free(c->places);
	free(c);
}

struct sink *sink_chrome(FILE *f, int64_t base_ns)
{
	static const struct sink_ops ops = { on_track, on_begin, on_end, on_instant, on_reading, on_about, on_free };
	struct chrome *c = calloc(1, sizeof *c);

	if (!c)
		return NULL;
	c->sink.ops = &ops;
	c->sink.f = f;
	c->base_ns = base_ns;
	fprintf(f, "{\"displayTimeUnit\":\"ns\",\"baseTimeNanoseconds\":%" PRId64 ",\"traceEvents\":[\n", base_ns);
	return &c->sink;
}
