/* spans_place.c - spans of threads as operations of workers, each in its step.
 *
 * In a pipeline each thread with forwards and backwards is a worker: its stage is what its
 * events say, else its place among the processes. Otherwise a process is one.
 */
#include "spans_internal.h"

#include <stdlib.h>
#include <string.h>

#define MAX_NAMED_KINDS 60 /* of spans; what comes then is summed up */

static bool works(const struct lane_id *lane)
{
	return lane->n_forward > 0 && lane->n_backward > 0;
}

static void count_works(struct spans *s)
{
	uint32_t n = 0, n_told = 0;
	int32_t first = -1;
	bool differ = false;

	for (uint32_t i = 0; i < s->n_lanes; i++)
		s->lanes[i].n_forward = s->lanes[i].n_backward = 0;
	for (uint32_t i = 0; i < s->n; i++) {
		enum role role = spans_role(spans_name(s, s->v[i].name));

		s->lanes[s->v[i].lane].n_forward += role == ROLE_FORWARD;
		s->lanes[s->v[i].lane].n_backward += role == ROLE_BACKWARD;
	}
	for (uint32_t i = 0; i < s->n_lanes; i++) {
		if (!works(&s->lanes[i]))
			continue;
		n++;
		n_told += s->lanes[i].stage >= 0;
		differ |= first >= 0 && s->lanes[i].stage != first;
		first = s->lanes[i].stage;
	}
	s->told = n > 0 && n_told == n;
	s->pipeline = n > 1 && (s->told ? differ : n_told == 0);
}

/* ---- workers ---- */

struct seat { /* of a worker, before it has its number */
	int64_t pid, tid; /* -1 = no number: in the order of the file then */
	uint32_t lane;
};

static int by_seat(const void *a, const void *b)
{
	const struct seat *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return (x->lane > y->lane) - (x->lane < y->lane);
}

static bool same_process(const struct lane_id *a, const struct lane_id *b)
{
	return strcmp(a->pid, b->pid) == 0;
}

/* Has this process a worker already? */
static uint32_t worker_of_process(const struct spans *s, const struct seat *v, size_t n, uint32_t lane)
{
	for (size_t i = n; i > 0; i--)
		if (same_process(&s->lanes[v[i - 1].lane], &s->lanes[lane]))
			return (uint32_t)(i - 1);
	return UINT32_MAX;
}

static size_t find_seats(struct spans *s, struct seat *v)
{
	size_t n = 0, n_kept = 0;

	for (uint32_t i = 0; i < s->n_lanes; i++)
		if (!s->pipeline || works(&s->lanes[i]))
			v[n++] = (struct seat){ s->lanes[i].pid_number, s->lanes[i].tid_number, i };
	if (n > 1)
		qsort(v, n, sizeof *v, by_seat);
	/* Sorted by process where that is a number; else there are few of them. */
	for (size_t i = 0; i < n && n_kept < FACT_MAX_RANKS; i++)
		if (s->pipeline || worker_of_process(s, v, n_kept, v[i].lane) == UINT32_MAX)
			v[n_kept++] = v[i];
	return n_kept;
}

/* Ranks as the file has them, where it has them for all and each once. */
static void rank_by(struct spans *s, const struct seat *v, size_t n)
{
	static const enum { BY_RANK, BY_PID, BY_PLACE } ways[] = { BY_RANK, BY_PID, BY_PLACE };

	for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
		bool fine = true;

		for (size_t i = 0; i < n && fine; i++) {
			int64_t rank = ways[w] == BY_RANK  ? s->lanes[v[i].lane].rank
				       : ways[w] == BY_PID ? v[i].pid
							   : (int64_t)i;

			fine = rank >= 0 && rank < FACT_MAX_RANKS;
			s->l.workers[i].job_rank = (int32_t)rank;
			for (size_t k = 0; k < i && fine; k++)
				fine = s->l.workers[k].job_rank != s->l.workers[i].job_rank;
		}
		if (fine)
			break;
	}
	timeline_rank_workers(&s->l);
	/* Of no pipeline each file may show some ranks only. */
	for (size_t i = 0; i < n && !s->pipeline; i++)
		s->l.workers[i].rank = s->l.workers[i].job_rank;
}

