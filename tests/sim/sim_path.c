/* sim_path - is the critical path of a large job the one that its generator knows?
 *
 * Segments tile the step from begin to end and sum up to what it truly took; what is
 * laid to a planted fault is what the fault costs (the same job without it is played
 * beside it), closely where all ranks do the same, within a quarter in a pipeline, where
 * another path takes over before all of the fault is gone; and with clocks of the hosts' own, a hand-over that is said to be
 * decided is the true one. Exit 1 when a claim fails.
 */
#include "../../collector/core.h"
#include "../../sim/large.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS 1000000
#define MAX_CALLS 400000
#define MAX_CULPRITS 64

struct call {
	char group[24];
	uint64_t seq;
	int32_t last_rank;
};

static struct call *calls; /* by group and sequence, once sorted */
static size_t n_calls;
static unsigned n_failed;

#define CLAIM(claim, ...)                                   \
	do {                                                \
		if (!(claim)) {                             \
			n_failed++;                         \
			fprintf(stderr, "not so: " #claim ": " __VA_ARGS__); \
			fputc('\n', stderr);                \
		}                                           \
	} while (0)

static void on_call(void *arg, const char *group, uint64_t seq, int32_t last_rank, int64_t first_ns,
		    int64_t last_ns, int64_t end_ns)
{
	(void)arg, (void)first_ns, (void)last_ns, (void)end_ns;
	if (n_calls == MAX_CALLS)
		abort();
	calls[n_calls] = (struct call){ .seq = seq, .last_rank = last_rank };
	snprintf(calls[n_calls++].group, sizeof calls->group, "%s", group);
}

static int by_call(const void *a, const void *b)
{
	const struct call *x = a, *y = b;
	int r = strcmp(x->group, y->group);

	return r ? r : (x->seq > y->seq) - (x->seq < y->seq);
}

static const char *group_name(const struct facts *f, uint32_t group)
{
	for (size_t i = f->groups.n; i-- > 0;)
		if (f->groups.v[i].group == group)
			return f->groups.v[i].name;
	return "?";
}

struct job {
	const char *what;
	struct large_config cfg;
	uint32_t n_steps;
	struct facts facts;
	struct large_step *truth;
	int32_t culprits[MAX_CULPRITS];
	size_t n_culprits;
};

static void play(struct job *j)
{
	struct core *core;
	struct large *l;

	n_calls = 0;
	facts_init(&j->facts);
	j->truth = calloc(j->n_steps, sizeof *j->truth);
	if (!j->truth || large_new(&l, &j->cfg) != 0 || core_new(&core, NULL, &j->facts) != 0 ||
	    large_introduce(l, core) != 0)
		abort();
	for (uint32_t i = 0; i < j->n_steps; i++)
		if (large_next(l, &j->truth[i]) != 0 || large_feed(l, core) != 0)
			abort();
	if (core_finish(core, (fleet_time){ j->truth[j->n_steps - 1].end_ns + INT64_C(60000000000) }) != 0)
		abort();
	j->n_culprits = large_culprits(l, j->culprits, MAX_CULPRITS);
	core_free(core);
	large_free(l);
	qsort(calls, n_calls, sizeof *calls, by_call);
}

static void end(struct job *j)
{
	facts_fini(&j->facts);
	free(j->truth);
}

static void check_tiles(const struct job *j)
{
	bool exact = j->cfg.max_offset_ns == 0;

	CLAIM(j->facts.paths.n == j->n_steps, "%s: %zu paths of %u steps", j->what, j->facts.paths.n,
	      j->n_steps);
	for (size_t i = 0; i < j->facts.paths.n; i++) {
		const struct fact_path *p = &j->facts.paths.v[i];
		const struct large_step *t = &j->truth[p->step];
		int64_t at_ns = p->begin_ns;

		for (size_t k = 0; k < p->n_segments; k++) {
			const struct fact_segment *s = &j->facts.segments.v[p->first_segment + k];

			CLAIM(s->begin_ns == at_ns && s->dur_ns >= 0, "%s: step %u, segment %zu", j->what,
			      p->step, k);
			at_ns += s->dur_ns;
		}
		CLAIM(at_ns == p->begin_ns + p->dur_ns, "%s: step %u ends elsewhere", j->what, p->step);
		CLAIM(p->complete, "%s: step %u is cut", j->what, p->step);
		CLAIM(llabs(p->dur_ns - t->dur_ns) <= (exact ? 0 : p->dur_err_ns + 100000),
		      "%s: step %u takes %" PRId64 ", not %" PRId64, j->what, p->step, t->dur_ns, p->dur_ns);
	}
}

/* Of the hand-overs that the clocks decide. */
static void check_hand_overs(const struct job *j)
{
	size_t n = 0, n_decided = 0;

	for (size_t i = 0; i < j->facts.segments.n; i++) {
		const struct fact_segment *s = &j->facts.segments.v[i];
		struct call key = { .seq = s->seq };
		const struct call *t;

		if (s->from_rank < 0 || s->group == UINT32_MAX)
			continue;
		n++;
		n_decided += !s->undecided;
		if (s->undecided)
			continue;
		snprintf(key.group, sizeof key.group, "%s", group_name(&j->facts, s->group));
		t = bsearch(&key, calls, n_calls, sizeof *calls, by_call);
		CLAIM(t && t->last_rank == s->from_rank, "%s: %s #%" PRIu64 " was handed over by %d, not %d",
		      j->what, key.group, s->seq, t ? t->last_rank : -1, s->from_rank);
	}
	printf("%-36s %6zu hand-overs, %5.1f %% decided\n", j->what, n,
	       100.0 * (double)n_decided / (double)(n ? n : 1));
}

static bool is_culprit(const struct job *j, const struct fact_blame *b)
{
	char link[24];

	if (j->cfg.fault == LARGE_SLOW_LINK) {
		snprintf(link, sizeof link, "tp %u", j->cfg.target);
		return b->kind == SEGMENT_TRANSFER && b->group != UINT32_MAX &&
		       strcmp(group_name(&j->facts, b->group), link) == 0;
	}
	if (b->kind != SEGMENT_HOST && b->kind != SEGMENT_KERNEL)
		return false;
	if (j->cfg.fault == LARGE_PAUSES)
		return true;
	for (size_t i = 0; i < j->n_culprits; i++)
		if (j->culprits[i] == b->rank)
			return true;
	return false;
}

/* What the fault costs over all steps that have it, and what is laid to it beyond what
 * noise alone puts there: of equals the path takes who is a little slower. */
static void check_blame(struct job *j, double tolerance)
{
	double cost_ns = 0, sum_ns[2][2] = { { 0 } }; /* before and since, others and culprits */
	double share = (double)(j->n_steps - j->cfg.from_step) / j->cfg.from_step, blamed_ns, others_ns;

	for (uint32_t i = j->cfg.from_step; i < j->n_steps; i++)
		cost_ns += (double)(j->truth[i].dur_ns - j->truth[i].healthy_dur_ns);
	for (size_t i = 0; i < j->facts.blames.n; i++) {
		const struct fact_blame *b = &j->facts.blames.v[i];

		if (b->excess_ns != FACT_NONE)
			sum_ns[b->step >= j->cfg.from_step][is_culprit(j, b)] += (double)b->excess_ns;
	}
	blamed_ns = sum_ns[1][1] - share * sum_ns[0][1];
	others_ns = sum_ns[1][0] - share * sum_ns[0][0];
	printf("%-36s costs %8.3f ms, blamed %8.3f ms (%+.1f %%), others %.3f ms\n", j->what, cost_ns / MS,
	       blamed_ns / MS, 100 * (blamed_ns / cost_ns - 1), others_ns / MS);
	CLAIM(blamed_ns > (1 - tolerance) * cost_ns && blamed_ns < (1 + tolerance) * cost_ns, "%s", j->what);
	CLAIM(others_ns < tolerance * cost_ns, "%s: others", j->what);
}

static void check_fault(enum large_fault fault, uint32_t target, double factor, const char *what)
{
	for (int device = 0; device < 2; device++) {
		struct job j = { .what = what, .n_steps = 20,
				 .cfg = { .dp = 4, .pp = 4, .tp = 4, .n_calls = 80, .n_micro = 8,
					  .compute_ns = 2 * MS, .transfer_ns = MS / 4, .noise = 0.02,
					  .seed = 11, .on_call = on_call, .fault = fault,
					  .ranks_a_host = 8, .target = target, .from_step = 5,
					  .factor = factor, .device = device } };

		play(&j);
		check_tiles(&j);
		check_blame(&j, 0.25);
		end(&j);
	}
}

/* Data-parallel alone: nothing but the fault decides. */
static void check_equals(enum large_fault fault, uint32_t target, double factor, const char *what)
{
	for (int device = 0; device < 2; device++) {
		struct job j = { .what = what, .n_steps = 40,
				 .cfg = { .dp = 32, .pp = 1, .tp = 1, .n_calls = 12,
					  .compute_ns = 3 * MS, .transfer_ns = MS / 2, .noise = 0.02,
					  .seed = 5, .on_call = on_call, .fault = fault, .target = target,
					  .from_step = 15, .factor = factor, .device = device } };

		play(&j);
		check_tiles(&j);
		check_blame(&j, 0.07);
		end(&j);
	}
}

int main(void)
{
	struct job j = { .what = "256 ranks, calls that block", .n_steps = 6,
			 .cfg = { .dp = 8, .pp = 4, .tp = 8, .n_calls = 100, .compute_ns = MS,
				  .transfer_ns = MS / 5, .noise = 0.05, .seed = 1, .on_call = on_call } };

	calls = calloc(MAX_CALLS, sizeof *calls);
	if (!calls)
		return 1;
	for (int device = 0; device < 2; device++) {
		j.cfg.device = device;
		j.cfg.max_offset_ns = 0;
		j.what = device ? "256 ranks, with devices" : "256 ranks, calls that block";
		play(&j);
		check_tiles(&j);
		check_hand_overs(&j);
		end(&j);
		j.cfg.max_offset_ns = 50 * MS;
		j.what = device ? "with devices, 32 clocks" : "calls that block, 32 clocks";
		play(&j);
		check_tiles(&j);
		check_hand_overs(&j);
		end(&j);
	}
	check_equals(LARGE_SLOW_RANK, 5, 1.3, "a slow rank of equals");
	check_equals(LARGE_SLOW_HOST, 1, 1.3, "a slow host of equals");
	check_equals(LARGE_PAUSES, 0, 30, "pauses of equals");
	check_fault(LARGE_SLOW_RANK, 1, 1.5, "a slow rank");
	check_fault(LARGE_SLOW_HOST, 1, 1.5, "a slow host");
	check_fault(LARGE_SLOW_STAGE, 2, 1.5, "a slow stage");
	check_fault(LARGE_SLOW_LINK, 3, 4, "a slow link");
	free(calls);
	printf("%u claims failed\n", n_failed);
	return n_failed != 0;
}
