/* mismatch.c - mismatch.*: members of a group ask for different things in one call.
 *
 * What it says: the group, the number of the first call that differs, and the
 * ranks that differ from the others: the smaller camp. Of two equal camps it is
 * the one that left the pattern which the group's calls kept before; where there
 * is no such pattern both are described and nobody is named.
 *
 * How it decides: only by numbers of calls, no clock enters. The two camps' calls
 * from the first difference on are laid beside each other, as far as their hosts
 * submitted them:
 *   order       the same calls, swapped within a few; they must be told apart by
 *               what is known of all of them
 *   extra_call  one camp's calls are the other's behind one more, and it is one
 *               call ahead
 *   (skipped)   the other way round: absent.decision_differs
 *   op, dtype, size, root, name   the first of these that differs at that number
 * Sizes that may differ honestly (objects, scatter, all-to-all) do not count, nor
 * does an all-gather of unequal parts that ends everywhere.
 * size_from_skipped_module: as size, and since the group's last call like the one
 * that was due, a piece of work ran on every rank of the larger camp that the
 * others launched before and now left out.
 *
 * Neighbours: slow.* and net.* (members wait, but they have all asked);
 * absent.* (a member has not asked at all); net.transport_corruption (here the
 * application's own calls disagree); mismatch.data_dependent_modules (earlier
 * calls agreed by size only: data_dependent.c looks first).
 */
#include "habit.h"
#include "mismatch.h"
#include "trail.h"
#include "words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SETTLED_NS INT64_C(2000000000) /* nothing new from the group */
#define PATIENCE_NS INT64_C(20000000000) /* for members whose call is not known yet */

/* ---- camps ---- */

struct camp {
	struct shape shape;
	uint32_t n, seat;
};

/* Which camp does this shape belong to? All full: the last. */
static struct camp *camp_of(struct camp *v, uint32_t *n, uint32_t max, const struct shape *s)
{
	for (uint32_t i = 0; i < *n; i++)
		if (ledger_same(&v[i].shape, s)) {
			if (!v[i].shape.sized)
				v[i].shape = *s;
			return &v[i];
		}
	if (*n == max)
		return &v[max - 1];
	v[*n] = (struct camp){ .shape = *s };
	return &v[(*n)++];
}

static void divide(struct rules *r, uint32_t group, uint64_t call, struct camps *ret)
{
	const struct page *p = &r->ledger.pages[group];
	const struct group *g = &r->ledger.match->groups[group];
	struct camp v[8];
	uint32_t n = 0, best = 0, next = 0;

	*ret = (struct camps){ .page = p, .call = call };
	for (uint32_t pass = 0; pass < 2; pass++) /* those whose size is known make the camps */
		for (uint32_t i = 0; i < p->n_seats; i++) {
			struct shape s;
			struct camp *c;

			if (!ledger_shape(p, i, call, &s) || s.sized == (pass == 1))
				continue;
			c = camp_of(v, &n, 8, &s);
			if (c->n++ == 0)
				c->seat = i;
		}
	for (uint32_t i = 0; i < n; i++) {
		ret->n_major += v[i].n;
		if (v[i].n > v[best].n)
			best = i;
	}
	ret->n_unknown = g->n_expected > ret->n_major ? g->n_expected - ret->n_major : 0;
	ret->n_camps = n;
	if (n < 2)
		return;
	next = best == 0;
	for (uint32_t i = 0; i < n; i++)
		if (i != best && v[i].n > v[next].n)
			next = i;
	ret->n_minor = ret->n_major - v[best].n;
	ret->n_major = v[best].n;
	ret->equal = v[next].n == v[best].n;
	ret->major = v[best].shape;
	ret->minor = v[next].shape;
	ret->major_seat = v[best].seat;
	ret->minor_seat = v[next].seat;
}

/* ---- habits ---- */

static uint64_t asked_behind(const struct camps *c, uint32_t seat);

/* Do this camp's next calls, two at least, do again what was done a period before? */
static bool goes_on(const struct camps *c, uint32_t seat, uint64_t period)
{
	uint64_t n = asked_behind(c, seat);

	n = n < period ? n : period;
	for (uint64_t i = 0; i < n; i++) {
		const struct line *v = ledger_line(c->page, c->call - period + i);
		struct shape s;

		if (!v || v->n_odd || !ledger_shape(c->page, seat, c->call + i, &s) ||
		    !ledger_same(&v->shape, &s))
			return false;
	}
	return n >= 2;
}

/* Which of two equal camps keeps the group's pattern? A past too short to show one
 * may still be what only one of them repeats. */
