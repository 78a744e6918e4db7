/* sim_large - does the core find in large jobs what was put into them?
 *
 * Every call's first and last arrival, last rank and end are compared with the
 * generator's, in both kinds of job and with clocks of the hosts' own; steps with
 * their durations; a job of every fault against the same job without it.
 * Exit 1 when a claim fails.
 */
#include "../../collector/core.h"
#include "../../sim/large.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS 1000000
#define MAX_CALLS 200000

struct call {
	char group[24];
	uint64_t seq;
	int32_t last_rank;
	int64_t first_ns, last_ns, end_ns;
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
	(void)arg;
	if (n_calls == MAX_CALLS)
		abort();
	calls[n_calls] = (struct call){ .seq = seq, .last_rank = last_rank, .first_ns = first_ns,
					.last_ns = last_ns, .end_ns = end_ns };
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

/* The last word on each call against the truth. */
static void check_calls(const struct facts *f, const char *what, bool exact)
{
	size_t n_seen = 0, n_decided = 0;

	qsort(calls, n_calls, sizeof *calls, by_call);
	for (size_t i = 0; i < f->collectives.n; i++) {
		const struct fact_collective *c = &f->collectives.v[i];
		int64_t slack_ns = exact ? 0 : c->skew_err_ns + 200000;
		struct call key = { .seq = c->seq };
		const struct call *t;

		snprintf(key.group, sizeof key.group, "%s", group_name(f, c->group));
		t = bsearch(&key, calls, n_calls, sizeof *calls, by_call);
		if (!t || c->n_seen < c->n_expected)
			continue; /* hangs, or told before all were there */
		n_seen++;
		n_decided += c->decided;
		CLAIM(llabs(c->first_arrival_ns - t->first_ns) <= slack_ns &&
			      llabs(c->last_arrival_ns - t->last_ns) <= slack_ns,
		      "%s: arrivals of %s #%" PRIu64, what, t->group, t->seq);
		CLAIM(!c->decided || c->last_rank == t->last_rank, "%s: last of %s #%" PRIu64 " is %d, not %d",
		      what, t->group, t->seq, t->last_rank, c->last_rank);
		CLAIM(!exact || c->end_ns == t->end_ns, "%s: end of %s #%" PRIu64, what, t->group,
		      t->seq);
		CLAIM(!c->mismatch, "%s: %s #%" PRIu64 " does not match", what, t->group, t->seq);
	}
	CLAIM(n_seen >= n_calls, "%s: %zu of %zu calls were told", what, n_seen, n_calls);
	printf("%-36s %6zu calls, %5.1f %% decided\n", what, n_calls,
	       100.0 * (double)n_decided / (double)(n_seen ? n_seen : 1));
}

static void check_step(const struct facts *f, uint32_t step, const struct large_step *t,
		       const char *what, bool exact)
{
	for (size_t i = f->steps.n; i-- > 0;) {
		const struct fact_step *s = &f->steps.v[i];

		if (s->step != step)
			continue;
		CLAIM(s->complete != t->hangs, "%s: step %u", what, step);
		CLAIM(!exact || t->hangs || s->dur_ns == t->dur_ns, "%s: step %u took %" PRId64 ", not %" PRId64,
		      what, step, t->dur_ns, s->dur_ns);
		return;
	}
	CLAIM(t->hangs, "%s: step %u was not told", what, step);
}

/* What the fault adds to its steps, as a share. */
static double run(const struct large_config *cfg, uint32_t n_steps, const char *what,
		  struct facts *facts, bool *hung)
{
	struct large_step *truth = calloc(n_steps, sizeof *truth);
	double real = 0, healthy = 0;
	struct core *core;
	struct large *l;
	uint32_t n = 0;

