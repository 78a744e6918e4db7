/* et_proto.c - execution traces of Chakra as protobuf: messages with their lengths in front, the first one
 * about the file, the others a node each.
 */
#include "et.h"

#include "chakra.pb-c.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BYTES (16u << 20) /* of a message */

enum { TYPE_SEND = 5, TYPE_COLL = 7 };

struct messages {
	bytes_fn read;
	void *arg;
	unsigned char buf[65536];
	size_t n, at;
	bool failed;
	unsigned char *text; /* owned: of the newest message */
	size_t n_text, n_text_alloc;
};

enum got { GOT_ONE, GOT_END, GOT_BAD };

static int next_byte(struct messages *s)
{
	if (s->at == s->n) {
		ptrdiff_t got = s->failed ? 0 : s->read(s->arg, s->buf, sizeof s->buf);

		s->failed |= got < 0;
		s->at = 0;
		s->n = got > 0 ? (size_t)got : 0;
		if (s->n == 0)
			return -1;
	}
	return s->buf[s->at++];
}

/* Memory grows with what is there, not with what the length says. */
static bool take(struct et *e, struct messages *s, size_t n)
{
	s->n_text = 0;
	while (s->n_text < n) {
		size_t piece;
		int first = next_byte(s);

		if (first < 0)
			return et_fail(e, "ends in the middle of a node");
		s->at--;
		piece = s->n - s->at < n - s->n_text ? s->n - s->at : n - s->n_text;
		if (s->n_text + piece > s->n_text_alloc) {
			size_t want = 2 * (s->n_text + piece);
			unsigned char *grown = realloc(s->text, want);

			e->trace->no_memory |= !grown;
			if (!grown)
				return false;
			s->text = grown;
			s->n_text_alloc = want;
		}
		memcpy(s->text + s->n_text, s->buf + s->at, piece);
		s->n_text += piece;
		s->at += piece;
	}
	return true;
}

static enum got next_message(struct et *e, struct messages *s)
{
	uint64_t n = 0;
	int byte = next_byte(s);

	if (byte < 0)
		return s->failed && !et_fail(e, "cannot be read to its end: it is damaged or cut off") ? GOT_BAD : GOT_END;
	for (unsigned shift = 0;; shift += 7) {
		n |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			break;
		byte = next_byte(s);
		if (byte < 0 || shift >= 28) {
			et_fail(e, "has a node with a length that cannot be");
			return GOT_BAD;
		}
	}
	if (n > MAX_BYTES) {
		et_fail(e, "has a node of more than %u MiB", MAX_BYTES >> 20);
		return GOT_BAD;
	}
	return take(e, s, (size_t)n) ? GOT_ONE : GOT_BAD;
}

static int64_t whole(double v)
{
	return v > -9e18 && v < 9e18 ? (int64_t)v : ET_NONE;
}

static int64_t number_of(const Chakra__Attribute *a)
{
	switch ((int)a->value_case) {
	case CHAKRA__ATTRIBUTE__VALUE_DOUBLE_VAL:
		return whole(a->double_val);
	case CHAKRA__ATTRIBUTE__VALUE_FLOAT_VAL:
		return whole((double)a->float_val);
	case CHAKRA__ATTRIBUTE__VALUE_INT32_VAL:
		return a->int32_val;
	case CHAKRA__ATTRIBUTE__VALUE_INT64_VAL:
		return a->int64_val;
	case CHAKRA__ATTRIBUTE__VALUE_UINT32_VAL:
		return a->uint32_val;
	case CHAKRA__ATTRIBUTE__VALUE_UINT64_VAL:
		return (int64_t)(a->uint64_val & INT64_MAX);
	case CHAKRA__ATTRIBUTE__VALUE_SINT32_VAL:
		return a->sint32_val;
	case CHAKRA__ATTRIBUTE__VALUE_SINT64_VAL:
		return a->sint64_val;
	case CHAKRA__ATTRIBUTE__VALUE_FIXED32_VAL:
		return a->fixed32_val;
	case CHAKRA__ATTRIBUTE__VALUE_FIXED64_VAL:
		return (int64_t)(a->fixed64_val & INT64_MAX);
	case CHAKRA__ATTRIBUTE__VALUE_SFIXED32_VAL:
		return a->sfixed32_val;
	case CHAKRA__ATTRIBUTE__VALUE_SFIXED64_VAL:
		return a->sfixed64_val;
	case CHAKRA__ATTRIBUTE__VALUE_BOOL_VAL:
		return a->bool_val;
	case CHAKRA__ATTRIBUTE__VALUE_STRING_VAL:
	case CHAKRA__ATTRIBUTE__VALUE__NOT_SET:
	default:
		return ET_NONE;
	}
}

