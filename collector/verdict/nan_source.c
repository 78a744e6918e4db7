/* nan_source.c - nan.first_source: the first value that is not finite, before a collective
 * spreads it to all.
 *
 * What it says: the rank or ranks on which it was first seen, in which module or in the
 * input of which call, what its device said beside it, and how it went on from there.
 *
 * How it decides: of each process the first such word counts. It is a victim's where the
 * process had left a call before, into which another had gone with such a value, or
 * where it is what came out of a call. What remains are sources: named when they are
 * few; when nearly all have them at once, nobody is (then it is the loss, the data or
 * the learning rate). If only results were bad, the members that are not known to
 * have gone in with finite values are looked at. A step that the loss scaler skipped
 * is its business, unless it skips without end; and what a finite loss came of was a
 * mask or a limit.
 *
 * Certain where the inputs of all others of that call are known to be finite. Device
 * errors stand beside it, they do not decide.
 *
 * Neighbours: nan.overflow_fp16, nan.healthy_scaling, silent.replica_desync.
 */
#include "scaling.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define SETTLED_NS INT64_C(3000000000)
#define FEW 2 /* a source is named when sources are at most a half of those that were looked at */

struct spread { /* the first call of a group that somebody went into with it */
	bool known, several; /* several: not one process alone */
	uint32_t proc;
	uint64_t call;
};

struct look {
	struct rules *r;
	const struct bad **first; /* by process; NULL = none */
	bool *source;
	uint32_t n_procs;
	struct spread *spreads; /* by group */
	uint32_t n_groups;
	uint32_t n_looked, n_bad, n_sources; /* processes: with words of this kind */
};

/* A mask or a limit may be infinite: the loss that came of it is finite. One that is said in
 * the same step may be older than a gradient. */
static bool came_to_nothing(const struct rules *r, const struct bad *b)
{
	const struct number_proc *p = &r->numbers.procs[b->proc];

	if (p->n_losses == 0 || p->loss_ns <= b->at_ns)
		return false;
	if (b->kind == BAD_MODULE && !b->backward)
		return true;
	return b->step != EVENT_STEP_UNKNOWN && p->loss_step != EVENT_STEP_UNKNOWN && p->loss_step > b->step;
}

/* What scalers acted on. */
static bool is_handled(const struct rules *r, const struct scaling *s, const struct bad *b)
{
	if (came_to_nothing(r, b))
		return true;
	return s->n > 0 && s->n_tail <= SCALING_ENDLESS && scaling_skipped(r, b);
}

static void find_first(struct look *l)
{
	struct numbers *n = &l->r->numbers;
	struct scaling s;

	scaling_read(l->r, &s);
	for (size_t i = n->n_bads; i-- > 0;) {
		const struct bad *b = &n->bads[i];

		if (b->proc >= l->n_procs || l->r->ledger.roster->procs[b->proc].life != l->r->life ||
		    !is_handled(l->r, &s, b))
			continue;
		numbers_forget_bad(n, i);
	}
	for (size_t i = 0; i < n->n_bads; i++) {
		const struct bad *b = &n->bads[i];

		if (b->proc >= l->n_procs || l->r->ledger.roster->procs[b->proc].life != l->r->life)
			continue;
		if (!l->first[b->proc] || b->at_ns < l->first[b->proc]->at_ns)
			l->first[b->proc] = b;
	}
	for (uint32_t i = 0; i < l->n_procs; i++) {
		l->n_bad += l->first[i] != NULL;
		l->n_looked += i < n->n_procs && n->procs[i].n_checks > 0 &&
			       l->r->ledger.roster->procs[i].life == l->r->life;
	}
}

static void add_spread(struct look *l, uint32_t group, uint64_t call, uint32_t proc)
{
	struct spread *s = group < l->n_groups ? &l->spreads[group] : NULL;

	if (!s || (s->known && s->call < call))
		return;
	s->several = s->known && s->call == call && (s->several || s->proc != proc);
	s->known = true;
	s->call = call;
	s->proc = proc;
}

