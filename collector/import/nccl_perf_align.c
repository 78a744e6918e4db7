/* nccl_perf_align.c - the clocks of hosts whose calls were recorded with their numbers.
 *
 * The number says which call is which, so only calls that all ranks have are compared, and
 * no other match can fit. What is left to find is the offset, from where they end together.
 */
#include "nccl_perf.h"

#include "../align/foreign.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_call(const void *a, const void *b)
{
	const struct nccl_timed *x = a, *y = b;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* The group of most calls, each rank's word once. */
static struct nccl_timed *main_group(struct nccl_timed *v, size_t n, size_t *ret_n)
{
	size_t most = 0, at = 0, kept = 0;

	qsort(v, n, sizeof *v, by_call);
	for (size_t from = 0, to; from < n; from = to) {
		for (to = from; to < n && v[to].group == v[from].group;)
			to++;
		if (to - from > most) {
			most = to - from;
			at = from;
		}
	}
	v += at;
	for (size_t i = 0; i < most; i++)
		if (kept == 0 || by_call(&v[kept - 1], &v[i]) != 0)
			v[kept++] = v[i];
	*ret_n = kept;
	return v;
}

static uint32_t count_ranks(const struct trace *t, const struct nccl_timed *v, size_t n)
{
	bool *seen = calloc((size_t)t->n_ranks + 1, sizeof *seen);
	uint32_t ranks = 0;

	for (size_t i = 0; seen && i < n; i++) {
		ranks += !seen[v[i].rank];
		seen[v[i].rank] = true;
	}
	free(seen);
	return ranks;
}

/* Of the calls that all these ranks have, into one list a rank. */
static void split(const struct nccl_timed *v, size_t n, uint32_t n_ranks, struct foreign_call **calls, size_t *counts)
{
	for (size_t from = 0, to; from < n; from = to) {
		for (to = from; to < n && v[to].number == v[from].number;)
			to++;
		if (to - from != n_ranks)
			continue;
		for (size_t i = from; i < to; i++)
			calls[v[i].rank][counts[v[i].rank]++] = (struct foreign_call){
				.enter_ns = v[i].begin_ns, .exit_ns = v[i].end_ns,
				.kind = (uint64_t)v[i].number + 1, .proves = true };
	}
}

static void say(struct trace_input *inputs, uint32_t n, int32_t rank, const char *text)
{
	for (uint32_t i = 0; i < n; i++)
		if (inputs[i].fine && inputs[i].rank == rank) {
			size_t at = strlen(inputs[i].outcome);

			snprintf(inputs[i].outcome + at, sizeof inputs[i].outcome - at,
				 "; its clock is not placed against the others': %s", text);
		}
}

static void place(struct trace_rank *r, const struct foreign_clock *c)
{
	if (c->lo_ns == -FOREIGN_UNBOUNDED || c->hi_ns == FOREIGN_UNBOUNDED || c->lo_ns > c->hi_ns)
		return;
	r->placed = true;
	r->at_ns = c->at_ns;
	r->lo_ns = c->lo_ns;
	r->hi_ns = c->hi_ns;
	r->best_ns = c->offset_ns;
}

static bool align(struct trace *t, struct trace_input *inputs, uint32_t n_inputs, const struct nccl_timed *v, size_t n,
		  uint32_t n_with)
{
	struct foreign_call **calls = calloc(t->n_ranks, sizeof *calls);
	struct foreign_rank *ranks = calloc(t->n_ranks, sizeof *ranks);
	struct foreign_clock *clocks = calloc(t->n_ranks, sizeof *clocks);
	size_t *counts = calloc(t->n_ranks, sizeof *counts), reference;
	bool fine = calls && ranks && clocks && counts;
	int64_t n_placed = 0;

	for (uint32_t i = 0; i < t->n_ranks && fine; i++)
		fine = (calls[i] = calloc(n / n_with + 1, sizeof **calls)) != NULL;
	if (fine) {
		split(v, n, n_with, calls, counts);
		for (uint32_t i = 0; i < t->n_ranks; i++)
			ranks[i] = (struct foreign_rank){ calls[i], counts[i] };
		n_placed = foreign_align(ranks, t->n_ranks, &foreign_defaults, clocks, &reference);
		fine = n_placed >= 0;
	}
	if (fine && n_placed > 0) {
		t->reference = t->ranks[reference].clock;
		t->rate_bound = foreign_defaults.max_rate;
	}
	for (uint32_t i = 0; i < t->n_ranks && fine; i++) {
		if (clocks[i].outcome == FOREIGN_OK)
			place(&t->ranks[i], &clocks[i]);
		else
			say(inputs, n_inputs, t->ranks[i].rank, foreign_text(clocks[i].outcome));
	}
	for (uint32_t i = 0; calls && i < t->n_ranks; i++)
		free(calls[i]);
	free(calls);
	free(ranks);
	free(clocks);
	free(counts);
	return fine;
}

bool nccl_perf_align(struct trace *t, struct trace_input *inputs, uint32_t n_inputs, struct nccl_timed *v, size_t n)
{
	bool apart = false;
	uint32_t n_with;

	for (uint32_t i = 0; i < t->n_ranks; i++)
		apart |= t->ranks[i].clock != t->ranks[0].clock;
	t->clock_method = apart ? "each host a clock of its own; placed by the ends of collectives, which have numbers"
				: "one machine: its clock";
	t->reference = t->ranks[0].clock;
	if (!apart || n == 0)
		return true;
	v = main_group(v, n, &n);
	n_with = count_ranks(t, v, n);
	return n_with > 0 && align(t, inputs, n_inputs, v, n, n_with);
}
