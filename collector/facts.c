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
	f->verdicts.n = 0;
	f->clocks.n = 0;
	f->contradictions.n = 0;
	f->pairs.n = 0;
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
	free(f->verdicts.v);
	free(f->clocks.v);
	free(f->contradictions.v);
	free(f->pairs.v);
	free(f->what_ifs.v);
	free(f->tiles.v);
	free(f->strings.v);
	facts_init(f);
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
