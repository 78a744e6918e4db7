/* growth.c - memory.growth: a process's memory grows step for step.
 *
 * What it says: which memory, by how much a step, and from what to what.
 *
 * How it decides: of each step the lowest reading counts; the first quarter of the
 * steps (two at least) is warm-up. Over the rest the rise must be steady (trend.h): no
 * plateau, no saw, no single jump. While the job runs 48 steps are needed, at its end or
 * after a failed allocation 10. Below a tenth of the level and 100 MB it is nothing;
 * above, it ends in a full device sooner or later. What is used (allocated, active,
 * resident) counts before what is only reserved. Certain where an allocation failed too.
 *
 * Neighbours: memory.prefetch_depth and memory.deferred_free (it rises and falls within a
 * step), memory.fragmentation (reserved grows, what is used does not).
 */
#include "growth.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define LEAST_STEPS 10
#define LEAST_STEPS_LIVE 48
#define LEAST_GROWTH 0.1 /* of the level */
#define LEAST_GB 0.1

/* Two neighbours become one, so that a long run still fits. */
static unsigned halve(double *x, double *y, unsigned n)
{
	for (unsigned i = 0; i < n / 2; i++) {
		x[i] = (x[2 * i] + x[2 * i + 1]) / 2;
		y[i] = y[2 * i] < y[2 * i + 1] ? y[2 * i] : y[2 * i + 1];
	}
	return n / 2;
}

bool growth_of(const struct rules *r, uint32_t proc, const char *name, uint32_t least,
	       struct growth *ret)
{
	double unit, x[GAUGE_KEEP], y[GAUGE_KEEP];
	const struct gauge_series *s = memory_gauge(r, proc, name, &unit);
	unsigned n = 0, warm;

	for (uint32_t i = 0; s && i < s->n; i++) {
		/* Of a program without steps the order of its readings has to do, once it is over. */
		bool stepless = s->last.step == EVENT_STEP_UNKNOWN && r->finishing;
		double step = stepless ? i : s->v[i].step, v = s->v[i].value * unit;

		if (!stepless && s->v[i].step == EVENT_STEP_UNKNOWN)
			continue;
		if (n > 0 && x[n - 1] >= step) {
			y[n - 1] = v < y[n - 1] ? v : y[n - 1];
			continue;
		}
		x[n] = step;
		y[n++] = v;
	}
	if (n < least)
		return false;
	warm = n / 4 > 2 ? n / 4 : 2;
	*ret = (struct growth){ .name = name, .first_step = (uint32_t)x[warm],
				.last_step = (uint32_t)x[n - 1], .n = n - warm };
	n -= warm;
	for (unsigned i = 0; i < n; i++) {
		x[i] = x[i + warm];
		y[i] = y[i + warm];
	}
	while (n > TREND_MAX)
		n = halve(x, y, n);
	return trend_of(x, y, n, &ret->trend);
}

static bool grows(const struct growth *g)
{
	return g->trend.steady && g->trend.rise >= LEAST_GB &&
	       g->trend.rise >= LEAST_GROWTH * g->trend.begin;
}

static bool of_proc(const struct rules *r, uint32_t proc, struct growth *ret)
{
	static const char *const names[] = { "allocated", "active", "rss", "reserved" };
	/* What has ended in a failure will not level out. */
	bool over = r->finishing || r->side.n_of_kind[SIDE_ALLOC_FAILED] > 0;
	uint32_t least = over ? LEAST_STEPS : LEAST_STEPS_LIVE;
	bool used_known = false;

	for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
		bool known = growth_of(r, proc, names[k], least, ret);

		if (known && (k < 3 || !used_known) && grows(ret))
			return true;
		used_known |= known && k < 2;
	}
	return false;
}

static int tell(struct rules *r, const struct growth *g, const bool *is, uint32_t n_is, uint32_t n_of)
{
	char sentence[600], detail[200];
	struct finding f = { .class_name = "memory.growth", .confidence = CONFIDENCE_LIKELY,
			     .step = g->first_step, .last_step = g->last_step, .onset_ns = FACT_NONE,
			     .sentence = sentence, .detail = detail };
	struct memory_failure failure;
	bool failed = memory_failed(r, UINT32_MAX, &failure);

	memory_culprits(r, is, n_is, n_of, &f);
	if (failed)
		f.confidence = CONFIDENCE_CERTAIN;
	snprintf(detail, sizeof detail, "%s memory, %.3g MB a step (%.3g to %.3g), from %.3g to %.3g GB over %u steps",
		 g->name, g->trend.slope * 1e3, g->trend.low * 1e3, g->trend.high * 1e3, g->trend.begin,
		 g->trend.begin + g->trend.rise, g->last_step - g->first_step + 1);
	snprintf(sentence, sizeof sentence,
		 "Memory grows step for step: %s%s. Something keeps what a step made: a list of losses with their "
		 "graphs, a cache without a limit, a hook that holds tensors.", detail,
		 failed ? ", and an allocation failed" : "");
	f.evidence_json = "[{\"view\":\"gauge\"}]";
	f.rules_out_json = "[\"memory.prefetch_depth: it does not fall again within a step\","
			   "\"memory.fragmentation: what is in use grows, or nothing else is known\"]";
	return memory_tell(r, &r->once.growth, true, failed ? &failure : NULL, &f);
}

int growth_look(struct rules *r)
{
	uint32_t n = r->ledger.roster->n_procs, n_is = 0, n_of = 0;
	struct growth first = { .name = NULL };
	bool *is;
	int e = 0;

	if (r->gauges.n == 0 || n == 0 || (r->once.growth.life == r->life && r->once.growth.above) ||
	    (!r->finishing && r->now_ns - r->once.growth_now_ns < MEMORY_TREND_LOOK_NS))
		return 0;
	r->once.growth_now_ns = r->now_ns;
	is = calloc(n, sizeof *is);
	if (!is)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		struct growth g;

		if (!memory_counts(r, i))
			continue;
		n_of++;
		is[i] = of_proc(r, i, &g);
		n_is += is[i];
		if (is[i] && (!first.name || g.trend.slope > first.trend.slope))
			first = g;
	}
	if (n_is > 0)
		e = tell(r, &first, is, n_is, n_of);
	free(is);
	return e;
}