static bool who_keeps(const struct camps *c, bool *ret_major)
{
	struct shape want;

	if (habit_expects(c->page, c->call, c->call, &want)) {
		*ret_major = ledger_same(&want, &c->major);
		return *ret_major != ledger_same(&want, &c->minor);
	}
	for (uint64_t k = 2; k <= HABIT_MAX_PERIOD && k <= c->call - c->page->first; k++) {
		*ret_major = goes_on(c, c->major_seat, k);
		if (*ret_major != goes_on(c, c->minor_seat, k))
			return true;
		if (*ret_major)
			return false; /* both do */
	}
	return false;
}

static void by_habit(struct camps *c)
{
	struct shape s = c->major;
	uint32_t seat = c->major_seat;
	bool major;

	if (!c->equal || c->n_camps != 2 || !who_keeps(c, &major))
		return;
	c->by_habit = true;
	if (major)
		return;
	c->major = c->minor;
	c->minor = s;
	c->major_seat = c->minor_seat;
	c->minor_seat = seat;
}

/* ---- what kind ---- */

static uint64_t asked_behind(const struct camps *c, uint32_t seat)
{
	const struct seat *s = &c->page->seats[seat];
	uint64_t n = s->n_submitted > s->n_entered ? s->n_submitted : s->n_entered;

	return n > c->call ? n - c->call : 0;
}

/* Are n calls of a from `a_skip` behind the difference those of b from `b_skip` on? */
static bool runs_agree(const struct camps *c, uint32_t a, uint64_t a_skip, uint32_t b,
		       uint64_t b_skip, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		struct shape x, y;

		if (!ledger_shape(c->page, a, c->call + a_skip + i, &x) ||
		    !ledger_shape(c->page, b, c->call + b_skip + i, &y) || !ledger_same(&x, &y))
			return false;
	}
	return true;
}

/* The same calls within the next few, in another order, each known from the others. */
static bool is_order(const struct camps *c)
{
	uint64_t n_a = asked_behind(c, c->minor_seat), n_b = asked_behind(c, c->major_seat);

	for (uint64_t n = 2; n <= MISMATCH_MAX_SWAP && n <= n_a && n <= n_b; n++) {
		bool used[MISMATCH_MAX_SWAP] = { false }, fits = true;

		for (uint64_t i = 0; i < n && fits; i++) {
			struct shape x, y, z;

			fits = ledger_shape(c->page, c->minor_seat, c->call + i, &x);
			for (uint64_t k = 0; k < i && fits; k++)
				fits = ledger_shape(c->page, c->minor_seat, c->call + k, &z) &&
				       !ledger_same(&x, &z);
			if (!fits)
				break;
			fits = false;
			for (uint64_t k = 0; k < n && !fits; k++)
				if (!used[k] &&
				    ledger_shape(c->page, c->major_seat, c->call + k, &y) &&
				    ledger_same(&x, &y))
					fits = used[k] = true;
		}
		if (fits)
			return true;
	}
	return false;
}

/* `ahead` has one call more than `other`, which is otherwise the same run. */
static bool is_one_more(const struct camps *c, uint32_t ahead, uint32_t other)
{
	uint64_t n_a = asked_behind(c, ahead), n_b = asked_behind(c, other);

	return n_b > 0 && n_a == n_b + 1 &&
	       runs_agree(c, ahead, 1, other, 0, n_b < MISMATCH_MAX_SWAP ? n_b : MISMATCH_MAX_SWAP);
}

/* It did again what it had just done, where the pattern has something else. */
static bool is_repeat(const struct camps *c)
{
	const struct line *before = c->call > 0 ? ledger_line(c->page, c->call - 1) : NULL;
	struct shape want;

	return before && c->by_habit == c->equal && ledger_same(&before->shape, &c->minor) &&
	       !ledger_same(&before->shape, &c->major) &&
	       habit_expects(c->page, c->call, c->call, &want) && ledger_same(&want, &c->major);
}

/* Sizes of calls that never began are not known. But both camps asked for as many, and
 * what the smaller one asks for now is what the pattern has a few calls further on. */
static bool is_order_by_habit(const struct camps *c)
{
	uint64_t n = asked_behind(c, c->minor_seat);
	struct shape next;

	if (!c->minor.sized || !c->major.sized || c->minor.bytes == c->major.bytes ||
	    n != asked_behind(c, c->major_seat) || !habit_expects(c->page, c->call, c->call, &next) ||
	    !ledger_same(&next, &c->major))
		return false;
	for (uint64_t k = 1; k < MISMATCH_MAX_SWAP && k < n; k++)
		if (habit_expects(c->page, c->call, c->call + k, &next) && next.sized &&
		    ledger_same(&next, &c->minor))
			return true;
	return false;
}

