#include "pauses.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#define MAX_PROCS (1u << 17)
#define LEAST_NS LATENESS_LEAST_NS /* of a pause and of what it costs */
#define EXPLAINS 0.5 /* of the lateness */
#define SHOWS 0.2 /* of the pause, in the lateness: the rest was hidden by work given before */
#define ALIKE 0.25 /* of the last one's pause: shorter ones hold nobody up beside it */
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
	if (!s->v[index]) {
		s->v[index] = calloc(1, sizeof **s->v);
		if (s->v[index])
			s->v[index]->step = EVENT_STEP_UNKNOWN;
	}
	return s->v[index];
}

static void on_work(struct pauses *s, struct pauses_proc *q, const struct proc *p,
		    const struct event *ev)
{
	int64_t at_ns = (int64_t)ev->tick;

	if (ev->kind == EVENT_WORK_BEGIN) {
		if (q->depth++ == 0)
			q->open = (struct pause){ .begin_ns = at_ns, .step = q->step,
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

	if (ev->kind != EVENT_WORK_BEGIN && ev->kind != EVENT_WORK_END && ev->kind != EVENT_STEP_BEGIN &&
	    (ev->kind != EVENT_COLL_BEGIN || op == OP_SEND || op == OP_RECV))
		return 0;
	q = proc_of(s, p);
	if (!q)
		return p - s->roster->procs < MAX_PROCS ? -ENOMEM : 0;
	if (ev->kind == EVENT_STEP_BEGIN) {
		q->step = event_step(ev->a);
	} else if (ev->kind == EVENT_COLL_BEGIN) {
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

static int64_t length_ns(const struct pause *v)
{
	return v->end_ns - v->begin_ns;
}

/* NULL: it was not held up. */
static const struct pause *cause_of(const struct pauses *s, const struct late_call *c, uint32_t i,
				    struct pause *ret_saved, struct pause **ret_charge)
{
	const struct late_member *m = &c->late.v[i];
	struct pauses_proc *q = m->proc < s->n ? s->v[m->proc] : NULL;

	*ret_charge = q ? find_pause(q, c->from_ns[i], m->enter_ns) : NULL;
	if (*ret_charge)
		return *ret_charge;
	return q && find_save(q, c->from_ns[i], m->enter_ns, ret_saved) ? ret_saved : NULL;
}

/* Does that member pause for nearly as long as v before the same call or in the same step? */
static bool pauses_too(const struct pauses *s, const struct late_call *c, uint32_t i, const struct pause *v)
{
	const struct late_member *m = &c->late.v[i];
	const struct pauses_proc *q = m->proc < s->n ? s->v[m->proc] : NULL;

	for (uint64_t k = q ? q->n : 0; q && k-- > oldest(q->n, PAUSES_OF_PROC);) {
		const struct pause *w = &q->v[k % PAUSES_OF_PROC];

		if ((double)length_ns(w) >= ALIKE * (double)length_ns(v) &&
		    ((q->step != EVENT_STEP_UNKNOWN && w->step == v->step) ||
		     (w->end_ns <= m->enter_ns && w->end_ns > c->from_ns[i])))
			return true;
	}
	return false;
}

/* Where most pause in one step, what they differ by is noise and none of them moves. *ret_base:
 * the latest member that did not, from the n-th on; UINT32_MAX when there is none. */
static bool is_common(const struct pauses *s, const struct late_call *c, const struct pause *v, uint32_t n,
		      uint32_t *ret_base)
{
	uint32_t n_alike = 1;

	*ret_base = UINT32_MAX;
	for (uint32_t i = 1; i < c->late.n; i++) {
		if (pauses_too(s, c, i, v))
			n_alike++;
		else if (i >= n && *ret_base == UINT32_MAX)
			*ret_base = i;
	}
	return 2 * n_alike > c->late.n;
}

static void charge(struct pauses *s, const struct late_call *c)
{
	const struct late_member *last = &c->late.v[0], *base;
	struct pause saved[LATENESS_MEMBERS], *charged[LATENESS_MEMBERS];
	const struct pause *v[LATENESS_MEMBERS];
	uint32_t n = 0, at;
	double sum = 0;
	bool saves, common;

	while (n < c->late.n && (v[n] = cause_of(s, c, n, &saved[n], &charged[n])) &&
	       (double)length_ns(v[n]) >= ALIKE * (double)length_ns(v[0]))
		n++;
	if (n == 0)
		return;
	saves = is_saving(s->v[last->proc], v[0]);
	common = is_common(s, c, v[0], n, &at);
	if (!saves && (common || at == UINT32_MAX))
		return;
	if (saves)
		at = n < c->late.n ? n : c->late.n - 1;
	base = &c->late.v[at];
	if (base->behind.ns < LEAST_NS || base->behind.err_ns == CLOCK_UNBOUNDED ||
	    base->behind.ns <= base->behind.err_ns)
		return;
	for (uint32_t i = 0; i < n; i++) {
		double late_ns = (double)(base->behind.ns - c->late.v[i].behind.ns);

		if ((double)length_ns(v[i]) < EXPLAINS * late_ns ||
		    (!saves && late_ns < SHOWS * (double)length_ns(v[i])))
			v[i] = NULL;
		if (v[i] && late_ns > 0)
			sum += late_ns;
	}
	for (uint32_t i = 0; i < n && v[0]; i++) {
		int64_t late_ns = base->behind.ns - c->late.v[i].behind.ns;

		if (!v[i] || late_ns < LEAST_NS)
			continue;
		if (charged[i])
			charged[i]->charged = true;
		s->late[s->n_late++ % PAUSES_KEEP] = (struct late_pause){
			.rank = c->late.v[i].rank, .step = c->step, .name = v[i]->name,
			.at_ns = last->at_ns, .pause_ns = length_ns(v[i]),
			.cost_ns = (int64_t)((double)base->behind.ns * (double)late_ns / sum),
			.margin_ns = late_ns, .error_ns = base->behind.err_ns,
			.by_duration = c->late.by_duration,
			.saves = is_saving(s->v[c->late.v[i].proc], v[i]),
		};
	}
}

void pauses_call(struct pauses *s, const struct match *m, const struct coll *c,
		 const struct lateness *late)
{
	const struct late_member *last = &late->v[0], *first = &late->v[late->n - 1];
	struct late_call *v;

	if (!late->all_here || !s->any ||
	    !follow_life(s, &m->roster->procs[last->proc],
			 last->proc < s->n ? s->v[last->proc] : NULL, last->at_ns) ||
	    first->behind.ns < LEAST_NS)
		return;
	if (s->n_pending - s->n_settled == PAUSES_PENDING)
		charge(s, &s->pending[s->n_settled++ % PAUSES_PENDING]);
	v = &s->pending[s->n_pending++ % PAUSES_PENDING];
	*v = (struct late_call){ .late = *late, .step = c->step };
	for (uint32_t i = 0; i < late->n; i++)
		v->from_ns[i] = late->v[i].proc < s->n && s->v[late->v[i].proc] ?
					call_before(s->v[late->v[i].proc], late->v[i].enter_ns) :
					INT64_MIN;
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
