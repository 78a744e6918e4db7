/* kineto_join.c - do the calls of several ranks' files fit together?
 *
 * Calls are counted, not numbered, and each file may have a clock of its own. Matched
 * by their counts, all ranks must leave a call at about the same moment, whatever the
 * offsets: foreign_align() tests that. Where it refuses, a wrong match would make
 * wrong clocks and wrong causes, so each rank's calls stay its own.
 */
#include "kineto.h"

#include "../align/foreign.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOST_SKEW_NS 5000000 /* a slice of the scheduler, or two */
#define MAX_CALLS (1u << 20) /* of all ranks: the first ones of each place the files as well as all of them do */

struct list {
	struct foreign_call *v;
	size_t n, n_alloc;
	bool outside; /* one is in no step */
};

/* A call of another step is another call, however regular the steps are: ranks number
 * them alike. */
static uint64_t kind_of(const struct event *ev)
{
	uint64_t k = (uint64_t)event_step(ev->a) << 16 | ev->flags;

	k = (k ^ k >> 31) * UINT64_C(0x9e3779b97f4a7c15);
	k ^= ev->b;
	return (k ^ k >> 29) | 1; /* 0 would be unknown */
}

static bool grow(struct trace *t, struct list *l)
{
	struct foreign_call *grown;

	if (l->n < l->n_alloc)
		return true;
	grown = realloc(l->v, (l->n_alloc ? 2 * l->n_alloc : 256) * sizeof *grown);
	if (!grown) {
		t->no_memory = true;
		return false;
	}
	l->v = grown;
	l->n_alloc = l->n_alloc ? 2 * l->n_alloc : 256;
	return true;
}

/* Of one group, in the order of the entries. */
static bool list_calls(struct trace *t, struct trace_rank *r, const char *group, size_t max, struct list *ret)
{
	struct runs_reader *in = trace_read_calls(t, r);
	const struct trace_call *c;
	uint32_t name = 0;

	for (uint32_t i = 0; i < r->n_names; i++)
		if (strcmp(r->names[i], group) == 0)
			name = i + 1;
	while (in && ret->n < max && (c = runs_next(in))) {
		const struct event *b = &c->begin;

		if (b->name != name || name == 0)
			continue;
		if (!grow(t, ret))
			break;
		ret->outside |= event_step(b->a) == EVENT_STEP_UNKNOWN;
		ret->v[ret->n++] = (struct foreign_call){
			.enter_ns = (int64_t)b->tick, .exit_ns = c->end_ns, .kind = kind_of(b),
			.proves = b->flags >> 8 == OP_ALL_REDUCE || b->flags >> 8 == OP_ALL_GATHER ||
				  b->flags >> 8 == OP_REDUCE_SCATTER || b->flags >> 8 == OP_BARRIER,
		};
	}
	return trace_read_end(t, in);
}

/* Calls by the name of their group: of n_names + 1, and the name that first has the most.
 * NULL without memory. */
static uint64_t *count_calls(struct trace *t, struct trace_rank *r, uint32_t *ret_most)
{
	uint64_t *counts = calloc((size_t)r->n_names + 1, sizeof *counts);
	struct runs_reader *in = trace_read_calls(t, r);
	const struct trace_call *c;

	*ret_most = 0;
	while (counts && in && (c = runs_next(in))) {
		uint32_t name = c->begin.name;

		if (++counts[name] > counts[*ret_most] && name != 0)
			*ret_most = name;
	}
	t->no_memory |= !counts;
	if (trace_read_end(t, in))
		return counts;
	free(counts);
	return NULL;
}

#define ONE_RANK (INT64_C(1) << 40) /* more than calls of all ranks */

/* Adds a rank's calls to those of all, by the name of the group. */
static bool add_counts(struct trace *t, struct trace_rank *r, json_t *sums)
{
	uint32_t most;
	uint64_t *counts = count_calls(t, r, &most);
	bool fine = counts != NULL;

	for (uint32_t i = 0; fine && i < r->n_names; i++) {
		json_int_t sum = json_integer_value(json_object_get(sums, r->names[i]));

		if (counts[i + 1] > 0)
			fine = json_object_set_new(sums, r->names[i],
						   json_integer(sum + ONE_RANK + (json_int_t)counts[i + 1])) == 0;
	}
	t->no_memory |= !fine;
	free(counts);
	return fine;
}

/* The group of most ranks; of those, of most calls. Groups of a few have more calls, but cannot
 * place the others. A copy; NULL = there is none, or no memory. */
static char *main_group(struct trace *t)
{
	json_t *sums = json_object(), *v;
	json_int_t most = 0;
	const char *name, *best = NULL;
	char *copy = NULL;
	bool fine = sums != NULL;

	for (uint32_t i = 0; fine && i < t->n_ranks; i++)
		fine = add_counts(t, &t->ranks[i], sums);
	json_object_foreach(sums, name, v)
		if (json_integer_value(v) > most) {
			most = json_integer_value(v);
			best = name;
		}
	if (fine && best)
		copy = strdup(best);
	t->no_memory |= !fine || (best && !copy);
	json_decref(sums);
	return copy;
}

