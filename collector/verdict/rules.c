#include "rules.h"
#include "standstill.h"
#include "words.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_NS INT64_C(1000000000)

void rules_init(struct rules *r, struct roster *roster, struct match *match)
{
	*r = (struct rules){ .looked_ns = INT64_MIN,
			     .ledger = { .roster = roster, .match = match },
			     .lanes = { .roster = roster },
			     .pauses = { .roster = roster },
			     .placement = { .roster = roster } };
	r->lanes.messages = &r->ledger.messages;
}

void rules_fini(struct rules *r)
{
	ledger_fini(&r->ledger);
	side_fini(&r->side);
	gauges_fini(&r->gauges);
	latecomers_fini(&r->latecomers);
	transfers_fini(&r->transfers);
	gathers_fini(&r->gathers);
	step_times_fini(&r->step_times);
	rates_fini(&r->rates);
	losses_fini(&r->losses);
	paths_fini(&r->paths);
	contrasts_fini(&r->contrasts);
	pulse_fini(&r->pulse);
	numbers_fini(&r->numbers);
	silent_fini(&r->silent);
	measures_fini(&r->measures);
	pace_fini(&r->pace);
	beats_fini(&r->beats);
	lanes_fini(&r->lanes);
	pauses_fini(&r->pauses);
	placement_fini(&r->placement);
	clock_stamps_fini(&r->stamps);
	free(r->places.v);
}

int rules_event(struct rules *r, struct proc *p, const struct event *ev, uint32_t restart_count)
{
	uint32_t proc = (uint32_t)(p - r->ledger.roster->procs);
	int e = ledger_event(&r->ledger, p, ev, restart_count);
	bool call = ev->kind == EVENT_COLL_BEGIN || ev->kind == EVENT_COLL_END ||
		    ev->kind == EVENT_COLL_SUBMIT;

	/* Millions a second: who has no use for a kind is not asked. */
	if (call && r->waits)
		peer_busy_event(r);
	if (e == 0 && ev->kind >= EVENT_LAUNCH)
		e = gathers_event(&r->gathers, proc, ev);
	if (e == 0 && ev->kind == EVENT_STEP_BEGIN)
		e = step_times_event(&r->step_times, proc, ev);
	if (e == 0 && call)
		e = rates_event(&r->rates, r->ledger.roster, &r->ledger.messages, p, ev);
	if (e == 0)
		e = silent_event(r, p, ev);
	if (e == 0 && ev->kind != EVENT_STREAM_WAIT)
		e = lanes_event(&r->lanes, p, ev);
	if (e == 0 && (ev->kind == EVENT_COLL_BEGIN || ev->kind == EVENT_WORK_BEGIN ||
		       ev->kind == EVENT_WORK_END))
		e = pauses_event(&r->pauses, p, ev);
	return e;
}

int rules_record(struct rules *r, const struct proc *p, int64_t at_ns, const char *category,
		 const char *fields_json, size_t n_fields)
{
	int e = side_note(&r->side, (uint32_t)(p - r->ledger.roster->procs), at_ns, r->now_ns, category,
			  fields_json, n_fields);

	if (e == 0)
		e = counts_record(r, p, at_ns, category, fields_json, n_fields);
	if (e == 0)
		e = measures_record(&r->measures, (uint32_t)(p - r->ledger.roster->procs), at_ns, category,
				    fields_json, n_fields);
	if (e == 0)
		e = silent_record(r, p, at_ns, category, fields_json, n_fields);
	if (e == 0)
		e = pauses_record(&r->pauses, p, at_ns, category, fields_json, n_fields);
	if (e == 0)
		e = placement_record(&r->placement, p, at_ns, category, fields_json, n_fields);
	return e;
}

int rules_lost(struct rules *r, const struct proc *p, uint64_t n)
{
	r->n_lost += n;
	return p ? ledger_lost(&r->ledger, p) : 0;
}

int rules_call(struct rules *r, const struct match *m, uint32_t group, const struct coll *c)
{
	struct lateness late;
	int e = latecomers_call(&r->latecomers, m, group, c);

	if (e == 0)
		e = transfers_call(&r->transfers, m, group, c);
	if (e == 0)
		e = rates_call(&r->rates, m, group, c);
	if (e == 0)
		e = silent_call(r, m, group, c);
	if (e == 0)
		e = clock_stamps_call(&r->stamps, m, group, c);
	if (e < 0 || (!r->lanes.any && !r->pauses.any && !r->placement.any))
		return e;
	e = lateness_of(m, group, c, &r->places, r->pauses.any || r->placement.any, &late);
	if (e < 0)
		return e;
	lanes_call(&r->lanes, m, group, c, &late, &r->places);
	pauses_call(&r->pauses, m, c, &late);
	placement_call(&r->placement, m, c, &late);
	return 0;
}

