#include "nccl_perf.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define MAX_GROUPS 256 /* whose members are looked for */
#define MAX_TIME_NS ((INT64_C(1) << 61) - 1) /* of stamps: now is 1.8e18 */

bool nccl_perf_put(struct trace *t, const struct nccl_perf *v)
{
	return trace_row(t, "nccl_perf", "tiitittiiiitrrttiiii", v->comm, v->n_ranks, v->rank, v->host, v->pid,
			 v->kind, v->op, v->sn, v->peer, v->bytes, v->exec_ns, v->timing, v->algbw_gbs, v->busbw_gbs,
			 v->algorithm, v->protocol, v->enqueue_ns, v->enqueue_dur_ns, v->begin_ns, v->end_ns);
}

struct process { /* one that recorded calls */
	const char *host;
	int64_t pid, n_ranks, rank; /* of its largest communicator */
	struct trace_rank *to;	    /* NULL = its events are not told */
	uint32_t n_launches;
};

struct perf_join {
	struct trace *t;
	uint32_t n_rows;
	struct process *v;
	uint32_t n;
	struct nccl_timed *timed;
	size_t n_timed;
	json_t *ids, *groups; /* groups: name -> number */
};

static struct process *process_of(const struct perf_join *j, const struct trace_row *r)
{
	char id[NCCL_HOST + 24];
	const json_t *known;

	snprintf(id, sizeof id, "%s %lld", nccl_text(r, PERF_HOST), (long long)nccl_int(r, PERF_PID));
	known = json_object_get(j->ids, id);
	return known ? &j->v[json_integer_value(known)] : NULL;
}

/* Its rank in the largest communicator is its rank in the job. Without sizes it is the
 * highest: in a part of the job a rank is never behind its place in the whole. */
static void take_rank(struct process *p, const struct trace_row *r)
{
	int64_t n_ranks = nccl_int(r, PERF_N_RANKS), rank = nccl_int(r, PERF_RANK);

	if (n_ranks > p->n_ranks || (n_ranks == p->n_ranks && rank > p->rank)) {
		p->n_ranks = n_ranks;
		p->rank = rank;
	}
}

static bool is_timed(const struct trace_row *r)
{
	int64_t begin_ns = nccl_int(r, PERF_BEGIN_NS), end_ns = nccl_int(r, PERF_END_NS), sn = nccl_int(r, PERF_SN);

	return begin_ns >= 0 && end_ns > begin_ns && end_ns < MAX_TIME_NS && sn >= 0 && sn < UINT32_MAX &&
	       strcmp(nccl_text(r, PERF_KIND), "coll") == 0;
}

static bool take_process(struct perf_join *j, const struct trace_row *r)
{
	struct process *p = process_of(j, r);
	char id[NCCL_HOST + 24];

	if (nccl_int(r, PERF_RANK) < 0 || nccl_int(r, PERF_RANK) >= FACT_MAX_RANKS)
		return true;
	if (!p) {
		snprintf(id, sizeof id, "%s %lld", nccl_text(r, PERF_HOST), (long long)nccl_int(r, PERF_PID));
		if (json_object_set_new(j->ids, id, json_integer(j->n)) != 0)
			return false;
		p = &j->v[j->n++];
		*p = (struct process){ .host = nccl_text(r, PERF_HOST), .pid = nccl_int(r, PERF_PID),
				       .n_ranks = TRACE_NULL, .rank = -1 };
	}
	take_rank(p, r);
	return true;
}

static bool add_rank(struct perf_join *j, const struct process *p)
{
	struct trace_rank *r = trace_add_rank(j->t, (int32_t)p->rank, p->host[0] ? p->host : "of NCCL");

	if (!r)
		return false;
	r->clock = j->t->n_ranks - 1;
	for (uint32_t k = 0; k + 1 < j->t->n_ranks && p->host[0]; k++)
		if (strcmp(j->t->ranks[k].host, p->host) == 0) {
			r->clock = j->t->ranks[k].clock;
			break;
		}
	return true;
}

