/* et_json.c - execution traces in JSON: an object with a list of nodes.
 *
 * PyTorch's observer and PARAM call it "nodes": 1.0.1 has an operator's parent in "parent" and
 * inputs as a list; the chakra schemata since have the parent as "ctrl_deps", inputs as an
 * object, and attributes as a list of names and values. Traces linked with a profile have
 * lists of control and data dependencies. Chakra's simulators have a "workload_graph" of nodes
 * with "Id" and "NodeType". A node that communicates is PyTorch's record_param_comms, whose inputs
 * end with the call's number, group, rank and name, or one of Chakra's types for it.
 */
#include "et.h"
#include "json_number.h"
#include "trace_events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_VALUES 24 /* of a call's inputs that are looked at, the last ones */

enum { TYPE_SEND = 5, TYPE_RECV, TYPE_COLL };
enum part { PART_NONE, PART_CONTROL, PART_DATA, PART_INPUTS, PART_OUTPUTS, PART_ATTRS };

struct value { /* of inputs, of the first level */
	char type;    /* 0 number, " string, [ list */
	int64_t number;
	char text[64]; /* of a list: its first string */
};

struct reading {
	struct et *e;
	struct et_node node;
	char name[256];
	struct et_comm comm;
	bool has_id;
	enum part part;
	unsigned values_depth; /* where the values of inputs are */
	struct value values[MAX_VALUES];
	unsigned n_values;
	/* the list that is open: a tensor is five numbers and its device */
	int n_numbers;
	int64_t numbers[5];
	char attr_name[64], attr_text[64];
	int64_t attr_number;
	/* edges that begin before the id is known */
	struct et_edge *edges;
	uint32_t n_edges, n_edges_alloc;
	bool fine;
};

static bool is(const struct json_item *v, const char *key)
{
	return v->key && v->n_key == strlen(key) && strncasecmp(v->key, key, v->n_key) == 0;
}

static void copy(char *out, size_t n_out, const struct json_item *v)
{
	size_t n = v->text && v->n_text < n_out - 1 ? v->n_text : n_out - 1;

	if (!v->text)
		n = 0;
	if (n > 0)
		memcpy(out, v->text, n);
	while (n > 0 && n < v->n_text && ((unsigned char)v->text[n] & 0xc0) == 0x80)
		n--;
	out[n] = '\0';
}

/* Some write them as texts. */
static bool integer(const struct json_item *v, int64_t *ret)
{
	return (v->type == '0' || v->type == '"') && json_integer_of(v->text, v->n_text, 0, ret) && *ret != ET_NONE;
}

static void note_edge(struct reading *r, const struct json_item *v, enum et_edge_kind kind)
{
	int64_t id;

	if (!integer(v, &id) || !r->fine)
		return;
	if (r->n_edges == r->n_edges_alloc) {
		uint32_t want = r->n_edges_alloc ? 2 * r->n_edges_alloc : 16;
		struct et_edge *grown = realloc(r->edges, want * sizeof *grown);

		r->e->trace->no_memory |= !grown;
		r->fine = grown != NULL;
		if (!grown)
			return;
		r->edges = grown;
		r->n_edges_alloc = want;
	}
	r->edges[r->n_edges++] = (struct et_edge){ id, 0, kind };
}

/* ---- inputs ---- */

static struct value *next_value(struct reading *r, char type)
{
	if (r->n_values == MAX_VALUES) /* the call's own come last */
		memmove(r->values, r->values + 1, --r->n_values * sizeof *r->values);
	r->values[r->n_values] = (struct value){ .type = type, .number = ET_NONE };
	return &r->values[r->n_values++];
}

static void add_tensor(struct reading *r)
{
	int64_t n = r->numbers[3], size = r->numbers[4], *to = r->part == PART_INPUTS ? &r->comm.n_in : &r->comm.n_out, bytes;

	if (n < 0 || size < 0 || n > INT64_MAX / 4 || __builtin_mul_overflow(n, size, &bytes))
		return;
	if (__builtin_add_overflow(*to == ET_NONE ? 0 : *to, n, to))
		*to = ET_NONE;
	if (r->part == PART_INPUTS &&
	    __builtin_add_overflow(r->comm.bytes == ET_NONE ? 0 : r->comm.bytes, bytes, &r->comm.bytes))
		r->comm.bytes = ET_NONE;
}

