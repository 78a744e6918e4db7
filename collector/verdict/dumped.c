/* dumped.c - stuck.localised_cause_unknown and deadlock.*, by dumps of a job that stands.
 *
 * What it says: the ranks that others wait for and that wait for nobody themselves, the call in which
 * most of them are missed, and whose dumps are not there. Not why: a dump has no heart beat, no clock
 * that compares, no program.
 *
 * How it decides: a rank waits for another where it is in a call, or in one end of a message, that the
 * other has not entered. Whoever is waited for and waits himself is a consequence. A rank that may
 * wait for one without a dump is not named, however far it is behind; where nobody is left to
 * name, the missing dump is said and nobody blamed. Where all wait and no dump is missing, they wait in
 * a circle. Where fewer are in the call than miss it, they may have called once too often: nobody is
 * named.
 *
 * Everybody inside a call is no finding: a job that works looks like that.
 *
 * Neighbours: mismatch.* (all have called, for different things: looked for first), absent.* (the
 * reason is known).
 */
#include "dumped.h"
#include "rules.h"
#include "words.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rank_state {
	bool heard, waits, may_wait, awaited;
	bool by_message; /* its wait below is in a message */
	int32_t whom;	 /* one that it waits for; -1 */
	bool in_circle;
};

struct look {
	const struct dumped *d;
	struct rank_state *v;
	uint32_t n; /* ranks */
	uint32_t n_named, n_waiting, n_unheard; /* unheard: ranks without a dump that may be waited for */
};

static const struct dumped_seat *seats_of(const struct look *l, const struct dumped_line *line)
{
	return &l->d->seats[line->first_seat];
}

static int64_t last_pending(const struct dumped_seat *s, uint32_t n)
{
	int64_t last = -1;

	for (uint32_t i = 0; i < n; i++)
		last = s[i].pending > last ? s[i].pending : last;
	return last;
}

/* Who is furthest behind, with a dump or without; NULL = nobody. */
static const struct dumped_seat *hindmost(const struct dumped_seat *s, uint32_t n, bool heard)
{
	const struct dumped_seat *found = NULL;

	for (uint32_t i = 0; i < n; i++)
		if (s[i].heard == heard && (!found || s[i].entered < found->entered))
			found = &s[i];
	return found;
}

static void note_line(struct look *l, const struct dumped_line *line)
{
	const struct dumped_seat *s = seats_of(l, line);
	const struct dumped_seat *heard = hindmost(s, line->n_seats, true), *unheard = hindmost(s, line->n_seats, false);
	int64_t last = last_pending(s, line->n_seats);

	for (uint32_t i = 0; i < line->n_seats; i++) {
		struct rank_state *me = &l->v[s[i].rank];

		me->awaited |= s[i].entered < last;
		if (s[i].pending < 0)
			continue;
		if (heard && heard->entered < s[i].pending) {
			me->waits = true;
			if (me->whom < 0) {
				me->whom = heard->rank;
				me->by_message = line->message;
			}
		}
		me->may_wait |= unheard && unheard->entered < s[i].pending;
	}
}

static uint32_t n_ranks_of(const struct dumped *d)
{
	int32_t last = -1;

	for (uint32_t i = 0; i < d->n_seats; i++)
		last = d->seats[i].rank > last ? d->seats[i].rank : last;
	return (uint32_t)(last + 1);
}

static bool is_named(const struct look *l, int32_t rank)
{
	const struct rank_state *v = &l->v[rank];

	return v->heard && v->awaited && !v->waits && !v->may_wait;
}

static bool look_at(struct look *l, const struct dumped *d)
{
	*l = (struct look){ .d = d, .n = n_ranks_of(d) };
	l->v = calloc((size_t)l->n + 1, sizeof *l->v);
	if (!l->v)
		return false;
	for (uint32_t i = 0; i < l->n; i++)
		l->v[i].whom = -1;
	for (uint32_t i = 0; i < d->n_seats; i++)
		l->v[d->seats[i].rank].heard |= d->seats[i].heard;
	for (uint32_t i = 0; i < d->n_lines; i++)
		note_line(l, &d->lines[i]);
	for (uint32_t i = 0; i < l->n; i++) {
		l->n_named += is_named(l, (int32_t)i);
		l->n_waiting += l->v[i].waits;
		l->n_unheard += !l->v[i].heard && l->v[i].awaited;
	}
	return true;
}

/* ---- in words ---- */

