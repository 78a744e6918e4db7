#include "start.h"

#include <string.h>

#define SILENT_NS INT64_C(10000000000) /* start-up often takes longer, a difference does not mend */

static const struct proc *proc_of(const struct rules *r, size_t i)
{
	return &r->ledger.roster->procs[r->side.v[i].proc];
}

bool start_hangs(const struct rules *r)
{
	const struct roster *roster = r->ledger.roster;

	if (r->held || r->side.n == 0 || r->ledger.replayed ||
	    (!r->finishing && r->now_ns - r->side.news_now_ns < SILENT_NS))
		return false;
	for (uint32_t i = 0; i < roster->n_procs; i++) {
		const struct ledger_proc *q = ledger_proc(&r->ledger, i);

		if (roster->procs[i].life == r->life && q && q->spoke)
			return false;
	}
	return true;
}

bool start_record(const struct rules *r, size_t i, enum side_kind kind)
{
	return r->side.v[i].kind == kind && proc_of(r, i)->life == r->life && r->life > 0 &&
	       proc_of(r, i)->rank >= 0;
}

bool start_is_repeated(const struct rules *r, size_t i)
{
	const struct side_record *v = r->side.v;

	for (size_t k = i + 1; k < r->side.n; k++)
		if (v[k].proc == v[i].proc && v[k].kind == v[i].kind)
			return true;
	return false;
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
