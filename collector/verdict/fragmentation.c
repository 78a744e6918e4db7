/* fragmentation.c - memory.fragmentation: far more is reserved than is in use, and it is of no use.
 *
 * What it says: how much is reserved and how much of it used, and what allocation
 * failed although there was room for it in pieces.
 *
 * How it decides: a cache that keeps what a peak once needed is healthy, so a gap
 * alone is nothing. It is fragmentation where an allocation fails (or is tried again)
 * that is smaller than what is reserved and not used, and that gap is a quarter of
 * what is reserved: certain by that record's own numbers. Or where what is reserved
 * grows steadily (trend.h) and what is used does not: likely.
 *
 * Neighbours: memory.growth (what is used grows), memory.prefetch_depth and
 * memory.deferred_free (known what the reserved memory was needed for).
 */
#include "growth.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define LEAST_GAP 0.25
#define LEAST_STEPS 10
#define LEAST_STEPS_LIVE 48
#define LEAST_GROWTH 0.1

struct fragments {
	uint32_t n_is, n_of, n_failed;
	bool *is;
	double reserved_gb, used_gb, asked_gb; /* asked: 0 = nothing failed */
};

/* The last reading until then, in gigabytes; 0 none. */
static double reading(const struct rules *r, uint32_t proc, const char *name, int64_t until_ns)
{
	double unit, last = 0;
	const struct gauge_series *s = memory_gauge(r, proc, name, &unit);

	for (uint32_t i = 0; s && i < s->n && s->v[i].at_ns <= until_ns; i++)
		last = s->v[i].value * unit;
	return last;
}

static bool failed_inside(const struct rules *r, uint32_t proc, struct fragments *ret)
{
	struct memory_failure f;

	if (!memory_failed(r, proc, &f) || f.gb <= 0)
		return false;
	if (f.reserved_gb <= 0)
		f.reserved_gb = reading(r, proc, "reserved", f.at_ns);
	if (f.allocated_gb <= 0)
		f.allocated_gb = reading(r, proc, "allocated", f.at_ns);
	if (f.allocated_gb <= 0)
		f.allocated_gb = reading(r, proc, "active", f.at_ns);
	if (f.allocated_gb <= 0 || f.reserved_gb - f.allocated_gb < f.gb ||
	    f.reserved_gb - f.allocated_gb < LEAST_GAP * f.reserved_gb)
		return false;
	ret->n_failed += f.n;
	ret->reserved_gb = f.reserved_gb;
	ret->used_gb = f.allocated_gb;
	ret->asked_gb = f.gb;
	return true;
}

static bool only_reserved_grows(const struct rules *r, uint32_t proc, struct fragments *ret)
{
	uint32_t least = r->finishing ? LEAST_STEPS : LEAST_STEPS_LIVE;
	struct growth reserved, used;

	if (!growth_of(r, proc, "reserved", least, &reserved) ||
	    (!growth_of(r, proc, "allocated", least, &used) && !growth_of(r, proc, "active", least, &used)))
		return false;
	if (!reserved.trend.steady || reserved.trend.rise < LEAST_GROWTH * reserved.trend.begin ||
	    used.trend.rise > reserved.trend.rise / 4 ||
	    memory_high_gb(r, proc, "reserved") - memory_used_gb(r, proc) <
		    LEAST_GAP * memory_high_gb(r, proc, "reserved"))
		return false;
	ret->reserved_gb = memory_high_gb(r, proc, "reserved");
	ret->used_gb = memory_used_gb(r, proc);
	return true;
}

static int tell(struct rules *r, const struct fragments *v)
{
	char sentence[600], detail[200], asked[100] = "";
	struct finding f = { .class_name = "memory.fragmentation",
			     .confidence = v->asked_gb > 0 ? CONFIDENCE_CERTAIN : CONFIDENCE_LIKELY,
			     .step = EVENT_STEP_UNKNOWN, .onset_ns = FACT_NONE, .sentence = sentence,
			     .detail = detail };
	struct memory_failure failure;
	bool failed = memory_failed(r, UINT32_MAX, &failure);

	memory_culprits(r, v->is, v->n_is, v->n_of, &f);
	if (v->asked_gb > 0)
		snprintf(asked, sizeof asked, ", and %.3g GB could not be had (%u times)", v->asked_gb,
			 v->n_failed);
	snprintf(detail, sizeof detail, "%.3g GB reserved, %.3g GB used%s", v->reserved_gb, v->used_gb, asked);
	snprintf(sentence, sizeof sentence,
		 "Reserved memory lies in pieces that nothing fits into: %s. Let segments grow "
		 "(PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True), or use fewer different sizes.", detail);
	f.evidence_json = "[{\"view\":\"record\",\"category\":\"mem.alloc_failed\"},"
			  "{\"view\":\"gauge\",\"name\":\"reserved_gb\"}]";
	f.rules_out_json = "[\"memory.growth: what is in use does not grow\"]";
	return memory_tell(r, &r->once.fragmentation, true, failed ? &failure : NULL, &f);
}

int fragmentation_look(struct rules *r)
{
	uint32_t n = r->ledger.roster->n_procs;
	struct fragments v = { .is = NULL };
	int e = 0;

	if (r->side.n + r->gauges.n == 0 || n == 0 ||
	    (r->once.fragmentation.life == r->life && r->once.fragmentation.above) ||
	    (!r->finishing && r->now_ns - r->once.fragmentation_now_ns < MEMORY_TREND_LOOK_NS))
		return 0;
	r->once.fragmentation_now_ns = r->now_ns;
	v.is = calloc(n, sizeof *v.is);
	if (!v.is)
		return -ENOMEM;
	/* Where something failed, those it failed for; a trend is asked about otherwise. */
	for (unsigned pass = 0; pass < 2 && v.n_is == 0; pass++)
		for (uint32_t i = 0; i < n; i++) {
			if (!memory_counts(r, i))
				continue;
			v.n_of += pass == 0;
			v.is[i] = pass == 0 ? failed_inside(r, i, &v) : only_reserved_grows(r, i, &v);
			v.n_is += v.is[i];
		}
	if (v.n_is > 0)
		e = tell(r, &v);
	free(v.is);
	return e;
}