/* "Of rank 3 there is no dump." */
static void words_missing(const struct dumped *d, char *out, size_t n_out)
{
	char who[160];

	out[0] = '\0';
	if (d->n_missing == 0)
		return;
	words_ranks(d->missing, d->n_missing, who, sizeof who);
	who[0] = 'r';
	snprintf(out, n_out, " Of %s there is no dump.", who);
}

static const char *evidence(const struct look *l, const struct dumped_line *line, char *out, size_t n_out)
{
	size_t at = (size_t)snprintf(out, n_out, "[{\"view\":\"flight_group\",\"comm_id\":\"%.40s\"},{\"dumps\":%u,"
						 "\"missing_dumps\":[", line ? line->group : "", l->d->n_dumps);

	for (uint32_t i = 0; i < l->d->n_missing && at + 60 < n_out; i++)
		at += (size_t)snprintf(out + at, n_out - at, "%s%d", i ? "," : "", l->d->missing[i]);
	snprintf(out + at, n_out - at, "]}]");
	return out;
}

static void words_line(const struct dumped_line *line, char *out, size_t n_out)
{
	snprintf(out, n_out, "%s %" PRId64 " of group %.60s%s%.60s%s", line->op, line->call, line->group,
		 line->what[0] ? " (" : "", line->what, line->what[0] ? ")" : "");
}

/* How many that are named miss this line's call, how many are in it. */
static uint32_t count(const struct look *l, const struct dumped_line *line, uint32_t *ret_present)
{
	const struct dumped_seat *s = seats_of(l, line);
	int64_t last = last_pending(s, line->n_seats);
	uint32_t n = 0;

	*ret_present = 0;
	for (uint32_t i = 0; i < line->n_seats; i++) {
		n += s[i].entered < last && is_named(l, s[i].rank);
		*ret_present += s[i].pending >= 0 && s[i].entered >= line->call;
	}
	return n;
}

/* Where most of those who are named are missed; of several collectives first, then the earliest. */
static const struct dumped_line *choose(const struct look *l, uint32_t *ret_absent, uint32_t *ret_present)
{
	const struct dumped_line *best = NULL;

	*ret_absent = *ret_present = 0;
	for (uint32_t i = 0; i < l->d->n_lines; i++) {
		const struct dumped_line *v = &l->d->lines[i];
		uint32_t n_present, n = count(l, v, &n_present);

		if (n == 0 || n < *ret_absent)
			continue;
		if (best && n == *ret_absent &&
		    (v->message > best->message || (v->message == best->message && v->at_ns >= best->at_ns)))
			continue;
		best = v;
		*ret_absent = n;
		*ret_present = n_present;
	}
	return best;
}

static struct finding finding_at(const struct dumped_line *line)
{
	return (struct finding){ .class_name = "stuck.localised_cause_unknown", .key = "standstill",
				 .severity = SEVERITY_STUCK, .confidence = CONFIDENCE_LIKELY,
				 .group = line->group, .has_call = line->call >= 0, .call = (uint64_t)line->call,
				 .step = EVENT_STEP_UNKNOWN, .onset_ns = line->at_ns > 0 ? line->at_ns : FACT_NONE };
}

/* ---- findings ---- */

static int tell_absent(struct rules *r, const struct look *l)
{
	char who[160], where[240], missing[220], sentence[1100], shown[900], detail[300];
	uint32_t n_absent, n_present;
	const struct dumped_line *line = choose(l, &n_absent, &n_present);
	struct finding f = finding_at(line);

	for (uint32_t i = 0; i < l->n; i++)
		if (is_named(l, (int32_t)i))
			finding_rank(&f, (int32_t)i);
	words_ranks(f.ranks, f.n_ranks, who, sizeof who);
	words_line(line, where, sizeof where);
	words_missing(l->d, missing, sizeof missing);
	snprintf(detail, sizeof detail, "%s; the dumps show no call of another rank that they wait in", where);
	if (n_present < n_absent) {
		snprintf(sentence, sizeof sentence,
			 "Only %u of %u ranks are in %s; the others have entered no such call and wait for nothing. Either it "
			 "was called once too often, or the others hang outside of their calls: see their stacks.%s",
			 n_present, line->n_seats, where, missing);
		f.n_ranks = 0;
		f.confidence = CONFIDENCE_TOO_CLOSE;
	} else
		snprintf(sentence, sizeof sentence,
			 "%s %s not entered %s, in which %u other%s%s, and wait%s for nobody in the dumps. Look at what "
			 "%s doing there: flight_entry has the last calls and their stacks.%s", who,
			 f.n_ranks > 1 ? "have" : "has", where, n_present, n_present == 1 ? " waits" : "s wait",
			 n_absent < f.n_ranks ? " for some of them" : "", f.n_ranks > 1 ? "" : "s",
			 f.n_ranks > 1 ? "they are" : "it is", missing);
	f.detail = detail;
	f.sentence = sentence;
	f.evidence_json = evidence(l, line, shown, sizeof shown);
	f.rules_out_json = "[\"mismatch.op: what is known of the calls agrees\","
			   "\"timeout.peer_busy: a dump does not show whether it came later\"]";
	return rules_tell(r, &f);
}

