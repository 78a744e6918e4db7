#include "timeline_internal.h"
#include "trace_events.h"

#include "../graph/replay.h"

#include <ctype.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_THREADS 65536
#define MAX_KINDS 64
#define MAX_COORDINATE 65535
#define N_THREADS_OF_RANK 5 /* the writer numbers them so: 5 * rank + which */

bool timeline_fail(struct timeline *l, const char *fmt, ...)
{
	va_list ap;

	if (l->why[0])
		return false;
	va_start(ap, fmt);
	vsnprintf(l->why, l->n_why, fmt, ap);
	va_end(ap);
	return false;
}

bool timeline_grow(struct timeline *l, void *v, uint32_t n, uint32_t *n_alloc, size_t size, uint32_t max)
{
	uint32_t want = *n_alloc ? 2 * *n_alloc : 64;
	void *grown;

	if (n < *n_alloc)
		return true;
	if (n >= max)
		return timeline_fail(l, "has more than %u parts of one sort", max);
	grown = realloc(*(void **)v, want * size);
	if (!grown) {
		l->trace->no_memory = true;
		return false;
	}
	*(void **)v = grown;
	*n_alloc = want;
	return true;
}

/* ---- events ---- */

static bool find_thread(struct timeline *l, const struct trace_event *ev, uint32_t *ret)
{
	char key[2 * sizeof ev->pid];
	const json_t *known;

	snprintf(key, sizeof key, "%s\t%s", ev->pid, ev->tid);
	known = json_object_get(l->thread_ids, key);
	if (known) {
		*ret = (uint32_t)json_integer_value(known);
		return true;
	}
	if (!timeline_grow(l, &l->threads, l->n_threads, &l->n_threads_alloc, sizeof *l->threads, MAX_THREADS))
		return false;
	if (json_object_set_new(l->thread_ids, key, json_integer(l->n_threads)) != 0)
		return timeline_fail(l, "has a thread whose name is no text");
	*ret = l->n_threads++;
	l->threads[*ret] = (struct thread){ .worker = UINT32_MAX };
	snprintf(l->threads[*ret].pid, sizeof l->threads->pid, "%s", ev->pid);
	snprintf(l->threads[*ret].tid, sizeof l->threads->tid, "%s", ev->tid);
	return true;
}

static struct kind kind_of(const char *name)
{
	static const struct {
		const char *name;
		enum role role;
		enum lane lane;
		enum scope scope;
	} known[] = {
		{ "forward-compute", ROLE_FORWARD, LANE_COMPUTE, SCOPE_ALONE },
		{ "backward-compute", ROLE_BACKWARD, LANE_COMPUTE, SCOPE_ALONE },
		{ "optimizer", ROLE_OPTIMIZER, LANE_COMPUTE, SCOPE_ALONE },
		{ "forward-send", ROLE_MESSAGE, LANE_FORWARD_SEND, SCOPE_ALONE },
		{ "forward-recv", ROLE_MESSAGE, LANE_FORWARD_RECV, SCOPE_ALONE },
		{ "backward-send", ROLE_MESSAGE, LANE_BACKWARD_SEND, SCOPE_ALONE },
		{ "backward-recv", ROLE_MESSAGE, LANE_BACKWARD_RECV, SCOPE_ALONE },
		{ "params-all-gather", ROLE_COLL, LANE_COLL, SCOPE_REPLICAS },
		{ "grads-reduce-scatter", ROLE_COLL, LANE_COLL, SCOPE_REPLICAS },
		{ "grads-all-reduce", ROLE_COLL, LANE_COLL, SCOPE_REPLICAS },
		{ "layernorm-grads-all-reduce", ROLE_COLL, LANE_COLL, SCOPE_ALONE },
		{ "embedding-grads-all-reduce", ROLE_COLL, LANE_COLL, SCOPE_STAGES },
		{ "optimizer-clip-main-grad", ROLE_COLL, LANE_COLL, SCOPE_ALL },
	};
	struct kind k = { .role = ROLE_WORK };

	snprintf(k.name, sizeof k.name, "%.63s", name);
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (strcmp(known[i].name, k.name) == 0) {
			k.role = known[i].role;
			k.lane = known[i].lane;
			k.scope = known[i].scope;
		}
	return k;
}

bool timeline_add(struct timeline *l, const struct op *op)
{
	if (l->n_ops == TIMELINE_MAX_OPS)
		return timeline_fail(l, "has more than %u operations: import it in parts of fewer steps", TIMELINE_MAX_OPS);
	if (!timeline_grow(l, &l->ops, l->n_ops, &l->n_ops_alloc, sizeof *l->ops, TIMELINE_MAX_OPS))
		return false;
	l->ops[l->n_ops++] = *op;
	return true;
}

