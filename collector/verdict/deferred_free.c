/* deferred_free.c - memory.deferred_free: buffers live longer than their use.
 *
 * What it says: by how many layers their release comes late, and how much memory
 * that holds at a time.
 *
 * How it decides: the program (or its allocator's hooks) says of buffers that their
 * release was put off, by two layers or more, twice at least. A buffer that comes free
 * n layers late is there n times over: that is what is held. Above a notice when
 * that is a tenth of what is reserved, when memory rises by a quarter between these
 * records, when far more is reserved than used, or when an allocation fails that is not much larger
 * than what is held.
 *
 * Neighbours: memory.prefetch_depth (held before its use: the submits say so),
 * memory.growth (never released), memory.fragmentation (released, and of no use).
 */
#include "memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define LEAST_DELAY 2
#define LEAST_RECORDS 2
#define LEAST_SHARE 0.1
#define LEAST_RISE 0.25
#define LEAST_SPARE 2.0

struct deferred { /* of one process */
	uint32_t n;
	int64_t delay, first_ns, last_ns;
	double held_gb;
};

static void collect(const struct rules *r, struct deferred *v)
{
	for (size_t i = 0; i < r->side.n; i++) {
		const struct side_record *s = &r->side.v[i];
		struct deferred *d = &v[s->proc];
		int64_t delay;
		double held_gb;

		if (s->kind != SIDE_FREE_DEFERRED || !memory_counts(r, s->proc))
			continue;
		delay = side_number(s, "release_delay_layers", 0);
		if (delay < LEAST_DELAY || delay > 100000)
			continue;
		held_gb = side_real(s, "bytes", 0) * 1e-9 * (double)delay;
		d->first_ns = d->n++ == 0 ? s->at_ns : d->first_ns;
		d->last_ns = s->at_ns;
		d->delay = delay > d->delay ? delay : d->delay;
		d->held_gb = held_gb > d->held_gb ? held_gb : d->held_gb;
	}
}

static bool costs(const struct rules *r, uint32_t proc, const struct deferred *d)
{
	double reserved_gb = memory_high_gb(r, proc, "reserved"), used_gb = memory_used_gb(r, proc);
	double of_gb = reserved_gb > 0 ? reserved_gb : used_gb;

	return (of_gb > 0 && d->held_gb >= LEAST_SHARE * of_gb) ||
	       memory_rise(r, proc, d->first_ns, d->last_ns, true) >= LEAST_RISE ||
	       (used_gb > 0 && reserved_gb >= LEAST_SPARE * used_gb);
}

static int tell(struct rules *r, const struct deferred *worst, bool above,
		const struct memory_failure *failure, struct finding *f)
{
	char sentence[600], detail[160];

	snprintf(detail, sizeof detail, "released up to %lld layers late, %.3g GB held by it",
		 (long long)worst->delay, worst->held_gb);
	snprintf(sentence, sizeof sentence, "Buffers live longer than their use: %s. %s", detail,
		 above ? "Release them where they are used last: free on the stream that allocated, and wait for "
			 "the other stream's event instead of recording the buffer on it." :
			 "It is not known to cost memory that is missed.");
	f->sentence = sentence;
	f->detail = detail;
	f->evidence_json = "[{\"view\":\"record\",\"category\":\"mem.free_deferred\"},"
			   "{\"view\":\"gauge\",\"name\":\"reserved_gb\"}]";
	f->rules_out_json = "[\"memory.growth: what is held is released, late\"]";
	return memory_tell(r, &r->once.deferred, above, failure, f);
}

int deferred_free_look(struct rules *r)
{
	struct finding f = { .class_name = "memory.deferred_free", .confidence = CONFIDENCE_LIKELY,
			     .step = EVENT_STEP_UNKNOWN, .onset_ns = FACT_NONE };
	uint32_t n = r->ledger.roster->n_procs, n_late = 0, n_of = 0, worst = 0;
	struct deferred *v;
	struct memory_failure failure;
	bool *late, above = false;
	int e = 0;

	if (r->side.n_of_kind[SIDE_FREE_DEFERRED] == 0 || n == 0 || (r->once.deferred.life == r->life && r->once.deferred.above))
		return 0;
	v = calloc(n, sizeof *v);
	late = calloc(n, sizeof *late);
	if (!v || !late) {
		free(v);
		free(late);
		return -ENOMEM;
	}
	collect(r, v);
	for (uint32_t i = 0; i < n; i++) {
		n_of += memory_counts(r, i);
		late[i] = v[i].n >= LEAST_RECORDS;
		n_late += late[i];
		above |= late[i] && costs(r, i, &v[i]);
		if (late[i] && v[i].held_gb >= v[worst].held_gb)
			worst = i;
	}
	if (memory_failed(r, UINT32_MAX, &failure) && v[worst].held_gb >= failure.gb / 2)
		above = true; /* without it there would have been room */
	if (n_late > 0 && (above || r->finishing)) {
		memory_culprits(r, late, n_late, n_of, &f);
		e = tell(r, &v[worst], above, failure.n ? &failure : NULL, &f);
	}
	free(v);
	free(late);
	return e;
}
