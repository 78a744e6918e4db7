#include "clock_contradiction.h"
#include "words.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool is_circle(const struct fact_contradiction *f)
{
	return f->early == f->late && strcmp(f->against, "own clock") != 0;
}

static const char *what(const struct clock_contradiction *c, const char *by, struct facts *facts)
{
	const struct fact_contradiction *f = c->fact;

	if (strcmp(f->against, "own clock") == 0)
		return facts_printf(facts,
				    "Collective %" PRIu64 " of %s: one rank on %s left it %s before another "
				    "on the same host had entered it. That cannot be: a rank skipped a call "
				    "or made one more, so the calls of its ranks are matched wrongly.",
				    f->seq, c->communicator, c->early, by);
	if (is_circle(f))
		return facts_printf(facts,
				    "Several collectives up to %" PRIu64 " of %s contradict each other about "
				    "the clock of %s by %s: calls of some ranks are matched wrongly, or a "
				    "clock moved in between.",
				    f->seq, c->communicator, c->early, by);
	return facts_printf(facts,
			    "Collective %" PRIu64 " of %s: %s left it %s before %s had entered it, beyond all "
			    "that %s leave open. Either the calls of its ranks are matched wrongly, or a "
			    "clock of the two was moved, or a bound of one is wrong.",
			    f->seq, c->communicator, c->early, by, c->late,
			    strcmp(f->against, "probes") == 0 ? "clock probes" : "other collectives");
}

int clock_contradiction_tell(const struct clock_contradiction *c, struct facts *facts)
{
	const struct fact_contradiction *v = c->fact;
	char early[128], late[128], group[128], by[32];
	struct fact_verdict *f = FACTS_PUSH(facts, verdicts);

	if (!f)
		return -ENOMEM;
	words_json(c->early, early, sizeof early);
	words_json(c->late, late, sizeof late);
	words_json(c->communicator, group, sizeof group);
	words_ns(v->impossible_ns, by, sizeof by);
	snprintf(f->key, sizeof f->key, "clock.contradiction/%u", v->group);
	f->class_name = "clock.contradiction";
	f->severity = SEVERITY_NOTICE;
	f->confidence = CONFIDENCE_CERTAIN;
	f->error_kind = ERROR_KIND_HARD;
	f->culprit_json = facts_printf(
		facts, "{\"ranks\":[],\"host\":\"%s\",\"detail\":\"communicator %s, against %s, by %s\"}",
		early, group, v->early == v->late ? "itself" : late, by);
	f->sentence = facts_printf(
		facts, "%s %s", what(c, by, facts),
		v->lifted_ns == FACT_NONE
			? "What this communicator says about clocks is no longer believed; times of its "
			  "hosts are compared by clock probes and by others."
			: "A step of a clock explains it: the communicator is believed again.");
	f->evidence_json = facts_printf(
		facts,
		"[{\"view\":\"clock_contradiction\",\"seq\":%" PRIu64 ",\"group\":\"%s\"},"
		"{\"view\":\"collective\",\"seq\":%" PRIu64 ",\"group\":\"%s\"}]",
		v->seq, group, v->seq, group);
	f->rules_out_json = facts_string(
		facts, "[\"a late rank: lateness never puts an exit before an entry\","
		       "\"noise of the clocks: their hard bounds are granted in full\"]");
	f->coverage_json = facts_string(facts, "{}");
	f->first_step = f->last_step = c->step;
	f->onset_ns = v->at_ns;
	f->detected_ns = c->now_ns;
	f->margin_ns = v->impossible_ns;
	return 0;
}
