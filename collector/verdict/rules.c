#include "rules.h"
#include "standstill.h"
#include "words.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define LOOK_NS INT64_C(1000000000)

void rules_init(struct rules *r, struct roster *roster, struct match *match)
{
	*r = (struct rules){ .looked_ns = INT64_MIN,
			     .ledger = { .roster = roster, .match = match } };
}

void rules_fini(struct rules *r)
{
	ledger_fini(&r->ledger);
	side_fini(&r->side);
	gauges_fini(&r->gauges);
	clock_stamps_fini(&r->stamps);
}

int rules_event(struct rules *r, struct proc *p, const struct event *ev, uint32_t restart_count)
{
	int e = ledger_event(&r->ledger, p, ev, restart_count);

	peer_busy_event(r);
	return e;
}

int rules_call(struct rules *r, const struct match *m, uint32_t group, const struct coll *c)
{
	return clock_stamps_call(&r->stamps, m, group, c);
}

int rules_step(struct rules *r, const struct fact_step *step, const struct fact_rank_step *v,
	       size_t n, struct facts *facts)
{
	(void)step;
	(void)v;
	(void)n;
	r->facts = facts;
	return 0;
}

/* A new start of the job is a new chance to fail. */
static void follow_life(struct rules *r)
{
	const struct roster *roster = r->ledger.roster;

	for (uint32_t i = 0; i < roster->n_procs; i++)
		if (roster->procs[i].life > r->life) {
			r->life = roster->procs[i].life;
			r->held = r->waits = false;
			r->n_slow = r->n_above = 0;
			r->start.class_name = NULL;
		}
}

int rules_look(struct rules *r, int64_t now_ns, uint32_t world_size, bool finishing,
	       struct facts *facts)
{
	static int (*const looks[])(struct rules *) = {
		start_look,	endpoint_look, resolution_look,	    interface_look, port_look,
		dataplane_look, missing_look,  data_dependent_look, mismatch_look,
		p2p_order_look, absent_look,
		clock_stamps_look,
	};

	if (r->looked_ns == INT64_MIN)
		r->base_ns = now_ns;
	r->fleet_ns = now_ns;
	r->now_ns = r->ledger.now_ns = now_ns - r->base_ns;
	if (!finishing && r->looked_ns != INT64_MIN && now_ns - r->looked_ns < LOOK_NS)
		return 0;
	r->looked_ns = now_ns;
	r->facts = facts;
	r->finishing = finishing;
	r->world_size = world_size;
	follow_life(r);
	for (size_t i = 0; i < sizeof looks / sizeof *looks; i++) {
		int e = looks[i](r);

		if (e < 0)
			return e;
	}
	return 0;
}

void finding_rank(struct finding *f, int32_t rank)
{
	uint32_t i = f->n_ranks;

	for (uint32_t k = 0; k < f->n_ranks; k++)
		if (f->ranks[k] == rank)
			return;
	if (f->n_ranks == RULES_MAX_RANKS)
		return;
	for (; i > 0 && f->ranks[i - 1] > rank; i--)
		f->ranks[i] = f->ranks[i - 1];
	f->ranks[i] = rank;
	f->n_ranks++;
}

void words_ranks(const int32_t *ranks, uint32_t n, char *out, size_t n_out)
{
	uint32_t n_named = n > 8 ? 8 : n;
	size_t at = (size_t)snprintf(out, n_out, n == 1 ? "Rank" : "Ranks");

	for (uint32_t i = 0; i < n_named && at < n_out; i++)
		at += (size_t)snprintf(out + at, n_out - at, "%s%d",
				       i == 0 ? " " : i + 1 == n ? " and " : ", ", ranks[i]);
	if (n > n_named && at < n_out)
		snprintf(out + at, n_out - at, " and %u more", n - n_named);
}

/* ,"key":"value" */
static size_t put_text(char *out, size_t n_out, size_t at, const char *key, const char *value)
{
	char quoted[256];

	if (!value || at >= n_out)
		return at;
	words_json(value, quoted, sizeof quoted);
	return at + (size_t)snprintf(out + at, n_out - at, ",\"%s\":\"%s\"", key, quoted);
}

