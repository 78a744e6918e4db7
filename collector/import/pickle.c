#include "pickle_internal.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUE_BYTES 48 /* about what the JSON library takes for one */
#define BOX_BYTES 160
#define ENTRY_BYTES 96
#define MAX_KEY_UNFOLDED 1000 /* of a key that is itself a container */

const struct pickle_limits pickle_limits = {
	.max_bytes = UINT64_C(4) << 30,
	.max_kept_bytes = UINT64_C(1) << 30,
	.max_unfolded = UINT64_C(1) << 28,
	.max_values = 1u << 24,
	.max_depth = 64,
	.max_text_bytes = 1u << 24,
};

bool pickle_fail(struct machine *m, const char *fmt, ...)
{
	va_list ap;

	if (m->why[0])
		return false;
	va_start(ap, fmt);
	vsnprintf(m->why, m->n_why, fmt, ap);
	va_end(ap);
	return false;
}

static bool without_memory(struct machine *m)
{
	m->no_memory = true;
	return false;
}

bool pickle_grow(struct machine *m, void *v, size_t n, size_t *n_alloc, size_t size)
{
	size_t want = *n_alloc ? 2 * *n_alloc : 64;
	void *grown;

	if (n < *n_alloc)
		return true;
	grown = realloc(*(void **)v, want * size);
	if (!grown)
		return without_memory(m);
	*(void **)v = grown;
	*n_alloc = want;
	return true;
}

bool pickle_charge(struct machine *m, uint64_t bytes)
{
	m->n_kept_bytes += bytes;
	return m->n_kept_bytes <= m->limits->max_kept_bytes ||
	       pickle_fail(m, "is too much to keep: more than %llu MB",
			   (unsigned long long)(m->limits->max_kept_bytes >> 20));
}

/* ---- the stack ---- */

static bool room(struct machine *m, struct cells *c, uint32_t n)
{
	size_t n_alloc = c->n_alloc;
	bool fine;

	if (n >= m->limits->max_values)
		return pickle_fail(m, "has more than %u values", m->limits->max_values);
	fine = pickle_grow(m, &c->v, n, &n_alloc, sizeof *c->v);
	c->n_alloc = (uint32_t)n_alloc;
	return fine;
}

/* Takes v over. */
static bool push_cell(struct machine *m, struct cell c)
{
	if (!room(m, &m->stack, m->stack.n)) {
		json_decref(c.v);
		return false;
	}
	m->stack.v[m->stack.n++] = c;
	return true;
}

static bool push(struct machine *m, json_t *v, uint64_t bytes)
{
	if (!v)
		return without_memory(m);
	if (m->n_values++ >= m->limits->max_values) {
		json_decref(v);
		return pickle_fail(m, "has more than %u values", m->limits->max_values);
	}
	if (!pickle_charge(m, VALUE_BYTES + bytes)) {
		json_decref(v);
		return false;
	}
	return push_cell(m, (struct cell){ v, 0 });
}

static bool push_box(struct machine *m, enum box_kind kind)
{
	size_t n_alloc = m->n_boxes_alloc;
	json_t *v;

	if (!pickle_grow(m, &m->boxes, m->n_boxes, &n_alloc, sizeof *m->boxes))
		return false;
	m->n_boxes_alloc = (uint32_t)n_alloc;
	v = kind == BOX_DICT ? json_object() : json_array();
	if (!push(m, v, BOX_BYTES))
		return false;
	m->boxes[m->n_boxes++] = (struct box){ .unfolded = 1, .depth = 1, .kind = (uint8_t)kind };
	m->stack.v[m->stack.n - 1].box = m->n_boxes;
	return true;
}

/* The newest n are there and no marks. */
static bool have(struct machine *m, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (m->stack.n <= i || !m->stack.v[m->stack.n - 1 - i].v)
			return pickle_fail(m, "is no pickle: it takes what is not there, after %llu bytes",
					   (unsigned long long)m->n_bytes);
	return true;
}

static void drop(struct machine *m, uint32_t n)
{
	while (n-- > 0)
		json_decref(m->stack.v[--m->stack.n].v);
}

/* How many are above the newest mark. */
static bool marked(struct machine *m, uint32_t *ret)
{
	for (*ret = 0; *ret < m->stack.n; ++*ret)
		if (!m->stack.v[m->stack.n - 1 - *ret].v)
			return true;
	return pickle_fail(m, "is no pickle: it goes back to a mark that is not there, after %llu bytes",
			   (unsigned long long)m->n_bytes);
}

