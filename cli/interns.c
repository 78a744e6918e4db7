#include "interns.h"

#include <string.h>

void interns_init(struct interns *s, uint32_t max)
{
	*s = (struct interns){ .max = max };
}

void interns_fini(struct interns *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		free(s->v[i]);
	free(s->v);
	free(s->same_hash);
	free(s->by_hash.v);
	*s = (struct interns){ 0 };
}

static uint64_t hash(const char *text)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return h;
}

static bool grow(struct interns *s)
{
	uint32_t n = s->n_alloc ? 2 * s->n_alloc : 64;
	char **v = realloc(s->v, n * sizeof *v);
	uint32_t *same;

	if (!v)
		return false;
	s->v = v;
	same = realloc(s->same_hash, n * sizeof *same);
	if (!same)
		return false;
	s->same_hash = same;
	s->n_alloc = n;
	return true;
}

uint32_t interns_number(struct interns *s, const char *text, bool *ret_new)
{
	uint64_t h = hash(text);
	uint32_t first = idmap_get(&s->by_hash, h), last = 0;

	*ret_new = false;
	for (uint32_t i = first == IDMAP_NONE ? 0 : first + 1; i; i = s->same_hash[i - 1]) {
		if (strcmp(s->v[i - 1], text) == 0)
			return i;
		last = i;
	}
	if (s->n >= s->max || (s->n == s->n_alloc && !grow(s)))
		return 0;
	s->v[s->n] = strdup(text);
	if (!s->v[s->n])
		return 0;
	if (!last && idmap_put(&s->by_hash, h, s->n) != 0) {
		free(s->v[s->n]);
		return 0;
	}
	s->same_hash[s->n] = 0;
	s->n++;
	if (last)
		s->same_hash[last - 1] = s->n;
	*ret_new = true;
	return s->n;
}
