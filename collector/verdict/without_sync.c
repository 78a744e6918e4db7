/* without_sync.c - silent.group_without_sync: the replicas of one group are not
 * synchronised, while those of its sibling groups are.
 *
 * What it says: the group that never reduces gradients, or stopped doing so, and
 * since which step.
 *
 * How it decides: siblings are groups of the same size and layout (the same
 * distances between their ranks) with no rank in common. Where a sibling reduces in
 * step after step and this group does not, while its ranks go through the same steps,
 * it is left out. Another group that holds all its ranks may do the same job: then
 * nothing is said. Likely by itself; certain where sums of parameters of its members
 * differ. Where they agree, or where its ranks do another kind of work (no passes
 * backward while the siblings have some, much less or more time in kernels), it is
 * not told: they may be frozen, or only evaluate.
 *
 * Neighbours: silent.no_sync_after_last_backward (all groups call, too early), a
 * group that stands still (stuck.*, absent.*), groups of another kind that happen to
 * be as large.
 */
#include "rules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIN_STEPS 2 /* in which a sibling reduced and this one did not; one, where numbers differ */
#define MAX_WORK_RATIO 2.0
#define MAX_TRIED 8 /* siblings of one group */
#define LOOK_NS INT64_C(5000000000) /* siblings are many: not in every look */

static int32_t lowest(const struct group *g)
{
	int32_t least = INT32_MAX;

	for (uint32_t i = 0; i < g->n_members; i++)
		least = g->ranks[i] < least ? g->ranks[i] : least;
	return least;
}

/* Is b as a, moved to other ranks? */
static bool is_sibling(const struct group *a, const struct group *b)
{
	int32_t by;

	if (a->n_members != b->n_members || a->life != b->life)
		return false;
	by = lowest(b) - lowest(a);
	for (uint32_t i = 0; i < a->n_members; i++)
		if (idmap_get(&b->member_of, (uint32_t)(a->ranks[i] + by)) == IDMAP_NONE ||
		    idmap_get(&b->member_of, (uint32_t)a->ranks[i]) != IDMAP_NONE)
			return false;
	return true;
}

static bool holds(const struct group *a, const struct group *b) /* a all ranks of b? */
{
	for (uint32_t i = 0; i < b->n_members; i++)
		if (idmap_get(&a->member_of, (uint32_t)b->ranks[i]) == IDMAP_NONE)
			return false;
	return a->life == b->life;
}

static struct silent_group sync_of(const struct rules *r, uint32_t group)
{
	return group < r->silent.n_groups ? r->silent.groups[group] : (struct silent_group){ 0 };
}

static int64_t last_step(const struct silent_group *g)
{
	return g->n_steps ? (int64_t)g->steps[(g->n_steps - 1) % SILENT_STEPS] : -1;
}

/* How far have all its ranks come? The least of the steps they have begun and left;
 * kinds of work come along. False when one of them is not known. */
static bool progress(const struct rules *r, const struct group *g, int64_t *ret_done, double *ret_busy_ns,
		     uint64_t *ret_backward)
{
	const struct roster *roster = r->ledger.roster;
	uint32_t n = 0;

	*ret_done = INT64_MAX;
	*ret_busy_ns = 0;
	*ret_backward = 0;
	for (uint32_t k = 0; k < g->n_members; k++) {
		uint32_t rank = (uint32_t)g->ranks[k];
		uint32_t i = rank < r->silent.n_ranks ? r->silent.proc_of[rank] : UINT32_MAX;
		const struct pulse_proc *v = pulse_proc(&r->pulse, i);
		const struct proc *p;
		int64_t done;

		if (i == UINT32_MAX)
			continue;
		p = &roster->procs[i];
		done = p->cur_step == EVENT_STEP_UNKNOWN ? -1 : (int64_t)p->cur_step - 1;
		*ret_done = done < *ret_done ? done : *ret_done;
		*ret_busy_ns += v ? (double)v->busy_ns : 0;
		*ret_backward += v ? v->n_backward : 0;
		n++;
	}
	return n >= g->n_members;
}

