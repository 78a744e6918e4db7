/* clock_stamps.c - clock.offset, clock.offset_and_launch_skew and clock.step where nothing
 * ties the clocks.
 *
 * What it says: whose stamps are how far from the others', how fast that changes if
 * it can be known, and how late the ranks really were once it is taken off; or that
 * a clock was set, by how much, between which calls.
 *
 * How it decides: only hosts that no probe has ever tied are judged, and only their
 * wall clock's word is: epochs that count from a boot are arbitrary and mean nothing.
 * The exits of the calls that hosts make together say how far their stamps are apart
 * (soft), the order of entries and exits bounds it (hard). The right time is that of
 * the most ranks, of two equal camps that of the collector's own clock, else nobody's.
 * Told is what is a millisecond or more; certain where the hard bounds leave no other
 * reading. A late start is one by which the first call waits three times as long as calls
 * are apart, at least twenty milliseconds, and much longer than later ones do.
 *
 * It costs the job nothing. So it is said above a notice only where nothing else is:
 * readers of the raw stamps would call somebody slow who is not.
 *
 * Neighbours: slow.fixed_rank (is late in the corrected times too, in every step),
 * clock_offset.c (wall clocks of hosts that probes tie), clock.contradiction (one
 * communicator that is matched wrongly).
 */
#include "rules.h"
#include "words.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_NS INT64_C(1000000)
#define LEAST_LATE_NS INT64_C(20000000)
#define LATE_PERIODS 3
#define WAIT_NS INT64_C(10000000000) /* for a first probe */
#define MAX_DEPTH 64
#define SURE 5 /* soft errors that an offset is larger than */

struct side_of { /* a host */
	uint32_t host, weight; /* weight: ranks */
	int64_t ahead_ns, soft_ns, lo_ns, hi_ns, at_ns;
	double drift, drift_sd;
	bool drift_known;
};

struct view {
	struct rules *r;
	const struct ties *ties;
	struct tie_judged *pairs;
	struct side_of *v; /* by offset */
	uint32_t n;
	struct side_of base;
	bool base_known; /* else nobody can say whose clock is right */
	uint32_t from, behind; /* the camp that is right: v[from..behind) */
};

void clock_stamps_fini(struct clock_stamps *s)
{
	free(s->first);
}

int clock_stamps_call(struct clock_stamps *s, const struct match *m, uint32_t group,
		      const struct coll *c)
{
	uint32_t n = m->groups[group].n_members;
	bool loose = false, several = false;

	if (s->first || m->roster->n_hosts < 2 || !m->ties || !c->arrivals || n < 2 ||
	    n > c->n_alloc || n > CLOCK_STAMPS_FIRST || c->n_entered < n)
		return 0;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t host = m->roster->procs[c->arrivals[i].proc].host;

		several |= host != m->roster->procs[c->arrivals[0].proc].host;
		loose |= ties_is_loose(m->ties, host);
	}
	if (!loose || !several)
		return 0;
	s->first = calloc(n, sizeof *s->first);
	if (!s->first)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		s->first[i] = (struct clock_first){ m->groups[group].ranks[i],
						    m->roster->procs[c->arrivals[i].proc].host,
						    c->arrivals[i].enter_ns };
	s->n_first = n;
	return 0;
}

/* ---- how all stand to those that are tied ---- */

static bool stand(const struct view *w, uint32_t host, struct side_of *ret)
{
	const struct ties *t = w->ties;
	uint32_t at = host;

	*ret = (struct side_of){ .host = host, .drift_known = true };
	for (unsigned depth = 0; !ties_is_end(t, at) && depth < MAX_DEPTH; depth++) {
		const struct tie_judged *k;
		bool back;

		if (at >= t->n_hosts || t->parents[at] == 0)
			return false;
		k = &w->pairs[t->parents[at] - 1];
		back = t->v[t->parents[at] - 1]->a == at;
		ret->ahead_ns += back ? -k->ahead_ns : k->ahead_ns;
		ret->lo_ns += back ? -k->hi_ns : k->lo_ns;
		ret->hi_ns += back ? -k->lo_ns : k->hi_ns;
		ret->soft_ns += k->soft_ns;
		ret->drift += back ? -k->drift : k->drift;
		ret->drift_sd = hypot(ret->drift_sd, k->drift_sd);
		ret->drift_known &= k->drift_known;
		ret->at_ns = k->at_ns;
		at = back ? t->v[t->parents[at] - 1]->b : t->v[t->parents[at] - 1]->a;
	}
	return ties_is_end(t, at);
}

