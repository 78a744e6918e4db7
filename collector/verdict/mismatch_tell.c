/* mismatch_tell.c - a call that differs, in words: what each camp asks for, why as far as the
 * numbers of the calls say it, and what to do.
 */
#include "mismatch.h"
#include "words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void words_shape(const struct rules *r, const struct shape *s, char *out, size_t n_out)
{
	size_t at = (size_t)snprintf(out, n_out, "%s of %s", event_op_name(s->op),
				     event_dtype_name(s->dtype));

	if (s->sized && at < n_out)
		at += (size_t)snprintf(out + at, n_out - at, ", %" PRIu64 " bytes", s->bytes);
	if (s->root >= 0 && at < n_out)
		at += (size_t)snprintf(out + at, n_out - at, ", root %d", s->root);
	if (s->name && at < n_out)
		snprintf(out + at, n_out - at, ", %.60s", ledger_text(&r->ledger, s->name));
}

static void name_camp(const struct camps *c, struct finding *f)
{
	if (c->equal && !c->by_habit)
		return;
	for (uint32_t i = 0; i < c->page->n_seats; i++) {
		struct shape s;

		if (ledger_shape(c->page, i, c->call, &s) && !ledger_same(&s, &c->major))
			finding_rank(f, c->page->seats[i].rank);
	}
}

/* What the numbers of the calls say of the reason, and what to do; "" where they say nothing. */
static void words_why(const struct camps *c, const char *class_name, char *out, size_t n_out)
{
	int32_t rank = c->page->seats[c->major_seat].rank;

	out[0] = '\0';
	if (strcmp(class_name, "mismatch.extra_call") == 0) {
		snprintf(out, n_out, " It makes one call more than the others: look for a call inside a "
				     "condition.");
		return;
	}
	for (uint64_t seq = c->call + 1;
	     strcmp(class_name, "mismatch.order") == 0 && seq <= c->call + MISMATCH_MAX_SWAP; seq++) {
		struct shape s;

		if (!ledger_shape(c->page, c->major_seat, seq, &s) || !ledger_same(&s, &c->minor) ||
		    ledger_same(&s, &c->major))
			continue;
		snprintf(out, n_out, " These are the same calls in another order: that one is call %" PRIu64
				     " of rank %d. Let all ranks issue them in one order.", seq, rank);
		return;
	}
}

int mismatch_tell(struct rules *r, uint32_t group, const struct camps *c)
{
	const struct group *g = &r->ledger.match->groups[group];
	const struct line *v = ledger_line(c->page, c->call);
	char minor[160], major[160], who[160], why[200], sentence[1100], evidence[200], detail[360];
	bool over = v->n_left >= g->n_expected || dumped_over(r->dumped, g->name, c->call);
	struct finding f = { .severity = over ? SEVERITY_WRONG : SEVERITY_STUCK,
			     .group = g->name, .has_call = true, .call = c->call, .step = v->step,
			     .onset_ns = v->at_ns, .detail = detail, .sentence = sentence,
			     .evidence_json = evidence };
	uint32_t skipped = 0;

	f.class_name = mismatch_kind(c, &f.confidence);
	if (strcmp(f.class_name, "mismatch.size") == 0 &&
	    (skipped = mismatch_skipped(r, group, c)) != 0) {
		f.class_name = "mismatch.size_from_skipped_module";
		f.module = ledger_text(&r->ledger, skipped);
	}
	words_shape(r, &c->minor, minor, sizeof minor);
	words_shape(r, &c->major, major, sizeof major);
	name_camp(c, &f);
	if (f.n_ranks > 0)
		words_ranks(f.ranks, f.n_ranks, who, sizeof who);
	else
		snprintf(who, sizeof who, "Rank %d", c->page->seats[c->minor_seat].rank);
	words_why(c, f.class_name, why, sizeof why);
	snprintf(detail, sizeof detail, "%s against %s", minor, major);
	snprintf(sentence, sizeof sentence,
		 "In call %" PRIu64 " of group %.60s the members ask for different things. %s: %s; "
		 "rank %d%s: %s.%s%.60s%s%s%s",
		 c->call, g->name, who, minor, c->page->seats[c->major_seat].rank,
		 c->n_major > 1 ? " and others" : "", major,
		 skipped ? " There the work " : "", skipped ? f.module : "",
		 skipped ? " did not run this time." : "",
		 f.severity == SEVERITY_STUCK ? " The call cannot end."
					      : " The call ended all the same, with wrong data.",
		 why);
	snprintf(evidence, sizeof evidence,
		 "[{\"view\":\"arrival\",\"seq\":%" PRIu64 ",\"rank\":%d},"
		 "{\"view\":\"arrival\",\"seq\":%" PRIu64 ",\"rank\":%d}]",
		 c->call, c->page->seats[c->minor_seat].rank, c->call,
		 c->page->seats[c->major_seat].rank);
	f.rules_out_json = "[\"slow.fixed_rank: nobody is late, the calls differ\","
			   "\"absent.crashed: all of these ranks called\"]";
	return rules_tell(r, &f);
}
