#include "pauses.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#define MAX_PROCS (1u << 17)
#define LEAST_NS INT64_C(200000) /* of a pause and of what it costs */
#define EXPLAINS 0.5 /* of the lateness */
#define BESIDE_NS INT64_C(2000000) /* a record of saving is said so near to it */

void pauses_fini(struct pauses *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		free(s->v[i]);
	free(s->v);
}

static struct pauses_proc *proc_of(struct pauses *s, const struct proc *p)
{
	uint32_t index = (uint32_t)(p - s->roster->procs), n = s->n ? s->n : 16;
	struct pauses_proc **grown;

	while (n <= index)
		n *= 2;
	if (index >= s->n) {
		grown = n <= MAX_PROCS ? realloc(s->v, n * sizeof *grown) : NULL;
		if (!grown)
			return NULL;
		memset(grown + s->n, 0, (n - s->n) * sizeof *grown);
		s->v = grown;
		s->n = n;
	}
	if (!s->v[index])
		s->v[index] = calloc(1, sizeof **s->v);
	return s->v[index];
}

static void on_work(struct pauses *s, struct pauses_proc *q, const struct proc *p,
		    const struct event *ev)
{
	int64_t at_ns = (int64_t)ev->tick;

	if (ev->kind == EVENT_WORK_BEGIN) {
		if (q->depth++ == 0)
			q->open = (struct pause){ .begin_ns = at_ns,
						  .name = ev->name < p->n_names ?
								  p->names[ev->name].text : 0 };
		return;
	}
	if (q->depth == 0 || --q->depth > 0 || at_ns - q->open.begin_ns < LEAST_NS)
		return;
	q->open.end_ns = at_ns;
	q->v[q->n++ % PAUSES_OF_PROC] = q->open;
	s->any = true;
}

int pauses_event(struct pauses *s, const struct proc *p, const struct event *ev)
{
	unsigned op = ev->flags >> 8;
	struct pauses_proc *q;

	if (ev->kind != EVENT_WORK_BEGIN && ev->kind != EVENT_WORK_END &&
	    (ev->kind != EVENT_COLL_BEGIN || op == OP_SEND || op == OP_RECV))
		return 0;
	q = proc_of(s, p);
	if (!q)
		return p - s->roster->procs < MAX_PROCS ? -ENOMEM : 0;
	if (ev->kind == EVENT_COLL_BEGIN) {
		if (q->n_calls == 0)
			q->first_call_ns = (int64_t)ev->tick;
		q->calls[q->n_calls++ % PAUSES_CALLS] = (int64_t)ev->tick;
	} else {
		on_work(s, q, p, ev);
	}
	return 0;
}

int pauses_record(struct pauses *s, const struct proc *p, int64_t at_ns, const char *category,
		  const char *fields_json, size_t n_fields)
{
	struct pauses_proc *q;
	json_t *fields;
	double ms;

	if (strcmp(category, "io.checkpoint") != 0 && strcmp(category, "io.write") != 0)
		return 0;
	q = proc_of(s, p);
	if (!q)
		return p - s->roster->procs < MAX_PROCS ? -ENOMEM : 0;
	fields = json_loadb(fields_json, n_fields, 0, NULL);
	ms = json_number_value(json_object_get(fields, "ms"));
	json_decref(fields);
	if (!(ms >= 0 && ms < 1e9))
		ms = 0;
	q->saves[q->n_saves % PAUSES_SAVES].at_ns = at_ns;
	q->saves[q->n_saves++ % PAUSES_SAVES].ms = (int64_t)ms;
	q->saved_ns += (int64_t)(ms * 1e6);
	s->any = true;
	return 0;
}

static uint64_t oldest(uint64_t n, uint32_t n_kept)
{
	return n > n_kept ? n - n_kept : 0;
}

/* When it entered the call before the one that it entered then. */
static int64_t call_before(const struct pauses_proc *q, int64_t enter_ns)
{
	int64_t found = INT64_MIN;

	for (uint64_t i = q->n_calls; i-- > oldest(q->n_calls, PAUSES_CALLS);) {
		int64_t at_ns = q->calls[i % PAUSES_CALLS];

		if (at_ns < enter_ns && at_ns > found)
			found = at_ns;
	}
	return found;
}

static bool is_saving(const struct pauses_proc *q, const struct pause *v)
{
	for (uint64_t i = q->n_saves; i-- > oldest(q->n_saves, PAUSES_SAVES);) {
		int64_t at_ns = q->saves[i % PAUSES_SAVES].at_ns;

		if (at_ns >= v->begin_ns - BESIDE_NS && at_ns <= v->end_ns + BESIDE_NS)
			return true;
	}
	return false;
}

/* The longest pause that nothing is charged for yet, between two calls. */
static struct pause *find_pause(struct pauses_proc *q, int64_t from_ns, int64_t enter_ns)
{
	struct pause *found = NULL;

