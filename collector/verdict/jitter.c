/* jitter.c - net.jitter: the transfers over one path have a long tail that others have not.
 *
 * What it says: the path, how many of its calls take how many times as long, and that
 * the ranks had all come: it is the path that is late.
 *
 * How it decides: a call is in the tail when its transfer takes more than twice the
 * median of its cell; a cell has a tail when between two calls and a third of its
 * last ones are (more is slow.link). The path is the narrowest that all cells with a
 * tail use and no cell without one: two hosts, one host's way out, the ways
 * between hosts altogether, or the ranks of one group. The chance that so many tail
 * calls fall there if all calls were alike is at most 1 in 10,000; in a job of a few calls,
 * which is looked at once, 1 in 50 will do and it is only likely. Only what the device ran counts: a host that calls and notices has
 * pauses of its own. A tail in which others transfer over the same hosts at that very
 * time is contention, and not told.
 *
 * Neighbours: slow.fixed_rank and slow.rotating_host_pause (arrivals, which do not
 * count here), net.retransmits (the same with its reason), slow.link (always slow).
 */
#include "onpath.h"
#include "words.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SHORT_CHANCE 2e-2
#define CERTAIN_CHANCE 1e-4

static bool is_rare(const struct onpath_tail *t)
{
	return t->chance <= (t->cell->cell->n <= RATES_KEEP ? SHORT_CHANCE : CERTAIN_CHANCE);
}

static const struct contrast_cell *first_tail(const struct rules *r)
{
	for (size_t i = 0; i < r->contrasts.n_cells; i++)
		if (r->contrasts.cells[i].cell->device && onpath_has_tail(&r->contrasts.cells[i]))
			return &r->contrasts.cells[i];
	return NULL;
}

/* Does everything with a tail use it, and nothing without? */
static bool fits(const struct rules *r, const struct onpath *p, struct onpath_tail *ret)
{
	for (size_t i = 0; i < r->contrasts.n_cells; i++) {
		const struct contrast_cell *v = &r->contrasts.cells[i];

		if (v->cell->device && v->n_all >= TAIL_LEAST && onpath_uses(r, v->cell, p) && v->n_tail == 0)
			return false;
	}
	return onpath_tails(r, p, ret);
}

static bool find_path(const struct rules *r, const struct rates_cell *c, struct onpath *ret, struct onpath_tail *tail)
{
	uint32_t n = members_n(r, c), own = members_host(r, c, 0);

	if (c->n_hosts == 2)
		for (uint32_t i = 1; i < n; i++) {
			*ret = (struct onpath){ own, members_host(r, c, i), -1 };
			if (own != UINT32_MAX && ret->other_host != UINT32_MAX && own != ret->other_host)
				return fits(r, ret, tail) ||
				       (*ret = (struct onpath){ own, UINT32_MAX, -1 }, fits(r, ret, tail)) ||
				       (*ret = (struct onpath){ members_host(r, c, i), UINT32_MAX, -1 }, fits(r, ret, tail));
		}
	for (uint32_t i = 0; i < n && c->n_hosts > 1; i++) {
		*ret = (struct onpath){ members_host(r, c, i), UINT32_MAX, -1 };
		if (ret->host != UINT32_MAX && fits(r, ret, tail))
			return true;
	}
	return false;
}

/* Others transfer between the same hosts in every tail call and in no other. */
static bool is_contention(const struct rules *r, const struct contrast_cell *v)
{
	uint32_t n_tail = 0, n_other = 0;

	for (uint32_t k = 0; k < v->n_all; k++) {
		const struct rates_sample *s = rates_recent(v->cell, k);
		bool met = false;

		for (size_t i = 0; i < r->contrasts.n_cells && !met; i++) {
			const struct rates_cell *other = r->contrasts.cells[i].cell;

			met = other != v->cell && other->host == v->cell->host &&
			      other->n_hosts == v->cell->n_hosts && cells_overlap(s, other);
		}
		if ((double)s->transfer_ns > v->least + (v->most - v->least) / 2)
			n_tail += met;
		else
			n_other += met;
	}
	return n_tail > 0 && n_other == 0;
}

