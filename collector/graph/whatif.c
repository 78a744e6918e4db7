#include "whatif.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define WORST_PERCENT 3
#define MAX_VISITS 200000000 /* of operations, that workers are worth: a second or two */

enum pick { PICK_NONE, PICK_PLACE, PICK_STAGE, PICK_REPLICA, PICK_KIND, PICK_WORST };

/* Which operations are measured and which are ideal in one replay. */
struct choice {
	const struct what_if_config *cfg;
	const int64_t *ideal_ns; /* by kind */
	const bool *is_worst;	 /* by place */
	enum pick pick;
	uint32_t which;
	bool ideal; /* what is picked; the rest is the other way */
};

static bool is_picked(const struct choice *c, const struct replay_op *op)
{
	const struct what_if_place *at = &c->cfg->places[op->place];

	switch (c->pick) {
	case PICK_NONE:
		return false;
	case PICK_PLACE:
		return op->place == c->which;
	case PICK_STAGE:
		return at->stage == c->which;
	case PICK_REPLICA:
		return at->replica == c->which;
	case PICK_KIND:
		return op->kind == c->which;
	case PICK_WORST:
		return c->is_worst[op->place];
	}
	return false;
}

static int64_t choose(const void *arg, uint32_t i, const struct replay_op *op)
{
	const struct choice *c = arg;

	(void)i;
	return is_picked(c, op) == c->ideal ? c->ideal_ns[op->kind] : op->ns;
}

/* ---- ideals ---- */

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static int64_t median(int64_t *v, uint32_t n)
{
	qsort(v, n, sizeof *v, by_value);
	return v[(n - 1) / 2] + (v[n / 2] - v[(n - 1) / 2]) / 2;
}

static int make_ideals(const struct replay *r, const struct what_if_config *cfg, int64_t *ideal_ns)
{
	int64_t *v = calloc((size_t)replay_n_ops(r) + 1, sizeof *v);

	if (!v)
		return -ENOMEM;
	for (uint32_t kind = 0; kind < cfg->n_kinds; kind++) {
		double sum = 0;
		uint32_t n = 0;

		for (uint32_t i = 0; i < replay_n_ops(r); i++) {
			const struct replay_op *op = replay_at(r, i);

			if (op->kind != kind)
				continue;
			v[n++] = op->ns;
			sum += (double)op->ns;
		}
		if (n > 0)
			ideal_ns[kind] = cfg->ideals[kind] == WHAT_IF_MEAN ? llround(sum / n)
									   : median(v, n);
	}
	free(v);
	return 0;
}

/* ---- parts ---- */

/* The times of each step: measured, ideal, and with a part ideal. */
struct steps {
	int64_t *measured, *ideal, *without;
};

static uint32_t count_clear(const struct steps *s, uint32_t n_steps)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < n_steps; i++)
		n += s->measured[i] - s->without[i] > (s->measured[i] - s->ideal[i]) / 2 &&
		     s->measured[i] > s->ideal[i];
	return n;
}

static void ask(struct what_if *w, struct replay *r, struct choice *c, const struct steps *s,
		struct what_if_part *ret)
{
	int64_t gap_ns = w->measured_ns - w->ideal_ns;

	c->ideal = false;
	ret->slowdown = (double)replay_run(r, choose, c, NULL) / (double)w->ideal_ns;
	ret->share = (double)NAN;
	ret->n_clear = 0;
	if (gap_ns <= 0)
		return;
	c->ideal = true;
	ret->share = (double)(w->measured_ns - replay_run(r, choose, c, s->without)) / (double)gap_ns;
	ret->n_clear = count_clear(s, replay_n_steps(r));
}

static void ask_each(struct what_if *w, struct replay *r, struct choice *c, const struct steps *s,
		     enum pick pick, uint32_t n, struct what_if_part *ret)
{
	c->pick = pick;
	for (c->which = 0; c->which < n; c->which++)
		ask(w, r, c, s, &ret[c->which]);
}

/* The worst of the workers first; of equals the one with the smaller number. */
static int find_worst(struct what_if *w, const struct what_if_config *cfg, bool *is_worst)
{
	w->n_worst = (cfg->n_places * WORST_PERCENT + 99) / 100;
	w->worst = calloc((size_t)w->n_worst + 1, sizeof *w->worst);
	if (!w->worst)
		return -ENOMEM;
	for (uint32_t k = 0; k < w->n_worst; k++) {
		uint32_t best = UINT32_MAX;

		for (uint32_t i = 0; i < cfg->n_places; i++)
			if (!is_worst[i] && (best == UINT32_MAX ||
					     w->places[i].slowdown > w->places[best].slowdown))
				best = i;
		w->worst[k] = best;
		is_worst[best] = true;
	}
	return 0;
}

