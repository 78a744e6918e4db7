/* group_order.c - deadlock.group_order: two communicators are used in opposite order.
 *
 * What it says: both calls, and the ranks that came the less usual way; all of
 * them where both ways are as usual.
 *
 * How it decides: in call i of group A ranks wait for members who are inside call j
 * of group B, and there ranks wait for members who are inside call i of A. The
 * order of the calls on two such ranks' own threads must be opposite. Where a host
 * is held in its first call nobody knows what would have come next, and it is only
 * likely. No clock enters.
 *
 * Neighbours: mismatch.order (one communicator), deadlock.p2p_order (messages),
 * absent.* (whoever is waited for waits for nobody).
 */
#include "standstill.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define SETTLED_NS INT64_C(10000000000)

/* Where on the rank's trail is that call? 0 = nowhere. */
static uint64_t place_of(const struct rules *r, uint32_t proc, uint32_t group, uint64_t call)
{
	const struct ledger_proc *q = ledger_proc(&r->ledger, proc);
	uint64_t low = q && q->n_trail > LEDGER_TRAIL ? q->n_trail - LEDGER_TRAIL : 0;

	for (uint64_t i = q ? q->n_trail : 0; i-- > low;) {
		const struct step_mark *m = &q->trail[i % LEDGER_TRAIL];

		if (m->group == group + 1 && m->seq == call)
			return i + 1;
	}
	return 0;
}

int group_order_tell(struct rules *r, const struct standstill *s)
{
	const struct page *p = &r->ledger.pages[s->group], *o = &r->ledger.pages[s->other_group];
	uint32_t a = UINT32_MAX, b = UINT32_MAX;
	struct finding one, other; /* those that came the one way, and the other */
	bool proved = true;
	char sentence[500], detail[160];
	struct finding f;

	if (!s->circle || s->waited_ns < SETTLED_NS)
		return 0;
	standstill_finding(r, s, &f, NULL);
	one.n_ranks = other.n_ranks = 0;
	for (uint32_t i = 0; i < p->n_seats; i++) {
		uint32_t proc = p->seats[i].proc;
		uint64_t x, y;
		bool in_both = false;

		for (uint32_t k = 0; k < o->n_seats && !in_both; k++)
			in_both = o->seats[k].seen && o->seats[k].proc == proc;
		if (!p->seats[i].seen || !in_both)
			continue;
		x = place_of(r, proc, s->group, s->call);
		y = place_of(r, proc, s->other_group, s->other_call);
		if (x && (!y || x < y) && p->seats[i].n_entered > s->call) {
			a = proc;
			proved &= y != 0;
			finding_rank(&one, p->seats[i].rank);
		} else if (y && (!x || y < x) && p->seats[i].n_entered <= s->call) {
			b = proc;
			proved &= x != 0;
			finding_rank(&other, p->seats[i].rank);
		}
	}
	if (a == UINT32_MAX || b == UINT32_MAX)
		return 0;
	f.n_ranks = 0;
	for (uint32_t i = 0; i < one.n_ranks && one.n_ranks <= other.n_ranks; i++)
		finding_rank(&f, one.ranks[i]);
	for (uint32_t i = 0; i < other.n_ranks && other.n_ranks <= one.n_ranks; i++)
		finding_rank(&f, other.ranks[i]);
	snprintf(detail, sizeof detail, "%.40s call %" PRIu64 " and %.40s call %" PRIu64, f.group, s->call,
		 r->ledger.match->groups[s->other_group].name, s->other_call);
	snprintf(sentence, sizeof sentence,
		 "Two groups are used in opposite order: rank %d waits in call %" PRIu64 " of group %.60s, rank "
		 "%d in call %" PRIu64 " of group %.60s, each for the other.",
		 r->ledger.roster->procs[a].rank, s->call, f.group, r->ledger.roster->procs[b].rank,
		 s->other_call, r->ledger.match->groups[s->other_group].name);
	f.class_name = "deadlock.group_order";
	f.confidence = proved ? CONFIDENCE_CERTAIN : CONFIDENCE_LIKELY;
	f.detail = detail;
	f.sentence = sentence;
	f.evidence_json = "[{\"view\":\"arrival\"}]";
	f.rules_out_json = "[\"absent.crashed: all of them are inside a call\"]";
	return rules_tell(r, &f) < 0 ? -ENOMEM : 1;
}
