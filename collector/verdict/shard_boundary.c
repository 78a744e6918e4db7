/* shard_boundary.c - memory.shard_boundary: one sharded unit is too large against the others.
 *
 * What it says: the module that is one unit, its size and that of the usual unit.
 *
 * How it decides: the sizes of the units that the sharding made. One of four times the
 * median of the others or more is too large, and so is one that is all there is. Many
 * models have such a unit and room for it, so it is above a notice only with its
 * consequence: an allocation of that unit's size fails (certain), memory rises where the
 * unit is told, or the peak above the usual level is as large as what this unit
 * has beyond the others. Activations make peaks too, of any other size.
 *
 * Neighbours: memory.prefetch_depth (many units at a time), memory.growth, memory.fragmentation.
 */
#include "memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define LEAST_RATIO 4.0
#define LEAST_PEAK 0.5

struct unit {
	double bytes;
	const char *module;
	uint32_t proc;
};

static int by_bytes(const void *a, const void *b)
{
	double x = ((const struct unit *)a)->bytes, y = ((const struct unit *)b)->bytes;

	return (x > y) - (x < y);
}

/* The units of the process whose largest is the largest of all; all processes have the same. */
static size_t collect(const struct rules *r, struct unit *v)
{
	size_t n = 0;
	double most = 0;
	uint32_t proc = UINT32_MAX;

	for (size_t i = 0; i < r->side.n; i++) {
		const struct side_record *s = &r->side.v[i];

		if (s->kind == SIDE_UNIT && memory_counts(r, s->proc) && side_real(s, "bytes", 0) > most) {
			most = side_real(s, "bytes", 0);
			proc = s->proc;
		}
	}
	for (size_t i = 0; i < r->side.n; i++) {
		const struct side_record *s = &r->side.v[i];

		if (s->kind == SIDE_UNIT && s->proc == proc && side_real(s, "bytes", 0) > 0)
			v[n++] = (struct unit){ side_real(s, "bytes", 0), side_text(s, "module"), proc };
	}
	qsort(v, n, sizeof *v, by_bytes);
	return n;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static bool is_between(double v, double low, double high)
{
	return v >= low && v <= high;
}

/* By how much the first reading behind the unit's record is above the last one before it. */
static double step_up_gb(const struct rules *r, const struct unit *u, const struct gauge_series *s)
{
	double most = 0;

	for (size_t i = 0; i < r->side.n; i++) {
		const struct side_record *v = &r->side.v[i];
		uint32_t k = 0;

		if (v->kind != SIDE_UNIT || v->proc != u->proc || side_real(v, "bytes", 0) < u->bytes)
			continue;
		while (k < s->n && s->v[k].at_ns < v->at_ns)
			k++;
		if (k > 0 && k < s->n && s->v[k].value - s->v[k - 1].value > most)
			most = s->v[k].value - s->v[k - 1].value;
	}
	return most;
}

/* Memory rises where the unit is told, or its peak above the usual level has the unit's size. */
static bool has_peak(const struct rules *r, const struct unit *u, double beyond_gb)
{
	static const char *const names[] = { "reserved", "allocated", "active" };

	for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
		double unit, v[GAUGE_KEEP];
		const struct gauge_series *s = memory_gauge(r, u->proc, names[k], &unit);

		if (!s || s->n < 2)
			continue;
		for (uint32_t i = 0; i < s->n; i++)
			v[i] = s->v[i].value;
		qsort(v, s->n, sizeof *v, by_value);
		if (step_up_gb(r, u, s) * unit >= LEAST_PEAK * beyond_gb ||
		    is_between((s->high.value - v[(s->n - 1) / 2]) * unit, 0.7 * beyond_gb, 1.4 * beyond_gb))
			return true;
	}
	return false;
}

static int tell(struct rules *r, const struct unit *v, size_t n, double usual)
{
	const struct unit *large = &v[n - 1];
	char sentence[600], detail[200];
	struct finding f = { .class_name = "memory.shard_boundary", .confidence = CONFIDENCE_LIKELY,
			     .step = EVENT_STEP_UNKNOWN, .onset_ns = FACT_NONE, .sentence = sentence,
			     .detail = detail, .module = large->module };
	double size_gb = large->bytes * 1e-9, beyond_gb = (large->bytes - usual) * 1e-9;
	struct memory_failure failure;
	bool failed = memory_failed(r, UINT32_MAX, &failure), above;

	/* Gathered in half or twice the width that it is kept in. */
	if (failed && is_between(failure.gb, 0.5 * size_gb, 2.2 * size_gb))
		f.confidence = CONFIDENCE_CERTAIN;
	above = f.confidence == CONFIDENCE_CERTAIN || (failed && failure.gb <= 0) ||
		has_peak(r, large, beyond_gb);
	if (!above && !r->finishing)
		return 0;
	if (n > 1)
		snprintf(detail, sizeof detail, "%.80s is one unit of %.3g GB, the %zu others have about %.3g GB",
			 large->module ? large->module : "a module", size_gb, n - 1, usual * 1e-9);
	else
		snprintf(detail, sizeof detail, "%.80s is the only unit, of %.3g GB",
			 large->module ? large->module : "a module", size_gb);
	snprintf(sentence, sizeof sentence,
		 "One sharded unit is too large: %s. All of it is gathered at once%s. Wrap its parts as units of "
		 "their own.", detail, failed ? ", and an allocation failed" :
		 above			      ? ", and memory has its peak there" : "");
	f.evidence_json = "[{\"view\":\"record\",\"category\":\"mem.unit\"},"
			  "{\"view\":\"record\",\"category\":\"mem.alloc_failed\"}]";
	f.rules_out_json = "[\"memory.growth: the peak is one unit's\"]";
	return memory_tell(r, &r->once.shard, above, failed ? &failure : NULL, &f);
}

int shard_boundary_look(struct rules *r)
{
	struct unit *v;
	double usual;
	size_t n;
	int e = 0;

	if (r->side.n_of_kind[SIDE_UNIT] == 0 || (r->once.shard.life == r->life && r->once.shard.above) ||
	    (!r->finishing && r->once.n_shard_seen == r->side.n))
		return 0;
	r->once.n_shard_seen = r->side.n;
	v = calloc(r->side.n, sizeof *v);
	if (!v)
		return -ENOMEM;
	n = collect(r, v);
	usual = n > 1 ? v[(n - 1) / 2].bytes : 0; /* with the largest left out */
	if (n > 1 ? v[n - 1].bytes >= LEAST_RATIO * usual : n == 1)
		e = tell(r, v, n, usual);
	free(v);
	return e;
}