int rules_step(struct rules *r, const struct fact_step *step, const struct fact_rank_step *v,
	       size_t n, struct facts *facts)
{
	r->facts = facts;
	return pace_step(&r->pace, step, v, n, r->world_size);
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
			silent_life(r);
			r->start.class_name = NULL;
		}
}

/* What the rules on links and cards go by. */
static int rates_look(struct rules *r)
{
	int e = paths_look(&r->paths, &r->side, r->ledger.roster);

	if (e == 0)
		e = contrasts_look(&r->contrasts, &r->rates, r->life);
	if (e == 0)
		e = rates_tell(&r->rates, r->now_ns, r->finishing,
			       &(struct rates_peaks){ paths_inside_gbs(&r->paths),
						      paths_between_gbs(&r->paths) }, r->facts);
	return e;
}

int rules_look(struct rules *r, int64_t now_ns, uint32_t world_size, bool finishing,
	       struct facts *facts)
{
	static int (*const looks[])(struct rules *) = {
		/* start-up */
		start_look, endpoint_look, resolution_look, interface_look, port_look, route_look,
		dataplane_look, missing_look,
		/* calls that differ */
		bucket_layout_look, data_dependent_look, mismatch_look, p2p_order_look,
		/* configuration, network and memory, where the job stands still or fails by it */
		version_look, setting_look, device_look, adapters_look,
		qp_retry_look, corruption_look, lossy_class_look,
		deferred_free_look, shard_boundary_look, prefetch_look, fragmentation_look, growth_look,
		absent_look, dumped_look,
		/* wrong, and nobody notices */
		no_sync_look, without_sync_look, outside_sync_look, scaler_look, replica_desync_look,
		scaling_look, nan_source_look,
		/* slow: from what explains most */
		device_slow_look, setting_slow_look, version_slow_look,
		retransmits_look, shared_nic_look, ring_nic_look, host_p2p_path_look, jitter_look, link_look,
		stages_look, checkpoint_look, rotating_placement_look, rotating_pause_look, stage_imbalance_look,
		pace_look,
		amplified_look, bubble_look, timers_look,
		replayed_look, /* after all that are nearer to a reason */
		clock_stamps_look, /* above a notice only where nothing else is */
	};
	/* Dumps have no times that compare, and say what they say all at once. */
	static int (*const dump_looks[])(struct rules *) = { mismatch_look, dumped_look, NULL };
	bool dumps_only = r->dumped && r->dumped->alone;
	int e;

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
	if (dumps_only && !finishing)
		return 0;
	pauses_settle(&r->pauses, finishing);
	placement_settle(&r->placement, finishing);
	e = dumps_only ? 0 : rates_look(r);
	for (size_t i = 0; dumps_only && e >= 0 && dump_looks[i]; i++)
		e = dump_looks[i](r);
	for (size_t i = 0; !dumps_only && e >= 0 && i < sizeof looks / sizeof *looks; i++)
		e = looks[i](r);
	return e < 0 ? e : 0;
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

void rules_named(struct rules *r, const char *class_name, const int32_t *ranks, uint32_t n,
		 uint32_t first_step)
{
	struct finding f = { .class_name = class_name, .step = first_step };

	for (uint32_t i = 0; i < n; i++)
		finding_rank(&f, ranks[i]);
	remember_slow(r, &f);
}

bool rules_explained_else(const struct rules *r, int32_t rank)
{
	for (uint32_t i = 0; i < r->n_slow; i++) {
		bool names = r->slow[i].n_ranks == 0;

		for (uint32_t k = 0; k < r->slow[i].n_ranks; k++)
			names |= r->slow[i].ranks[k] == rank;
		if (names && strcmp(r->slow[i].class_name, "slow.fixed_rank") != 0)
			return true;
	}
	return r->pace.told_class &&
	       (r->pace.told.n_ranks == 0 || pace_holds(&r->pace.told, (uint32_t)rank));
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

uint32_t rules_n_told(const struct rules *r, const char *class_name)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->n_slow; i++)
		n += strcmp(r->slow[i].class_name, class_name) == 0;
	return n;
}

/* What the verdict was reached without: ranks that were never heard of in this life. */
static const char *coverage(struct rules *r)
{
	const struct roster *roster = r->ledger.roster;
	bool *heard = calloc(r->world_size + 1, sizeof *heard);
	uint32_t n_heard = 0;

	if (!heard)
		return "{}";
	for (uint32_t i = 0; i < roster->n_procs; i++) {
		const struct proc *p = &roster->procs[i];

		/* A rank may have had several processes. */
		if (p->rank < 0 || (uint32_t)p->rank >= r->world_size || p->life != r->life ||
		    heard[p->rank])
			continue;
		heard[p->rank] = true;
		n_heard++;
	}
	free(heard);
	return facts_printf(r->facts, "{\"ranks_silent\":%u,\"events_lost\":%llu}",
			    r->world_size > n_heard ? r->world_size - n_heard : 0,
			    (unsigned long long)r->n_lost);
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
	v->coverage_json = coverage(r);
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