/* ---- containers ---- */

static uint64_t unfolded(const struct machine *m, const struct cell *c)
{
	return c->box ? m->boxes[c->box - 1].unfolded : 1 + json_string_length(c->v) / 256;
}

/* What c is put into, parent, is so much more to walk, and c changes no more. */
static bool hold(struct machine *m, struct box *parent, const struct cell *c)
{
	struct box *b = c->box ? &m->boxes[c->box - 1] : NULL;

	if (parent->closed || b == parent)
		return pickle_fail(m, "has a container that holds itself, or is changed after another one held it");
	parent->unfolded += unfolded(m, c);
	if (parent->unfolded > m->limits->max_unfolded)
		return pickle_fail(m, "unfolds to more than %llu values", (unsigned long long)m->limits->max_unfolded);
	if (!b)
		return true;
	b->closed = true;
	if (b->depth >= parent->depth)
		parent->depth = b->depth + 1;
	return parent->depth <= m->limits->max_depth ||
	       pickle_fail(m, "is nested deeper than %u", m->limits->max_depth);
}

static bool append(struct machine *m, const struct cell *to, const struct cell *c)
{
	if (!hold(m, &m->boxes[to->box - 1], c) || !pickle_charge(m, 2 * sizeof c->v))
		return false;
	return json_array_append(to->v, c->v) == 0 || without_memory(m);
}

/* As few digits as name it. */
static int float_text(double v, char *out, size_t n_out)
{
	int n = 0;

	for (int digits = 15; digits <= 17; digits++) {
		n = snprintf(out, n_out, "%.*g", digits, v);
		if (strtod(out, NULL) == v)
			break;
	}
	return strpbrk(out, ".e") ? n : snprintf(out, n_out, "%.0f.0", v);
}

static bool put_at(struct machine *m, const struct cell *to, const char *key, size_t n_key, json_t *v)
{
	if (!pickle_charge(m, ENTRY_BYTES + n_key))
		return false;
	return json_object_setn_nocheck(to->v, key, n_key, v) == 0 || without_memory(m);
}

static bool put(struct machine *m, const struct cell *to, const struct cell *key, const struct cell *c)
{
	char *dumped, text[400];
	bool fine;

	if (unfolded(m, key) > MAX_KEY_UNFOLDED)
		return pickle_fail(m, "has a key that is too long");
	if (!hold(m, &m->boxes[to->box - 1], key) || !hold(m, &m->boxes[to->box - 1], c))
		return false;
	if (json_is_string(key->v))
		return put_at(m, to, json_string_value(key->v), json_string_length(key->v), c->v);
	if (json_is_real(key->v))
		return put_at(m, to, text, (size_t)float_text(json_real_value(key->v), text, sizeof text), c->v);
	dumped = json_dumps(key->v, JSON_ENCODE_ANY);
	if (!dumped)
		return without_memory(m);
	fine = put_at(m, to, dumped, strlen(dumped), c->v);
	free(dumped);
	return fine;
}

static bool is_box(struct machine *m, uint32_t depth, enum box_kind kind)
{
	const struct cell *c;

	if (!have(m, depth + 1))
		return false;
	c = &m->stack.v[m->stack.n - 1 - depth];
	return (c->box && m->boxes[c->box - 1].kind == kind) ||
	       pickle_fail(m, "is no pickle: it adds to what is no container of that kind, after %llu bytes",
			   (unsigned long long)m->n_bytes);
}

/* The newest n, which are above the container. */
static bool append_all(struct machine *m, const struct cell *to, uint32_t n)
{
	for (uint32_t i = m->stack.n - n; i < m->stack.n; i++)
		if (!append(m, to, &m->stack.v[i]))
			return false;
	return true;
}

static bool put_all(struct machine *m, const struct cell *to, uint32_t n)
{
	if (n % 2)
		return pickle_fail(m, "is no pickle: it has a key without a value");
	for (uint32_t i = m->stack.n - n; i < m->stack.n; i += 2)
		if (!put(m, to, &m->stack.v[i], &m->stack.v[i + 1]))
			return false;
	return true;
}

