#include "import.h"

#include "format.h"
#include "source.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TELL_BYTES (4u << 20)

struct reading {
	struct source source;
	const struct import_progress *progress;
	const char *path;
	uint64_t told_bytes;
	bool only_apart, in_turn; /* in_turn: it may be of a format that is not */
	unsigned char last, last_dark; /* bytes that were read; dark: no space */
};

static void keep_last(struct reading *r, const unsigned char *bytes, size_t n)
{
	r->last = bytes[n - 1];
	while (n > 0 && strchr(" \t\r\n", bytes[n - 1]) && bytes[n - 1])
		n--;
	if (n > 0)
		r->last_dark = bytes[n - 1];
}

static ptrdiff_t read_some(void *arg, unsigned char *out, size_t n)
{
	struct reading *r = arg;
	ptrdiff_t got;

	if (r->progress->fn && r->source.n_bytes - r->told_bytes > TELL_BYTES) {
		r->told_bytes = r->source.n_bytes;
		r->progress->fn(r->progress->arg, r->path, source_share(&r->source));
	}
	got = source_read(&r->source, out, n);
	if (got > 0)
		keep_last(r, out, (size_t)got);
	return got;
}

static void refuse(struct trace_input *in, const char *why)
{
	in->fine = false;
	snprintf(in->outcome, sizeof in->outcome, "%s", why);
}

/* A file whose writer was stopped, or whose copy, is never just ok. */
static void say_cut(struct trace_input *in, const struct reading *r, char last)
{
	size_t at = strlen(in->outcome);

	if (last == '\n' && r->last != '\n')
		snprintf(in->outcome + at, sizeof in->outcome - at, "; its last line has no end: it may be cut off");
	else if (last && last != '\n' && r->last_dark != (unsigned char)last)
		snprintf(in->outcome + at, sizeof in->outcome - at, "; its list has no end: it may be cut off");
}

/* What a job writes into one log: its steps, and NCCL's lines between them. */
static void read_also(struct trace *t, struct trace_input *in, struct reading *r, const struct import_head *head, size_t first)
{
	for (size_t i = first + 1; import_formats[i] && !t->no_memory; i++) {
		const struct import_format *f = import_formats[i];
		struct trace_input also = *in;
		size_t at = strlen(in->outcome);
		char why[250] = "";
		enum import_outcome o;

		if (!f->lines || !f->is(head))
			continue;
		if (!source_rewind(&r->source))
			return;
		o = f->read(t, &also, read_some, r, why, sizeof why);
		if (o == IMPORT_OK)
			in->n_events += also.n_events;
		if (o == IMPORT_OK || (o == IMPORT_FAILED && why[0]))
			snprintf(in->outcome + at, sizeof in->outcome - at, "; as %s: %s", f->name, why[0] ? why : "ok");
	}
}

/* The formats that its begin looks like, one after the other. */
static void read_as(struct trace *t, struct trace_input *in, struct reading *r)
{
	const char *slash = strrchr(in->path, '/');
	const struct import_head head = { r->source.head, r->source.n_head, slash ? slash + 1 : in->path };
	char why[250] = "";

	refuse(in, head.n_bytes == 0 ? "is empty" : "is of no format that this release reads");
	in->skipped = in->found;
	for (size_t i = 0; import_formats[i] && !t->no_memory; i++) {
		const struct import_format *f = import_formats[i];
		enum import_outcome o;

		if (!f->is(&head))
			continue;
		r->in_turn = r->only_apart && !f->apart;
		if (r->in_turn)
			return;
		why[0] = '\0';
		in->format = f->name;
		o = f->read(t, in, read_some, r, why, sizeof why);
		in->fine = o == IMPORT_OK;
		if (o == IMPORT_OK) {
			snprintf(in->outcome, sizeof in->outcome, "%s", why[0] ? why : "ok");
			say_cut(in, r, f->last);
		} else if (why[0]) {
			refuse(in, why);
		}
		if (o != IMPORT_UNKNOWN) {
			in->skipped = false;
			if (in->fine && f->lines)
				read_also(t, in, r, &head, i);
			return;
		}
		in->format = NULL;
		if (!source_rewind(&r->source))
			return;
	}
}

static void say_left_out(struct trace_input *in, uint64_t n)
{
	size_t at = strlen(in->outcome);

	if (n > 0)
		snprintf(in->outcome + at, sizeof in->outcome - at, "; %" PRIu64 " rows of it had no room and are left out", n);
}

static bool read_file(struct trace *t, struct trace_input *in, const struct import_progress *p, bool only_apart)
{
	const struct trace_input before = *in;
	uint64_t n_left_out = t->n_left_out;
	struct reading *r;
	bool in_turn = false;

	if (in->settled)
		return true;
	r = calloc(1, sizeof *r);
	in->rank = -1;
	if (!r) {
		t->no_memory = true;
		return true;
	}
	r->progress = p;
	r->path = in->path;
	r->only_apart = only_apart;
	if (source_open_input(&r->source, in) && source_head(&r->source))
		read_as(t, in, r);
	if (!in->fine && r->source.why[0]) {
		in->skipped = false;
		refuse(in, r->source.why);
	}
	if (in->skipped) {
		char said[sizeof in->outcome];

		snprintf(said, sizeof said, "skipped: %.240s", in->outcome);
		refuse(in, said);
	}
	in_turn = r->in_turn;
	source_close(&r->source);
	free(r);
	if (in_turn) {
		*in = before;
		return false;
	}
	say_left_out(in, t->n_left_out - n_left_out);
	for (uint32_t i = 0; i < t->n_ranks && !t->no_memory; i++)
		(void)trace_sort(t, &t->ranks[i]);
	if (t->no_memory) {
		in->fine = false;
		trace_explain(t, in->outcome, sizeof in->outcome);
	}
	return true;
}

bool import_file(struct trace *t, struct trace_input *in, const struct import_progress *p)
{
	(void)read_file(t, in, p, false);
	return !t->no_memory;
}

bool import_file_apart(struct trace *t, struct trace_input *in, const struct import_progress *p)
{
	return read_file(t, in, p, true);
}

bool import_join(struct trace *t, struct trace_input *inputs, uint32_t n_inputs)
{
	for (size_t i = 0; import_formats[i]; i++)
		if (import_formats[i]->join && !import_formats[i]->join(t, inputs, n_inputs))
			return false;
	return true;
}
