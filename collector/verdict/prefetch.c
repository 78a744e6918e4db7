/* prefetch.c - memory.prefetch_depth: too many gathers are in flight before the first is used.
 *
 * What it says: how many gathers a host had submitted when the kernel that waits for
 * the first of them began, against a limit of two, and what reserved memory rose
 * to; the ranks where only a few do so, nobody where most do: then it is a setting.
 *
 * How it decides: units in flight counted from the submits, the waits between
 * launches and the begins of kernels of one process (gathers.h), so no clock is compared.
 * Four or more are deep. That alone is a notice: small gathers cost little. Above it
 * memory has to follow: what is reserved rises by a quarter while they are in flight and
 * does not fall, or far more is reserved than is ever used, or an allocation fails. A program
 * that does not ask for more ahead than a limiter allows, and whose host only runs ahead of its
 * device, is not blamed for a rise of what is in use.
 *
 * Neighbours: memory.growth (it rises step for step and never falls, whatever is in
 * flight), memory.deferred_free (buffers stay after their use, not before it),
 * memory.shard_boundary (one unit is too large).
 */
#include "memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define LIMIT 2
#define LEAST_RISE 0.25
#define LEAST_SPARE_RISING 1.3 /* reserved over used, where it rises */
#define LEAST_SPARE 2.0	       /* reserved over used, where it does not */

struct prefetch {
	uint32_t n_procs, n_deep, n_gathers, n_units, step;
	bool *deep; /* by process */
	double rise, reserved_gb, used_gb;
};

static void find(const struct rules *r, struct prefetch *ret)
{
	for (uint32_t i = 0; i < r->ledger.roster->n_procs; i++) {
		const struct gathers_proc *p = gathers_of(&r->gathers, i);
		double rise, reserved_gb, used_gb;
		bool ahead;

		if (!p || !memory_counts(r, i))
			continue;
		ret->n_procs++;
		if (p->deepest.depth < GATHERS_DEEP)
			continue;
		ret->deep[i] = true;
		if (ret->n_deep++ == 0 || p->deepest.depth > ret->n_units) {
			ret->n_units = p->deepest.depth;
			ret->n_gathers = p->deepest.n_in_flight;
			ret->step = p->deepest.step;
		}
		reserved_gb = memory_high_gb(r, i, "reserved");
		used_gb = memory_used_gb(r, i);
		ahead = p->most_ahead >= GATHERS_DEEP;
		rise = memory_rise(r, i, p->first_ns, p->last_ns, ahead);
		if (!ahead && used_gb > 0 && reserved_gb < LEAST_SPARE_RISING * used_gb)
			rise = 0; /* what is used rises as well */
		if (rise > ret->rise || ret->reserved_gb < reserved_gb) {
			ret->rise = rise > ret->rise ? rise : ret->rise;
			ret->reserved_gb = reserved_gb;
			ret->used_gb = used_gb;
		}
	}
}

static int tell(struct rules *r, const struct prefetch *v, const struct memory_failure *failure,
		bool above)
{
	char sentence[700], detail[200], memory[160] = "";
	struct finding f = { .class_name = "memory.prefetch_depth", .confidence = CONFIDENCE_CERTAIN,
			     .step = v->step, .onset_ns = FACT_NONE, .sentence = sentence,
			     .detail = detail, .setting = "limit of gathers in flight" };

	memory_culprits(r, v->deep, v->n_deep, v->n_procs, &f);
	if (v->reserved_gb > 0)
		snprintf(memory, sizeof memory, "; %.3g GB reserved%s", v->reserved_gb,
			 v->rise >= LEAST_RISE ? ", rising with them" : "");
	snprintf(detail, sizeof detail, "%" PRIu32 " all-gathers in flight before the first is used (limit %d)%s",
		 v->n_gathers, LIMIT, memory);
	snprintf(sentence, sizeof sentence,
		 "The host runs ahead of the device: %s. Each holds a buffer of its own until it is used, and the "
		 "device is none the faster for it. %s", detail,
		 above ? "Limit how many are in flight (limit_all_gathers, prefetch of one unit)." :
			 "It is not known to cost memory that is missed.");
	f.evidence_json = "[{\"view\":\"collective\"},{\"view\":\"gauge\",\"name\":\"reserved_gb\"}]";
	f.rules_out_json = "[\"memory.growth: memory follows the gathers in flight within a step\"]";
	if (!above)
		f.confidence = CONFIDENCE_LIKELY;
	return memory_tell(r, &r->once.prefetch, above, failure, &f);
}

int prefetch_look(struct rules *r)
{
	struct prefetch v = { .deep = NULL };
	struct memory_failure failure;
	uint32_t n = r->ledger.roster->n_procs;
	bool failed, above;
	int e = 0;

	if (r->gathers.n_procs == 0 || n == 0 || (r->once.prefetch.life == r->life && r->once.prefetch.above))
		return 0;
	v.deep = calloc(n, sizeof *v.deep);
	if (!v.deep)
		return -ENOMEM;
	find(r, &v);
	failed = memory_failed(r, UINT32_MAX, &failure);
	above = v.rise >= LEAST_RISE || failed ||
		(v.used_gb > 0 && v.reserved_gb >= LEAST_SPARE * v.used_gb);
	if (v.n_deep > 0 && (above || r->finishing))
		e = tell(r, &v, failed ? &failure : NULL, above);
	free(v.deep);
	return e;
}
