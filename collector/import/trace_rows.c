/* trace_rows.c - rows of the tables that only imports fill. A large job has a million of them, so each is one
 * allocation: its values, a letter each of what they are, and the texts.
 */
#include "trace.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static size_t fixed_bytes(uint32_t n_values)
{
	return n_values * (sizeof(union trace_value) + 1);
}

static size_t bytes_of(const struct trace_row *r)
{
	size_t n = fixed_bytes(r->n_values);

	for (uint32_t i = 0; i < r->n_values; i++)
		n += trace_text(r, i) ? strlen(trace_text(r, i)) + 1 : 0;
	return n;
}

/* How much it takes; values NULL: only that. */
static size_t put(union trace_value *values, const char *letters, va_list args)
{
	uint32_t n_values = (uint32_t)strlen(letters);
	size_t at = fixed_bytes(n_values);

	for (uint32_t i = 0; i < n_values; i++) {
		union trace_value v = { 0 };
		char type = letters[i];
		size_t n = 0;

		if (type == 'i') {
			v.integer = va_arg(args, int64_t);
			type = v.integer == TRACE_NULL ? 0 : 'i';
		} else if (type == 'r') {
			v.real = va_arg(args, double);
			type = v.real != v.real ? 0 : 'r';
		} else {
			v.text = va_arg(args, const char *);
			type = v.text ? 't' : 0;
			n = v.text ? strlen(v.text) + 1 : 0;
		}
		if (values) {
			((char *)&values[n_values])[i] = type;
			if (n > 0)
				v.text = memcpy((char *)values + at, v.text, n);
			values[i] = v;
		}
		at += n;
	}
	return at;
}

static bool has_room(struct trace *t)
{
	uint32_t want = t->n_rows_alloc ? t->n_rows_alloc + t->n_rows_alloc / 2 : 16;
	struct trace_row *grown;

	if (t->n_rows < t->n_rows_alloc)
		return true;
	grown = realloc(t->rows, want * sizeof *grown);
	t->no_memory |= !grown;
	if (!grown)
		return false;
	t->rows = grown;
	t->n_rows_alloc = want;
	return true;
}

bool trace_row(struct trace *t, const char *table, const char *types, ...)
{
	union trace_value *values;
	size_t n_bytes;
	va_list args;

	va_start(args, types);
	n_bytes = put(NULL, types, args);
	va_end(args);
	if (t->n_rows == TRACE_MAX_ROWS || !trace_keep(t, sizeof *t->rows + n_bytes, 1)) {
		t->n_left_out++;
		return true;
	}
	values = has_room(t) ? malloc(n_bytes) : NULL;
	if (!values) {
		trace_unkeep(t, sizeof *t->rows + n_bytes, 1);
		t->no_memory = true;
		return false;
	}
	va_start(args, types);
	put(values, types, args);
	va_end(args);
	t->rows[t->n_rows++] = (struct trace_row){ table, values, (uint32_t)strlen(types) };
	return true;
}

bool trace_row_text(struct trace *t, struct trace_row *r, uint32_t i, const char *text)
{
	size_t n = bytes_of(r), n_text = strlen(text) + 1, n_before = strlen(trace_text(r, i)) + 1;
	union trace_value *values = malloc(n + n_text);
	size_t at = fixed_bytes(r->n_values);

	t->no_memory |= !values;
	if (!values)
		return false;
	memcpy(values, r->values, at);
	for (uint32_t k = 0; k < r->n_values; k++) {
		const char *from = k == i ? text : trace_text(r, k);

		if (trace_text(r, k)) {
			values[k].text = strcpy((char *)values + at, from);
			at += strlen(from) + 1;
		}
	}
	free(r->values);
	r->values = values;
	if (n_text > n_before)
		(void)trace_keep(t, n_text - n_before, 0); /* it is there, whatever the limit */
	return true;
}

void trace_drop_row(struct trace *t, struct trace_row *r)
{
	if (!r->values)
		return;
	trace_unkeep(t, sizeof *r + bytes_of(r), 1);
	free(r->values);
	r->values = NULL;
}

void trace_forget_rows(struct trace *t, uint32_t n)
{
	while (t->n_rows > n)
		trace_drop_row(t, &t->rows[--t->n_rows]);
}
