#include "rules.h"
#include "words.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDING 5e-5 /* of the larger: sums in another order differ by less */
#define MAX_GROUPS (1u << 16)

void silent_fini(struct silent *s)
{
	free(s->groups);
	*s = (struct silent){ 0 };
}

void silent_life(struct rules *r)
{
	struct silent_group *groups = r->silent.groups;
	uint32_t n = r->silent.n_groups;

	r->silent = (struct silent){ .groups = groups, .n_groups = n, .life = r->life };
}

/* ---- evidence ---- */

int silent_event(struct rules *r, const struct proc *p, const struct event *ev)
{
	uint32_t group = UINT32_MAX;
	uint64_t seq = 0;

	if (ev->kind == EVENT_COLL_BEGIN || ev->kind == EVENT_COLL_END || ev->kind == EVENT_COLL_SUBMIT) {
		unsigned op = ev->flags >> 8;

		if (op != OP_SEND && op != OP_RECV && ev->name > 0 && ev->name < p->n_names &&
		    p->names[ev->name].group > 0) {
			group = p->names[ev->name].group - 1;
			seq = match_seq(r->ledger.match, group, event_low(ev->a));
		}
	}
	r->pulse.n_procs = r->ledger.roster->n_procs;
	return pulse_event(&r->pulse, (uint32_t)(p - r->ledger.roster->procs), p->cur_step, ev, group, seq);
}

int silent_record(struct rules *r, const struct proc *p, int64_t at_ns, const char *category,
		  const char *fields_json, size_t n_fields)
{
	return numbers_note(&r->numbers, &r->pulse, r->ledger.match,
			    (uint32_t)(p - r->ledger.roster->procs), at_ns, r->now_ns, category,
			    fields_json, n_fields);
}

int silent_call(struct rules *r, const struct match *m, uint32_t group, const struct coll *c)
{
	struct silent *s = &r->silent;
	struct silent_group *g;

	(void)m;
	if (!pulse_reduces(c->op) || c->bytes <= PULSE_SMALL_BYTES || group >= MAX_GROUPS)
		return 0;
	if (group >= s->n_groups) {
		uint32_t n = s->n_groups ? s->n_groups : 16;
		struct silent_group *grown;

		while (n <= group)
			n *= 2;
		grown = realloc(s->groups, n * sizeof *grown);
		if (!grown)
			return -ENOMEM;
		memset(grown + s->n_groups, 0, (n - s->n_groups) * sizeof *grown);
		s->groups = grown;
		s->n_groups = n;
	}
	g = &s->groups[group];
	g->n++;
	if (c->step == EVENT_STEP_UNKNOWN)
		g->stepless = true;
	else if (g->n_steps == 0 || g->steps[(g->n_steps - 1) % SILENT_STEPS] != c->step)
		g->steps[g->n_steps++ % SILENT_STEPS] = c->step;
	return 0;
}

uint32_t silent_steps_behind(const struct silent_group *g, int64_t step)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < g->n_steps && i < SILENT_STEPS; i++)
		n += (int64_t)g->steps[i] > step;
	return n;
}

uint32_t silent_restart_count(const struct rules *r)
{
	const struct roster *roster = r->ledger.roster;

	for (uint32_t i = roster->n_procs; i-- > 0;)
		if (roster->procs[i].life == r->life)
			return roster->procs[i].restart_count < 0 ? 0 : (uint32_t)roster->procs[i].restart_count;
	return 0;
}

/* ---- numbers of replicas ---- */

bool silent_apart(double a, double b)
{
	return fabs(a - b) > ROUNDING * fmax(fabs(a), fabs(b));
}

bool silent_is_member(const struct rules *r, uint32_t proc, uint32_t group)
{
	const struct group *g = &r->ledger.match->groups[group];
	const struct proc *p = &r->ledger.roster->procs[proc];

	return (uint32_t)(p->restart_count < 0 ? 0 : p->restart_count) == g->life &&
	       idmap_get(&g->member_of, (uint32_t)p->rank) != IDMAP_NONE;
}

