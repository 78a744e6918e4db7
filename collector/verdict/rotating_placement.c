/* rotating_placement.c - slow.rotating_cpu_placement: unbound host threads, moving.
 *
 * What it says: that the late rank changes with where the host threads run, how
 * often, and what it costs.
 *
 * How it decides: on placement.h. Four collectives at least (eight while the job goes on) were late for an ill
 * placed rank, of two ranks or more, none with more than 60 % of the cost; together
 * they take 3 % of the time; two thirds of all lateness is of ill placed ranks, and of
 * members that were not last half as many at most are ill placed. A thread that is bound
 * to one cpu does not move: such a job has another cause.
 *
 * Neighbours: slow.fixed_rank (one rank, whether it moves or not),
 * slow.rotating_host_pause (the program pauses), config.setting_differs.
 */
#include "rules.h"
#include "words.h"

#include <errno.h>
#include <stdio.h>

#define LEAST_CALLS 4
#define LEAST_RANKS 2
#define MOST_OF_ONE 0.6 /* of the cost; of two ranks 0.75 */
#define LEAST_COST 0.03
#define ILL_WHEN_LATE 0.67 /* of the lateness … */
#define ILL_OTHERWISE 0.5 /* … and of members that were not last, this part of that at most */

struct tally {
	uint32_t n, n_ranks, n_other_node, first_step, last_step;
	int32_t ranks[PLACEMENT_KEEP];
	double of_rank[PLACEMENT_KEEP], cost_ns, most, span_ns;
	int64_t onset_ns, margin_ns, error_ns;
};

static const struct placed_late *late_at(const struct placement *s, uint32_t i)
{
	uint64_t at = (s->n_late > PLACEMENT_KEEP ? s->n_late - PLACEMENT_KEEP : 0) + i;

	return at < s->n_late ? &s->late[at % PLACEMENT_KEEP] : NULL;
}

static void count(const struct placement *s, struct tally *t)
{
	const struct placed_late *v;

	*t = (struct tally){ .margin_ns = INT64_MAX };
	for (uint32_t i = 0; (v = late_at(s, i)); i++) {
		uint32_t k = 0;

		if (t->n++ == 0) {
			t->first_step = v->step;
			t->onset_ns = v->at_ns;
		}
		t->last_step = v->step;
		t->cost_ns += (double)v->cost_ns;
		t->n_other_node += v->other_node;
		if (v->cost_ns - v->error_ns < t->margin_ns - t->error_ns) {
			t->margin_ns = v->cost_ns;
			t->error_ns = v->error_ns;
		}
		while (k < t->n_ranks && t->ranks[k] != v->rank)
			k++;
		if (k == t->n_ranks)
			t->ranks[t->n_ranks++] = v->rank;
		t->of_rank[k] += (double)v->cost_ns;
		if (t->of_rank[k] > t->most)
			t->most = t->of_rank[k];
	}
	t->span_ns = (double)(s->n_late > PLACEMENT_KEEP ? s->last_ns - t->onset_ns :
							   s->last_ns - s->first_ns);
}

static bool is_bound(const struct placement *s, int32_t rank)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (s->v[i] && s->roster->procs[i].rank == rank && s->roster->procs[i].life == s->life)
			return s->v[i]->bound;
	return false;
}

static bool rotates(const struct rules *r, const struct tally *t)
{
	const struct placement *s = &r->placement;

	double ill_ns = t->cost_ns * (double)s->n_late / (t->n ? t->n : 1);
	double ill_late = ill_ns > 0 ? ill_ns / (ill_ns + (double)s->well_late_ns) : 0;

	for (uint32_t i = 0; i < t->n_ranks; i++)
		if (is_bound(s, t->ranks[i]))
			return false;
	return t->n >= (r->finishing ? 1 : 2) * LEAST_CALLS && t->n_ranks >= LEAST_RANKS &&
	       t->most <= (r->world_size == 2 ? 0.75 : MOST_OF_ONE) * t->cost_ns &&
	       t->cost_ns >= LEAST_COST * t->span_ns &&
	       ill_late >= ILL_WHEN_LATE &&
	       (double)s->n_others_ill <= ILL_OTHERWISE * ill_late * (double)s->n_others;
}

static int tell(struct rules *r, const struct tally *t)
{
	char sentence[700], detail[160], each[32];
	struct finding f = {
		.class_name = "slow.rotating_cpu_placement", .severity = SEVERITY_SLOW,
		.confidence = CONFIDENCE_LIKELY, .step = t->first_step, .last_step = t->last_step,
		.onset_ns = t->onset_ns, .setting = "cpu affinity",
		.cost_ratio = t->cost_ns < t->span_ns ? t->cost_ns / (t->span_ns - t->cost_ns) : 0,
		.margin_ns = t->margin_ns, .error_ns = t->error_ns,
		.error_kind = t->error_ns > 0 ? ERROR_KIND_HARD : ERROR_KIND_NONE,
		.evidence_json = "[{\"view\":\"record\",\"category\":\"sched.cpu\"},{\"view\":\"arrival\"}]",
		.rules_out_json = "[\"slow.fixed_rank: the late rank changes, and is not late where it is "
				  "placed well\"]",
	};

	words_ns((int64_t)(t->cost_ns / t->n), each, sizeof each);
	snprintf(detail, sizeof detail, "host threads move: %u ranks late in turn, %u times on the wrong "
		 "memory node, %u times on a shared cpu", t->n_ranks, t->n_other_node,
		 t->n - t->n_other_node);
	snprintf(sentence, sizeof sentence,
		 "Host threads are not bound and move between cpus: %u times the last rank of a collective "
		 "was one that ran on another memory node than its device (%u) or on a cpu of another rank (%u), "
		 "on %u ranks in turn, %s late each. That takes %.1f %% of the job's time. Bind each process "
		 "to cpus near its device (numactl, taskset, the launcher's or Slurm's binding).",
		 t->n, t->n_other_node, t->n - t->n_other_node, t->n_ranks, each,
		 100 * t->cost_ns / t->span_ns);
	f.detail = detail;
	f.sentence = sentence;
	return rules_tell(r, &f);
}

int rotating_placement_look(struct rules *r)
{
	struct tally t;
	uint32_t n_told = rules_n_told(r, "slow.rotating_cpu_placement");

	if (!r->placement.any || r->n_slow > n_told || (n_told > 0 && !r->finishing))
		return 0;
	count(&r->placement, &t);
	return rotates(r, &t) && tell(r, &t) < 0 ? -ENOMEM : 0;
}
