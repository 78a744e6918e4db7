/* shared_nic.c - slow.shared_nic: GPUs of one host send through one card while another
 * has fewer or none.
 *
 * What it says: the card, who uses it, and how much slower their groups are.
 *
 * How it decides: topo.gpu_nic tells the card of each rank. Among groups of one
 * kind that span hosts, the slow ones all have a member whose card is another
 * local rank's too, and they transfer while that rank's group does; none of the
 * fast ones does. Or one group's own transfers part into slow ones, while the
 * other talks, and fast ones alone, with a card of the host that fewer use. Only
 * transfers count, on one rank's clock: certain from ten calls of each on.
 *
 * Neighbours: slow.fixed_rank (it arrives late; here all arrive and then wait for
 * bytes), slow.ring_nic_collision (the library's rings, not the topology, choose
 * the card), slow.link (a card or cable that is slow alone too).
 */
#include "members.h"
#include "words.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct share { /* a member's card, used by a rank of another group too */
	const char *nic;
	uint32_t host;
	const struct rates_cell *other;
};

static uint32_t n_overlapped(const struct rates_cell *c, const struct rates_cell *other, uint32_t n)
{
	uint32_t n_both = 0;

	for (uint32_t k = 0; k < n && c->host == other->host; k++)
		n_both += cells_overlap(rates_recent(c, k), other);
	return n_both;
}

static const char *nic_of(const struct rules *r, const struct rates_cell *c, uint32_t i)
{
	uint32_t proc = members_proc(r, c, i);

	return proc < r->paths.n_procs ? r->paths.procs[proc].nic : NULL;
}

static bool uses(const struct rules *r, const struct rates_cell *c, uint32_t host, const char *nic)
{
	for (uint32_t i = 0; i < members_n(r, c); i++)
		if (members_host(r, c, i) == host && nic_of(r, c, i) && strcmp(nic_of(r, c, i), nic) == 0)
			return true;
	return false;
}

static bool same_members(const struct rates_cell *a, const struct rates_cell *b)
{
	if (a->pair != b->pair)
		return false;
	if (!a->pair)
		return a->group == b->group;
	return (a->ranks[0] == b->ranks[0] && a->ranks[1] == b->ranks[1]) ||
	       (a->ranks[0] == b->ranks[1] && a->ranks[1] == b->ranks[0]);
}

/* Does it leave by a card? Where one host is all that is known, records decide. */
static bool leaves(const struct rules *r, const struct rates_cell *c)
{
	return c->n_hosts > 1 || r->ledger.roster->n_hosts == 1;
}

/* Someone else's transfers over a card of this cell, at the same time for at least
 * n_least of its last n calls. */
static bool find_share(const struct rules *r, const struct rates_cell *c, uint32_t n, uint32_t n_least,
		       struct share *ret)
{
	for (uint32_t i = 0; i < members_n(r, c); i++) {
		const char *nic = nic_of(r, c, i);
		uint32_t host = members_host(r, c, i);

		if (!nic || paths_n_users(&r->paths, r->ledger.roster, host, nic) < 2)
			continue;
		for (size_t k = 0; k < r->contrasts.n_cells; k++) {
			const struct rates_cell *other = r->contrasts.cells[k].cell;

			if (other == c || !leaves(r, other) || same_members(c, other) ||
			    !uses(r, other, host, nic) || n_overlapped(c, other, n) < n_least)
				continue;
			*ret = (struct share){ nic, host, other };
			return true;
		}
	}
	return false;
}

/* A card of that host that fewer ranks use. One that only other hosts use counts where
 * one of them has this card too, so that names mean the same. */
static const char *idler(const struct rules *r, uint32_t host, const char *nic, uint32_t *ret_users)
{
	const struct roster *roster = r->ledger.roster;
	const char *best = NULL;

	*ret_users = paths_n_users(&r->paths, roster, host, nic);
	for (uint32_t i = 0; i < r->paths.n_procs; i++) {
		const char *other = r->paths.procs[i].nic;
		uint32_t n;

		if (!other || strcmp(other, nic) == 0)
			continue;
		n = paths_n_users(&r->paths, roster, host, other);
		if (n < *ret_users &&
		    (n > 0 || paths_n_users(&r->paths, roster, roster->procs[i].host, nic) > 0)) {
			*ret_users = n;
			best = other;
		}
	}
	return best;
}

static void put_users(const struct rules *r, const char *nic, char *out, size_t n_out)
{
	const struct roster *roster = r->ledger.roster;
	size_t at = 0;

	for (uint32_t host = 0; host < roster->n_hosts && at + 1 < n_out; host++) {
		int32_t ranks[RULES_MAX_RANKS];
		uint32_t n = 0;
		char who[120];

		for (uint32_t i = 0; i < r->paths.n_procs && n < RULES_MAX_RANKS; i++)
			if (roster->procs[i].host == host && r->paths.procs[i].nic &&
			    strcmp(r->paths.procs[i].nic, nic) == 0)
				ranks[n++] = roster->procs[i].rank;
		if (n < 2)
			continue;
		words_ranks(ranks, n, who, sizeof who);
		who[0] = 'r';
		at += (size_t)snprintf(out + at, n_out - at, "%s%s of host %.60s", at ? ", " : "", who,
				       members_host_name(r, host));
	}
}