/* Somebody waits, and whoever could be the reason has no dump. */
static int tell_unheard(struct rules *r, const struct look *l)
{
	const struct dumped_line *line = NULL;
	char where[240], missing[220], sentence[800], shown[900];
	struct finding f;

	for (uint32_t i = 0; i < l->d->n_lines; i++) {
		const struct dumped_line *v = &l->d->lines[i];
		const struct dumped_seat *s = seats_of(l, v), *un = hindmost(s, v->n_seats, false);

		if (un && un->entered < last_pending(s, v->n_seats) &&
		    (!line || (v->message <= line->message && v->at_ns < line->at_ns)))
			line = v;
	}
	if (!line)
		return 0;
	f = finding_at(line);
	words_line(line, where, sizeof where);
	words_missing(l->d, missing, sizeof missing);
	snprintf(sentence, sizeof sentence,
		 "Ranks are in %s, and no dump shows who has not entered it.%s Whether it hangs there cannot be said: get "
		 "that dump, or look at that process.", where, missing);
	f.severity = SEVERITY_NOTICE;
	f.confidence = CONFIDENCE_INSUFFICIENT;
	f.detail = "a dump is missing";
	f.sentence = sentence;
	f.evidence_json = evidence(l, line, shown, sizeof shown);
	return rules_tell(r, &f);
}

static int tell_circle(struct rules *r, const struct look *l)
{
	struct finding f = { .class_name = "deadlock.p2p_order", .severity = SEVERITY_STUCK,
			     .confidence = CONFIDENCE_LIKELY, .step = EVENT_STEP_UNKNOWN, .onset_ns = FACT_NONE };
	char who[160], missing[220], sentence[700], shown[900], detail[120];
	int32_t at = -1;

	for (uint32_t i = 0; i < l->n && at < 0; i++)
		at = l->v[i].waits ? (int32_t)i : -1;
	for (uint32_t i = 0; i < l->n && at >= 0; i++)
		at = l->v[at].whom;
	if (at < 0)
		return 0;
	snprintf(detail, sizeof detail, "rank %d waits for rank %d, rank %d for rank %d", at, l->v[at].whom,
		 l->v[at].whom, l->v[l->v[at].whom].whom);
	for (; !l->v[at].in_circle; at = l->v[at].whom) {
		l->v[at].in_circle = true;
		finding_rank(&f, at);
		if (!l->v[at].by_message)
			f.class_name = "deadlock.group_order";
	}
	words_ranks(f.ranks, f.n_ranks, who, sizeof who);
	words_missing(l->d, missing, sizeof missing);
	snprintf(sentence, sizeof sentence,
		 "%s wait for each other: %s. Each is in a call that the next has not entered. Let all ranks make their "
		 "calls in one order, or issue sends and receives together.%s", who, detail, missing);
	f.detail = detail;
	f.sentence = sentence;
	f.evidence_json = evidence(l, NULL, shown, sizeof shown);
	f.rules_out_json = "[\"absent.crashed: all of them are in a call\"]";
	return rules_tell(r, &f);
}

bool dumped_over(const struct dumped *d, const char *group, uint64_t call)
{
	for (uint32_t i = 0; d && i < d->n_lines; i++)
		if (!d->lines[i].message && strcmp(d->lines[i].group, group) == 0)
			return d->lines[i].over >= 0 && (uint64_t)d->lines[i].over >= call;
	return false;
}

int dumped_look(struct rules *r)
{
	struct look l;
	int e = 0;

	if (!r->dumped || !r->finishing || r->held || r->dumped->n_lines == 0)
		return 0;
	if (!look_at(&l, r->dumped))
		return -ENOMEM;
	if (l.n_named > 0)
		e = tell_absent(r, &l);
	else if (l.n_unheard > 0)
		e = tell_unheard(r, &l);
	else if (l.n_waiting > 0)
		e = tell_circle(r, &l);
	free(l.v);
	return e;
}
