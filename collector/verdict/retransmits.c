/* retransmits.c - net.retransmits: packets are lost on a path, and the collectives over it pay.
 *
 * What it says: the host or the pair of hosts, how many packets were sent again while
 * the job ran, and what that costs the transfers.
 *
 * How it decides: counts grow (net.retransmits; by peer where the record names one)
 * on one path at least MANY_TIMES more than on any other host. The path is that of the two hosts; where
 * it shows nothing, that of the rank that counts and the peer it names, whichever of the two counts. And the transfers over
 * it differ in one of three ways (onpath.h): slower than the same calls elsewhere,
 * with a tail that others have not, or slower than before. Certain with ten
 * calls of each. Counts without a cost are nobody's business.
 *
 * Neighbours: slow.link and net.jitter (nothing is lost, or nobody counts),
 * net.lossy_class_one_path (one class of traffic loses), slow.shared_nic.
 */
#include "onpath.h"
#include "words.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_COUNT 10
#define MANY_TIMES 5

/* A peer that a record names by its rank; -1. */
static int32_t rank_of_peer(const struct loss *l)
{
	char *end;
	long rank = strtol(l->of, &end, 10);

	return *l->of && *end == '\0' && rank >= 0 && rank < FACT_MAX_RANKS ? (int32_t)rank : -1;
}

/* The host of the peer as a record names it: a rank or a host. */
static uint32_t host_of_peer(const struct rules *r, const struct loss *l)
{
	const struct roster *roster = r->ledger.roster;
	int32_t rank = rank_of_peer(l);
	uint32_t proc;

	for (uint32_t i = 0; i < roster->n_hosts; i++)
		if (roster->hosts[i].name && *l->of && strcmp(roster->hosts[i].name, l->of) == 0)
			return i;
	proc = rank >= 0 ? paths_proc(&r->paths, rank) : UINT32_MAX;
	return proc == UINT32_MAX ? UINT32_MAX : roster->procs[proc].host;
}

static bool same_path(const struct onpath *a, const struct onpath *b)
{
	return a->rank == b->rank && a->host == b->host && a->other_host == b->other_host;
}

static struct onpath path_of(const struct rules *r, const struct loss *l, bool one_host)
{
	uint32_t peer = host_of_peer(r, l);
	bool pair = peer != UINT32_MAX && peer != l->host;

	return (struct onpath){ !pair || l->host < peer ? l->host : peer,
				!pair ? UINT32_MAX : l->host < peer ? peer : l->host,
				one_host && !l->of_host ? r->ledger.roster->procs[l->proc].rank : -1, 0 };
}

/* Who says so by itself, and its peer. */
static struct onpath ranks_of(const struct rules *r, const struct loss *l)
{
	int32_t rank = r->ledger.roster->procs[l->proc].rank, peer = rank_of_peer(l);

	return (struct onpath){ UINT32_MAX, UINT32_MAX, l->of_host || peer == rank ? -1 : rank,
				(uint32_t)(peer + 1) };
}

/* Both ends of one way count the same loss. */
static bool other_end(const struct onpath *a, const struct onpath *b)
{
	return a->rank >= 0 && b->rank >= 0 && a->peer_plus_1 == (uint32_t)b->rank + 1 &&
	       b->peer_plus_1 == (uint32_t)a->rank + 1;
}

struct lost {
	struct onpath path, ranks; /* ranks: the way between two, where the record names both */
	int64_t n, elsewhere; /* on it; the most on a path that shares no end with it */
};

/* Counts on several peers of one host are that host's. */
static bool find_lost(const struct rules *r, struct lost *ret)
{
	bool one_host = r->ledger.roster->n_hosts < 2;

	*ret = (struct lost){ .path = { UINT32_MAX, UINT32_MAX, -1, 0 } };
	for (size_t i = 0; i < r->losses.n; i++) {
		const struct loss *l = &r->losses.v[i];

		if (l->kind != LOSS_RETRANSMITS || loss_grown(l) <= ret->n)
			continue;
		ret->n = loss_grown(l);
		ret->path = path_of(r, l, one_host);
		ret->ranks = ranks_of(r, l);
	}
	if (ret->n < LEAST_COUNT)
		return false;
	for (size_t i = 0; i < r->losses.n; i++) {
		const struct loss *l = &r->losses.v[i];
		struct onpath path = path_of(r, l, one_host), ranks = ranks_of(r, l);
		bool shares = path.host == ret->path.host || path.other_host == ret->path.host ||
			      path.host == ret->path.other_host ||
			      (path.other_host == ret->path.other_host && path.other_host != UINT32_MAX);

		if (l->kind != LOSS_RETRANSMITS || same_path(&path, &ret->path) || other_end(&ranks, &ret->ranks) ||
		    loss_grown(l) * MANY_TIMES < ret->n)
			continue;
		if (one_host || !shares)
			ret->elsewhere = loss_grown(l) > ret->elsewhere ? loss_grown(l) : ret->elsewhere;
		else /* more than one way out of the host that says so */
			ret->path = (struct onpath){ l->host, UINT32_MAX, -1, 0 };
	}
	return ret->elsewhere == 0;
}

