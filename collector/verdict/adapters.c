/* adapters.c - net.adapter_count_differs: hosts bring different numbers of network adapters.
 *
 * What it says: which host has how many, and what the others have; nobody's rank.
 *
 * How it decides: each rank's library says how many adapters it uses; of a host the
 * largest counts. Hosts are compared with the majority, or all named where there is
 * none. Rings are built for the fewest, or not at all: it is the cause where the job
 * stands in its start or its first calls, and slow where like collectives take a
 * fifth longer in groups with a host that has fewer than in groups without. Otherwise a
 * notice.
 *
 * Neighbours: slow.shared_nic (as many adapters, one of them used twice), slow.link,
 * config.device_differs (the GPU's own link).
 */
#include "onset.h"
#include "start.h"

#include <stdio.h>
#include <string.h>

#define MAX_HOSTS 256
#define LEAST_RATIO 1.2
#define LEAST_CALLS 4

struct host_nics {
	const char *host;
	int64_t nics, channels;
};

struct adapters {
	struct host_nics v[MAX_HOSTS];
	unsigned n;
	int64_t most_common;
	bool majority, differ, channels_differ;
};

static void count(const struct rules *r, struct adapters *ret)
{
	unsigned best = 0;

	ret->n = 0;
	for (size_t i = 0; i < r->side.n; i++) {
		int64_t nics = start_record(r, i, SIDE_NET) ?
				       side_number(&r->side.v[i], "nics", -1) : -1;
		int64_t channels = side_number(&r->side.v[i], "channels", -1);
		const char *host = start_host(r, i);
		unsigned k = 0;

		if (nics < 0)
			continue;
		while (k < ret->n && strcmp(ret->v[k].host, host) != 0)
			k++;
		if (k == MAX_HOSTS)
			continue;
		if (k == ret->n)
			ret->v[ret->n++] = (struct host_nics){ host, nics, channels };
		if (nics > ret->v[k].nics)
			ret->v[k].nics = nics;
	}
	ret->majority = ret->differ = ret->channels_differ = false;
	for (unsigned i = 0; i < ret->n; i++) {
		unsigned n = 0;

		for (unsigned k = 0; k < ret->n; k++)
			n += ret->v[k].nics == ret->v[i].nics;
		if (n > best) {
			best = n;
			ret->most_common = ret->v[i].nics;
		}
		ret->differ |= ret->v[i].nics != ret->v[0].nics;
		ret->channels_differ |= ret->v[i].channels != ret->v[0].channels;
	}
	ret->majority = 2 * best > ret->n;
}

static bool has_fewer(const struct adapters *a, const char *host, int64_t most)
{
	for (unsigned i = 0; host && i < a->n; i++)
		if (strcmp(a->v[i].host, host) == 0)
			return a->v[i].nics < most;
	return false;
}

/* Does a member of this group sit on a host with fewer than the most? */
static bool group_has_fewer(const struct rules *r, const struct adapters *a, uint32_t group, int64_t most)
{
	const struct page *p = &r->ledger.pages[group];

	for (uint32_t i = 0; i < p->n_seats; i++)
		if (p->seats[i].seen &&
		    has_fewer(a, start_host_of_rank(r, p->seats[i].rank), most))
			return true;
	return false;
}

/* How much longer like calls take where such a host takes part; 0 = not known to. */
static double slower(const struct rules *r, const struct adapters *a)
{
	int64_t most = 0;
	double worst = 0;

	for (unsigned i = 0; i < a->n; i++)
		most = a->v[i].nics > most ? a->v[i].nics : most;
	for (uint32_t i = 0; i < r->transfers.n && i < r->ledger.n_pages; i++)
		for (uint32_t k = 0; k < r->transfers.n && k < r->ledger.n_pages; k++) {
			const struct transfer *x = &r->transfers.v[i], *y = &r->transfers.v[k];
			double ratio;

			if (x->n < LEAST_CALLS || y->n < LEAST_CALLS || x->op != y->op ||
			    x->bytes != y->bytes || x->n_members != y->n_members ||
			    x->n_hosts < 2 || y->n_hosts < 2 || group_has_fewer(r, a, k, most) ||
			    !group_has_fewer(r, a, i, most))
				continue;
			ratio = (double)(x->sum_ns / x->n) / (double)(y->sum_ns / y->n);
			if (worst == 0 || ratio < worst)
				worst = ratio; /* the least that any like group says */
		}
	return worst >= LEAST_RATIO ? worst : 0;
}

static void describe(const struct adapters *a, struct finding *f, char *detail, size_t n_detail)
{
	size_t at = 0;
	unsigned n_odd = 0, n_named = 0;

	detail[0] = '\0';
	for (unsigned i = 0; i < a->n; i++) {
		if (a->majority && a->v[i].nics == a->most_common)
			continue;
		n_odd++;
		f->host = a->v[i].host;
		if (n_named++ < 4 && at < n_detail)
			at += (size_t)snprintf(detail + at, n_detail - at, "%s%.40s has %lld", at ? ", " : "",
					       a->v[i].host, (long long)a->v[i].nics);
	}
	if (a->majority && at < n_detail)
		snprintf(detail + at, n_detail - at, ", the others %lld", (long long)a->most_common);
	if (n_odd != 1)
		f->host = NULL;
}

int adapters_look(struct rules *r)
{
	char sentence[600], detail[300];
	struct finding f = { .class_name = "net.adapter_count_differs", .step = EVENT_STEP_UNKNOWN,
			     .onset_ns = FACT_NONE, .detail = detail, .sentence = sentence,
			     .confidence = CONFIDENCE_LIKELY, .setting = "number of adapters" };
	struct adapters a;
	struct standstill s;
	enum onset onset;
	double ratio = 0;
	bool stands;

	if (r->held || r->side.n_of_kind[SIDE_NET] == 0)
		return 0;
	count(r, &a);
	if (!a.differ)
		return 0;
	onset = onset_of(r, START_RETRY_NS, &s);
	stands = onset == ONSET_NO_CALL || onset == ONSET_FIRST_CALLS;
	if (onset == ONSET_RUNS && !rules_explained(r, -1))
		ratio = slower(r, &a);
	if ((!stands && onset != ONSET_RUNS && !r->finishing) ||
	    !once_tell(&r->once.adapters, r->life, stands || ratio > 0))
		return 0;
	describe(&a, &f, detail, sizeof detail);
	f.severity = stands ? SEVERITY_STUCK : ratio > 0 ? SEVERITY_SLOW : SEVERITY_NOTICE;
	f.cost_ratio = ratio > 0 ? ratio - 1 : 0;
	snprintf(sentence, sizeof sentence,
		 "Hosts bring different numbers of network adapters: %s%s. %s Look which adapter is missing or "
		 "excluded there, or let all hosts use as many (NCCL_IB_HCA).", detail,
		 a.channels_differ ? ", and their channels differ with it" : "",
		 stands	   ? "The job stands in its start: rings cannot be built over both." :
		 ratio > 0 ? "Like collectives take longer where such a host takes part." :
			     "The job runs all the same.");
	f.evidence_json = "[{\"view\":\"record\",\"category\":\"nccl.net\"}]";
	f.rules_out_json = "[\"slow.shared_nic: the numbers differ, not their use\"]";
	return rules_tell(r, &f);
}
