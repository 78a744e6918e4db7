/* flight_json.c - Flight Recorder dumps as JSON text: what _dump_nccl_trace_json() gives, or what
 * other tools make of a pickle. */
#include "flight.h"

#include <stdio.h>

#define MAX_BYTES (64u << 20) /* a tree in memory is many times its text */

struct text {
	bytes_fn read;
	void *arg;
	size_t n_bytes;
	bool too_long, unread;
};

static size_t read_text(void *out, size_t n, void *arg)
{
	struct text *x = arg;
	ptrdiff_t got = x->read(x->arg, out, n);

	x->unread = got < 0;
	x->n_bytes += got > 0 ? (size_t)got : 0;
	x->too_long = x->n_bytes > MAX_BYTES;
	return got < 0 || x->too_long ? (size_t)-1 : (size_t)got;
}

/* A profile has its events in front, and process groups as well. */
static bool is_dump(const struct import_head *h)
{
	int first = head_first(h);

	if (first != '{' && first != '[')
		return false;
	return !head_has(h, "\"traceEvents\"") &&
	       ((head_has(h, "\"profiling_name\"") && head_has(h, "\"state\"")) ||
		(head_has(h, "\"pg_config\"") && (head_has(h, "\"entries\"") || head_has(h, "\"pg_status\""))));
}

static enum import_outcome read_file(struct trace *t, struct trace_input *in, bytes_fn read, void *arg, char *why,
				     size_t n_why)
{
	struct text x = { .read = read, .arg = arg };
	json_error_t error;
	json_t *tree = json_load_callback(read_text, &x, JSON_DISABLE_EOF_CHECK, &error);
	enum import_outcome o = IMPORT_FAILED;

	if (tree && flight_is(tree))
		o = flight_read(t, in, tree, why, n_why);
	else if (tree)
		o = IMPORT_UNKNOWN;
	else if (x.too_long)
		snprintf(why, n_why, "has more than %u MB; as a pickle it may be larger", MAX_BYTES >> 20);
	else if (!x.unread)
		snprintf(why, n_why, "is no JSON: line %d: %.150s", error.line, error.text);
	json_decref(tree);
	return o;
}

const struct import_format format_flight_json = { "PyTorch Flight Recorder dump", is_dump, read_file, NULL };