static bool works_alike(const struct rules *r, const struct group *a, const struct group *b, int64_t *ret_done)
{
	int64_t done_a, done_b;
	double busy_a, busy_b;
	uint64_t back_a, back_b;

	if (!progress(r, a, &done_a, &busy_a, &back_a) || !progress(r, b, &done_b, &busy_b, &back_b))
		return false;
	*ret_done = done_a < done_b ? done_a : done_b;
	return (back_a > 0) == (back_b > 0) && busy_a <= busy_b * MAX_WORK_RATIO &&
	       busy_b <= busy_a * MAX_WORK_RATIO;
}

/* Steps (without steps: calls) that the sibling reduced in and this group did not. */
static uint32_t missed(const struct rules *r, const struct silent_group *mine, const struct silent_group *theirs,
		       int64_t done)
{
	uint32_t n = 0;

	if (theirs->n_steps == 0) /* numbers only mean something when nobody is behind */
		return r->finishing && mine->n <= theirs->n / 2 && mine->n_steps == 0
			       ? (uint32_t)(theirs->n - mine->n)
			       : 0;
	for (uint32_t i = 0; i < theirs->n_steps && i < SILENT_STEPS; i++)
		n += (int64_t)theirs->steps[i] > last_step(mine) && (int64_t)theirs->steps[i] <= done;
	return n;
}

/* Does another group do it for them? */
static bool covered(const struct rules *r, uint32_t group, const struct silent_group *theirs)
{
	const struct match *m = r->ledger.match;

	for (uint32_t i = 0; i < m->n_groups; i++) {
		struct silent_group s = sync_of(r, i);

		if (i != group && s.n > 0 && holds(&m->groups[i], &m->groups[group]) &&
		    s.n_steps * 2 >= theirs->n_steps && s.n * 2 >= theirs->n_steps)
			return true;
	}
	return false;
}

static int tell(struct rules *r, uint32_t group, uint32_t sibling, uint32_t n_missed, const struct compared *c)
{
	const struct group *g = &r->ledger.match->groups[group];
	struct silent_group mine = sync_of(r, group), theirs = sync_of(r, sibling);
	char sentence[700], detail[320], apart[120] = "", ranks[160], evidence[400];
	struct finding who = { 0 };
	struct finding f = {
		.class_name = "silent.group_without_sync", .severity = SEVERITY_WRONG,
		.confidence = c->n_apart > 0 ? CONFIDENCE_CERTAIN : CONFIDENCE_LIKELY, .group = g->name,
		.step = theirs.n_steps ? (uint32_t)(last_step(&mine) + 1) : EVENT_STEP_UNKNOWN,
		.onset_ns = FACT_NONE, .detail = detail, .sentence = sentence,
	};

	if (theirs.n_steps) {
		uint32_t first = UINT32_MAX;

		for (uint32_t i = 0; i < theirs.n_steps && i < SILENT_STEPS; i++)
			if ((int64_t)theirs.steps[i] > last_step(&mine) && theirs.steps[i] < first)
				first = theirs.steps[i];
		f.step = first;
		f.last_step = (uint32_t)last_step(&theirs);
	}
	for (uint32_t i = 0; i < g->n_members; i++)
		finding_rank(&who, g->ranks[i]);
	words_ranks(who.ranks, who.n_ranks, ranks, sizeof ranks);
	if (c->n_apart > 0)
		silent_words(c, apart, sizeof apart);
	snprintf(detail, sizeof detail, "%s: %llu reductions against %llu of %.60s", ranks,
		 (unsigned long long)mine.n, (unsigned long long)theirs.n,
		 r->ledger.match->groups[sibling].name);
	snprintf(sentence, sizeof sentence,
		 "Group %.60s (%s) %s its gradients, while its sibling %.60s did so in %u %s: the replicas of this "
		 "group drift apart%s%s%s. Look for what turns the averaging on: a flag that is set in a phase that "
		 "these ranks do not have, or a stage that is not wrapped.",
		 g->name, ranks, mine.n ? "no longer reduces" : "never reduces",
		 r->ledger.match->groups[sibling].name, n_missed, theirs.n_steps ? "steps" : "calls more",
		 apart[0] ? " (" : "", apart, apart[0] ? ")" : "");
	silent_evidence(c, r->ledger.match->groups[sibling].name, UINT64_MAX, evidence, sizeof evidence);
	f.evidence_json = evidence;
	f.rules_out_json = "[\"absent.*: its ranks go through the same steps\"]";
	r->silent.told = true;
	r->silent.without_sync = c->n_apart > 0 ? 2 : 1;
	r->silent.told_group = group + 1;
	return rules_tell(r, &f);
}