/* What a process asks for once it has one carries it on: of each group the first call. */
static void find_spreads(struct look *l, uint32_t proc)
{
	const struct bad *b = l->first[proc];
	const struct pulse_proc *p = pulse_proc(&l->r->pulse, proc);
	uint64_t n = p ? p->n_calls : 0;

	for (uint64_t i = n > PULSE_CALLS ? n - PULSE_CALLS : 0; i < n && b->kind != BAD_OUTPUT; i++) {
		const struct pulse_call *c = &p->calls[i % PULSE_CALLS];

		if (c->asked_ns >= b->at_ns && c->op != OP_BARRIER)
			add_spread(l, c->group, c->seq, proc);
	}
}

static bool is_victim(const struct look *l, uint32_t proc)
{
	const struct bad *b = l->first[proc];

	if (b->kind == BAD_OUTPUT)
		return true;
	for (uint32_t g = 0; g < l->n_groups; g++) {
		const struct spread *s = &l->spreads[g];
		const struct pulse_call *c;
		const struct bad *other = s->known ? l->first[s->proc] : NULL;

		if (!other || (s->proc == proc && !s->several) || !silent_is_member(l->r, proc, g))
			continue;
		c = pulse_call(&l->r->pulse, proc, g, s->call);
		if (c ? c->left_ns != FACT_NONE && c->left_ns <= b->at_ns
		      : other->step != EVENT_STEP_UNKNOWN && b->step != EVENT_STEP_UNKNOWN && other->step < b->step)
			return true;
	}
	return false;
}

/* Of sources that nothing connects, those of the earliest step. */
static void keep_earliest(struct look *l)
{
	uint32_t step = EVENT_STEP_UNKNOWN;

	for (uint32_t i = 0; i < l->n_procs; i++)
		if (l->source[i] && l->first[i]->step < step)
			step = l->first[i]->step;
	for (uint32_t i = 0; i < l->n_procs; i++) {
		l->source[i] = l->source[i] && l->first[i]->step == step;
		l->n_sources += l->source[i];
	}
}

static void find_sources(struct look *l)
{
	const struct numbers *n = &l->r->numbers;

	for (uint32_t i = 0; i < l->n_procs; i++)
		if (l->first[i])
			find_spreads(l, i);
	for (size_t i = 0; i < n->n_bads; i++)
		if (n->bads[i].proc < l->n_procs && l->first[n->bads[i].proc] && n->bads[i].group)
			add_spread(l, n->bads[i].group - 1, n->bads[i].call, n->bads[i].proc);
	for (uint32_t i = 0; i < l->n_procs; i++)
		l->source[i] = l->first[i] && !is_victim(l, i);
	keep_earliest(l);
}

/* What its device or host said. */
static void put_device(const struct rules *r, uint32_t proc, char *out, size_t n_out)
{
	out[0] = '\0';
	for (size_t i = 0; i < r->side.n && !out[0]; i++) {
		const struct side_record *v = &r->side.v[i];

		if (v->proc != proc)
			continue;
		if (v->kind == SIDE_XID)
			snprintf(out, n_out, "device error %lld beside it", (long long)side_number(v, "code", -1));
		if (v->kind == SIDE_ECC && side_number(v, "uncorrected", 0) > 0)
			snprintf(out, n_out, "%lld memory errors of its device that were not corrected",
				 (long long)side_number(v, "uncorrected", 0));
	}
}

/* Are the inputs of everybody else in that call known to be finite? */
static bool others_finite(const struct look *l, const struct bad *b)
{
	const struct group *g = b->group ? &l->r->ledger.match->groups[b->group - 1] : NULL;
	const struct round *v = g ? numbers_find(&l->r->numbers, NUMBER_COLL_INPUT, l->r->life, b->group,
						 b->call, false)
				  : NULL;
	uint32_t n = 0;

	for (uint32_t i = 0; v && i < v->n; i++) {
		bool bad = !(v->v[i].v <= 0);

		if (bad && !(v->v[i].proc < l->n_procs && l->source[v->v[i].proc]))
			return false;
		n++;
	}
	return g && n >= g->n_members;
}

