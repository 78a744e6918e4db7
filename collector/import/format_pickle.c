/* format_pickle.c - pickles, by what is in them once they are plain values. */
#include "flight.h"
#include "memory_snapshot.h"
#include "pickle.h"

#include <stdio.h>
#include <string.h>

/* Protocol 2 and above say so; before, a container begins one. */
static bool is_pickle(const struct import_head *h)
{
	static const char begins[] = "(]}cI";

	if (h->n_bytes >= 2 && h->bytes[0] == 0x80)
		return h->bytes[1] >= 2 && h->bytes[1] < 0x20;
	return h->n_bytes > 2 && h->bytes[0] && strchr(begins, h->bytes[0]) && h->bytes[1] && strchr("dlpq(X}]\n", h->bytes[1]);
}

static const struct {
	const char *format;
	bool (*is)(const json_t *tree);
	enum import_outcome (*read)(struct trace *t, struct trace_input *in, json_t *tree, char *why, size_t n_why);
} kinds[] = {
	{ "PyTorch Flight Recorder dump", flight_is, flight_read },
	{ "PyTorch memory snapshot", memory_is, memory_read },
};

static enum import_outcome read_tree(struct trace *t, struct trace_input *in, json_t *tree, char *why, size_t n_why)
{
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (kinds[i].is(tree)) {
			in->format = kinds[i].format;
			return kinds[i].read(t, in, tree, why, n_why);
		}
	snprintf(why, n_why, "is a pickle of something that this release does not read: "
			     "it reads Flight Recorder dumps and memory snapshots");
	return IMPORT_FAILED;
}

static enum import_outcome read_file(struct trace *t, struct trace_input *in, bytes_fn read, void *arg, char *why,
				     size_t n_why)
{
	enum import_outcome o = IMPORT_FAILED;
	json_t *tree;

	switch (pickle_load(&tree, read, arg, &pickle_limits, why, n_why)) {
	case PICKLE_OK:
		o = read_tree(t, in, tree, why, n_why);
		break;
	case PICKLE_NO_MEMORY:
		t->no_memory = true;
		break;
	case PICKLE_REFUSED:
	case PICKLE_UNREAD:
		break;
	}
	json_decref(tree);
	return o;
}

static bool join(struct trace *t, struct trace_input *inputs, uint32_t n_inputs)
{
	(void)inputs;
	(void)n_inputs;
	return flight_join(t) && memory_join(t);
}

const struct import_format format_pickle = { "pickle", is_pickle, read_file, join };
