#include "facts.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void facts_init(struct facts *f)
{
	*f = (struct facts){ 0 };
}

void facts_clear(struct facts *f)
{
	for (size_t i = 0; i < f->strings.n; i++)
		free(f->strings.v[i]);
	for (size_t i = 0; i < f->tiles.n; i++)
		free(f->tiles.v[i]);
	f->steps.n = 0;
	f->rank_steps.n = 0;
	f->collectives.n = 0;
	f->arrivals.n = 0;
	f->groups.n = 0;
	f->buckets.n = 0;
	f->paths.n = 0;
	f->segments.n = 0;
	f->blames.n = 0;
	f->edges.n = 0;
	f->verdicts.n = 0;
	f->clocks.n = 0;
	f->contradictions.n = 0;
	f->pairs.n = 0;
	f->comm_classes.n = 0;
	f->stages.n = 0;
	f->what_ifs.n = 0;
	f->tiles.n = 0;
	f->strings.n = 0;
}

void facts_fini(struct facts *f)
{
	facts_clear(f);
	free(f->steps.v);
	free(f->rank_steps.v);
	free(f->collectives.v);
	free(f->arrivals.v);
	free(f->groups.v);
	free(f->buckets.v);
	free(f->paths.v);
	free(f->segments.v);
	free(f->blames.v);
	free(f->edges.v);
	free(f->verdicts.v);
	free(f->clocks.v);
	free(f->contradictions.v);
	free(f->pairs.v);
	free(f->comm_classes.v);
	free(f->stages.v);
	free(f->what_ifs.v);
	free(f->tiles.v);
	free(f->strings.v);
	facts_init(f);
}

const char *fact_segment_name(enum fact_segment_kind kind)
{
	switch (kind) {
	case SEGMENT_HOST:
		return "host";
	case SEGMENT_WORK:
		return "work";
	case SEGMENT_INPUT:
		return "input";
	case SEGMENT_KERNEL:
		return "kernel";
	case SEGMENT_LAUNCH:
		return "launch";
	case SEGMENT_QUEUE:
		return "queue";
	case SEGMENT_TRANSFER:
		return "transfer";
	case SEGMENT_CARRY:
		return "carry";
	case SEGMENT_N:
		break;
	}
	return "unknown";
}

const char *fact_edge_name(enum fact_edge_kind kind)
{
	switch (kind) {
	case EDGE_PROGRAM:
		return "program";
	case EDGE_STREAM:
		return "stream";
	case EDGE_LAUNCH:
		return "launch";
	case EDGE_WAIT:
		return "wait";
	case EDGE_ENTRY:
		return "entry";
	case EDGE_END:
		return "end";
	case EDGE_N:
		break;
	}
	return "unknown";
}

bool facts_reserve(void **v, size_t *n, size_t *n_alloc, size_t size)
{
	if (*n == *n_alloc) {
		size_t want = *n_alloc ? *n_alloc * 2 : 64;
		void *grown;

		if (want > SIZE_MAX / size)
			return false;
		grown = realloc(*v, want * size);
		if (!grown)
			return false;
		*v = grown;
		*n_alloc = want;
	}
	memset((char *)*v + *n * size, 0, size);
	(*n)++;
	return true;
}

/* The set owns the text from here on. */
static const char *keep(struct facts *f, char *text)
{
	char **slot;

	if (!text)
		return "";
	slot = FACTS_PUSH(f, strings);
	if (!slot) {
		free(text);
		return "";
	}
	*slot = text;
	return text;
}

const char *facts_string(struct facts *f, const char *text)
{
	return text && *text ? keep(f, strdup(text)) : "";
}

const char *facts_printf(struct facts *f, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	return keep(f, n < 0 ? NULL : text);
}
