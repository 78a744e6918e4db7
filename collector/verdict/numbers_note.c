/* numbers_note.c - what a record says, taken from a stranger's JSON. */
#include "numbers_internal.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_PROCS (1u << 17)
#define MAX_BYTES 8192

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
	return numbers_add_sample(a->n, &like, &a->s, a->now_ns);
}

static int note_value(struct note *a, enum number_kind kind)
{
	uint32_t sub = 0;
	char buf[24];
	int64_t bucket = whole(a->fields, "bucket");
	int r = 0;

	a->s.v = number(a->fields, "v");
	r = numbers_word_of(a->n, name_of(a->fields, param_keys, buf), &sub);
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
		r = numbers_word_of(a->n, name_of(a->fields, module_keys, buf), &b.module);
	} else {
		b.group = group_of(a->n, a->m, a->proc->restart_count,
				   name_of(a->fields, group_keys, buf));
		b.call = call < 0 ? 0 : (uint64_t)call;
		a->s.v = b.n;
		if (b.group && call >= 0)
			r = numbers_add_sample(a->n, &(struct round){
				.kind = kind == BAD_INPUT ? NUMBER_COLL_INPUT : NUMBER_COLL_OUTPUT,
				.life = a->proc->life, .sub = b.group, .key = b.call }, &a->s, a->now_ns);
	}
	return r < 0 || !(b.n > 0) ? r : numbers_add_bad(a->n, a->p, &b);
}

static int note_placed(struct note *a)
{
	int64_t bucket = whole(a->fields, "id");
	char buf[24];
	struct placed v = { .bucket = (uint32_t)bucket };
	int r = numbers_word_of(a->n, name_of(a->fields, param_keys, buf), &v.param);

	a->n->layout_now_ns = a->now_ns;
	a->n->n_layout_notes++;
	return r < 0 || bucket < 0 || bucket > INT32_MAX || !v.param ? r : numbers_add_placed(&a->p->layout, &v);
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
	a.p = numbers_proc(n, proc);
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