static const char *culprit(struct rules *r, const struct finding *f)
{
	char text[RULES_MAX_RANKS * 12 + 2048];
	size_t at = (size_t)snprintf(text, sizeof text, "{\"ranks\":[");

	for (uint32_t i = 0; i < f->n_ranks; i++)
		at += (size_t)snprintf(text + at, sizeof text - at, "%s%d", i ? "," : "",
				       f->ranks[i]);
	at += (size_t)snprintf(text + at, sizeof text - at, "]");
	at = put_text(text, sizeof text - 1, at, "host", f->host);
	at = put_text(text, sizeof text - 1, at, "group", f->group);
	if (f->has_call)
		at += (size_t)snprintf(text + at, sizeof text - at, ",\"call\":%llu",
				       (unsigned long long)f->call);
	if (f->step != EVENT_STEP_UNKNOWN)
		at += (size_t)snprintf(text + at, sizeof text - at, ",\"step\":%u", f->step);
	if (f->has_stage)
		at += (size_t)snprintf(text + at, sizeof text - at, ",\"stage\":%u", f->stage);
	if (f->has_bucket)
		at += (size_t)snprintf(text + at, sizeof text - at, ",\"bucket\":%u", f->bucket);
	at = put_text(text, sizeof text - 1, at, "link", f->link);
	at = put_text(text, sizeof text - 1, at, "setting", f->setting);
	at = put_text(text, sizeof text - 1, at, "module", f->module);
	at = put_text(text, sizeof text - 1, at, "detail", f->detail);
	return facts_printf(r->facts, "%s}", text);
}

static void remember_slow(struct rules *r, const struct finding *f)
{
	struct rules_slow *s = &r->slow[r->n_slow];

	for (uint32_t i = 0; i < r->n_slow; i++)
		if (strcmp(r->slow[i].class_name, f->class_name) == 0 &&
		    r->slow[i].n_ranks == f->n_ranks &&
		    memcmp(r->slow[i].ranks, f->ranks, f->n_ranks * sizeof *f->ranks) == 0)
			return;
	if (r->n_slow == RULES_MAX_SLOW)
		return;
	s->class_name = f->class_name;
	s->n_ranks = f->n_ranks;
	memcpy(s->ranks, f->ranks, f->n_ranks * sizeof *f->ranks);
	s->first_step = f->step;
	r->n_slow++;
}

bool rules_explained(const struct rules *r, int32_t rank)
{
	for (uint32_t i = 0; i < r->n_slow; i++) {
		bool names = r->slow[i].n_ranks == 0 || rank < 0;

		for (uint32_t k = 0; k < r->slow[i].n_ranks; k++)
			names |= r->slow[i].ranks[k] == rank;
		if (names)
			return true;
	}
	return false;
}

int rules_tell(struct rules *r, const struct finding *f)
{
	struct fact_verdict *v = FACTS_PUSH(r->facts, verdicts);

	if (!v)
		return -ENOMEM;
	snprintf(v->key, sizeof v->key, "%.40s/%u/%.30s/%llu",
		 f->key ? f->key : f->class_name, r->life,
		 f->group ? f->group : "", f->has_call ? (unsigned long long)f->call : 0);
	v->class_name = f->class_name;
	v->severity = f->severity;
	v->confidence = f->confidence;
	v->error_kind = f->error_kind;
	v->culprit_json = culprit(r, f);
	v->sentence = facts_string(r->facts, f->sentence);
	v->evidence_json = facts_string(r->facts, f->evidence_json ? f->evidence_json : "[]");
	v->rules_out_json = facts_string(r->facts, f->rules_out_json ? f->rules_out_json : "[]");
	v->coverage_json = facts_string(r->facts, "{}");
	v->first_step = f->step;
	v->last_step = f->last_step > f->step ? f->last_step : f->step;
	v->detected_ns = r->fleet_ns;
	v->onset_ns = f->onset_ns == FACT_NONE ? r->fleet_ns : f->onset_ns;
	v->cost_ratio = f->cost_ratio > 0 ? f->cost_ratio : (double)NAN;
	v->margin_ns = f->margin_ns;
	v->error_ns = f->error_ns;
	if (strncmp(f->class_name, "init.", 5) == 0 && f->severity == SEVERITY_STUCK) {
		r->start = *f;
		snprintf(r->start_sentence, sizeof r->start_sentence, "%s", f->sentence);
	}
	r->n_above += f->severity != SEVERITY_NOTICE;
	if (f->severity == SEVERITY_STUCK)
		r->held = true;
	if (f->severity == SEVERITY_SLOW)
		remember_slow(r, f);
	return 0;
}
