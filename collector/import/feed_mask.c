#include "feed_mask.h"

#include "mask.h"
#include "mask_columns.h"

#include <stdlib.h>
#include <string.h>

struct feed_mask {
	struct mask *mask; /* NULL: names are kept */
	struct mask_columns *columns;
	char **lasting; /* owned */
	size_t n_lasting, n_lasting_alloc;
};

static void learn_row(struct feed_mask *m, const struct trace_row *row)
{
	for (uint32_t i = 0; i < row->n_values; i++) {
		const char *text = trace_text(row, i);
		enum mask_column c = text ? mask_column_of(m->columns, row->table, i) : COLUMN_KEPT;

		if (c == COLUMN_HOST || c == COLUMN_USER)
			mask_learn(m->mask, c == COLUMN_HOST ? MASK_HOST : MASK_USER, text);
		else if (c == COLUMN_TEXT && text[0] == '{')
			mask_learn_fields(m->mask, text);
		else if (c == COLUMN_TEXT)
			mask_learn_path(m->mask, text);
	}
}

static void learn(struct feed_mask *m, const struct trace *t, const struct trace_input *inputs, uint32_t n_inputs)
{
	for (uint32_t i = 0; i < t->n_ranks; i++) {
		mask_learn(m->mask, MASK_HOST, t->ranks[i].host);
		for (uint32_t k = 0; k < t->ranks[i].n_records; k++)
			mask_learn_fields(m->mask, t->ranks[i].records[k].fields);
	}
	for (uint32_t i = 0; i < t->n_secrets; i++)
		mask_learn(m->mask, t->secrets[i].is_user ? MASK_USER : MASK_HOST, t->secrets[i].name);
	for (uint32_t i = 0; i < t->n_rows; i++)
		learn_row(m, &t->rows[i]);
	for (uint32_t i = 0; i < n_inputs; i++)
		mask_learn_path(m->mask, inputs[i].path);
}

struct feed_mask *feed_mask_new(const struct trace *t, const struct trace_input *inputs, uint32_t n_inputs, bool keep)
{
	struct feed_mask *m = calloc(1, sizeof *m);

	if (!m || keep)
		return m;
	m->mask = mask_new();
	m->columns = mask_columns_new();
	if (m->mask && m->columns) {
		learn(m, t, inputs, n_inputs);
		return m;
	}
	feed_mask_free(m);
	return NULL;
}

void feed_mask_free(struct feed_mask *m)
{
	if (!m)
		return;
	mask_free(m->mask);
	mask_columns_free(m->columns);
	for (size_t i = 0; i < m->n_lasting; i++)
		free(m->lasting[i]);
	free(m->lasting);
	free(m);
}

/* What a mask gave, into the job. */
static const char *give(struct store_job *job, char *owned)
{
	const char *text = owned ? job_utf8(job, owned, strlen(owned)) : NULL;

	free(owned);
	return text;
}

const char *feed_text(struct feed_mask *m, struct store_job *job, const char *text)
{
	return m->mask ? give(job, mask_text(m->mask, text)) : job_utf8(job, text, strlen(text));
}

const char *feed_lasting(struct feed_mask *m, const char *text)
{
	char *masked;

	if (!m->mask || !text)
		return text;
	if (m->n_lasting == m->n_lasting_alloc) {
		size_t n = m->n_lasting_alloc ? 2 * m->n_lasting_alloc : 16;
		char **v = realloc(m->lasting, n * sizeof *v);

		if (!v)
			return NULL;
		m->lasting = v;
		m->n_lasting_alloc = n;
	}
	masked = mask_text(m->mask, text);
	if (masked)
		m->lasting[m->n_lasting++] = masked;
	return masked;
}

const char *feed_host(struct feed_mask *m, struct store_job *job, const char *name)
{
	return m->mask ? give(job, mask_name(m->mask, MASK_HOST, name)) : job_utf8(job, name, strlen(name));
}

const char *feed_fields(struct feed_mask *m, struct store_job *job, const char *json)
{
	return m->mask ? give(job, mask_fields(m->mask, json)) : job_text(job, json);
}

const char *feed_cell(struct feed_mask *m, struct store_job *job, const struct trace_row *row, unsigned i)
{
	const char *text = trace_text(row, i);

	if (!m->mask)
		return job_utf8(job, text, strlen(text));
	switch (mask_column_of(m->columns, row->table, i)) {
	case COLUMN_HOST:
		return feed_host(m, job, text);
	case COLUMN_USER:
		return give(job, mask_name(m->mask, MASK_USER, text));
	case COLUMN_KEPT:
		return job_utf8(job, text, strlen(text));
	case COLUMN_TEXT:
		break;
	}
	return text[0] == '{' ? give(job, mask_fields(m->mask, text)) : feed_text(m, job, text);
}
