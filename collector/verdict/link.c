/* link.c - slow.link: one link, pair or host's way out is slower than its kind.
 *
 * What it says: between whom, or which host, and how much slower than the same
 * transfers elsewhere.
 *
 * How it decides: of groups or pairs of one kind a minority (of two: one) transfers
 * the same calls slower, by at least LINK_RATIO, as the device ran them: what a
 * host calls and notices has the host's own pauses in it. Named is what the slow
 * ones share and no fast one has: a host, a pair of hosts, a rank's own link;
 * otherwise they are listed. Where a record says that just there a link is narrower
 * or a port slower than the others, a smaller ratio will do, and it is certain from
 * ten calls on; without a record it stays likely. A record alone is told only where no
 * group of the kind could be compared and transfers take a notable part of the time.
 *
 * Neighbours: slow.shared_nic, slow.host_p2p_path, net.retransmits and net.jitter,
 * which know the reason and come before; slow.fixed_rank (late arrival); slow.throttled
 * (a device that does everything slower).
 */
#include "members.h"
#include "words.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LINK_RATIO 1.4
#define NARROW_RATIO 0.8  /* of the others' width times speed */
#define NOTABLE_SHARE 0.1 /* of the time spent in transfers */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double middle(double *v, size_t n)
{
	if (n == 0)
		return 0;
	qsort(v, n, sizeof *v, by_value);
	return v[n / 2];
}

/* ---- what records say ---- */

#define MAX_KINDS 8

struct usual { /* width times speed of the links of a kind */
	const struct path_link *kind[MAX_KINDS];
	double gbs[MAX_KINDS];
	size_t n;
};

struct narrow { /* one that is below the others of its kind */
	struct usual usual;
	bool found, many; /* many: not of one place, so nothing is said */
	uint32_t proc, host; /* proc UINT32_MAX: several of that host, or its way out */
	bool port;
	int64_t peer; /* the link's other end; -1 = not said */
	char words[240];
};

static bool same_kind(const struct path_link *a, const struct path_link *b)
{
	return a->kind && b->kind && strcasecmp(a->kind, b->kind) == 0;
}

static double width_of(const struct path_link *l)
{
	return l->gbs > 0 ? l->gbs : l->width > 0 ? l->width : l->speed;
}

static void add_narrow(const struct rules *r, const struct path_link *l, double usual, struct narrow *ret)
{
	const struct proc *p = &r->ledger.roster->procs[l->proc];
	bool other_end = ret->found && ret->proc != UINT32_MAX && ret->peer == p->rank &&
			 l->peer == r->ledger.roster->procs[ret->proc].rank;

	if (ret->found && !other_end && ret->proc != l->proc) {
		ret->many |= ret->host != p->host;
		ret->proc = UINT32_MAX;
	}
	if (ret->found)
		return;
	ret->found = true;
	ret->proc = l->proc;
	ret->host = p->host;
	ret->peer = l->peer;
	snprintf(ret->words, sizeof ret->words,
		 "the %.16s link of rank %d is %g wide at %g, others of the job carry %.3g times that", l->kind,
		 p->rank, l->width, l->speed, usual / width_of(l));
}

/* Kinds beyond the first few are not judged. */
static void find_usual(const struct paths *p, struct usual *ret)
{
	double *v = malloc((p->n_links + 1) * sizeof *v);

	for (size_t i = 0; v && i < p->n_links && ret->n < MAX_KINDS; i++) {
		size_t k = 0, n = 0;

		while (k < ret->n && !same_kind(ret->kind[k], &p->links[i]))
			k++;
		if (k < ret->n || !(width_of(&p->links[i]) > 0))
			continue;
		for (size_t j = i; j < p->n_links; j++)
			if (same_kind(&p->links[i], &p->links[j]) && width_of(&p->links[j]) > 0)
				v[n++] = width_of(&p->links[j]);
		ret->kind[ret->n] = &p->links[i];
		ret->gbs[ret->n++] = n < 2 ? 0 : middle(v, n);
	}
	free(v);
}

/* What it should be; 0 when it is not narrow. */
static double is_narrow(const struct usual *u, const struct path_link *l)
{
	for (size_t k = 0; k < u->n; k++)
		if (same_kind(u->kind[k], l) && width_of(l) > 0 && width_of(l) <= NARROW_RATIO * u->gbs[k])
			return u->gbs[k];
	return 0;
}

static void narrow_links(const struct rules *r, struct narrow *ret)
{
	find_usual(&r->paths, &ret->usual);
	for (size_t i = 0; i < r->paths.n_links; i++) {
		double usual = is_narrow(&ret->usual, &r->paths.links[i]);

		if (usual > 0)
			add_narrow(r, &r->paths.links[i], usual, ret);
	}
}

