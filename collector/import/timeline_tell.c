/* timeline_tell.c - a timeline as the events that probes would have given.
 *
 * One rank a worker. What the file times are its device's operations: each is told as
 * a launch and what ran. A rank is in a call from when it had nothing else to do: the
 * gap before a collective is its wait. Computation is the loop's phase, too, since the
 * file knows one time for both.
 */
#include "timeline_internal.h"

#include "../graph/replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STREAM_COMPUTE = 1, STREAM_MESSAGES, STREAM_COLLS };
#define MICRO_NONE 0

struct teller {
	struct timeline *l;
	uint32_t *launches; /* by worker */
	uint32_t *numbers;  /* by worker and kind: calls */
	bool full;
};

static void say(struct teller *w, const struct op *op, unsigned ring, int64_t at_ns, enum event_kind kind,
		unsigned flags, uint32_t name, uint32_t low, uint64_t b)
{
	struct event ev = { .tick = (uint64_t)at_ns, .kind = (uint16_t)kind, .flags = (uint16_t)flags,
			    .name = name, .a = event_a((uint32_t)w->l->steps[op->step], low), .b = b };

	w->full |= !trace_say(w->l->trace, &w->l->trace->ranks[op->worker], ring, &ev);
}

static uint32_t name_of(struct teller *w, const struct op *op, const char *name)
{
	return trace_name(w->l->trace, &w->l->trace->ranks[op->worker], name);
}

static void tell_compute(struct teller *w, const struct op *op)
{
	const struct kind *k = &w->l->kinds[op->kind];
	uint32_t name = name_of(w, op, k->name);
	uint32_t launch = ++w->launches[op->worker];
	uint32_t micro = op->micro >= 0 ? (uint32_t)op->micro : MICRO_NONE;
	unsigned phase = k->role == ROLE_FORWARD     ? PHASE_FORWARD
			 : k->role == ROLE_BACKWARD  ? PHASE_BACKWARD
			 : k->role == ROLE_OPTIMIZER ? PHASE_OPTIMIZER
						     : PHASE_NONE;

	if (op->end_ns <= op->begin_ns)
		return;
	if (phase == PHASE_NONE) {
		say(w, op, TRACE_HOST, op->begin_ns, EVENT_WORK_BEGIN, 0, name, 0, 0);
		say(w, op, TRACE_HOST, op->end_ns, EVENT_WORK_END, 0, name, 0, 0);
		return;
	}
	say(w, op, TRACE_HOST, op->begin_ns, EVENT_PHASE_BEGIN, phase, 0, micro, 0);
	say(w, op, TRACE_HOST, op->begin_ns, EVENT_LAUNCH, STREAM_COMPUTE, name, launch, 0);
	say(w, op, TRACE_HOST, op->end_ns, EVENT_PHASE_END, phase, 0, micro, 0);
	say(w, op, TRACE_DEVICE, op->begin_ns, EVENT_KERNEL_BEGIN, STREAM_COMPUTE, name, launch, 0);
	say(w, op, TRACE_DEVICE, op->end_ns, EVENT_KERNEL_END, STREAM_COMPUTE, name, launch, 0);
}

static const struct worker *worker_at(const struct timeline *l, uint32_t dp, uint32_t pp, uint32_t tp)
{
	for (uint32_t i = 0; i < l->n_workers; i++)
		if (l->workers[i].dp == dp && l->workers[i].pp == pp && l->workers[i].tp == tp)
			return &l->workers[i];
	return NULL;
}

static void tell_call(struct teller *w, const struct op *op, const char *group, enum event_op what)
{
	bool linked = w->l->linked && w->l->kinds[op->kind].role == ROLE_MESSAGE;
	uint32_t number = linked ? (uint32_t)op->seq : w->numbers[op->worker * w->l->n_kinds + op->kind]++;
	uint32_t name = name_of(w, op, group);
	uint16_t flags = event_coll_flags(what, DTYPE_UNKNOWN);

	unsigned stream = what == OP_SEND || what == OP_RECV ? STREAM_MESSAGES : STREAM_COLLS;
	uint32_t launch = ++w->launches[op->worker];

	if (op->end_ns <= op->ready_ns)
		return;
	say(w, op, TRACE_HOST, op->ready_ns, EVENT_LAUNCH, stream, 0, launch, 0);
	say(w, op, TRACE_HOST, op->ready_ns, EVENT_COLL_SUBMIT, flags, name, number,
	    event_submit_b(-1, launch));
	say(w, op, TRACE_DEVICE, op->ready_ns, EVENT_COLL_BEGIN, flags, name, number, 0);
	say(w, op, TRACE_DEVICE, op->end_ns, EVENT_COLL_END, flags, name, number, 0);
}

static void tell_message(struct teller *w, const struct op *op)
{
	const struct timeline *l = w->l;
	const struct kind *k = &l->kinds[op->kind];
	const struct worker *me = &l->workers[op->worker];
	bool send = k->lane == LANE_FORWARD_SEND || k->lane == LANE_BACKWARD_SEND;
	bool up = k->lane == LANE_FORWARD_SEND || k->lane == LANE_BACKWARD_RECV; /* to the next stage */
	const struct worker *peer = worker_at(l, me->dp, up ? me->pp + 1 : me->pp - 1, me->tp);
	char group[64];

	if (!peer)
		return;
	snprintf(group, sizeof group, "pipeline p2p %d>%d", send ? me->rank : peer->rank,
		 send ? peer->rank : me->rank);
	tell_call(w, op, group, send ? OP_SEND : OP_RECV);
}

