/* nccl_log_message.c - the messages of NCCL's log that tell of communicators, and what
 * each says. Their words changed little from 2.4 to 2.28; what is not known is passed over,
 * and a number that does not fit its place makes the line say nothing.
 */
#include "nccl_log.h"
#include "nccl_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CHANNELS 1024

/* ---- communicators ---- */

/* "comm 0x… rank 0 nranks 2 cudaDev 0 … - Init START" or "… COMPLETE". */
static void set_up(struct nccl_log *l, struct nccl_worker *w, const char *text, bool complete)
{
	char pointer[24], hash[24];
	int64_t rank = nccl_number_after(text, "rank", NCCL_MAX_RANKS - 1);
	int64_t n_ranks = nccl_number_after(text, "nranks", NCCL_MAX_RANKS);
	struct nccl_comm *c;

	if (!nccl_after(text, "comm", pointer, sizeof pointer) || rank < 0 || n_ranks <= rank)
		return;
	c = nccl_log_find(l, w, pointer);
	if (!c || c->complete) /* an address is used again once its communicator is gone */
		c = nccl_log_add(l, w, pointer);
	if (!c)
		return;
	c->rank = rank;
	c->n_ranks = n_ranks;
	c->device = nccl_number_after(text, "cudaDev", 4096);
	c->nvml = nccl_number_after(text, "nvmlDev", 4096);
	(void)nccl_after(text, "busId", c->bus, sizeof c->bus);
	if (nccl_after(text, "commId", hash, sizeof hash) && strncmp(hash, "0x", 2) == 0)
		snprintf(c->hash, sizeof c->hash, "%s", hash);
	if (w->n_channels > 0)
		c->n_channels = w->n_channels;
	w->comm = (uint32_t)(c - l->comms) + 1;
	w->sets_up = !complete;
	w->n_channels = 0;
	c->complete = complete;
	for (uint32_t i = w->pending; i; i = l->facts[i - 1].next)
		l->facts[i - 1].comm = w->comm;
	w->pending = 0;
}

static void nodes(struct nccl_log *l, struct nccl_worker *w, const char *text)
{
	char pointer[24];
	struct nccl_comm *c = nccl_after(text, "comm", pointer, sizeof pointer) ? nccl_log_find(l, w, pointer) : NULL;

	if (c)
		c->n_nodes = nccl_number_after(text, "nNodes", NCCL_MAX_RANKS);
}

static void channels(struct nccl_log *l, struct nccl_worker *w, int64_t n)
{
	if (w->comm)
		l->comms[w->comm - 1].n_channels = n;
	else
		w->n_channels = n;
}

/* ---- rings, trees, connections ---- */

static void hop(struct nccl_log *l, struct nccl_worker *w, int64_t channel, int32_t rank, int32_t previous,
		int32_t next, const char *said_by)
{
	struct nccl_fact *f = nccl_log_fact(l, w, NCCL_HOP);

	if (!f)
		return;
	f->channel = (int32_t)channel;
	f->v[0] = rank;
	f->v[1] = previous;
	f->v[2] = next;
	f->said_by = said_by;
}

/* "0 1 2 3", maybe cut: by a sign, or after 20 ranks. Whether it is all, its join sees:
 * the last goes on to the first, where it is. */
static void order(struct nccl_log *l, struct nccl_worker *w, int64_t channel, const char *p)
{
	int32_t *ranks = malloc((strlen(p) / 2 + 2) * sizeof *ranks);
	uint32_t n = 0;

	l->trace->no_memory |= !ranks;
	/* What stands before a sign without a blank may be a part of a number. */
	while (ranks && nccl_rank_of(&p, &ranks[n]) && ranks[n] >= 0 && (*p == ' ' || *p == '\0'))
		n++;
	for (uint32_t i = 0; ranks && i < n; i++)
		hop(l, w, channel, ranks[i], i > 0 ? ranks[i - 1] : -1, i + 1 < n ? ranks[i + 1] : -1, "order");
	free(ranks);
}

/* What stands behind "via": networks have blanks in their names. */
static bool how(const char *p, char *out, size_t n_out)
{
	const char *end = strstr(p, " comm ");
	size_t n = end ? (size_t)(end - p) : strlen(p);

	while (n > 0 && p[n - 1] == ' ')
		n--;
	snprintf(out, n_out, "%.*s", (int)(n < n_out ? n : n_out - 1), p);
	return n > 0;
}

