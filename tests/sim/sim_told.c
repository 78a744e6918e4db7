/* sim_told - is a cause told as soon in a job of 4,096 ranks as in one of 16?
 *
 * The same fault is planted in both. In the large one the cause must be told at most a
 * second of the collector's time later, the same class, and its culprit named; and no
 * tick may take a second of a core. Exit 1 when it is not so.
 */
#include "../../collector/core.h"
#include "../../sim/large.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MS 1000000
#define SECOND_NS INT64_C(1000000000)
#define N_STEPS 60
#define WAIT_S 90 /* until a standstill is told */

struct told {
	char class_name[48], culprit[120];
	int64_t after_ns;  /* the fault's first step began */
	double longest_s;  /* processor time of a tick without events */
};

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* True when one above a notice is there. */
static bool take(const struct facts *f, int64_t from_ns, struct told *ret)
{
	for (size_t i = 0; i < f->verdicts.n; i++) {
		const struct fact_verdict *v = &f->verdicts.v[i];

		if (v->severity == SEVERITY_NOTICE)
			continue;
		snprintf(ret->class_name, sizeof ret->class_name, "%s", v->class_name);
		snprintf(ret->culprit, sizeof ret->culprit, "%s", v->culprit_json);
		ret->after_ns = v->detected_ns - from_ns;
		return true;
	}
	return false;
}

/* Nothing more comes, but time passes. */
static bool wait_for(struct core *core, struct facts *facts, int64_t end_ns, int64_t from_ns, struct told *ret)
{
	for (int64_t i = 1; i <= 10 * WAIT_S; i++) {
		double begin_s = now_s();

		if (core_tick(core, (fleet_time){ end_ns + i * SECOND_NS / 10 }) != 0)
			abort();
		if (now_s() - begin_s > ret->longest_s)
			ret->longest_s = now_s() - begin_s;
		if (take(facts, from_ns, ret))
			return true;
		facts_clear(facts);
	}
	return false;
}

static bool play(const struct large_config *cfg, struct told *ret)
{
	struct large_step truth;
	struct facts facts;
	struct core *core;
	struct large *l;
	int64_t from_ns = 0;
	bool found = false;

	*ret = (struct told){ 0 };
	facts_init(&facts);
	if (large_new(&l, cfg) != 0 || core_new(&core, NULL, &facts) != 0 || large_introduce(l, core) != 0)
		abort();
	for (uint32_t i = 0; i < N_STEPS && !found && large_next(l, &truth) == 0; i++) {
		if (large_feed(l, core) != 0)
			abort();
		from_ns = i == cfg->from_step ? truth.begin_ns : from_ns;
		found = take(&facts, from_ns, ret);
		facts_clear(&facts);
		if (truth.hangs && !found) {
			found = wait_for(core, &facts, truth.end_ns, from_ns, ret);
			break;
		}
	}
	core_free(core);
	large_free(l);
	facts_fini(&facts);
	return found;
}

static unsigned check(enum large_fault fault, const char *what, const char *culprit)
{
	struct large_config small = { .dp = 4, .pp = 1, .tp = 4, .n_calls = 24, .compute_ns = 20 * MS,
				      .transfer_ns = 2 * MS, .noise = 0.03, .seed = 17, .device = true,
				      .ranks_a_host = 4, .fault = fault, .target = 2, .from_step = 20,
				      .factor = fault == LARGE_SLOW_LINK ? 3 : 1.2 };
	struct large_config large = small;
	struct told a, b;
	bool has_a, has_b, fine;

	large.dp = 1024;
	has_a = play(&small, &a);
	has_b = play(&large, &b);
	fine = has_a && has_b && strcmp(a.class_name, b.class_name) == 0 && strstr(b.culprit, culprit) &&
	       b.after_ns <= a.after_ns + SECOND_NS && b.longest_s < 1;
	printf("%-14s 16 ranks: %s after %.1f s; 4096: %s after %.1f s, %s; longest tick %.3f s%s\n", what,
	       a.class_name, (double)a.after_ns / 1e9, b.class_name, (double)b.after_ns / 1e9, b.culprit,
	       b.longest_s, fine ? "" : "  NOT SO");
	return !fine;
}

int main(void)
{
	unsigned n_failed = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);

	n_failed += check(LARGE_SLOW_RANK, "a slow rank", "\"ranks\":[2]");
	n_failed += check(LARGE_SLOW_HOST, "a slow host", "\"host\":\"host-2\"");
	n_failed += check(LARGE_SLOW_LINK, "a slow link", "host-2");
	n_failed += check(LARGE_SKIPPED, "a call left out", "\"ranks\":[2]");
	return n_failed != 0;
}