static uint32_t n_ranks_of(const struct view *w, uint32_t host)
{
	const struct roster *roster = w->ties->roster;
	uint32_t n = 0;

	for (uint32_t i = 0; i < roster->n_procs; i++)
		n += roster->procs[i].host == host && roster->procs[i].rank >= 0 &&
		     roster->procs[i].life == w->r->life;
	return n;
}

static int by_offset(const void *a, const void *b)
{
	const struct side_of *x = a, *y = b;

	return (x->ahead_ns > y->ahead_ns) - (x->ahead_ns < y->ahead_ns);
}

static bool holds_anchor(const struct view *w, uint32_t from, uint32_t behind)
{
	for (uint32_t i = from; i < behind; i++)
		if (!ties_is_loose(w->ties, w->v[i].host))
			return true;
	return false;
}

/* The largest camp within a millisecond; of equal ones that of a clock that is tied. */
static void find_base(struct view *w)
{
	uint32_t best = 0, weight = 0, behind = 0;
	bool anchored = false;

	for (uint32_t i = 0; i < w->n; i++) {
		uint32_t k = i > 0 && behind > i ? behind : i;
		bool has;

		if (k == i)
			weight = 0;
		for (; k < w->n && w->v[k].ahead_ns - w->v[i].ahead_ns < LEAST_NS; k++)
			weight += w->v[k].weight;
		behind = k;
		has = holds_anchor(w, i, behind);
		if (weight > best || (weight == best && has && !anchored)) {
			w->base_known = true;
			best = weight;
			anchored = has;
			w->from = i;
			w->behind = behind;
		} else if (weight == best && !anchored && i >= w->behind) {
			w->base_known = false;
		}
		weight -= w->v[i].weight;
	}
	for (uint32_t i = w->from; i < w->behind; i++)
		if (i == w->from || w->v[i].host == w->ties->reference)
			w->base = w->v[i];
}

/* How the stamps of the host stand against the right ones. */
static struct side_of against_base(const struct view *w, const struct side_of *s)
{
	struct side_of v = *s;

	v.ahead_ns -= w->base.ahead_ns;
	v.soft_ns += w->base.soft_ns;
	v.lo_ns -= w->base.hi_ns;
	v.hi_ns -= w->base.lo_ns;
	v.drift -= w->base.drift;
	v.drift_sd = hypot(v.drift_sd, w->base.drift_sd);
	v.drift_known &= w->base.drift_known;
	if (w->base.host != w->ties->reference)
		v.at_ns = w->base.at_ns;
	return v;
}

static bool excludes_none(const struct side_of *s)
{
	return s->lo_ns <= s->hi_ns && (s->lo_ns > 0 || s->hi_ns < 0);
}

static bool is_off(const struct view *w, const struct side_of *s)
{
	struct side_of v = against_base(w, s);

	return llabs(v.ahead_ns) >= LEAST_NS &&
	       (excludes_none(&v) || llabs(v.ahead_ns) > SURE * v.soft_ns);
}

static void add_ranks(const struct view *w, uint32_t host, struct finding *f)
{
	const struct roster *roster = w->ties->roster;

	for (uint32_t i = 0; i < roster->n_procs; i++)
		if (roster->procs[i].host == host && roster->procs[i].rank >= 0 &&
		    roster->procs[i].life == w->r->life)
			finding_rank(f, roster->procs[i].rank);
}

/* ---- who was really late ---- */

struct launch {
	int64_t late_ns, error_ns; /* the latest, after correction */
	int32_t ranks[RULES_MAX_RANKS];
	uint32_t n_ranks;
	bool late;
};

static const struct side_of *side_of_host(const struct view *w, uint32_t host)
{
	for (uint32_t i = 0; i < w->n; i++)
		if (w->v[i].host == host)
			return &w->v[i];
	return NULL;
}