	for (uint64_t i = q->n; i-- > oldest(q->n, PAUSES_OF_PROC);) {
		struct pause *v = &q->v[i % PAUSES_OF_PROC];

		if (v->charged || v->end_ns > enter_ns || v->end_ns <= from_ns)
			continue;
		if (!found || v->end_ns - v->begin_ns > found->end_ns - found->begin_ns)
			found = v;
	}
	return found;
}

/* Nothing was named, but a record says that it saved for so long. */
static bool find_save(const struct pauses_proc *q, int64_t from_ns, int64_t enter_ns,
		      struct pause *ret)
{
	for (uint64_t i = q->n_saves; i-- > oldest(q->n_saves, PAUSES_SAVES);) {
		int64_t at_ns = q->saves[i % PAUSES_SAVES].at_ns, ms = q->saves[i % PAUSES_SAVES].ms;

		if (ms <= 0 || at_ns <= from_ns || at_ns > enter_ns)
			continue;
		*ret = (struct pause){ .begin_ns = at_ns - ms * 1000000, .end_ns = at_ns };
		return true;
	}
	return false;
}

/* A new start of the job begins anew. False for a call of an old one. */
static bool follow_life(struct pauses *s, const struct proc *p, const struct pauses_proc *q,
			int64_t at_ns)
{
	if (p->life > s->life) {
		s->life = p->life;
		s->n_late = 0;
		s->n_settled = s->n_pending;
		s->told_n = 0;
		s->first_ns = q ? roster_place(s->roster, p, q->first_call_ns).at.ns : at_ns;
	}
	if (p->life == s->life)
		s->last_ns = at_ns;
	return p->life == s->life;
}

static void charge(struct pauses *s, const struct late_call *c)
{
	struct pauses_proc *q = s->v[c->proc];
	struct pause saved, *v = find_pause(q, c->from_ns, c->enter_ns);

	if (!v && find_save(q, c->from_ns, c->enter_ns, &saved))
		v = &saved;
	if (!v || (double)(v->end_ns - v->begin_ns) < EXPLAINS * (double)c->gain.ns)
		return;
	v->charged = true;
	s->late[s->n_late++ % PAUSES_KEEP] = (struct late_pause){
		.rank = c->rank, .step = c->step, .name = v->name, .at_ns = c->at_ns,
		.pause_ns = v->end_ns - v->begin_ns, .cost_ns = c->gain.ns,
		.error_ns = c->gain.err_ns, .saves = is_saving(q, v),
	};
}

void pauses_call(struct pauses *s, const struct match *m, uint32_t group, const struct coll *c,
		 const struct lateness *late)
{
	const struct proc *p = &m->roster->procs[late->proc];
	struct pauses_proc *q = late->proc < s->n ? s->v[late->proc] : NULL;

	if (!late->all_here || !follow_life(s, p, q, late->last_ns) || !q || !s->any ||
	    late->gain.err_ns == CLOCK_UNBOUNDED || late->gain.ns <= late->gain.err_ns ||
	    late->gain.ns < LEAST_NS)
		return;
	if (s->n_pending - s->n_settled == PAUSES_PENDING)
		charge(s, &s->pending[s->n_settled++ % PAUSES_PENDING]);
	s->pending[s->n_pending++ % PAUSES_PENDING] = (struct late_call){
		.proc = late->proc, .step = c->step, .rank = p->rank,
		.from_ns = call_before(q, late->enter_ns), .enter_ns = late->enter_ns,
		.at_ns = late->last_ns, .gain = late->gain,
	};
}

void pauses_settle(struct pauses *s, bool finishing)
{
	while (s->n_settled < s->n_pending &&
	       (finishing || s->pending[s->n_settled % PAUSES_PENDING].seen))
		charge(s, &s->pending[s->n_settled++ % PAUSES_PENDING]);
	for (uint64_t i = s->n_settled; i < s->n_pending; i++)
		s->pending[i % PAUSES_PENDING].seen = true;
}

const struct late_pause *pauses_late(const struct pauses *s, uint32_t i)
{
	uint64_t at = oldest(s->n_late, PAUSES_KEEP) + i;

	return at < s->n_late ? &s->late[at % PAUSES_KEEP] : NULL;
}

int64_t pauses_span_ns(const struct pauses *s)
{
	uint32_t n = s->n_late < PAUSES_KEEP ? (uint32_t)s->n_late : PAUSES_KEEP;
	int64_t begin_ns = s->first_ns, from_ns;

	if (n > 1) {
		int64_t first_ns = pauses_late(s, 0)->at_ns;

		from_ns = first_ns - (pauses_late(s, n - 1)->at_ns - first_ns) / (n - 1);
		if (from_ns > begin_ns)
			begin_ns = from_ns;
	}
	return s->last_ns - begin_ns;
}