static int narrow_ports(const struct rules *r, struct narrow *ret)
{
	const struct paths *p = &r->paths;
	double *v = malloc((p->n_ports + 1) * sizeof *v);
	size_t n = 0;
	double usual;

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_ports; i++)
		if (p->ports[i].gbs > 0)
			v[n++] = p->ports[i].gbs;
	usual = middle(v, n);
	free(v);
	for (size_t i = 0; i < p->n_ports && n >= 2; i++) {
		const struct path_port *port = &p->ports[i];

		if (!(port->gbs > 0) || port->gbs > NARROW_RATIO * usual)
			continue;
		ret->many |= ret->found && ret->host != port->host;
		ret->found = ret->port = true;
		ret->proc = UINT32_MAX;
		ret->host = port->host;
		snprintf(ret->words, sizeof ret->words, "port %.40s of host %.60s runs at %g Gb/s, others at %g",
			 port->dev[0] ? port->dev : "?", members_host_name(r, port->host), 8 * port->gbs, 8 * usual);
	}
	return 0;
}

/* Does the cell's traffic pass one that is narrow? */
static bool passes(const struct rules *r, const struct rates_cell *c, const struct narrow *n)
{
	if (!n->found)
		return false;
	if (n->port)
		return !n->many && c->n_hosts > 1 && members_on(r, c, n->host);
	for (uint32_t i = 0; i < members_n(r, c); i++) {
		uint32_t proc = members_proc(r, c, i);
		const struct path_link *l;

		for (uint32_t k = proc < r->paths.n_procs ? r->paths.procs[proc].links : 0; k; k = l->next) {
			l = &r->paths.links[k - 1];
			if (is_narrow(&n->usual, l) > 0 && (l->peer < 0 || members_has(r, c, (int32_t)l->peer)))
				return true;
		}
	}
	return false;
}

/* ---- what the slow ones share and no fast one has ---- */

struct common {
	uint32_t host, other_host; /* UINT32_MAX = none */
	int32_t rank;		   /* -1 = none */
};

static bool all_and_only_on(const struct rules *r, const struct contrast *c, uint32_t host, uint32_t other)
{
	for (uint32_t i = 0; i < c->n; i++) {
		const struct rates_cell *cell = c->v[i].cell;
		bool on = members_on(r, cell, host) && (other == UINT32_MAX || members_on(r, cell, other));

		if (on != (i >= c->n - c->n_slow))
			return false;
	}
	return true;
}

static bool all_and_only_of(const struct rules *r, const struct contrast *c, int32_t rank)
{
	for (uint32_t i = 0; i < c->n; i++)
		if (members_has(r, c->v[i].cell, rank) != (i >= c->n - c->n_slow))
			return false;
	return true;
}

static void find_common(const struct rules *r, const struct contrast *c, struct common *ret)
{
	const struct rates_cell *slow = c->v[c->n - 1].cell;
	uint32_t n = members_n(r, slow);

	*ret = (struct common){ UINT32_MAX, UINT32_MAX, -1 };
	for (uint32_t i = 0; i < n && c->n_slow > 1; i++)
		if (all_and_only_of(r, c, members_rank(r, slow, i))) {
			ret->rank = ret->rank < 0 ? members_rank(r, slow, i) : -2;
		}
	if (ret->rank >= 0)
		return;
	ret->rank = -1;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t host = members_host(r, slow, i);

		if (host == UINT32_MAX || host == ret->host || !all_and_only_on(r, c, host, UINT32_MAX))
			continue;
		ret->other_host = ret->host == UINT32_MAX ? UINT32_MAX : host;
		ret->host = ret->host == UINT32_MAX ? host : ret->host;
	}
	for (uint32_t i = 0; i < n && slow->n_hosts == 2 && ret->host == UINT32_MAX; i++) {
		uint32_t a = members_host(r, slow, 0), b = members_host(r, slow, i);

		if (a != b && a != UINT32_MAX && b != UINT32_MAX && all_and_only_on(r, c, a, b)) {
			ret->host = a;
			ret->other_host = b;
		}
	}
}

static void name_link(const struct rules *r, const struct contrast *c, const struct common *at, char *out,
		      size_t n_out)
{
	size_t len = 0;

	if (at->rank >= 0) {
		snprintf(out, n_out, "rank %d", at->rank);
		return;
	}
	if (at->other_host != UINT32_MAX) {
		snprintf(out, n_out, "%.60s-%.60s", members_host_name(r, at->host),
			 members_host_name(r, at->other_host));
		return;
	}
	for (uint32_t i = c->n - c->n_slow; i < c->n && len + 1 < n_out; i++) {
		char one[200];

		members_words(r, c->v[i].cell, one, sizeof one);
		len += (size_t)snprintf(out + len, n_out - len, "%s%s", len ? ", " : "", one);
	}
}

/* ---- telling ---- */

static const char rules_out[] = "[\"slow.fixed_rank: only what follows the last arrival is compared\","
				"\"slow.work_imbalance: the same operation, type and size\"]";

