#include "numbers.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SAMPLES (1u << 20)
#define MAX_PROCS (1u << 17)
#define MAX_BADS (1u << 16)
#define MAX_BADS_OF_ONE 8
#define MAX_WORDS (1u << 16)
#define MAX_PLACED (1u << 16)
#define MAX_SEARCHED 4096
#define MAX_BYTES 8192

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

static int word_of(struct numbers *n, const char *text, uint32_t *ret)
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

static struct number_proc *proc_of(struct numbers *n, uint32_t proc)
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

static int add_sample(struct numbers *n, const struct round *like, const struct sample *s,
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

static int add_bad(struct numbers *n, struct number_proc *p, const struct bad *b)
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
static int add_placed(struct layout *l, const struct placed *v)
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

/* ---- fields of a stranger's record ---- */

/* A number, a truth value, or the words that stand for what JSON cannot say. */
static double number(const json_t *fields, const char *key)
{
	const json_t *v = json_object_get(fields, key);

	if (json_is_boolean(v))
		return json_is_true(v);
	if (json_is_number(v))
		return json_number_value(v);
	if (json_is_string(v)) {
		const char *text = json_string_value(v);
		char *end;
		double x = strtod(text, &end);

		if (end != text && *end == '\0')
			return isnan(x) ? (double)INFINITY : x; /* NAN is for what is not said */
	}
	return (double)NAN;
}

static int64_t whole(const json_t *fields, const char *key)
{
	double x = number(fields, key);

	return x >= 0 && x < 4e18 ? (int64_t)x : -1;
}

/* The first of these that is a name; a number is one too. */
static const char *name_of(const json_t *fields, const char *const keys[3], char buf[24])
{
	for (unsigned i = 0; i < 3; i++) {
		const json_t *v = json_object_get(fields, keys[i]);

		if (json_is_string(v))
			return json_string_value(v);
		if (json_is_integer(v)) {
			snprintf(buf, 24, "%lld", (long long)json_integer_value(v));
			return buf;
		}
	}
	return NULL;
}

static const char *const param_keys[3] = { "param", "name", "module" };
static const char *const module_keys[3] = { "module", "name", "param" };
static const char *const group_keys[3] = { "pg", "group", "comm" };

/* Index + 1 of the process's group of that name; 0. */
static uint32_t group_of(struct numbers *n, const struct match *m, int32_t restart_count,
			 const char *name)
{
	uint32_t life = restart_count < 0 ? 0 : (uint32_t)restart_count;

	if (!name)
		return 0;
	if (n->cached_group && n->cached_group <= m->n_groups &&
	    m->groups[n->cached_group - 1].life == life &&
	    strcmp(m->groups[n->cached_group - 1].name, name) == 0)
		return n->cached_group;
	for (uint32_t i = m->n_groups; i-- > 0;)
		if (m->groups[i].life == life && strcmp(m->groups[i].name, name) == 0)
			return n->cached_group = i + 1;
	return 0;
}

/* ---- records ---- */

struct note {
	struct numbers *n;
	struct number_proc *p;
	const struct proc *proc;
	const struct match *m;
	const json_t *fields;
	struct sample s;
	int64_t now_ns;
};

static int note_round(struct note *a, enum number_kind kind, uint32_t sub)
{
	struct round like = { .kind = (uint8_t)kind, .life = a->proc->life, .sub = sub,
			      .key = a->s.step, .counted = a->s.step == EVENT_STEP_UNKNOWN };

	if (like.counted)
		like.key = a->p->n_said[kind];
	a->p->n_said[kind]++;
	a->n->news_now_ns = a->now_ns;
	a->n->n_notes++;
	return add_sample(a->n, &like, &a->s, a->now_ns);
}

static int note_value(struct note *a, enum number_kind kind)
{
	uint32_t sub = 0;
	char buf[24];
	int64_t bucket = whole(a->fields, "bucket");
	int r = 0;

	a->s.v = number(a->fields, "v");
	r = word_of(a->n, name_of(a->fields, param_keys, buf), &sub);
	if (sub)
		sub |= NUMBERS_NAMED;
	else if (bucket >= 0 && bucket < INT32_MAX)
		sub = (uint32_t)bucket + 1;
	return r < 0 || isnan(a->s.v) ? r : note_round(a, kind, sub);
}

static int note_scaler(struct note *a, enum number_kind kind)
{
	int64_t stage = whole(a->fields, "stage");

	a->s.v = number(a->fields, kind == NUMBER_SCALE ? "scale" :
				   kind == NUMBER_OVERFLOW ? "found" : "value");
	a->s.w = number(a->fields, "skip");
	a->s.stage = stage >= 0 && stage < INT32_MAX ? (int32_t)stage : -1;
	return note_round(a, kind, 0);
}

static int note_finite(struct note *a, enum bad_kind kind)
{
	struct bad b = { .kind = (uint8_t)kind, .proc = a->s.proc, .step = a->s.own,
			 
			 .at_ns = a->s.at_ns, .now_ns = a->now_ns, .n = number(a->fields, "nonfinite") };
	int64_t call = whole(a->fields, "seq");
	char buf[24];
	int r = 0;

	a->n->news_now_ns = a->now_ns;
	a->n->n_notes++;
	a->p->n_checks++;
	if (kind == BAD_LOSS) {
		double loss = number(a->fields, "v");
		/* None, as NaN is written too; or nothing where a stage has no loss. */
		bool none = json_is_null(json_object_get(a->fields, "v")) && a->p->n_losses > 0;

		b.n = none || isinf(loss) ? 1 : 0;
		if (isfinite(loss)) {
			a->p->n_losses++;
			a->p->loss_step = b.step;
			a->p->loss_ns = b.at_ns;
		}
	} else if (kind == BAD_MODULE) {
		const char *phase = json_string_value(json_object_get(a->fields, "phase"));

		b.backward = phase && phase[0] == 'b';
		r = word_of(a->n, name_of(a->fields, module_keys, buf), &b.module);
	} else {
		b.group = group_of(a->n, a->m, a->proc->restart_count,
				   name_of(a->fields, group_keys, buf));
		b.call = call < 0 ? 0 : (uint64_t)call;
		a->s.v = b.n;
		if (b.group && call >= 0)
			r = add_sample(a->n, &(struct round){
				.kind = kind == BAD_INPUT ? NUMBER_COLL_INPUT : NUMBER_COLL_OUTPUT,
				.life = a->proc->life, .sub = b.group, .key = b.call }, &a->s, a->now_ns);
	}
	return r < 0 || !(b.n > 0) ? r : add_bad(a->n, a->p, &b);
}

static int note_placed(struct note *a)
{
	int64_t bucket = whole(a->fields, "id");
	char buf[24];
	struct placed v = { .bucket = (uint32_t)bucket };
	int r = word_of(a->n, name_of(a->fields, param_keys, buf), &v.param);

	a->n->layout_now_ns = a->now_ns;
	a->n->n_layout_notes++;
	return r < 0 || bucket < 0 || bucket > INT32_MAX || !v.param ? r : add_placed(&a->p->layout, &v);
}

static void note_rebuilt(struct note *a)
{
	a->n->layout_now_ns = a->now_ns;
	a->n->n_layout_notes++;
	a->p->layout.over = true;
	a->p->layout.n_rebuilt = whole(a->fields, "count") + 1;
}

int numbers_note(struct numbers *n, const struct pulse *pulse, const struct match *m, uint32_t proc,
		 int64_t at_ns, int64_t now_ns, const char *category, const char *fields_json,
		 size_t n_fields)
{
	enum { PARAM_SUM, GRAD_NORM, SCALE, OVERFLOW, FLAG, INPUT, OUTPUT, MODULE, LOSS, ADD, REBUILT, N };
	static const char *const categories[N] = {
		"check.param_sum", "check.grad_norm", "scaler.update", "scaler.overflow",
		"memcpy.found_inf_to_host", "finite.coll_input", "finite.coll_output",
		"finite.module", "loss.value", "bucket.add", "bucket.rebuilt",
	};
	struct note a = { .n = n, .m = m, .now_ns = now_ns };
	unsigned kind = 0;
	json_t *fields;
	int64_t step;
	int r = 0;

	while (kind < N && strcmp(categories[kind], category) != 0)
		kind++;
	if (kind == N || proc >= MAX_PROCS || n_fields > MAX_BYTES || !m->roster->procs[proc].life)
		return 0;
	fields = json_loadb(fields_json, n_fields, JSON_REJECT_DUPLICATES, NULL);
	if (!json_is_object(fields)) {
		json_decref(fields);
		return 0;
	}
	a.p = proc_of(n, proc);
	a.proc = &m->roster->procs[proc];
	a.fields = fields;
	step = whole(fields, "step");
	a.s = (struct sample){ .proc = proc, .stage = -1, .v = (double)NAN, .w = (double)NAN,
			       .at_ns = at_ns, .own = pulse_step(pulse, proc, at_ns) };
	a.s.step = step >= 0 && step < UINT32_MAX ? (uint32_t)step : a.s.own;
	if (!a.p)
		r = -ENOMEM;
	else if (kind <= GRAD_NORM)
		r = note_value(&a, kind == PARAM_SUM ? NUMBER_PARAM_SUM : NUMBER_GRAD_NORM);
	else if (kind <= FLAG)
		r = note_scaler(&a, kind == SCALE ? NUMBER_SCALE : kind == OVERFLOW ? NUMBER_OVERFLOW :
									      NUMBER_FLAG_READ);
	else if (kind <= LOSS)
		r = note_finite(&a, (enum bad_kind)(kind - INPUT));
	else if (kind == ADD)
		r = note_placed(&a);
	else
		note_rebuilt(&a);
	json_decref(fields);
	return r;
}