static void place_worker(struct spans *s, const struct seat *v, size_t i)
{
	const struct lane_id *lane = &s->lanes[v[i].lane];
	struct worker *w = &s->l.workers[i];

	*w = (struct worker){ .job_rank = -1 };
	if (!s->pipeline) {
		w->dp = (uint32_t)i;
		return;
	}
	w->pp = s->told ? (uint32_t)lane->stage : (uint32_t)i;
	w->tp = lane->tensor > 0 ? (uint32_t)lane->tensor : 0;
	/* Threads of one process are its tensor ranks. */
	if (lane->tensor < 0 && i > 0 && same_process(lane, &s->lanes[v[i - 1].lane]))
		w->tp = s->l.workers[i - 1].tp + 1;
	w->dp = lane->replica > 0 ? (uint32_t)lane->replica : 0;
	for (size_t k = 0; k < i && lane->replica < 0; k++)
		w->dp += s->l.workers[k].pp == w->pp && s->l.workers[k].tp == w->tp;
}

static bool make_workers(struct spans *s)
{
	struct timeline *l = &s->l;
	struct seat *v = calloc((size_t)s->n_lanes + 1, sizeof *v);
	size_t n = v ? find_seats(s, v) : 0;

	free(l->workers);
	l->workers = calloc(n + 1, sizeof *l->workers);
	l->n_workers = (uint32_t)n;
	l->n_workers_alloc = (uint32_t)n + 1;
	l->n_dp = l->n_pp = l->n_tp = 0;
	l->trace->no_memory |= !v || !l->workers;
	for (size_t i = 0; v && l->workers && i < n; i++) {
		struct worker *w = &l->workers[i];

		place_worker(s, v, i);
		l->n_dp = w->dp >= l->n_dp ? w->dp + 1 : l->n_dp;
		l->n_pp = w->pp >= l->n_pp ? w->pp + 1 : l->n_pp;
		l->n_tp = w->tp >= l->n_tp ? w->tp + 1 : l->n_tp;
	}
	for (uint32_t i = 0; v && l->workers && i < s->n_lanes; i++)
		s->lanes[i].worker = s->pipeline && works(&s->lanes[i]) ? UINT32_MAX : worker_of_process(s, v, n, i);
	for (size_t i = 0; v && l->workers && i < n; i++)
		s->lanes[v[i].lane].worker = (uint32_t)i;
	if (v && l->workers)
		rank_by(s, v, n);
	free(v);
	return !l->trace->no_memory;
}

/* ---- operations ---- */

/* The step of a lane at that time; those of a thread without are its process's. */
static const struct step_mark *step_at(const struct spans *s, uint32_t lane, int64_t at_ns)
{
	uint32_t lo = 0, hi = s->n_steps;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		const struct step_mark *m = &s->steps[mid];

		if (m->lane < lane || (m->lane == lane && m->begin_ns <= at_ns))
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == 0 || s->steps[lo - 1].lane != lane || at_ns >= s->steps[lo - 1].end_ns)
		return NULL;
	return &s->steps[lo - 1];
}

static int32_t step_of(const struct spans *s, const uint32_t *marked, const struct span *v)
{
	const struct step_mark *m;

	if (v->step >= 0)
		return v->step;
	m = step_at(s, v->lane, v->begin_ns);
	if (!m && marked[s->lanes[v->lane].worker] != UINT32_MAX)
		m = step_at(s, marked[s->lanes[v->lane].worker], v->begin_ns);
	return m ? m->number : -1;
}