static int by_ns(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static int64_t usual_late_ns(const struct view *w)
{
	int64_t most_ns = 0;

	for (uint32_t i = 0; i < w->ties->n; i++)
		if (w->pairs[i].late_ns > most_ns)
			most_ns = w->pairs[i].late_ns;
	return most_ns;
}

static int64_t period_ns(const struct view *w)
{
	int64_t least_ns = INT64_MAX;

	for (uint32_t i = 0; i < w->ties->n; i++) {
		const struct tie_pair *p = w->ties->v[i];

		if (p->n > 2) /* the first ones may be set-up */
			least_ns = (p->v[p->n - 1].at_ns - p->v[1].at_ns) /
				   ((int64_t)(p->n - 2) * (int64_t)p->every);
	}
	return least_ns == INT64_MAX ? 0 : least_ns;
}

static int find_launch(const struct view *w, struct launch *ret)
{
	const struct clock_stamps *s = &w->r->stamps;
	int64_t *at_ns = calloc(2 * (size_t)s->n_first + 1, sizeof *at_ns);
	int64_t *sorted_ns = at_ns + s->n_first, least_ns = LEAST_LATE_NS;

	*ret = (struct launch){ 0 };
	if (!at_ns)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->n_first; i++) {
		const struct clock_first *f = &s->first[i];
		const struct side_of *v = side_of_host(w, f->host);

		if (!v) {
			free(at_ns);
			return 0;
		}
		at_ns[i] = f->enter_ns + w->ties->roster->hosts[f->host].clock.offset_ns - v->ahead_ns;
		at_ns[i] -= (int64_t)(v->drift * (double)(at_ns[i] - v->at_ns));
		sorted_ns[i] = at_ns[i];
		ret->error_ns = v->soft_ns > ret->error_ns ? v->soft_ns : ret->error_ns;
	}
	if (s->n_first < 2) {
		free(at_ns);
		return 0;
	}
	qsort(sorted_ns, s->n_first, sizeof *sorted_ns, by_ns);
	ret->late_ns = sorted_ns[s->n_first - 1] - sorted_ns[(s->n_first - 1) / 2];
	if (LATE_PERIODS * period_ns(w) > least_ns)
		least_ns = LATE_PERIODS * period_ns(w);
	if (5 * usual_late_ns(w) > least_ns)
		least_ns = 5 * usual_late_ns(w);
	ret->late = ret->late_ns >= least_ns && ret->late_ns > 3 * ret->error_ns;
	for (uint32_t i = 0; i < s->n_first && ret->late; i++)
		if (at_ns[i] - sorted_ns[(s->n_first - 1) / 2] >= least_ns &&
		    ret->n_ranks < RULES_MAX_RANKS)
			ret->ranks[ret->n_ranks++] = s->first[i].rank;
	free(at_ns);
	return 0;
}

/* ---- telling ---- */

static int tell(struct rules *r, struct finding *f)
{
	struct clock_stamps *s = &r->stamps;
	bool notice = r->n_above > 0;

	if (s->told_life == r->life + 1 && s->told_class == f->class_name &&
	    s->told_notice == notice && s->told_ranks == f->n_ranks && !r->finishing)
		return 0;
	f->key = "clock.stamps";
	f->severity = notice ? SEVERITY_NOTICE : SEVERITY_WRONG;
	f->error_kind = ERROR_KIND_HARD;
	s->told_life = r->life + 1;
	s->told_class = f->class_name;
	s->told_notice = notice;
	s->told_ranks = f->n_ranks;
	r->n_above -= !notice; /* not itself what it gives way to */
	return rules_tell(r, f);
}

static void start_finding(struct finding *f)
{
	*f = (struct finding){ .step = EVENT_STEP_UNKNOWN, .onset_ns = FACT_NONE,
			       .confidence = CONFIDENCE_CERTAIN };
}

/* Three digits are too few where seconds are apart. */
static void put_offset(int64_t ns, char *out, size_t n_out)
{
	if (ns >= INT64_C(1000000000))
		snprintf(out, n_out, "%.4f s", (double)ns / 1e9);
	else
		words_ns(ns, out, n_out);
}

static void put_drift(const struct side_of *v, char *out, size_t n_out)
{
	if (v->drift_known)
		snprintf(out, n_out, "drift %.3g ppm (± %.2g)", v->drift * 1e6, 2.8e6 * v->drift_sd);
	else
		snprintf(out, n_out, "the drift cannot be known from so short a time");
}