/* To the container under the mark: what is above it. */
static bool add_marked(struct machine *m, enum box_kind kind)
{
	const struct cell *to;
	uint32_t n;

	if (!marked(m, &n))
		return false;
	if (m->stack.n < n + 2)
		return have(m, n + 2);
	to = &m->stack.v[m->stack.n - n - 2];
	if (!to->box || m->boxes[to->box - 1].kind != kind)
		return pickle_fail(m, "is no pickle: it adds to what is no container of that kind, after %llu bytes",
				   (unsigned long long)m->n_bytes);
	if (kind == BOX_DICT ? !put_all(m, to, n) : !append_all(m, to, n))
		return false;
	drop(m, n + 1);
	return true;
}

static bool add_one(struct machine *m, enum box_kind kind)
{
	uint32_t n = kind == BOX_DICT ? 2 : 1;
	const struct cell *to;

	if (!have(m, n) || !is_box(m, n, kind))
		return false;
	to = &m->stack.v[m->stack.n - n - 1];
	if (kind == BOX_DICT ? !put_all(m, to, n) : !append_all(m, to, n))
		return false;
	drop(m, n);
	return true;
}

/* Of the newest n a new container; n_marks goes with them. */
static bool gather(struct machine *m, enum box_kind kind, uint32_t n, uint32_t n_marks)
{
	struct cell made;

	if (!have(m, n) || !push_box(m, kind))
		return false;
	made = m->stack.v[--m->stack.n];
	if (kind == BOX_DICT ? !put_all(m, &made, n) : !append_all(m, &made, n)) {
		json_decref(made.v);
		return false;
	}
	drop(m, n + n_marks);
	if (kind == BOX_FIXED)
		m->boxes[made.box - 1].closed = true;
	return push_cell(m, made);
}

static bool gather_marked(struct machine *m, enum box_kind kind)
{
	uint32_t n;

	return marked(m, &n) && gather(m, kind, n, 1);
}

/* ---- what is remembered ---- */

/* Whoever writes pickles counts what he remembers, so a number beyond what there was is a lie. */
static bool memo_put(struct machine *m, uint64_t at)
{
	struct cell *c;

	if (!have(m, 1))
		return false;
	if (at > m->n_values)
		return pickle_fail(m, "is no pickle: it remembers as number %llu the %u. value",
				   (unsigned long long)at, m->n_values);
	while (m->memo.n <= at) {
		if (!room(m, &m->memo, m->memo.n))
			return false;
		m->memo.v[m->memo.n++] = (struct cell){ 0 };
	}
	c = &m->memo.v[at];
	json_decref(c->v);
	*c = m->stack.v[m->stack.n - 1];
	json_incref(c->v);
	return true;
}

static bool memo_get(struct machine *m, uint64_t at)
{
	if (at >= m->memo.n || !m->memo.v[at].v)
		return pickle_fail(m, "is no pickle: it takes number %llu of what it never remembered",
				   (unsigned long long)at);
	json_incref(m->memo.v[at].v);
	return push_cell(m, m->memo.v[at]);
}

static bool memo_line(struct machine *m, bool (*fn)(struct machine *m, uint64_t at))
{
	char *end;
	unsigned long long at;

	if (!pickle_line(m))
		return false;
	at = strtoull(m->text, &end, 10);
	if (end == m->text || *end || m->text[0] == '-')
		return pickle_fail(m, "is no pickle: it has a number that is none");
	return fn(m, at);
}

static bool memo_number(struct machine *m, unsigned n_bytes, bool (*fn)(struct machine *m, uint64_t at))
{
	uint64_t at;

	return pickle_number(m, n_bytes, &at) && fn(m, at);
}

/* ---- plain values ---- */

static bool push_real(struct machine *m, double v)
{
	return push(m, isfinite(v) ? json_real(v) : json_null(), 0);
}

static bool push_float(struct machine *m)
{
	unsigned char v[8];
	uint64_t bits = 0;
	double d;

	if (!pickle_bytes(m, v, 8))
		return false;
	for (int i = 0; i < 8; i++)
		bits = bits << 8 | v[i];
	memcpy(&d, &bits, sizeof d);
	return push_real(m, d);
}

static bool push_float_line(struct machine *m)
{
	char *end;
	double v;

	if (!pickle_line(m))
		return false;
	v = strtod(m->text, &end);
	if (end == m->text || *end)
		return pickle_fail(m, "is no pickle: it has a number that is none");
	return push_real(m, v);
}

static bool push_int_line(struct machine *m)
{
	json_t *v;

	if (!pickle_line(m))
		return false;
	if (strcmp(m->text, "00") == 0 || strcmp(m->text, "01") == 0)
		return push(m, json_boolean(m->text[1] == '1'), 0);
	if (m->n_text > 1 && m->text[m->n_text - 1] == 'L')
		m->text[--m->n_text] = '\0';
	v = pickle_digits(m->text, m->n_text);
	return v ? push(m, v, m->n_text) : pickle_fail(m, "is no pickle: it has a number that is none");
}