static void take_value(struct reading *r, const struct json_item *v)
{
	struct value *at;

	if (v->type == '[') {
		r->n_numbers = 0;
	} else if (v->type == ']') {
		r->n_numbers = -1;
	} else if (v->type == '0' && r->n_numbers >= 0 && r->n_numbers < 5) {
		if (!integer(v, &r->numbers[r->n_numbers++]))
			r->n_numbers = -1;
	} else if (v->type == '"' && r->n_numbers == 5 && v->depth > r->values_depth) {
		add_tensor(r);
		r->n_numbers = -1;
	} else {
		r->n_numbers = -1;
	}
	if (r->part != PART_INPUTS || v->type == ']')
		return;
	if (v->depth == r->values_depth) {
		at = next_value(r, v->type);
		if (v->type == '0')
			(void)integer(v, &at->number);
		copy(at->text, sizeof at->text, v);
	} else if (v->type == '"' && v->depth == r->values_depth + 1 && r->n_values > 0 &&
		   !r->values[r->n_values - 1].text[0]) {
		copy(r->values[r->n_values - 1].text, sizeof r->values[0].text, v);
	}
}

static void take_values(struct reading *r, const struct json_item *v)
{
	/* A list itself, or an object that has it among shapes and types. */
	if (v->depth == 2 && v->key) {
		r->values_depth = is(v, "values") && v->type == '[' ? 3 : 0;
		r->n_numbers = -1;
	} else if (r->values_depth > 0 && v->depth >= r->values_depth) {
		take_value(r, v);
	}
}

/* ---- attributes ---- */

static void take_text(char *out, size_t n_out, const char *text)
{
	snprintf(out, n_out, "%.*s", (int)n_out - 1, text);
}

static void apply_attr(struct reading *r)
{
	const struct {
		const char *name;
		int64_t *to;
	} numbers[] = {
		{ "in_msg_nelems", &r->comm.n_in }, { "out_msg_nelems", &r->comm.n_out }, { "pg_size", &r->comm.group_size },
		{ "comm_size", &r->comm.bytes }, { "comm_src", &r->comm.source }, { "comm_dst", &r->comm.target },
	};
	static const char *const collectives[] = { "all_reduce", "reduce", "all_gather", "gather", "scatter", "broadcast",
						   "all_to_all", "reduce_scatter", "reduce_scatter_block", "barrier" };

	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		if (strcasecmp(r->attr_name, numbers[i].name) == 0 && r->attr_number != ET_NONE)
			*numbers[i].to = r->attr_number;
	if (strcasecmp(r->attr_name, "collective_name") == 0)
		take_text(r->comm.collective, sizeof r->comm.collective, r->attr_text);
	else if (strcasecmp(r->attr_name, "dtype") == 0)
		take_text(r->comm.dtype, sizeof r->comm.dtype, r->attr_text);
	else if (strcasecmp(r->attr_name, "pg_name") == 0 || strcasecmp(r->attr_name, "comm_group") == 0)
		take_text(r->comm.group, sizeof r->comm.group, r->attr_text);
	else if (strcasecmp(r->attr_name, "comm_type") == 0 && r->attr_number >= 0 &&
		 r->attr_number < (int64_t)(sizeof collectives / sizeof *collectives))
		take_text(r->comm.collective, sizeof r->comm.collective, collectives[r->attr_number]);
	else if (strcasecmp(r->attr_name, "comm_type") == 0 && r->attr_text[0])
		take_text(r->comm.collective, sizeof r->comm.collective, r->attr_text);
}

static void take_attr(struct reading *r, const struct json_item *v)
{
	if (v->depth == 2 && v->type == '{') {
		r->attr_name[0] = r->attr_text[0] = '\0';
		r->attr_number = ET_NONE;
	} else if (v->depth == 2 && v->type == '}') {
		apply_attr(r);
	} else if (v->depth == 3 && is(v, "name")) {
		copy(r->attr_name, sizeof r->attr_name, v);
	} else if (v->depth == 3 && v->key && !is(v, "type") && !is(v, "doc_string") && (v->type == '0' || v->type == '"')) {
		copy(r->attr_text, sizeof r->attr_text, v);
		(void)integer(v, &r->attr_number);
	}
}