static int tell(struct rules *r, struct finding *f, const struct share *s, const char *how)
{
	char users[400] = "", sentence[900], detail[500], other[120] = "", evidence[300], quoted[120];
	uint32_t n_users;
	const char *idle = idler(r, s->host, s->nic, &n_users);

	put_users(r, s->nic, users, sizeof users);
	if (idle && n_users == 0)
		snprintf(other, sizeof other, ", while %.40s has none", idle);
	else if (idle)
		snprintf(other, sizeof other, ", while %.40s has %u", idle, n_users);
	snprintf(detail, sizeof detail, "%.40s is the card of %s%s", s->nic, users, other);
	snprintf(sentence, sizeof sentence,
		 "GPUs of one host share the network card %.40s: %s%s. %s Give each its own card: look at the "
		 "topology that the library sees (nvidia-smi topo -m, NCCL_TOPO_FILE, NCCL_NET_GDR_LEVEL) or name "
		 "the card of each rank (NCCL_IB_HCA).", s->nic, users, other, how);
	words_json(s->nic, quoted, sizeof quoted);
	snprintf(evidence, sizeof evidence,
		 "[{\"view\":\"record\",\"category\":\"topo.gpu_nic\",\"nic\":\"%s\"},{\"view\":\"comm_class_group\"}]",
		 quoted);
	f->class_name = "slow.shared_nic";
	f->link = s->nic;
	f->detail = detail;
	f->sentence = sentence;
	f->evidence_json = evidence;
	f->rules_out_json = "[\"slow.fixed_rank: only what follows the last arrival is compared\","
			    "\"slow.link: groups of other cards between the same hosts are fast\"]";
	return rules_tell(r, f) < 0 ? -ENOMEM : 1;
}

/* Slow are those that share, fast those that do not. */
static int look_siblings(struct rules *r, const struct contrast *c)
{
	struct share share = { 0 }, first = { 0 };
	struct finding f;
	char how[200], words[120];

	if (c->n_slow == 0 || !leaves(r, c->v[0].cell))
		return 0;
	for (uint32_t i = 0; i < c->n; i++) {
		bool slow = i >= c->n - c->n_slow;

		if (find_share(r, c->v[i].cell, c->v[i].n, (c->v[i].n + 1) / 2, &share) != slow)
			return 0;
		if (slow)
			first = share;
	}
	contrast_finding(c, &f);
	contrast_words(c, words, sizeof words);
	snprintf(how, sizeof how, "Their transfers take %s like them, while both talk.", words);
	return tell(r, &f, &first, how);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Its own calls: slow together, fast alone. */
static int look_alone(struct rules *r, const struct contrast_cell *v)
{
	double both[RATES_KEEP], alone[RATES_KEEP];
	uint32_t n = v->cell->n < RATES_KEEP ? (uint32_t)v->cell->n : RATES_KEEP, n_both = 0, n_alone = 0, n_users;
	char how[200], a[32], b[32];
	struct share s;
	struct finding f;

	if (!leaves(r, v->cell) || v->most < CONTRAST_RATIO * v->least || 
	    !find_share(r, v->cell, n, CONTRAST_LEAST, &s))
		return 0;
	for (uint32_t k = 0; k < n; k++) {
		const struct rates_sample *sample = rates_recent(v->cell, k);

		if (cells_overlap(sample, s.other))
			both[n_both++] = (double)sample->transfer_ns;
		else
			alone[n_alone++] = (double)sample->transfer_ns;
	}
	if (n_both < CONTRAST_LEAST || n_alone < CONTRAST_LEAST)
		return 0;
	qsort(both, n_both, sizeof *both, by_value);
	qsort(alone, n_alone, sizeof *alone, by_value);
	if (!idler(r, s.host, s.nic, &n_users) || both[0] <= alone[n_alone - 1] || both[n_both / 2] < CONTRAST_RATIO * alone[n_alone / 2])
		return 0;
	f = (struct finding){ .severity = SEVERITY_SLOW, .onset_ns = FACT_NONE, .error_kind = ERROR_KIND_NONE,
			      .confidence = n_both < 10 || n_alone < 10 ? CONFIDENCE_LIKELY : CONFIDENCE_CERTAIN,
			      .margin_ns = (int64_t)(both[n_both / 2] - alone[n_alone / 2]),
			      .error_ns = (int64_t)(both[n_both / 2] - alone[n_alone / 2] - both[0] + alone[n_alone - 1]),
			      .step = v->cell->early[0].step, .last_step = rates_recent(v->cell, 0)->step };
	words_ns((int64_t)both[n_both / 2], a, sizeof a);
	words_ns((int64_t)alone[n_alone / 2], b, sizeof b);
	snprintf(how, sizeof how, "A transfer takes %s while both talk, and %s alone.", a, b);
	return tell(r, &f, &s, how);
}

int shared_nic_look(struct rules *r)
{
	int e = 0;

	if (path_told(r, "slow.shared_nic"))
		return 0;
	for (size_t i = 0; i < r->contrasts.n && e == 0; i++)
		e = look_siblings(r, &r->contrasts.v[i]);
	for (size_t i = 0; i < r->contrasts.n_cells && e == 0; i++)
		e = look_alone(r, &r->contrasts.cells[i]);
	return e < 0 ? e : 0;
}