static int look_at(struct rules *r, uint32_t group)
{
	const struct match *m = r->ledger.match;
	const struct group *g = &m->groups[group];
	struct silent_group mine = sync_of(r, group);
	uint32_t n_tried = 0;
	struct compared c;

	for (uint32_t i = 0; i < m->n_groups && i < r->silent.n_groups && n_tried < MAX_TRIED; i++) {
		struct silent_group theirs = sync_of(r, i);
		uint32_t n_missed;
		int64_t done;

		if (i == group || theirs.n == 0 || theirs.n_steps < mine.n_steps || !is_sibling(g, &m->groups[i]) ||
		    (n_tried++, missed(r, &mine, &theirs, INT64_MAX) == 0) ||
		    !works_alike(r, g, &m->groups[i], &done))
			continue;
		n_missed = missed(r, &mine, &theirs, done);
		if (n_missed == 0 || covered(r, group, &theirs))
			continue;
		silent_compare(r, group, NUMBER_PARAM_SUM, UINT32_MAX, &c);
		if (c.n_apart == 0 && (c.n_equal > 0 || n_missed < (r->finishing ? MIN_STEPS : MIN_STEPS + 1)))
			continue;
		if (n_missed < MIN_STEPS && (!r->finishing || mine.n > 0))
			continue;
		if (r->silent.without_sync < (c.n_apart > 0 ? 2 : 1))
			return tell(r, group, i, n_missed, &c);
	}
	return 0;
}

static bool is_of_life(const struct rules *r, uint32_t proc)
{
	const struct proc *p = &r->ledger.roster->procs[proc];

	return p->life == r->life && p->rank >= 0;
}

/* The processes of this life, by rank. 0 or -ENOMEM. */
static int list_ranks(struct rules *r)
{
	const struct roster *roster = r->ledger.roster;
	struct silent *s = &r->silent;

	s->n_ranks = 0;
	for (uint32_t i = 0; i < roster->n_procs; i++)
		if (is_of_life(r, i) && (uint32_t)roster->procs[i].rank >= s->n_ranks)
			s->n_ranks = (uint32_t)roster->procs[i].rank + 1;
	s->proc_of = malloc((s->n_ranks + 1) * sizeof *s->proc_of);
	if (!s->proc_of)
		return -ENOMEM;
	memset(s->proc_of, 0xff, s->n_ranks * sizeof *s->proc_of);
	for (uint32_t i = 0; i < roster->n_procs; i++)
		if (is_of_life(r, i))
			s->proc_of[roster->procs[i].rank] = i;
	return 0;
}

static int look_at_all(struct rules *r)
{
	const struct match *m = r->ledger.match;
	uint32_t restart_count = silent_restart_count(r);

	for (uint32_t i = 0; i < m->n_groups; i++) {
		const struct group *g = &m->groups[i];
		int e;

		if (!g->known || g->n_members < 2 || g->life != restart_count)
			continue;
		if (r->silent.without_sync && r->silent.told_group != i + 1)
			continue;
		e = look_at(r, i);
		if (e < 0 || (e == 0 && r->silent.without_sync == 2))
			return e;
	}
	return 0;
}

int without_sync_look(struct rules *r)
{
	const struct match *m = r->ledger.match;
	uint32_t n_known = 0;
	int e;
	bool any = false;

	if ((!r->finishing && r->now_ns - r->silent.siblings_ns < LOOK_NS) || r->held ||
	    r->silent.without_sync == 2 || (r->silent.told && !r->silent.without_sync))
		return 0;
	for (uint32_t i = 0; i < m->n_groups; i++) {
		n_known += m->groups[i].known;
		any |= i < r->silent.n_groups && r->silent.groups[i].n > 0;
	}
	if (!any || n_known < 2)
		return 0;
	r->silent.siblings_ns = r->now_ns;
	e = list_ranks(r);
	if (e == 0)
		e = look_at_all(r);
	free(r->silent.proc_of);
	r->silent.proc_of = NULL;
	return e;
}