/* Only results were bad: who may have gone in with it? False when that says nothing. */
static bool find_suspects(struct look *l, struct finding *f, const struct bad **ret)
{
	const struct bad *b = NULL;
	const struct round *v;
	const struct group *g;

	for (uint32_t i = 0; i < l->n_procs; i++)
		if (l->first[i] && l->first[i]->group &&
		    (!b || (l->first[i]->group == b->group ? l->first[i]->call < b->call
							   : l->first[i]->at_ns < b->at_ns)))
			b = l->first[i];
	*ret = b;
	if (!b)
		return false;
	g = &l->r->ledger.match->groups[b->group - 1];
	v = numbers_find(&l->r->numbers, NUMBER_COLL_INPUT, l->r->life, b->group, b->call, false);
	for (uint32_t i = 0; i < l->n_procs; i++)
		if (l->r->ledger.roster->procs[i].life == l->r->life &&
		    silent_is_member(l->r, i, b->group - 1) && !numbers_of(v, i))
			finding_rank(f, l->r->ledger.roster->procs[i].rank);
	if (v && f->n_ranks > 0 && f->n_ranks * FEW <= g->n_members)
		return true;
	f->n_ranks = 0;
	return true;
}

static void put_where(const struct rules *r, const struct bad *b, char *out, size_t n_out)
{
	if (b->kind == BAD_MODULE)
		snprintf(out, n_out, "in module %.80s", numbers_word(&r->numbers, b->module));
	else if (b->kind == BAD_LOSS)
		snprintf(out, n_out, "as its loss");
	else if (b->group)
		snprintf(out, n_out, "in the %s of call %" PRIu64 " of group %.60s",
			 b->kind == BAD_INPUT ? "input" : "result", b->call,
			 r->ledger.match->groups[b->group - 1].name);
	else
		snprintf(out, n_out, "in the %s of a collective", b->kind == BAD_INPUT ? "input" : "result");
}

/* The call by which it left its source: its own, else the first that was asked for. */
static uint32_t way_of(const struct look *l, const struct bad *b)
{
	uint32_t best = UINT32_MAX;
	int64_t best_ns = INT64_MAX;

	if (b->group)
		return b->group - 1;
	for (uint32_t g = 0; g < l->n_groups; g++) {
		const struct spread *s = &l->spreads[g];
		const struct pulse_call *c = s->known ? pulse_call(&l->r->pulse, b->proc, g, s->call) : NULL;

		if (c && c->asked_ns >= b->at_ns && c->asked_ns < best_ns) {
			best_ns = c->asked_ns;
			best = g;
		}
	}
	return best;
}

static void put_way(const struct look *l, uint32_t group, char *out, size_t n_out)
{
	uint32_t n = l->n_bad - l->n_sources;

	out[0] = '\0';
	if (n > 0 && group != UINT32_MAX)
		snprintf(out, n_out, " Call %" PRIu64 " of group %.60s carried it on: %u more rank%s it.",
			 l->spreads[group].call, l->r->ledger.match->groups[group].name, n,
			 n == 1 ? " has" : "s have");
}

struct words { /* of the sentence */
	const char *who, *where, *device, *way;
	bool everywhere, results;
};

static void put_sentence(const struct look *l, const struct words *w, char *out, size_t n_out)
{
	if (w->everywhere)
		snprintf(out, n_out,
			 "Values that are not finite are on %u of %u ranks at once, first seen %s, and no collective "
			 "had spread them: it is not one device. Look at the data of that step, the learning rate "
			 "and what the ranks have in common.", l->n_sources, l->n_looked, w->where);
	else if (w->results)
		snprintf(out, n_out,
			 "A value that is not finite is first seen %s, and no bad input was seen%s%s. Check the inputs of "
			 "that call on every rank; where all are finite, the sum overflows its type or was damaged on "
			 "the way.", w->where, w->who[0] ? "; not known to be finite: " : "", w->who);
	else
		snprintf(out, n_out,
			 "%s had the first value that is not finite, %s%s%s%s.%s Take the state before that step, and %s.",
			 w->who, w->where, w->device[0] ? " (" : "", w->device, w->device[0] ? ")" : "", w->way,
			 w->device[0] ? "replace that device" : "look at that rank's data and device");
}