	n_calls = 0;
	facts_init(facts);
	if (!truth || large_new(&l, cfg) != 0 || core_new(&core, NULL, facts) != 0 ||
	    large_introduce(l, core) != 0)
		abort();
	while (n < n_steps && large_next(l, &truth[n]) == 0) {
		if (large_feed(l, core) != 0)
			abort();
		if (n >= cfg->from_step && !truth[n].hangs) {
			real += (double)truth[n].dur_ns;
			healthy += (double)truth[n].healthy_dur_ns;
		}
		n++;
	}
	*hung = n > 0 && truth[n - 1].hangs;
	if (core_finish(core, (fleet_time){ truth[n - 1].end_ns + INT64_C(60000000000) }) != 0)
		abort();
	for (uint32_t i = 0; i < n; i++)
		check_step(facts, i, &truth[i], what, cfg->max_offset_ns == 0);
	check_calls(facts, what, cfg->max_offset_ns == 0);
	core_free(core);
	large_free(l);
	free(truth);
	return healthy > 0 ? real / healthy - 1 : 0;
}

static unsigned n_loud(const struct facts *f)
{
	unsigned n = 0;

	for (size_t i = 0; i < f->verdicts.n; i++)
		n += f->verdicts.v[i].severity != SEVERITY_NOTICE;
	return n;
}

static void check_fault(enum large_fault fault, const char *what, double lo, double hi)
{
	struct large_config cfg = { .dp = 4, .pp = 2, .tp = 4, .n_calls = 40, .n_micro = 4,
				    .compute_ns = 2 * MS, .transfer_ns = MS / 4, .noise = 0.02,
				    .seed = 11, .on_call = on_call, .fault = fault, .target = 1,
				    .from_step = 5, .factor = fault == LARGE_PAUSES ? 10 : 1.5 };
	struct facts facts;
	double cost;
	bool hung;

	cost = run(&cfg, 30, what, &facts, &hung);
	CLAIM(cost >= lo && cost <= hi, "%s: costs %.3f", what, cost);
	CLAIM(hung == (fault == LARGE_SKIPPED), "%s", what);
	facts_fini(&facts);
}

static void check_slow_rank(void)
{
	struct large_config cfg = { .dp = 16, .pp = 1, .tp = 1, .n_calls = 10, .compute_ns = 3 * MS,
				    .transfer_ns = MS / 2, .noise = 0.03, .seed = 3, .on_call = on_call,
				    .fault = LARGE_SLOW_RANK, .target = 5, .from_step = 40,
				    .factor = 1.3 };
	struct facts facts;
	unsigned n_right = 0;
	bool hung;

	run(&cfg, 300, "one slow rank of sixteen", &facts, &hung);
	for (size_t i = 0; i < facts.verdicts.n; i++)
		n_right += strcmp(facts.verdicts.v[i].class_name, "slow.fixed_rank") == 0 &&
			   strstr(facts.verdicts.v[i].culprit_json, "[5]") != NULL;
	CLAIM(n_right > 0 && n_right == n_loud(&facts), "the slow rank and nobody else");
	facts_fini(&facts);

	cfg.fault = LARGE_HEALTHY;
	run(&cfg, 300, "the same without it", &facts, &hung);
	CLAIM(n_loud(&facts) == 0, "healthy");
	facts_fini(&facts);
}

/* Where devices tell: which class, of which culprit; nothing for what is healthy. */
static void check_devices(enum large_fault fault, const char *what, const char *class_name,
			  const char *culprit)
{
	struct large_config cfg = { .dp = 4, .pp = 1, .tp = 4, .n_calls = 24, .compute_ns = 2 * MS,
				    .transfer_ns = MS / 4, .noise = 0.03, .seed = 17, .device = true,
				    .on_call = on_call, .ranks_a_host = 4, .fault = fault, .target = 2,
				    .from_step = 12, .factor = fault == LARGE_PAUSES ? 8 : 1.2 };
	unsigned n_right = 0;
	struct facts facts;
	bool hung;

	run(&cfg, 45, what, &facts, &hung);
	for (size_t i = 0; i < facts.verdicts.n; i++) {
		const struct fact_verdict *v = &facts.verdicts.v[i];

		if (v->severity != SEVERITY_NOTICE && !class_name)
			printf("%s\n", v->sentence);
		n_right += class_name && strcmp(v->class_name, class_name) == 0 &&
			   strstr(v->culprit_json, culprit) && v->first_step == 12;
	}
	CLAIM(class_name ? n_right > 0 && n_right == n_loud(&facts) : n_loud(&facts) == 0, "%s: %u of %u",
	      what, n_right, n_loud(&facts));
	facts_fini(&facts);
}

int main(void)
{
	struct large_config cfg = { .dp = 8, .pp = 4, .tp = 8, .n_calls = 100, .compute_ns = MS,
				    .transfer_ns = MS / 5, .noise = 0.05, .seed = 1, .on_call = on_call };
	struct facts facts;
	bool hung;

	calls = calloc(MAX_CALLS, sizeof *calls);
	if (!calls)
		return 1;
	run(&cfg, 8, "256 ranks, calls that block", &facts, &hung);
	facts_fini(&facts);
	cfg.device = true;
	run(&cfg, 8, "256 ranks, with devices", &facts, &hung);
	facts_fini(&facts);
	cfg.max_offset_ns = 50 * MS;
	run(&cfg, 8, "256 ranks, 32 clocks", &facts, &hung);
	facts_fini(&facts);

	/* A slow rank holds its stage, and so the pipeline, in every micro-batch. */
	check_fault(LARGE_SLOW_RANK, "a slow rank", 0.2, 0.5);
	check_fault(LARGE_SLOW_HOST, "a slow host", 0.2, 0.5);
	check_fault(LARGE_SLOW_STAGE, "a slow stage", 0.2, 0.5);
	check_fault(LARGE_SLOW_ALL, "all slow", 0.3, 0.5);
	check_fault(LARGE_SLOW_LINK, "a slow link", 0.01, 0.1);
	check_fault(LARGE_PAUSES, "pauses here and there", 0.05, 0.3);
	check_fault(LARGE_SKIPPED, "a call left out", -0.001, 0.001);
	check_fault(LARGE_HEALTHY, "healthy", -1e-9, 1e-9);
	check_slow_rank();
	check_devices(LARGE_SLOW_RANK, "a slow device", "slow.fixed_rank", "\"ranks\":[2]");
	check_devices(LARGE_SLOW_HOST, "four slow devices", "slow.fixed_host", "\"host\":\"host-2\"");
	check_devices(LARGE_SLOW_ALL, "all devices slow", "slow.global", "\"ranks\":[]");
	check_devices(LARGE_PAUSES, "pauses of devices", NULL, NULL);
	check_devices(LARGE_HEALTHY, "healthy devices", NULL, NULL);
	free(calls);
	printf("%u claims failed\n", n_failed);
	return n_failed != 0;
}
