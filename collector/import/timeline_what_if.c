/* timeline_what_if.c - a timeline's operations and what each comes after, replayed.
 *
 * A worker's computation is in its order, and so are its sends and receives of each
 * direction and its collectives. A micro-batch is computed after it was received and
 * sent after it was computed. The collectives before the first forward come before
 * it; the others after the computation that had ended when they began; the optimizer
 * after the collectives that had begun before it.
 */
#include "timeline_internal.h"

#include "../graph/whatif.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char method[] = "replay of operations";

struct builder {
	struct timeline *l;
	struct replay *r;
	int64_t *last_ns; /* by join: when the last was there */
	int e;
};

static void after(struct builder *b, uint32_t op, uint32_t before)
{
	if (b->e == 0)
		b->e = replay_after(b->r, op, before);
}

static bool is_compute(const struct timeline *l, uint32_t i)
{
	return l->kinds[l->ops[i].kind].lane == LANE_COMPUTE;
}

/* What others come after, by its number among its like. */
enum { ROW_FORWARD, ROW_BACKWARD, ROW_FORWARD_RECV, ROW_BACKWARD_RECV, N_ROWS };

struct row {
	uint32_t *v, n;
};

static int row_of(const struct kind *k)
{
	if (k->role == ROLE_FORWARD)
		return ROW_FORWARD;
	if (k->role == ROLE_BACKWARD)
		return ROW_BACKWARD;
	if (k->role == ROLE_MESSAGE && k->lane == LANE_FORWARD_RECV)
		return ROW_FORWARD_RECV;
	return k->role == ROLE_MESSAGE && k->lane == LANE_BACKWARD_RECV ? ROW_BACKWARD_RECV : -1;
}

/* The row whose n-th entry comes before the n-th of these; -1 = none. */
static int row_before(const struct kind *k)
{
	if (k->role == ROLE_FORWARD)
		return ROW_FORWARD_RECV;
	if (k->role == ROLE_BACKWARD)
		return ROW_BACKWARD_RECV;
	if (k->role == ROLE_MESSAGE && k->lane == LANE_FORWARD_SEND)
		return ROW_FORWARD;
	return k->role == ROLE_MESSAGE && k->lane == LANE_BACKWARD_SEND ? ROW_BACKWARD : -1;
}

/* Of one worker in one step. */
static void add_worker(struct builder *b, uint32_t from, uint32_t to, uint32_t *scratch)
{
	struct timeline *l = b->l;
	uint32_t last[N_LANES], first_forward = UINT32_MAX, computed = UINT32_MAX, at = from;
	struct row rows[N_ROWS];

	for (unsigned i = 0; i < N_LANES; i++)
		last[i] = UINT32_MAX;
	for (unsigned i = 0; i < N_ROWS; i++)
		rows[i] = (struct row){ scratch + i * (size_t)(to - from), 0 };
	for (uint32_t i = from; i < to; i++) {
		int row = row_of(&l->kinds[l->ops[i].kind]);

		if (row >= 0)
			rows[row].v[rows[row].n++] = i;
		if (row == ROW_FORWARD && first_forward == UINT32_MAX)
			first_forward = i;
	}
	for (uint32_t i = from; i < to; i++) {
		const struct op *op = &l->ops[i];
		const struct kind *k = &l->kinds[op->kind];
		int before = row_before(k);

		if (last[k->lane] != UINT32_MAX)
			after(b, i, last[k->lane]);
		if (before >= 0 && op->nth < rows[before].n)
			after(b, i, rows[before].v[op->nth]);
		if (k->lane == LANE_COLL && first_forward != UINT32_MAX && i < first_forward)
			after(b, first_forward, i);
		for (; k->lane == LANE_COLL && at < i; at++)
			/* Stamps of two threads may overlap a little. */
			if (is_compute(l, at) &&
			    l->ops[at].end_ns <= op->begin_ns + (op->end_ns - op->begin_ns) / 10)
				computed = at;
		if (k->lane == LANE_COLL && i > first_forward && computed != UINT32_MAX)
			after(b, i, computed);
		if (k->role == ROLE_OPTIMIZER && last[LANE_COLL] != UINT32_MAX)
			after(b, i, last[LANE_COLL]);
		last[k->lane] = i;
	}
}

static bool build(struct builder *b)
{
	struct timeline *l = b->l;
	uint32_t *scratch = calloc((size_t)l->n_ops * N_ROWS + 1, sizeof *scratch);

	b->last_ns = calloc((size_t)l->n_joins + 1, sizeof *b->last_ns);
	if (!scratch || !b->last_ns) {
		free(scratch);
		b->e = -ENOMEM;
		return false;
	}
	for (uint32_t i = 0; i < l->n_ops; i++)
		if (l->ops[i].join != REPLAY_ALONE && l->ops[i].begin_ns > b->last_ns[l->ops[i].join])
			b->last_ns[l->ops[i].join] = l->ops[i].begin_ns;
	for (uint32_t i = 0, index; i < l->n_ops && b->e == 0; i++) { /* there it has the same number */
		const struct op *op = &l->ops[i];
		int64_t from_ns = op->join == REPLAY_ALONE ? op->begin_ns : b->last_ns[op->join];

		b->e = replay_add(b->r, &(struct replay_op){ .ns = op->end_ns - from_ns, .step = op->step,
							    .place = op->worker,
							    .kind = l->kinds[op->kind].ideal,
							    .join = op->join },
				  &index);
	}
	for (uint32_t from = 0, to; from < l->n_ops && b->e == 0; from = to) {
		for (to = from; to < l->n_ops && l->ops[to].step == l->ops[from].step &&
				l->ops[to].worker == l->ops[from].worker;)
			to++;
		add_worker(b, from, to, scratch);
	}
	free(scratch);
	if (b->e == 0)
		b->e = replay_order(b->r);
	return b->e == 0;
}