static int tell_offset(struct view *w)
{
	struct rules *r = w->r;
	char who[160], by[40], err[32], drift[96], late[32], late_who[180] = "", detail[320];
	char sentence[1000], evidence[300], group[128];
	const struct side_of *most = NULL;
	struct launch launch;
	struct side_of v = { 0 };
	struct finding f;
	uint32_t n_hosts = 0;
	int e = find_launch(w, &launch);

	if (e < 0)
		return e;
	start_finding(&f);
	for (uint32_t i = 0; i < w->n; i++) {
		const struct side_of *s = &w->v[i];
		struct side_of off = against_base(w, s);

		if ((i >= w->from && i < w->behind) || !is_off(w, s))
			continue;
		n_hosts++;
		if (!most || llabs(off.ahead_ns) > llabs(v.ahead_ns)) {
			most = s;
			v = off;
		}
		add_ranks(w, s->host, &f);
	}
	if (!most)
		return 0;
	words_ranks(f.ranks, f.n_ranks, who, sizeof who);
	if (!w->base_known) /* two camps, and nobody knows who is right */
		f.n_ranks = 0;
	if (!excludes_none(&v))
		f.confidence = CONFIDENCE_LIKELY;
	f.class_name = launch.late ? "clock.offset_and_launch_skew" : "clock.offset";
	f.margin_ns = llabs(v.ahead_ns);
	f.error_ns = v.lo_ns <= v.hi_ns ? (v.hi_ns - v.lo_ns) / 2 : v.soft_ns;
	put_offset(f.margin_ns, by, sizeof by);
	words_ns(f.error_ns, err, sizeof err);
	words_ns(launch.late_ns, late, sizeof late);
	put_drift(&v, drift, sizeof drift);
	if (launch.late) {
		char ranks[160];

		words_ranks(launch.ranks, launch.n_ranks, ranks, sizeof ranks);
		ranks[0] = 'r';
		snprintf(late_who, sizeof late_who, "%s came", ranks);
		for (uint32_t i = 0; i < launch.n_ranks && w->base_known; i++)
			finding_rank(&f, launch.ranks[i]);
	}
	snprintf(detail, sizeof detail, "stamps %s%s, %s%s%s", v.ahead_ns < 0 ? "-" : "+", by, drift,
		 launch.late ? "; really late at the first call by " : "", launch.late ? late : "");
	snprintf(sentence, sizeof sentence,
		 "%s: stamps are %s %s those of the others%s (± %s; %s), by the calls that they make "
		 "together; no clock probe ties these clocks. With that taken off, %s to the first call %s "
		 "%s. Correct the stamps before comparing ranks by them, set the clocks of the hosts, or "
		 "let clock probes through.",
		 who, by, v.ahead_ns < 0 ? "behind" : "ahead of",
		 w->base_known ? "" : ", and it cannot be known whose are right", err, drift,
		 launch.late ? late_who : "the last rank came", late,
		 launch.late ? "late: that is real" : "behind the middle one, which is no lateness");
	words_json(w->r->ledger.match->groups[w->ties->v[0]->first.group].name, group, sizeof group);
	snprintf(evidence, sizeof evidence, "[{\"view\":\"collective\",\"group\":\"%s\",\"seq\":%" PRIu64 "}]",
		 group, w->ties->v[0]->first.seq);
	f.host = n_hosts == 1 && w->base_known ? w->ties->roster->hosts[most->host].name : NULL;
	f.detail = detail;
	f.sentence = sentence;
	f.evidence_json = evidence;
	f.rules_out_json = "[\"slow.fixed_rank: the calls end together, so nobody is late by what the stamps say\","
			   "\"clocks that count from different boots: what is compared is wall clocks' time\"]";
	return tell(r, &f);
}

static bool jumped_alike(const struct tie_judged *a, int64_t step_ns)
{
	return a->stepped && llabs(a->step_ns - step_ns) < LEAST_NS + llabs(step_ns) / 10;
}

/* Whose clock was set? If most of a's pairs jumped by the same, a's. Else that of a loose
 * host against one that is tied; of two loose ones nobody knows: UINT32_MAX. */
static uint32_t who_stepped(const struct view *w, uint32_t pair)
{
	const struct tie_pair *p = w->ties->v[pair];
	uint32_t n_alike = 0, n = 0, n_b = 0;

	for (uint32_t i = 0; i < w->ties->n; i++) {
		const struct tie_pair *q = w->ties->v[i];
		int64_t step_ns = w->pairs[pair].step_ns;

		n += q->a == p->a || q->b == p->a;
		n_alike += (q->a == p->a && jumped_alike(&w->pairs[i], step_ns)) ||
			   (q->b == p->a && jumped_alike(&w->pairs[i], -step_ns));
		n_b += i != pair && (q->a == p->b || q->b == p->b) && w->pairs[i].stepped;
	}
	if (n_alike > 1 && 2 * n_alike > n)
		return p->a;
	if (n > 1 || n_b > 0 || !ties_is_loose(w->ties, p->a))
		return p->b;
	return ties_is_loose(w->ties, p->b) ? UINT32_MAX : p->a;
}

