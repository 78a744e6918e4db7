/* host_p2p_path.c - slow.host_p2p_path: inside one host, GPUs reach each other by a detour.
 *
 * What it says: the host, what its PCI bridges are set to, and how much slower
 * every group inside it is than the same groups inside other hosts.
 *
 * How it decides: of groups that lie inside one host each, the slow ones are all of
 * those of some hosts, and a host.pci record of these says that peer traffic is
 * redirected (access control on, addresses translated), while no host of the fast
 * ones says so. Certain where the fast ones' records say the opposite and each
 * group has ten calls.
 *
 * Neighbours: slow.link (one pair inside the host, or no such record),
 * slow.fixed_rank (the host's ranks come later to what they share with others,
 * because of this), slow.shared_nic (between hosts).
 */
#include "members.h"
#include "words.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MAX_HOSTS 8

/* Its bridges, and by what name the host goes: where a job is played on one host, records
 * may still tell several. */
static const struct path_pci *pci_of(const struct rules *r, const struct rates_cell *c, const char **ret_host)
{
	const struct path_pci *pci = paths_pci(&r->paths, r->ledger.roster, members_proc(r, c, 0));

	for (uint32_t i = 1; !pci->said && i < members_n(r, c); i++)
		pci = paths_pci(&r->paths, r->ledger.roster, members_proc(r, c, i));
	*ret_host = pci->host ? pci->host : members_host_name(r, members_host(r, c, 0));
	return pci;
}

/* Hosts of the slow; 0 when the records or the fast ones do not fit. */
static uint32_t find_hosts(const struct rules *r, const struct contrast *c, const char **hosts, bool *ret_all_said)
{
	uint32_t n = 0;

	*ret_all_said = true;
	for (uint32_t i = c->n; i-- > 0;) {
		const char *host;
		const struct path_pci *pci = pci_of(r, c->v[i].cell, &host);
		uint32_t k = 0;

		if (pci->detour != (i >= c->n - c->n_slow))
			return 0;
		*ret_all_said &= pci->said;
		while (k < n && strcmp(hosts[k], host) != 0)
			k++;
		if (k < n && !pci->detour)
			return 0; /* not all of that host are slow */
		if (k == n && n < MAX_HOSTS && pci->detour)
			hosts[n++] = host;
	}
	return n;
}

static int look(struct rules *r, const struct contrast *c)
{
	char sentence[900], detail[200], words[120], names[300] = "";
	const char *hosts[MAX_HOSTS], *host;
	const struct path_pci *pci;
	uint32_t n;
	struct finding f;
	bool all_said;
	size_t at = 0;

	if (c->n_slow == 0 || c->v[0].cell->n_hosts != 1)
		return 0;
	n = find_hosts(r, c, hosts, &all_said);
	if (n == 0)
		return 0;
	pci = pci_of(r, c->v[c->n - 1].cell, &host);
	for (uint32_t i = 0; i < n && at + 1 < sizeof names; i++)
		at += (size_t)snprintf(names + at, sizeof names - at, "%s%.60s", i ? ", " : "",
				       hosts[i]);
	contrast_finding(c, &f);
	contrast_words(c, words, sizeof words);
	snprintf(detail, sizeof detail, "peer traffic through the root complex: acs %.20s, iommu %.20s",
		 pci->acs ? pci->acs : "?", pci->iommu ? pci->iommu : "?");
	snprintf(sentence, sizeof sentence,
		 "Inside host %s GPUs reach each other by a detour through the root complex (access control %.20s, "
		 "IOMMU %.20s): transfers take %s inside other hosts. Switch ACS off on its PCI bridges and the IOMMU "
		 "to pass-through, as on the others.", names, pci->acs ? pci->acs : "unknown",
		 pci->iommu ? pci->iommu : "unknown", words);
	f.class_name = "slow.host_p2p_path";
	f.host = hosts[0];
	f.detail = detail;
	f.sentence = sentence;
	if (!all_said)
		f.confidence = CONFIDENCE_LIKELY;
	f.evidence_json = "[{\"view\":\"record\",\"category\":\"host.pci\"},{\"view\":\"comm_class_group\"}]";
	f.rules_out_json = "[\"slow.fixed_rank: only what follows the last arrival is compared\","
			   "\"slow.link: every group inside the host is slow\","
			   "\"slow.shared_nic: no traffic between hosts is in it\"]";
	return rules_tell(r, &f) < 0 ? -ENOMEM : 1;
}

int host_p2p_path_look(struct rules *r)
{
	int e = 0;

	if (path_told(r, "slow.host_p2p_path"))
		return 0;
	for (size_t i = 0; i < r->contrasts.n && e == 0; i++)
		e = look(r, &r->contrasts.v[i]);
	return e < 0 ? e : 0;
}
