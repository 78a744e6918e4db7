/* kineto_joined.c - what a profiler kept: launches with their work, in the order of time.
 *
 * A file has more events than memory has room for. So each join is one pass over runs
 * that are in the order of what is joined: a giver (the first launch of a correlation) goes
 * before its takers (the work of that correlation), and only the giver is kept meanwhile.
 *
 *	kept, by begin -> launches and work, by correlation -> told, by place
 *	              \-> params and calls that lack theirs, by External id -^
 */
#include "kineto_internal.h"

#include <stdlib.h>
#include <string.h>

#define TAKER (UINT64_C(1) << 63)

/* Of one begin; in three bits. */
static unsigned turn(const struct kept *v)
{
	static const unsigned turns[] = {
		[KEPT_STEP] = 0, [KEPT_RANGE] = 1, [KEPT_DEVICE_RANGE] = 1, [KEPT_LAUNCH] = 2, [KEPT_WAIT] = 3,
		[KEPT_WORK] = 4, [KEPT_CALL] = 5, [KEPT_HOST_CALL] = 5, [KEPT_NOTE] = 6, [KEPT_PARAMS] = 7,
	};

	return turns[v->sort];
}

static struct runs_key by_begin(const void *record)
{
	const struct kept *v = record;

	return (struct runs_key){ (uint64_t)v->begin_ns << 3 | turn(v), (uint64_t)v->number ^ TAKER };
}

static struct runs_key by_place(const void *record)
{
	return (struct runs_key){ ((const struct kept *)record)->at, 0 };
}

static bool is_device(const struct kept *v)
{
	return v->sort == KEPT_WORK || v->sort == KEPT_CALL;
}

static struct runs_key by_correlation(const void *record)
{
	const struct kept *v = record;

	return (struct runs_key){ (uint64_t)v->number, is_device(v) ? v->at | TAKER : v->at };
}

static struct runs_key by_external(const void *record)
{
	const struct kept *v = record;

	return (struct runs_key){ (uint64_t)(v->sort == KEPT_CALL ? v->external : v->number),
				  v->sort == KEPT_CALL ? v->at | TAKER : v->at };
}

static bool fail(struct kineto *k)
{
	k->trace->no_memory = true;
	return false;
}

static struct runs *new_runs(struct kineto *k, runs_key_fn key)
{
	struct spill *s = trace_spill(k->trace);
	struct runs *r = s ? runs_new(s, sizeof(struct kept), key) : NULL;

	if (!r)
		fail(k);
	return r;
}

static bool add(struct kineto *k, struct runs *to, const struct kept *v)
{
	return runs_append(to, v) || fail(k);
}

bool kineto_keep(struct kineto *k, const struct kept *v)
{
	if (!k->kept)
		k->kept = new_runs(k, by_begin);
	if (!k->kept)
		return false;
	k->last_ns = v->end_ns > k->last_ns ? v->end_ns : k->last_ns;
	return add(k, k->kept, v);
}

/* ---- in the order of time ---- */

/* Of what the host does: the last step that had begun. A step counts from its begin to
 * the next one's; behind the last one's end it is nobody's. A step's annotation may stand
 * twice, for the host and for the device: what is out of order is no step of a loop. */
struct place {
	uint64_t n;
	uint32_t step;
	int64_t step_end_ns;
	bool has_steps;
	int64_t last_number, last_end_ns; /* of the steps in order */
	uint32_t note;			  /* name */
	int64_t note_end_ns;
};

static void place_step(struct place *p, struct kept *v)
{
	p->step = v->number < EVENT_STEP_UNKNOWN - 1 ? (uint32_t)v->number : EVENT_STEP_UNKNOWN;
	p->step_end_ns = v->end_ns;
	v->step = p->step;
	if (p->has_steps && (v->number <= p->last_number || v->begin_ns < p->last_end_ns)) {
		v->step = EVENT_STEP_UNKNOWN;
		return;
	}
	p->has_steps = true;
	p->last_number = v->number;
	p->last_end_ns = v->end_ns;
}

/* A launch within the host's note about a collective is that collective's. */
static bool place(struct kineto *k, struct kineto_joined *j, struct place *p, struct kept *v)
{
	v->at = p->n++;
	if (v->sort == KEPT_STEP)
		place_step(p, v);
	else
		v->step = v->begin_ns < p->step_end_ns ? p->step : EVENT_STEP_UNKNOWN;
	if (v->sort == KEPT_NOTE) {
		p->note = v->name;
		p->note_end_ns = v->end_ns;
	} else if (v->sort == KEPT_LAUNCH) {
		if (v->begin_ns <= p->note_end_ns)
			v->note = p->note;
		if (j->n_launches == UINT32_MAX - 64)
			return kineto_fail(k, "has more launches than %u", UINT32_MAX - 64);
		v->launch = ++j->n_launches;
	}
	return true;
}