/* ---- nodes ---- */

static void take_type(struct reading *r, const struct json_item *v)
{
	static const char *const names[] = { "INVALID_NODE", "METADATA_NODE", "MEM_LOAD_NODE", "MEM_STORE_NODE", "COMP_NODE",
					     "COMM_SEND_NODE", "COMM_RECV_NODE", "COMM_COLL_NODE" };

	if (v->type == '0')
		(void)integer(v, &r->node.type);
	for (size_t i = 0; v->type == '"' && i < sizeof names / sizeof *names; i++)
		if (v->n_text == strlen(names[i]) && memcmp(v->text, names[i], v->n_text) == 0)
			r->node.type = (int64_t)i;
}

static enum part part_of(const struct json_item *v)
{
	if (is(v, "ctrl_deps") || is(v, "ctrlDeps") || is(v, "ctrl_dep"))
		return PART_CONTROL;
	if (is(v, "data_deps") || is(v, "dataDeps"))
		return PART_DATA;
	if (is(v, "inputs"))
		return PART_INPUTS;
	if (is(v, "outputs"))
		return PART_OUTPUTS;
	return is(v, "attrs") || is(v, "attr") ? PART_ATTRS : PART_NONE;
}

static void take_field(struct reading *r, const struct json_item *v)
{
	if (v->type == ']' || v->type == '}')
		return;
	r->part = part_of(v);
	r->n_numbers = -1;
	r->values_depth = v->type == '[' ? 2 : 0;
	if (r->part == PART_CONTROL)
		note_edge(r, v, ET_CONTROL);
	else if (r->part == PART_DATA)
		note_edge(r, v, ET_DATA);
	else if (is(v, "id"))
		r->has_id = integer(v, &r->node.id);
	else if (is(v, "name"))
		copy(r->name, sizeof r->name, v);
	else if (is(v, "type") || is(v, "NodeType") || is(v, "node_type"))
		take_type(r, v);
	else if (is(v, "parent") && integer(v, &r->node.parent))
		note_edge(r, v, ET_PARENT);
	else if (is(v, "runtime") || is(v, "duration_micros") || is(v, "durationMicros") || is(v, "exclusive_dur"))
		(void)integer(v, &r->node.dur_us);
}

static void take(void *arg, const struct json_item *v)
{
	struct reading *r = arg;

	if (v->depth == 1 && v->key)
		take_field(r, v);
	else if (v->depth == 1)
		r->part = PART_NONE; /* its end */
	else if (v->depth == 2 && r->part == PART_CONTROL)
		note_edge(r, v, ET_CONTROL);
	else if (v->depth == 2 && r->part == PART_DATA)
		note_edge(r, v, ET_DATA);
	else if (r->part == PART_INPUTS || r->part == PART_OUTPUTS)
		take_values(r, v);
	else if (r->part == PART_ATTRS)
		take_attr(r, v);
}

/* "…, number, group, rank, name, …": the group is a text, a list of texts, or a number. What attributes say
 * goes first. */
static void read_call(struct reading *r)
{
	unsigned name = r->n_values;

	for (unsigned i = 3; i < r->n_values && name == r->n_values; i++)
		if (r->values[i].type == '"' && r->values[i - 1].type == '0' && r->values[i - 3].type == '0')
			name = i;
	if (name == r->n_values)
		return;
	r->comm.seq = r->values[name - 3].number;
	r->comm.rank = r->values[name - 1].number;
	if (!r->comm.collective[0])
		take_text(r->comm.collective, sizeof r->comm.collective, r->values[name].text);
	if (!r->comm.group[0])
		take_text(r->comm.group, sizeof r->comm.group, r->values[name - 2].text);
}

