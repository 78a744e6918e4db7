/* timeline_rows.c - what each worker of a timeline computed in a step, for people and queries.
 *
 * The time that counts is from the begin of the step, on the first worker, to the end of
 * its last forward or backward, on the last one: what comes behind that is not the pipeline's.
 */
#include "timeline_internal.h"

#include <math.h>

struct sums {
	int64_t n_forward, forward_ns, n_backward, backward_ns;
};

static struct sums sum_up(const struct timeline *l, uint32_t from, uint32_t to)
{
	struct sums s = { 0 };

	for (uint32_t i = from; i < to; i++) {
		const struct op *op = &l->ops[i];
		enum role role = l->kinds[op->kind].role;

		if (role == ROLE_FORWARD) {
			s.n_forward++;
			s.forward_ns += op->end_ns - op->begin_ns;
		} else if (role == ROLE_BACKWARD) {
			s.n_backward++;
			s.backward_ns += op->end_ns - op->begin_ns;
		}
	}
	return s;
}

static int64_t span_ns(const struct timeline *l, uint32_t from, uint32_t to)
{
	int64_t begin_ns = INT64_MAX, end_ns = INT64_MIN;

	for (uint32_t i = from; i < to; i++) {
		const struct op *op = &l->ops[i];
		enum role role = l->kinds[op->kind].role;

		begin_ns = op->begin_ns < begin_ns ? op->begin_ns : begin_ns;
		if ((role == ROLE_FORWARD || role == ROLE_BACKWARD) && op->end_ns > end_ns)
			end_ns = op->end_ns;
	}
	return end_ns > begin_ns ? end_ns - begin_ns : 0;
}

static bool put_step(struct timeline *l, uint32_t from, uint32_t to)
{
	int64_t ns = span_ns(l, from, to);

	for (uint32_t at = from, end; at < to; at = end) {
		const struct worker *w = &l->workers[l->ops[at].worker];
		struct sums s;

		for (end = at; end < to && l->ops[end].worker == l->ops[at].worker;)
			end++;
		s = sum_up(l, at, end);
		if (s.n_forward + s.n_backward == 0)
			continue;
		if (!trace_row(l->trace, "timeline_stage", "iiiiiiiir", l->steps[l->ops[at].step], (int64_t)w->rank,
			       l->unplaced ? TRACE_NULL : (int64_t)w->pp, s.n_forward, s.forward_ns, s.n_backward,
			       s.backward_ns, ns > 0 ? ns : TRACE_NULL,
			       ns > 0 ? 1 - (double)(s.forward_ns + s.backward_ns) / (double)ns : NAN))
			return false;
	}
	return true;
}

bool timeline_put_rows(struct timeline *l)
{
	for (uint32_t from = 0, to; from < l->n_ops; from = to) {
		for (to = from; to < l->n_ops && l->ops[to].step == l->ops[from].step;)
			to++;
		if (!put_step(l, from, to))
			return false;
	}
	return true;
}