/* "0[1a000] -> 1[1c000] [send] via NET/IB/0/GDRDMA" */
static void edge(struct nccl_log *l, struct nccl_worker *w, int64_t channel, int64_t index, const char *p)
{
	char device[24], way[16] = "", via[64], pointer[24], *slash;
	const struct nccl_comm *comm;
	int32_t from, to;
	struct nccl_fact *f;

	if (!nccl_rank_of(&p, &from) || *p++ != '[' || !nccl_word(&p, "]", device, sizeof device) || *p++ != ']' ||
	    !nccl_literal(&p, "->") || !nccl_rank_of(&p, &to) || *p++ != '[' ||
	    !nccl_word(&p, "]", device, sizeof device) || *p++ != ']' || from < 0 || to < 0)
		return;
	if (nccl_literal(&p, "[") && (!nccl_word(&p, "]", way, sizeof way) || *p++ != ']'))
		return;
	if (!nccl_literal(&p, "via ") || !how(p, via, sizeof via))
		return;
	f = nccl_log_fact(l, w, NCCL_EDGE);
	if (!f)
		return;
	comm = nccl_after(p, "comm", pointer, sizeof pointer) ? nccl_log_find(l, w, pointer) : NULL;
	if (comm) /* some releases say of which */
		f->comm = (uint32_t)(comm - l->comms) + 1;
	f->channel = (int32_t)channel;
	f->index = (uint8_t)index;
	f->v[0] = from;
	f->v[1] = to;
	f->send = way[0] != 'r';
	f->gdr = strstr(via, "GDRDMA") != NULL;
	/* NET/IB/0/…: the network and its card; P2P/IPC, SHM/direct/…: how. */
	slash = strncmp(via, "NET/", 4) == 0 ? strchr(via + 4, '/') : NULL;
	if (slash) {
		*slash = '\0';
		slash++;
		snprintf(f->nic, sizeof f->nic, "%.*s", (int)strcspn(slash, "/("), slash);
	}
	snprintf(f->transport, sizeof f->transport, "%.23s", via);
}

/* "Channel 00/04 : …", "Ring 00 : …" */
static void channel_line(struct nccl_log *l, struct nccl_worker *w, const char *p)
{
	int64_t channel, of = -1;
	int32_t a, b, c;
	const char *q;

	if (!nccl_number(&p, 0, MAX_CHANNELS, &channel) || (*p == '/' && (p++, !nccl_number(&p, 0, MAX_CHANNELS, &of))) ||
	    !nccl_literal(&p, ":"))
		return;
	q = p;
	if (!nccl_rank_of(&q, &a))
		return;
	if (*q == '[') {
		edge(l, w, channel, of > 0 ? of : 0, p);
	} else if (!nccl_literal(&q, "->")) {
		channels(l, w, of > 0 ? of : channel + 1);
		order(l, w, channel, p);
	} else if (nccl_rank_of(&q, &b) && nccl_literal(&q, "->") && nccl_rank_of(&q, &c) && nccl_ends(q) && a >= 0 && b >= 0 && c >= 0) {
		hop(l, w, channel, b, a, c, "neighbours");
	}
}

static bool downs(const char **p, int32_t v[3])
{
	return nccl_rank_of(p, &v[0]) && nccl_literal(p, "/") && nccl_rank_of(p, &v[1]) && nccl_literal(p, "/") && nccl_rank_of(p, &v[2]);
}

static void tree(struct nccl_log *l, struct nccl_worker *w, int64_t channel, int32_t rank, int32_t up,
		 const int32_t down[3])
{
	struct nccl_fact *f = rank >= 0 ? nccl_log_fact(l, w, NCCL_TREE) : NULL;

	if (!f)
		return;
	f->channel = (int32_t)channel;
	f->v[0] = rank;
	f->v[1] = up;
	memcpy(f->v + 2, down, 3 * sizeof *down);
}

/* "[0] 1/32/-1->0->-1|…": downs, the rank, up; before 2.8 both directions, alike. */
static void trees(struct nccl_log *l, struct nccl_worker *w, const char *p)
{
	int64_t channel;
	int32_t down[3], rank, up;
	char rest[64];

	while (nccl_literal(&p, "[") && nccl_number(&p, 0, MAX_CHANNELS, &channel) && nccl_literal(&p, "]") && downs(&p, down) &&
	       nccl_literal(&p, "->") && nccl_rank_of(&p, &rank) && nccl_literal(&p, "->") && nccl_rank_of(&p, &up)) {
		tree(l, w, channel, rank, up, down);
		if (*p == '|')
			(void)nccl_word(&p, "[", rest, sizeof rest);
	}
}