static bool find_kind(struct spans *s, const struct span *v, uint8_t *ret)
{
	const char *name = spans_name(s, v->name);
	enum role role = spans_role(name);
	struct kind *k;
	uint32_t n = s->l.n_kinds;

	if (role == ROLE_MESSAGE) /* of a plain trace: of a pipeline they are left out */
		role = ROLE_WORK;
	if (n >= MAX_NAMED_KINDS && role == ROLE_WORK) {
		s->other_names = true;
		name = "other spans";
	} else if (n >= MAX_NAMED_KINDS) {
		name = role == ROLE_FORWARD ? "forward" : role == ROLE_BACKWARD ? "backward" :
		       role == ROLE_OPTIMIZER ? "optimizer" : "reduce";
	}
	if (!timeline_kind(&s->l, name[0] ? name : "span", ret))
		return false;
	k = &s->l.kinds[*ret];
	k->role = role;
	k->lane = role == ROLE_COLL ? LANE_COLL : LANE_COMPUTE;
	k->scope = role == ROLE_COLL ? SCOPE_REPLICAS : SCOPE_ALONE;
	k->ideal = *ret;
	return true;
}

static bool add_op(struct spans *s, const struct op *op)
{
	s->l.interleaved |= op->chunk > 0;
	return timeline_add(&s->l, op);
}

static bool take_spans(struct spans *s, const uint32_t *marked)
{
	int64_t busy_ns = INT64_MIN; /* until then it computes */

	for (uint32_t i = 0; i < s->n; i++) {
		const struct span *v = &s->v[i];
		enum role role = spans_role(spans_name(s, v->name));
		bool compute = role == ROLE_FORWARD || role == ROLE_BACKWARD;
		struct op op = { .begin_ns = v->begin_ns, .end_ns = v->end_ns, .worker = s->lanes[v->lane].worker,
				 .micro = v->micro, .chunk = (int16_t)(v->chunk <= INT16_MAX ? v->chunk : -1), .seq = -1, .join = UINT32_MAX };
		int32_t step;

		if (i == 0 || s->v[i - 1].lane != v->lane)
			busy_ns = INT64_MIN;
		if (op.worker == UINT32_MAX || (s->pipeline && role == ROLE_MESSAGE) ||
		    (compute && v->begin_ns < busy_ns)) /* part of what is there */
			continue;
		step = s->no_steps ? 0 : step_of(s, marked, v);
		s->n_outside += step < 0;
		if (step < 0)
			continue;
		if (compute)
			busy_ns = v->end_ns;
		op.step = (uint32_t)step;
		if (!find_kind(s, v, &op.kind) || !add_op(s, &op))
			return false;
	}
	return s->l.n_ops > 0 || timeline_fail(&s->l, "has no span that belongs to a step");
}

/* By worker: the lane whose steps are its. One each, whatever other threads mark. */
static bool take_steps(struct spans *s, uint32_t *marked)
{
	uint8_t kind;

	for (uint32_t i = 0; i < s->n_steps; i++) {
		const struct step_mark *m = &s->steps[i];
		uint32_t worker = s->lanes[m->lane].worker;
		struct op op = { .begin_ns = m->begin_ns, .end_ns = m->end_ns, .worker = worker, .micro = -1, .chunk = -1,
				 .seq = -1, .join = UINT32_MAX, .step = (uint32_t)m->number };

		if (worker == UINT32_MAX || m->number < 0)
			continue;
		if (marked[worker] == UINT32_MAX)
			marked[worker] = m->lane;
		if (marked[worker] != m->lane || m->end_ns == INT64_MAX)
			continue;
		if (!timeline_kind(&s->l, "the step", &kind))
			return false;
		s->l.kinds[kind].role = ROLE_STEP;
		op.kind = kind;
		if (!add_op(s, &op))
			return false;
	}
	return true;
}

bool spans_place(struct spans *s)
{
	uint32_t *marked;
	bool fine;

	if (!s->l.unplaced && !s->l.workers)
		count_works(s);
	s->l.n_ops = s->l.n_kinds = 0;
	s->l.interleaved = s->l.linked = false;
	s->n_outside = 0;
	if (!make_workers(s))
		return false;
	s->l.unplaced = !s->pipeline;
	s->l.not_replayed = s->pipeline ? "it has no messages" : "it is no pipeline's";
	marked = malloc(((size_t)s->l.n_workers + 1) * sizeof *marked);
	s->l.trace->no_memory |= !marked;
	if (!marked)
		return false;
	memset(marked, 0xff, ((size_t)s->l.n_workers + 1) * sizeof *marked);
	fine = take_steps(s, marked) && take_spans(s, marked);
	free(marked);
	return fine;
}
