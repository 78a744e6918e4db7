/* ring_nic.c - slow.ring_nic_collision: several rings of a node leave by one card while
 * another of its cards carries none, or fewer.
 *
 * What it says: the node, the card, how many rings share it and which card is free.
 *
 * How it decides: nccl.graph names the card of each ring of a node. A card with more
 * rings than an even spread over the node's cards would give it is a collision;
 * which cards it has is known from its own rings, topo.gpu_nic, nccl.net and from
 * nodes whose rings use this card too. Certain where groups over that node are slower than
 * the same ones elsewhere; likely where there is nothing to compare and transfers take
 * a notable part of the time; nothing where the comparison shows no loss.
 *
 * Neighbours: slow.shared_nic (the topology gives two GPUs one card; here the library
 * puts its rings there), slow.link.
 */
#include "onpath.h"
#include "words.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOTABLE_SHARE 0.1
#define MAX_NODES 4096
#define MAX_CARDS 32
#define MAX_RINGS 64

struct node { /* as nccl.graph numbers them, or the host */
	char name[40];
	uint32_t host, proc, n_cards, n_rings; /* n_cards: that nccl.net counts */
	bool whole;	 /* one record told all its rings */
	char cards[MAX_CARDS][40];
	uint32_t n_on[MAX_CARDS], n; /* rings by card */
};

static bool text_of(const json_t *v, char out[40])
{
	if (json_is_string(v))
		snprintf(out, 40, "%s", json_string_value(v));
	else if (json_is_integer(v))
		snprintf(out, 40, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
	else
		return false;
	return out[0] != '\0';
}

static void add_card(struct node *n, const char *card, uint32_t n_rings)
{
	uint32_t i = 0;

	while (i < n->n && strcmp(n->cards[i], card) != 0)
		i++;
	if (i == MAX_CARDS)
		return;
	if (i == n->n) {
		snprintf(n->cards[i], sizeof n->cards[i], "%s", card);
		n->n_on[n->n++] = 0;
	}
	n->n_on[i] += n_rings;
	n->n_rings += n_rings;
}

/* A ring's card, or a list: of rings, each a card or the cards that it comes and goes by. */
static void add_rings(struct node *n, const json_t *v)
{
	char card[40];
	const char *key;
	json_t *one;
	size_t i;

	if (json_is_array(v)) {
		json_array_foreach((json_t *)v, i, one) {
			if (json_is_array(one))
				one = json_array_get(one, json_array_size(one) - 1);
			if (i < MAX_RINGS && text_of(one, card))
				add_card(n, card, 1);
		}
	} else if (json_is_object(v)) {
		json_object_foreach((json_t *)v, key, one)
			if (text_of(one, card))
				add_card(n, card, 1);
	} else if (json_is_string(v) && strchr(json_string_value(v), ',')) {
		char copy[512], *at = copy, *part;

		snprintf(copy, sizeof copy, "%s", json_string_value(v));
		while ((part = strsep(&at, ", ")))
			if (*part)
				add_card(n, part, 1);
	} else if (text_of(v, card)) {
		add_card(n, card, 1);
	}
}

static struct node *node_of(struct node *v, uint32_t *n, const struct rules *r, const struct side_record *record)
{
	uint32_t host = r->ledger.roster->procs[record->proc].host;
	char name[40];

	if (!text_of(json_object_get(record->fields, "node"), name))
		snprintf(name, sizeof name, "%.39s", members_host_name(r, host));
	for (uint32_t i = 0; i < *n; i++)
		if (strcmp(v[i].name, name) == 0)
			return &v[i];
	if (*n == MAX_NODES)
		return NULL;
	v[*n] = (struct node){ .host = host, .proc = record->proc };
	snprintf(v[*n].name, sizeof v[*n].name, "%s", name);
	return &v[(*n)++];
}

/* What every rank of a node says of the same rings counts once. */
static void take(struct node *n, const struct side_record *record)
{
	const json_t *rings = json_object_get(record->fields, "ring_nic");
	bool list = json_is_array(rings) || json_is_object(rings) ||
		    (json_is_string(rings) && strchr(json_string_value(rings), ','));

	if (!rings || (list && n->whole))
		return;
	if (list) {
		n->whole = true;
		n->n = n->n_rings = 0;
	} else if (n->whole) {
		return;
	}
	add_rings(n, rings);
}

static uint32_t n_cards_of(const struct side_record *v)
{
	const json_t *nics = json_object_get(v->fields, "nics");
	int64_t n = json_is_array(nics) ? (int64_t)json_array_size(nics) : side_number(v, "nics", 0);

	return n > 0 && n <= MAX_CARDS ? (uint32_t)n : 0;
}

/* Cards without a ring. */
static void add_idle(struct node *v, uint32_t n, struct node *at, const struct rules *r)
{
	uint32_t n_own = at->n;

	for (uint32_t i = 0; i < r->paths.n_procs; i++)
		if (r->paths.procs[i].nic && r->ledger.roster->procs[i].host == at->host)
			add_card(at, r->paths.procs[i].nic, 0);
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; &v[i] != at && k < v[i].n; k++)
			if (v[i].n_on[k] > 0 && strcmp(v[i].cards[k], at->cards[0]) == 0 && n_own > 0)
				for (uint32_t j = 0; j < v[i].n; j++)
					add_card(at, v[i].cards[j], 0);
}