/* With one call known of each, or by their sizes alone, a swap or a call left out looks
 * like a difference: not so where the pattern knows no such call further on. */
static bool may_be_order(const struct camps *c)
{
	struct shape next;

	if (asked_behind(c, c->minor_seat) > 1 && asked_behind(c, c->major_seat) > 1 &&
	    (c->minor.op != c->major.op || c->minor.dtype != c->major.dtype))
		return false;
	for (uint64_t k = 1; k <= MISMATCH_MAX_SWAP; k++)
		if (!habit_expects(c->page, c->call, c->call + k, &next) || ledger_same(&next, &c->minor))
			return true;
	return false;
}

const char *mismatch_kind(const struct camps *c, enum fact_confidence *sure)
{
	const struct shape *a = &c->minor, *b = &c->major;

	*sure = c->equal && !c->by_habit ? CONFIDENCE_LIKELY : CONFIDENCE_CERTAIN;
	if (is_order(c)) {
		*sure = CONFIDENCE_CERTAIN;
		return "mismatch.order";
	}
	if (is_one_more(c, c->minor_seat, c->major_seat))
		return "mismatch.extra_call";
	if (is_one_more(c, c->major_seat, c->minor_seat)) {
		if (!c->equal || c->by_habit)
			return "absent.decision_differs";
		return "mismatch.extra_call"; /* one made it, or the other left it out */
	}
	if (is_repeat(c)) {
		*sure = CONFIDENCE_LIKELY;
		return "mismatch.extra_call";
	}
	if (is_order_by_habit(c)) {
		*sure = CONFIDENCE_LIKELY;
		return "mismatch.order";
	}
	if (may_be_order(c))
		*sure = CONFIDENCE_LIKELY;
	if (a->op != b->op)
		return "mismatch.op";
	if (a->dtype != b->dtype)
		return "mismatch.dtype";
	if (a->sized && b->sized && a->bytes != b->bytes)
		return "mismatch.size";
	return a->root != b->root && a->root >= 0 && b->root >= 0 ? "mismatch.root"
								    : "mismatch.name";
}

/* ---- a module that did not run ---- */

/* The work that the smaller camp left out, or 0. */
uint32_t mismatch_skipped(const struct rules *r, uint32_t group, const struct camps *c)
{
	const struct ledger_proc *a = ledger_proc(&r->ledger, c->page->seats[c->minor_seat].proc);
	const struct ledger_proc *b = ledger_proc(&r->ledger, c->page->seats[c->major_seat].proc);
	uint64_t from = c->call;

	while (from > c->page->first) {
		const struct line *v = ledger_line(c->page, --from);

		if (!v)
			return 0;
		if (ledger_same(&v->shape, &c->major))
			break;
	}
	if (!a || !b || from == c->call || (c->equal && !c->by_habit))
		return 0;
	return trail_left_out(a, b, group, from, c->call);
}

static bool may_look(const struct rules *r, const struct page *p)
{
	return p->first_odd != UINT64_MAX && !p->told &&
	       (r->finishing || r->now_ns - p->news_now_ns >= SETTLED_NS ||
		p->next > p->first_odd + MISMATCH_MAX_SWAP);
}

int mismatch_look(struct rules *r)
{
	const struct match *m = r->ledger.match;
	uint32_t first = UINT32_MAX;
	struct camps c, best;

	if (r->held)
		return 0;
	for (uint32_t i = 0; i < r->ledger.n_pages && i < m->n_groups; i++) {
		struct page *p = &r->ledger.pages[i];
		const struct line *v = may_look(r, p) ? ledger_line(p, p->first_odd) : NULL;

		if (!v)
			continue;
		divide(r, i, p->first_odd, &c);
		if (c.n_camps < 2 || (c.n_unknown > 0 && !r->finishing &&
				      r->now_ns - p->news_now_ns < PATIENCE_NS))
			continue;
		/* Unequal parts of an all-gather are no fault when it ends. */
		if (v->n_left >= m->groups[i].n_expected && v->shape.op == OP_ALL_GATHER &&
		    c.minor.op == c.major.op && c.minor.dtype == c.major.dtype) {
			p->first_odd = UINT64_MAX;
			p->n_odds = 0;
			continue;
		}
		if (c.n_unknown >= c.n_major && c.n_unknown > 0)
			continue; /* who is silent could make the larger camp */
		if (first != UINT32_MAX &&
		    ledger_line(best.page, best.call)->at_ns <= v->at_ns)
			continue;
		first = i;
		best = c;
	}
	if (first == UINT32_MAX)
		return 0;
	by_habit(&best);
	r->ledger.pages[first].told = true;
	return mismatch_tell(r, first, &best);
}