bool timeline_kind(struct timeline *l, const char *name, uint8_t *ret)
{
	struct kind k = kind_of(name);

	for (*ret = 0; *ret < l->n_kinds; ++*ret)
		if (strcmp(l->kinds[*ret].name, k.name) == 0)
			return true;
	if (!timeline_grow(l, &l->kinds, l->n_kinds, &l->n_kinds_alloc, sizeof *l->kinds, MAX_KINDS))
		return false;
	k.ideal = l->n_kinds;
	/* Both ends of a message are one transfer. */
	for (uint32_t i = 0; i < l->n_kinds && k.role == ROLE_MESSAGE; i++)
		if (l->kinds[i].role == ROLE_MESSAGE && l->kinds[i].name[0] == k.name[0])
			k.ideal = i;
	l->kinds[l->n_kinds++] = k;
	return true;
}

static int32_t small(int64_t v)
{
	return v >= 0 && v < INT32_MAX ? (int32_t)v : -1;
}

static bool take_span(struct timeline *l, const struct trace_event *ev)
{
	int64_t step = ev->numbers[TRACE_STEP];
	struct op op = { .begin_ns = ev->ts_ns,
			 .micro = small(ev->numbers[TRACE_MICRO]),
			 .seq = small(ev->numbers[TRACE_SEQ]),
			 .chunk = (int16_t)(ev->numbers[TRACE_CHUNK] <= INT16_MAX ? small(ev->numbers[TRACE_CHUNK]) : -1),
			 .join = REPLAY_ALONE };

	if (!ev->has_time || !ev->has_duration || step == TRACE_NO_NUMBER)
		return timeline_fail(l, "has an event \"%.60s\" without time, duration or step", ev->name);
	if (step < 0 || step >= EVENT_STEP_UNKNOWN - 1)
		return timeline_fail(l, "has a step number that cannot be");
	if (ev->ts_ns < 0 || ev->dur_ns < 0 || ev->ts_ns >= INT64_C(1) << 52 ||
	    ev->dur_ns >= INT64_C(1) << 52)
		return timeline_fail(l, "has an event at a time that cannot be");
	op.end_ns = op.begin_ns + ev->dur_ns;
	op.step = (uint32_t)step; /* its number; an index once sorted */
	l->interleaved |= op.chunk > 0;
	return find_thread(l, ev, &op.worker) && timeline_kind(l, ev->name, &op.kind) && timeline_add(l, &op);
}

static bool take_name(struct timeline *l, const struct trace_event *ev)
{
	const char *text = ev->texts[TRACE_NAME];
	unsigned pp, tp;
	char *end;
	uint32_t i;
	long dp;

	if (strcmp(ev->name, "thread_name") != 0 ||
	    sscanf(text, "PP rank %u, TP rank %u,", &pp, &tp) != 2)
		return true;
	dp = strtol(ev->pid, &end, 10);
	if (*end || end == ev->pid || dp < 0 || dp > MAX_COORDINATE || pp > MAX_COORDINATE ||
	    tp > MAX_COORDINATE)
		return timeline_fail(l, "names a worker that cannot be: \"%.60s\"", text);
	if (!find_thread(l, ev, &i))
		return false;
	l->threads[i].named = true;
	l->threads[i].talks = strstr(text, "-comm") != NULL;
	l->threads[i].dp = (uint32_t)dp;
	l->threads[i].pp = pp;
	l->threads[i].tp = tp;
	return true;
}

static bool read_events(struct timeline *l, struct trace_events *s)
{
	enum trace_events_got got;
	struct trace_event ev;

	while ((got = trace_events_next(s, &ev)) == TRACE_EVENTS_ONE)
		if ((ev.phase == 'X' && !take_span(l, &ev)) || (ev.phase == 'M' && !take_name(l, &ev)))
			return false;
	if (got == TRACE_EVENTS_BAD)
		return timeline_fail(l, "%s", trace_events_why(s));
	if (!trace_events_is_list(s) || trace_events_unclosed(s))
		return timeline_fail(l, trace_events_unclosed(s) ? "is not whole: its list of events does not end"
								 : "is no list of events");
	return true;
}

/* ---- who is who ---- */