/* Exact where it can be had: of all, or of those that are named. */
static void ask_workers(struct what_if *w, struct replay *r, struct choice *c, const struct steps *s,
			const bool *is_worst)
{
	bool all = 2 * (uint64_t)c->cfg->n_places * replay_n_ops(r) <= MAX_VISITS;

	c->pick = PICK_PLACE;
	for (c->which = 0; c->which < c->cfg->n_places; c->which++)
		if (all || is_worst[c->which])
			ask(w, r, c, s, &w->places[c->which]);
}

static bool is_sane(const struct replay *r, const struct what_if_config *cfg)
{
	for (uint32_t i = 0; i < cfg->n_places; i++)
		if (cfg->places[i].stage >= cfg->n_stages ||
		    cfg->places[i].replica >= cfg->n_replicas)
			return false;
	for (uint32_t i = 0; i < replay_n_ops(r); i++)
		if (replay_at(r, i)->place >= cfg->n_places || replay_at(r, i)->kind >= cfg->n_kinds)
			return false;
	return true;
}

static int ask_all(struct what_if *w, struct replay *r, struct choice *c, const struct steps *s,
		   bool *is_worst)
{
	const struct what_if_config *cfg = c->cfg;
	int e;

	c->is_worst = is_worst;
	c->ideal = true; /* nothing is picked: all as measured */
	w->measured_ns = replay_run(r, choose, c, s->measured);
	c->ideal = false;
	w->ideal_ns = replay_run(r, choose, c, s->ideal);
	if (w->ideal_ns <= 0)
		return -EINVAL;
	w->slowdown = (double)w->measured_ns / (double)w->ideal_ns;
	ask_each(w, r, c, s, PICK_STAGE, cfg->n_stages, w->stages);
	ask_each(w, r, c, s, PICK_REPLICA, cfg->n_replicas, w->replicas);
	ask_each(w, r, c, s, PICK_KIND, cfg->n_kinds, w->kinds);
	for (uint32_t i = 0; i < cfg->n_places; i++) {
		w->places[i].slowdown = fmin(w->stages[cfg->places[i].stage].slowdown,
					     w->replicas[cfg->places[i].replica].slowdown);
		w->places[i].share = (double)NAN;
	}
	e = find_worst(w, cfg, is_worst);
	if (e < 0)
		return e;
	c->pick = PICK_WORST;
	ask(w, r, c, s, &w->of_worst);
	w->of_last_stage = w->stages[cfg->n_stages - 1];
	ask_workers(w, r, c, s, is_worst);
	return 0;
}

static int make(struct what_if *w, struct replay *r, struct choice *c)
{
	size_t n = (size_t)replay_n_steps(r) + 1;
	bool *is_worst = calloc((size_t)c->cfg->n_places + 1, sizeof *is_worst);
	struct steps s = { calloc(n, sizeof *s.measured), calloc(n, sizeof *s.ideal),
			   calloc(n, sizeof *s.without) };
	int e = -ENOMEM;

	if (is_worst && s.measured && s.ideal && s.without)
		e = ask_all(w, r, c, &s, is_worst);
	free(is_worst);
	free(s.measured);
	free(s.ideal);
	free(s.without);
	return e;
}

int what_if_make(struct what_if *ret, struct replay *r, const struct what_if_config *cfg)
{
	struct choice c = { .cfg = cfg, .pick = PICK_NONE };
	int64_t *ideal_ns = calloc((size_t)cfg->n_kinds + 1, sizeof *ideal_ns);
	int e;

	*ret = (struct what_if){
		.places = calloc((size_t)cfg->n_places + 1, sizeof *ret->places),
		.stages = calloc((size_t)cfg->n_stages + 1, sizeof *ret->stages),
		.replicas = calloc((size_t)cfg->n_replicas + 1, sizeof *ret->replicas),
		.kinds = calloc((size_t)cfg->n_kinds + 1, sizeof *ret->kinds),
	};
	if (!ideal_ns || !ret->places || !ret->stages || !ret->replicas || !ret->kinds)
		e = -ENOMEM;
	else if (cfg->n_places == 0 || cfg->n_stages == 0 || !is_sane(r, cfg))
		e = -EINVAL;
	else
		e = make_ideals(r, cfg, ideal_ns);
	c.ideal_ns = ideal_ns;
	if (e == 0)
		e = make(ret, r, &c);
	free(ideal_ns);
	if (e != 0)
		what_if_fini(ret);
	return e;
}

void what_if_fini(struct what_if *w)
{
	free(w->places);
	free(w->stages);
	free(w->replicas);
	free(w->kinds);
	free(w->worst);
	*w = (struct what_if){ 0 };
}