static int tell(struct rules *r, struct finding *f, const struct lost *l, const char *cost)
{
	char link[140], sentence[700], detail[120];

	onpath_words(r, &l->path, link, sizeof link);
	snprintf(detail, sizeof detail, "%" PRId64 " packets sent again while the job ran", l->n);
	snprintf(sentence, sizeof sentence,
		 "Packets get lost on the way of %s: %s, and %s. Look at errors and drops of its ports and the "
		 "switch (ethtool -S, switch counters), at cables, at the buffers of that path.", link, detail, cost);
	f->class_name = "net.retransmits";
	f->link = link;
	f->host = l->path.rank < 0 && l->path.other_host == UINT32_MAX ? members_host_name(r, l->path.host) : NULL;
	f->detail = detail;
	f->sentence = sentence;
	f->evidence_json = "[{\"view\":\"record\",\"category\":\"net.retransmits\"},{\"view\":\"comm_class_group\"}]";
	f->rules_out_json = "[\"slow.fixed_rank: only what follows the last arrival is compared\","
			    "\"slow.link: the path loses packets, others do not\"]";
	return rules_tell(r, f) < 0 ? -ENOMEM : 1;
}

/* 1 told, 0 nothing that it costs, -ENOMEM. */
static int look_at(struct rules *r, const struct lost *lost)
{
	const struct contrast *c = onpath_contrast(r, &lost->path);
	struct onpath_change change;
	struct onpath_tail tail;
	char cost[300], words[120], a[32], b[32];
	struct finding f;

	if (c) {
		contrast_finding(c, &f);
		contrast_words(c, words, sizeof words);
		snprintf(cost, sizeof cost, "transfers over it take %s like them", words);
		return tell(r, &f, lost, cost);
	}
	f = (struct finding){ .severity = SEVERITY_SLOW, .confidence = CONFIDENCE_LIKELY, .onset_ns = FACT_NONE,
			      .error_kind = ERROR_KIND_NONE };
	if (onpath_slower(r, &lost->path, &change)) {
		words_ns((int64_t)change.before, a, sizeof a);
		words_ns((int64_t)change.after, b, sizeof b);
		snprintf(cost, sizeof cost, "transfers over it have grown from %s to %s", a, b);
		f.margin_ns = change.margin_ns;
		f.error_ns = change.error_ns;
		f.cost_ratio = change.after / change.before - 1;
		f.step = members_since(change.cell->cell, (change.before + change.after) / 2);
		f.last_step = rates_recent(change.cell->cell, 0)->step;
		return tell(r, &f, lost, cost);
	}
	if (!onpath_tails(r, &lost->path, &tail))
		return 0;
	words_ns((int64_t)tail.cell->mid, a, sizeof a);
	words_ns((int64_t)tail.cell->most, b, sizeof b);
	snprintf(cost, sizeof cost, "%u of %u transfers over it take more than twice the median of %s, up to %s",
		 tail.n_tail, tail.n_with, a, b);
	f.margin_ns = (int64_t)(tail.cell->most - tail.cell->mid);
	f.step = tail.cell->cell->early[0].step;
	f.last_step = rates_recent(tail.cell->cell, 0)->step;
	return tell(r, &f, lost, cost);
}

int retransmits_look(struct rules *r)
{
	struct onpath paths[3], rank;
	struct lost lost;
	int e;

	if (!find_lost(r, &lost))
		return 0;
	rank = lost.ranks;
	rank.peer_plus_1 = 0;
	/* The hosts' whole path, the way of the two that count, all that the one does. */
	paths[0] = lost.path.rank < 0 ? lost.path : lost.ranks;
	paths[1] = lost.ranks;
	paths[2] = rank;
	for (unsigned i = 0; i < 3; i++) {
		lost.path = paths[i];
		if (i > 0 && lost.path.rank < 0)
			break;
		e = look_at(r, &lost);
		if (e != 0)
			return e < 0 ? e : 0;
	}
	return 0;
}