static enum event_op op_of(const char *name)
{
	if (strstr(name, "all-gather"))
		return OP_ALL_GATHER;
	if (strstr(name, "reduce-scatter"))
		return OP_REDUCE_SCATTER;
	return strstr(name, "all-reduce") ? OP_ALL_REDUCE : OP_UNKNOWN;
}

/* Each sort of collective has a group of its own: the file does not tell communicators. */
static void name_group(const struct timeline *l, const struct op *op, char *out, size_t n_out)
{
	const struct kind *k = &l->kinds[op->kind];
	const struct worker *me = &l->workers[op->worker];
	char tensor[32] = "";

	if (l->n_tp > 1)
		snprintf(tensor, sizeof tensor, ", tensor rank %u", me->tp);
	if (op->join == REPLAY_ALONE || k->scope == SCOPE_ALONE)
		snprintf(out, n_out, "%s, rank %d", k->name, me->rank);
	else if (k->scope == SCOPE_REPLICAS)
		snprintf(out, n_out, "%s, stage %u%s", k->name, me->pp, tensor);
	else if (k->scope == SCOPE_STAGES)
		snprintf(out, n_out, "%s, replica %u%s", k->name, me->dp, tensor);
	else
		snprintf(out, n_out, "%s", k->name);
}

/* Members are those that are in this call. */
static bool tell_group(struct timeline *l, const struct op *op, const char *name)
{
	int32_t *ranks = calloc((size_t)l->n_workers + 1, sizeof *ranks);
	uint32_t n = 0;
	bool fine = ranks != NULL;

	l->trace->no_memory |= !fine;
	for (uint32_t i = 0; fine && i < l->n_ops; i++)
		if (&l->ops[i] == op || (op->join != REPLAY_ALONE && l->ops[i].join == op->join))
			ranks[n++] = l->workers[l->ops[i].worker].rank;
	fine = fine && trace_group(l->trace, name, ranks, n);
	free(ranks);
	return fine;
}

static void tell_coll(struct teller *w, const struct op *op)
{
	const struct kind *k = &w->l->kinds[op->kind];
	char group[160];

	name_group(w->l, op, group, sizeof group);
	if (!trace_has_group(w->l->trace, group) && !tell_group(w->l, op, group))
		w->full = true;
	tell_call(w, op, group, op_of(k->name));
}

/* A rank's step is from its first operation to its last, those included that mark it. */
static void tell_step(struct teller *w, uint32_t from, uint32_t to)
{
	const struct op *first = &w->l->ops[from], *last = first;

	for (uint32_t i = from; i < to; i++)
		if (w->l->ops[i].end_ns > last->end_ns)
			last = &w->l->ops[i];
	if (last->end_ns <= first->begin_ns)
		return;
	say(w, first, TRACE_HOST, first->begin_ns, EVENT_STEP_BEGIN, 0, 0, 0, 0);
	for (uint32_t i = from; i < to; i++) {
		const struct op *op = &w->l->ops[i];

		if (w->l->kinds[op->kind].role == ROLE_MESSAGE)
			tell_message(w, op);
		else if (w->l->kinds[op->kind].role == ROLE_COLL)
			tell_coll(w, op);
		else if (w->l->kinds[op->kind].role != ROLE_STEP)
			tell_compute(w, op);
	}
	say(w, last, TRACE_HOST, last->end_ns, EVENT_STEP_END, 0, 0, 0, 0);
}

static bool make_ranks(struct timeline *l)
{
	struct trace *t = l->trace;
	char text[256];

	for (uint32_t i = 0; i < l->n_workers; i++) {
		const struct worker *k = &l->workers[i];
		struct trace_rank *r = trace_add_rank(t, k->rank, "timeline");

		snprintf(text, sizeof text,
			 "{\"dp\":%u,\"pp\":%u,\"tp\":%u,\"stage\":%u,\"rank_in_job\":%d}", k->dp, k->pp, k->tp,
			 k->pp, k->job_rank);
		if (!r || (!l->unplaced && !trace_note(t, r, 0, "meta.parallel", text)))
			return false;
	}
	if (!l->unplaced)
		snprintf(t->layout, sizeof t->layout, "{\"dp\":%u,\"pp\":%u,\"workers\":%u}", l->n_dp, l->n_pp,
		 l->n_workers);
	t->world_size = l->unplaced ? 0 : (int32_t)l->n_workers;
	t->clock_method = "one clock: the file's own time line";
	return true;
}

bool timeline_tell(struct timeline *l)
{
	struct teller w = { .l = l, .launches = calloc((size_t)l->n_workers + 1, sizeof *w.launches),
			    .numbers = calloc((size_t)l->n_workers * l->n_kinds + 1, sizeof *w.numbers) };
	bool fine = w.launches && w.numbers;

	l->trace->no_memory |= !fine;
	fine = fine && make_ranks(l);
	for (uint32_t from = 0, to; fine && from < l->n_ops; from = to) {
		for (to = from; to < l->n_ops && l->ops[to].step == l->ops[from].step &&
				l->ops[to].worker == l->ops[from].worker;)
			to++;
		tell_step(&w, from, to);
	}
	free(w.launches);
	free(w.numbers);
	return fine && !w.full;
}
