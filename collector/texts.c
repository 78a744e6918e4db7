/* texts.c - logs, exceptions and records of a rank.
 *
 * A record is JSON of a few kilobytes from the probe. Its size was checked before
 * it is parsed; what is not an object of the agreed shape is kept as it is, as a
 * notice: it may be a newer probe's.
 */
#include "ingest_internal.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#define MAX_ENV_KEYS 512

static int put_log(struct ingest *g, const struct process *p, const struct frame_text *t,
		   const char *kind, uint32_t level, const char *logger, size_t n_logger,
		   const char *text, size_t n_text)
{
	struct row_log *row = JOB_PUSH(g->job, logs);
	struct fleet_point at;

	if (!row)
		return -ENOMEM;
	ingest_place(g, p->row.host, t->at_ns, &at);
	*row = (struct row_log){
		.at_ns = at.at.ns, .err_ns = at.err_ns, .process = p->row.process,
		.rank = p->row.rank, .kind = kind, .level = level,
		.logger = job_utf8(g->job, logger, n_logger),
		.text = job_utf8(g->job, text, n_text),
	};
	return row->logger && row->text ? 0 : -ENOMEM;
}

/* A setting's value as a person would write it. */
static const char *value_text(struct ingest *g, const json_t *v)
{
	const char *kept;
	char *dumped;

	if (json_is_string(v))
		return job_utf8(g->job, json_string_value(v), json_string_length(v));
	dumped = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS);
	kept = dumped ? job_text(g->job, dumped) : NULL;
	free(dumped);
	return kept;
}

static int put_env(struct ingest *g, const struct process *p, json_t *fields)
{
	unsigned n = 0;
	const char *key;
	json_t *v;

	json_object_foreach(fields, key, v) {
		struct row_env *row;

		if (n++ == MAX_ENV_KEYS)
			break;
		row = JOB_PUSH(g->job, envs);
		if (!row)
			return -ENOMEM;
		*row = (struct row_env){ .process = p->row.process, .rank = p->row.rank,
					 .key = job_utf8(g->job, key, strlen(key)),
					 .value = value_text(g, v) };
		if (!row->key || !row->value)
			return -ENOMEM;
	}
	return 0;
}

static int put_group(struct ingest *g, const json_t *fields)
{
	const char *name = json_string_value(json_object_get(fields, "name"));
	const json_t *list = json_object_get(fields, "ranks");
	int32_t ranks[SHM_MAX_TEXT / 2]; /* a number and a comma each */
	size_t n = json_array_size(list);

	if (!name || strlen(name) > SHM_MAX_STRING || n == 0 ||
	    n > sizeof ranks / sizeof *ranks)
		return 0;
	for (size_t i = 0; i < n; i++) {
		const json_t *v = json_array_get(list, i);

		if (!json_is_integer(v) || json_integer_value(v) < 0 ||
		    json_integer_value(v) >= FACT_MAX_RANKS)
			return 0;
		ranks[i] = (int32_t)json_integer_value(v);
	}
	return core_group(g->core, name, ranks, n);
}

int ingest_group(struct ingest *g, const struct frame_text *t)
{
	static const char kind[] = "meta.group";
	json_t *root = NULL;
	int r = 0;

	if (t->kind == SHM_TEXT_RECORD && memmem(t->text, t->n_text, kind, sizeof kind - 1))
		root = json_loadb(t->text, t->n_text, JSON_REJECT_DUPLICATES, NULL);
	if (json_string_value(json_object_get(root, "c")) &&
	    strcmp(json_string_value(json_object_get(root, "c")), kind) == 0)
		r = put_group(g, json_object_get(root, "f"));
	json_decref(root);
	return r;
}

static int put_record(struct ingest *g, const struct process *p, const struct frame_text *t)
{
	json_t *root = json_loadb(t->text, t->n_text, JSON_REJECT_DUPLICATES, NULL);
	const char *category = json_string_value(json_object_get(root, "c"));
	json_t *fields = json_object_get(root, "f");
	struct row_record *row;
	struct fleet_point at;
	int r = -ENOMEM;

	if (!category || !json_is_object(fields)) {
		json_decref(root);
		return put_log(g, p, t, "notice", 20, "syncline.record", 15, t->text, t->n_text);
	}
	row = JOB_PUSH(g->job, records);
	if (row) {
		ingest_place(g, p->row.host, t->at_ns, &at);
		*row = (struct row_record){
			.at_ns = at.at.ns, .process = p->row.process, .rank = p->row.rank,
			.category = job_utf8(g->job, category, strlen(category)),
			.fields = value_text(g, fields),
		};
		r = row->category && row->fields ? 0 : -ENOMEM;
	}
	if (r == 0 && (strcmp(category, "meta.env") == 0 || strcmp(category, "meta.versions") == 0 ||
		       strcmp(category, "meta.device") == 0))
		r = put_env(g, p, fields);
	if (r == 0)
		r = core_record(g->core, p->row.process, (host_time){ t->at_ns }, row->category,
				row->fields, strlen(row->fields));
	json_decref(root);
	return r;
}

/* Errors are records too: rules read them beside what the program says of itself. */
static int put_error(struct ingest *g, const struct process *p, const struct frame_text *t,
		     const char *text, size_t n_text)
{
	const char *whole = job_utf8(g->job, text, n_text);
	json_t *fields = whole ? json_pack("{s:i, s:s}", "level", (int)t->level, "text", whole) : NULL;
	char *dumped = fields ? json_dumps(fields, JSON_COMPACT) : NULL;
	int r = whole ? 0 : -ENOMEM;

	if (dumped)
		r = core_record(g->core, p->row.process, (host_time){ t->at_ns }, "log.line", dumped,
				strlen(dumped));
	free(dumped);
	json_decref(fields);
	return r;
}

int ingest_text(struct ingest *g, struct process *p, const struct frame_text *t)
{
	const char *tab;

	if ((t->kind == SHM_TEXT_LOG && t->level >= 40) || t->kind == SHM_TEXT_EXCEPTION) {
		int r = put_error(g, p, t, t->text, t->n_text);

		if (r < 0)
			return r;
	}
	switch (t->kind) {
	case SHM_TEXT_LOG:
		tab = memchr(t->text, '\t', t->n_text);
		if (!tab)
			return put_log(g, p, t, "log", t->level, "", 0, t->text, t->n_text);
		return put_log(g, p, t, "log", t->level, t->text, (size_t)(tab - t->text), tab + 1,
			       t->n_text - (size_t)(tab + 1 - t->text));
	case SHM_TEXT_EXCEPTION:
		return put_log(g, p, t, "exception", t->level ? t->level : 40, "", 0, t->text,
			       t->n_text);
	case SHM_TEXT_RECORD:
		return put_record(g, p, t);
	default: /* a newer probe's */
		return put_log(g, p, t, "notice", 20, "syncline.text", 13, t->text, t->n_text);
	}
}
