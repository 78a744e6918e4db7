#include "memory.h"

#include <stdio.h>
#include <string.h>

const struct gauge_series *memory_gauge(const struct rules *r, uint32_t proc, const char *name,
					double *ret_unit)
{
	const struct gauge_of of = { r->ledger.roster->procs[proc].host, proc };
	const struct gauge_series *s;
	char text[48];

	snprintf(text, sizeof text, "%.40s_gb", name);
	*ret_unit = 1;
	s = gauges_find(&r->gauges, &of, text);
	if (s)
		return s;
	snprintf(text, sizeof text, "%.40s_bytes", name);
	*ret_unit = 1e-9;
	return gauges_find(&r->gauges, &of, text);
}

double memory_high_gb(const struct rules *r, uint32_t proc, const char *name)
{
	double unit;
	const struct gauge_series *s = memory_gauge(r, proc, name, &unit);

	return s ? s->high.value * unit : 0;
}

double memory_used_gb(const struct rules *r, uint32_t proc)
{
	double allocated_gb = memory_high_gb(r, proc, "allocated");
	double active_gb = memory_high_gb(r, proc, "active");

	return allocated_gb > active_gb ? allocated_gb : active_gb;
}

double memory_rise(const struct rules *r, uint32_t proc, int64_t from_ns, int64_t to_ns,
		   bool used_too)
{
	static const char *const names[] = { "reserved", "allocated", "active" };

	for (size_t k = 0; k < (used_too ? sizeof names / sizeof *names : 1); k++) {
		double unit, low = 0, high = 0;
		bool fell = false;
		const struct gauge_series *s = memory_gauge(r, proc, names[k], &unit);
		unsigned n = 0;

		for (uint32_t i = 0; s && i < s->n; i++) {
			double v = s->v[i].value;

			if (s->v[i].at_ns < from_ns || s->v[i].at_ns > to_ns)
				continue;
			low = n == 0 ? v : low;
			fell |= v < high;
			high = v > high ? v : high;
			n++;
		}
		if (n > 1)
			return !fell && high > low ? (high - low) / high : 0;
	}
	return 0;
}

bool memory_counts(const struct rules *r, uint32_t proc)
{
	const struct proc *p = &r->ledger.roster->procs[proc];

	return p->life == r->life && p->life > 0 && p->rank >= 0;
}

bool memory_failed(const struct rules *r, uint32_t proc, struct memory_failure *ret)
{
	*ret = (struct memory_failure){ .proc = UINT32_MAX };
	if (r->side.n_of_kind[SIDE_ALLOC_FAILED] == 0 ||
	    (proc != UINT32_MAX && side_count(&r->side, proc, SIDE_ALLOC_FAILED) == 0))
		return false;
	for (size_t i = 0; i < r->side.n; i++) {
		const struct side_record *v = &r->side.v[i];

		if (v->kind != SIDE_ALLOC_FAILED || !memory_counts(r, v->proc) ||
		    (proc != UINT32_MAX && v->proc != proc))
			continue;
		ret->n++;
		ret->proc = v->proc;
		ret->at_ns = v->at_ns;
		ret->gb = side_real(v, "bytes", 0) * 1e-9;
		ret->reserved_gb = side_real(v, "reserved_gb", 0);
		ret->allocated_gb = side_real(v, "allocated_gb", 0);
		ret->died |= r->ledger.roster->procs[v->proc].died;
	}
	return ret->n > 0;
}

void memory_culprits(const struct rules *r, const bool *is, uint32_t n_is, uint32_t n_of,
		     struct finding *f)
{
	for (uint32_t i = 0; 2 * n_is < n_of && i < r->ledger.roster->n_procs; i++)
		if (is[i])
			finding_rank(f, r->ledger.roster->procs[i].rank);
}

int memory_tell(struct rules *r, struct once *once, bool above, const struct memory_failure *failure,
		struct finding *f)
{
	/* One cause; a rank that died of something told already is its consequence. */
	above = above && !r->held && r->once.memory_life != r->life;
	if (!once_tell(once, r->life, above))
		return 0;
	f->severity = !above ? SEVERITY_NOTICE : failure && failure->died ? SEVERITY_STUCK : SEVERITY_WRONG;
	if (above)
		r->once.memory_life = r->life;
	return rules_tell(r, f);
}