/* Of two processes that would be one rank the first is told, and none that another file
 * has told of. */
static bool add_ranks(struct perf_join *j)
{
	uint32_t *at = calloc(FACT_MAX_RANKS, sizeof *at); /* index + 1, by rank */
	bool *told = calloc(FACT_MAX_RANKS, sizeof *told), fine = at && told;

	for (uint32_t i = 0; i < j->t->n_ranks && fine; i++) {
		at[j->t->ranks[i].rank] = i + 1;
		told[j->t->ranks[i].rank] = trace_has_events(&j->t->ranks[i]);
	}
	for (uint32_t i = 0; i < j->n && fine; i++)
		if (!at[j->v[i].rank]) {
			fine = add_rank(j, &j->v[i]);
			at[j->v[i].rank] = j->t->n_ranks;
		}
	for (uint32_t i = 0; i < j->n && fine; i++) { /* adding moved them */
		int64_t rank = j->v[i].rank;

		j->v[i].to = told[rank] ? NULL : &j->t->ranks[at[rank] - 1];
		told[rank] = true;
	}
	free(at);
	free(told);
	return fine;
}

/* Calls are numbered by operation. */
static void name_group(const struct trace_row *r, char *out, size_t n_out)
{
	snprintf(out, n_out, "%.47s %.31s", nccl_text(r, PERF_COMM), nccl_text(r, PERF_OP));
}

static struct event event_of(int64_t at_ns, enum event_kind kind, unsigned flags, uint32_t name, uint32_t low, uint64_t b)
{
	return (struct event){ .tick = (uint64_t)at_ns, .kind = (uint16_t)kind, .flags = (uint16_t)flags, .name = name,
			       .a = event_a(EVENT_STEP_UNKNOWN, low), .b = b };
}

static bool tell(struct perf_join *j, struct process *p, const struct trace_row *r, uint32_t number)
{
	int64_t begin_ns = nccl_int(r, PERF_BEGIN_NS), enqueue_ns = nccl_int(r, PERF_ENQUEUE_NS);
	int64_t bytes = nccl_int(r, PERF_BYTES);
	uint16_t flags = event_coll_flags((enum event_op)nccl_event_op(nccl_text(r, PERF_OP)), DTYPE_UNKNOWN);
	uint32_t sn = (uint32_t)nccl_int(r, PERF_SN), launch, name;
	struct event launched, submitted, begun, ended;
	char group[NCCL_KEY + 32];

	name_group(r, group, sizeof group);
	name = trace_name(j->t, p->to, group);
	if (name == 0)
		return !j->t->no_memory;
	if (enqueue_ns < 0 || enqueue_ns > begin_ns)
		enqueue_ns = begin_ns;
	launch = ++p->n_launches;
	j->timed[j->n_timed++] = (struct nccl_timed){ number, sn, (uint32_t)(p->to - j->t->ranks), begin_ns,
						      nccl_int(r, PERF_END_NS) };
	launched = event_of(enqueue_ns, EVENT_LAUNCH, 1, 0, launch, 0);
	submitted = event_of(enqueue_ns, EVENT_COLL_SUBMIT, flags, name, sn, event_submit_b(-1, launch));
	begun = event_of(begin_ns, EVENT_COLL_BEGIN, flags, name, sn, bytes > 0 ? (uint64_t)bytes : 0);
	ended = event_of(nccl_int(r, PERF_END_NS), EVENT_COLL_END, flags, name, sn, 0);
	return trace_say(j->t, p->to, TRACE_HOST, &launched) && trace_say(j->t, p->to, TRACE_HOST, &submitted) &&
	       trace_say_call(j->t, p->to, &begun, &ended);
}