static const char *text_of(const Chakra__Attribute *a)
{
	return a->value_case == CHAKRA__ATTRIBUTE__VALUE_STRING_VAL ? a->string_val : "";
}

static bool read_metadata(struct et *e, const struct messages *s)
{
	Chakra__Metadata *m = chakra__metadata__unpack(NULL, s->n_text, s->text);

	if (!m)
		return false;
	snprintf(e->schema, sizeof e->schema, "%s", m->version);
	for (size_t i = 0; i < m->n_attr; i++)
		if (strcmp(m->attr[i]->name, "schema") == 0)
			snprintf(e->schema, sizeof e->schema, "%s", text_of(m->attr[i]));
	chakra__metadata__free_unpacked(m, NULL);
	return true;
}

/* Ids are numbers of a file; a signed one has room for all that were ever given. */
static bool is_id(uint64_t v)
{
	return v <= INT64_MAX;
}

static bool add_edges(struct et *e, const Chakra__Node *v, const uint64_t *deps, size_t n, enum et_edge_kind kind)
{
	for (size_t i = 0; i < n; i++)
		if (is_id(deps[i]) && deps[i] != v->id && !et_add_edge(e, (int64_t)deps[i], (int64_t)v->id, kind))
			return false;
	return true;
}

static bool add_node(struct et *e, const Chakra__Node *v)
{
	struct et_node node = { .id = (int64_t)v->id, .parent = ET_NONE, .type = v->type, .dur_us = ET_NONE };
	struct et_comm comm = et_no_comm();

	if (!is_id(v->id)) {
		e->n_bad++;
		return true;
	}
	for (size_t i = 0; i < v->n_attr; i++)
		et_attr(&comm, v->attr[i]->name, text_of(v->attr[i]), number_of(v->attr[i]));
	if (v->duration_micros > 0 && v->duration_micros <= INT64_MAX)
		node.dur_us = (int64_t)v->duration_micros;
	node.name = strndup(v->name, 255);
	if (v->type >= TYPE_SEND && v->type <= TYPE_COLL) {
		node.comm = malloc(sizeof *node.comm);
		if (node.comm)
			*node.comm = comm;
		e->trace->no_memory |= !node.comm;
	}
	e->trace->no_memory |= !node.name;
	return et_add_node(e, &node) && !e->trace->no_memory &&
	       add_edges(e, v, v->data_deps, v->n_data_deps, ET_DATA) &&
	       add_edges(e, v, v->ctrl_deps, v->n_ctrl_deps, ET_CONTROL);
}

static bool read_nodes(struct et *e, struct messages *s)
{
	enum got got;

	while ((got = next_message(e, s)) == GOT_ONE) {
		Chakra__Node *v = chakra__node__unpack(NULL, s->n_text, s->text);
		bool fine = v ? add_node(e, v) : et_fail(e, "has a node that is no message of Chakra's");

		chakra__node__free_unpacked(v, NULL);
		if (!fine)
			return false;
	}
	return got == GOT_END && (e->n_nodes > 0 || et_fail(e, "has no node"));
}

static bool has_word(const struct import_head *h, const char *word)
{
	size_t n = h->n_bytes < 128 ? h->n_bytes : 128;

	return memmem(h->bytes, n, word, strlen(word)) != NULL;
}

/* A length, then the metadata: its version or its attributes. */
static bool is_proto(const struct import_head *h)
{
	size_t at = 0;

	while (at < h->n_bytes && at < 5 && h->bytes[at] & 0x80)
		at++;
	if (at + 1 >= h->n_bytes || h->bytes[0] == 0 || (h->bytes[at + 1] != 0x0a && h->bytes[at + 1] != 0x12))
		return false;
	return has_word(h, "schema") || has_word(h, "0.0.") || strstr(h->name, ".et") != NULL;
}

static enum import_outcome read_file(struct trace *t, struct trace_input *in, bytes_fn read, void *arg, char *why,
				     size_t n_why)
{
	struct messages *s = calloc(1, sizeof *s);
	struct et e = { .trace = t, .why = why, .n_why = n_why };
	enum import_outcome o = IMPORT_UNKNOWN;

	why[0] = '\0';
	t->no_memory |= !s;
	if (s) {
		s->read = read;
		s->arg = arg;
	}
	if (s && next_message(&e, s) == GOT_ONE && read_metadata(&e, s)) {
		o = read_nodes(&e, s) && et_tell(&e, in) ? IMPORT_OK : IMPORT_FAILED;
		if (o == IMPORT_OK && e.n_bad > 0)
			snprintf(why, n_why, "ok; %llu nodes have no id and are left out", (unsigned long long)e.n_bad);
	}
	et_free(&e);
	free(s ? s->text : NULL);
	free(s);
	return o;
}

const struct import_format format_et_proto = { "execution trace", is_proto, read_file, NULL };