static int tell_step(struct view *w, uint32_t pair)
{
	const struct match *m = w->r->ledger.match;
	const struct tie_judged *k = &w->pairs[pair];
	const struct tie_pair *p = w->ties->v[pair];
	uint32_t host = who_stepped(w, pair);
	const char *group = m->groups[k->after.group].name;
	char who[160], by[40], detail[120], sentence[700], evidence[300], quoted[128];
	int64_t step_ns = host == p->a ? -k->step_ns : k->step_ns;
	struct finding f;

	start_finding(&f);
	add_ranks(w, host == UINT32_MAX ? p->b : host, &f);
	if (host == UINT32_MAX)
		add_ranks(w, p->a, &f);
	for (uint32_t i = 0; i < w->ties->n; i++) /* others of that host's moment */
		if (host == p->b && w->pairs[i].stepped && w->ties->v[i]->a == p->a)
			add_ranks(w, w->ties->v[i]->b, &f);
	words_ranks(f.ranks, f.n_ranks, who, sizeof who);
	if (!k->step_certain)
		f.confidence = CONFIDENCE_LIKELY;
	f.class_name = "clock.step";
	put_offset(llabs(step_ns), by, sizeof by);
	snprintf(detail, sizeof detail, "stamps jumped by %s%s", step_ns < 0 ? "-" : "+", by);
	snprintf(sentence, sizeof sentence,
		 "%s: the clock was set %s by %s between calls %" PRIu64 " and %" PRIu64 " of group %.60s: the "
		 "calls before and after it, which end together, say so. Stamps on either side of it "
		 "must not be compared with each other. Let the clock be slewed instead of set, or stamp "
		 "with one that nobody sets.", who, step_ns < 0 ? "back" : "forward", by,
		 k->before.group == k->after.group ? k->before.seq : k->after.seq, k->after.seq, group);
	if (host != UINT32_MAX)
		f.host = w->ties->roster->hosts[host].name;
	f.detail = detail;
	f.margin_ns = llabs(step_ns);
	f.error_ns = (k->before.hi_ns - k->before.lo_ns + k->after.hi_ns - k->after.lo_ns) / 2;
	f.sentence = sentence;
	words_json(group, quoted, sizeof quoted);
	snprintf(evidence, sizeof evidence, "[{\"view\":\"collective\",\"group\":\"%s\",\"seq\":%" PRIu64 "}]",
		 quoted, k->after.seq);
	f.evidence_json = evidence;
	f.rules_out_json = "[\"a rank that became slow: its calls end with the others' before and after\"]";
	return tell(w->r, &f);
}

/* Without a wall clock's word its stamps count from some boot, and mean nothing. */
static bool has_word(const struct view *w, uint32_t host)
{
	return !ties_is_loose(w->ties, host) || w->ties->roster->hosts[host].clock.offset_ns != 0;
}

static int look(struct view *w)
{
	uint32_t stepped = UINT32_MAX;

	for (uint32_t i = 0; i < w->ties->n; i++) {
		const struct tie_pair *p = w->ties->v[i];
		int e = ties_is_loose(w->ties, p->a) || ties_is_loose(w->ties, p->b)
				? tie_judge(p, &w->pairs[i])
				: 0;

		if (e < 0)
			return e;
		if (w->pairs[i].stepped &&
		    (stepped == UINT32_MAX || llabs(w->pairs[i].step_ns) > llabs(w->pairs[stepped].step_ns)))
			stepped = i;
	}
	if (stepped != UINT32_MAX)
		return tell_step(w, stepped);
	for (uint32_t host = 0; host < w->ties->n_hosts; host++)
		if (has_word(w, host) && stand(w, host, &w->v[w->n])) {
			w->v[w->n].weight = n_ranks_of(w, host);
			w->n++;
		}
	if (w->n < 2)
		return 0;
	qsort(w->v, w->n, sizeof *w->v, by_offset);
	find_base(w);
	return tell_offset(w);
}

/* What was told of clocks that probes tie since stands no longer. */
static int take_back(struct rules *r)
{
	struct finding f;

	if (r->stamps.told_life != r->life + 1 || r->stamps.told_notice)
		return 0;
	start_finding(&f);
	f.class_name = r->stamps.told_class;
	f.key = "clock.stamps";
	f.severity = SEVERITY_NOTICE;
	f.sentence = "Clocks whose stamps disagreed are tied by clock probes now: what syncline compares is corrected.";
	r->stamps.told_notice = true;
	return rules_tell(r, &f);
}

int clock_stamps_look(struct rules *r)
{
	const struct ties *t = r->ledger.match->ties;
	struct view w = { .r = r, .ties = t };
	bool loose = false;
	int e = -ENOMEM;

	if (!t || t->n == 0 || (r->now_ns < WAIT_NS && !r->finishing))
		return 0;
	for (uint32_t i = 0; i < t->n_hosts && !loose; i++)
		loose = ties_is_loose(t, i);
	if (!loose)
		return take_back(r);
	w.pairs = calloc(t->n, sizeof *w.pairs);
	w.v = calloc(t->n_hosts, sizeof *w.v);
	if (w.pairs && w.v)
		e = look(&w);
	free(w.pairs);
	free(w.v);
	return e;
}
