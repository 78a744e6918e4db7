/* rotating_pause.c - slow.rotating_host_pause: pauses that move over the ranks.
 *
 * What it says: the name of the pauses, how often and on how many ranks, and what the
 * job loses, because everyone waits for whoever pauses.
 *
 * How it decides: on the pauses that made a call late (pauses.h). Four calls at least, and
 * three ranks (two, where there are no more); eight while the job goes on, and none of them has more
 * than half of the cost; together they cost 3 % of the time or more. At most half of those ranks
 * pause in one step: the same few in each step, as the first of each host that writes a log, are fixed. Where all pause in
 * the same step nobody is late, and nothing is said.
 *
 * Neighbours: slow.fixed_rank (always the same one), slow.work_imbalance and
 * slow.rotating_cpu_placement (the late rank moves without a pause), slow.checkpoint
 * (a record says that it is saving).
 */
#include "rules.h"
#include "words.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LEAST_PAUSES 4
#define LEAST_RANKS 3
#define MOST_OF_ONE 0.55 /* of the cost; of two ranks 0.75 */
#define MOST_TOGETHER 0.5 /* of the ranks that pause */
#define LEAST_COST 0.03

struct tally {
	uint32_t n, n_calls, n_ranks, first_step, last_step;
	int32_t ranks[PAUSES_KEEP];
	double of_rank[PAUSES_KEEP], cost_ns, of_name, most;
	int64_t least_margin_ns, error_ns, onset_ns; /* of the one that is told apart worst */
	int64_t pause_ns;
	uint32_t name;
	bool soft;
};

static void add_rank(struct tally *t, const struct late_pause *v)
{
	uint32_t i = 0;

	while (i < t->n_ranks && t->ranks[i] != v->rank)
		i++;
	if (i == t->n_ranks) {
		t->ranks[t->n_ranks++] = v->rank;
		t->of_rank[i] = 0;
	}
	t->of_rank[i] += (double)v->cost_ns;
	if (t->of_rank[i] > t->most)
		t->most = t->of_rank[i];
}

/* The name that costs most. */
static void add_name(struct tally *t, const struct pauses *s, uint32_t name)
{
	const struct late_pause *v;
	double cost_ns = 0;

	for (uint32_t i = 0; (v = pauses_late(s, i)); i++)
		if (!v->saves && v->name == name)
			cost_ns += (double)v->cost_ns;
	if (cost_ns > t->of_name) {
		t->of_name = cost_ns;
		t->name = name;
	}
}

static void count(const struct pauses *s, struct tally *t)
{
	const struct late_pause *v;
	int64_t call_ns = INT64_MIN;

	*t = (struct tally){ .least_margin_ns = INT64_MAX };
	for (uint32_t i = 0; (v = pauses_late(s, i)); i++) {
		if (v->saves)
			continue;
		if (t->n++ == 0) {
			t->first_step = v->step;
			t->onset_ns = v->at_ns;
		}
		t->n_calls += v->at_ns != call_ns;
		call_ns = v->at_ns;
		t->last_step = v->step;
		t->cost_ns += (double)v->cost_ns;
		t->pause_ns += v->pause_ns;
		t->soft |= v->by_duration;
		if (v->margin_ns - v->error_ns < t->least_margin_ns - t->error_ns) {
			t->least_margin_ns = v->margin_ns;
			t->error_ns = v->error_ns;
		}
		add_rank(t, v);
		add_name(t, s, v->name);
	}
}

static bool same_instant(const struct late_pause *a, const struct late_pause *b)
{
	int64_t apart_ns = a->at_ns > b->at_ns ? a->at_ns - b->at_ns : b->at_ns - a->at_ns;

	return (a->step != EVENT_STEP_UNKNOWN && a->step == b->step) || 2 * apart_ns < a->pause_ns;
}

/* The part of the ranks that pause together, of all that do at times: one of n for those that take
 * turns, 1 for the same ones again and again. */
static double together(const struct pauses *s, const struct tally *t)
{
	const struct late_pause *v, *w;
	uint32_t n_instants = 0, n_seats = 0;

	for (uint32_t i = 0; (v = pauses_late(s, i)); i++) {
		bool first = true, alone = true;

		for (uint32_t k = 0; k < i && !v->saves; k++) {
			w = pauses_late(s, k);
			if (w->saves || !same_instant(v, w))
				continue;
			first = false;
			alone &= w->rank != v->rank;
		}
		n_instants += !v->saves && first;
		n_seats += !v->saves && alone;
	}
	return n_instants > 0 ? (double)n_seats / n_instants / t->n_ranks : 1;
}

static bool rotates(const struct rules *r, const struct tally *t)
{
	bool two = r->world_size == 2;

	return together(&r->pauses, t) <= MOST_TOGETHER &&
	       t->n_calls >= (r->finishing ? 1 : 2) * LEAST_PAUSES && t->n_ranks >= (two ? 2 : LEAST_RANKS) &&
	       t->most <= (two ? 0.75 : MOST_OF_ONE) * t->cost_ns &&
	       t->cost_ns >= LEAST_COST * (double)pauses_span_ns(&r->pauses);
}

static int tell(struct rules *r, const struct tally *t)
{
	double span_ns = (double)pauses_span_ns(&r->pauses);
	const char *name = ledger_text(&r->ledger, t->name);
	char sentence[700], detail[160], each[32];
	struct finding f = {
		.class_name = "slow.rotating_host_pause", .severity = SEVERITY_SLOW,
		.confidence = t->n_calls >= 2 * LEAST_PAUSES && !t->soft ? CONFIDENCE_CERTAIN :
									     CONFIDENCE_LIKELY,
		.step = t->first_step, .last_step = t->last_step, .onset_ns = t->onset_ns,
		.cost_ratio = t->cost_ns < span_ns ? t->cost_ns / (span_ns - t->cost_ns) : 0,
		.margin_ns = t->least_margin_ns, .error_ns = t->error_ns,
		.error_kind = t->soft ? ERROR_KIND_SOFT : t->error_ns > 0 ? ERROR_KIND_HARD : ERROR_KIND_NONE,
		.evidence_json = "[{\"view\":\"arrival\"}]",
		.rules_out_json = "[\"slow.fixed_rank: the late rank changes\","
				  "\"slow.work_imbalance: a pause of the host lies before each late arrival\"]",
	};

	words_ns(t->pause_ns / t->n, each, sizeof each);
	snprintf(detail, sizeof detail, "host scope %.100s on %u ranks in turn", *name ? name : "without a name",
		 t->n_ranks);
	snprintf(sentence, sizeof sentence,
		 "Pauses of host threads (%.100s) move over the ranks and everyone waits for each: %u times "
		 "a rank came last to a collective right after such a pause of %s on average, on %u ranks in "
		 "turn. They take %.1f %% of the job's time. Let all ranks pause in the same step (as for "
		 "garbage: collect by hand every so many steps), or move that work off the training thread.",
		 *name ? name : "without a name", t->n, each, t->n_ranks, 100 * t->cost_ns / span_ns);
	f.detail = detail;
	f.sentence = sentence;
	return rules_tell(r, &f);
}

int rotating_pause_look(struct rules *r)
{
	struct tally t;
	uint32_t n_told = rules_n_told(r, "slow.rotating_host_pause");

	if (r->n_slow > n_told || (n_told > 0 && !r->finishing))
		return 0;
	count(&r->pauses, &t);
	return rotates(r, &t) && tell(r, &t) < 0 ? -ENOMEM : 0;
}
