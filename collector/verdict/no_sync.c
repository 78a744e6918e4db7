/* no_sync.c - silent.no_sync_after_last_backward: gradients are averaged too early in the
 * step, and what is computed later is never averaged.
 *
 * What it says: the group whose reduction comes too early, the first such call and
 * step, and how many passes of each step are left out. Nobody is named: all ranks do
 * the same wrong thing.
 *
 * How it decides: with accumulation the same kernels run pass after pass. Behind the
 * last reduction of the step ran one or more whole passes more, none of them waits
 * for it, and what waits for it is the step's last piece of work. That on all ranks
 * and in all steps is likely a mistake; certain where sums of parameters or norms of
 * gradients of the members differ too. Without steps the passes may be steps of their
 * own (parameters averaged late on purpose), and passes of one kernel each may be
 * anything: then only a notice. Where sums agree,
 * nothing is said. The loop's own words (passes backward, optimizer) serve where
 * launches are not seen.
 *
 * Neighbours: buckets that are reduced while backward goes on (the last one comes
 * behind the last kernel), averaging every k-th step (no reduction in the others), a
 * loss that is averaged (too few bytes), silent.group_without_sync (no call at all).
 */
#include "rules.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct tally { /* of a group, over its members */
	uint32_t n_procs, n_left_out, n_least, n_right, n_unclear;
	const struct pulse_sync *first;
	uint32_t proc; /* of first */
};

static void add(struct tally *t, const struct pulse_sync *s, uint32_t proc)
{
	if (s->n_left_out + s->n_right + s->n_unclear == 0)
		return;
	if (t->n_procs == 0 || s->n_left_out < t->n_least)
		t->n_least = s->n_left_out;
	t->n_procs++;
	t->n_left_out += s->n_left_out;
	t->n_right += s->n_right;
	t->n_unclear += s->n_unclear;
	if (s->n_left_out > 0 && (!t->first || s->first_step < t->first->first_step)) {
		t->first = s;
		t->proc = proc;
	}
}

/* 0 nothing, 1 a notice, 2 likely, 3 certain */
static unsigned judge(const struct rules *r, const struct tally *t, uint32_t group, struct compared *ret)
{
	*ret = (struct compared){ 0 };
	if (!t->first || t->n_procs < 2 || t->n_least == 0)
		return 0;
	if (group != UINT32_MAX) {
		silent_compare(r, group, NUMBER_PARAM_SUM, UINT32_MAX, ret);
		if (ret->n_apart == 0 && ret->n_equal > 0)
			return 0;
		if (ret->n_apart == 0)
			silent_compare(r, group, NUMBER_GRAD_NORM, UINT32_MAX, ret);
	}
	if (ret->n_apart > 0)
		return t->n_left_out > t->n_right + t->n_unclear ? 3 : 0;
	if (ret->n_equal > 0 || t->n_right > 0 || t->n_unclear > 0)
		return 0;
	if (t->n_least < (r->finishing ? 2u : 4u))
		return 0;
	return t->first->doubtful ? 1 : 2;
}

static int tell(struct rules *r, const struct tally *t, uint32_t group, unsigned level,
		const struct compared *c)
{
	const struct pulse_sync *s = t->first;
	const char *name = group == UINT32_MAX ? NULL : r->ledger.match->groups[group].name;
	char sentence[700], apart[120] = "", detail[160], evidence[400];
	struct finding f = {
		.class_name = "silent.no_sync_after_last_backward",
		.severity = level == 1 ? SEVERITY_NOTICE : SEVERITY_WRONG,
		.confidence = level == 3 ? CONFIDENCE_CERTAIN : CONFIDENCE_LIKELY, .group = name,
		.step = s->first_step, .last_step = s->last_step, .detail = detail, .sentence = sentence,
		.onset_ns = roster_place(r->ledger.roster, &r->ledger.roster->procs[t->proc], s->at_ns).at.ns,
	};

	if (s->n_kernels) {
		f.has_call = true;
		f.call = s->first_call;
	}
	if (c->n_apart > 0)
		silent_words(c, apart, sizeof apart);
	snprintf(detail, sizeof detail, "all ranks, every step: %u pass%s behind the last reduction",
		 s->n_passes, s->n_passes == 1 ? "" : "es");
	snprintf(sentence, sizeof sentence,
		 "Gradients%s%.60s are averaged before the step's last backward: %u more pass%s ran behind the "
		 "last reduction on every rank, and the optimizer uses what nobody averaged%s%s%s. Let the last "
		 "micro-batch be the one that is synchronised: set the flag before its forward.",
		 name ? " of group " : "", name ? name : "", s->n_passes, s->n_passes == 1 ? "" : "es",
		 apart[0] ? ": the ranks' numbers differ (" : "", apart, apart[0] ? ")" : "");
	silent_evidence(c, name, f.has_call ? f.call : UINT64_MAX, evidence, sizeof evidence);
	f.evidence_json = evidence;
	f.rules_out_json =
		"[\"overlapped buckets: no whole pass runs behind the last of them\","
		"\"silent.group_without_sync: the group does reduce\"]";
	r->silent.told |= level > 1;
	r->silent.no_sync = (uint8_t)level;
	r->silent.told_group = group == UINT32_MAX ? 0 : group + 1;
	return rules_tell(r, &f);
}

/* By launches each group, by the loop's words all of the processes as one. */
int no_sync_look(struct rules *r)
{
	uint32_t n_groups = r->ledger.match->n_groups;
	struct tally words = { 0 }, *by_group;
	uint32_t group = UINT32_MAX;
	struct compared c;
	unsigned level;
	int e = 0;

	if (r->silent.no_sync == 3 || (r->silent.told && r->silent.no_sync == 0))
		return 0;
	if (r->finishing)
		pulse_finish(&r->pulse);
	by_group = calloc((size_t)n_groups + 1, sizeof *by_group);
	if (!by_group)
		return -ENOMEM;
	for (uint32_t i = 0; i < r->pulse.n && i < r->ledger.roster->n_procs; i++) {
		const struct pulse_proc *p = &r->pulse.v[i];

		if (r->ledger.roster->procs[i].life != r->life)
			continue;
		for (uint32_t k = 0; k < p->n_syncs; k++)
			if (p->syncs[k].group < n_groups)
				add(&by_group[p->syncs[k].group], &p->syncs[k], i);
		add(&words, &p->by_passes, i);
		if (p->by_passes.group < n_groups)
			group = p->by_passes.group;
	}
	for (uint32_t g = 0; g < n_groups && e == 0; g++) {
		level = judge(r, &by_group[g], g, &c);
		if (level > r->silent.no_sync)
			e = tell(r, &by_group[g], g, level, &c);
	}
	level = judge(r, &words, group, &c);
	if (e == 0 && level > r->silent.no_sync)
		e = tell(r, &words, group, level, &c);
	free(by_group);
	return e;
}