static bool push_int(struct machine *m, unsigned n_bytes, bool is_signed)
{
	uint64_t v;

	if (!pickle_number(m, n_bytes, &v))
		return false;
	return push(m, json_integer(is_signed ? (int32_t)v : (json_int_t)v), 0);
}

static bool push_long(struct machine *m, unsigned n_length_bytes)
{
	unsigned char v[255];
	uint64_t n;

	if (!pickle_number(m, n_length_bytes, &n))
		return false;
	if (n > sizeof v)
		return pickle_fail(m, "has a number of more than %zu bytes", sizeof v);
	return pickle_bytes(m, v, n) && push(m, pickle_long(v, n), n > 8 ? 3 * n : 0);
}

static bool push_text(struct machine *m, unsigned n_length_bytes, json_t *(*make)(const char *text, size_t n))
{
	uint64_t n;

	return pickle_number(m, n_length_bytes, &n) && pickle_text(m, n) &&
	       push(m, make(m->text, m->n_text), m->n_text);
}

static bool push_text_line(struct machine *m, bool (*unescape)(struct machine *m))
{
	return pickle_line(m) && unescape(m) && push(m, pickle_string(m->text, m->n_text), m->n_text);
}

/* ---- what is refused ---- */

static bool refuse_lines(struct machine *m)
{
	char module[80], name[80];

	if (!pickle_line(m))
		return false;
	pickle_shown(m->text, m->n_text, module);
	if (!pickle_line(m))
		return false;
	return pickle_fail(m, "has code in it: %s.%s", module, pickle_shown(m->text, m->n_text, name));
}

static bool refuse_stacked(struct machine *m)
{
	char module[80], name[80];
	const json_t *a, *b;

	if (!have(m, 2))
		return false;
	a = m->stack.v[m->stack.n - 2].v;
	b = m->stack.v[m->stack.n - 1].v;
	if (!json_is_string(a) || !json_is_string(b))
		return pickle_fail(m, "has code in it, of a name that is no text");
	return pickle_fail(m, "has code in it: %s.%s",
			   pickle_shown(json_string_value(a), json_string_length(a), module),
			   pickle_shown(json_string_value(b), json_string_length(b), name));
}

static bool refuse(struct machine *m, unsigned op)
{
	static const struct {
		unsigned char op;
		const char *name;
	} known[] = {
		{ 'R', "REDUCE" }, { 'b', "BUILD" }, { 'o', "OBJ" }, { 0x81, "NEWOBJ" }, { 0x92, "NEWOBJ_EX" },
		{ 0x82, "EXT1" }, { 0x83, "EXT2" }, { 0x84, "EXT4" }, { 'P', "PERSID" }, { 'Q', "BINPERSID" },
		{ 0x97, "NEXT_BUFFER" }, { 0x98, "READONLY_BUFFER" },
	};

	if (op == 'c' || op == 'i')
		return refuse_lines(m);
	if (op == 0x93)
		return refuse_stacked(m);
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (known[i].op == op)
			return pickle_fail(m, "%s (%s)", op == 'P' || op == 'Q' || op >= 0x97
								 ? "refers to something outside of it"
								 : "has code in it: it builds an object",
					   known[i].name);
	return pickle_fail(m, "is no pickle: byte %llu, 0x%02x, is no operation", (unsigned long long)m->n_bytes, op);
}

/* ---- the machine ---- */

static bool stop(struct machine *m)
{
	m->stopped = true;
	return have(m, 1);
}

static bool protocol(struct machine *m)
{
	uint64_t v;

	if (!pickle_number(m, 1, &v))
		return false;
	return v <= 5 || pickle_fail(m, "is of pickle protocol %u; this release reads 0 to 5", (unsigned)v);
}

static bool frame(struct machine *m)
{
	uint64_t n; /* a promise that nothing here needs */

	return pickle_number(m, 8, &n);
}

static bool pop_marked(struct machine *m)
{
	uint32_t n;

	if (!marked(m, &n))
		return false;
	drop(m, n + 1);
	return true;
}

static bool pop(struct machine *m)
{
	if (m->stack.n == 0)
		return have(m, 1);
	drop(m, 1);
	return true;
}

