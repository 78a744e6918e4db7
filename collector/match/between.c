#include "between.h"

#include "evidence.h"
#include "ties.h"

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* gap, ticks_ns apart from what is here, is also from lo to hi. */
static void narrow(struct gap *gap, int64_t ticks_ns, const struct pairs_answer *v)
{
	int64_t lo = v->lo_ns - ticks_ns, hi = v->hi_ns + ticks_ns;

	if (v->lo_ns == -PAIRS_UNBOUNDED || v->hi_ns == PAIRS_UNBOUNDED)
		return;
	if (gap->err_ns != CLOCK_UNBOUNDED) {
		lo = larger(lo, gap->ns - gap->err_ns);
		hi = -larger(-hi, -(gap->ns + gap->err_ns));
		if (lo > hi)
			return; /* one of them is wrong: the probes stand until it is known who */
	}
	gap->ns = gap->ns < lo ? lo : gap->ns > hi ? hi : gap->ns;
	gap->err_ns = larger(gap->ns - lo, hi - gap->ns);
}

struct gap match_between(const struct match *m, const struct instant *a, const struct instant *b)
{
	const struct proc *pa = &m->roster->procs[a->proc], *pb = &m->roster->procs[b->proc];
	int64_t ticks_ns = pa->tick_error_ns + pb->tick_error_ns;
	struct gap gap = { a->at.at.ns - b->at.at.ns, CLOCK_UNBOUNDED };
	struct pairs_answer v;

	if (pa->host == pb->host)
		return (struct gap){ a->host_ns - b->host_ns, ticks_ns };
	if (a->at.err_ns != CLOCK_UNBOUNDED && b->at.err_ns != CLOCK_UNBOUNDED)
		gap.err_ns = a->at.err_ns + b->at.err_ns;
	if (m->ties && (ties_is_loose(m->ties, pa->host) || ties_is_loose(m->ties, pb->host))) {
		if (ties_between(m->ties, pa->host, a->host_ns, pb->host, b->host_ns, &v.lo_ns,
				 &v.hi_ns))
			narrow(&gap, ticks_ns, &v);
		return gap;
	}
	/* Near a step nobody knows on which side of it an instant lies. */
	if (!m->evidence || !clock_decides(a->at.status) || !clock_decides(b->at.status) ||
	    evidence_between(m->evidence, pa->host, a->host_ns, pb->host, b->host_ns, &v) != 0)
		return gap;
	narrow(&gap, ticks_ns, &v);
	return gap;
}