/* "Tree 0 : -1 -> 0 -> 1/-1/-1" */
static void tree_line(struct nccl_log *l, struct nccl_worker *w, const char *p)
{
	int64_t channel;
	int32_t down[3], rank, up;

	if (nccl_number(&p, 0, MAX_CHANNELS, &channel) && nccl_literal(&p, ":") && nccl_rank_of(&p, &up) && nccl_literal(&p, "->") &&
	    nccl_rank_of(&p, &rank) && nccl_literal(&p, "->") && downs(&p, down) && nccl_ends(p))
		tree(l, w, channel, rank, up, down);
}

/* ---- calls ---- */

/* "AllReduce: opCount 1a sendbuff … count 8 datatype 7 op 0 root 0 comm 0x… [nranks=2] …" */
static void call(struct nccl_log *l, struct nccl_worker *w, const char *at, const char *op, size_t n_op,
		 const char *text)
{
	char pointer[24];
	const char *n_ranks = strstr(text, "[nranks=");
	struct nccl_comm *comm;
	struct nccl_call *c;
	int64_t n;

	if (!nccl_after(text, "comm", pointer, sizeof pointer) || n_op >= sizeof c->op)
		return;
	comm = nccl_log_find(l, w, pointer);
	if (!comm) /* the log begins after its set-up */
		comm = nccl_log_add(l, w, pointer);
	c = comm ? nccl_log_call(l) : NULL;
	if (!c)
		return;
	w->comm = (uint32_t)(comm - l->comms) + 1;
	n_ranks = n_ranks ? n_ranks + strlen("[nranks=") : "";
	if (comm->n_ranks < 0 && nccl_number(&n_ranks, 1, NCCL_MAX_RANKS, &n))
		comm->n_ranks = n;
	*c = (struct nccl_call){ .comm = w->comm, .number = comm->n_calls++, .low = TRACE_NULL, .high = TRACE_NULL };
	snprintf(c->op, sizeof c->op, "%.*s", (int)n_op, op);
	snprintf(c->at, sizeof c->at, "%.39s", at);
	c->count = nccl_number_after(text, "count", INT64_MAX - 1);
	c->dtype = nccl_number_after(text, "datatype", 1000);
	c->reduction = nccl_number_after(text, "op", 1000000);
	c->root = nccl_number_after(text, "root", NCCL_MAX_RANKS);
	w->call = l->n_calls;
}

/* "AllReduce: 1024 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..3}": of the call before. */
static void choice(struct nccl_log *l, const struct nccl_worker *w, const char *op, size_t n_op, const char *text)
{
	struct nccl_call *c = w->call ? &l->calls[w->call - 1] : NULL;
	const char *range = strstr(text, "={");

	if (!c || strlen(c->op) != n_op || strncmp(c->op, op, n_op) != 0 || c->algorithm[0])
		return;
	(void)nccl_after(text, "Algo", c->algorithm, sizeof c->algorithm);
	(void)nccl_after(text, "proto", c->protocol, sizeof c->protocol);
	range = range ? range + 2 : "";
	if (!nccl_number(&range, 0, MAX_CHANNELS, &c->low) || !nccl_literal(&range, "..") ||
	    !nccl_number(&range, 0, MAX_CHANNELS, &c->high))
		c->low = c->high = TRACE_NULL;
}

/* ---- networks, settings ---- */

/* "[0]mlx5_0:1/IB [1]… ; OOB eth0:192.0.2.2<0>" behind "Using"; "[RO]" is a property. */
static void cards(struct nccl_log *l, const struct nccl_worker *w, const char *network, const char *p)
{
	int64_t n;
	char name[64], *address;

	while (!nccl_ends(p)) {
		bool numbered;

		nccl_blanks(&p);
		if (*p == ';' || strncmp(p, "OOB", 3) == 0)
			break;
		numbered = nccl_literal(&p, "[") && nccl_number(&p, 0, 4096, &n) && nccl_literal(&p, "]");
		if (!nccl_word(&p, ";", name, sizeof name))
			break;
		if (!numbered)
			continue;
		address = strchr(name, ':');
		if (address && strchr(name, '<')) /* eth0:192.0.2.2<0>: its address is no part of its name */
			*address = '\0';
		if (!trace_row(l->trace, "nccl_nic", "tiitit", w->host, w->pid, w->device, network, n, name))
			return;
	}
}

