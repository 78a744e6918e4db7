/* p2p_order.c - deadlock.p2p_order: sends and receives wait for each other.
 *
 * What it says: the ranks of the circle, and one message in which each waits for
 * the next. Both of a pair that blocks itself are named: either order is fine, only
 * not both.
 *
 * How it decides: a rank waits for another one when it is inside a message that the
 * other has not come to. Who is inside nothing of this kind is taken away, with
 * those that wait only for such; a circle that remains, and of which nobody has
 * said a word for ten seconds, cannot move. Numbers of messages decide, no clock.
 *
 * Neighbours: absent.* (whoever is waited for waits for nobody),
 * deadlock.group_order (collectives), slow.pipeline_bubble (they come).
 */
#include "rules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define SILENT_NS INT64_C(10000000000)
#define NOBODY (-1)
#define MAX_PASSES 1024 /* a longer chain of ranks that wait for one is not followed */

/* Of each rank one whom it waits for; NOBODY. Ranks that can still move are taken
 * away until nothing changes. False when that takes too long. */
static bool who_waits(const struct rules *r, int32_t *waits_for, uint32_t n_ranks)
{
	const struct messages *m = &r->ledger.messages;
	bool changed = true;
	unsigned n_passes = 0;

	for (uint32_t i = 0; i < n_ranks; i++)
		waits_for[i] = (int32_t)i; /* not looked at yet */
	while (changed && n_passes++ < MAX_PASSES) {
		changed = false;
		for (uint32_t i = 0; i < n_ranks; i++)
			if (waits_for[i] != NOBODY)
				waits_for[i] = INT32_MAX;
		for (uint32_t i = 0; i < m->n; i++) {
			int side = m->v[i].life == r->life ? messages_waiting(&m->v[i]) : -1;
			int32_t who = side < 0 ? 0 : m->v[i].ranks[side];
			int32_t whom = side < 0 ? 0 : m->v[i].ranks[!side];

			if (side >= 0 && waits_for[who] != NOBODY && waits_for[whom] != NOBODY)
				waits_for[who] = whom;
		}
		for (uint32_t i = 0; i < n_ranks; i++)
			if (waits_for[i] == INT32_MAX) {
				waits_for[i] = NOBODY;
				changed = true;
			}
	}
	return !changed;
}

static bool is_silent(const struct rules *r, int32_t rank)
{
	const struct roster *roster = r->ledger.roster;

	for (uint32_t i = 0; i < roster->n_procs; i++) {
		const struct ledger_proc *q = ledger_proc(&r->ledger, i);

		if (roster->procs[i].rank == rank && roster->procs[i].life == r->life)
			return !roster->procs[i].gone && q && !q->lost &&
			       (r->finishing || r->now_ns - q->news_now_ns >= SILENT_NS);
	}
	return false;
}

/* From any rank along the waits one comes into a circle. False when it may move yet. */
static bool find_circle(const struct rules *r, const int32_t *waits_for, uint32_t n_ranks,
			struct finding *f)
{
	uint32_t first = 0;
	int32_t at, begin;

	while (first < n_ranks && waits_for[first] == NOBODY)
		first++;
	if (first == n_ranks)
		return false;
	at = (int32_t)first;
	for (uint32_t i = 0; i < n_ranks; i++)
		at = waits_for[at];
	begin = at;
	do {
		if (!is_silent(r, at))
			return false;
		finding_rank(f, at);
		at = waits_for[at];
	} while (at != begin);
	return true;
}

static uint32_t n_ranks_of(const struct rules *r)
{
	const struct messages *m = &r->ledger.messages;
	uint32_t n = 0;

	for (uint32_t i = 0; i < m->n; i++)
		for (int side = 0; side < 2; side++)
			if ((uint32_t)m->v[i].ranks[side] >= n)
				n = (uint32_t)m->v[i].ranks[side] + 1;
	return n;
}

static int tell(struct rules *r, struct finding *f, const int32_t *waits_for)
{
	char who[160], sentence[500], detail[120];
	int32_t a = f->ranks[0], b = waits_for[a];

	words_ranks(f->ranks, f->n_ranks, who, sizeof who);
	snprintf(detail, sizeof detail, "rank %d waits for rank %d, rank %d for rank %d", a, b, b,
		 waits_for[b]);
	snprintf(sentence, sizeof sentence,
		 "%s block each other with messages: %s. Each is inside a send or receive that its peer has not "
		 "come to. Let one of a pair send first and the other receive, or issue both together.", who,
		 detail);
	f->class_name = "deadlock.p2p_order";
	f->severity = SEVERITY_STUCK;
	f->confidence = CONFIDENCE_CERTAIN;
	f->step = EVENT_STEP_UNKNOWN;
	f->onset_ns = FACT_NONE;
	f->detail = detail;
	f->sentence = sentence;
	f->evidence_json = "[{\"view\":\"event\",\"kind\":\"coll_begin\"}]";
	f->rules_out_json = "[\"absent.crashed: all of them are inside a message\"]";
	return rules_tell(r, f);
}

int p2p_order_look(struct rules *r)
{
	uint32_t n_ranks = r->held || r->ledger.replayed ? 0 : n_ranks_of(r);
	struct finding f = { .n_ranks = 0 };
	bool quiet = true;
	int32_t *waits_for;
	int e = 0;

	for (uint32_t i = 0; i < r->ledger.messages.n && quiet; i++)
		quiet = r->finishing || r->now_ns - r->ledger.messages.v[i].news_now_ns >= SILENT_NS;
	if (n_ranks == 0 || !quiet)
		return 0;
	waits_for = calloc(n_ranks, sizeof *waits_for);
	if (!waits_for)
		return -ENOMEM;
	if (who_waits(r, waits_for, n_ranks) &&
	    find_circle(r, waits_for, n_ranks, &f))
		e = tell(r, &f, waits_for);
	free(waits_for);
	return e;
}
