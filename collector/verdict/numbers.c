#include "numbers_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SAMPLES (1u << 20)
#define MAX_BADS (1u << 16)
#define MAX_BADS_OF_ONE 8
#define MAX_WORDS (1u << 16)
#define MAX_PLACED (1u << 16)
#define MAX_SEARCHED 4096

void numbers_fini(struct numbers *n)
{
	for (uint32_t i = 0; n->rounds && i < NUMBERS_ROUNDS; i++)
		free(n->rounds[i].v);
	for (uint32_t i = 0; i < n->n_words; i++)
		free(n->words[i]);
	for (uint32_t i = 0; i < n->n_procs; i++)
		free(n->procs[i].layout.v);
	free(n->rounds);
	free(n->bads);
	free(n->words);
	free(n->procs);
	idmap_fini(&n->word_of);
	*n = (struct numbers){ 0 };
}

const struct round *numbers_round(const struct numbers *n, uint64_t i)
{
	uint64_t first = n->n_rounds > NUMBERS_ROUNDS ? n->n_rounds - NUMBERS_ROUNDS : 0;

	return i < n->n_rounds - first ? &n->rounds[(first + i) % NUMBERS_ROUNDS] : NULL;
}

static struct round *find(const struct numbers *n, const struct round *like)
{
	for (uint64_t i = n->n_rounds; i-- > 0 && n->n_rounds - i <= NUMBERS_ROUNDS;) {
		struct round *v = &n->rounds[i % NUMBERS_ROUNDS];

		if (v->key == like->key && v->kind == like->kind && v->sub == like->sub &&
		    v->life == like->life && v->counted == like->counted)
			return v;
	}
	return NULL;
}

const struct round *numbers_find(const struct numbers *n, unsigned kind, uint32_t life, uint32_t sub,
				 uint64_t key, bool counted)
{
	return find(n, &(struct round){ .kind = (uint8_t)kind, .life = life, .sub = sub, .key = key,
					.counted = counted });
}

const struct sample *numbers_of(const struct round *v, uint32_t proc)
{
	for (uint32_t i = 0; v && i < v->n; i++)
		if (v->v[i].proc == proc)
			return &v->v[i];
	return NULL;
}

const char *numbers_word(const struct numbers *n, uint32_t word)
{
	return word > 0 && word < n->n_words ? n->words[word] : "";
}

/* ---- what is kept ---- */

int numbers_word_of(struct numbers *n, const char *text, uint32_t *ret)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);
	uint32_t i;

	*ret = 0;
	if (!text || !text[0])
		return 0;
	for (const char *c = text; *c; c++)
		h = (h ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
	i = idmap_get(&n->word_of, h);
	if (i == IDMAP_NONE) {
		if (n->n_words == MAX_WORDS)
			return 0;
		if (n->n_words + 1 >= n->n_words_alloc) {
			uint32_t want = n->n_words_alloc ? 2 * n->n_words_alloc : 64;
			char **grown = realloc(n->words, want * sizeof *grown);

			if (!grown)
				return -ENOMEM;
			n->words = grown;
			n->n_words_alloc = want;
		}
		if (n->n_words == 0)
			n->words[n->n_words++] = NULL;
		i = n->n_words;
		n->words[i] = strdup(text);
		if (!n->words[i] || idmap_put(&n->word_of, h, i) < 0) {
			free(n->words[i]);
			return -ENOMEM;
		}
		n->n_words++;
	}
	*ret = i;
	return 0;
}

struct number_proc *numbers_proc(struct numbers *n, uint32_t proc)
{
	if (proc >= n->n_procs) {
		uint32_t want = n->n_procs ? n->n_procs : 16;
		struct number_proc *grown;

		while (want <= proc)
			want *= 2;
		grown = realloc(n->procs, want * sizeof *grown);
		if (!grown)
			return NULL;
		memset(grown + n->n_procs, 0, (want - n->n_procs) * sizeof *grown);
		n->procs = grown;
		n->n_procs = want;
	}
	return &n->procs[proc];
}

static void let_go(struct numbers *n, struct round *v)
{
	n->n_samples -= v->n;
	free(v->v);
	*v = (struct round){ 0 };
}

int numbers_add_sample(struct numbers *n, const struct round *like, const struct sample *s,
		      int64_t now_ns)
{
	struct round *v;

	if (!n->rounds) {
		n->rounds = calloc(NUMBERS_ROUNDS, sizeof *n->rounds);
		if (!n->rounds)
			return -ENOMEM;
	}
	v = find(n, like);
	if (!v) {
		v = &n->rounds[n->n_rounds++ % NUMBERS_ROUNDS];
		let_go(n, v);
		*v = *like;
	}
	for (uint32_t i = 0; i < v->n; i++)
		if (v->v[i].proc == s->proc) { /* of several the first: the others have theirs */
			v->news_now_ns = now_ns;
			return 0;
		}
	if (n->n_samples == MAX_SAMPLES)
		return 0;
	if (v->n == v->n_alloc) {
		uint32_t want = v->n_alloc ? 2 * v->n_alloc : 8;
		struct sample *grown = realloc(v->v, want * sizeof *grown);

		if (!grown)
			return -ENOMEM;
		v->v = grown;
		v->n_alloc = want;
	}
	v->v[v->n++] = *s;
	v->news_now_ns = now_ns;
	n->n_samples++;
	return 0;
}

int numbers_add_bad(struct numbers *n, struct number_proc *p, const struct bad *b)
{
	struct bad *grown;

	if (p->n_bad == MAX_BADS_OF_ONE || n->n_bads == MAX_BADS)
		return 0;
	if (n->n_bads == n->n_bads_alloc) {
		size_t want = n->n_bads_alloc ? 2 * n->n_bads_alloc : 16;

		grown = realloc(n->bads, want * sizeof *grown);
		if (!grown)
			return -ENOMEM;
		n->bads = grown;
		n->n_bads_alloc = want;
	}
	p->n_bad++;
	n->bads[n->n_bads++] = *b;
	return 0;
}

static bool has_param(const struct layout *l, uint32_t param)
{
	for (size_t i = 0; i < l->n && i < MAX_SEARCHED; i++)
		if (l->v[i].param == param)
			return true;
	return false;
}

/* A parameter that is there already begins the list anew. */
int numbers_add_placed(struct layout *l, const struct placed *v)
{
	if (l->over || has_param(l, v->param))
		l->n = 0;
	l->over = false;
	if (l->n == MAX_PLACED)
		return 0;
	if (l->n == l->n_alloc) {
		size_t want = l->n_alloc ? 2 * l->n_alloc : 16;
		struct placed *grown = realloc(l->v, want * sizeof *grown);

		if (!grown)
			return -ENOMEM;
		l->v = grown;
		l->n_alloc = want;
	}
	l->v[l->n++] = *v;
	return 0;
}

void numbers_forget_bad(struct numbers *n, size_t i)
{
	n->procs[n->bads[i].proc].n_bad--;
	n->bads[i] = n->bads[--n->n_bads];
}