/* ---- facts ---- */

static bool put(struct timeline *l, const char *scope, const char *name, int64_t number,
		const struct what_if *w, const struct what_if_part *p)
{
	struct trace *t = l->trace;
	struct fact_what_if *grown = realloc(t->what_ifs, (t->n_what_ifs + 1) * sizeof *grown);
	int64_t n = l->n_steps;
	struct fact_what_if *f;

	if (!grown || !(name = strdup(name))) {
		t->what_ifs = grown ? grown : t->what_ifs;
		t->no_memory = true;
		return false;
	}
	t->what_ifs = grown;
	f = &t->what_ifs[t->n_what_ifs++];
	*f = (struct fact_what_if){ .scope = scope, .name = name, .number = number,
				    .slowdown = p->slowdown, .share = p->share,
				    .step_ns = w->measured_ns / n, .without_ns = FACT_NONE,
				    .n_steps = l->n_steps, .n_clear = p->n_clear,
				    .method = method };
	if (!isnan(p->share))
		f->without_ns = (w->measured_ns -
				 llround(p->share * (double)(w->measured_ns - w->ideal_ns))) / n;
	return true;
}

static bool put_numbered(struct timeline *l, const char *scope, uint32_t n, const struct what_if *w,
			 const struct what_if_part *parts)
{
	char name[16];
	bool fine = true;

	for (uint32_t i = 0; i < n && fine; i++) {
		snprintf(name, sizeof name, "%u", i);
		fine = put(l, scope, name, i, w, &parts[i]);
	}
	return fine;
}

static bool put_workers(struct timeline *l, const struct what_if *w)
{
	char name[256] = "";
	size_t at = 0;
	bool fine = true;

	for (uint32_t i = 0; i < l->n_workers && fine; i++) {
		snprintf(name, sizeof name, "%d", l->workers[i].rank);
		fine = put(l, "rank", name, l->workers[i].rank, w, &w->places[i]);
	}
	for (uint32_t i = 0; i < w->n_worst && at < sizeof name; i++)
		at += (size_t)snprintf(name + at, sizeof name - at, "%s%d", i ? " " : "",
				       l->workers[w->worst[i]].rank);
	return fine && put(l, "worst ranks", name, -1, w, &w->of_worst);
}

static bool put_all(struct timeline *l, const struct what_if *w)
{
	struct what_if_part job = { w->slowdown, w->measured_ns > w->ideal_ns ? 1 : (double)NAN, 0 };
	char name[16];
	bool fine;

	l->trace->first_step = (uint32_t)l->steps[0];
	l->trace->last_step = (uint32_t)l->steps[l->n_steps - 1];
	fine = put(l, "job", "job", -1, w, &job) && put_numbered(l, "stage", l->n_pp, w, w->stages) &&
		    put_numbered(l, "replica", l->n_dp, w, w->replicas) && put_workers(l, w);

	for (uint32_t i = 0; i < l->n_kinds && fine; i++)
		if (l->kinds[i].ideal == i)
			fine = put(l, "kind",
				   l->kinds[i].role != ROLE_MESSAGE ? l->kinds[i].name
				   : l->kinds[i].name[0] == 'f'	    ? "forward messages"
								    : "backward messages",
				   -1, w, &w->kinds[i]);
	snprintf(name, sizeof name, "%u", l->n_pp - 1);
	return fine && put(l, "last stage", name, -1, w, &w->of_last_stage);
}

static bool ask(struct timeline *l, struct replay *r)
{
	struct what_if_place *places = calloc((size_t)l->n_workers + 1, sizeof *places);
	enum what_if_ideal *ideals = calloc((size_t)l->n_kinds + 1, sizeof *ideals);
	struct what_if_config cfg = { .n_places = l->n_workers, .n_stages = l->n_pp,
				      .n_replicas = l->n_dp, .n_kinds = l->n_kinds,
				      .places = places, .ideals = ideals };
	struct what_if w;
	bool fine = false;
	int e = -ENOMEM;

	for (uint32_t i = 0; places && i < l->n_workers; i++)
		places[i] = (struct what_if_place){ l->workers[i].pp, l->workers[i].dp };
	for (uint32_t i = 0; ideals && i < l->n_kinds; i++)
		ideals[i] = l->kinds[i].lane == LANE_COMPUTE ? WHAT_IF_MEAN : WHAT_IF_MEDIAN;
	if (places && ideals)
		e = what_if_make(&w, r, &cfg);
	if (e == 0) {
		fine = put_all(l, &w);
		what_if_fini(&w);
	}
	l->trace->no_memory |= e == -ENOMEM;
	free(places);
	free(ideals);
	return fine || e == -EINVAL; /* nothing in it takes time: nothing to say */
}

bool timeline_what_if(struct timeline *l)
{
	struct builder b = { .l = l };
	bool fine;

	/* Chunks of an interleaved schedule are computed in an order that messages
	 * without a number of their chunk do not tell. */
	if (l->interleaved) {
		l->not_replayed = "its stages have several model chunks";
		return true;
	}
	b.e = replay_new(&b.r);
	fine = b.e == 0 && build(&b) && ask(l, b.r);
	l->trace->no_memory |= b.e == -ENOMEM;
	if (b.e > 0) { /* imported without it */
		l->not_replayed = b.e == REPLAY_CYCLE ? "its operations wait for each other"
						      : "it has too many operations";
		fine = true;
	}
	replay_free(b.r);
	free(b.last_ns);
	return fine;
}