/* "Using [0]ib0:10.0.3.73<0> …", "Using eth0:10.0.0.1<0>": the first is used. */
static void bootstrap(struct nccl_log *l, const struct nccl_worker *w, const char *at, const char *p)
{
	int64_t n;
	char name[96], *colon;

	if (nccl_literal(&p, "[") && !(nccl_number(&p, 0, 4096, &n) && nccl_literal(&p, "]")))
		return;
	if (!nccl_word(&p, "<", name, sizeof name) || !(colon = strchr(name, ':')))
		return;
	*colon = '\0';
	nccl_log_line(l, w, at, "bootstrap", name, colon + 1);
}

/* "NCCL_X set by environment to V." */
static void setting(struct nccl_log *l, const struct nccl_worker *w, const char *at, const char *text,
		    const char *set_by)
{
	char name[64], value[200];
	size_t n;

	if ((size_t)(set_by - text) >= sizeof name || memchr(text, ' ', (size_t)(set_by - text)))
		return;
	snprintf(name, sizeof name, "%.*s", (int)(set_by - text), text);
	snprintf(value, sizeof value, "%.199s", set_by + strlen(" set by environment to "));
	n = strlen(value);
	if (n > 0 && value[n - 1] == '.')
		value[n - 1] = '\0';
	nccl_log_line(l, w, at, "setting", name, value);
}

static const char *behind(const char *text, const char *begin)
{
	return strncmp(text, begin, strlen(begin)) == 0 ? text + strlen(begin) : NULL;
}

/* "NET/IB : Using …", "NET/Socket : Using …", "NET/OFI Using …" */
static bool network(struct nccl_log *l, const struct nccl_worker *w, const char *text)
{
	char name[24];
	const char *p = behind(text, "NET/");

	if (!p || !nccl_word(&p, ":", name, sizeof name))
		return false;
	(void)nccl_literal(&p, ":");
	if (nccl_literal(&p, "Using "))
		cards(l, w, name, p);
	return true;
}

static bool of_call(struct nccl_log *l, struct nccl_worker *w, const char *at, const char *text)
{
	const char *colon = strchr(text, ':');
	size_t n = colon ? (size_t)(colon - text) : 0;

	if (n == 0 || memchr(text, ' ', n))
		return false;
	if (behind(colon, ": opCount "))
		call(l, w, at, text, n, colon + 1);
	else if (strstr(colon, " Bytes -> Algo "))
		choice(l, w, text, n, colon + 1);
	else
		return false;
	return true;
}

static bool of_rings(struct nccl_log *l, struct nccl_worker *w, const char *text)
{
	const char *p;

	if ((p = behind(text, "Channel ")) || (p = behind(text, "Ring ")))
		channel_line(l, w, p);
	else if ((p = behind(text, "Trees ")))
		trees(l, w, p);
	else if ((p = behind(text, "Tree ")))
		tree_line(l, w, p);
	else
		return false;
	return true;
}

void nccl_log_message(struct nccl_log *l, struct nccl_worker *w, const char *at, bool warning, const char *text)
{
	const char *p, *q = text;
	char version[40];
	int64_t n;

	if ((p = behind(text, "NCCL version ")) && nccl_word(&p, "", version, sizeof version)) {
		if (w)
			memcpy(l->processes[w->process].version, version, sizeof version);
		nccl_log_line(l, w, at, "version", "nccl", version);
		return;
	}
	if (!w)
		return;
	if (warning) {
		nccl_log_line(l, w, at, "warning", NULL, text);
		return;
	}
	if (of_rings(l, w, text) || of_call(l, w, at, text) || network(l, w, text))
		return;
	if ((p = strstr(text, " - Init COMPLETE")) || strstr(text, " - Init START"))
		set_up(l, w, text, p != NULL);
	else if (behind(text, "comm ") && strstr(text, " nNodes "))
		nodes(l, w, text);
	else if (nccl_number(&q, 0, MAX_CHANNELS, &n) && behind(q, " coll channels"))
		channels(l, w, n);
	else if ((p = behind(text, "Bootstrap : Using ")) || (p = behind(text, "Bootstrap: Using ")))
		bootstrap(l, w, at, p);
	else if ((p = behind(text, "Using network ")))
		nccl_log_line(l, w, at, "network", NULL, p);
	else if ((p = strstr(text, " set by environment to ")))
		setting(l, w, at, text, p);
}