static bool find_workers(struct timeline *l)
{
	for (uint32_t i = 0; i < l->n_threads; i++) {
		struct thread *t = &l->threads[i];
		uint32_t k = 0;

		if (!t->named)
			continue;
		while (k < l->n_workers && (l->workers[k].dp != t->dp || l->workers[k].pp != t->pp ||
					    l->workers[k].tp != t->tp))
			k++;
		if (k == l->n_workers) {
			if (!timeline_grow(l, &l->workers, l->n_workers, &l->n_workers_alloc, sizeof *l->workers,
				  FACT_MAX_RANKS))
				return false;
			l->workers[l->n_workers++] =
				(struct worker){ .dp = t->dp, .pp = t->pp, .tp = t->tp, .job_rank = -1 };
		}
		t->worker = k;
		l->n_dp = t->dp >= l->n_dp ? t->dp + 1 : l->n_dp;
		l->n_pp = t->pp >= l->n_pp ? t->pp + 1 : l->n_pp;
		l->n_tp = t->tp >= l->n_tp ? t->tp + 1 : l->n_tp;
	}
	for (uint32_t i = 0; i < l->n_ops; i++) {
		struct kind *k = &l->kinds[l->ops[i].kind];

		if (k->role == ROLE_WORK && l->threads[l->ops[i].worker].talks) { /* one we do not know */
			k->role = ROLE_COLL;
			k->lane = LANE_COLL;
		}
		l->ops[i].worker = l->threads[l->ops[i].worker].worker;
		if (l->ops[i].worker == UINT32_MAX)
			return timeline_fail(l, "has events of a thread that no name places in a pipeline");
	}
	return l->n_ops > 0 || timeline_fail(l, "has no event with a duration");
}

/* The writer numbers threads by rank; where that does not hold, workers are numbered as
 * they are usually laid out. Of a worker's tensor ranks only one is in the file, so the
 * ranks of the catalogue are the workers, in the order of their ranks in the job. */
static void number_ranks(struct timeline *l)
{
	bool by_thread = true;

	for (uint32_t i = 0; i < l->n_threads && by_thread; i++) {
		const struct thread *t = &l->threads[i];
		char *end;
		long tid = strtol(t->tid, &end, 10);
		struct worker *w;

		if (!t->named)
			continue;
		w = &l->workers[t->worker];
		by_thread = *end == '\0' && end != t->tid && tid >= 0 &&
			    tid / N_THREADS_OF_RANK < FACT_MAX_RANKS &&
			    (w->job_rank < 0 || w->job_rank == tid / N_THREADS_OF_RANK);
		w->job_rank = (int32_t)(tid / N_THREADS_OF_RANK);
	}
	for (uint32_t i = 0; i < l->n_workers && by_thread; i++)
		for (uint32_t k = 0; k < i && by_thread; k++)
			by_thread = l->workers[i].job_rank != l->workers[k].job_rank;
	for (uint32_t i = 0; i < l->n_workers && !by_thread; i++) {
		struct worker *w = &l->workers[i];

		w->job_rank = (int32_t)((w->pp * l->n_dp + w->dp) * l->n_tp + w->tp);
	}
	timeline_rank_workers(l);
}

void timeline_rank_workers(struct timeline *l)
{
	for (uint32_t i = 0; i < l->n_workers; i++)
		for (uint32_t k = 0; k < l->n_workers; k++)
			l->workers[i].rank += l->workers[k].job_rank < l->workers[i].job_rank;
}

/* ---- order ---- */