static int tell(struct rules *r, struct finding *f, const struct contrast *c, const struct narrow *n)
{
	char sentence[1100], link[300], words[120], where[200], detail[240];
	struct common at;

	find_common(r, c, &at);
	name_link(r, c, &at, link, sizeof link);
	contrast_words(c, words, sizeof words);
	if (at.host != UINT32_MAX && at.other_host == UINT32_MAX && at.rank < 0) {
		f->host = members_host_name(r, at.host);
		snprintf(where, sizeof where, "%s host %.60s", c->v[0].cell->n_hosts > 1 ? "to and from" : "inside",
			 f->host);
	} else {
		snprintf(where, sizeof where, "%s %.150s", at.rank >= 0 ? "of" : "between", link);
	}
	snprintf(detail, sizeof detail, "%.200s", n ? n->words : "no record says why");
	snprintf(sentence, sizeof sentence,
		 "The link %s is slow: the same transfers take %s like it.%s%s Look at its width, speed and errors "
		 "(nvidia-smi topo, lspci -vv, ibstat, perfquery), at cable and switch port.", where, words,
		 n ? " The records agree: " : "", n ? n->words : "");
	if (!n)
		f->confidence = CONFIDENCE_LIKELY;
	f->class_name = "slow.link";
	f->link = link;
	f->detail = detail;
	f->sentence = sentence;
	f->evidence_json = n ? "[{\"view\":\"comm_class_group\"},{\"view\":\"record\",\"category\":\"topo.link, ib.port\"}]"
			     : "[{\"view\":\"comm_class_group\"}]";
	f->rules_out_json = rules_out;
	return rules_tell(r, f) < 0 ? -ENOMEM : 1;
}

static int look(struct rules *r, const struct contrast *c, const struct narrow *links, const struct narrow *ports)
{
	const struct narrow *why = NULL;
	bool by_links = c->n_slow > 0, by_ports = by_links;
	struct finding f;

	for (uint32_t i = 0; i < c->n && c->n_slow > 0; i++) {
		bool slow = i >= c->n - c->n_slow;

		by_links &= passes(r, c->v[i].cell, links) == slow;
		by_ports &= passes(r, c->v[i].cell, ports) == slow;
		if (slow && members_explained(r, c->v[i].cell))
			return 0;
	}
	if (c->n_slow == 0)
		return 0;
	why = by_links ? links : by_ports ? ports : NULL;
	if (!why && (!c->v[0].cell->device || c->ratio < LINK_RATIO || 2 * c->n_slow > c->n))
		return 0;
	contrast_finding(c, &f);
	return tell(r, &f, c, why);
}

/* Nobody to compare with: of its kind there is one group. */
static int look_record(struct rules *r, const struct narrow *n)
{
	char sentence[700], link[80];
	double share = 0;
	struct finding f = { .severity = SEVERITY_SLOW, .confidence = CONFIDENCE_LIKELY, .onset_ns = FACT_NONE,
			     .error_kind = ERROR_KIND_NONE, .step = EVENT_STEP_UNKNOWN };

	for (size_t i = 0; i < r->contrasts.n; i++) {
		const struct contrast *c = &r->contrasts.v[i];
		const struct rates_sample *last = rates_recent(c->v[0].cell, 0);
		const struct rates_sample *first = rates_recent(c->v[0].cell, c->v[0].n - 1);
		double span = (double)(last->begin_ns + last->transfer_ns - first->begin_ns);
		double here = c->v[0].mid * c->v[0].n / (span > 0 ? span : 1);

		if (!passes(r, c->v[0].cell, n))
			continue;
		if (c->n > 1)
			return 0; /* they were compared */
		if (here > share) {
			share = here;
			f.step = c->v[0].cell->early[0].step;
			f.last_step = last->step;
		}
	}
	if (share < NOTABLE_SHARE || rules_explained(r, n->proc == UINT32_MAX
							    ? -1 : r->ledger.roster->procs[n->proc].rank))
		return 0;
	if (n->proc == UINT32_MAX)
		snprintf(link, sizeof link, "%.60s", members_host_name(r, n->host));
	else
		snprintf(link, sizeof link, "rank %d", r->ledger.roster->procs[n->proc].rank);
	f.host = members_host_name(r, n->host);
	f.class_name = "slow.link";
	f.link = link;
	f.detail = n->words;
	f.sentence = sentence;
	snprintf(sentence, sizeof sentence,
		 "A link is slower than its kind: %s. Transfers through it take %.0f %% of the time, and every member "
		 "of its groups waits for the slowest link. Reseat or replace it, or leave that device out.", n->words,
		 100 * (share < 1 ? share : 1));
	f.evidence_json = "[{\"view\":\"record\",\"category\":\"topo.link, ib.port\"},{\"view\":\"comm_class\"}]";
	f.rules_out_json = rules_out;
	return rules_tell(r, &f) < 0 ? -ENOMEM : 1;
}

int link_look(struct rules *r)
{
	struct narrow links = { 0 }, ports = { 0 };
	int e = narrow_ports(r, &ports);

	narrow_links(r, &links);
	for (size_t i = 0; i < r->contrasts.n && e == 0; i++)
		e = look(r, &r->contrasts.v[i], &links, &ports);
	if (e == 0 && links.found && !links.many)
		e = look_record(r, &links);
	if (e == 0 && ports.found && !ports.many)
		e = look_record(r, &ports);
	return e < 0 ? e : 0;
}
