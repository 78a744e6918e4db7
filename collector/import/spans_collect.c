/* spans_collect.c - events of a trace as whole spans, and the steps that they mark. */
#include "span_pairs.h"
#include "spans_internal.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool has(const char *name, const char *part)
{
	return strcasestr(name, part) != NULL;
}

bool spans_is_message(const char *name)
{
	return has(name, "recv") || has(name, "receive") || has(name, "send") || has(name, "exchange");
}

enum role spans_role(const char *name)
{
	if (spans_is_message(name))
		return ROLE_MESSAGE;
	if (strncasecmp(name, "forward", 7) == 0 && !has(name, "backward"))
		return ROLE_FORWARD;
	if (strncasecmp(name, "backward", 8) == 0)
		return has(name, "reduce") || has(name, "gather") ? ROLE_COLL : ROLE_BACKWARD;
	if (strncasecmp(name, "optimizer", 9) == 0)
		return ROLE_OPTIMIZER;
	return has(name, "reduce") || has(name, "all-gather") || has(name, "all_gather") ? ROLE_COLL : ROLE_WORK;
}

bool spans_is_step(const char *name, int32_t *ret_number)
{
	static const char *const known[] = { "iteration", "ProfilerStep", "train_step", "train step", "step" };

	*ret_number = -1;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		size_t n = strlen(known[i]);
		const char *at = name + n;
		char *end;
		long v;

		if (strncasecmp(name, known[i], n) != 0)
			continue;
		at += strspn(at, " #:_");
		if (!*at)
			return true;
		if (!isdigit((unsigned char)*at))
			return false;
		v = strtol(at, &end, 10);
		*ret_number = *end == '\0' && v >= 0 && v < INT32_MAX ? (int32_t)v : -1;
		return *ret_number >= 0;
	}
	return false;
}

/* ---- whole spans ---- */

static int32_t either(int32_t a, int32_t b)
{
	return a >= 0 ? a : b;
}

static void learn_lane(struct spans *s, const struct mark *m)
{
	struct lane_id *lane = &s->lanes[m->lane];

	lane->stage = either(lane->stage, m->stage);
	lane->replica = either(lane->replica, m->replica);
	lane->tensor = either(lane->tensor, m->tensor);
	lane->rank = either(lane->rank, m->rank);
}

static bool add_span(struct spans *s, const struct mark *begin, const struct mark *end)
{
	if (!timeline_grow(&s->l, &s->v, s->n, &s->n_alloc, sizeof *s->v, SPANS_MAX_MARKS))
		return false;
	s->v[s->n++] = (struct span){ begin->at_ns, end->end_ns, begin->lane, begin->name ? begin->name : end->name,
				      either(begin->step, end->step), either(begin->micro, end->micro),
				      either(begin->chunk, end->chunk) };
	return true;
}

static bool pair_marks(struct spans *s)
{
	struct pair_mark *v = calloc((size_t)s->n_marks + 1, sizeof *v);
	struct pair *pairs = calloc((size_t)s->n_marks / 2 + 1, sizeof *pairs);
	struct pair_count count = { 0 };
	bool fine = v && pairs;
	size_t n = 0;

	for (uint32_t i = 0; fine && i < s->n_marks; i++) {
		const struct mark *m = &s->marks[i];

		learn_lane(s, m);
		if (m->phase == 'B' || m->phase == 'E')
			v[n++] = (struct pair_mark){ m->at_ns, m->lane, m->name, i, m->phase == 'E' };
		else if (m->phase == 'X')
			fine = add_span(s, m, m);
	}
	fine = fine && pairs_find(v, n, pairs, &count);
	for (size_t i = 0; fine && i < count.n; i++)
		fine = add_span(s, &s->marks[pairs[i].begin_tag], &s->marks[pairs[i].end_tag]);
	s->n_without_end = count.n_without_end;
	s->n_without_begin = count.n_without_begin;
	s->l.trace->no_memory |= !fine && !s->l.why[0];
	free(v);
	free(pairs);
	return fine;
}

static int by_lane(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	if (x->end_ns != y->end_ns)
		return x->end_ns > y->end_ns ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

/* ---- steps ---- */

static bool add_step(struct spans *s, uint32_t lane, int64_t begin_ns, int64_t end_ns, int32_t number)
{
	if (!timeline_grow(&s->l, &s->steps, s->n_steps, &s->n_steps_alloc, sizeof *s->steps, SPANS_MAX_MARKS))
		return false;
	s->steps[s->n_steps++] = (struct step_mark){ lane, begin_ns, end_ns, number };
	return true;
}

/* "iteration begin" and "iteration end". */
static bool take_instants(struct spans *s)
{
	for (uint32_t i = 0; i < s->n_marks; i++) {
		const struct mark *m = &s->marks[i];
		const char *name = spans_name(s, m->name);

		if (m->phase != 'i' || (strncasecmp(name, "iteration ", 10) != 0 && strncasecmp(name, "step ", 5) != 0))
			continue;
		if ((has(name, "begin") || has(name, "start")) && !add_step(s, m->lane, m->at_ns, INT64_MAX, m->step))
			return false;
		if (has(name, "end") && !add_step(s, m->lane, INT64_MIN, m->at_ns, m->step))
			return false;
	}
	return true;
}

static int64_t step_time(const struct step_mark *m)
{
	return m->begin_ns != INT64_MIN ? m->begin_ns : m->end_ns;
}

static int by_begin(const void *a, const void *b)
{
	const struct step_mark *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	if (step_time(x) != step_time(y))
		return step_time(x) < step_time(y) ? -1 : 1;
	return (x->begin_ns != INT64_MIN) - (y->begin_ns != INT64_MIN); /* an end goes first */
}

/* Ends into the begins before them; a begin without one ends where the next one is. */
static void join_steps(struct spans *s)
{
	uint32_t n = 0;

	if (s->n_steps > 1)
		qsort(s->steps, s->n_steps, sizeof *s->steps, by_begin);
	for (uint32_t i = 0; i < s->n_steps; i++) {
		struct step_mark m = s->steps[i];
		struct step_mark *last = n > 0 && s->steps[n - 1].lane == m.lane ? &s->steps[n - 1] : NULL;

		if (last && last->end_ns == INT64_MAX)
			last->end_ns = m.begin_ns == INT64_MIN ? m.end_ns : m.begin_ns;
		if (m.begin_ns == INT64_MIN)
			continue;
		if (m.number < 0) /* in their order */
			m.number = last ? last->number + (last->number < INT32_MAX - 1) : 0;
		s->steps[n++] = m;
	}
	s->n_steps = n;
}

/* Spans that are steps leave the spans. */
static bool take_steps(struct spans *s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->n; i++) {
		struct span v = s->v[i];
		int32_t number;

		if (!spans_is_step(spans_name(s, v.name), &number)) {
			s->v[n++] = v;
			continue;
		}
		if (!add_step(s, v.lane, v.begin_ns, v.end_ns, number >= 0 ? number : v.step))
			return false;
	}
	s->n = n;
	return true;
}

bool spans_collect(struct spans *s)
{
	if (!pair_marks(s))
		return false;
	if (s->n > 1)
		qsort(s->v, s->n, sizeof *s->v, by_lane);
	if (!take_instants(s) || !take_steps(s))
		return false;
	join_steps(s);
	return true;
}
