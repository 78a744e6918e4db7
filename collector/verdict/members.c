#include "members.h"
#include "words.h"

#include <stdio.h>
#include <string.h>

uint32_t members_n(const struct rules *r, const struct rates_cell *c)
{
	return c->pair ? 2 : r->ledger.match->groups[c->group].n_members;
}

int32_t members_rank(const struct rules *r, const struct rates_cell *c, uint32_t i)
{
	return c->pair ? c->ranks[i] : r->ledger.match->groups[c->group].ranks[i];
}

uint32_t members_proc(const struct rules *r, const struct rates_cell *c, uint32_t i)
{
	return paths_proc(&r->paths, members_rank(r, c, i));
}

uint32_t members_host(const struct rules *r, const struct rates_cell *c, uint32_t i)
{
	uint32_t proc = members_proc(r, c, i);

	return proc == UINT32_MAX ? UINT32_MAX : r->ledger.roster->procs[proc].host;
}

bool members_has(const struct rules *r, const struct rates_cell *c, int32_t rank)
{
	for (uint32_t i = 0; i < members_n(r, c); i++)
		if (members_rank(r, c, i) == rank)
			return true;
	return false;
}

bool members_on(const struct rules *r, const struct rates_cell *c, uint32_t host)
{
	for (uint32_t i = 0; i < members_n(r, c); i++)
		if (members_host(r, c, i) == host)
			return true;
	return false;
}

void members_words(const struct rules *r, const struct rates_cell *c, char *out, size_t n_out)
{
	int32_t ranks[RULES_MAX_RANKS];
	uint32_t n = members_n(r, c), shown = n < RULES_MAX_RANKS ? n : RULES_MAX_RANKS;
	char who[160];

	if (n == 2) {
		snprintf(out, n_out, "%d-%d", members_rank(r, c, 0), members_rank(r, c, 1));
		return;
	}
	for (uint32_t i = 0; i < shown; i++)
		ranks[i] = members_rank(r, c, i);
	words_ranks(ranks, shown, who, sizeof who);
	snprintf(out, n_out, "group %.60s (%s%s)", r->ledger.match->groups[c->group].name, who,
		 n > shown ? " and more" : "");
}

const char *members_host_name(const struct rules *r, uint32_t host)
{
	const char *name = host < r->ledger.roster->n_hosts ? r->ledger.roster->hosts[host].name : NULL;

	return name && *name ? name : "?";
}

bool cells_overlap(const struct rates_sample *s, const struct rates_cell *other)
{
	uint32_t n = other->n < RATES_KEEP ? (uint32_t)other->n : RATES_KEEP;
	int64_t both_ns = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct rates_sample *o = rates_recent(other, i);
		int64_t lo = s->begin_ns > o->begin_ns ? s->begin_ns : o->begin_ns;
		int64_t s_end = s->begin_ns + s->transfer_ns, o_end = o->begin_ns + o->transfer_ns;
		int64_t hi = s_end < o_end ? s_end : o_end;

		both_ns += hi > lo ? hi - lo : 0;
	}
	return both_ns * 4 > s->transfer_ns;
}

bool members_explained(const struct rules *r, const struct rates_cell *c)
{
	for (uint32_t i = 0; i < members_n(r, c); i++)
		if (rules_explained(r, members_rank(r, c, i)))
			return true;
	return false;
}

bool path_told(const struct rules *r, const char *except)
{
	static const char *const classes[] = { "net.", "slow.shared_nic", "slow.ring_nic_collision",
					       "slow.host_p2p_path", "slow.link" };

	for (uint32_t i = 0; i < r->n_slow; i++)
		for (size_t k = 0; k < sizeof classes / sizeof *classes; k++)
			if (strncmp(r->slow[i].class_name, classes[k], strlen(classes[k])) == 0 &&
			    strcmp(r->slow[i].class_name, except) != 0)
				return true;
	return false;
}

uint32_t members_since(const struct rates_cell *c, double limit_ns)
{
	uint32_t n = c->n < RATES_KEEP ? (uint32_t)c->n : RATES_KEEP, k = 0;

	while (k < n && (double)rates_recent(c, k)->transfer_ns >= limit_ns)
		k++;
	if (k == n && c->n <= RATES_EARLY + RATES_KEEP && (double)c->early[0].transfer_ns >= limit_ns)
		return c->early[0].step;
	return rates_recent(c, k > 0 ? k - 1 : 0)->step;
}

void contrast_finding(const struct contrast *c, struct finding *ret)
{
	const struct contrast_cell *slow = &c->v[c->n - 1];

	*ret = (struct finding){ .severity = SEVERITY_SLOW,
				 .confidence = c->firm && slow->cell->device ? CONFIDENCE_CERTAIN : CONFIDENCE_LIKELY,
				 .onset_ns = FACT_NONE, .cost_ratio = contrast_cost(c, slow),
				 .margin_ns = c->margin_ns, .error_ns = c->error_ns,
				 .error_kind = ERROR_KIND_NONE,
				 .step = members_since(slow->cell, (slow->lo + c->v[c->n - c->n_slow - 1].hi) / 2),
				 .last_step = rates_recent(slow->cell, 0)->step };
}

void contrast_words(const struct contrast *c, char *out, size_t n_out)
{
	uint32_t n_fast = c->n - c->n_slow;
	char slow[32], fast[32];

	words_ns((int64_t)c->v[c->n - c->n_slow].mid, slow, sizeof slow);
	words_ns((int64_t)c->v[n_fast - 1].mid, fast, sizeof fast);
	snprintf(out, n_out, "%s against at most %s of %u other%s", slow, fast, n_fast, n_fast == 1 ? "" : "s");
}