static bool repeat(struct machine *m)
{
	struct cell c;

	if (!have(m, 1))
		return false;
	c = m->stack.v[m->stack.n - 1];
	json_incref(c.v);
	return push_cell(m, c);
}

static bool run_value(struct machine *m, unsigned op)
{
	switch (op) {
	case 'N':
		return push(m, json_null(), 0);
	case 0x88:
	case 0x89:
		return push(m, json_boolean(op == 0x88), 0);
	case 'K':
		return push_int(m, 1, false);
	case 'M':
		return push_int(m, 2, false);
	case 'J':
		return push_int(m, 4, true);
	case 0x8a:
		return push_long(m, 1);
	case 0x8b:
		return push_long(m, 4);
	case 'I':
	case 'L':
		return push_int_line(m);
	case 'G':
		return push_float(m);
	case 'F':
		return push_float_line(m);
	case 0x8c:
		return push_text(m, 1, pickle_string);
	case 'X':
		return push_text(m, 4, pickle_string);
	case 0x8d:
		return push_text(m, 8, pickle_string);
	case 'U':
	case 'C':
		return push_text(m, 1, pickle_hex);
	case 'T':
	case 'B':
		return push_text(m, 4, pickle_hex);
	case 0x8e:
	case 0x96:
		return push_text(m, 8, pickle_hex);
	case 'V':
		return push_text_line(m, pickle_unescape_unicode);
	case 'S':
		return push_text_line(m, pickle_unescape_quoted);
	default:
		return refuse(m, op);
	}
}

static bool run(struct machine *m, unsigned op)
{
	switch (op) {
	case 0x80:
		return protocol(m);
	case 0x95:
		return frame(m);
	case '.':
		return stop(m);
	case '(':
		return push_cell(m, (struct cell){ 0 });
	case '0':
		return pop(m);
	case '1':
		return pop_marked(m);
	case '2':
		return repeat(m);
	case 'p':
		return memo_line(m, memo_put);
	case 'q':
		return memo_number(m, 1, memo_put);
	case 'r':
		return memo_number(m, 4, memo_put);
	case 0x94:
		return memo_put(m, m->memo.n);
	case 'g':
		return memo_line(m, memo_get);
	case 'h':
		return memo_number(m, 1, memo_get);
	case 'j':
		return memo_number(m, 4, memo_get);
	case ']':
		return push_box(m, BOX_LIST);
	case '}':
		return push_box(m, BOX_DICT);
	case 0x8f:
		return push_box(m, BOX_SET);
	case ')':
		return gather(m, BOX_FIXED, 0, 0);
	case 0x85:
	case 0x86:
	case 0x87:
		return gather(m, BOX_FIXED, op - 0x84, 0);
	case 't':
	case 0x91:
		return gather_marked(m, BOX_FIXED);
	case 'l':
		return gather_marked(m, BOX_LIST);
	case 'd':
		return gather_marked(m, BOX_DICT);
	case 'a':
		return add_one(m, BOX_LIST);
	case 's':
		return add_one(m, BOX_DICT);
	case 'e':
		return add_marked(m, BOX_LIST);
	case 'u':
		return add_marked(m, BOX_DICT);
	case 0x90:
		return add_marked(m, BOX_SET);
	default:
		return run_value(m, op);
	}
}

static void free_cells(struct cells *c)
{
	while (c->n > 0)
		json_decref(c->v[--c->n].v);
	free(c->v);
}

enum pickle_outcome pickle_load(json_t **ret, bytes_fn read, void *arg, const struct pickle_limits *limits, char *why,
				size_t n_why)
{
	struct machine *m = calloc(1, sizeof *m);
	enum pickle_outcome o;
	unsigned char op;
	bool fine = true;

	why[0] = '\0';
	*ret = NULL;
	if (!m)
		return PICKLE_NO_MEMORY;
	m->limits = limits;
	m->read = read;
	m->arg = arg;
	m->why = why;
	m->n_why = n_why;
	while (fine && !m->stopped)
		fine = pickle_bytes(m, &op, 1) && run(m, op);
	if (fine)
		*ret = json_incref(m->stack.v[m->stack.n - 1].v);
	o = fine ? PICKLE_OK : m->no_memory ? PICKLE_NO_MEMORY : m->unread ? PICKLE_UNREAD : PICKLE_REFUSED;
	free_cells(&m->stack);
	free_cells(&m->memo);
	free(m->boxes);
	free(m->text);
	free(m);
	return o;
}
