/* checkpoint.c - slow.checkpoint: saving is on the critical path. A notice.
 *
 * What it says: who saves, every how many steps, and what the job loses by it.
 *
 * How it decides: ranks came late to collectives after a pause beside which a
 * record says that they saved, or every rank says so of a pause that it was in; it
 * takes 2 % of the time or more. Without a record: one rank alone is late after a
 * pause of one name, at regular distances of two steps and more, three times at least,
 * for a good part of a step each time; that may be something else, and only looks so.
 *
 * Neighbours: timeout.peer_busy (longer than the watchdog allows),
 * slow.rotating_host_pause (moves), slow.fixed_rank (in every step).
 */
#include "rules.h"
#include "words.h"

#include <errno.h>
#include <stdio.h>

#define LEAST_COST 0.02
#define LEAST_REGULAR 3
#define LEAST_PART 0.2 /* of a step, without a record */

struct saving {
	struct finding f;
	uint32_t n, every; /* every: 0 = not regular */
	double cost_ns;
	uint32_t name;
	bool said; /* by a record */
};

/* Those that made a call late. */
static void count_late(const struct rules *r, bool saves, struct saving *s)
{
	const struct late_pause *v;
	uint32_t last = EVENT_STEP_UNKNOWN;

	*s = (struct saving){ .said = saves };
	for (uint32_t i = 0; (v = pauses_late(&r->pauses, i)); i++) {
		if (v->saves != saves)
			continue;
		if (s->n == 0)
			s->f.step = v->step;
		else if (s->n == 1)
			s->every = v->step - last;
		else if (v->step - last != s->every)
			s->every = 0;
		if (s->n > 0 && v->name != s->name)
			s->every = 0;
		last = s->f.last_step = v->step;
		s->name = v->name;
		s->cost_ns += (double)v->cost_ns;
		finding_rank(&s->f, v->rank);
		s->n++;
	}
}

/* Of a rank that saves at the same time as all others nobody waits: its own time counts. */
static void count_all(const struct rules *r, struct saving *s)
{
	const struct pauses *p = &r->pauses;
	uint32_t n_procs = 0;

	*s = (struct saving){ .said = true, .f.step = EVENT_STEP_UNKNOWN };
	for (uint32_t i = 0; i < p->roster->n_procs; i++) {
		const struct pauses_proc *q = i < p->n ? p->v[i] : NULL;
		const struct pause *v = q && q->n > 0 ? &q->v[(q->n - 1) % PAUSES_OF_PROC] : NULL;

		if (p->roster->procs[i].life != r->life)
			continue;
		n_procs++;
		if (!v || q->n_saves < 2)
			continue;
		s->n += q->n_saves > s->n ? (uint32_t)q->n_saves - s->n : 0;
		if ((double)q->saved_ns > s->cost_ns)
			s->cost_ns = (double)q->saved_ns;
		finding_rank(&s->f, p->roster->procs[i].rank);
	}
	if (s->f.n_ranks < n_procs && s->f.n_ranks < RULES_MAX_RANKS)
		s->n = 0;
}

static bool is_regular(const struct saving *s, double span_ns)
{
	double n_steps = s->f.last_step - s->f.step;

	return s->n >= LEAST_REGULAR && s->every >= 2 && s->every < EVENT_STEP_UNKNOWN / 2 &&
	       s->f.n_ranks == 1 && s->name && s->f.step != EVENT_STEP_UNKNOWN &&
	       s->cost_ns / s->n >= LEAST_PART * (span_ns - s->cost_ns) / (n_steps > 0 ? n_steps : 1);
}

static int tell(struct rules *r, struct saving *s, double span_ns)
{
	char sentence[600], detail[160], who[160], every[48] = "", each[32];
	const char *name = ledger_text(&r->ledger, s->name);

	words_ranks(s->f.ranks, s->f.n_ranks, who, sizeof who);
	words_ns((int64_t)(s->cost_ns / s->n), each, sizeof each);
	if (s->every > 0 && s->every < EVENT_STEP_UNKNOWN / 2)
		snprintf(every, sizeof every, " every %u steps", s->every);
	snprintf(detail, sizeof detail, "%s%s%.80s%s", s->said ? "saving" : "looks like saving",
		 *name ? ": host scope " : "", name, every);
	snprintf(sentence, sizeof sentence,
		 "%s %s%s and the job waits: %u times, %s each, %.1f %% of its time. Save in the background, or "
		 "less often.%s", who,
		 s->said ? s->f.n_ranks == 1 ? "saves" : "save" : "does named work that looks like saving",
		 every, s->n, each, 100 * s->cost_ns / span_ns,
		 s->said ? "" : " No record says what it is.");
	s->f.class_name = "slow.checkpoint";
	s->f.severity = SEVERITY_NOTICE;
	s->f.confidence = s->said ? CONFIDENCE_CERTAIN : CONFIDENCE_LIKELY;
	s->f.onset_ns = FACT_NONE;
	s->f.cost_ratio = s->cost_ns < span_ns ? s->cost_ns / (span_ns - s->cost_ns) : 0;
	s->f.error_kind = ERROR_KIND_NONE;
	s->f.detail = detail;
	s->f.sentence = sentence;
	s->f.evidence_json = "[{\"view\":\"arrival\"},{\"view\":\"record\",\"category\":\"io.checkpoint\"}]";
	s->f.rules_out_json = "[\"timeout.peer_busy: the watchdog's limit is far\"]";
	if (s->n == r->pauses.told_n && !r->finishing) /* nothing new */
		return 0;
	r->pauses.told_n = s->n;
	return rules_tell(r, &s->f);
}

int checkpoint_look(struct rules *r)
{
	double span_ns = (double)pauses_span_ns(&r->pauses);
	struct saving s;

	if (!r->pauses.any || span_ns <= 0)
		return 0;
	count_late(r, true, &s);
	if (s.n < 2 || s.cost_ns < LEAST_COST * span_ns)
		count_all(r, &s);
	if (s.n >= 2 && s.cost_ns >= LEAST_COST * span_ns)
		return tell(r, &s, span_ns);
	count_late(r, false, &s);
	return is_regular(&s, span_ns) ? tell(r, &s, span_ns) : 0;
}