/* The card with more than its part; -1 = none. */
static int crowded(const struct node *n, int *ret_idle)
{
	uint32_t n_cards = n->n > n->n_cards ? n->n : n->n_cards, even;
	int most = -1;

	*ret_idle = -1;
	if (n->n_rings < 2 || n_cards < 2)
		return -1;
	even = (n->n_rings + n_cards - 1) / n_cards;
	for (uint32_t i = 0; i < n->n; i++) {
		if (n->n_on[i] > even && (most < 0 || n->n_on[i] > n->n_on[most]))
			most = (int)i;
		if (n->n_on[i] < even && (*ret_idle < 0 || n->n_on[i] < n->n_on[*ret_idle]))
			*ret_idle = (int)i;
	}
	return most;
}

static int tell(struct rules *r, const struct node *n, int most, int idle, const struct contrast *c, double share)
{
	char sentence[800], words[120], detail[200], other[80] = "another", how[200];
	struct finding f = { .severity = SEVERITY_SLOW, .confidence = CONFIDENCE_LIKELY, .onset_ns = FACT_NONE,
			     .error_kind = ERROR_KIND_NONE, .step = EVENT_STEP_UNKNOWN };

	if (c) {
		contrast_finding(c, &f);
		contrast_words(c, words, sizeof words);
		snprintf(how, sizeof how, "Transfers over it take %s like them", words);
	} else {
		snprintf(how, sizeof how, "Transfers over it take %.0f %% of the time", 100 * share);
	}
	if (idle >= 0)
		snprintf(other, sizeof other, "%.40s", n->cards[idle]);
	snprintf(detail, sizeof detail, "%u of %u rings by card %.40s, %u by %s", n->n_on[most], n->n_rings,
		 n->cards[most], idle >= 0 ? n->n_on[idle] : 0, other);
	snprintf(sentence, sizeof sentence,
		 "Rings of node %.40s collide: %s. %s, and no ring is faster than the card that it shares. Let rings "
		 "spread (NCCL_CROSS_NIC, NCCL_IB_HCA), or give the library a topology file that shows all cards.", n->name,
		 detail, how);
	f.class_name = "slow.ring_nic_collision";
	f.host = members_host_name(r, n->host);
	f.link = n->cards[most];
	f.detail = detail;
	f.sentence = sentence;
	f.evidence_json = "[{\"view\":\"record\",\"category\":\"nccl.graph\"},{\"view\":\"comm_class\"}]";
	f.rules_out_json = "[\"slow.fixed_rank: only what follows the last arrival is compared\","
			   "\"slow.shared_nic: the rings and not the ranks share it\"]";
	return rules_tell(r, &f) < 0 ? -ENOMEM : 1;
}

static int look(struct rules *r, struct node *v, uint32_t n, struct node *at)
{
	struct onpath path = { at->host, UINT32_MAX, -1 };
	const struct contrast *c;
	int most, idle;
	double share;

	if (r->ledger.roster->n_hosts < 2)
		path.rank = r->ledger.roster->procs[at->proc].rank;
	add_idle(v, n, at, r);
	most = crowded(at, &idle);
	if (most < 0 || path_told(r, "slow.ring_nic_collision"))
		return 0;
	c = onpath_contrast(r, &path);
	share = onpath_share(r, &path);
	if (!c && (onpath_compared(r, &path) || share < NOTABLE_SHARE || rules_explained(r, -1)))
		return 0;
	return tell(r, at, most, idle, c, share);
}

int ring_nic_look(struct rules *r)
{
	struct node *v = NULL;
	uint32_t n = 0;
	int e = 0;

	for (size_t i = 0; i < r->side.n; i++) {
		const struct side_record *record = &r->side.v[i];
		struct node *at;

		if (record->kind != SIDE_GRAPH)
			continue;
		if (!v)
			v = calloc(MAX_NODES, sizeof *v);
		if (!v)
			return -ENOMEM;
		at = node_of(v, &n, r, record);
		if (at)
			take(at, record);
	}
	for (size_t i = 0; i < r->side.n && n > 0; i++)
		for (uint32_t k = 0; k < n && r->side.v[i].kind == SIDE_NET; k++)
			if (v[k].host == r->ledger.roster->procs[r->side.v[i].proc].host)
				v[k].n_cards = n_cards_of(&r->side.v[i]);
	for (uint32_t i = 0; i < n && e == 0; i++)
		e = look(r, v, n, &v[i]);
	free(v);
	return e < 0 ? e : 0;
}