static int tell(struct rules *r, const char *link, const struct onpath *p, const struct onpath_tail *t)
{
	char sentence[800], detail[160], mid[32], most[32];
	const struct contrast_cell *v = t->cell;
	const struct rates_sample *last = rates_recent(v->cell, 0), *first = rates_recent(v->cell, v->n_all - 1);
	double median = v->mid, span = (double)(last->begin_ns + last->transfer_ns - first->begin_ns), more = 0;
	double usual = 0; /* the longest that is no tail */
	struct finding f = { .class_name = "net.jitter", .severity = SEVERITY_SLOW, .onset_ns = FACT_NONE,
			     .error_kind = ERROR_KIND_NONE, .step = first->step, .last_step = last->step };

	for (uint32_t k = 0; k < v->n_all; k++) {
		double ns = (double)rates_recent(v->cell, k)->transfer_ns;

		more += ns > 2 * median ? ns - median : 0;
		usual = ns <= 2 * median && ns > usual ? ns : usual;
	}
	f.cost_ratio = span > more ? more / (span - more) : 0;
	f.margin_ns = (int64_t)(v->most - median);
	f.error_ns = (int64_t)(usual - v->least);
	f.confidence = t->chance <= CERTAIN_CHANCE ? CONFIDENCE_CERTAIN : CONFIDENCE_LIKELY;
	f.link = link;
	if (p && p->rank < 0 && p->other_host == UINT32_MAX)
		f.host = members_host_name(r, p->host);
	words_ns((int64_t)median, mid, sizeof mid);
	words_ns((int64_t)v->most, most, sizeof most);
	snprintf(detail, sizeof detail, "%u of %u calls take more than twice the median", t->n_tail, t->n_with);
	snprintf(sentence, sizeof sentence,
		 "Transfers over %s jitter: %s, up to %s against %s, once all ranks have come; none of %u calls elsewhere "
		 "does. Look at that path's congestion, errors and routing (switch counters, adaptive routing, other jobs "
		 "on it).", link, detail, most, mid, t->n_without);
	f.detail = detail;
	f.sentence = sentence;
	f.evidence_json = "[{\"view\":\"comm_class_group\"},{\"view\":\"collective_rank\",\"column\":\"transfer_ns\"}]";
	f.rules_out_json = "[\"slow.fixed_rank: only what follows the last arrival is compared\","
			   "\"slow.link: most of its calls are as fast as the others\"]";
	return rules_tell(r, &f);
}

int jitter_look(struct rules *r)
{
	const struct contrast_cell *v = first_tail(r);
	struct onpath_tail tail;
	struct onpath path;
	char link[200];

	if (!v || is_contention(r, v) || members_explained(r, v->cell))
		return 0;
	if (find_path(r, v->cell, &path, &tail)) {
		onpath_words(r, &path, link, sizeof link);
		return is_rare(&tail) ? tell(r, link, &path, &tail) : 0;
	}
	/* No way that it shares with others: its own members. */
	tail = (struct onpath_tail){ .cell = v, .n_tail = v->n_tail, .n_with = v->n_all };
	for (size_t i = 0; i < r->contrasts.n_cells; i++) {
		const struct contrast_cell *o = &r->contrasts.cells[i];

		if (o == v || o->n_all < TAIL_LEAST || !o->cell->device)
			continue;
		if (o->n_tail > 0)
			return 0;
		if (!(o->cell->pair == v->cell->pair && o->cell->group == v->cell->group && !o->cell->pair))
			tail.n_without += o->n_all;
	}
	tail.chance = tail_chance(&tail);
	members_words(r, v->cell, link, sizeof link);
	return tail.n_without > 0 && is_rare(&tail) ? tell(r, link, NULL, &tail) : 0;
}