/* Its groups get names that no other rank has. */
static bool keep_apart(struct trace *t, struct trace_rank *r)
{
	uint32_t most;
	uint64_t *counts = count_calls(t, r, &most);

	for (uint32_t i = 0; counts && i < r->n_names; i++) {
		char *apart;

		if (counts[i + 1] == 0)
			continue;
		if (asprintf(&apart, "%.160s of rank %d alone", r->names[i], r->rank) < 0) {
			t->no_memory = true;
			break;
		}
		free(r->names[i]);
		r->names[i] = apart;
	}
	free(counts);
	return !t->no_memory;
}

/* Files of other formats may be of the same rank. */
static bool is_profile(const struct trace_input *in)
{
	return in->fine && (!in->format || in->format == format_kineto.name || in->format == format_kineto_list.name);
}

static void say(struct trace_input *inputs, uint32_t n, int32_t rank, const char *text)
{
	for (uint32_t i = 0; i < n; i++)
		if (is_profile(&inputs[i]) && inputs[i].rank == rank) {
			size_t at = strlen(inputs[i].outcome);

			snprintf(inputs[i].outcome + at, sizeof inputs[i].outcome - at,
				 "; its collectives are not matched with other ranks': %s", text);
		}
}

/* Only what is proven: a soft offset alone places nothing. */
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

/* A device leaves a collective when it ends, a thread of a host when the scheduler lets it. So many calls
 * of hosts say little of their clocks but for the bounds, and whether they are the same calls is only known where
 * the steps tell. */
static struct foreign_config limits_of(const struct trace *t, const struct list *lists)
{
	struct foreign_config cfg = foreign_defaults;
	bool host = true;

	for (uint32_t i = 0; i < t->n_ranks; i++)
		host &= t->ranks[i].host_calls && !lists[i].outside;
	if (host)
		cfg.skew_ns = HOST_SKEW_NS;
	return cfg;
}

static bool align(struct trace *t, struct trace_input *inputs, uint32_t n_inputs, const char *group)
{
	struct list *lists = calloc(t->n_ranks, sizeof *lists);
	struct foreign_rank *ranks = calloc(t->n_ranks, sizeof *ranks);
	struct foreign_clock *clocks = calloc(t->n_ranks, sizeof *clocks);
	bool fine = lists && ranks && clocks;
	int64_t n = 0;
	size_t reference;

	t->no_memory |= !fine;
	for (uint32_t i = 0; i < t->n_ranks && fine; i++) {
		fine = list_calls(t, &t->ranks[i], group, MAX_CALLS / t->n_ranks, &lists[i]);
		if (fine)
			ranks[i] = (struct foreign_rank){ lists[i].v, lists[i].n };
	}
	if (fine) {
		struct foreign_config cfg = limits_of(t, lists);

		n = foreign_align(ranks, t->n_ranks, &cfg, clocks, &reference);
	}
	if (fine && n > 0) {
		t->reference = t->ranks[reference].clock;
		t->rate_bound = foreign_defaults.max_rate;
	}
	for (uint32_t i = 0; i < t->n_ranks && fine && n >= 0; i++) {
		/* A shifted count is a call missing at the begin: the numbers do not fit. */
		bool fits = clocks[i].outcome == FOREIGN_OK && clocks[i].shift == 0;

		if (fits) {
			place(&t->ranks[i], &clocks[i]);
			continue;
		}
		say(inputs, n_inputs, t->ranks[i].rank,
		    clocks[i].outcome == FOREIGN_OK ? "it has begun to record at another call"
						    : foreign_text(clocks[i].outcome));
		fine = keep_apart(t, &t->ranks[i]);
	}
	for (uint32_t i = 0; lists && i < t->n_ranks; i++)
		free(lists[i].v);
	free(lists);
	free(ranks);
	free(clocks);
	t->no_memory |= n < 0;
	return fine && n >= 0;
}

bool kineto_join(struct trace *t, struct trace_input *inputs, uint32_t n_inputs)
{
	bool apart = false, fine;
	char *group;

	if (t->clock_method || t->n_ranks == 0)
		return true;
	for (uint32_t i = 1; i < t->n_ranks; i++)
		apart |= t->ranks[i].clock != t->ranks[0].clock;
	t->clock_method = t->n_ranks == 1 ? "one file: its own clock"
			  : apart ? "each file a clock of its own; placed by the ends of collectives, bounded by "
				    "their entries"
				  : "one machine: its clock";
	if (t->n_ranks < 2)
		return true;
	group = main_group(t);
	for (uint32_t i = 0; i < t->n_ranks && !group && !t->no_memory; i++)
		say(inputs, n_inputs, t->ranks[i].rank, "none of them can be placed in a step");
	fine = group ? align(t, inputs, n_inputs, group) : !t->no_memory;
	free(group);
	return fine;
}
