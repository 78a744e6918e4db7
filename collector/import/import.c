#include "import.h"

#include "kineto.h"
#include "source.h"
#include "timeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reading {
	struct source source;
	const struct import_progress *progress;
	const char *path;
	uint64_t told_bytes;
};

static ptrdiff_t read_some(void *arg, unsigned char *out, size_t n)
{
	struct reading *r = arg;

	if (r->progress->fn && r->source.n_bytes - r->told_bytes > (4u << 20)) {
		r->told_bytes = r->source.n_bytes;
		r->progress->fn(r->progress->arg, r->path, source_share(&r->source));
	}
	return source_read(&r->source, out, n);
}

static bool refuse(struct trace_input *in, const char *why)
{
	in->fine = false;
	snprintf(in->outcome, sizeof in->outcome, "%s", why);
	return true;
}

static bool read_list(struct trace *t, struct trace_input *in, struct json_scan *s)
{
	char why[200];

	in->format = "StragglerAnalysis timeline";
	in->fine = timeline_read(t, s, &in->n_events, why, sizeof why);
	if (in->fine && why[0])
		snprintf(in->outcome, sizeof in->outcome, "%s", why);
	return in->fine || t->no_memory || refuse(in, why);
}

static bool read_object(struct trace *t, struct trace_input *in, struct json_scan *s)
{
	char why[200];
	enum kineto_outcome o = kineto_read(t, in, s, why, sizeof why);

	if (o != KINETO_UNKNOWN)
		in->format = "Kineto trace";
	in->fine = o == KINETO_OK;
	return in->fine || t->no_memory || refuse(in, why);
}

bool import_file(struct trace *t, struct trace_input *in, const struct import_progress *p)
{
	struct json_scan *s = malloc(sizeof *s);
	struct reading r = { .progress = p, .path = in->path };
	bool fine = true;

	in->rank = -1;
	if (!s) {
		t->no_memory = true;
		return false;
	}
	snprintf(in->outcome, sizeof in->outcome, "ok");
	if (!source_open(&r.source, in->path)) {
		refuse(in, r.source.why);
	} else {
		enum json_token first;

		json_scan_init(s, read_some, &r);
		first = json_scan_next(s);
		if (first == JSON_SCAN_ARRAY)
			fine = read_list(t, in, s);
		else if (first == JSON_SCAN_OBJECT)
			fine = read_object(t, in, s);
		else
			refuse(in, "is of no format that this release reads: it is no JSON of a trace");
		if (!in->fine && r.source.why[0])
			refuse(in, r.source.why);
	}
	source_close(&r.source);
	free(s);
	return fine && !t->no_memory;
}

bool import_join(struct trace *t, struct trace_input *inputs, uint32_t n_inputs)
{
	return kineto_join(t, inputs, n_inputs);
}
