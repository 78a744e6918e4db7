#include "standstill.h"

#include <string.h>

static bool is_known(const struct rules *r, const struct group *g)
{
	return g->n_expected > 1 &&
	       (g->known || (r->world_size > 0 && g->n_members >= r->world_size));
}

/* The newest process of that rank in this life; UINT32_MAX = none was seen. */
static uint32_t proc_of_rank(const struct rules *r, int32_t rank)
{
	const struct roster *roster = r->ledger.roster;

	for (uint32_t i = roster->n_procs; i-- > 0;)
		if (roster->procs[i].rank == rank && roster->procs[i].life == r->life)
			return i;
	return UINT32_MAX;
}

/* What everyone has entered ends below *ret. False when nobody is in the group. */
static bool reach(const struct page *p, const struct group *g, uint64_t *ret)
{
	bool any = false, all = true;

	for (uint32_t i = 0; i < g->n_members; i++) {
		const struct seat *s = i < p->n_seats && p->seats[i].seen ? &p->seats[i] : NULL;

		if (!s) {
			all = false;
			continue;
		}
		if (!any || s->n_entered < *ret)
			*ret = s->n_entered;
		any = true;
	}
	if (!all)
		*ret = p->first;
	return any;
}

static bool of_this_life(const struct rules *r, const struct page *p)
{
	for (uint32_t i = 0; i < p->n_seats; i++)
		if (p->seats[i].seen)
			return r->ledger.roster->procs[p->seats[i].proc].life == r->life;
	return false;
}

static void add_member(const struct rules *r, struct standstill *s, const struct page *p, uint32_t i)
{
	const struct group *g = &r->ledger.match->groups[s->group];
	const struct seat *seat = i < p->n_seats && p->seats[i].seen ? &p->seats[i] : NULL;
	uint32_t proc = seat ? seat->proc : proc_of_rank(r, g->ranks[i]);

	if (seat && seat->n_entered > s->call) {
		s->present = proc;
		s->n_present++;
		s->n_alive += !r->ledger.roster->procs[proc].gone;
	} else {
		if (s->n_absent < RULES_MAX_RANKS)
			s->absent[s->n_absent] = proc;
		s->n_absent++;
	}
}

/* The call of this group that some wait in. */
static bool waits_in(const struct rules *r, uint32_t group, struct standstill *ret)
{
	const struct group *g = &r->ledger.match->groups[group];
	const struct page *p = &r->ledger.pages[group];
	uint64_t call = 0;

	if (!p->any || p->told || !is_known(r, g) || !of_this_life(r, p) || !reach(p, g, &call))
		return false;
	*ret = (struct standstill){ .group = group, .call = call, .line = ledger_line(p, call) };
	if (!ret->line || ret->line->n_entered == 0)
		return false;
	for (uint32_t i = 0; i < g->n_members; i++)
		add_member(r, ret, p, i);
	ret->waited_ns = r->now_ns - ret->line->entered_now_ns;
	return ret->n_present > 0 && ret->n_absent > 0;
}

/* Is this process inside a call of another group that itself waits? */
static bool waits_elsewhere(const struct rules *r, uint32_t proc, uint32_t group, uint32_t *ret_group,
			    uint64_t *ret_call)
{
	for (uint32_t i = 0; i < r->ledger.n_pages && i < r->ledger.match->n_groups; i++) {
		const struct page *p = &r->ledger.pages[i];
		struct standstill other;

		if (i == group)
			continue;
		for (uint32_t k = 0; k < p->n_seats; k++) {
			const struct seat *s = &p->seats[k];

			if (!s->seen || s->proc != proc || s->n_entered <= s->n_left ||
			    !waits_in(r, i, &other) || s->n_entered <= other.call)
				continue;
			*ret_group = i;
			*ret_call = other.call;
			return true;
		}
	}
	return false;
}

/* Nobody who is absent has an excuse: this is where it began. */
static bool is_root(const struct rules *r, struct standstill *s)
{
	uint32_t n = s->n_absent < RULES_MAX_RANKS ? s->n_absent : RULES_MAX_RANKS, n_excused = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t group;
		uint64_t call;

		if (s->absent[i] == UINT32_MAX ||
		    !waits_elsewhere(r, s->absent[i], s->group, &group, &call))
			continue;
		if (n_excused++ == 0) {
			s->other_group = group;
			s->other_call = call;
		}
	}
	s->circle = n_excused == n;
	return n_excused < n;
}

bool standstill_find(struct rules *r, struct standstill *ret)
{
	struct standstill circle, s;
	bool any = false, any_circle = false;

	for (uint32_t i = 0; i < r->ledger.n_pages && i < r->ledger.match->n_groups; i++) {
		if (!waits_in(r, i, &s) || s.waited_ns < STANDSTILL_LEAST_NS)
			continue;
		if (is_root(r, &s)) {
			if (!any || s.line->at_ns < ret->line->at_ns)
				*ret = s;
			any = true;
		} else if (!any_circle || s.line->at_ns < circle.line->at_ns) {
			circle = s;
			any_circle = true;
		}
	}
	if (!any && any_circle)
		*ret = circle;
	return any || any_circle;
}

bool standstill_inside(struct rules *r, struct standstill *ret)
{
	bool any = false;

	for (uint32_t i = 0; i < r->ledger.n_pages && i < r->ledger.match->n_groups; i++) {
		const struct group *g = &r->ledger.match->groups[i];
		const struct page *p = &r->ledger.pages[i];
		struct standstill s = { .group = i };
		uint64_t call = 0, left = 0;

		if (!p->any || p->told || !is_known(r, g) || !of_this_life(r, p) ||
		    !reach(p, g, &call) || call == 0)
			continue;
		s.call = call - 1;
		s.line = ledger_line(p, s.call);
		for (uint32_t k = 0; k < p->n_seats; k++)
			if (p->seats[k].seen && p->seats[k].n_left > left)
				left = p->seats[k].n_left;
		if (!s.line || s.line->n_entered < g->n_expected || left > s.call)
			continue;
		for (uint32_t k = 0; k < g->n_members; k++)
			add_member(r, &s, p, k);
		s.waited_ns = r->now_ns - p->news_now_ns;
		if (!any || s.line->at_ns < ret->line->at_ns)
			*ret = s;
		any = true;
	}
	return any;
}

int64_t standstill_limit_ns(const struct rules *r)
{
	int64_t least = 0;

	for (size_t i = 0; i < r->side.n; i++) {
		const struct side_record *v = &r->side.v[i];
		int64_t ms = v->kind == SIDE_BACKEND ? side_number(v, "timeout_ms", 0) : 0;

		if (ms > 0 && ms < INT64_MAX / 1000000 && (least == 0 || ms * 1000000 < least) &&
		    r->ledger.roster->procs[v->proc].life == r->life)
			least = ms * 1000000;
	}
	return least;
}

void standstill_finding(const struct rules *r, const struct standstill *s, struct finding *ret,
			bool (*is)(const struct rules *r, uint32_t proc))
{
	const struct group *g = &r->ledger.match->groups[s->group];
	uint32_t n = s->n_absent < RULES_MAX_RANKS ? s->n_absent : RULES_MAX_RANKS;

	*ret = (struct finding){ .severity = SEVERITY_STUCK, .group = g->name, .has_call = true,
				 .call = s->call, .step = s->line->step, .onset_ns = s->line->at_ns };
	for (uint32_t i = 0; i < n; i++)
		if (s->absent[i] != UINT32_MAX && (!is || is(r, s->absent[i])))
			finding_rank(ret, r->ledger.roster->procs[s->absent[i]].rank);
}