static int tell(struct look *l)
{
	struct rules *r = l->r;
	const struct bad *b = NULL;
	char sentence[800], who[160], where[160], detail[260], device[100] = "", way[200], evidence[400];
	struct finding f = { .class_name = "nan.first_source", .severity = SEVERITY_WRONG,
			     .confidence = CONFIDENCE_LIKELY, .detail = detail, .sentence = sentence,
			     .evidence_json = evidence };
	bool everywhere = l->n_sources > 1 && l->n_sources * FEW > l->n_looked;
	bool results = l->n_sources == 0;
	uint32_t group;

	if (results && !find_suspects(l, &f, &b))
		return 0;
	for (uint32_t i = 0; i < l->n_procs; i++) {
		if (!l->source[i])
			continue;
		b = !b || l->first[i]->at_ns < b->at_ns ? l->first[i] : b;
		if (!everywhere)
			finding_rank(&f, r->ledger.roster->procs[i].rank);
		if (!everywhere && !device[0])
			put_device(r, i, device, sizeof device);
	}
	if (!results && !everywhere && others_finite(l, b))
		f.confidence = CONFIDENCE_CERTAIN;
	f.step = b->step;
	f.onset_ns = roster_place(r->ledger.roster, &r->ledger.roster->procs[b->proc], b->at_ns).at.ns;
	f.module = b->kind == BAD_MODULE && !everywhere ? numbers_word(&r->numbers, b->module) : NULL;
	group = way_of(l, b);
	if (group != UINT32_MAX) {
		f.has_call = true;
		f.call = b->group ? b->call : l->spreads[group].call;
		f.group = r->ledger.match->groups[group].name;
	}
	words_ranks(f.ranks, f.n_ranks, who, sizeof who);
	put_where(r, b, where, sizeof where);
	put_way(l, group, way, sizeof way);
	snprintf(detail, sizeof detail, "%s%s%s", where, device[0] ? "; " : "", device[0] ? device :
		 everywhere ? "; everywhere at once" : results ? "; no bad input was seen" : "");
	if (f.n_ranks == 0)
		who[0] = '\0';
	put_sentence(l, &(struct words){ who, where, device, way, everywhere, results }, sentence,
		     sizeof sentence);
	snprintf(evidence, sizeof evidence,
		 "[{\"view\":\"record\",\"category\":\"%s\",\"rank\":%d}%s%s]",
		 b->kind == BAD_MODULE ? "finite.module" : b->kind == BAD_LOSS ? "loss.value" :
		 b->kind == BAD_INPUT ? "finite.coll_input" : "finite.coll_output",
		 r->ledger.roster->procs[b->proc].rank,
		 !device[0] ? "" : device[0] == 'd' ? ",{\"view\":\"record\",\"category\":\"dev.xid\"}"
						  : ",{\"view\":\"record\",\"category\":\"dev.ecc\"}",
		 way[0] ? ",{\"view\":\"collective\"}" : "");
	f.rules_out_json = everywhere ? "[\"one device: all have it at once\"]"
				      : "[\"all ranks: the others had left that call before they had it\"]";
	r->silent.source = true;
	return rules_tell(r, &f);
}

int nan_source_look(struct rules *r)
{
	struct look l = { .r = r, .n_procs = r->ledger.roster->n_procs,
			  .n_groups = r->ledger.match->n_groups };
	bool ripe = false;
	int e = 0;

	if (r->silent.source || r->silent.overflow || r->silent.scaler || r->numbers.n_bads == 0)
		return 0;
	for (size_t i = 0; i < r->numbers.n_bads && !ripe; i++)
		ripe = r->finishing || r->now_ns - r->numbers.bads[i].now_ns >= SETTLED_NS;
	if (!ripe)
		return 0;
	l.first = calloc(l.n_procs, sizeof *l.first);
	l.source = calloc(l.n_procs, sizeof *l.source);
	l.spreads = calloc((size_t)l.n_groups + 1, sizeof *l.spreads);
	if (!l.first || !l.source || !l.spreads) {
		e = -ENOMEM;
	} else {
		find_first(&l);
		if (l.n_bad > 0) {
			find_sources(&l);
			e = tell(&l);
		}
	}
	free(l.first);
	free(l.source);
	free(l.spreads);
	return e;
}
