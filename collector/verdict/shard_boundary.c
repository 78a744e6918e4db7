/* shard_boundary.c - memory.shard_boundary: one sharded unit is too large against the others.
 *
 * What it says: the module that is one unit, its size and that of the usual unit.
 *
 * How it decides: the sizes of the units that the sharding made. One of four times the
 * median of the others or more is too large, and so is one that is all there is. Many
 * models have such a unit and room for it, so it is above a notice only with its
 * consequence: an allocation fails, or what is reserved or used has a peak above its
 * usual level that is half of what this unit has beyond the others. Certain where
 * the allocation that failed is of that unit's size.
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

/* How far the highest reading is above the middle one, in gigabytes. */
static double peak_gb(const struct rules *r, uint32_t proc)
{
	static const char *const names[] = { "reserved", "allocated", "active" };
	double most = 0;

	for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
		double unit, v[GAUGE_KEEP];
		const struct gauge_series *s = memory_gauge(r, proc, names[k], &unit);

		for (uint32_t i = 0; s && i < s->n; i++)
			v[i] = s->v[i].value;
		if (!s || s->n < 2)
			continue;
		qsort(v, s->n, sizeof *v, by_value);
		v[0] = (s->high.value - v[(s->n - 1) / 2]) * unit;
		most = v[0] > most ? v[0] : most;
	}
	return most;
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

	above = failed || (beyond_gb > 0 && peak_gb(r, large->proc) >= LEAST_PEAK * beyond_gb);
	if (!above && !r->finishing)
		return 0;
	if (failed && failure.gb >= 0.5 * size_gb && failure.gb <= 2.2 * size_gb)
		f.confidence = CONFIDENCE_CERTAIN;
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
