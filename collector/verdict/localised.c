/* localised.c - stuck.localised_cause_unknown, and timeout.peer_busy when it proves to be that.
 *
 * What stuck says: the call, since when, and for which ranks the others wait in it;
 * or that all are inside it and none comes out, and then nobody is named. It claims
 * no cause.
 *
 * How it decides: 30 s without a word from those who are absent, or a quarter of
 * the watchdog's limit where that is known and longer. A rank whose host or device
 * is in work that the program names may be doing something long and legitimate: it
 * has until the limit.
 *
 * What peer_busy says: the rank that was waited for, and what its host was doing.
 * Decided only when it came after all: the same finding, told anew. It is a notice
 * where the wait stayed below the watchdog's limit, or no limit is known.
 *
 * Neighbours: absent.* (the reason is known), slow.checkpoint (it is on the path of
 * every save, and much shorter).
 */
#include "standstill.h"
#include "words.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define PATIENCE_NS INT64_C(30000000000)

/* What the first absent rank is known to be doing; NULL. */
static const char *work_of(const struct rules *r, const struct standstill *s, const char **ret_where)
{
	const struct ledger_proc *q = s->n_absent > 0 && s->absent[0] != UINT32_MAX ?
					      ledger_proc(&r->ledger, s->absent[0]) : NULL;

	*ret_where = q && q->n_work > 0 ? "host scope" : "kernel";
	if (q && q->n_work > 0)
		return ledger_text(&r->ledger, q->work_name);
	return q && q->n_kernels > 0 ? ledger_text(&r->ledger, q->kernel_name) : NULL;
}

static bool spoke_lately(const struct rules *r, const struct standstill *s)
{
	for (uint32_t i = 0; i < s->n_absent && i < RULES_MAX_RANKS; i++) {
		const struct ledger_proc *q = s->absent[i] == UINT32_MAX ?
						      NULL : ledger_proc(&r->ledger, s->absent[i]);

		if (q && r->now_ns - q->news_now_ns < PATIENCE_NS)
			return true;
	}
	return false;
}

int localised_tell(struct rules *r, const struct standstill *s)
{
	const char *where, *work = work_of(r, s, &where);
	int64_t limit_ns = standstill_limit_ns(r), patience_ns = work ? limit_ns : limit_ns / 4;
	char who[160], sentence[600], detail[160] = "", since[32];
	struct finding f;

	if (s->waited_ns < PATIENCE_NS || s->waited_ns < patience_ns || spoke_lately(r, s))
		return 0;
	standstill_finding(r, s, &f, NULL);
	words_ranks(f.ranks, f.n_ranks, who, sizeof who);
	words_ns(s->waited_ns, since, sizeof since);
	if (work)
		snprintf(detail, sizeof detail, "%s %.100s", where, work);
	if (s->n_absent > 0)
		snprintf(sentence, sizeof sentence,
			 "%s %s not entered call %" PRIu64 " of group %.60s, in which %u others have waited "
			 "for %s.%s%.100s%s What holds it cannot be said from here.",
			 f.n_ranks ? who : "A member", f.n_ranks > 1 ? "have" : "has", s->call, f.group,
			 s->n_present, since, work ? " It is in " : "", work ? work : "",
			 work ? "." : "");
	else
		snprintf(sentence, sizeof sentence,
			 "All %u members are inside call %" PRIu64 " of group %.60s and none has come out for "
			 "%s. Why cannot be said from here.", s->n_present, s->call, f.group, since);
	f.class_name = "stuck.localised_cause_unknown";
	f.confidence = CONFIDENCE_LIKELY;
	f.detail = *detail ? detail : NULL;
	f.sentence = sentence;
	f.key = "standstill";
	f.evidence_json = "[{\"view\":\"arrival\"}]";
	f.rules_out_json = "[\"mismatch.order: what is known of the calls agrees\"]";
	r->waits = s->n_absent > 0;
	r->wait_line.used = false;
	r->wait_group = s->group;
	r->wait_call = s->call;
	r->wait_proc = s->n_absent > 0 ? s->absent[0] : UINT32_MAX;
	snprintf(r->wait_work, sizeof r->wait_work, "%s", detail);
	return rules_tell(r, &f) < 0 ? -ENOMEM : 1;
}

void peer_busy_event(struct rules *r)
{
	const struct line *v = r->waits && !r->wait_line.used
				       ? ledger_line(&r->ledger.pages[r->wait_group], r->wait_call)
				       : NULL;

	if (v && v->n_entered >= r->ledger.match->groups[r->wait_group].n_expected)
		r->wait_line = *v;
}

int peer_busy_look(struct rules *r)
{
	int64_t limit_ns = standstill_limit_ns(r), waited_ns;
	const struct line *v = &r->wait_line;
	char sentence[500], detail[160], since[32];
	struct finding f;

	if (!r->waits || !v->used || r->wait_proc == UINT32_MAX)
		return 0;
	r->waits = r->held = false;
	waited_ns = v->last_now_ns - v->entered_now_ns;
	standstill_finding(r, &(struct standstill){ .group = r->wait_group, .call = r->wait_call,
						    .line = v, .absent = { r->wait_proc },
						    .n_absent = 1 }, &f, NULL);
	words_ns(waited_ns, since, sizeof since);
	snprintf(detail, sizeof detail, "%s", *r->wait_work ? r->wait_work : "with what is not known");
	snprintf(sentence, sizeof sentence,
		 "The others waited %s in call %" PRIu64 " of group %.60s for rank %d, which was busy (%s) and "
		 "then came.%s", since, r->wait_call, f.group, f.ranks[0], detail,
		 limit_ns > 0 && waited_ns > limit_ns ?
			 " That is longer than the watchdog allows. Do such work on all ranks, in "
			 "the background, or raise the limit." : "");
	f.class_name = "timeout.peer_busy";
	f.severity = limit_ns > 0 && waited_ns > limit_ns ? SEVERITY_STUCK : SEVERITY_NOTICE;
	f.confidence = *r->wait_work ? CONFIDENCE_CERTAIN : CONFIDENCE_LIKELY;
	f.detail = detail;
	f.sentence = sentence;
	f.key = "standstill";
	f.evidence_json = "[{\"view\":\"arrival\"}]";
	f.rules_out_json = "[\"stuck.localised_cause_unknown: it came\",\"absent.crashed: it lives\"]";
	return rules_tell(r, &f);
}