static int by_number(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static int by_place(const void *a, const void *b)
{
	const struct op *x = a, *y = b;

	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	if (x->worker != y->worker)
		return x->worker < y->worker ? -1 : 1;
	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	if (x->end_ns != y->end_ns)
		return x->end_ns < y->end_ns ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return (x->seq > y->seq) - (x->seq < y->seq);
}

static bool number_steps(struct timeline *l)
{
	uint32_t n = 0, at = 0;

	l->steps = calloc(l->n_ops, sizeof *l->steps);
	if (!l->steps) {
		l->trace->no_memory = true;
		return false;
	}
	for (uint32_t i = 0; i < l->n_ops; i++)
		l->steps[i] = l->ops[i].step;
	qsort(l->steps, l->n_ops, sizeof *l->steps, by_number);
	for (uint32_t i = 0; i < l->n_ops; i++)
		if (n == 0 || l->steps[n - 1] != l->steps[i])
			l->steps[n++] = l->steps[i];
	l->n_steps = n;
	qsort(l->ops, l->n_ops, sizeof *l->ops, by_place);
	for (uint32_t i = 0; i < l->n_ops; i++) {
		while (l->steps[at] != l->ops[i].step)
			at++;
		l->ops[i].step = at;
	}
	return true;
}

static void span_of_step(const struct timeline *l, uint32_t *at, int64_t *ret_begin, int64_t *ret_end)
{
	uint32_t step = l->ops[*at].step;

	*ret_begin = INT64_MAX;
	*ret_end = 0;
	for (; *at < l->n_ops && l->ops[*at].step == step; ++*at) {
		const struct op *op = &l->ops[*at];

		*ret_begin = op->begin_ns < *ret_begin ? op->begin_ns : *ret_begin;
		*ret_end = op->end_ns > *ret_end ? op->end_ns : *ret_end;
	}
}

/* Sampled steps are drawn a tenth of a step apart. That is the drawing's, not the
 * job's: where every gap is so, the steps are moved together. */
static void close_gaps(struct timeline *l)
{
	int64_t begin_ns, end_ns, before_begin_ns = 0, before_end_ns = 0, moved_ns = 0;
	bool drawn = l->n_steps > 1;

	for (int pass = 0; pass < 2 && drawn; pass++)
		for (uint32_t at = 0; at < l->n_ops && drawn;) {
			uint32_t from = at;
			int64_t gap_ns, tenth_ns = (before_end_ns - before_begin_ns) / 10;

			span_of_step(l, &at, &begin_ns, &end_ns);
			gap_ns = from > 0 ? begin_ns - before_end_ns : 0;
			if (pass == 0)
				drawn = from == 0 || llabs(gap_ns - tenth_ns) <= tenth_ns / 100;
			moved_ns += pass * gap_ns;
			for (uint32_t i = from; i < at && pass == 1; i++) {
				l->ops[i].begin_ns -= moved_ns;
				l->ops[i].end_ns -= moved_ns;
			}
			before_begin_ns = begin_ns;
			before_end_ns = end_ns;
		}
}

void timeline_free(struct timeline *l)
{
	free(l->ops);
	free(l->threads);
	free(l->kinds);
	free(l->workers);
	free(l->steps);
	json_decref(l->thread_ids);
}

/* What a reader of the catalogue has to know of it, in why. */
static void say_what_differs(struct timeline *l)
{
	bool renumbered = false;
	size_t at = 0;

	for (uint32_t i = 0; i < l->n_workers; i++)
		renumbered |= l->workers[i].rank != l->workers[i].job_rank;
	if (renumbered)
		at = (size_t)snprintf(l->why, l->n_why,
				      "ok; its ranks are the %u workers that it shows, in the order of their ranks in "
				      "the job (record meta.parallel: rank_in_job)",
				      l->n_workers);
	if (l->not_replayed && at < l->n_why)
		snprintf(l->why + at, l->n_why - at, "%s; it is not replayed: %s", at ? "" : "ok", l->not_replayed);
}

bool timeline_finish(struct timeline *l)
{
	if (!number_steps(l))
		return false;
	if (!l->linked && !l->unplaced)
		close_gaps(l);
	return timeline_join(l) && (l->not_replayed || timeline_what_if(l)) && timeline_tell(l) && timeline_put_rows(l);
}

bool timeline_read(struct trace *t, struct trace_events *s, uint64_t *ret_n_events, char *why, size_t n_why)
{
	struct timeline l = { .trace = t, .why = why, .n_why = n_why };
	bool fine;

	why[0] = '\0';
	l.thread_ids = json_object();
	t->no_memory |= !l.thread_ids;
	fine = l.thread_ids && read_events(&l, s) && find_workers(&l);
	if (fine && t->n_ranks > 0)
		fine = timeline_fail(&l, "has a whole job, and a file before it is of one, too: import each on its own");
	if (fine)
		number_ranks(&l);
	fine = fine && timeline_finish(&l);
	*ret_n_events = l.n_ops;
	if (fine) {
		say_what_differs(&l);
		trace_events_remark(s, why, n_why);
	}
	timeline_free(&l);
	return fine;
}

/* A list; logs, too, begin with a bracket, and a word or number behind it. */
static bool is_timeline(const struct import_head *h)
{
	const unsigned char *at = memchr(h->bytes, '[', h->n_bytes), *end = h->bytes + h->n_bytes;

	if (head_first(h) != '[')
		return false;
	for (at++; at < end && isspace(*at);)
		at++;
	return at == end || !isalnum(*at);
}

static enum import_outcome read_file(struct trace *t, struct trace_input *in, bytes_fn read, void *arg, char *why,
				     size_t n_why)
{
	struct trace_events *s = trace_events_open(read, arg, NULL);
	bool fine = s && timeline_read(t, s, &in->n_events, why, n_why);

	t->no_memory |= !s;
	trace_events_close(s);
	return fine ? IMPORT_OK : IMPORT_FAILED;
}

const struct import_format format_timeline = { "StragglerAnalysis timeline", is_timeline, read_file, NULL };