static bool add_node(struct reading *r)
{
	struct et *e = r->e;
	bool call = strcmp(r->name, "record_param_comms") == 0;
	bool root = r->node.parent == r->node.id;

	if (!r->has_id) {
		e->n_bad++;
		return true;
	}
	if (call)
		read_call(r);
	/* PyTorch's root is its own parent. */
	r->node.parent = root ? ET_NONE : r->node.parent;
	r->node.name = strdup(r->name);
	if (call || (r->node.type >= TYPE_SEND && r->node.type <= TYPE_COLL)) {
		r->node.comm = malloc(sizeof *r->node.comm);
		if (r->node.comm)
			*r->node.comm = r->comm;
		e->trace->no_memory |= !r->node.comm;
	}
	e->trace->no_memory |= !r->node.name;
	if (!et_add_node(e, &r->node) || e->trace->no_memory)
		return false;
	for (uint32_t i = 0; i < r->n_edges; i++)
		if (r->edges[i].from != r->node.id && !et_add_edge(e, r->edges[i].from, r->node.id, r->edges[i].kind))
			return false;
	return true;
}

static bool read_node(struct et *e, struct json_walk *w, const struct trace_event *ev, struct reading *r)
{
	r->node = (struct et_node){ .parent = ET_NONE, .type = ET_NONE, .dur_us = ET_NONE };
	r->comm = et_no_comm();
	r->name[0] = '\0';
	r->has_id = false;
	r->part = PART_NONE;
	r->n_values = r->n_edges = 0;
	r->fine = true;
	if (!json_walk(w, ev->text, ev->n_text, take, r))
		return et_fail(e, "is no JSON");
	return r->fine && add_node(r);
}

static bool read_nodes(struct et *e, struct trace_events *s)
{
	struct json_walk *w = json_walk_new();
	struct reading r = { .e = e };
	enum trace_events_got got;
	struct trace_event ev;
	bool fine = w != NULL;

	e->trace->no_memory |= !w;
	while (fine && (got = trace_events_next(s, &ev)) == TRACE_EVENTS_ONE)
		fine = read_node(e, w, &ev, &r);
	if (fine && got == TRACE_EVENTS_BAD)
		fine = et_fail(e, "%s", trace_events_why(s));
	free(r.edges);
	json_walk_free(w);
	return fine;
}

static enum import_outcome read_list(struct trace *t, struct trace_input *in, bytes_fn read, void *arg, char *why,
				     size_t n_why, const char *list)
{
	struct trace_events *s = trace_events_open(read, arg, list);
	struct et e = { .trace = t, .why = why, .n_why = n_why };
	enum import_outcome o = IMPORT_FAILED;

	why[0] = '\0';
	t->no_memory |= !s;
	if (s && read_nodes(&e, s)) {
		(void)trace_events_top_text(s, "schema", e.schema, sizeof e.schema);
		if (trace_events_is_list(s) || !trace_events_has_list(s) || e.n_nodes == 0)
			o = IMPORT_UNKNOWN;
		else if (et_tell(&e, in))
			o = IMPORT_OK;
		if (o == IMPORT_OK && e.n_bad > 0)
			snprintf(why, n_why, "ok; %llu nodes have no id and are left out", (unsigned long long)e.n_bad);
		if (o == IMPORT_OK)
			trace_events_remark(s, why, n_why);
	}
	et_free(&e);
	trace_events_close(s);
	return o;
}

static bool is_et(const struct import_head *h)
{
	return head_first(h) == '{' && head_has(h, "\"nodes\"") && head_has(h, "\"id\"") && !head_has(h, "\"traceEvents\"");
}

static enum import_outcome read_et(struct trace *t, struct trace_input *in, bytes_fn read, void *arg, char *why,
				   size_t n_why)
{
	return read_list(t, in, read, arg, why, n_why, "nodes");
}

static bool is_workload(const struct import_head *h)
{
	return head_first(h) == '{' && head_has(h, "\"workload_graph\"");
}

static enum import_outcome read_workload(struct trace *t, struct trace_input *in, bytes_fn read, void *arg, char *why,
					 size_t n_why)
{
	return read_list(t, in, read, arg, why, n_why, "workload_graph");
}

const struct import_format format_et = { "execution trace", is_et, read_et, NULL };
const struct import_format format_et_workload = { "execution trace", is_workload, read_workload, NULL };