/* The members of a communicator by their ranks in the job, where all are there. */
static bool tell_group(struct perf_join *j, const struct trace_row *r)
{
	int64_t n_ranks = nccl_int(r, PERF_N_RANKS);
	char group[NCCL_KEY + 32];
	int32_t *ranks;
	uint32_t n = 0;
	bool fine = true;

	name_group(r, group, sizeof group);
	if (n_ranks < 1 || n_ranks > j->n || trace_has_group(j->t, group))
		return true;
	ranks = malloc((size_t)n_ranks * sizeof *ranks);
	if (!ranks)
		return false;
	for (int64_t i = 0; i < n_ranks; i++)
		ranks[i] = -1;
	for (uint32_t i = 0; i < j->n_rows; i++) {
		const struct trace_row *v = &j->t->rows[i];
		const struct process *p;
		int64_t rank;

		if (strcmp(v->table, "nccl_perf") != 0 || strcmp(nccl_text(v, PERF_COMM), nccl_text(r, PERF_COMM)) != 0)
			continue;
		rank = nccl_int(v, PERF_RANK);
		p = process_of(j, v);
		if (p && rank >= 0 && rank < n_ranks && ranks[rank] < 0) {
			ranks[rank] = (int32_t)p->rank;
			n++;
		}
	}
	if (n == n_ranks)
		fine = trace_group(j->t, group, ranks, n);
	free(ranks);
	return fine;
}

/* The number of its group; a new one's members are told. */
static bool find_group(struct perf_join *j, const struct trace_row *r, uint32_t *ret)
{
	char group[NCCL_KEY + 32];
	const json_t *known;

	name_group(r, group, sizeof group);
	known = json_object_get(j->groups, group);
	*ret = known ? (uint32_t)json_integer_value(known) : (uint32_t)json_object_size(j->groups);
	if (known)
		return true;
	return json_object_set_new(j->groups, group, json_integer(*ret)) == 0 &&
	       (*ret >= MAX_GROUPS || tell_group(j, r));
}

static bool tell_all(struct perf_join *j)
{
	bool fine = true;

	for (uint32_t i = 0; i < j->n_rows && fine; i++) {
		const struct trace_row *r = &j->t->rows[i];
		struct process *p = strcmp(r->table, "nccl_perf") == 0 && is_timed(r) ? process_of(j, r) : NULL;
		uint32_t group;

		if (!p || !p->to)
			continue;
		fine = find_group(j, r, &group) && (tell(j, p, r, group) || !j->t->no_memory);
	}
	return fine;
}

bool nccl_perf_join(struct trace *t, struct trace_input *inputs, uint32_t n_inputs)
{
	struct perf_join j = { .t = t, .n_rows = t->n_rows, .ids = json_object(), .groups = json_object() };
	uint32_t n_perf = 0;
	bool fine = j.ids && j.groups, alone = t->n_ranks == 0;

	for (uint32_t i = 0; i < t->n_rows; i++)
		n_perf += strcmp(t->rows[i].table, "nccl_perf") == 0;
	if (fine && n_perf > 0) {
		j.v = calloc((size_t)n_perf + 1, sizeof *j.v);
		j.timed = calloc((size_t)n_perf + 1, sizeof *j.timed);
		fine = j.v && j.timed;
		for (uint32_t i = 0; i < j.n_rows && fine; i++)
			if (strcmp(t->rows[i].table, "nccl_perf") == 0)
				fine = take_process(&j, &t->rows[i]);
		for (uint32_t i = 0; i < j.n; i++)
			if (j.v[i].n_ranks > t->world_size && j.v[i].n_ranks < FACT_MAX_RANKS)
				t->world_size = (int32_t)j.v[i].n_ranks;
		fine = fine && add_ranks(&j) && tell_all(&j);
		if (fine && alone && t->n_ranks > 0)
			fine = nccl_perf_align(t, inputs, n_inputs, j.timed, j.n_timed);
	}
	t->no_memory |= !fine;
	free(j.v);
	free(j.timed);
	json_decref(j.ids);
	json_decref(j.groups);
	return fine;
}