static bool place_all(struct kineto *k, struct kineto_joined *j, struct runs *pairs, struct runs *asks)
{
	struct place p = { .step = EVENT_STEP_UNKNOWN, .note_end_ns = -1 };
	struct runs_reader *in = k->kept && runs_finish(k->kept) ? runs_read(k->kept) : NULL;
	const struct kept *next;
	bool fine = in || fail(k);

	while (fine && (next = runs_next(in))) {
		struct kept v = *next;

		fine = place(k, j, &p, &v);
		if (!fine)
			continue;
		if (is_device(&v) || v.sort == KEPT_LAUNCH)
			fine = add(k, pairs, &v);
		else if (v.sort == KEPT_PARAMS)
			fine = v.number < 0 || add(k, asks, &v);
		else
			fine = add(k, j->told, &v);
	}
	j->has_steps = p.has_steps;
	fine = trace_read_end(k->trace, in) && fine;
	runs_free(k->kept);
	k->kept = NULL;
	return fine;
}

/* ---- launches and their work ---- */

static void use(struct kineto_joined *j, uint32_t launch)
{
	j->used[(launch - 1) / 64] |= UINT64_C(1) << (launch - 1) % 64;
}

static bool take_work(struct kineto *k, struct kineto_joined *j, struct runs *asks, struct kept *launch,
		      const struct kept *work)
{
	struct kept v = *work;

	if (launch && launch->number == v.number) {
		use(j, launch->launch);
		v.launch = launch->launch;
		v.launched_ns = launch->begin_ns;
		v.note = launch->note;
		v.step = launch->step;
		v.external = v.external >= 0 ? v.external : launch->external;
		launch->stream = v.stream;
		launch->name = v.name;
	}
	return add(k, v.sort == KEPT_CALL && v.call == 0 && v.external >= 0 ? asks : j->told, &v);
}

static bool is_used(const struct kineto_joined *j, uint32_t launch)
{
	return j->used[(launch - 1) / 64] >> (launch - 1) % 64 & 1;
}

/* Work belongs to the step of its launch. */
static bool join_launches(struct kineto *k, struct kineto_joined *j, struct runs *pairs, struct runs *asks)
{
	struct runs_reader *in = runs_finish(pairs) ? runs_read(pairs) : NULL;
	const struct kept *v;
	struct kept launch = { 0 };
	bool has = false, fine = in || fail(k);

	while (fine && (v = runs_next(in))) {
		if (has && launch.number != v->number) {
			fine = !is_used(j, launch.launch) || add(k, j->told, &launch);
			has = false;
		}
		if (fine && is_device(v))
			fine = take_work(k, j, asks, has ? &launch : NULL, v);
		else if (fine && !has) {
			launch = *v;
			has = true;
		}
	}
	if (fine && has && is_used(j, launch.launch))
		fine = add(k, j->told, &launch);
	return trace_read_end(k->trace, in) && fine;
}

static bool count_used(struct kineto *k, struct kineto_joined *j)
{
	uint32_t n = 0, n_words = j->n_launches / 64 + 1;

	j->used_before = malloc(n_words * sizeof *j->used_before);
	if (!j->used_before)
		return fail(k);
	for (uint32_t i = 0; i < n_words; i++) {
		j->used_before[i] = n;
		n += (uint32_t)__builtin_popcountll(j->used[i]);
	}
	return true;
}

uint32_t kineto_launch(const struct kineto_joined *j, const struct kept *v)
{
	uint32_t word = (v->launch - 1) / 64, bit = (v->launch - 1) % 64;

	if (v->launch == 0)
		return 0;
	return j->used_before[word] + (uint32_t)__builtin_popcountll(j->used[word] << (63 - bit));
}

/* ---- collectives and what the host said of them ---- */

static bool join_params(struct kineto *k, struct kineto_joined *j, struct runs *asks)
{
	struct runs_reader *in = runs_finish(asks) ? runs_read(asks) : NULL;
	const struct kept *next;
	int64_t external = -1;
	uint32_t call = 0;
	bool fine = in || fail(k);

	while (fine && (next = runs_next(in))) {
		struct kept v = *next;

		if (v.sort == KEPT_CALL) {
			v.call = v.external == external ? call : 0;
			fine = add(k, j->told, &v);
		} else if (v.number != external) { /* the first of them */
			external = v.number;
			call = v.call;
		}
	}
	return trace_read_end(k->trace, in) && fine;
}

bool kineto_joined_init(struct kineto_joined *j, struct kineto *k)
{
	struct runs *pairs = new_runs(k, by_correlation), *asks = new_runs(k, by_external);
	bool fine;

	*j = (struct kineto_joined){ .told = new_runs(k, by_place) };
	fine = pairs && asks && j->told && place_all(k, j, pairs, asks);
	if (fine) {
		j->used = calloc((size_t)j->n_launches / 64 + 1, sizeof *j->used);
		fine = j->used || fail(k);
	}
	fine = fine && join_launches(k, j, pairs, asks);
	runs_free(pairs);
	fine = fine && count_used(k, j) && join_params(k, j, asks);
	runs_free(asks);
	return fine;
}

void kineto_joined_fini(struct kineto_joined *j)
{
	runs_free(j->told);
	free(j->used);
	free(j->used_before);
}

struct runs_reader *kineto_joined_read(struct kineto_joined *j, struct kineto *k)
{
	struct runs_reader *in = runs_finish(j->told) ? runs_read(j->told) : NULL;

	if (!in)
		fail(k);
	return in;
}