/* How many members spoke; the lowest and the highest of them. */
static uint32_t range(const struct rules *r, uint32_t group, const struct round *v,
		      const struct sample *ret[2])
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < v->n; i++) {
		const struct sample *s = &v->v[i];

		if (!isfinite(s->v) || !silent_is_member(r, s->proc, group))
			continue;
		if (n == 0 || s->v < ret[0]->v)
			ret[0] = s;
		if (n == 0 || s->v > ret[1]->v)
			ret[1] = s;
		n++;
	}
	return n;
}

static void take_first(const struct rules *r, const struct round *v, const struct sample *const s[2],
		       struct compared *ret)
{
	unsigned a = r->ledger.roster->procs[s[0]->proc].rank > r->ledger.roster->procs[s[1]->proc].rank;

	ret->first = v;
	for (unsigned i = 0; i < 2; i++) {
		ret->ranks[i] = r->ledger.roster->procs[s[i ^ a]->proc].rank;
		ret->values[i] = s[i ^ a]->v;
	}
}

bool silent_range(const struct rules *r, uint32_t group, const struct round *v, struct compared *ret)
{
	const struct sample *s[2];

	if (range(r, group, v, s) < 2 || !silent_apart(s[0]->v, s[1]->v))
		return false;
	take_first(r, v, s, ret);
	return true;
}

void silent_compare(const struct rules *r, uint32_t group, unsigned kind, uint32_t sub,
		    struct compared *ret)
{
	const struct round *v;

	*ret = (struct compared){ 0 };
	for (uint64_t i = 0; (v = numbers_round(&r->numbers, i)); i++) {
		const struct sample *s[2];
		bool apart;

		if (v->kind != kind || (sub != UINT32_MAX && v->sub != sub) || v->life != r->life)
			continue;
		if (range(r, group, v, s) < 2)
			continue;
		apart = silent_apart(s[0]->v, s[1]->v);
		ret->n_apart += apart;
		ret->n_equal += !apart;
		if (apart && (!ret->first || v->key < ret->first->key))
			take_first(r, v, s, ret);
		if (!apart && (!ret->last_equal || v->key > ret->last_equal->key))
			ret->last_equal = v;
		if (!ret->newest || v->key >= ret->newest->key) {
			ret->newest = v;
			ret->apart_last = apart;
		}
	}
	for (uint64_t i = 0; ret->first && (v = numbers_round(&r->numbers, i)); i++) {
		const struct sample *s[2];

		if (v->kind == kind && v->life == r->life && v->key < ret->first->key &&
		    range(r, group, v, s) >= 2 && !silent_apart(s[0]->v, s[1]->v))
			ret->equal_before = true;
	}
}

void silent_words(const struct compared *c, char *out, size_t n_out)
{
	snprintf(out, n_out, "rank %d: %.9g, rank %d: %.9g", c->ranks[0], c->values[0], c->ranks[1],
		 c->values[1]);
}

void silent_evidence(const struct compared *c, const char *group, uint64_t call, char *out,
		     size_t n_out)
{
	const char *category = c->first && c->first->kind == NUMBER_GRAD_NORM ? "check.grad_norm" : "check.param_sum";
	char quoted[128];
	size_t at = 0;

	words_json(group ? group : "", quoted, sizeof quoted);
	at = (size_t)snprintf(out, n_out, "[{\"view\":\"collective\",\"group\":\"%s\"", quoted);
	if (call != UINT64_MAX)
		at += (size_t)snprintf(out + at, n_out - at, ",\"seq\":%" PRIu64, call);
	at += (size_t)snprintf(out + at, n_out - at, "}");
	for (unsigned i = 0; i < 2 && c->n_apart > 0; i++)
		at += (size_t)snprintf(out + at, n_out - at, ",{\"view\":\"record\",\"category\":\"%s\",\"rank\":%d}",
				       category, c->ranks[i]);
	snprintf(out + at, n_out - at, "]");
}
