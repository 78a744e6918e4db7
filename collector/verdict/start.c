#include "start.h"

#include <stdio.h>
#include <string.h>

static const struct proc *proc_of(const struct rules *r, size_t i)
{
	return &r->ledger.roster->procs[r->side.v[i].proc];
}

static bool has_begun(const struct rules *r)
{
	const struct roster *roster = r->ledger.roster;

	for (uint32_t i = 0; i < roster->n_procs; i++) {
		const struct ledger_proc *q = ledger_proc(&r->ledger, i);

		if (roster->procs[i].life == r->life && q && q->spoke)
			return true;
	}
	return false;
}

bool start_hangs(const struct rules *r, int64_t silent_ns)
{
	return !r->held && r->side.n > 0 && !r->ledger.replayed &&
	       (r->finishing || r->now_ns - r->side.news_now_ns >= silent_ns) && !has_begun(r);
}

int start_look(struct rules *r)
{
	struct finding f = r->start;
	char sentence[sizeof r->start_sentence + 80];

	if (!f.class_name || !has_begun(r))
		return 0;
	snprintf(sentence, sizeof sentence, "%s The job has started all the same.", r->start_sentence);
	r->start.class_name = NULL;
	r->held = false;
	f.severity = SEVERITY_NOTICE;
	f.confidence = CONFIDENCE_LIKELY;
	f.sentence = sentence;
	/* The others were the teller's. */
	f.host = f.setting = f.detail = NULL;
	f.rules_out_json = f.evidence_json = NULL;
	return rules_tell(r, &f);
}

bool start_record(const struct rules *r, size_t i, enum side_kind kind)
{
	return r->side.v[i].kind == kind && proc_of(r, i)->life == r->life && r->life > 0 &&
	       proc_of(r, i)->rank >= 0;
}

bool start_is_repeated(const struct rules *r, size_t i)
{
	return r->side.v[i].repeated;
}

int32_t start_rank(const struct rules *r, size_t i)
{
	return proc_of(r, i)->rank;
}

const char *start_host(const struct rules *r, size_t i)
{
	const char *host = side_text(&r->side.v[i], "host");

	if (!host)
		host = r->ledger.roster->hosts[proc_of(r, i)->host].name;
	return host ? host : "";
}

const char *start_host_of_rank(const struct rules *r, int64_t rank)
{
	const struct roster *roster = r->ledger.roster;

	for (uint32_t i = roster->n_procs; i-- > 0 && rank >= 0;)
		if (roster->procs[i].life == r->life && roster->procs[i].rank == rank)
			return roster->hosts[roster->procs[i].host].name;
	return NULL;
}
